/** Warps: images whose pixels are sampled at places of maps or of a matrix, and rotations. */
import { f32, i32, i64 } from '../core/index.js';
import { checkBoolean, checkOptions, invalid } from '../ground/arguments.js';
import { deviceFunction, input, output } from '../kernels/index.js';
import type { KernelParam, Usable } from '../kernels/index.js';
import type { Launchable } from '../library/kernel-family.js';
import { checkTensor } from '../library/operation.js';
import type { Work } from '../library/operation.js';
import type { DeviceOp, OrOp } from '../ops/index.js';
import type { Tensor } from '../tensor/index.js';
import { BORDERS, INDICES, PERIODS, PLACES } from './border.js';
import type { Border } from './border.js';
import { imageOperation } from './engine.js';
import { BLOCK, inLaunches, separate } from './image-launch.js';
import { checkExtent, flat, imageOf, imageOfResult, isWideSpan, resultFor } from './image.js';
import type { Image, ImageName } from './image.js';
import {
  FILTERS,
  STORES,
  STORES_OF_MEANS,
  TAPS,
  WEIGHTS,
  checkFilter,
  checkColor,
} from './sampling.js';
import type { Filter } from './sampling.js';
import { projections, remaps, sample } from './warp-kernels.js';
import type { WarpGpu } from './warp-kernels.js';
import type { Description, EngineOptions, ImageOperation } from './implementation.js';
import type { RemapParameters, WarpParameters, SamplingParameters } from './parameters.js';

/** Options of {@link remap}. */
export interface RemapOptions<D extends ImageName = ImageName> extends EngineOptions {
  /** Default: linear. */
  readonly filter?: Filter;
  /** The pixels outside the image: see {@link Border}. Default: constant. */
  readonly border?: Border;
  /**
   * The colour of the constant border: one number for all channels, or one for each. Default: 0.
   */
  readonly color?: number | readonly number[];
  /** Where the result is written. Default: a new tensor. */
  readonly out?: OrOp<Tensor<D>>;
}

/** Options of {@link warpAffine} and {@link warpPerspective}. */
export interface WarpOptions<D extends ImageName = ImageName> extends RemapOptions<D> {
  /** Columns and rows of the result. Default: those of `out`, or of the image. */
  readonly width?: number;
  readonly height?: number;
  /**
   * Whether the matrix maps places of the result to places of the image. Default: false: it maps
   * places of the image to places of the result.
   */
  readonly inverse?: boolean;
}

const remapping: ImageOperation<RemapParameters> = {
  name: 'remap',
  own: {
    queue(work, { images, results, parameters }) {
      const { mapX, mapY } = parameters;
      const more = {
        mapX: input(f32),
        mapY: input(f32),
        rowX: i32,
        rowY: i32,
        imageX: i32,
        imageY: i32,
      };
      queueWarp(
        work,
        images[0]!,
        imageOfResult(results[0]!),
        parameters,
        'remap',
        more,
        [mapX, mapY],
        ([x, y]) => ({
          mapX: flat(x!),
          mapY: flat(y!),
          rowX: x!.rowPitch,
          rowY: y!.rowPitch,
          imageX: mapX.imagePitch,
          imageY: mapY.imagePitch,
        }),
      );
    },
  },
};

function warps(name: string): ImageOperation<WarpParameters> {
  return {
    name,
    own: {
      queue(work, { images, results, parameters }) {
        const affine = isAffine(parameters.matrix);
        const matrix = affine
          ? movedNear(parameters.matrix, images[0]!, parameters.border)
          : parameters.matrix;
        queueWarp(
          work,
          images[0]!,
          imageOfResult(results[0]!),
          parameters,
          affine ? 'affine' : 'perspective',
          Object.fromEntries(matrix.map((_, k) => [`m${k}`, f32])),
          [],
          () => Object.fromEntries(matrix.map((value, k) => [`m${k}`, value])),
        );
      },
    },
  };
}

