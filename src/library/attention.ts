/** Attention: softmax of the products of queries and keys, times values. */
import { f32 } from '../core/index.js';
import { invalid } from '../ground/arguments.js';
import type { DeviceOp, OrOp } from '../ops/index.js';
import type { KernelTensor, Shape, Tensor } from '../tensor/index.js';
import { Results } from '../tensor/results.js';
import type { Closing } from '../tensor/results.js';
import {
  checkAttentionOptions,
  checkTiles,
  inBoxes,
  inFourAxes,
  isForWarpGroups,
  isWide,
  taskOf,
} from './attention-operands.js';
import type { AttentionName, AttentionOptions, Task } from './attention-operands.js';
import { ROWS, attentionRows } from './attention-rows.js';
import { boxedMask } from './attention-masks.js';
import { operation } from './operation.js';
import type { Work } from './operation.js';
import { packedTilesOf } from './packed-sequences.js';
import { sectionOf } from './tile-order.js';
import { sharedBytesOf, warpGroupAttention } from './warp-group-attention.js';
import type { AttentionPlan } from './warp-group-attention.js';

export type { AttentionName, AttentionOptions };

/** What {@link attentionForward} gives. */
export interface AttentionForward<D extends AttentionName, S extends Shape> {
  /** The result of {@link attention}. */
  readonly out: Tensor<D, S>;
  /**
   * The natural logarithm of the sum of the exponentials of each query's scores, `[…, heads, M]`;
   * -Infinity for a query that sees no key.
   */
  readonly logSums: Tensor<'f32', number[]>;
}

/** The most channels of warp groups. */
const MOST_CHANNELS = 256;
/** The time of a tile besides its steps, in steps. */
const AROUND = 2;

/**
 * Attention: each query gives the mean of the values, weighted by the softmax of its products with
 * the keys. q `[…, heads, M, D]`, k and v `[…, kvHeads, N, D]` of one dtype give a new contiguous
 * tensor of q's shape and dtype. Adjacent heads of q share a head of k and v, where these have
 * fewer. The scores are never in memory as a whole. A query that sees no key gives zeros.
 *
 * f16 and bf16 with D a multiple of 8 of at most 256 and a positive scale run on the warp groups of
 * compute capability 9.0: products are summed in f32, and shares are rounded to the dtype before
 * they are multiplied with values. The error of an element is within 2^-7 (bf16) or 2^-10 (f16) of
 * the greatest magnitude of its channel's values, and results of a GPU and of the CPU device differ
 * within it. They read a mask of the operands' dtype in place where its rows begin at multiples of
 * 16 bytes, and a copy of any other. Everything else is computed in f32 and rounded once, with the
 * same bits on every device.
 *
 * @throws CudaArgumentError for another dtype, fewer than three axes, shapes that do not fit; at
 *   the call, or when run where operations give the operands
 *
 * @example
 * ```ts
 * using q = await device.randn(f32, [1, 2, 3, 8], { seed: 1 });
 * using v = await device.tensor(f32, Array.from({ length: 48 }, (_, i) => i >> 3), [1, 2, 3, 8]);
 * using y = await attention(q, q, v, { causal: true });
 * console.log(y.shape, (await y.read())[0]); // [ 1, 2, 3, 8 ] 0
 * ```
 */
export function attention<D extends AttentionName, S extends Shape>(
  q: OrOp<Tensor<D, S>>,
  k: OrOp<Tensor<NoInfer<D>>>,
  v: OrOp<Tensor<NoInfer<D>>>,
  options: AttentionOptions<NoInfer<D>> = {},
): DeviceOp<Tensor<D, S>> {
  return planned('attention', [q, k, v], options) as never;
}

/**
 * {@link attention}, which also gives the logarithms of the sums that its softmax divides by:
 * {@link attentionBackward} takes them. Both tensors are new and contiguous; the caller closes
 * them.
 *
 * @throws CudaArgumentError as {@link attention} does
 *
 * @example
 * ```ts
 * using q = await device.ones(f32, [1, 2, 4]);
 * using k = await device.zeros(f32, [1, 3, 4]);
 * using forward = await attentionForward(q, k, k);
 * console.log((await forward.logSums.read())[1]!.toFixed(4)); // 1.0986
 * ```
 */
export function attentionForward<D extends AttentionName, S extends Shape>(
  q: OrOp<Tensor<D, S>>,
  k: OrOp<Tensor<NoInfer<D>>>,
  v: OrOp<Tensor<NoInfer<D>>>,
  options: AttentionOptions<NoInfer<D>> = {},
): DeviceOp<AttentionForward<D, S> & Closing> {
  return planned('attentionForward', [q, k, v], options) as never;
}

