/** Statistics of each channel of images: sums, means, extremes and their positions, histograms. */
import { f32, f64, i32, i64, u32, u8 } from '../core/index.js';
import { checkInteger, checkOptions, invalid } from '../ground/arguments.js';
import { deviceFunction, inout, input, output } from '../kernels/index.js';
import type { DeviceFunction, GpuWith, Usable } from '../kernels/index.js';
import type { Gpu, KernelArray } from '../library/kernel-family.js';
import type { Work } from '../library/operation.js';
import type { DeviceOp, OrOp } from '../ops/index.js';
import type { KernelTensor, Tensor } from '../tensor/index.js';
import { Results } from '../tensor/results.js';
import type { Closing } from '../tensor/results.js';
import { imageOperation } from './engine.js';
import { flat, imageOf, isWideSpan } from './image.js';
import type { Image, ImageName, NewTensor } from './image.js';
import {
  BEATS,
  BLOCK,
  extremes,
  histograms,
  valuesAt,
  sums,
  totals,
} from './statistics-kernels.js';
import type { EngineOptions, ImageOperation } from './implementation.js';
import type { Counting } from './parameters.js';

/** Blocks that fill a large GPU, four for each of its multiprocessors. */
const BLOCKS = 528;
/**
 * Bounds of the pixels of a block: a block for fewer costs more than it computes, and with more the
 * sum of a thread's u16 does not fit in u32.
 */
const [FEWEST, MOST] = [4096, 2 ** 23];
/** Counts that a block keeps in shared memory. */
const MOST_COUNTS = 12288;

/** Cuts an image into parts for blocks. The result follows from its size alone. */
function cut(image: Image): {
  readonly parts: number;
  readonly key: string;
  readonly wide: boolean;
  readonly signature: Record<string, never>;
  readonly uses: Record<string, Usable>;
  readonly args: Record<string, unknown>;
  readonly options: { index?: 'i64' };
} {
  const pixels = image.height * image.width;
  const part = Math.min(
    MOST,
    Math.max(
      FEWEST,
      Math.ceil(pixels / Math.max(1, Math.ceil(BLOCKS / image.batch)) / BLOCK) * BLOCK,
    ),
  );
  const parts = Math.ceil(pixels / part);
  const gapless = image.rowPitch === image.width * image.channels;
  const wide = isWideSpan([image]);
  const whole = wide ? i64 : i32;
  return {
    parts,
    wide,
    key: `${image.dtype.name}_${image.channels}${gapless ? '_flat' : ''}${wide ? '_wide' : ''}`,
    signature: {
      x: input(image.dtype),
      width: i32,
      pixels: i32,
      xRow: whole,
      xImage: whole,
      part: i32,
    } as never,
    uses: { C: image.channels, FLAT: gapless },
    args: {
      x: flat(image),
      width: image.width,
      pixels,
      xRow: image.rowPitch,
      xImage: image.imagePitch,
      part,
    },
    options: wide ? { index: 'i64' } : {},
  };
}

/** A result of [N, C] or [C], and further axes. */
function perChannel(
  dtype: NewTensor['dtype'],
  { batch, batched, channels }: Image,
  ...rest: number[]
): NewTensor {
  return { dtype, shape: [...(batched ? [batch] : []), channels, ...rest] };
}

const flatly = (tensor: KernelTensor): KernelTensor => tensor.reshape([tensor.size] as never);

const ARRAYS = {
  u32: {
    1: (gpu: Gpu): KernelArray<number> => gpu.local.u32(1),
    3: (gpu: Gpu): KernelArray<number> => gpu.local.u32(3),
    4: (gpu: Gpu): KernelArray<number> => gpu.local.u32(4),
  },
  f64: {
    1: (gpu: Gpu): KernelArray<number> => gpu.local.f64(1),
    3: (gpu: Gpu): KernelArray<number> => gpu.local.f64(3),
    4: (gpu: Gpu): KernelArray<number> => gpu.local.f64(4),
  },
} as const;
const CASTS = {
  u32: (value: number, gpu: Gpu): number => gpu.u32(value),
  f64: (value: number, gpu: Gpu): number => gpu.f64(value),
} as const;