function isAffine(matrix: readonly number[]): boolean {
  return matrix[6] === 0 && matrix[7] === 0 && matrix[8] === 1;
}

/**
 * Moves the matrix by whole periods where the border repeats the image: the pixels are the same, at
 * places that f32 represents with more digits.
 */
function movedNear(
  matrix: readonly number[],
  { width, height }: Image,
  border: Border,
): readonly number[] {
  const period = PERIODS[border];
  if (period === undefined) return matrix;
  return matrix.map((value, k) =>
    k === 2 ? value % period(width) : k === 5 ? value % period(height) : value,
  );
}

const affine = warps('warpAffine');
const perspective = warps('warpPerspective');
const rotation = warps('rotate');

const arrays = {
  1: { weights: (gpu: WarpGpu) => gpu.local.f32(1), places: (gpu: WarpGpu) => gpu.local.i32(1) },
  2: { weights: (gpu: WarpGpu) => gpu.local.f32(2), places: (gpu: WarpGpu) => gpu.local.i32(2) },
  4: { weights: (gpu: WarpGpu) => gpu.local.f32(4), places: (gpu: WarpGpu) => gpu.local.i32(4) },
  6: { weights: (gpu: WarpGpu) => gpu.local.f32(6), places: (gpu: WarpGpu) => gpu.local.i32(6) },
} as const;

const ONE: Usable = (distance: number): number => 1 - 0 * distance;

/** @param more parameters of this kind of warp; `maps` and `args` are its images and arguments */
function queueWarp(
  work: Work,
  given: Image,
  out: Image,
  { filter, border, color }: SamplingParameters,
  kind: 'remap' | 'affine' | 'perspective',
  more: Readonly<Record<string, KernelParam>>,
  maps: readonly Image[],
  args: (maps: readonly Image[]) => Readonly<Record<string, unknown>>,
): void {
  const image = separate(work, given, out);
  const { dtype, channels } = image;
  const wide = isWideSpan([image, out]);
  const taps = TAPS[filter] as 1 | 2 | 4 | 6;
  const family = kind === 'remap' ? remaps : projections;
  const launch: Launchable = family.member(
    `${kind}_${filter}_${border}_${dtype.name}_${channels}${wide ? '_wide' : ''}`,
    () => {
      const whole = wide ? i64 : i32;
      return {
        signature: {
          out: output(dtype),
          x: input(dtype),
          width: i32,
          outRow: whole,
          outImage: whole,
          columns: i32,
          rows: i32,
          inRow: whole,
          inImage: whole,
          ...more,
          f0: f32,
          f1: f32,
          f2: f32,
          f3: f32,
        },
        uses: {
          C: channels,
          ...(kind === 'remap' ? {} : { AFFINE: kind === 'affine' }),
          sample: deviceFunction(sample as never, {
            uses: {
              C: channels,
              TAPS: taps,
              BEFORE: Math.floor((taps - 1) / 2),
              NORMALISED: filter === 'lanczos3',
              CONSTANT: border === 'constant',
              at: INDICES[border],
              place: PLACES[border],
              weight: filter === 'nearest' ? ONE : WEIGHTS[filter],
              store: (filter === 'nearest' || filter === 'linear' ? STORES_OF_MEANS : STORES)[
                dtype.name
              ],
              ...arrays[taps],
            },
          }),
        },
        block: BLOCK,
      };
    },
  );
  const [f0 = 0, f1 = 0, f2 = 0, f3 = 0] = color;
  inLaunches([image, out, ...maps], ([x, to, ...parts]) => {
    work.add(
      launch(
        {
          out: flat(to!),
          x: flat(x!),
          width: out.width,
          outRow: out.rowPitch,
          outImage: out.imagePitch,
          columns: image.width,
          rows: image.height,
          inRow: image.rowPitch,
          inImage: image.imagePitch,
          ...args(parts),
          f0,
          f1,
          f2,
          f3,
        },
        {
          grid: [Math.ceil(out.width / BLOCK), out.height, x!.batch],
          ...(wide ? { index: 'i64' } : {}),
        },
      ),
    );
  });
}

