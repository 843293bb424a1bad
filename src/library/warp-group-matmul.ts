/** The choice of tiles for products by Hopper's warp groups, and their launches. */
import { bf16, f16, f32, i32 } from '../core/index.js';
import type { CoreDevice, KernelDType } from '../core/index.js';
import { deviceFunction, input, output } from '../kernels/index.js';
import type { DeviceFunction } from '../kernels/index.js';
import { Tensor } from '../tensor/index.js';
import type { KernelTensor } from '../tensor/index.js';
import { layoutOf } from '../tensor/layout.js';
import { ACTIVATIONS } from './activations.js';
import type { ActivationName } from './activations.js';
import { KernelFamily } from './kernel-family.js';
import type { Gpu, Input, Launchable, Output } from './kernel-family.js';
import type { Work } from './operation.js';
import { sharedBytesOf, warpGroupProduct } from './warp-group-product.js';
import type { WarpGroupPlan } from './warp-group-product.js';

/** What is done with the sums of a product before they are rounded. */
export interface Finish {
  /** One value for each column. */
  readonly bias: KernelTensor | undefined;
  readonly activation: ActivationName | undefined;
}

export const NO_FINISH: Finish = { bias: undefined, activation: undefined };

/** A product of matrices, whose batch has two axes. */
export interface BatchedProduct {
  readonly out: KernelTensor;
  readonly a: KernelTensor;
  readonly b: KernelTensor;
  readonly m: number;
  readonly n: number;
  readonly k: number;
  /** The lengths of the batch's axes, and their strides in the factors, in elements. */
  readonly lengths: readonly [outer: number, inner: number];
  readonly stridesA: readonly [outer: number, inner: number];
  readonly stridesB: readonly [outer: number, inner: number];
}

const DEPTH = 64;
/** Tensor copies take rows that begin at multiples of so many bytes. */
const ALIGNMENT = 16;
/** Sizes from which on indices after the end do not fit in 32 bits. */
const MOST = 2 ** 31 - 2 ** 16;

/** Whether the device has the instructions: compute capability 9.0, and no other. */
export function hasWarpGroups({ properties: { computeCapability } }: CoreDevice): boolean {
  return computeCapability[0] === 9 && computeCapability[1] === 0;
}

/**
 * Queues the product of f16 or bf16 factors whose rows or columns begin at multiples of 16 bytes.
 * Returns false, and does nothing, where the sizes need another kernel.
 */
export function multiplyByWarpGroups(
  work: Work,
  product: BatchedProduct,
  finish: Finish,
  given?: WarpGroupPlan,
): boolean {
  const { out, a, b, m, n, k, lengths, stridesA, stridesB } = product;
  if ([m, n, k].some((extent) => extent > MOST)) return false;
  const { multiprocessorCount } = out.device.properties;
  const matrices = lengths[0] * lengths[1];
  const plan = given ?? planFor(m, n, k, matrices, multiprocessorCount);
  const [left, right] = [factorOf(a, -2, -1), factorOf(b, -1, -2)];
  const [down, across] = [Math.ceil(m / plan.rows), Math.ceil(n / plan.columns)];
  const { splits } = plan;
  const tiles = down * across * matrices;
  if (tiles * splits > MOST) return false;
  const launch = warpGroupProduct({
    plan,
    dtype: a.dtype,
    out: out.dtype,
    leftByDepth: left.byDepth,
    rightByDepth: right.byDepth,
    copied: splits === 1 && (n * out.dtype.bytes) % ALIGNMENT === 0 && isAligned(out),
    bias: finish.bias?.dtype,
    activation: finish.activation,
  });
  work.add(
    launch(
      {
        out: out.reshape([matrices, m, n] as never),
        a: batched(a, left.byDepth, lengths, stridesA, -2, -1),
        b: batched(b, right.byDepth, lengths, stridesB, -1, -2),
        bias: finish.bias ?? oneOf(a),
        m,
        n,
        k,
        down,
        across,
        tiles,
        inner: lengths[1],
        outerA: Number(stridesA[0] !== 0),
        innerA: Number(stridesA[1] !== 0),
        outerB: Number(stridesB[0] !== 0),
        innerB: Number(stridesB[1] !== 0),
      },
      {
        // Each block of a cluster has a part of one tile; others compute one tile after the other.
        grid: splits > 1 ? tiles * splits : Math.min(multiprocessorCount, tiles),
        sharedBytes: sharedBytesOf(plan),
        ...(splits > 1 ? { cluster: splits } : {}),
      },
    ),
  );
  return true;
}

