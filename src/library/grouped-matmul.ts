/** Products of rows in groups, each with a matrix of its own. */
import { bf16, f16, i32, i64 } from '../core/index.js';
import type { DType } from '../core/index.js';
import { CudaArgumentError } from '../core/index.js';
import { checkOptions, invalid } from '../ground/arguments.js';
import type { DeviceOp, OrOp } from '../ops/index.js';
import type { KernelTensor, Shape, Tensor } from '../tensor/index.js';
import { showShape } from '../tensor/shape.js';
import { fmaProduct } from './fma-product.js';
import { areTogether, checkFactor, checkOut, resultDtype, toOneDtype } from './matmul.js';
import type { FactorName } from './matmul.js';
import { checkTensor, operation } from './operation.js';
import type { Work } from './operation.js';
import { checkPrecision, usesTensorCores } from './product-engine.js';
import type {
  ProductPrecision,
  SmallFactorName,
  SmallProductName,
  WholeFactorName,
} from './product-engine.js';
import {
  ALIGNMENT,
  MOST_BLOCKS,
  WIDE_FROM,
  accumulatorOf,
  factorOf,
  forward,
  inRuns,
  sideFor,
  tilePlanFor,
} from './product.js';
import { sharedBytesOf, tensorCoreProduct } from './tensor-core-product.js';
import { multiplyGroupsByWarpGroups } from './warp-group-groups.js';
import { isByWarpGroups } from './warp-group-matmul.js';
import type { WarpGroupPlan } from './warp-group-product.js';

/** dtypes of the ends of groups. */
export type EndsName = 'i32' | 'i64';

/** Options of {@link groupedMatmul}. */
export interface GroupedMatmulOptions<R extends FactorName | SmallProductName | 'i32'> {
  /** The dtype of the result, as of `matmul`. Default: that of `matmul`. */
  readonly dtype?: DType<R>;
  /** An existing contiguous tensor for the result, as of `matmul`. */
  readonly out?: OrOp<Tensor<R>>;
  /** How sums are computed, as of `matmul`. */
  readonly precision?: ProductPrecision;
}

/** The shape of a product of grouped rows: `[rows of a, columns of b]`. */
export type GroupedShape<S extends Shape, T extends Shape> = S extends readonly [
  infer M extends number,
  number,
]
  ? T extends readonly [number, number, infer N extends number]
    ? [M, N]
    : [number, number]
  : [number, number];

/**
 * Multiplies the rows of each group by the group's own matrix, as the experts of a mixture do: rows
 * a `[M, K]`, which are sorted by group, and matrices b `[groups, K, N]` give a new contiguous
 * tensor `[M, N]`. Group g has the rows from `ends[g - 1]` (0 for the first) to before `ends[g]`;
 * with sizes of groups, `ends` is `cumsum(sizes)`. All groups are one launch, and their sizes are
 * read by the device only, so that nothing waits for them.
 *
 * A group may have no rows. Rows after the last end give zeros. Ends are taken as at least the end
 * before and at most M, whatever they are: nothing else is read or written.
 *
 * Dtypes, precision and the order of sums are those of `matmul`: f16, bf16, f8e4m3, f8e5m2, i8 and
 * u8 on tensor cores of compute capability 9.0, f16 and bf16 also on those from 8.0 on; f32 there
 * as tf32 with `precision: 'tensor'`; all others, and `precision: 'exact'`, with the same bits on
 * every device.
 *
 * @param ends `[groups]` of i32 or i64: the row after the last one of each group
 * @throws CudaArgumentError for other numbers of axes or dtypes, factors whose K differ, ends of
 *   another dtype or length; at the call, or when run where operations give the arguments
 *
 * @example
 * ```ts
 * using tokens = await device.tensor(f32, [1, 1, 1, 2, 3, 0], [3, 2]);
 * using experts = await device.tensor(f32, [1, 2, 10, 20], [2, 2, 1]);
 * using ends = await device.tensor(i32, [1, 3]); // the first row, and the two others
 * using result = await groupedMatmul(tokens, experts, ends);
 * console.log(result.shape, (await result.read()).join(' ')); // [ 3, 1 ] 3 50 30
 * ```
 */
export function groupedMatmul<
  D extends FactorName,
  S extends Shape,
  T extends Shape,
  R extends FactorName = D,