const SAMPLING_OPTIONS = ['filter', 'border', 'color', 'out', 'engine'];

function samplingOf(
  image: Image,
  { filter = 'linear', border = 'constant', color = 0 }: RemapOptions,
): SamplingParameters {
  checkFilter('options.filter', filter, FILTERS);
  checkFilter('options.border', border, BORDERS);
  return {
    filter,
    border,
    color: checkColor('options.color', color, image.dtype.name, image.channels),
  };
}

/**
 * Samples an image at the places of two maps: pixel (row, column) of the result comes from column
 * `mapX[row, column]` and row `mapY[row, column]` of the image, counted in pixels from the middle
 * of the first one. The result has the maps' size. Places outside the image, at any distance, have
 * the border's pixels. NaN is outside: with the constant border it gives the colour, with other
 * borders the first column (in `mapY` the first row). An infinity is beyond the edge on its side;
 * `reflect`, `reflect101` and `wrap` have no pixel there, and treat it as NaN.
 *
 * @param mapX a tensor of f32 and [height, width] or [height, width, 1]; for a batch one for all
 *   images, or [images, height, width, 1]
 * @param mapY a tensor like mapX, of the same size
 * @throws CudaArgumentError for maps of another dtype or of different sizes, and as {@link resize}
 *   does
 *
 * @example
 * ```ts
 * using image = await device.tensor(u8, [10, 20, 30], [1, 3, 1]);
 * using mapX = await device.tensor(f32, [2, 1, 0.5], [1, 3]);
 * using mapY = await device.zeros(f32, [1, 3]);
 * using moved = await remap(image, mapX, mapY);
 * console.log((await moved.read()).join(' ')); // 30 20 15
 * ```
 */
export function remap<D extends ImageName>(
  image: OrOp<Tensor<D>>,
  mapX: OrOp<Tensor<'f32'>>,
  mapY: OrOp<Tensor<'f32'>>,
  options: RemapOptions<NoInfer<D>> = {},
): DeviceOp<Tensor<D, number[]>> {
  checkOptions('options', options, SAMPLING_OPTIONS);
  return imageOperation(
    remapping,
    [image, mapX, mapY, options.out],
    options,
    ([given, x, y, out]) => {
      const read = imageOf('remap', 'image', given);
      const [readX, readY] = [mapOf('mapX', x, read), mapOf('mapY', y, read)];
      const { width, height } = readX;
      if (readY.width !== width || readY.height !== height)
        throw invalid(
          'mapY',
          `a map of [${height}, ${width}], as mapX is, for remap(…)`,
          readY.tensor,
        );
      return {
        images: [read],
        results: [resultFor('remap', read, { width, height }, out)],
        parameters: { ...samplingOf(read, options), mapX: readX, mapY: readY },
      };
    },
    ([result]) => result,
  ) as never;
}

function mapOf(argument: string, value: unknown, { batch }: Image): Image {
  checkTensor('remap', argument, value);
  if (value.dtype !== f32)
    throw invalid(
      argument,
      'a Tensor of f32, for remap(…)',
      value,
      'Convert it with convert(f32).',
    );
  const map = imageOf('remap', argument, value.rank === 2 ? value.unsqueeze(-1 as never) : value);
  if (map.channels !== 1) throw invalid(argument, 'a map of one channel, for remap(…)', value);
  if (map.batch !== 1 && map.batch !== batch)
    throw invalid(argument, `one map, or one for each of the ${batch} images, for remap(…)`, value);
  if (map.batch === batch) return map;
  return imageOf(
    'remap',
    argument,
    (map.tensor as { broadcastTo(shape: unknown): unknown }).broadcastTo([
      batch,
      map.height,
      map.width,
      1,
    ]),
  );
}

