/** Conversions between packed formats: RGB and BGR, with or without alpha, grey, HSV. */
import { checkOptions, invalid } from '../ground/arguments.js';
import type { GpuWith } from '../kernels/index.js';
import { deviceFunction } from '../kernels/index.js';
import type { KernelArray } from '../library/kernel-family.js';
import type { DeviceOp, OrOp } from '../ops/index.js';
import type { Tensor } from '../tensor/index.js';
import { imageOperation } from './engine.js';
import { imageOf, imageOfResult, resultFor } from './image.js';
import type { Channels, ImageName } from './image.js';
import { LUMA } from './luma.js';
import type { LumaMatrix } from './luma.js';
import { addPixels } from './pixel-kernel.js';
import { packed } from './pixel-runs.js';
import { WHITE } from './rounding.js';
import type { EngineOptions, ImageOperation } from './implementation.js';
import type { ColorFormat, ColorConversion } from './parameters.js';

interface Format {
  readonly channels: Channels;
  /** The channels of red, green and blue; 0 for grey. */
  readonly at: readonly [number, number, number];
  readonly alpha: boolean;
}

const FORMATS: Readonly<Record<ColorFormat, Format>> = {
  rgb: { channels: 3, at: [0, 1, 2], alpha: false },
  bgr: { channels: 3, at: [2, 1, 0], alpha: false },
  rgba: { channels: 4, at: [0, 1, 2], alpha: true },
  bgra: { channels: 4, at: [2, 1, 0], alpha: true },
  grey: { channels: 1, at: [0, 0, 0], alpha: false },
  hsv: { channels: 3, at: [0, 1, 2], alpha: false },
};

/** Options of {@link convertColor}. */
export interface ConvertColorOptions<D extends ImageName = ImageName> extends EngineOptions {
  /** The format of the image. */
  readonly from: ColorFormat;
  /** The format of the result. */
  readonly to: ColorFormat;
  /** Weights of red, green and blue in grey. Default: bt601. */
  readonly matrix?: LumaMatrix;
  /** Where the result is written. Default: a new tensor. */
  readonly out?: OrOp<Tensor<D>>;
}

function colourOf(
  from: ColorFormat,
  to: ColorFormat,
  white: number,
): ReturnType<typeof deviceFunction> {
  const [source, target] = [FORMATS[from], FORMATS[to]];
  const uses = {
    R: source.at[0],
    G: source.at[1],
    B: source.at[2],
    TO_R: target.at[0],
    TO_B: target.at[2],
    FROM_HSV: from === 'hsv',
    TO_HSV: to === 'hsv',
    FROM_GREY: from === 'grey',
    TO_GREY: to === 'grey',
    FROM_ALPHA: source.alpha,
    TO_ALPHA: target.alpha,
    WHITE: white,
  };
  return deviceFunction(
    (
      made: KernelArray<number>,
      from: KernelArray<number>,
      _: KernelArray<number>,
      p: KernelArray<number>,
      gpu: GpuWith<typeof uses>,
    ) => {
      let r = from[gpu.R]!;
      let g = from[gpu.G]!;
      let b = from[gpu.B]!;
      const white = gpu.f32(gpu.WHITE);
      if (gpu.FROM_HSV) {
        const turn = r / white;
        const hue = (turn - Math.floor(turn)) * 6;
        const saturation = g / white;
        const value = b;
        const red = hue >= 1 ? hue - 1 : hue + 5;
        const green = hue >= 3 ? hue - 3 : hue + 3;
        const blue = hue >= 5 ? hue - 5 : hue + 1;
        const chroma = value * saturation;
        r = value - chroma * Math.max(0, Math.min(red, 4 - red, 1));
        g = value - chroma * Math.max(0, Math.min(green, 4 - green, 1));
        b = value - chroma * Math.max(0, Math.min(blue, 4 - blue, 1));
      }
      if (gpu.TO_HSV) {
        const value = Math.max(r, g, b);
        const range = value - Math.min(r, g, b);
        const share = 1 / (range === 0 ? 1 : range);
        const sixths =
          value === r
            ? (g - b) * share + (g < b ? 6 : 0)
            : value === g
              ? (b - r) * share + 2
              : (r - g) * share + 4;
        made[0] = range === 0 ? 0 : sixths * (white / 6);
        made[1] = value === 0 ? 0 : (range / value) * white;
        made[2] = value;
      } else if (gpu.TO_GREY) {
        made[0] = gpu.FROM_GREY ? r : r * p[0]! + g * p[1]! + b * p[2]!;
      } else {
        made[gpu.TO_R] = r;
        made[1] = g;
        made[gpu.TO_B] = b;
        if (gpu.TO_ALPHA) made[3] = gpu.FROM_ALPHA ? from[3]! : white;
      }
    },
    { uses },
  );
}