>(
  a: OrOp<Tensor<D, S>>,
  b: OrOp<Tensor<NoInfer<D>, T>>,
  ends: OrOp<Tensor<EndsName>>,
  options?: GroupedMatmulOptions<R>,
): DeviceOp<Tensor<R, GroupedShape<S, T>>>;
export function groupedMatmul<
  S extends Shape,
  T extends Shape,
  R extends SmallProductName = 'bf16',
>(
  a: OrOp<Tensor<SmallFactorName, S>>,
  b: OrOp<Tensor<SmallFactorName, T>>,
  ends: OrOp<Tensor<EndsName>>,
  options?: GroupedMatmulOptions<R>,
): DeviceOp<Tensor<R, GroupedShape<S, T>>>;
export function groupedMatmul<S extends Shape, T extends Shape>(
  a: OrOp<Tensor<WholeFactorName, S>>,
  b: OrOp<Tensor<WholeFactorName, T>>,
  ends: OrOp<Tensor<EndsName>>,
  options?: GroupedMatmulOptions<'i32'>,
): DeviceOp<Tensor<'i32', GroupedShape<S, T>>>;
export function groupedMatmul(
  a: unknown,
  b: unknown,
  ends: unknown,
  options: GroupedMatmulOptions<FactorName | SmallProductName | 'i32'> = {},
): unknown {
  return planned(a, b, ends, options as Options, undefined);
}

/** {@link groupedMatmul} with a given plan, for measurements and tests. @internal */
export function groupedMatmulBy(
  plan: WarpGroupPlan,
  a: OrOp<KernelTensor>,
  b: OrOp<KernelTensor>,
  ends: OrOp<Tensor<EndsName>>,
  options: Options = {},
): DeviceOp<KernelTensor> {
  return planned(a, b, ends, options, plan) as DeviceOp<KernelTensor>;
}

type Options = GroupedMatmulOptions<FactorName>;

function planned(
  given: unknown,
  other: unknown,
  rows: unknown,
  options: Options,
  plan: WarpGroupPlan | undefined,
): unknown {
  checkOptions('options', options, ['dtype', 'out', 'precision']);
  const { precision } = options;
  checkPrecision(precision);
  return operation(
    'groupedMatmul',
    [given, other, rows, options.out],
    ([first, second, ends, into]) => {
      const [a, b] = checkedFactors(first, second);
      checkEnds(ends, b.shape[0]!);
      const dtype = resultDtype(a, options.dtype);
      const tensor = usesTensorCores('groupedMatmul', a.dtype, precision);
      const shape = [a.shape[0]!, b.shape[2]!];
      if (into !== undefined) checkOut('groupedMatmul', into, dtype, shape, { a, b, ends });
      return (work) => {
        const out = into ?? work.result(dtype, shape);
        if (out.size === 0) return out;
        if (a.shape[1] === 0 || ends.size === 0)
          work.add((out as unknown as Tensor<'f32'>).fill(0));
        else multiplyGroups(work, out, a, b, ends, tensor, plan);
        return out;
      };
    },
  );
}

/** Gives a [M, K] and b [groups, K, N]. @throws CudaArgumentError where they do not fit */
function checkedFactors(a: unknown, b: unknown): readonly [a: KernelTensor, b: KernelTensor] {
  checkFactor('groupedMatmul', 'a', a, 'own');
  checkFactor('groupedMatmul', 'b', b, 'own');
  if (a.rank !== 2)
    throw invalid(
      'a',
      'two axes [M, K], for groupedMatmul(…)',
      a,
      'Make one axis of its rows with reshape([M, K]).',
    );
  if (b.rank !== 3)
    throw invalid(
      'b',
      'three axes [groups, K, N], for groupedMatmul(…)',
      b,
      b.rank === 2 ? 'For one matrix, write matmul(a, b).' : '',
    );
  if (!areTogether(a, b))
    throw invalid(
      'b',
      `a Tensor of ${a.dtype.name}, as a is, for groupedMatmul(…)`,
      b,
      toOneDtype('a', a, 'b', b),
    );
  const [depth, k, n] = [a.shape[1]!, b.shape[1]!, b.shape[2]!];
  if (depth !== k)
    throw new CudaArgumentError(
      'b',
      `groupedMatmul: a has ${depth} columns and the matrices of b ${k} rows ` +
        `(${showShape(a.shape)}, ${showShape(b.shape)}). They have to be as many` +
        `${depth === n ? ': write groupedMatmul(a, b.transpose(), ends)' : '.'}`,
    );
  return [a, b];
}

