/** Gather and scatter: parts of a tensor, selected by a tensor of indices. */
import { i32, i64 } from '../core/index.js';
import type { KernelDTypeName } from '../core/index.js';
import { checkOptions, invalid } from '../ground/arguments.js';
import { inout, input, output } from '../kernels/index.js';
import type { DeviceOp, OrOp } from '../ops/index.js';
import type { KernelTensor, Shape, Tensor } from '../tensor/index.js';
import { checkAxis, numel, sameShape } from '../tensor/shape.js';
import { KernelFamily } from './kernel-family.js';
import type { Gpu, Input, Output } from './kernel-family.js';
import { checkTensor, operation } from './operation.js';
import type { Work } from './operation.js';
import { isWide } from './reduction-kernels.js';
import { wordOf, words } from './words.js';

const BLOCK = 256;

interface IndexingGpu extends Gpu {
  /** Whether elements are added to those of the output. */
  readonly ADD: boolean;
}

/** Elements are `[outer][count][inner]`, the selected ones `[outer][indices][inner]`. */
interface IndexingArgs {
  readonly out: Output;
  readonly x: Input;
  readonly indices: Input;
  readonly count: number;
  readonly inner: number;
}

const gathers = new KernelFamily(
  'gather',
  ({ out, x, indices, count, inner }: IndexingArgs, gpu: Gpu) => {
    const i = gpu.globalId.x;
    if (i >= out.length) return;
    const row = i / inner;
    const given = indices[row % indices.length]!;
    const at = given < 0 ? given + count : given;
    if (at >= 0 && at < count)
      out[i] = x[((row / indices.length) * count + at) * inner + (i % inner)]!;
    else out[i] = 0;
  },
);

const scatters = new KernelFamily(
  'scatter',
  ({ out, x, indices, count, inner }: IndexingArgs, gpu: IndexingGpu) => {
    const i = gpu.globalId.x;
    if (i >= x.length) return;
    const row = i / inner;
    const given = indices[row % indices.length]!;
    const at = given < 0 ? given + count : given;
    if (at >= 0 && at < count) {
      const to = ((row / indices.length) * count + at) * inner + (i % inner);
      if (gpu.ADD) gpu.atomicAdd(out, to, x[i]!);
      else out[to] = x[i]!;
    }
  },
);

/** Options of {@link gather}, {@link scatter} and {@link scatterAdd}. */
export interface IndexingOptions {
  /** The axis that indices select on; a negative one counts from the end. Default: 0. */
  readonly axis?: number;
}

/** The axis that indices select on: it has `count` parts, each of `inner` elements. */
interface Place {
  readonly before: readonly number[];
  readonly count: number;
  readonly after: readonly number[];
  readonly inner: number;
}

function placeOf(x: KernelTensor, axis: number): Place {
  const at = checkAxis('options.axis', axis, x.rank);
  const after = x.shape.slice(at + 1);
  return { before: x.shape.slice(0, at), count: x.shape[at]!, after, inner: numel(after) };
}

function checkIndices(name: string, indices: unknown): asserts indices is KernelTensor {
  checkTensor(name, 'indices', indices);
  if (indices.dtype !== i32 && indices.dtype !== i64)
    throw invalid(
      'indices',
      `a Tensor of i32 or i64, for ${name}(…)`,
      indices,
      'Convert it with convert(i32).',
    );
}

/**
 * Selects parts of `x` along an axis, in the order of the indices: for axis 0 NumPy's `x[indices]`.
 * It gives a new contiguous tensor of x's dtype, whose shape has the shape of the indices in place
 * of the axis. Negative indices count from the end; an index outside the axis gives zeros.
 *
 * @param indices a tensor of i32 or i64, of any shape
 * @throws CudaArgumentError for indices of another dtype and an axis that x does not have; at the
 *   call, or when run where operations give the operands
 *
 * @example
 * ```ts
 * using x = await device.tensor(f32, [1, 2, 3, 4, 5, 6], [3, 2]);
 * using rows = await gather(x, device.tensor(i32, [2, 0]));
 * console.log(rows.shape, (await rows.read()).join(' ')); // [ 2, 2 ] 5 6 1 2
 * ```
 */
export function gather<D extends KernelDTypeName>(
  x: OrOp<Tensor<D>>,
  indices: OrOp<Tensor<'i32' | 'i64'>>,
  options: IndexingOptions = {},
): DeviceOp<Tensor<D, number[]>> {
  checkOptions('options', options, ['axis']);
  const { axis = 0 } = options;
  return operation('gather', [x, indices], ([from, which]) => {
    checkTensor('gather', 'x', from);
    checkIndices('gather', which);
    const { before, count, after, inner } = placeOf(from, axis);
    return (work) => {
      const out = work.result(from.dtype, [
        ...before,
        ...which.shape,
        ...after,
      ]) as unknown as KernelTensor;
      if (out.size === 0) return out;
      const dtype = wordOf(from.dtype);
      const wide = isWide(from) || isWide(out);
      const whole = wide ? i64 : i32;
      const launch = gathers.member(
        `${dtype.name}_${which.dtype.name}${wide ? '_wide' : ''}`,
        () => ({
          signature: {
            out: output(dtype),
            x: input(dtype),
            indices: input(which.dtype),
            count: whole,
            inner: whole,
          },
          block: BLOCK,
        }),
      );
      work.add(
        launch(
          { out: words(out), x: words(work.dense(from)), indices: work.dense(which), count, inner },
          { grid: Math.ceil(out.size / BLOCK), ...(wide ? { index: 'i64' } : {}) },
        ),
      );
      return out;
    };
  }) as never;
}

