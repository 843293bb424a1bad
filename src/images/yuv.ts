/** Conversions of video frames: YUV 4:2:0 to RGB and back. */
import { checkOptions, invalid } from '../ground/arguments.js';
import type { DeviceOp, OrOp } from '../ops/index.js';
import type { Tensor } from '../tensor/index.js';
import { imageOperation } from './engine.js';
import { imageOf, imageOfResult, resultFor } from './image.js';
import type { Channels } from './image.js';
import { LUMA } from './luma.js';
import type { LumaMatrix } from './luma.js';
import { yuvFrameOf, yuvResultFor } from './yuv-frame.js';
import type { YuvFormat } from './yuv-frame.js';
import { addYuvDecode, addYuvEncode } from './yuv-kernels.js';
import type { ColorPlaces } from './yuv-kernels.js';
import { fromYuv, toYuv } from './yuv-matrices.js';
import type { YuvRange } from './yuv-matrices.js';
import type { EngineOptions, ImageOperation } from './implementation.js';
import type { YuvConversion, RgbFormat } from './parameters.js';

/** The coding of a frame. */
export interface YuvOptions extends EngineOptions {
  /** The order of the frame's planes. */
  readonly format: YuvFormat;
  /** Default: bt601. */
  readonly matrix?: LumaMatrix;
  /** Default: limited. */
  readonly range?: YuvRange;
  /** Where the result is written. Default: a new tensor. */
  readonly out?: OrOp<Tensor<'u8'>>;
}

/** Options of {@link yuvToRgb}. */
export interface YuvToRgbOptions extends YuvOptions {
  /** The format of the result. Default: rgb. */
  readonly to?: RgbFormat;
}

/** Options of {@link rgbToYuv}. */
export interface RgbToYuvOptions extends YuvOptions {
  /** The format of the image. Default: rgb, or rgba for 4 channels. */
  readonly from?: RgbFormat;
}

const RGB: Readonly<Record<RgbFormat, ColorPlaces & { readonly channels: Channels }>> = {
  rgb: { channels: 3, red: 0, blue: 2 },
  bgr: { channels: 3, red: 2, blue: 0 },
  rgba: { channels: 4, red: 0, blue: 2 },
  bgra: { channels: 4, red: 2, blue: 0 },
};
const CHOICES: Readonly<Record<string, readonly string[]>> = {
  format: ['i420', 'nv12'],
  matrix: Object.keys(LUMA),
  range: ['limited', 'full'],
};

function checkYuv(options: YuvOptions, own: string, rgb: unknown): void {
  checkOptions('options', options, ['format', own, 'matrix', 'range', 'engine', 'out']);
  const given = ((options as unknown) ?? {}) as Readonly<Record<string, unknown>>;
  for (const [name, choices] of Object.entries(CHOICES)) {
    const value = given[name];
    if ((value !== undefined || name === 'format') && !choices.includes(value as string))
      throw invalid(`options.${name}`, `one of ${choices.join(', ')}`, value);
  }
  if (rgb !== undefined && !Object.hasOwn(RGB, rgb as string))
    throw invalid(`options.${own}`, `one of ${Object.keys(RGB).join(', ')}`, rgb);
}

const decodings: ImageOperation<YuvConversion> = {
  name: 'yuvToRgb',
  own: {
    queue(work, { images: [frame], results: [out], parameters: { format, rgb, matrix, range } }) {
      addYuvDecode(
        work,
        format,
        yuvFrameOf('yuvToRgb', 'frame', format, frame!.tensor),
        imageOfResult(out!),
        RGB[rgb],
        fromYuv(matrix, range),
      );
    },
  },
};