const functions = new Map<string, ReturnType<typeof deviceFunction>>();

const colours: ImageOperation<ColorConversion> = {
  name: 'convertColor',
  own: {
    queue(work, { images: [image], results: [out], parameters: { from, to, matrix } }) {
      const dtype = image!.dtype.name;
      const white = WHITE[dtype];
      const key = `${from}_${to}_${white}`;
      let f = functions.get(key);
      if (f === undefined) functions.set(key, (f = colourOf(from, to, white)));
      const [r, g, b] = LUMA[matrix];
      addPixels(
        work,
        { key, f, numbers: [r, g, b] },
        [packed(image!)],
        packed(imageOfResult(out!)),
      );
    },
  },
};

/**
 * Converts an image to another colour format, between any two of `rgb`, `bgr`, `rgba`, `bgra`,
 * `grey` and `hsv`, in the same dtype. Numbers are computed in f32 and rounded once (integers to
 * nearest, ties to even, saturated). M is white: 255 for u8, 65535 for u16, 1 for floats.
 *
 * - grey: kr · R + kg · G + kb · B, with 0.299, 0.587, 0.114 of BT.601, or 0.2126, 0.7152, 0.0722
 *   of BT.709. From grey: R = G = B.
 * - alpha: kept where both formats have it, M where only the result has it.
 * - hsv: V = max(R, G, B); S = M · (V - min) / V, 0 for black; H = M/6 · ((G - B) / (V - min), 2 +
 *   (B - R) / (V - min) or 4 + (R - G) / (V - min)), where R, G or B is the greatest (the first of
 *   equal ones), plus M where that is negative; 0 for grey. So a whole turn of H is M, as in NPP;
 *   OpenCV's H of u8 is half of the degrees.
 * - from hsv: channel n = 5, 3, 1 of R, G, B is V - V · S/M · max(0, min(k, 4 - k, 1)), with k = (n
 *   + 6 · H/M) modulo 6.
 *
 * @throws CudaArgumentError for an image that does not have the channels of `from`; at the call, or
 *   when run where an operation gives the image
 *
 * @example
 * ```ts
 * using image = await device.tensor(u8, [10, 20, 30, 40, 50, 60], [1, 2, 3]);
 * using bgra = await convertColor(image, { from: 'rgb', to: 'bgra' });
 * console.log((await bgra.read()).join(' ')); // 30 20 10 255 60 50 40 255
 * ```
 */
export function convertColor<D extends ImageName>(
  image: OrOp<Tensor<D>>,
  options: ConvertColorOptions<NoInfer<D>>,
): DeviceOp<Tensor<D, number[]>> {
  checkOptions('options', options, ['from', 'to', 'matrix', 'engine', 'out']);
  if ((options as unknown) === undefined)
    throw invalid('options', 'an object with from and to', options);
  const { from, to, matrix = 'bt601', out } = options;
  for (const [name, format] of [
    ['options.from', from],
    ['options.to', to],
  ] as const) {
    if (!Object.hasOwn(FORMATS, format))
      throw invalid(name, `one of ${Object.keys(FORMATS).join(', ')}`, format);
  }
  if (!Object.hasOwn(LUMA, matrix))
    throw invalid('options.matrix', `one of ${Object.keys(LUMA).join(', ')}`, matrix);
  return imageOperation(
    colours,
    [image, out],
    options,
    ([given, into]) => {
      const read = imageOf('convertColor', 'image', given);
      const { channels } = FORMATS[from];
      if (read.channels !== channels)
        throw invalid(
          'image',
          `an image of ${channels} ${channels === 1 ? 'channel' : 'channels'}, which ${from} has`,
          read.tensor,
          `options.from is '${from}'.`,
        );
      return {
        images: [read],
        results: [resultFor('convertColor', read, { channels: FORMATS[to].channels }, into)],
        parameters: { from, to, matrix },
      };
    },
    ([result]) => result,
  ) as never;
}