/** @throws CudaArgumentError for other than one integer for each group */
function checkEnds(ends: unknown, groups: number): asserts ends is KernelTensor {
  checkTensor('groupedMatmul', 'ends', ends);
  if ((ends.dtype !== i32 && ends.dtype !== i64) || ends.rank !== 1 || ends.size !== groups)
    throw invalid(
      'ends',
      `a Tensor of i32 or i64 of shape [${groups}], the row after the last one of each group of b`,
      ends,
      'With sizes of groups, write cumsum(sizes).',
    );
}

/** Queues the product of factors with elements, and of at least one group. */
function multiplyGroups(
  work: Work,
  out: KernelTensor,
  givenA: KernelTensor,
  givenB: KernelTensor,
  givenEnds: KernelTensor,
  tensor: boolean,
  given: WarpGroupPlan | undefined,
): void {
  const [m, n] = out.shape as readonly [number, number];
  const { dtype } = givenA;
  const k = givenA.shape[1]!;
  const groups = givenEnds.size;
  const {
    computeCapability: [major],
    multiprocessorCount,
    sharedMemoryPerBlockOptin,
  } = out.device.properties;
  const byWarpGroups = tensor && isByWarpGroups(out.device, dtype, [m, n, k]);
  const halves = tensor && (dtype === f16 || dtype === bf16) && major >= 8;
  const run = byWarpGroups || halves ? ALIGNMENT / dtype.bytes : 0;
  // The instructions take runs of rows or columns for elements of 16 bits only.
  const byDepth = run > 0 && dtype.bytes !== 2;
  const [a, b] =
    run > 0
      ? [
          // A group may begin at any row: rows are not within runs.
          inRuns(work, givenA, run, -1),
          inRuns(work, givenB, run, byDepth ? -2 : undefined),
        ]
      : [forward(work, givenA), forward(work, givenB)];
  const ends = work.dense(givenEnds);
  const left = factorOf(a, -2, -1, run);
  const right = factorOf(b, -1, -2, run);
  const [leftByDepth, rightByDepth] = [left.byDepth, right.byDepth];
  if (byWarpGroups) {
    multiplyGroupsByWarpGroups(work, { out, a, b, ends, rightByDepth }, given);
    return;
  }
  const wide = [left.tensor, right.tensor, out].some(({ size }) => size >= WIDE_FROM);
  const form = { dtype, out: out.dtype, leftByDepth, rightByDepth, wide, ends: ends.dtype };
  const common = {
    out: out.reshape([out.size] as never),
    ...{ a: left.tensor, b: right.tensor, ends, m, n, k },
    ...{ inner: 1, outerA: 0, innerA: 0, outerB: 0, innerB: b.layout.strides[0]! },
  };
  // A group may end within a tile: there are at most so many tiles of each column of tiles.
  const launched = (rows: number, columns: number) => {
    const [down, across] = [Math.ceil(m / rows) + groups, Math.ceil(n / columns)];
    if (down * across > MOST_BLOCKS)
      throw invalid(
        'a',
        `at most ${MOST_BLOCKS} tiles of ${rows} × ${columns}, for groupedMatmul(…)`,
        down * across,
        'Multiply parts of it.',
      );
    return { down, across, grid: down * across };
  };
  const index = wide ? { index: 'i64' as const } : {};
  const each = Math.ceil(m / groups);
  if (halves) {
    const plan = tilePlanFor(
      ...([each, n, k, groups, multiprocessorCount, sharedMemoryPerBlockOptin] as const),
    );
    const { down, across, grid } = launched(plan.rows, plan.columns);
    const pairs = n % 2 === 0;
    work.add(
      tensorCoreProduct({ ...form, plan, edges: true, pairs })(
        {
          ...{ ...common, down, across },
          strideA: leftByDepth ? left.across : left.along,
          strideB: rightByDepth ? right.across : right.along,
          pitch: pairs ? n / 2 : n,
        },
        { grid, sharedBytes: sharedBytesOf(plan), ...index },
      ),
    );
    return;
  }
  const accumulator = accumulatorOf(dtype);
  const side = sideFor(
    accumulator === 'f64' ? [64, 32] : [128, 64, 32],
    ...([each, n, groups, multiprocessorCount] as const),
  );
  const { down, across, grid } = launched(side, side);
  work.add(
    fmaProduct({ ...form, right: b.dtype, accumulator, side })(
      {
        ...{ ...common, down, across, pitch: n },
        ...{ rowA: left.across, columnA: left.along, rowB: right.along, columnB: right.across },
      },
      { grid, ...index },
    ),
  );
}