function warpDescription(
  name: string,
  read: Image,
  out: unknown,
  options: WarpOptions,
  matrix: readonly number[],
): Description<WarpParameters> {
  const like = out === undefined ? read : imageOf(name, 'options.out', out);
  const { width = like.width, height = like.height } = options;
  checkExtent('options.width', width);
  checkExtent('options.height', height);
  return {
    images: [read],
    results: [resultFor(name, read, { width, height }, out)],
    parameters: { ...samplingOf(read, options), matrix },
  };
}

const WARP_OPTIONS = [...SAMPLING_OPTIONS, 'width', 'height', 'inverse'];

function warp(
  operation: ImageOperation<WarpParameters>,
  image: unknown,
  matrix: unknown,
  rows: 2 | 3,
  options: WarpOptions,
): DeviceOp<unknown> {
  const { name } = operation;
  checkOptions('options', options, WARP_OPTIONS);
  checkBoolean('options.inverse', options.inverse);
  const given = matrixOf(matrix, rows);
  const backward = options.inverse === true ? given : inverted(given);
  if (!backward.every((value) => Number.isFinite(Math.fround(value))))
    throw invalid(
      'matrix',
      'numbers that f32 can hold, in the matrix from the result to the image',
      backward,
    );
  return imageOperation(
    operation,
    [image, options.out],
    options,
    ([value, out]) => warpDescription(name, imageOf(name, 'image', value), out, options, backward),
    ([result]) => result,
  );
}

/** Rows of three numbers. */
export type Matrix = readonly (readonly [number, number, number])[];

/**
 * Warps an image by an affine map: the pixel at column x and row y moves to (m₀₀ x + m₀₁ y + m₀₂,
 * m₁₀ x + m₁₁ y + m₁₂), counted in pixels from the middle of the first one. Each pixel of the
 * result is sampled at the place that the inverse matrix gives, which is computed in doubles and
 * rounded to f32; with `inverse` the given matrix is that one. Outside the image the border is
 * read, as {@link remap} does.
 *
 * @param matrix two rows of three numbers
 * @throws CudaArgumentError for a matrix of another form or without an inverse, and as
 *   {@link resize} does
 *
 * @example
 * ```ts
 * using image = await device.tensor(u8, [10, 20, 30], [1, 3, 1]);
 * using moved = await warpAffine(image, [[1, 0, 1], [0, 1, 0]]);
 * console.log((await moved.read()).join(' ')); // 0 10 20
 * ```
 */
export function warpAffine<D extends ImageName>(
  image: OrOp<Tensor<D>>,
  matrix: Matrix,
  options: WarpOptions<NoInfer<D>> = {},
): DeviceOp<Tensor<D, number[]>> {
  return warp(affine, image, matrix, 2, options) as never;
}

/**
 * Warps an image by a perspective map: (x, y) moves to (a / w, b / w), where (a, b, w) is the
 * matrix times (x, y, 1). Where w is 0 the place is infinite, or NaN. Otherwise it is like
 * {@link warpAffine}.
 *
 * @param matrix three rows of three numbers
 *
 * @example
 * ```ts
 * using image = await device.tensor(u8, [10, 20, 30], [1, 3, 1]);
 * using moved = await warpPerspective(image, [[1, 0, -1], [0, 1, 0], [0, 0, 1]]);
 * console.log((await moved.read()).join(' ')); // 20 30 0
 * ```
 */
export function warpPerspective<D extends ImageName>(
  image: OrOp<Tensor<D>>,
  matrix: Matrix,
  options: WarpOptions<NoInfer<D>> = {},
): DeviceOp<Tensor<D, number[]>> {
  return warp(perspective, image, matrix, 3, options) as never;
}

/** Options of {@link rotate}. */
export interface RotateOptions<D extends ImageName = ImageName> extends Omit<
  WarpOptions<D>,
  'inverse'
> {
  /**
   * The column and row that do not move. Default: the image's middle moves to the middle of the
   * result.
   */
  readonly center?: readonly [number, number];
}