/** Whether the tensor begins at a multiple of 16 bytes. */
function isAligned({ buffer, layout, dtype }: KernelTensor): boolean {
  return (
    buffer.memory.aligned && (buffer.byteOffset + layout.offset * dtype.bytes) % ALIGNMENT === 0
  );
}

/** Whether the common dimension is the one whose elements are adjacent. */
function factorOf(tensor: KernelTensor, line: -1 | -2, depth: -1 | -2): { byDepth: boolean } {
  const { shape, strides } = tensor.layout;
  const isRun = shape.at(depth) === 1 || strides.at(depth) === 1;
  const across = shape.at(line) === 1 ? 0 : strides.at(line)!;
  return { byDepth: isRun && (across * tensor.dtype.bytes) % ALIGNMENT === 0 };
}

/** A factor with a batch of two axes, and its adjacent elements along the last one. */
function batched(
  tensor: KernelTensor,
  byDepth: boolean,
  lengths: readonly [number, number],
  batch: readonly [number, number],
  line: -1 | -2,
  depth: -1 | -2,
): KernelTensor {
  const { shape, strides, offset } = tensor.layout;
  const order = byDepth ? [line, depth] : [depth, line];
  return new Tensor(
    tensor.buffer,
    layoutOf(
      [
        ...lengths.map((length, axis) => (batch[axis] === 0 ? 1 : length)),
        ...order.map((axis) => shape.at(axis)!),
      ],
      [...batch, ...order.map((axis) => strides.at(axis)!)],
      offset,
    ),
    false,
  );
}

/** One element of the tensor, for a parameter that is not read. */
function oneOf(tensor: KernelTensor): KernelTensor {
  return new Tensor(tensor.buffer, layoutOf([1], [1], tensor.layout.offset), false);
}

/** The plans, with the time of a step on a busy H200 in µs, and that of a tile beside its steps. */
const PLANS: readonly (Omit<WarpGroupPlan, 'splits'> & {
  readonly step: number;
  readonly more: number;
})[] = [
  { rows: 128, columns: 256, stages: 4, group: 16, step: 0.69, more: 2.5 },
  { rows: 128, columns: 192, stages: 4, group: 16, step: 0.54, more: 2.3 },
  { rows: 128, columns: 128, stages: 6, group: 16, step: 0.38, more: 2 },
  { rows: 128, columns: 64, stages: 8, group: 16, step: 0.27, more: 1.8 },
  { rows: 64, columns: 128, stages: 8, group: 16, step: 0.27, more: 1.8 },
  { rows: 64, columns: 64, stages: 10, group: 16, step: 0.2, more: 1.6 },
];
const SPLITS: readonly number[] = [1, 2, 4, 8];
/** The time in which blocks of a cluster add their sums, in µs. */
const ADDING = 1.5;

/** Gives the plan with the shortest estimated time. */
export function planFor(
  m: number,
  n: number,
  k: number,
  matrices: number,
  multiprocessors: number,
): WarpGroupPlan {
  const steps = Math.ceil(k / DEPTH);
  let best: WarpGroupPlan | undefined;
  let least = Infinity;
  for (const { step, more, ...plan } of PLANS)
    for (const splits of SPLITS) {
      if (splits > steps) break;
      const blocks = Math.ceil(m / plan.rows) * Math.ceil(n / plan.columns) * matrices * splits;
      const rounds = Math.ceil(blocks / multiprocessors);
      const tile = Math.ceil(steps / splits) * step + more + (splits > 1 ? ADDING : 0);
      if (rounds * tile < least) {
        least = rounds * tile;
        best = { ...plan, splits };
      }
    }
  return best!;
}