/** {@link attention} with a given plan, for measurements and tests. @internal */
export function attentionBy(
  plan: AttentionPlan | undefined,
  q: OrOp<KernelTensor>,
  k: OrOp<KernelTensor>,
  v: OrOp<KernelTensor>,
  options: AttentionOptions = {},
): DeviceOp<KernelTensor> {
  return planned('attention', [q, k, v], options, plan) as never;
}

function planned(
  name: 'attention' | 'attentionForward',
  operands: readonly [q: unknown, k: unknown, v: unknown],
  options: AttentionOptions,
  plan?: AttentionPlan,
): DeviceOp<unknown> {
  checkAttentionOptions(options);
  return operation(name, [...operands, options.mask], ([q, k, v, mask]) => {
    const task = taskOf(name, [q, k, v], mask, options);
    if (name === 'attentionForward' && task.channels === 0)
      throw invalid('q', `at least one channel, for ${name}(…)`, task.q);
    return (work) => {
      const shape = [...task.q.shape];
      const out = work.result(task.q.dtype, shape) as unknown as KernelTensor;
      if (name === 'attention') {
        addAttention(work, out, undefined, task, plan);
        return out;
      }
      const logSums = work.result(f32, shape.slice(0, -1)) as unknown as KernelTensor;
      addAttention(work, out, logSums, task, plan);
      return new Results(['out', 'logSums'], [out, logSums]);
    };
  });
}

function addAttention(
  work: Work,
  out: KernelTensor,
  logSums: KernelTensor | undefined,
  task: Task,
  plan: AttentionPlan | undefined,
): void {
  const fill = (tensor: KernelTensor | undefined, value: number): void => {
    if (tensor !== undefined && tensor.size > 0)
      work.add((tensor as unknown as Tensor<'f32'>).fill(value));
  };
  if (task.n === 0) {
    fill(out, 0);
    fill(logSums, -Infinity);
  } else if (out.size === 0) return;
  else if (isForWarpGroups(task, MOST_CHANNELS)) byWarpGroups(work, out, logSums, task, plan);
  else byRows(work, out, logSums, task);
}

/**
 * Plans by the number of channels in shared memory. On an H200 they reach 511, 682 and 774 TFLOPS
 * with 64, 128 and 256 channels, and 453, 615 and 692 where causal (bf16, 4096 queries and keys,
 * 192 heads; a causal one has half of the operations). With 192 channels none was measured.
 */
export const PLANS: Readonly<Record<number, AttentionPlan>> = {
  64: { rows: 192, keys: 128, stages: 2, queries: 2, turns: true },
  128: { rows: 128, keys: 128, stages: 2, queries: 2, turns: true },
  192: { rows: 128, keys: 96, stages: 2, queries: 1, turns: true },
  256: { rows: 128, keys: 80, stages: 2, queries: 1, turns: true },
};
/** Those with a mask, whose tiles are in shared memory, too: multiples of 64 keys. */
export const MASKED_PLANS: typeof PLANS = {
  64: { rows: 128, keys: 128, stages: 2, queries: 2, turns: true },
  128: { rows: 128, keys: 128, stages: 2, queries: 1, turns: true },
  192: { rows: 128, keys: 64, stages: 2, queries: 2, turns: true },
  256: { rows: 128, keys: 64, stages: 2, queries: 1, turns: true },
};

