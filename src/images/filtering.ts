/** Filters: Gaussian, box, any weights, and Sobel's derivatives. */
import { CudaArgumentError, f32, i32, i64 } from '../core/index.js';
import type { DType } from '../core/index.js';
import { checkInteger, checkOptions, invalid } from '../ground/arguments.js';
import { deviceFunction, input, output } from '../kernels/index.js';
import type { DeviceFunction, GpuWith } from '../kernels/index.js';
import type { KernelArray } from '../library/kernel-family.js';
import type { Work } from '../library/operation.js';
import type { DeviceOp, OrOp } from '../ops/index.js';
import type { KernelTensor, Tensor } from '../tensor/index.js';
import { BORDERS, INDICES } from './border.js';
import type { Border } from './border.js';
import { checkChannelNumbers, forChannels } from './channel-numbers.js';
import type { ChannelNumbers } from './channel-numbers.js';
import { imageOperation } from './engine.js';
import { COLUMNS, TILE, plane, separable } from './filter-kernels.js';
import { separate } from './image-launch.js';
import { flat, imageOf, imageOfResult, isWideSpan, resultFor } from './image.js';
import type { Image, ImageName } from './image.js';
import { checkImageDType } from './rescaling.js';
import { STORED } from './rounding.js';
import type { EngineOptions, ImageOperation } from './implementation.js';
import type { Surroundings, SeparableFiltering, Filtering } from './parameters.js';

/** Pixels that a filter reaches from its middle at most. */
export const MOST_RADIUS = 31;
/** Columns and rows that the weights of {@link filter2d} have at most. */
const MOST_WEIGHTS = 31;
/** Blocks that fill a large GPU, eight for each of its multiprocessors. */
const BLOCKS = 1056;

/** Options of filters. */
export interface FilterOptions<E extends ImageName = ImageName> extends EngineOptions {
  /** The pixels beyond the edges: see {@link Border}. Default: reflect101. */
  readonly border?: Border;
  /**
   * The colour of the constant border, in the image's numbers: one number for all channels, or one
   * for each. Default: 0.
   */
  readonly color?: ChannelNumbers;
  /** Where the result is written. Default: a new tensor. */
  readonly out?: OrOp<Tensor<E>>;
}

const FILTER_OPTIONS = ['border', 'color', 'engine', 'out'] as const;

function checkFilterOptions(options: FilterOptions, own: readonly string[]): void {
  checkOptions('options', options, [...own, ...FILTER_OPTIONS]);
  const { border, color } = options ?? {};
  if (border !== undefined && !BORDERS.includes(border))
    throw invalid('options.border', `one of ${BORDERS.join(', ')}`, border);
  if (color === undefined) return;
  checkChannelNumbers('options.color', color);
  if (border !== 'constant')
    throw new CudaArgumentError(
      'options.color',
      "options.color: only border 'constant' has a colour. Write { border: 'constant', color }.",
    );
}

function surroundings(
  { border = 'reflect101', color = 0 }: FilterOptions,
  { channels }: Image,
): Surroundings {
  return { border, colors: forChannels('options.color', color, channels) };
}

function arrayOf(LENGTH: number): DeviceFunction {
  const uses = { LENGTH };
  return deviceFunction(
    (gpu: GpuWith<typeof uses>): KernelArray<number> => gpu.local.f32(gpu.LENGTH),
    { uses },
  );
}

function sharedArrayOf(LENGTH: number): DeviceFunction {
  const uses = { LENGTH };
  return deviceFunction(
    (gpu: GpuWith<typeof uses>): KernelArray<number> => gpu.shared.f32(gpu.LENGTH),
    { uses },
  );
}

function sharedRowsOf(ROWS: number, LENGTH: number): DeviceFunction {
  const uses = { ROWS, LENGTH };
  return deviceFunction(
    (gpu: GpuWith<typeof uses>): KernelArray<KernelArray<number>> =>
      gpu.shared.f32(gpu.ROWS, gpu.LENGTH),
    { uses },
  );
}

