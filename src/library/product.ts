/**
 * Products of matrices: layouts of factors, and the choice among the kernels. What tensor cores
 * compute goes to Hopper's warp groups where the device has them, else f16 and bf16 to tensor cores
 * by warps. All other products are fused multiply-adds.
 */
import { bf16, f16, f32, f64 } from '../core/index.js';
import type { KernelDType } from '../core/index.js';
import { invalid } from '../ground/arguments.js';
import { beginsAt } from '../tensor/alignment.js';
import { Tensor } from '../tensor/index.js';
import { broadcastTo, coalesceTogether } from '../tensor/layouts.js';
import type { KernelTensor, Layout } from '../tensor/index.js';
import { layoutOf } from '../tensor/layout.js';
import { fmaProduct } from './fma-product.js';
import type { Work } from './operation.js';
import { sharedBytesOf, tensorCoreProduct } from './tensor-core-product.js';
import type { TilePlan } from './tensor-core-product.js';
import { NO_FINISH, finishProduct, isNone } from './finish.js';
import type { Finish } from './finish.js';
import { isByWarpGroups, multiplyByWarpGroups } from './warp-group-matmul.js';
import type { WarpGroupPlan } from './warp-group-product.js';

/** Axes before the last two that the kernels index. */
const AXES = 2;
/** Sizes from which on indices after the end do not fit in 32 bits. */
export const WIDE_FROM = 2 ** 31 - 2 ** 20;
/** Asynchronous copies begin at multiples of so many bytes. */
export const ALIGNMENT = 16;
/** Blocks that a launch has at most. */
export const MOST_BLOCKS = 2 ** 31 - 1;

/** A factor as kernels take it: all memory from its first to its last element as one axis. */
interface Factor {
  readonly tensor: KernelTensor;
  /** Whether the common dimension is the inner one in memory. */
  readonly byDepth: boolean;
  /** The stride of rows (in b: columns), and that of the common dimension. */
  readonly across: number;
  readonly along: number;
}

/** The layout of a factor's axes before the last two, in the batch's shape. */
const leading = ({ layout }: KernelTensor, batch: readonly number[]): Layout =>
  broadcastTo(
    layoutOf(layout.shape.slice(0, -2), layout.strides.slice(0, -2), layout.offset),
    batch as never,
  );

/** How a product is computed, beside its factors. */
export interface ProductChoice {
  readonly plan?: TilePlan | WarpGroupPlan | undefined;
  /** Whether tensor cores may compute a product of floats: f32 is then rounded to tf32. */
  readonly tensor: boolean;
}

/** Whether warp groups compute the product. */
const goesToWarpGroups = (
  { device, shape }: KernelTensor,
  a: KernelTensor,
  { plan, tensor }: ProductChoice,
): boolean =>
  tensor &&
  (plan === undefined || 'splits' in plan) &&
  isByWarpGroups(device, a.dtype, [...shape.slice(-2), a.shape.at(-1)!]);

/** Queues the product and what follows its sums. */
export function multiplyAndFinish(
  work: Work,
  out: KernelTensor,
  a: KernelTensor,
  b: KernelTensor,
  choice: ProductChoice,
  finish: Finish,
): void {
  const k = a.shape.at(-1)!;
  // Warp groups do it before they write; other kernels write sums.
  const isWithin = isNone(finish) || (k > 0 && goesToWarpGroups(out, a, choice));
  const sums = isWithin
    ? out
    : (work.temporary(a.dtype === f64 ? f64 : f32, [...out.shape]) as unknown as KernelTensor);
  if (k > 0) multiply(work, sums, a, b, choice, isWithin ? finish : NO_FINISH);
  else work.add((sums as unknown as Tensor<'f32'>).fill(0));
  if (!isWithin) work.add(finishProduct(sums, out, finish, out.shape.at(-1)!));
}