function queueSums(work: Work, image: Image, out: KernelTensor, divisor: number): void {
  const { parts, key, signature, uses, args, options } = cut(image);
  const kept = image.dtype.name === 'u8' || image.dtype.name === 'u16' ? 'u32' : 'f64';
  const launch = sums.member(key, () => ({
    signature: { ...signature, out: output(f64) },
    uses: { ...uses, sums: ARRAYS[kept][image.channels], cast: CASTS[kept] },
    block: BLOCK,
  }));
  const between = work.temporary(f64, [
    image.batch * parts * image.channels,
  ]) as unknown as KernelTensor;
  work.add(launch({ ...args, out: between }, { grid: [parts, image.batch], ...options }));
  const last = totals.member('f64', () => ({
    signature: { out: output(f64), x: input(f64), parts: i32, channels: i32, divisor: f64 },
    block: BLOCK,
  }));
  work.add(
    last(
      { out: flatly(out), x: between, parts, channels: image.channels, divisor },
      { grid: image.batch * image.channels },
    ),
  );
}

function sumsOf(
  name: 'channelSums' | 'channelMeans',
): (image: OrOp<Tensor<ImageName>>, options?: EngineOptions) => DeviceOp<Tensor<'f64', number[]>> {
  const definition: ImageOperation<object> = {
    name,
    own: {
      queue(work, { images: [image], results: [out] }) {
        queueSums(work, image!, out!, name === 'channelSums' ? 1 : image!.height * image!.width);
      },
    },
  };
  return (image, options = {}) => {
    checkOptions('options', options, ['engine']);
    return imageOperation(
      definition,
      [image],
      options,
      ([given]) => {
        const read = imageOf(name, 'image', given);
        return { images: [read], results: [perChannel(f64, read)], parameters: {} };
      },
      ([result]) => result,
    ) as never;
  };
}

/**
 * Gives the sum of each channel: f64 of [C], for a batch [N, C]. Sums of integers are exact. Floats
 * are added as f64, in an order that follows from the image's size, so that results have the same
 * bits in each run and on each device.
 *
 * @throws CudaArgumentError for what is no image; at the call, or when run where an operation gives
 *   the image
 *
 * @example
 * ```ts
 * using image = await device.tensor(u8, [1, 2, 3, 4, 5, 6], [1, 2, 3]);
 * using sums = await channelSums(image);
 * console.log((await sums.read()).join(' ')); // 5 7 9
 * ```
 */
export const channelSums = sumsOf('channelSums');

/**
 * Gives the mean of each channel: {@link channelSums} divided by the number of pixels.
 *
 * @example
 * ```ts
 * using image = await device.tensor(u8, [1, 2, 3, 4, 5, 6], [1, 2, 3]);
 * using means = await channelMeans(image);
 * console.log((await means.read()).join(' ')); // 2.5 3.5 4.5
 * ```
 */
export const channelMeans = sumsOf('channelMeans');

/** The result of {@link channelExtremes}. Closing it closes its tensors. */
export interface ChannelExtremes<D extends ImageName = ImageName> extends Closing {
  /** [C], for a batch [N, C]: the least and the greatest element of each channel. */
  readonly min: Tensor<D, number[]>;
  readonly max: Tensor<D, number[]>;
  /** [C, 2], for a batch [N, C, 2]: row and column of the first of them in row-major order. */
  readonly minAt: Tensor<'i32', number[]>;
  readonly maxAt: Tensor<'i32', number[]>;
}

const scratch = (gpu: Gpu): KernelArray<KernelArray<number>> => gpu.shared.i32(2, 8);

