/** Pixel formats of raw video, by ffmpeg's names, and the tensors of their frames. */
import { u16, u8 } from '../../core/index.js';
import type { DType } from '../../core/index.js';
import { checkInteger, invalid } from '../../ground/arguments.js';
import { MOST_EXTENT } from '../image.js';

/** ffmpeg's name of each format (`-pix_fmt`), and the dtype of its elements. */
export interface PixelFormats {
  /** [height, width, 1] */
  readonly gray: 'u8';
  /** [height, width, 3] */
  readonly rgb24: 'u8';
  /** [height, width, 3] */
  readonly bgr24: 'u8';
  /** [height, width, 4] */
  readonly rgba: 'u8';
  /** [height, width, 4] */
  readonly bgra: 'u8';
  /** [height · 3/2, width], as `yuvToRgb(frame, { format: 'i420' })` takes it; even sizes */
  readonly yuv420p: 'u8';
  /** [height · 3/2, width], as `yuvToRgb(frame, { format: 'nv12' })` takes it; even sizes */
  readonly nv12: 'u8';
  /** [height, width, 1] */
  readonly gray16le: 'u16';
  /** [height, width, 3] */
  readonly rgb48le: 'u16';
  /** [height, width, 4] */
  readonly rgba64le: 'u16';
}

/** ffmpeg's name of a format. */
export type PixelFormat = keyof PixelFormats;

interface Row<D extends 'u8' | 'u16'> {
  readonly dtype: DType<D>;
  /** Channels of a pixel; undefined for 4:2:0. */
  readonly channels?: 1 | 3 | 4;
}

const PIXEL_FORMATS: { readonly [P in PixelFormat]: Row<PixelFormats[P]> } = {
  gray: { dtype: u8, channels: 1 },
  rgb24: { dtype: u8, channels: 3 },
  bgr24: { dtype: u8, channels: 3 },
  rgba: { dtype: u8, channels: 4 },
  bgra: { dtype: u8, channels: 4 },
  yuv420p: { dtype: u8 },
  nv12: { dtype: u8 },
  gray16le: { dtype: u16, channels: 1 },
  rgb48le: { dtype: u16, channels: 3 },
  rgba64le: { dtype: u16, channels: 4 },
};

/** The form of all frames of a video. */
export interface FrameForm<P extends PixelFormat = PixelFormat> {
  readonly pixelFormat: P;
  readonly width: number;
  readonly height: number;
  readonly dtype: DType<PixelFormats[P]>;
  readonly shape: readonly number[];
  readonly elements: number;
  readonly bytes: number;
}

/** @throws CudaArgumentError */
export function checkPixelFormat(argument: string, name: unknown): asserts name is PixelFormat {
  if (typeof name !== 'string' || !Object.hasOwn(PIXEL_FORMATS, name))
    throw invalid(
      argument,
      `one of ${Object.keys(PIXEL_FORMATS).join(', ')}`,
      name,
      name === 'i420' ? "ffmpeg's name of it is yuv420p." : '',
    );
}

/** @throws CudaArgumentError for sizes that images do not have, and odd sizes of 4:2:0 */
export function frameForm<P extends PixelFormat>(
  pixelFormat: P,
  width: unknown,
  height: unknown,
): FrameForm<P> {
  checkInteger('options.width', width, 1, MOST_EXTENT, 'pixels');
  checkInteger('options.height', height, 1, MOST_EXTENT, 'pixels');
  const { dtype, channels } = PIXEL_FORMATS[pixelFormat] as Row<PixelFormats[P]>;
  for (const [name, size] of [
    ['width', width],
    ['height', height],
  ] as const) {
    if (channels === undefined && size % 2 !== 0)
      throw invalid(
        `options.${name}`,
        `an even number of pixels, since 2 × 2 pixels of ${pixelFormat} share their chroma`,
        size,
        'Pass an even width and height, or another pixelFormat.',
      );
  }
  const shape = channels === undefined ? [(height / 2) * 3, width] : [height, width, channels];
  const elements = shape.reduce((product, extent) => product * extent, 1);
  return { pixelFormat, width, height, dtype, shape, elements, bytes: elements * dtype.bytes };
}