/**
 * Converts a frame of YUV 4:2:0 to an image: u8 of [height, width, channels], with alpha 255 in
 * formats that have it. A frame is a tensor of u8 and [height · 3/2, width], a batch [images,
 * height · 3/2, width], as ffmpeg writes `-pix_fmt yuv420p` and `nv12`. It has `height` rows of Y;
 * then i420 has height/2 · width/2 elements of U and as many of V without gaps, and nv12 has
 * height/2 rows of pairs U, V. Rows of nv12 may have a pitch.
 *
 * 2 × 2 pixels share U and V. With kr, kg, kb as the shares of the matrix (0.299, 0.587, 0.114 of
 * BT.601; 0.2126, 0.7152, 0.0722 of BT.709), y = (Y - 16) · 255/219, u = (U - 128) · 255/224, v
 * likewise (full range: Y, U - 128, V - 128): R = y + 2(1 - kr) · v, G = y - 2(1 - kb) · kb/kg · u
 * - 2(1 - kr) · kr/kg · v, B = y + 2(1 - kb) · u, in f32, rounded once to the nearest, ties to
 * even, and saturated.
 *
 * @throws CudaArgumentError for another dtype, odd sizes, rows of i420 with gaps; at the call, or
 *   when run where an operation gives the frame
 *
 * @example
 * ```ts
 * using frame = await device.tensor(u8, [235, 235, 16, 16, 128, 128], [3, 2]);
 * using image = await yuvToRgb(frame, { format: 'nv12' });
 * console.log(image.shape); // [ 2, 2, 3 ]
 * console.log((await image.read()).join(' ')); // 255 255 255 255 255 255 0 0 0 0 0 0
 * ```
 */
export function yuvToRgb(
  frame: OrOp<Tensor<'u8'>>,
  options: YuvToRgbOptions,
): DeviceOp<Tensor<'u8', number[]>> {
  checkYuv(options, 'to', (options as YuvToRgbOptions | undefined)?.to);
  const { format, to: rgb = 'rgb', matrix = 'bt601', range = 'limited', out } = options;
  return imageOperation(
    decodings,
    [frame, out],
    options,
    ([given, into]) => {
      const read = yuvFrameOf('yuvToRgb', 'frame', format, given);
      return {
        images: [read],
        results: [
          resultFor(
            'yuvToRgb',
            { ...read, height: read.rows },
            { channels: RGB[rgb].channels },
            into,
          ),
        ],
        parameters: { format, rgb, matrix, range },
      };
    },
    ([result]) => result,
  ) as never;
}

const encodings: ImageOperation<YuvConversion> = {
  name: 'rgbToYuv',
  own: {
    takes: { u8: [3, 4] },
    queue(work, { images: [image], results: [out], parameters: { format, rgb, matrix, range } }) {
      addYuvEncode(
        work,
        format,
        yuvFrameOf('rgbToYuv', 'result', format, out),
        image!,
        RGB[rgb],
        toYuv(matrix, range),
      );
    },
  },
};

/**
 * Converts an image of u8 to a frame of YUV 4:2:0, as {@link yuvToRgb} takes it; alpha is dropped.
 * Y = 16 + 219/255 · (kr · R + kg · G + kb · B), U = 128 + 224/255 · (B - y) / 2(1 - kb) and V =
 * 128 + 224/255 · (R - y) / 2(1 - kr), where U and V are computed of the mean of 2 × 2 pixels, and
 * y is kr · R + kg · G + kb · B (full range: without 16 and the fractions); in f32, rounded once to
 * the nearest, ties to even, and saturated.
 *
 * @throws CudaArgumentError for another dtype, an odd number of rows or columns, channels that are
 *   not those of the format; at the call, or when run where an operation gives the image
 *
 * @example
 * ```ts
 * using white = await device.full(u8, [2, 2, 3], 255);
 * using frame = await rgbToYuv(white, { format: 'nv12' });
 * console.log(frame.shape, (await frame.read()).join(' ')); // [ 3, 2 ] 235 235 235 235 128 128
 * ```
 */
export function rgbToYuv(
  image: OrOp<Tensor<'u8'>>,
  options: RgbToYuvOptions,
): DeviceOp<Tensor<'u8', number[]>> {
  checkYuv(options, 'from', (options as RgbToYuvOptions | undefined)?.from);
  const { format, from, matrix = 'bt601', range = 'limited', out } = options;
  return imageOperation(
    encodings,
    [image, out],
    options,
    ([given, into]) => {
      const read = imageOf('rgbToYuv', 'image', given);
      const rgb = from ?? (read.channels === 4 ? 'rgba' : 'rgb');
      if (read.dtype.name !== 'u8')
        throw invalid(
          'image',
          'an image of u8, for rgbToYuv(…)',
          read.tensor,
          'Convert it with rescale(image, u8, { scale }).',
        );
      if (read.channels !== RGB[rgb].channels)
        throw invalid(
          'image',
          `an image of ${RGB[rgb].channels} channels, which ${rgb} has`,
          read.tensor,
        );
      return {
        images: [read],
        results: [yuvResultFor('rgbToYuv', 'image', format, read, into)],
        parameters: { format, rgb, matrix, range },
      };
    },
    ([result]) => result,
  ) as never;
}