/**
 * Rotates an image by an angle in degrees, counter-clockwise as it is shown. By default the result
 * has the image's size, and corners are cut off. {@link rotateQuarters} turns by exact quarters.
 * Otherwise it is like {@link warpAffine}.
 *
 * @example
 * ```ts
 * using image = await device.tensor(u8, [10, 20, 30], [1, 3, 1]);
 * using turned = await rotate(image, 180);
 * console.log((await turned.read()).join(' ')); // 30 20 10
 * ```
 */
export function rotate<D extends ImageName>(
  image: OrOp<Tensor<D>>,
  degrees: number,
  options: RotateOptions<NoInfer<D>> = {},
): DeviceOp<Tensor<D, number[]>> {
  checkOptions('options', options, [...SAMPLING_OPTIONS, 'width', 'height', 'center']);
  if (typeof degrees !== 'number' || !Number.isFinite(degrees))
    throw invalid('degrees', 'a number that is finite', degrees);
  const { center } = options;
  if (
    center !== undefined &&
    !(
      Array.isArray(center) &&
      center.length === 2 &&
      [...center].every((each) => Number.isFinite(each))
    )
  )
    throw invalid('options.center', 'a column and a row, [x, y]', center);
  return imageOperation(
    rotation,
    [image, options.out],
    options,
    ([value, out]) => {
      const read = imageOf('rotate', 'image', value);
      const like = out === undefined ? read : imageOf('rotate', 'options.out', out);
      const { width = like.width, height = like.height } = options;
      const [x, y] = center ?? [(read.width - 1) / 2, (read.height - 1) / 2];
      const [toX, toY] = center ?? [(width - 1) / 2, (height - 1) / 2];
      const [cosine, sine] = circle(degrees);
      return warpDescription('rotate', read, out, options, [
        cosine,
        -sine,
        x - cosine * toX + sine * toY,
        sine,
        cosine,
        y - sine * toX - cosine * toY,
        0,
        0,
        1,
      ]);
    },
    ([result]) => result,
  ) as never;
}

/** Cosine and sine, exact at quarters of a turn. */
function circle(degrees: number): readonly [number, number] {
  const turn = ((degrees % 360) + 360) % 360;
  const quarters = (
    [
      [1, 0],
      [0, 1],
      [-1, 0],
      [0, -1],
    ] as const
  )[turn / 90];
  return quarters ?? [Math.cos((turn * Math.PI) / 180), Math.sin((turn * Math.PI) / 180)];
}

function matrixOf(matrix: unknown, rows: 2 | 3): number[] {
  const good =
    Array.isArray(matrix) &&
    matrix.length === rows &&
    [...(matrix as unknown[])].every(
      (row: unknown) =>
        Array.isArray(row) &&
        row.length === 3 &&
        [...(row as unknown[])].every((each) => Number.isFinite(each)),
    );
  if (!good)
    throw invalid(
      'matrix',
      `${rows} rows of three numbers that are finite`,
      matrix,
      rows === 2 && Array.isArray(matrix) && matrix.length === 3
        ? 'A matrix of three rows takes warpPerspective(…).'
        : '',
    );
  return [...(matrix as number[][]).flat(), ...(rows === 2 ? [0, 0, 1] : [])];
}

function inverted(m: readonly number[]): number[] {
  const [a, b, c, d, e, f, g, h, i] = m as readonly [
    number,
    number,
    number,
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  const adjoint = [
    e * i - f * h,
    c * h - b * i,
    b * f - c * e,
    f * g - d * i,
    a * i - c * g,
    c * d - a * f,
    d * h - e * g,
    b * g - a * h,
    a * e - b * d,
  ];
  const determinant = a * adjoint[0]! + b * adjoint[3]! + c * adjoint[6]!;
  const inverse = adjoint.map((each) => each / determinant);
  if (!inverse.every((each) => Number.isFinite(each)))
    throw invalid(
      'matrix',
      'a matrix that has an inverse',
      m,
      'Pass the matrix from the result to the image, with { inverse: true }.',
    );
  // The inverse of an affine matrix is affine: rounding must not change its last row.
  return g === 0 && h === 0 && i === 1 ? [...inverse.slice(0, 6), 0, 0, 1] : inverse;
}
