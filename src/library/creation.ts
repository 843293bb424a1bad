/** Tensors like others, grids of coordinates, and triangles of matrices. */
import { i32, i64 } from '../core/index.js';
import type { DType, DTypeName, KernelDTypeName, Scalar } from '../core/index.js';
import { checkDType, checkInteger, checkOptions, invalid } from '../ground/arguments.js';
import { fillPattern } from '../core/fill-pattern.js';
import { input, output } from '../kernels/index.js';
import type { DeviceOp, OrOp } from '../ops/index.js';
import type { AnyTensor, KernelTensor, Shape, Tensor } from '../tensor/index.js';
import { listOf } from './arrangement.js';
import { scalarOf } from '../tensor/make.js';
import { checkAnyTensor, checkTensor, operation } from './operation.js';
import type { Plan } from './operation.js';
import { KernelFamily } from './kernel-family.js';
import type { Gpu, Input, Output } from './kernel-family.js';
import { isWide } from './reduction-kernels.js';

/** Options of {@link emptyLike}, {@link zerosLike}, {@link onesLike} and {@link fullLike}. */
export interface LikeOptions<D extends DTypeName> {
  /** The dtype of the result. Default: that of the tensor. */
  readonly dtype?: DType<D>;
}

/** A function that makes a tensor of the shape of another. */
export interface Like {
  <D extends DTypeName, S extends Shape>(x: OrOp<Tensor<D, S>>): DeviceOp<Tensor<D, S>>;
  <E extends DTypeName, S extends Shape>(
    x: OrOp<Tensor<DTypeName, S>>,
    options: LikeOptions<E>,
  ): DeviceOp<Tensor<E, S>>;
}

function like(name: string, value: number | undefined): Like {
  return (x: unknown, options: LikeOptions<DTypeName> = {}) =>
    operation(name, [x], ([given]) =>
      planLike(
        name,
        given,
        options,
        value === undefined ? undefined : (dtype) => scalarOf(dtype, value),
      ),
    );
}

function planLike(
  name: string,
  given: unknown,
  options: LikeOptions<DTypeName>,
  value: ((dtype: DType) => unknown) | undefined,
): Plan<AnyTensor> {
  checkAnyTensor(name, 'x', given);
  checkOptions('options', options, ['dtype']);
  const { dtype = given.dtype } = options;
  checkDType(dtype, 'options.dtype');
  const filling = value?.(dtype);
  if (value !== undefined) fillPattern(dtype, filling);
  return (work) => {
    const out = work.result(dtype, [...given.shape]) as unknown as AnyTensor;
    if (value !== undefined && out.size > 0) work.add(out.fill(filling as never));
    return out;
  };
}

/**
 * A tensor of uninitialised memory with the shape of another, and its dtype or that of the options.
 * cuMemAllocAsync
 *
 * @example
 * ```ts
 * using y = await emptyLike(device.zeros(f32, [2, 3]), { dtype: i32 });
 * console.log(y.shape, y.dtype.name); // [ 2, 3 ] i32
 * ```
 */
export const emptyLike = like('emptyLike', undefined);
/**
 * A tensor of zeros with the shape of another, and its dtype or that of the options.
 *
 * @example
 * ```ts
 * using y = await zerosLike(device.ones(f32, [2]));
 * console.log((await y.read()).join(' ')); // 0 0
 * ```
 */
export const zerosLike = like('zerosLike', 0);
/**
 * A tensor of ones with the shape of another, and its dtype or that of the options.
 *
 * @example
 * ```ts
 * using y = await onesLike(device.zeros(f32, [2]));
 * console.log((await y.read()).join(' ')); // 1 1
 * ```
 */
export const onesLike = like('onesLike', 1);

/**
 * A tensor of one value with the shape of another, and its dtype or that of the options.
 *
 * @throws CudaArgumentError for a value that the dtype does not have
 *
 * @example
 * ```ts
 * using y = await fullLike(device.zeros(f32, [2]), 0.5);
 * console.log((await y.read()).join(' ')); // 0.5 0.5
 * ```
 */
export function fullLike<D extends DTypeName, S extends Shape>(
  x: OrOp<Tensor<D, S>>,
  value: Scalar<D>,
): DeviceOp<Tensor<D, S>>;
export function fullLike<E extends DTypeName, S extends Shape>(
  x: OrOp<Tensor<DTypeName, S>>,
  value: Scalar<E>,
  options: LikeOptions<E>,
): DeviceOp<Tensor<E, S>>;
export function fullLike(
  x: unknown,
  value: unknown,
  options: LikeOptions<DTypeName> = {},
): unknown {
  return operation('fullLike', [x], ([given]) => planLike('fullLike', given, options, () => value));
}

/** Options of {@link meshgrid}. */
export interface MeshgridOptions {
  /**
   * `'xy'`: the second tensor's coordinates are along axis 0 and the first one's along axis 1;
   * `'ij'`: axis i has the coordinates of tensor i. Default: 'xy'.
   */
  readonly indexing?: 'xy' | 'ij';
}

/**
 * Grids of coordinates: for each tensor of one axis a new tensor of as many axes as there are
 * tensors, whose elements are those of the tensor along its axis.
 *
 * @throws CudaArgumentError for a tensor that has not one axis
 *
 * @example
 * ```ts
 * const grids = await meshgrid([device.tensor(i32, [1, 2, 3]), device.tensor(i32, [4, 5])]);
 * console.log(grids[0]!.shape, (await grids[1]!.read()).join(' ')); // [ 2, 3 ] 4 4 4 5 5 5
 * for (const grid of grids) grid.close();
 * ```
 */
