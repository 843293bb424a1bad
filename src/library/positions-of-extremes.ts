/** Positions of the greatest and the least elements. */
import { CudaArgumentError, i32, i64 } from '../core/index.js';
import type { KernelDTypeName } from '../core/index.js';
import { invalid, checkOptions } from '../ground/arguments.js';
import { input, output } from '../kernels/index.js';
import type { ReadElements } from '../kernels/index.js';
import type { DeviceOp, OrOp } from '../ops/index.js';
import type { KernelTensor, Tensor } from '../tensor/index.js';
import { checkGroup } from './element-types.js';
import type { NumberName } from './element-types.js';
import { KernelFamily } from './kernel-family.js';
import type { Gpu, KernelArray, Output } from './kernel-family.js';
import { checkTensor, operation } from './operation.js';
import type { Work } from './operation.js';
import { asThreeAxes, reducedAxes } from './reduced-axes.js';
import { BLOCK, SCRATCH, cutOf, isWide } from './reduction-kernels.js';
import type { Input3 } from './reduction-kernels.js';

interface PositionGpu extends Gpu {
  readonly THREADS: number;
  /** Whether all elements are compared, or those whose positions were found in chunks. */
  readonly ALL: boolean;
  /** Whether the first value is more extreme than the other. */
  beats(value: number, other: number): boolean;
  scratch(): KernelArray<number>;
}

interface PositionArgs {
  readonly out: Output;
  readonly x: Input3;
  readonly from: ReadElements<ReadElements<ReadElements<number>>> & {
    readonly shape: readonly [number, number, number];
  };
  readonly chunks: number;
  readonly chunk: number;
}

// The position -1 means that there is none yet. The first of equal values counts. NaN, which
// differs from itself, is the most extreme.

const rows = new KernelFamily(
  'position_rows',
  ({ out, x, from, chunks, chunk }: PositionArgs, gpu: PositionGpu) => {
    const t = gpu.threadIdx.x % gpu.THREADS;
    const part = gpu.blockIdx.x * (gpu.blockDim.x / gpu.THREADS) + gpu.threadIdx.x / gpu.THREADS;
    const row = part / chunks;
    const outer = row / x.shape[2];
    const inner = row % x.shape[2];
    const first = (part % chunks) * chunk;
    const last =
      part < out.length ? Math.min(first + chunk, gpu.ALL ? x.shape[1] : from.shape[1]) : first;
    let best = gpu.i32(-1);
    let value = x[0]![0]![0]!;
    for (let i = first + t; i < last; i += gpu.THREADS) {
      const at = gpu.ALL ? gpu.i32(i) : from[outer]![i]![inner]!;
      const other = x[outer]![at]![inner]!;
      if (best < 0 || gpu.beats(other, value) || (!gpu.beats(value, other) && at < best)) {
        best = at;
        value = other;
      }
    }
    for (let bits = 16; bits > 0; bits >>= 1) {
      const at = gpu.warp.shuffleXor(best, bits);
      const other = gpu.warp.shuffleXor(value, bits);
      if (
        at >= 0 &&
        (best < 0 || gpu.beats(other, value) || (!gpu.beats(value, other) && at < best))
      ) {
        best = at;
        value = other;
      }
    }
    if (gpu.THREADS > 32) {
      const positions = gpu.scratch();
      if (gpu.lane === 0) positions[gpu.warpIdx] = best;
      gpu.block.sync();
      for (let warp = 0; warp < gpu.THREADS / 32; warp++) {
        const at = positions[warp]!;
        if (at >= 0) {
          const other = x[outer]![at]![inner]!;
          if (best < 0 || gpu.beats(other, value) || (!gpu.beats(value, other) && at < best)) {
            best = at;
            value = other;
          }
        }
      }
    }
    if (t === 0 && part < out.length)
      out[(outer * chunks + (part % chunks)) * x.shape[2] + inner] = best;
  },
);

const columns = new KernelFamily(
  'position_columns',
  ({ out, x, from, chunks, chunk }: PositionArgs, gpu: PositionGpu) => {
    const part = gpu.globalId.x;
    if (part >= out.length) return;
    const inner = part % x.shape[2];
    const rest = part / x.shape[2];
    const outer = rest / chunks;
    const first = (rest % chunks) * chunk;
    const last = Math.min(first + chunk, gpu.ALL ? x.shape[1] : from.shape[1]);
    let best = gpu.ALL ? gpu.i32(first) : from[outer]![first]![inner]!;
    let value = x[outer]![best]![inner]!;
    for (let i = first + 1; i < last; i++) {
      const at = gpu.ALL ? gpu.i32(i) : from[outer]![i]![inner]!;
      const other = x[outer]![at]![inner]!;
      // Positions grow, so that the first of equal values stays.
      if (gpu.beats(other, value)) {
        best = at;
        value = other;
      }
    }
    out[part] = best;
  },
);

