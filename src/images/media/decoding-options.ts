/** Options of decoding pictures. */
import { checkInteger, checkOptions, checkSignal, invalid } from '../../ground/arguments.js';
import { MOST_EXTENT } from '../image.js';
import type { Channels } from '../image.js';

/** The channels of a decoded picture. */
export type PictureFormat = 'rgb' | 'bgr' | 'rgba' | 'grey';

/**
 * The decoder. `nvjpeg` is NVIDIA's nvJPEG, for JPEGs on a GPU; `auto` is nvJPEG where its result
 * is that of sharp, and sharp elsewhere.
 */
export type PictureEngine = 'auto' | 'nvjpeg' | 'sharp';
const ENGINES: readonly PictureEngine[] = ['auto', 'nvjpeg', 'sharp'];

/** Red, green and blue, from 0 to 255. */
export type PictureColor = readonly [red: number, green: number, blue: number];

/** Options of {@link decodeImage}. */
export interface DecodeImageOptions {
  /** The channels of the result, to which those of the picture are converted. Default: rgb. */
  readonly format?: PictureFormat;
  /**
   * The colour under transparent pixels where the result has no alpha; with `ignore` alpha is
   * dropped. Default: white.
   */
  readonly background?: PictureColor | 'ignore';
  /**
   * `apply` turns and mirrors the picture by its EXIF orientation; `ignore` leaves it as it is
   * stored. Default: apply.
   */
  readonly orientation?: 'apply' | 'ignore';
  /** The decoder. Default: auto. */
  readonly engine?: PictureEngine;
  /**
   * The number of pixels, width times height, that a picture has at most: untrusted files of few
   * bytes can claim any number. Default: 2^28.
   */
  readonly maxPixels?: number;
  /**
   * Rejects the operation. Work that libvips or nvJPEG has begun ends, and its result is dropped.
   */
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