export function meshgrid<D extends DTypeName>(
  tensors: readonly OrOp<Tensor<D>>[],
  options: MeshgridOptions = {},
): DeviceOp<Tensor<D, number[]>[]> {
  checkOptions('options', options, ['indexing']);
  const { indexing = 'xy' } = options;
  if (!['xy', 'ij'].includes(indexing)) throw invalid('options.indexing', "'xy' or 'ij'", indexing);
  return operation('meshgrid', listOf('meshgrid', tensors), (values) => {
    const given = values.map((value, index) => {
      checkAnyTensor('meshgrid', `tensors[${index}]`, value);
      if (value.rank !== 1)
        throw invalid(`tensors[${index}]`, 'a Tensor of one axis, for meshgrid(…)', value);
      return value;
    });
    const axes = given.map((_, at) =>
      indexing === 'xy' && given.length > 1 && at < 2 ? 1 - at : at,
    );
    const shape: number[] = [];
    axes.forEach((axis, at) => {
      shape[axis] = given[at]!.size;
    });
    return (work) =>
      given.map((tensor, at) => {
        const out = work.result(tensor.dtype, shape) as unknown as AnyTensor;
        const along = tensor.reshape(
          shape.map((_, axis) => (axis === axes[at] ? tensor.size : 1)) as never,
        );
        if (out.size > 0) work.add(out.copyFrom((along as AnyTensor).broadcastTo(shape as never)));
        return out as unknown as Tensor<D, number[]>;
      });
  });
}

interface TriangleGpu extends Gpu {
  /** Whether the elements above the diagonal stay, or those below it. */
  readonly UPPER: boolean;
}

const triangles = new KernelFamily(
  'triangle',
  (
    {
      out,
      x,
      rows,
      columns,
      diagonal,
    }: { out: Output; x: Input; rows: number; columns: number; diagonal: number },
    gpu: TriangleGpu,
  ) => {
    const i = gpu.globalId.x;
    if (i >= out.length) return;
    const column = i % columns;
    const from = column - ((i / columns) % rows) - diagonal;
    if (gpu.UPPER ? from >= 0 : from <= 0) out[i] = x[i]!;
    else out[i] = 0;
  },
);

const BLOCK = 256;

/** Options of {@link tril} and {@link triu}. */
export interface TriangleOptions {
  /**
   * The diagonal at which the triangle ends: above the main diagonal where positive, below it where
   * negative. Default: 0.
   */
  readonly diagonal?: number;
}

function triangle(name: string, UPPER: boolean) {
  return <D extends KernelDTypeName, S extends Shape>(
    x: OrOp<Tensor<D, S>>,
    options: TriangleOptions = {},
  ): DeviceOp<Tensor<D, S>> => {
    checkOptions('options', options, ['diagonal']);
    const { diagonal = 0 } = options;
    checkInteger('options.diagonal', diagonal, -0x7fffffff, 0x7fffffff);
    return operation(name, [x], ([given]) => {
      checkTensor(name, 'x', given);
      if (given.rank < 2)
        throw invalid('x', `a Tensor of matrices, of at least two axes, for ${name}(…)`, given);
      const [rows, columns] = given.shape.slice(-2) as [number, number];
      return (work) => {
        const out = work.result(given.dtype, [...given.shape]) as unknown as KernelTensor;
        if (out.size === 0) return out as unknown as Tensor<D, S>;
        const wide = isWide(out);
        const whole = wide ? i64 : i32;
        const key = `${name}_${given.dtype.name}${wide ? '_wide' : ''}`;
        const launch = triangles.member(key, () => ({
          signature: {
            out: output(given.dtype),
            x: input(given.dtype),
            rows: whole,
            columns: whole,
            diagonal: whole,
          },
          uses: { UPPER },
          block: BLOCK,
        }));
        // A diagonal beyond the matrix leaves all of it, or nothing: differences stay in 32 bits.
        const within = Math.max(-rows, Math.min(columns, diagonal));
        work.add(
          launch(
            {
              out: out.reshape([out.size] as never),
              x: work.dense(given).reshape([out.size] as never),
              rows,
              columns,
              diagonal: within,
            },
            { grid: Math.ceil(out.size / BLOCK), ...(wide ? { index: 'i64' } : {}) },
          ),
        );
        return out as unknown as Tensor<D, S>;
      };
    });
  };
}

/**
 * The lower triangle of each matrix: elements above the diagonal become 0.
 *
 * @throws CudaArgumentError for a tensor of fewer than two axes
 *
 * @example
 * ```ts
 * using y = await tril(device.tensor(i32, [1, 2, 3, 4], [2, 2]));
 * console.log((await y.read()).join(' ')); // 1 0 3 4
 * ```
 */
export const tril = triangle('tril', false);
/**
 * The upper triangle of each matrix: elements below the diagonal become 0.
 *
 * @throws CudaArgumentError for a tensor of fewer than two axes
 *
 * @example
 * ```ts
 * using y = await triu(device.tensor(i32, [1, 2, 3, 4], [2, 2]));
 * console.log((await y.read()).join(' ')); // 1 2 0 4
 * ```
 */
export const triu = triangle('triu', true);
