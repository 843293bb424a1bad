/** What there is to say of how a picture is decoded. */
import { checkInteger, checkOptions, checkSignal, invalid } from '../../ground/arguments.js';
import { MOST_EXTENT } from '../image.js';
import type { Channels } from '../image.js';

/** What a decoded picture's channels are. */
export type PictureFormat = 'rgb' | 'bgr' | 'rgba' | 'grey';

/**
 * Who decodes: `nvjpeg` is NVIDIA's nvJPEG, for JPEGs on a GPU; `auto` is nvJPEG where it can give
 * what sharp gives, and sharp elsewhere.
 */
export type PictureEngine = 'auto' | 'nvjpeg' | 'sharp';
const ENGINES: readonly PictureEngine[] = ['auto', 'nvjpeg', 'sharp'];

/** Red, green and blue, from 0 to 255. */
export type PictureColor = readonly [red: number, green: number, blue: number];

/** What {@link decodeImage} takes. */
export interface DecodeImageOptions {
  /** The channels of the result, whatever the picture has. Default: rgb. */
  readonly format?: PictureFormat;
  /**
   * What shows through where the picture is transparent and the result has no alpha; `ignore` takes
   * the colours as they stand. Default: white.
   */
  readonly background?: PictureColor | 'ignore';
  /**
   * `apply` turns and mirrors the picture as its EXIF orientation says; `ignore` leaves it as it
   * was stored. Default: apply.
   */
  readonly orientation?: 'apply' | 'ignore';
  /** Who decodes. Default: auto. */
  readonly engine?: PictureEngine;
  /**
   * Pixels that the picture may have, its width times its height, for files of strangers: few bytes
   * can claim to hold any number. Default: 2^28.
   */
  readonly maxPixels?: number;
  /** Stops waiting. What libvips or nvJPEG has begun it ends, and the result is dropped. */
  readonly signal?: AbortSignal;
}

/** Options that were checked. */
export interface Decoding {
  readonly format: PictureFormat;
  readonly background: PictureColor | 'ignore';
  readonly orientation: 'apply' | 'ignore';
  readonly engine: PictureEngine;
  readonly maxPixels: number;
}

export const PICTURE_CHANNELS: Readonly<Record<PictureFormat, Channels>> = {
  rgb: 3,
  bgr: 3,
  rgba: 4,
  grey: 1,
};
export const DECODING_OPTIONS: readonly string[] = [
  'format',
  'background',
  'orientation',
  'engine',
  'maxPixels',
  'signal',
] satisfies (keyof DecodeImageOptions)[];
const DEFAULT_MOST_PIXELS = 2 ** 28;
const WHITE: PictureColor = [255, 255, 255];

/** @throws CudaArgumentError */
export function checkDecoding(options: DecodeImageOptions): Decoding {
  checkOptions('options', options, DECODING_OPTIONS);
  const {
    format = 'rgb',
    background = WHITE,
    orientation = 'apply',
    engine = 'auto',
    maxPixels = DEFAULT_MOST_PIXELS,
    signal,
  } = options;
  if (!Object.hasOwn(PICTURE_CHANNELS, format))
    throw invalid('options.format', `one of ${Object.keys(PICTURE_CHANNELS).join(', ')}`, format);
  if ((orientation as unknown) !== 'apply' && (orientation as unknown) !== 'ignore')
    throw invalid('options.orientation', "'apply' or 'ignore'", orientation);
  if (background !== 'ignore') checkColor('options.background', background);
  if (!ENGINES.includes(engine))
    throw invalid('options.engine', `one of ${ENGINES.join(', ')}`, engine);
  if (engine === 'nvjpeg' && format === 'rgba')
    throw invalid(
      'options.format',
      'rgb, bgr or grey, since nvJPEG makes no alpha',
      format,
      "Write { format: 'rgb' } and .andThen((image) => addAlpha(image)), or leave out the engine.",
    );
  checkInteger('options.maxPixels', maxPixels, 1, MOST_EXTENT ** 2, 'pixels');
  checkSignal(signal);
  return { format, background, orientation, engine, maxPixels };
}

/** @throws CudaArgumentError */
export function checkColor(argument: string, color: unknown): asserts color is PictureColor {
  if (
    Array.isArray(color) &&
    color.length === 3 &&
    [...(color as number[])].every((each) => Number.isInteger(each) && each >= 0 && each <= 255)
  )
    return;
  throw invalid(argument, 'three whole numbers from 0 to 255, [red, green, blue]', color);
}