const extremeValues: ImageOperation<object> = {
  name: 'channelExtremes',
  own: {
    queue(work, { images, results }) {
      const image = images[0]!;
      const [min, max, minAt, maxAt] = results.map(flatly);
      const { parts, key, signature, uses, args, options } = cut(image);
      const positions = (length: number): KernelTensor => work.temporary(i32, [length]);
      const none = positions(1);
      const of = (PARTS: boolean): ReturnType<typeof extremes.member> =>
        extremes.member(`${key}${PARTS ? '_parts' : ''}`, () => ({
          signature: {
            ...signature,
            leastAt: output(i32),
            mostAt: output(i32),
            from: input(i32),
            fromMost: input(i32),
          },
          uses: { ...uses, ...BEATS, scratch, PARTS },
          block: BLOCK,
        }));
      const each = image.batch * image.channels;
      let [least, most] = [positions(each * parts), positions(each * parts)];
      work.add(
        of(false)(
          { ...args, leastAt: least, mostAt: most, from: none, fromMost: none },
          { grid: [parts, image.batch], ...options },
        ),
      );
      if (parts > 1) {
        const [first, second] = [positions(each), positions(each)];
        // The second pass compares parts instead of pixels.
        work.add(
          of(true)(
            {
              ...args,
              pixels: parts,
              part: parts,
              leastAt: first,
              mostAt: second,
              from: least,
              fromMost: most,
            },
            { grid: [1, image.batch], ...options },
          ),
        );
        [least, most] = [first, second];
      }
      const { x, width, xRow, xImage } = args;
      const look = valuesAt.member(key, () => ({
        signature: {
          least: output(image.dtype),
          most: output(image.dtype),
          leastAt: output(i32),
          mostAt: output(i32),
          x: input(image.dtype),
          from: input(i32),
          fromMost: input(i32),
          width: i32,
          xRow: signature['xRow']!,
          xImage: signature['xImage']!,
          channels: i32,
        },
        block: BLOCK,
      }));
      work.add(
        look(
          {
            least: min,
            most: max,
            leastAt: minAt,
            mostAt: maxAt,
            x,
            from: least,
            fromMost: most,
            width,
            xRow,
            xImage,
            channels: image.channels,
          },
          { grid: Math.ceil(each / BLOCK), ...options },
        ),
      );
    },
  },
};

/**
 * Gives the least and the greatest element of each channel, and the position of the first of each.
 * NaN counts as the least and as the greatest, as in `argmin` and `argmax`.
 *
 * @throws CudaArgumentError for what is no image; at the call, or when run where an operation gives
 *   the image
 *
 * @example
 * ```ts
 * using image = await device.tensor(u8, [1, 20, 30, 4, 5, 60], [1, 2, 3]);
 * using found = await channelExtremes(image);
 * console.log((await found.max.read()).join(' ')); // 4 20 60
 * console.log((await found.maxAt.read()).join(' ')); // 0 1 0 0 0 1
 * ```
 */
export function channelExtremes<D extends ImageName>(
  image: OrOp<Tensor<D>>,
  options: EngineOptions = {},
): DeviceOp<ChannelExtremes<D>> {
  checkOptions('options', options, ['engine']);
  return imageOperation(
    extremeValues,
    [image],
    options,
    ([given]) => {
      const read = imageOf('channelExtremes', 'image', given);
      return {
        images: [read],
        results: [
          perChannel(read.dtype, read),
          perChannel(read.dtype, read),
          perChannel(i32, read, 2),
          perChannel(i32, read, 2),
        ],
        parameters: {},
      };
    },
    (results) => new Results(['min', 'max', 'minAt', 'maxAt'], results),
  ) as never;
}

/** Options of {@link channelHistogram}. */
export interface ChannelHistogramOptions extends EngineOptions {
  /** The number of equal parts of the range. Default: 256. */
  readonly bins?: number;
  /**
   * Where the first bin begins and the last one ends; an element that equals the end is in the last
   * bin. Default: 0 to 256 for u8 (so that each value has one of 256 bins), 0 to 65536 for u16, 0
   * to 1 for floats.
   */
  readonly from?: number;
  readonly to?: number;
}