function byWarpGroups(
  work: Work,
  out: KernelTensor,
  logSums: KernelTensor | undefined,
  task: Task,
  given: AttentionPlan | undefined,
  offsets?: Offsets,
): void {
  const { batches, heads, kvHeads, m, n, causal, scale, window } = task;
  const { multiprocessorCount, l2CacheBytes } = out.device.properties;
  const channels = Math.ceil(task.channels / 64) * 64;
  const isMasked = task.mask !== undefined;
  const plan = given ?? (isMasked ? MASKED_PLANS : PLANS)[channels]!;
  const { rows, keys } = plan;
  const sequences = sequencesOf(offsets);
  const down = offsets === undefined ? Math.ceil(m / rows) : packedTilesOf(m, sequences, rows);
  const matrices = batches * heads;
  const tiles = down * matrices;
  checkTiles('attention', 'q', tiles, rows, 'queries');
  const grid = Math.min(tiles, multiprocessorCount);
  let section = 1;
  if (causal && offsets === undefined) {
    const timeOf = (at: number): number => {
      const last = Math.max(1, Math.min(n, (down - at) * rows + n - m));
      const first = Math.max(0, last - rows - (window ?? n));
      return Math.ceil((last - first) / keys) + AROUND;
    };
    // Keys and values of the heads of a section stay in the cache.
    const bytes = (n * task.channels * task.q.dtype.bytes * 2 * kvHeads) / heads;
    const most = Math.max(1, Math.min(64, Math.floor((l2CacheBytes * 0.75) / bytes)));
    const known = `${rows} ${keys} ${m} ${n} ${window}`;
    section = sectionOf(known, { timeOf, down, matrices, grid, most });
  }
  const [q, k, v] = [task.q, task.k, task.v].map((each) =>
    inBoxes(work, inFourAxes(work, each, batches)),
  );
  const form = {
    ...{ plan, dtype: out.dtype, channels, causal },
    window: window !== undefined,
    logs: logSums !== undefined,
    masked: isMasked,
    packed: offsets !== undefined,
  };
  const launch = warpGroupAttention(form, task.channels);
  work.add(
    launch(
      {
        logs: logsOf(logSums, q!),
        ...{ out: inFourAxes(work, out, batches), q, k, v, m, n, heads, down, section, matrices },
        group: heads / kvHeads,
        factor: isMasked ? scale : scale * Math.LOG2E,
        window: window ?? 0,
        ...(isMasked ? boxedMask(work, task.mask, out.dtype, batches, rows) : {}),
        ...(offsets === undefined
          ? {}
          : { queryOffsets: offsets.queries, keyOffsets: offsets.keys, sequences }),
      },
      { grid, sharedBytes: sharedBytesOf(plan, channels, isMasked) },
    ),
  );
}

function byRows(
  work: Work,
  out: KernelTensor,
  logSums: KernelTensor | undefined,
  task: Task,
  offsets?: Offsets,
): void {
  const { batches, heads, kvHeads, m, n, channels, causal, scale, window } = task;
  const [result, q, k, v] = [out, task.q, task.k, task.v].map((each) =>
    inFourAxes(work, each, batches),
  ) as [KernelTensor, KernelTensor, KernelTensor, KernelTensor];
  const mask = task.mask === undefined ? undefined : inFourAxes(work, task.mask, batches);
  const wide = isWide([q, k, v, mask ?? q]);
  const sequences = sequencesOf(offsets);
  const down = offsets === undefined ? Math.ceil(m / ROWS) : packedTilesOf(m, sequences, ROWS);
  const grid = down * batches * heads;
  checkTiles('attention', 'q', grid, ROWS, 'queries');
  const launch = attentionRows({
    ...{ dtype: out.dtype, channels, causal, wide, mask: mask?.dtype },
    window: window !== undefined,
    logs: logSums !== undefined,
    packed: offsets !== undefined,
  });
  work.add(
    launch(
      {
        logs: logsOf(logSums, q),
        ...{ out: result, q, k, v, mask: mask ?? q, heads, down, scale },
        ...{ queryOffsets: offsets?.queries ?? q, keyOffsets: offsets?.keys ?? q },
        ...{ sequences, allQueries: m, allKeys: n },
        group: heads / kvHeads,
        window: window ?? 0,
      },
      { grid, ...(wide ? { index: 'i64' } : {}) },
    ),
  );
}

/** Where packed sequences begin, and where the last one ends: i32, one more than sequences. */
export interface Offsets {
  readonly queries: KernelTensor;
  readonly keys: KernelTensor;
}

const sequencesOf = (offsets: Offsets | undefined): number => (offsets?.queries.size ?? 1) - 1;

/** Attention of packed sequences, whose positions are one axis of the task. */
export function addPackedAttention(
  work: Work,
  out: KernelTensor,
  task: Task,
  offsets: Offsets,
  plan?: AttentionPlan,
): void {
  if (out.size === 0) return;
  if (task.n === 0 || offsets.queries.size === 1)
    work.add((out as unknown as Tensor<'f32'>).fill(0));
  else if (isForWarpGroups(task, MOST_CHANNELS))
    byWarpGroups(work, out, undefined, task, plan, offsets);
  else byRows(work, out, undefined, task, offsets);
}

/** The argument for logarithms; q in the place of those that are not written. */
const logsOf = (logSums: KernelTensor | undefined, q: KernelTensor): KernelTensor =>
  logSums === undefined ? q : logSums.reshape([q.shape[0]!, ...logSums.shape.slice(-2)] as never);