/** Queues the product. `finish` has a part only where warp groups compute it. */
function multiply(
  work: Work,
  out: KernelTensor,
  givenA: KernelTensor,
  givenB: KernelTensor,
  choice: ProductChoice,
  finish: Finish,
): void {
  const { plan: given, tensor } = choice;
  const batch = out.shape.slice(0, -2);
  const [m, n] = out.shape.slice(-2) as [number, number];
  const k = givenA.shape.at(-1)!;
  const { dtype } = givenA;
  const {
    computeCapability: [major],
    multiprocessorCount,
    sharedMemoryPerBlockOptin,
  } = out.device.properties;
  const byWarpGroups = goesToWarpGroups(out, givenA, choice);
  const halves = tensor && (dtype === f16 || dtype === bf16) && major >= 8;
  const run = byWarpGroups || halves ? ALIGNMENT / dtype.bytes : 0;
  // The instructions take runs of rows or columns for elements of 16 bits only.
  const byDepth = run > 0 && dtype.bytes !== 2;
  let [a, b] =
    run > 0
      ? [
          inRuns(work, givenA, run, byDepth ? -1 : undefined),
          inRuns(work, givenB, run, byDepth ? -2 : undefined),
        ]
      : [forward(work, givenA), forward(work, givenB)];
  let axes = coalesceTogether([leading(a, batch), leading(b, batch)]);
  if (axes[0]!.shape.length > AXES) {
    // Axes do not merge to two: each matrix of the batch is copied.
    [a, b] = [a, b].map((factor, at) =>
      written(
        work,
        factor.broadcastTo([
          ...batch,
          ...factor.shape.slice(-2),
        ] as never) as unknown as KernelTensor,
        run,
        byDepth ? ([-1, -2] as const)[at] : undefined,
      ),
    ) as [KernelTensor, KernelTensor];
    axes = coalesceTogether([leading(a, batch), leading(b, batch)]);
  }
  const [outerA = 0, innerA = 0] = twoOf(axes[0]!.strides);
  const [outerB = 0, innerB = 0] = twoOf(axes[1]!.strides);
  const lengths = twoOf(axes[0]!.shape, 1) as [number, number];
  const [, inner] = lengths;
  const left = factorOf(a, -2, -1, run);
  const right = factorOf(b, -1, -2, run);
  if (byWarpGroups) {
    multiplyByWarpGroups(
      work,
      {
        ...{ out, a, b, m, n, k, lengths },
        leftByDepth: left.byDepth,
        rightByDepth: right.byDepth,
        stridesA: [outerA, innerA],
        stridesB: [outerB, innerB],
      },
      finish,
      given as WarpGroupPlan | undefined,
    );
    return;
  }
  const wide = [left.tensor, right.tensor, out].some(({ size }) => size >= WIDE_FROM);
  const matrices = out.size / (m * n);
  const common = {
    out: out.reshape([out.size] as never),
    a: left.tensor,
    b: right.tensor,
    m,
    n,
    k,
    inner,
    outerA,
    innerA,
    outerB,
    innerB,
    // Not read.
    ends: left.tensor,
  };
  const index = wide ? { index: 'i64' as const } : {};
  const blocks = (rows: number, columns: number) => {
    const [down, across] = [Math.ceil(m / rows), Math.ceil(n / columns)];
    const grid = down * across * matrices;
    if (grid > MOST_BLOCKS)
      throw invalid(
        'a',
        `at most ${MOST_BLOCKS} tiles of ${rows} × ${columns}, for matmul(…)`,
        grid,
        'Multiply parts of it.',
      );
    return { down, across, grid };
  };
  if (halves) {
    const plan =
      (given as TilePlan | undefined) ??
      tilePlanFor(m, n, k, matrices, multiprocessorCount, sharedMemoryPerBlockOptin);
    const { down, across, grid } = blocks(plan.rows, plan.columns);
    const edges = m % plan.rows !== 0 || n % plan.columns !== 0 || k % plan.depth !== 0;
    const pairs = n % 2 === 0;
    const launch = tensorCoreProduct({
      plan,
      dtype,
      out: out.dtype,
      leftByDepth: left.byDepth,
      rightByDepth: right.byDepth,
      edges,
      pairs,
      wide,
    });
    work.add(
      launch(
        {
          ...common,
          strideA: left.byDepth ? left.across : left.along,
          strideB: right.byDepth ? right.across : right.along,
          pitch: pairs ? n / 2 : n,
          down,
          across,
        },
        { grid, sharedBytes: sharedBytesOf(plan), ...index },
      ),
    );
    return;
  }
  const accumulator = accumulatorOf(dtype);
  const side =
    accumulator === 'f64'
      ? sideFor([64, 32], m, n, matrices, multiprocessorCount)
      : sideFor([128, 64, 32], m, n, matrices, multiprocessorCount);
  const { down, across, grid } = blocks(side, side);
  const launch = fmaProduct({
    dtype,
    right: b.dtype,
    out: out.dtype,
    accumulator,
    side,
    leftByDepth: left.byDepth,
    rightByDepth: right.byDepth,
    wide,
  });
  work.add(
    launch(
      {
        ...common,
        rowA: left.across,
        columnA: left.along,
        rowB: right.along,
        columnB: right.across,
        pitch: n,
        down,
        across,
      },
      { grid, ...index },
    ),
  );
}