// Kernels test for NaN by comparing a value with itself.
/* eslint-disable no-self-compare */
const BEATS = {
  argmax: (value: number, other: number): boolean =>
    value > other || (value !== value && other === other),
  argmin: (value: number, other: number): boolean =>
    value < other || (value !== value && other === other),
} as const;
/* eslint-enable no-self-compare */

/** Options of {@link argmax} and {@link argmin}. */
export interface PositionOptions {
  /**
   * The axis; a negative one counts from the end. Default: all elements, counted in row-major
   * order.
   */
  readonly axis?: number;
  /** Whether the result keeps the axis, with one element. Default: false. */
  readonly keepDims?: boolean;
}

/**
 * A function that gives the position of an extreme element along an axis, or among all elements in
 * row-major order, as i32 from 0 on. It is the position of the first of equal elements; NaN counts
 * as the most extreme, as in NumPy.
 *
 * @throws CudaArgumentError for another dtype, an axis that x does not have, no elements, or 2^31
 *   and more; at the call, or when run where an operation gives the operand
 */
export interface Positions {
  <D extends NumberName>(x: OrOp<Tensor<D>>): DeviceOp<Tensor<'i32', []>>;
  <D extends NumberName>(
    x: OrOp<Tensor<D>>,
    options: PositionOptions,
  ): DeviceOp<Tensor<'i32', number[]>>;
}

function positions(name: keyof typeof BEATS): Positions {
  return ((x: unknown, options: PositionOptions = {}) =>
    operation(name, [x], ([given]) => {
      checkTensor(name, 'x', given);
      checkGroup(name, 'x', given, 'numbers');
      checkOptions('options', options, ['axis', 'keepDims']);
      if (options.axis !== undefined && typeof options.axis !== 'number')
        throw invalid('options.axis', 'one axis', options.axis);
      const axes = reducedAxes(name, given, options);
      if (axes.count >= 2 ** 31)
        throw invalid('x', `fewer than 2^31 elements along the axis, for ${name}(…)`, given);
      if (axes.count === 0 && axes.shape.every((extent) => extent > 0))
        throw new CudaArgumentError(
          'x',
          `x: ${name}(…) of no elements has no value, got ${given.toString()}.`,
        );
      return (work) => {
        const out = work.result(i32, axes.shape) as unknown as KernelTensor;
        if (out.size > 0) addPositions(work, name, asThreeAxes(work, given, axes), undefined, out);
        return out;
      };
    })) as Positions;
}

function addPositions(
  work: Work,
  name: keyof typeof BEATS,
  x: KernelTensor,
  from: KernelTensor | undefined,
  out: KernelTensor,
): void {
  const [outer, , inner] = x.shape as readonly [number, number, number];
  const dtype: KernelDTypeName = x.dtype.name;
  const { chunks, chunk, threads, shared, grid } = cutOf(
    from === undefined ? x : { shape: [outer, from.shape[1]!, inner], strides: x.strides },
  );
  const last = chunks === 1;
  const wide = isWide(x);
  const into = last
    ? out
    : (work.temporary(i32, [outer, chunks, inner]) as unknown as KernelTensor);
  const key =
    `${name}_${dtype}${from === undefined ? '' : '_from'}${shared ? `_${threads}` : ''}` +
    `${wide ? '_wide' : ''}`;
  const launch = (shared ? rows : columns).member(key, () => {
    const whole = wide ? i64 : i32;
    return {
      signature: {
        out: output(i32),
        x: input(x.dtype, 3),
        from: input(i32, 3),
        chunks: whole,
        chunk: whole,
      },
      uses: {
        ALL: from === undefined,
        beats: BEATS[name],
        ...(shared ? { THREADS: threads, scratch: SCRATCH.i32 } : {}),
      },
      block: BLOCK,
    };
  });
  // The first pass compares all elements: its tensor of positions is not read.
  const given = from ?? work.temporary(i32, [1, 1, 1]);
  work.add(
    launch(
      { out: into.reshape([into.size] as never), x, from: given, chunks, chunk },
      { grid, ...(wide ? { index: 'i64' } : {}) },
    ),
  );
  if (!last) addPositions(work, name, x, into, out);
}

/**
 * Gives the position of the greatest element.
 *
 * @example
 * ```ts
 * using x = await device.tensor(f32, [1, 5, 3, 2], [2, 2]);
 * using rows = await argmax(x, { axis: 1 });
 * console.log((await rows.read()).join(' ')); // 1 0
 * ```
 */
export const argmax = positions('argmax');
/**
 * Gives the position of the least element.
 *
 * @example
 * ```ts
 * using y = await argmin(device.tensor(f32, [4, 1, 3]));
 * console.log(await y.item()); // 1
 * ```
 */
export const argmin = positions('argmin');