/** The arguments, the signature and the constants that both kernels have. */
function common(
  work: Work,
  image: Image,
  out: Image,
  weights: readonly number[],
  { border, colors }: Surroundings,
): {
  readonly key: string;
  readonly wide: boolean;
  readonly signature: Record<string, never>;
  readonly uses: Record<string, never>;
  readonly args: Record<string, unknown>;
} {
  const wide = isWideSpan([image, out]);
  const whole = wide ? i64 : i32;
  const taps = work.temporary(f32, [weights.length]) as unknown as KernelTensor;
  work.add(taps.write(Float32Array.from(weights)));
  const [pad0, pad1, pad2, pad3] = [0, 1, 2, 3].map((c) => Math.fround(colors[c] ?? 0));
  return {
    wide,
    key: `${image.dtype.name}_${out.dtype.name}_${image.channels}_${border}${wide ? '_wide' : ''}`,
    signature: {
      out: output(out.dtype),
      x: input(image.dtype),
      weights: input(f32),
      width: i32,
      height: i32,
      xRow: whole,
      xImage: whole,
      oRow: whole,
      oImage: whole,
      pad0: f32,
      pad1: f32,
      pad2: f32,
      pad3: f32,
    } as never,
    uses: {
      C: image.channels,
      CONSTANT: border === 'constant',
      index: INDICES[border],
      stored: STORED[out.dtype.name],
    } as never,
    args: {
      out: flat(out),
      x: flat(image),
      weights: taps,
      width: image.width,
      height: image.height,
      xRow: image.rowPitch,
      xImage: image.imagePitch,
      oRow: out.rowPitch,
      oImage: out.imagePitch,
      pad0,
      pad1,
      pad2,
      pad3,
    },
  };
}

function queueSeparable(
  work: Work,
  given: Image,
  out: Image,
  parameters: SeparableFiltering,
): void {
  const image = separate(work, given, out);
  const radius = parameters.weights.length - 1;
  const { key, wide, signature, uses, args } = common(
    work,
    image,
    out,
    parameters.weights,
    parameters,
  );
  const span = COLUMNS + 2 * radius * image.channels;
  const across = Math.ceil((image.width * image.channels) / COLUMNS);
  // Short strips read more rows twice; long ones leave multiprocessors idle.
  const strip = Math.min(
    Math.max(16, 2 * radius, Math.ceil((image.height * across * image.batch) / BLOCKS)),
    256,
  );
  const launch = separable.member(`${key}_${radius}`, () => ({
    signature: { ...signature, strip: i32 },
    uses: {
      ...uses,
      RADIUS: radius,
      SPAN: span,
      weightsOfTaps: arrayOf(radius + 1),
      sums: arrayOf(2 * radius + 1),
      stretches: sharedRowsOf(2, span),
    },
    block: COLUMNS,
  }));
  work.add(
    launch(
      { ...args, strip },
      {
        grid: [across, Math.ceil(image.height / strip), image.batch],
        ...(wide ? { index: 'i64' } : {}),
      },
    ),
  );
}

function queuePlane(work: Work, given: Image, out: Image, parameters: Filtering): void {
  const image = separate(work, given, out);
  const [rows, columns] = [parameters.weights.length, parameters.weights[0]!.length];
  const { key, wide, signature, uses, args } = common(
    work,
    image,
    out,
    parameters.weights.flat(),
    parameters,
  );
  const [span, depth] = [TILE[0] + (columns - 1) * image.channels, TILE[1] + rows - 1];
  const launch = plane.member(`${key}_${columns}x${rows}`, () => ({
    signature,
    uses: {
      ...uses,
      KW: columns,
      KH: rows,
      REACH: (columns - 1) / 2,
      RISE: (rows - 1) / 2,
      SPAN: span,
      DEPTH: depth,
      tile: sharedRowsOf(depth, span),
      weightsOfTaps: sharedArrayOf(rows * columns),
    },
    block: TILE,
  }));
  work.add(
    launch(args, {
      grid: [
        Math.ceil((image.width * image.channels) / TILE[0]),
        Math.ceil(image.height / TILE[1]),
        image.batch,
      ],
      ...(wide ? { index: 'i64' } : {}),
    }),
  );
}

function separableOf(name: string): ImageOperation<SeparableFiltering> {
  return {
    name,
    own: {
      queue(work, { images: [image], results: [out], parameters }) {
        queueSeparable(work, image!, imageOfResult(out!), parameters);
      },
    },
  };
}

const gaussians = separableOf('gaussianFilter');
const boxes = separableOf('boxFilter');

function separableFilter(
  definition: ImageOperation<SeparableFiltering>,
  image: unknown,
  options: FilterOptions,
  kind: Pick<SeparableFiltering, 'weights' | 'sigma'>,
): DeviceOp<unknown> {
  const { name } = definition;
  return imageOperation(
    definition,
    [image, options.out],
    options,
    ([given, into]) => {
      const read = imageOf(name, 'image', given);
      return {
        images: [read],
        results: [resultFor(name, read, {}, into)],
        parameters: { ...kind, ...surroundings(options, read) },
      };
    },
    ([result]) => result,
  );
}