/** The type of a sum of products of elements, which are multiplied and added one by one. */
export const accumulatorOf = (dtype: KernelDType): 'f64' | 'f32' | 'i32' =>
  dtype === f64 ? 'f64' : dtype.kind === 'float' ? 'f32' : 'i32';

/** Values for two axes, from those for 0, 1 or 2; missing axes come first. */
function twoOf(values: readonly number[], missing = 0): number[] {
  return [...new Array<number>(AXES - values.length).fill(missing), ...values];
}

/**
 * Describes a factor to the kernels.
 *
 * @param line the axis of rows (in b: of columns)
 * @param depth the axis of the common dimension
 * @param run elements of the 16 bytes by which the inner axis is read; 0 where it is not
 */
export function factorOf(tensor: KernelTensor, line: -1 | -2, depth: -1 | -2, run: number): Factor {
  const { shape, strides, offset } = tensor.layout;
  const reach = shape.reduce((sum, extent, axis) => sum + (extent - 1) * strides[axis]!, 1);
  const all = new Tensor(tensor.buffer, layoutOf([reach], [1], offset), false) as KernelTensor;
  // The stride of an axis of one element has no meaning.
  const step = (axis: -1 | -2): number => (shape.at(axis) === 1 ? 0 : strides.at(axis)!);
  const [across, along] = [step(line), step(depth)];
  // An element that is broadcast along the common dimension is no run.
  const isRun = shape.at(depth) === 1 || strides.at(depth) === 1;
  return {
    tensor: all,
    byDepth: run > 0 ? isRun && across % run === 0 : along <= across || across === 0,
    across,
    along,
  };
}

/** Gives the tensor, or a copy where a stride is negative. */
export function forward(work: Work, tensor: KernelTensor): KernelTensor {
  return tensor.layout.strides.every((stride) => stride >= 0) ? tensor : work.dense(tensor);
}

/**
 * Gives the tensor, or a copy, in which rows or columns are runs of 16 bytes.
 *
 * @param inner the axis of the runs; undefined for either
 */
export function inRuns(
  work: Work,
  tensor: KernelTensor,
  run: number,
  inner: -1 | -2 | undefined,
): KernelTensor {
  const { shape, strides } = tensor.layout;
  const apart = (axis: number): boolean =>
    shape[axis] === 1 || (strides[axis]! >= 0 && strides[axis]! % run === 0);
  const isInner = (from: -1 | -2): boolean => {
    const axis = shape.length + from;
    return (
      (inner === undefined || inner === from) &&
      (shape[axis] === 1 || strides[axis] === 1) &&
      shape.every((_, other) => other === axis || apart(other))
    );
  };
  return beginsAt(tensor, ALIGNMENT) && (isInner(-1) || isInner(-2))
    ? tensor
    : written(work, tensor, run, inner);
}

/**
 * Copies the tensor: rows, or columns where their stride is smaller, are contiguous.
 *
 * @param run rows begin at multiples of so many elements; 0: they follow each other
 * @param inner the axis that becomes contiguous; undefined for the one with the smaller stride
 */