/** The greatest f32, and the least normal one. */
const MOST_FLOAT = 3.4028234663852886e38;
const LEAST_FLOAT = 2 ** -126;

const ENDS: Readonly<Record<ImageName, number>> = { u8: 256, u16: 65536, f16: 1, f32: 1 };

function countsOf(LENGTH: number): DeviceFunction {
  const uses = { LENGTH };
  return deviceFunction(
    (gpu: GpuWith<typeof uses>): KernelArray<number> => gpu.shared.u32(gpu.LENGTH),
    { uses },
  );
}

const counts: ImageOperation<Counting> = {
  name: 'channelHistogram',
  own: {
    queue(work, { images, results, parameters: { bins, from, to, bytes } }) {
      const image = images[0]!;
      const out = flatly(results[0]!);
      const { parts, key, signature, uses, args, options } = cut(image);
      work.add(out.fill(0));
      const launch = histograms.member(`${key}_${bins}${bytes ? '_bytes' : ''}`, () => ({
        signature: { ...signature, out: inout(u32), low: f32, high: f32, scale: f32 },
        uses: { ...uses, BINS: bins, BYTES: bytes, counts: countsOf(bins * image.channels) },
        block: BLOCK,
      }));
      work.add(
        launch(
          {
            ...args,
            out,
            low: Math.fround(from),
            high: Math.fround(to),
            scale: Math.fround(bins / (to - from)),
          },
          { grid: [parts, image.batch], ...options },
        ),
      );
    },
  },
};

/**
 * Counts the elements of each channel in each bin: u32 of [C, bins], for a batch [N, C, bins]. The
 * bin of x is (x - from) · (bins / (to - from)) without its fraction, in f32. Elements outside the
 * range, and NaN, are not counted.
 *
 * @throws CudaArgumentError for what is no image, an empty range, more than 12288 bins of all
 *   channels; at the call, or when run where an operation gives the image
 *
 * @example
 * ```ts
 * using image = await device.tensor(u8, [0, 1, 1, 255], [1, 4, 1]);
 * using counts = await channelHistogram(image, { bins: 4 });
 * console.log(counts.shape, (await counts.read()).join(' ')); // [ 1, 4 ] 3 0 0 1
 * ```
 */
export function channelHistogram(
  image: OrOp<Tensor<ImageName>>,
  options: ChannelHistogramOptions = {},
): DeviceOp<Tensor<'u32', number[]>> {
  checkOptions('options', options, ['bins', 'from', 'to', 'engine']);
  const { bins = 256 } = options;
  checkInteger('options.bins', bins, 1, MOST_COUNTS, 'bins');
  return imageOperation(
    counts,
    [image],
    options,
    ([given]) => {
      const read = imageOf('channelHistogram', 'image', given);
      const { from = 0, to = ENDS[read.dtype.name] } = options;
      checkInteger(
        'options.bins',
        bins,
        1,
        MOST_COUNTS / read.channels,
        `bins of each of ${read.channels} channels`,
      );
      if (typeof from !== 'number' || !Number.isFinite(from))
        throw invalid('options.from', 'a number that is finite', from);
      if (typeof to !== 'number' || !Number.isFinite(to) || to <= from)
        throw invalid('options.to', `a number above options.from, ${from}`, to);
      // Bins are computed in f32: numbers beyond its range would all be in one bin.
      const [low, high, scale] = [from, to, bins / (to - from)].map(Math.fround) as [
        number,
        number,
        number,
      ];
      if (!(
        high > low &&
        high - low <= MOST_FLOAT &&
        scale >= LEAST_FLOAT &&
        scale <= MOST_FLOAT
      )) {
        throw invalid(
          'options.to',
          `a number above options.from, ${from}, by a width that f32 has, as well as that of a bin`,
          to,
        );
      }
      const bytes = read.dtype.name === u8.name && bins === 256 && from === 0 && to === 256;
      return {
        images: [read],
        results: [perChannel(u32, read, bins)],
        parameters: { bins, from, to, bytes },
      };
    },
    ([result]) => result,
  ) as never;
}