/** Options of {@link gaussianFilter}: a radius, a sigma, or both. */
export interface GaussianOptions<D extends ImageName = ImageName> extends FilterOptions<D> {
  /** Pixels on each side of the middle, from 0 to 31. Default: 3 · sigma, rounded up. */
  readonly radius?: number;
  /** Standard deviation in pixels. Default: 0.3 · (radius - 1) + 0.8. */
  readonly sigma?: number;
}

/**
 * Filters an image by a Gaussian: Σ w(i) · w(j) · x[row + i][column + j] for i, j from -radius to
 * radius, with w(k) = exp(-k² / 2 sigma²) divided by their sum. Sums are in f32 along rows, then
 * columns, without rounding to the dtype in between; integers are then rounded to nearest, ties to
 * even. Weights are computed in doubles and rounded to f32.
 *
 * @throws CudaArgumentError for a radius outside 0 to 31, a sigma that is not above 0, and neither
 *   of them; at the call, or when run where an operation gives the image
 *
 * @example
 * ```ts
 * using image = await device.tensor(u8, [0, 0, 200, 0, 0], [1, 5, 1]);
 * using smooth = await gaussianFilter(image, { radius: 1 });
 * console.log((await smooth.read()).join(' ')); // 0 48 104 48 0
 * ```
 */
export function gaussianFilter<D extends ImageName>(
  image: OrOp<Tensor<D>>,
  options: GaussianOptions<NoInfer<D>>,
): DeviceOp<Tensor<D, number[]>> {
  checkFilterOptions(options, ['radius', 'sigma']);
  const { radius: givenRadius, sigma: givenSigma } = (options ?? {}) as GaussianOptions;
  if (givenRadius === undefined && givenSigma === undefined)
    throw new CudaArgumentError(
      'options.radius',
      'options.radius: expected a radius, a sigma, or both, got neither. Write { radius: 2 } ' +
        'or { sigma: 1.5 }.',
    );
  if (
    givenSigma !== undefined &&
    !(typeof givenSigma === 'number' && givenSigma > 0 && Number.isFinite(givenSigma))
  )
    throw invalid('options.sigma', 'a number above 0 (pixels)', givenSigma);
  if (givenRadius !== undefined)
    checkInteger('options.radius', givenRadius, 0, MOST_RADIUS, 'pixels');
  const radius = givenRadius ?? Math.ceil(3 * givenSigma!);
  if (radius > MOST_RADIUS)
    throw new CudaArgumentError(
      'options.sigma',
      `options.sigma: expected a sigma whose radius, 3 · sigma, is at most ${MOST_RADIUS}, ` +
        `got ${givenSigma!}. Give the radius too, or filter an image that was made smaller.`,
    );
  const sigma = givenSigma ?? 0.3 * (radius - 1) + 0.8;
  const bell = Array.from({ length: radius + 1 }, (_, k) =>
    Math.exp(-(k * k) / (2 * sigma * sigma)),
  );
  const sum = bell.reduce((all, each, k) => all + (k === 0 ? each : 2 * each), 0);
  return separableFilter(gaussians, image, options, {
    weights: bell.map((each) => each / sum),
    sigma,
  }) as never;
}

/** Options of {@link boxFilter}. */
export interface BoxOptions<D extends ImageName = ImageName> extends FilterOptions<D> {
  /**
   * Pixels on each side of the middle, from 0 to 31: the box has 2 · radius + 1 rows and columns.
   */
  readonly radius: number;
}

/**
 * Filters an image by a box: each pixel becomes the mean of 2 · radius + 1 rows and columns around
 * it. Sums are in f32, as in {@link gaussianFilter}, with the weight 1 / (2 · radius + 1), rounded
 * to f32, along each axis; integers are then rounded to nearest, ties to even.
 *
 * @throws CudaArgumentError for a radius outside 0 to 31; at the call, or when run where an
 *   operation gives the image
 *
 * @example
 * ```ts
 * using image = await device.tensor(u8, [0, 90, 0], [1, 3, 1]);
 * using smooth = await boxFilter(image, { radius: 1, border: 'replicate' });
 * console.log((await smooth.read()).join(' ')); // 30 30 30
 * ```
 */
export function boxFilter<D extends ImageName>(
  image: OrOp<Tensor<D>>,
  options: BoxOptions<NoInfer<D>>,
): DeviceOp<Tensor<D, number[]>> {
  checkFilterOptions(options, ['radius']);
  const { radius } = (options ?? {}) as BoxOptions;
  checkInteger('options.radius', radius, 0, MOST_RADIUS, 'pixels');
  return separableFilter(boxes, image, options, {
    weights: Array.from({ length: radius + 1 }, () => 1 / (2 * radius + 1)),
  }) as never;
}