function written(
  work: Work,
  tensor: KernelTensor,
  run: number,
  inner: -1 | -2 | undefined,
): KernelTensor {
  const columns =
    inner === undefined
      ? Math.abs(tensor.layout.strides.at(-2)!) < Math.abs(tensor.layout.strides.at(-1)!)
      : inner === -2;
  const from = columns ? (tensor.transpose() as unknown as KernelTensor) : tensor;
  const extent = from.shape.at(-1)!;
  const row = run > 0 ? Math.ceil(extent / run) * run : extent;
  const memory = work.temporary(from.dtype, [
    ...from.shape.slice(0, -1),
    row,
  ]) as unknown as KernelTensor;
  const copy =
    row === extent
      ? memory
      : (new Tensor(
          memory.buffer,
          layoutOf([...from.shape], memory.layout.strides, memory.layout.offset),
          false,
        ) as KernelTensor);
  work.add(copy.copyFrom(from));
  return columns ? copy.transpose() : copy;
}

/**
 * Tiles for products of many and of few elements, largest first. `blocks` is the number of blocks
 * on a multiprocessor, `worth` the speed relative to the first tile where all multiprocessors are
 * busy (H200, 4096³ of f16: 464, 446, 449, 424 TFLOPS; the last one is estimated from its size).
 */
export const PLANS: readonly (TilePlan & { readonly blocks: number; readonly worth: number })[] = [
  {
    rows: 128,
    columns: 256,
    depth: 64,
    stages: 3,
    warpRows: 64,
    warpColumns: 64,
    group: 8,
    blocks: 1,
    worth: 1,
  },
  {
    rows: 128,
    columns: 128,
    depth: 64,
    stages: 3,
    warpRows: 64,
    warpColumns: 64,
    group: 8,
    blocks: 2,
    worth: 0.96,
  },
  // For GPUs with 100 KB of shared memory, and for depths that are multiples of 32 and not of 64.
  {
    rows: 128,
    columns: 256,
    depth: 32,
    stages: 4,
    warpRows: 64,
    warpColumns: 64,
    group: 8,
    blocks: 1,
    worth: 0.95,
  },
  {
    rows: 128,
    columns: 128,
    depth: 32,
    stages: 4,
    warpRows: 64,
    warpColumns: 64,
    group: 8,
    blocks: 2,
    worth: 0.9,
  },
  {
    rows: 64,
    columns: 64,
    depth: 32,
    stages: 4,
    warpRows: 32,
    warpColumns: 32,
    group: 8,
    blocks: 5,
    worth: 0.5,
  },
];

/**
 * Gives the plan with the shortest estimated time: the number of rounds, in each of which the
 * multiprocessors run as many blocks as they hold, times the size of a tile.
 */
export function tilePlanFor(
  m: number,
  n: number,
  k: number,
  matrices: number,
  multiprocessors: number,
  sharedBytes: number,
): TilePlan {
  const time = ({ rows, columns, blocks, worth, depth }: (typeof PLANS)[number]): number => {
    const tiles = Math.ceil(m / rows) * Math.ceil(n / columns) * matrices;
    const together = multiprocessors * blocks;
    // In the last round a multiprocessor may have fewer blocks, which then run faster.
    const rounds =
      Math.floor(tiles / together) + Math.ceil((tiles % together) / multiprocessors) / blocks;
    return (rounds * rows * columns * blocks * Math.ceil(k / depth) * depth) / worth;
  };
  return PLANS.filter((plan) => sharedBytesOf(plan) <= sharedBytes).reduce((best, plan) =>
    time(plan) < time(best) ? plan : best,
  );
}

/** Gives the largest side with which every multiprocessor has a tile, else the smallest. */
export function sideFor<S extends number>(
  sides: readonly S[],
  m: number,
  n: number,
  matrices: number,
  multiprocessors: number,
): S {
  return (
    sides.find((side) => Math.ceil(m / side) * Math.ceil(n / side) * matrices >= multiprocessors) ??
    sides.at(-1)!
  );
}
