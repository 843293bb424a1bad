/** The choice of tiles for products by Hopper's warp groups, and their launches. */
import { bf16, f16, f32, f8e4m3, f8e5m2, i8, u8 } from '../core/index.js';
import type { CoreDevice, KernelDType } from '../core/index.js';
import { beginsAt } from '../tensor/alignment.js';
import { Tensor } from '../tensor/index.js';
import type { KernelTensor } from '../tensor/index.js';
import { layoutOf } from '../tensor/layout.js';
import { finishArguments, finishForm } from './finish.js';
import type { Finish } from './finish.js';
import type { Work } from './operation.js';
import { warpGroupProduct } from './warp-group-product.js';
import type { WarpGroupPlan } from './warp-group-product.js';
import { LINE_BYTES, addsSteps, factorBytes } from './warp-group-tiles.js';

/** A product of matrices, whose batch has two axes. */
export interface BatchedProduct {
  readonly out: KernelTensor;
  readonly a: KernelTensor;
  readonly b: KernelTensor;
  readonly m: number;
  readonly n: number;
  readonly k: number;
  /** Whether the common dimension is the one whose elements are adjacent. */
  readonly leftByDepth: boolean;
  readonly rightByDepth: boolean;
  /** The lengths of the batch's axes, and their strides in the factors, in elements. */
  readonly lengths: readonly [outer: number, inner: number];
  readonly stridesA: readonly [outer: number, inner: number];
  readonly stridesB: readonly [outer: number, inner: number];
}

/** Tensor copies take rows that begin at multiples of so many bytes. */
export const COPY_ALIGNMENT = 16;
/** Sizes from which on indices after the end do not fit in 32 bits. */
const MOST = 2 ** 31 - 2 ** 16;

/** The instructions of warp groups are those of compute capability 9.0, and of no other. */
const isHopper = ({ properties: { computeCapability } }: CoreDevice): boolean =>
  computeCapability[0] === 9 && computeCapability[1] === 0;

/** Whether warp groups of the device multiply elements of this dtype of 16 bits. */
export const hasWarpGroups = (device: CoreDevice, dtype: KernelDType): boolean =>
  isHopper(device) && (dtype === f16 || dtype === bf16);

/** dtypes whose products are computed by warp groups; f32 where it may be rounded to tf32. */
const FACTORS: readonly KernelDType[] = [f16, bf16, f32, f8e4m3, f8e5m2, i8, u8];

/** Whether products of these factors are computed by warp groups. */
export function isByWarpGroups(
  device: CoreDevice,
  dtype: KernelDType,
  extents: readonly number[],
): boolean {
  return isHopper(device) && FACTORS.includes(dtype) && extents.every((extent) => extent <= MOST);
}

/**
 * Queues the product of factors whose rows or columns (with elements of another size than 2 bytes:
 * runs of the common dimension) begin at multiples of 16 bytes, on a device for which
 * {@link isByWarpGroups} holds.
 */
export function multiplyByWarpGroups(
  work: Work,
  product: BatchedProduct,
  finish: Finish,
  given?: WarpGroupPlan,
): void {
  const { out, a, b, m, n, k, leftByDepth, rightByDepth, lengths, stridesA, stridesB } = product;
  const { multiprocessorCount } = out.device.properties;
  const matrices = lengths[0] * lengths[1];
  const plan = given ?? planFor(m, n, k, matrices, multiprocessorCount, a.dtype);
  const { splits } = plan;
  const tiles = Math.ceil(m / plan.rows) * Math.ceil(n / plan.columns) * matrices;
  const has = (stride: number, axis: number): number => (stride === 0 ? 0 : 1 << axis);
  const launch = warpGroupProduct({
    plan,
    dtype: a.dtype,
    right: b.dtype,
    out: out.dtype,
    leftByDepth,
    rightByDepth,
    copied:
      splits === 1 &&
      out.dtype.bytes > 1 &&
      (n * out.dtype.bytes) % COPY_ALIGNMENT === 0 &&
      beginsAt(out, COPY_ALIGNMENT),
    finish: finishForm(finish),
  });
  work.add(
    launch(
      {
        out: out.reshape([matrices, m, n] as never),
        a: batched(a, leftByDepth, lengths, stridesA, -2, -1),
        b: batched(b, rightByDepth, lengths, stridesB, -1, -2),
        ...finishArguments(finish, oneOf(a)),
        m,
        n,
        k,
        tiles,
        inner: lengths[1],
        batches: [...stridesA, ...stridesB].reduce((bits, each, axis) => bits | has(each, axis), 0),
      },
      {
        // Each block of a cluster has a part of one tile; others compute one tile after the other.
        grid: splits > 1 ? tiles * splits : Math.min(multiprocessorCount, tiles),
        sharedBytes: factorBytes(plan),
        ...(splits > 1 ? { cluster: splits } : {}),
      },
    ),
  );
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
export function oneOf(tensor: KernelTensor): KernelTensor {
  return new Tensor(tensor.buffer, layoutOf([1], [1], tensor.layout.offset), false);
}

/**
 * The plans, with the time of a step on a busy multiprocessor and that of a tile beside its steps,
 * in µs (H200; measured by bench/kernels/warp-group-variants.ts).
 */
const PLANS: readonly (Omit<WarpGroupPlan, 'splits'> & {
  readonly step: number;
  readonly more: number;
})[] = [
  { rows: 128, columns: 256, stages: 4, group: 8, step: 0.635, more: 1.2 },
  { rows: 128, columns: 192, stages: 4, group: 8, step: 0.48, more: 1.2 },
  { rows: 128, columns: 128, stages: 5, group: 8, step: 0.34, more: 1 },
  { rows: 64, columns: 256, stages: 4, group: 8, step: 0.33, more: 1 },
  { rows: 128, columns: 64, stages: 6, group: 8, step: 0.26, more: 0.8 },
  { rows: 64, columns: 128, stages: 4, group: 8, step: 0.255, more: 0.8 },
  { rows: 64, columns: 64, stages: 4, group: 8, step: 0.2, more: 0.8 },
];
const SPLITS: readonly number[] = [1, 2, 4];
/**
 * The time in µs in which blocks of a cluster add their sums: measured with up to 64 blocks, and
 * how much more it is with 128.
 */
const ADDING = 3.5;
const ADDING_MORE = 5;

/**
 * Gives the plan with the shortest estimated time.
 *
 * @param parts the numbers of blocks that a tile may have
 */
export function planFor(
  m: number,
  n: number,
  k: number,
  matrices: number,
  multiprocessors: number,
  dtype: KernelDType = f16,
  parts: readonly number[] = SPLITS,
): WarpGroupPlan {
  const steps = Math.ceil((k * dtype.bytes) / LINE_BYTES);
  const mostColumns = addsSteps(dtype) ? 128 : 256;
  let best: WarpGroupPlan | undefined;
  let least = Infinity;
  for (const { step, more, ...plan } of PLANS) {
    // A thread has registers for 64 sums of a step beside 64 of all.
    if (plan.columns > mostColumns) continue;
    for (const splits of parts) {
      if (splits > steps) break;
      const blocks = Math.ceil(m / plan.rows) * Math.ceil(n / plan.columns) * matrices * splits;
      const rounds = Math.ceil(blocks / multiprocessors);
      const adding = splits === 1 ? 0 : ADDING + (ADDING_MORE * Math.max(0, blocks - 64)) / 64;
      const time = rounds * (Math.ceil(steps / splits) * step + more) + adding;
      if (time < least) {
        least = time;
        best = { ...plan, splits };
      }
    }
  }
  return best!;
}