/** Options of {@link filter2d}. */
export interface Filter2dOptions<E extends ImageName = ImageName> extends FilterOptions<E> {
  /** The dtype of the result: f32 has negative numbers too. Default: that of the image. */
  readonly dtype?: DType<E>;
}

const planes: ImageOperation<Filtering> = {
  name: 'filter2d',
  own: {
    queue(work, { images: [image], results: [out], parameters }) {
      queuePlane(work, image!, imageOfResult(out!), parameters);
    },
  },
};

/**
 * Filters an image by any weights: Σ weights[i][j] · x[row + i - rows/2][column + j - columns/2].
 * It is a correlation with the middle of the weights on the pixel; mirror the weights for a
 * convolution. Sums are in f32, row by row of the weights, which are rounded to f32. The sum is
 * rounded to the dtype, integers to nearest, ties to even, saturated.
 *
 * @param weights rows of numbers, an odd number of rows and columns, at most 31 each
 * @throws CudaArgumentError for weights of another form, and a dtype that images do not have; at
 *   the call, or when run where an operation gives the image
 *
 * @example
 * ```ts
 * using image = await device.tensor(u8, [10, 20, 30], [1, 3, 1]);
 * using next = await filter2d(image, [[0, 0, 1]], { border: 'replicate' });
 * console.log((await next.read()).join(' ')); // 20 30 30
 * ```
 */
export function filter2d<D extends ImageName, E extends ImageName = D>(
  image: OrOp<Tensor<D>>,
  weights: readonly (readonly number[])[],
  options: Filter2dOptions<E> = {},
): DeviceOp<Tensor<E, number[]>> {
  checkFilterOptions(options, ['dtype']);
  if (options.dtype !== undefined) checkImageDType('options.dtype', options.dtype);
  checkWeights(weights);
  const rows = weights.map((row) => [...row]);
  return imageOperation(
    planes,
    [image, options.out],
    options,
    ([given, into]) => {
      const read = imageOf('filter2d', 'image', given);
      const dtype = options.dtype?.name ?? read.dtype.name;
      return {
        images: [read],
        results: [resultFor('filter2d', read, { dtype }, into)],
        parameters: { weights: rows, ...surroundings(options, read) },
      };
    },
    ([result]) => result,
  ) as never;
}

function checkWeights(weights: unknown): asserts weights is number[][] {
  const odd = (length: number): boolean => length % 2 === 1 && length <= MOST_WEIGHTS;
  const rows = Array.isArray(weights) ? (weights as unknown[]) : [];
  const first: unknown = rows[0];
  const columns = Array.isArray(first) ? first.length : 0;
  const fits =
    odd(rows.length) &&
    odd(columns) &&
    [...rows].every(
      (row) =>
        Array.isArray(row) &&
        row.length === columns &&
        [...(row as unknown[])].every((each) => typeof each === 'number' && Number.isFinite(each)),
    );
  if (!fits)
    throw invalid(
      'weights',
      'rows of numbers, all of one length; an odd number of rows and columns, at most ' +
        `${MOST_WEIGHTS}`,
      weights,
    );
}

/** Options of {@link sobel}. */
export interface SobelOptions<E extends ImageName = ImageName> extends Filter2dOptions<E> {
  /** The axis of the derivative: x is from column to column, y from row to row. */
  readonly along: 'x' | 'y';
}

const SMOOTH = [1, 2, 1];
const SLOPE = [-1, 0, 1];

/**
 * Gives the derivative along an axis by Sobel's weights: [[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]] along
 * x, and their transpose along y. The result is of f32 unless `dtype` is given, since unsigned
 * integers saturate negative numbers to 0. Otherwise it is like {@link filter2d}.
 *
 * @throws CudaArgumentError for another axis, and as {@link filter2d} does
 *
 * @example
 * ```ts
 * using image = await device.tensor(u8, [10, 20, 30], [1, 3, 1]);
 * using slope = await sobel(image, { along: 'x' });
 * console.log(slope.dtype.name, (await slope.read()).join(' ')); // f32 0 80 0
 * ```
 */
export function sobel<E extends ImageName = 'f32'>(
  image: OrOp<Tensor<ImageName>>,
  options: SobelOptions<E>,
): DeviceOp<Tensor<E, number[]>> {
  checkFilterOptions(options, ['along', 'dtype']);
  const { along, dtype = f32, ...others } = options ?? {};
  if (along !== 'x' && along !== 'y') throw invalid('options.along', 'x or y', along);
  const [down, across] = along === 'x' ? [SMOOTH, SLOPE] : [SLOPE, SMOOTH];
  return filter2d(
    image,
    down.map((a) => across.map((b) => a * b)),
    { ...others, dtype: dtype as DType<E> },
  );
}