/** dtypes with an atomic addition. */
export type AtomicName = 'i32' | 'u32' | 'u64' | 'f32' | 'f64';
const ATOMIC: readonly KernelDTypeName[] = [
  'i32',
  'u32',
  'u64',
  'f32',
  'f64',
] satisfies AtomicName[];

/**
 * Copies `x`, and replaces the parts along an axis that indices select by those of `source`. Of
 * equal indices any one takes effect. Indices outside the axis are ignored, and negative ones count
 * from the end.
 *
 * @param indices a tensor of i32 or i64
 * @param source a tensor of x's dtype and of the shape of `gather(x, indices, options)`
 * @throws CudaArgumentError for other dtypes or shapes and an axis that x does not have; at the
 *   call, or when run where operations give the operands
 *
 * @example
 * ```ts
 * using x = await device.zeros(f32, [4]);
 * using y = await scatter(x, device.tensor(i32, [3, 0]), device.tensor(f32, [1, 2]));
 * console.log((await y.read()).join(' ')); // 2 0 0 1
 * ```
 */
export function scatter<D extends KernelDTypeName, S extends Shape>(
  x: OrOp<Tensor<D, S>>,
  indices: OrOp<Tensor<'i32' | 'i64'>>,
  source: OrOp<Tensor<NoInfer<D>>>,
  options: IndexingOptions = {},
): DeviceOp<Tensor<D, S>> {
  return scattered('scatter', false, x, indices, source, options) as never;
}

/**
 * Copies `x`, and adds the parts of `source` to those that indices select, as {@link scatter}
 * replaces them; for equal indices all of them are added. Integers wrap. The order of additions is
 * not fixed, so that the last bits of floats may differ from run to run.
 *
 * @param x a tensor of i32, u32, u64, f32 or f64
 * @throws CudaArgumentError as {@link scatter} does
 *
 * @example
 * ```ts
 * using x = await device.zeros(i32, [3]);
 * using y = await scatterAdd(x, device.tensor(i32, [2, 0, 2]), device.ones(i32, [3]));
 * console.log((await y.read()).join(' ')); // 1 0 2
 * ```
 */
export function scatterAdd<D extends AtomicName, S extends Shape>(
  x: OrOp<Tensor<D, S>>,
  indices: OrOp<Tensor<'i32' | 'i64'>>,
  source: OrOp<Tensor<NoInfer<D>>>,
  options: IndexingOptions = {},
): DeviceOp<Tensor<D, S>> {
  return scattered('scatterAdd', true, x, indices, source, options) as never;
}

function scattered(
  name: string,
  ADD: boolean,
  given: unknown,
  indices: unknown,
  source: unknown,
  options: IndexingOptions,
): DeviceOp<KernelTensor> {
  checkOptions('options', options, ['axis']);
  const { axis = 0 } = options;
  return operation(name, [given, indices, source], ([x, which, from]) => {
    checkTensor(name, 'x', x);
    checkIndices(name, which);
    checkTensor(name, 'source', from);
    if (ADD && !ATOMIC.includes(x.dtype.name))
      throw invalid(
        'x',
        `a Tensor of ${ATOMIC.join(', ')}, for ${name}(…)`,
        x,
        'Convert it with convert(…).',
      );
    const { before, count, after, inner } = placeOf(x, axis);
    const shape = [...before, ...which.shape, ...after];
    if (from.dtype !== x.dtype || !sameShape(from.shape, shape))
      throw invalid(
        'source',
        `a Tensor of ${x.dtype.name} and [${shape.join(', ')}], for ${name}(…)`,
        from,
      );
    return (work) => {
      const out = work.result(x.dtype, [...x.shape]) as unknown as KernelTensor;
      if (out.size === 0) return out;
      work.add(out.copyFrom(x));
      if (from.size > 0) addScatter(work, ADD, out, from, which, count, inner);
      return out;
    };
  });
}

function addScatter(
  work: Work,
  ADD: boolean,
  out: KernelTensor,
  from: KernelTensor,
  which: KernelTensor,
  count: number,
  inner: number,
): void {
  const seen = ADD ? (tensor: KernelTensor): KernelTensor => tensor : words;
  const dtype = ADD ? out.dtype : wordOf(out.dtype);
  const wide = isWide(from) || isWide(out);
  const whole = wide ? i64 : i32;
  const launch = scatters.member(
    `${ADD ? 'add_' : ''}${dtype.name}_${which.dtype.name}${wide ? '_wide' : ''}`,
    () => ({
      signature: {
        out: inout(dtype),
        x: input(dtype),
        indices: input(which.dtype),
        count: whole,
        inner: whole,
      },
      uses: { ADD },
      block: BLOCK,
    }),
  );
  work.add(
    launch(
      { out: seen(out), x: seen(work.dense(from)), indices: work.dense(which), count, inner },
      { grid: Math.ceil(from.size / BLOCK), ...(wide ? { index: 'i64' } : {}) },
    ),
  );
}
