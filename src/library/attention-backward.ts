/** The gradients of attention: checks, the choice of kernels, and their launches. */
import { f32 } from '../core/index.js';
import { invalid } from '../ground/arguments.js';
import type { DeviceOp, OrOp } from '../ops/index.js';
import type { KernelTensor, Shape, Tensor } from '../tensor/index.js';
import { Results } from '../tensor/results.js';
import type { Closing } from '../tensor/results.js';
import { BACKWARD_ROWS, attentionBackwardRows } from './attention-backward-rows.js';
import { DELTA_ROWS, attentionDeltas } from './attention-deltas.js';
import {
  checkAttentionOptions,
  checkShapeOf,
  checkTiles,
  checkedAsQ,
  inBoxes,
  inFourAxes,
  isForWarpGroups,
  isWide,
  taskOf,
} from './attention-operands.js';
import type { AttentionName, AttentionOptions, Task } from './attention-operands.js';
import { boxedMask } from './attention-masks.js';
import { addedGridOf, addedQueries, isHalved, sumLinesOf } from './attention-query-sums.js';
import { checkTensor, operation } from './operation.js';
import type { Work } from './operation.js';
import { backwardSharedBytesOf, halvedAttentionBackward } from './halved-attention-backward.js';
import { numberLinesOf, warpGroupAttentionBackward } from './warp-group-attention-backward.js';
import type { BackwardPlan } from './warp-group-attention-backward.js';

/** What {@link attentionBackward} gives: gradients, of the shapes and the dtype of q, k and v. */
export interface AttentionGradients<
  D extends AttentionName,
  Q extends Shape = number[],
  K extends Shape = number[],
> {
  readonly dq: Tensor<D, Q>;
  readonly dk: Tensor<D, K>;
  readonly dv: Tensor<D, K>;
}

const NAME = 'attentionBackward';
/** The most channels of warp groups: they have the gradients of their keys in registers. */
const MOST_CHANNELS = 256;

/** Plans by the number of channels in shared memory. */
export const BACKWARD_PLANS: Readonly<Record<number, BackwardPlan>> = {
  64: { rows: 128, keys: 128, stages: 2 },
  128: { rows: 64, keys: 128, stages: 2 },
  256: { rows: 64, keys: 64, stages: 2 },
};

/** The task, and what its forward pass has given. */
interface BackwardTask extends Task {
  readonly dOut: KernelTensor;
  readonly out: KernelTensor;
  readonly logSums: KernelTensor;
}

interface Gradients {
  readonly dq: KernelTensor;
  readonly dk: KernelTensor;
  readonly dv: KernelTensor;
}

/**
 * The gradients of {@link attention} with respect to q, k and v, where `dOut` is the gradient of
 * its result. `out` and `logSums` are those of {@link attentionForward} for the same q, k, v and
 * options. dOut and out have q's shape `[…, heads, M, D]`; all but logSums, `[…, heads, M]` of f32,
 * are of one dtype. The result has new contiguous tensors, which the caller closes. Where heads of
 * q share a head of k and v, dk and dv are sums over them. A query that sees no key has a gradient
 * of zeros, and adds nothing to others. A mask gets no gradient.
 *
 * f16 and bf16 with D a multiple of 8 of at most 256 and a positive scale run on the warp groups of
 * compute capability 9.0: products are summed in f32, and shares P and
 * gradients of scores are rounded to the dtype before they are multiplied. The error of an element
 * is within 2^-7 (bf16) or 2^-10 (f16) of the sum of the magnitudes of its terms: P · |dOut| for
 * dv; for dq and dk scale · P · (|dP| + Σ |dOut · out|) · |k| or |q|, where dP is the product of
 * dOut and v. On a GPU blocks of keys add to dq in no order: its last bits differ from run to run.
 * Everything else is computed in f32 and rounded once, with the same bits on every device.
 *
 * @throws CudaArgumentError as {@link attention} does, and for dOut, out or logSums of another
 *   dtype or shape
 *
 * @example
 * ```ts
 * using q = await device.ones(f32, [1, 2, 4]);
 * using k = await device.zeros(f32, [1, 4, 4]);
 * using forward = await attentionForward(q, k, k);
 * const { out, logSums } = forward;
 * using gradients = await attentionBackward(q, q, k, k, out, logSums);
 * console.log((await gradients.dv.read())[0]); // 0.5
 * ```
 */
export function attentionBackward<D extends AttentionName, S extends Shape, K extends Shape>(
  dOut: OrOp<Tensor<NoInfer<D>>>,
  q: OrOp<Tensor<D, S>>,
  k: OrOp<Tensor<NoInfer<D>, K>>,
  v: OrOp<Tensor<NoInfer<D>>>,
  out: OrOp<Tensor<NoInfer<D>>>,
  logSums: OrOp<Tensor<'f32'>>,
  options: AttentionOptions<NoInfer<D>> = {},
): DeviceOp<AttentionGradients<D, S, K> & Closing> {
  return planned([dOut, q, k, v, out, logSums], options) as never;
}

/** {@link attentionBackward} with a given plan, for measurements and tests. @internal */
export function attentionBackwardBy(
  plan: BackwardPlan | undefined,
  operands: readonly OrOp<KernelTensor>[],
  options: AttentionOptions = {},
): DeviceOp<Gradients & Closing> {
  return planned(operands, options, plan) as never;
}

function planned(
  operands: readonly unknown[],
  options: AttentionOptions,
  plan?: BackwardPlan,
): DeviceOp<unknown> {
  checkAttentionOptions(options);
  const inputs = [...operands, options.mask];
  return operation(NAME, inputs, ([givenDOut, ...others]) => {
    const base = taskOf(NAME, [others[0], others[1], others[2]], others[5], options);
    const task: BackwardTask = {
      ...base,
      dOut: checkedAsQ(NAME, 'dOut', givenDOut, base.q),
      out: checkedAsQ(NAME, 'out', others[3], base.q),
      logSums: checkedLogSums(others[4], base.q),
    };
    return (work) => {
      const made = (like: KernelTensor): KernelTensor => work.result(like.dtype, [...like.shape]);
      const gradients = { dq: made(task.q), dk: made(task.k), dv: made(task.v) };
      const { dq, dk, dv } = gradients;
      if (dq.size === 0 || dk.size === 0) {
        for (const each of [dq, dk, dv])
          if (each.size > 0) work.add((each as unknown as Tensor<'f32'>).fill(0));
      } else if (isForWarpGroups(task, MOST_CHANNELS)) byWarpGroups(work, gradients, task, plan);
      else byRows(work, gradients, task);
      return new Results(['dq', 'dk', 'dv'], [dq, dk, dv]);
    };
  });
}

function checkedLogSums(logSums: unknown, q: KernelTensor): KernelTensor {
  checkTensor(NAME, 'logSums', logSums);
  if (logSums.dtype !== f32)
    throw invalid(
      'logSums',
      `a Tensor of f32, for ${NAME}(…)`,
      logSums,
      'Pass that of attentionForward.',
    );
  checkShapeOf(NAME, 'logSums', logSums, q.shape.slice(0, -1));
  return logSums;
}

function byRows(work: Work, { dq, dk, dv }: Gradients, task: BackwardTask): void {
  const { batches, heads, kvHeads, m, n, channels, causal, scale, window } = task;
  const inFour = (tensor: KernelTensor): KernelTensor => inFourAxes(work, tensor, batches);
  const [q, k, v, dOut] = [task.q, task.k, task.v, task.dOut].map(inFour) as [
    KernelTensor,
    KernelTensor,
    KernelTensor,
    KernelTensor,
  ];
  const mask = task.mask === undefined ? undefined : inFour(task.mask);
  const logs = work.dense(task.logSums).reshape([batches, heads, m] as never);
  const deltas = work.temporary(f32, [batches, heads, m]) as unknown as KernelTensor;
  const wide = isWide([q, k, v, dOut, mask ?? q]);
  const index = wide ? ({ index: 'i64' } as const) : {};
  addDeltas(work, task, { deltas }, 0, m);
  for (const ofKeys of [false, true]) {
    const down = Math.ceil((ofKeys ? n : m) / BACKWARD_ROWS);
    const grid = down * batches * (ofKeys ? kvHeads : heads);
    const what = ofKeys ? 'keys' : 'queries';
    checkTiles(NAME, ofKeys ? 'k' : 'q', grid, BACKWARD_ROWS, what);
    const launch = attentionBackwardRows({
      ...{ ofKeys, dtype: q.dtype, channels, causal, wide, mask: mask?.dtype },
      window: window !== undefined,
    });
    work.add(
      launch(
        {
          ...(ofKeys
            ? { out: inFour(dk), values: inFour(dv), a: k, x: v, b: q, y: dOut }
            : { out: inFour(dq), a: q, x: dOut, b: k, y: v }),
          ...(mask === undefined ? {} : { mask }),
          ...{ logs, deltas, m, n, heads, down, scale },
          group: heads / kvHeads,
          window: window ?? 0,
        },
        { grid, ...index },
      ),
    );
  }
}

function byWarpGroups(
  work: Work,
  gradients: Gradients,
  task: BackwardTask,
  given: BackwardPlan | undefined,
): void {
  const { batches, heads, kvHeads, m, n, causal, scale, window } = task;
  const { dtype } = task.q;
  const chunks = Math.ceil(task.channels / 64);
  const channels = chunks > 2 ? 256 : chunks * 64;
  const plan = given ?? BACKWARD_PLANS[channels]!;
  const isMasked = task.mask !== undefined;
  const form = { plan, dtype, channels, causal, window: window !== undefined, masked: isMasked };
  const [q, k, v, dOut] = [task.q, task.k, task.v, task.dOut].map((each) =>
    inBoxes(work, inFourAxes(work, each, batches)),
  );
  const [dk, dv] = [gradients.dk, gradients.dv].map((each) => inFourAxes(work, each, batches));
  const matrices = batches * heads;
  const tiles = Math.ceil(m / plan.rows);
  const down = Math.ceil(n / plan.keys);
  const grid = down * batches * kvHeads;
  checkTiles(NAME, 'k', grid, plan.keys, 'keys');
  const numbers = work.temporary(f32, [matrices, tiles * numberLinesOf(plan), 32]);
  const sums = work.temporary(f32, [matrices, tiles * sumLinesOf(plan, channels), 32]);
  addDeltas(work, task, { lines: numbers }, plan.rows, tiles * plan.rows);
  const makeKernel = isHalved(channels) ? halvedAttentionBackward : warpGroupAttentionBackward;
  work.add(sums.fill(0));
  work.add(
    makeKernel(form)(
      {
        ...{ sums, dk, dv, q, dOut, k, v, numbers, m, n, kvHeads, down, scale },
        group: heads / kvHeads,
        factor: scale * Math.LOG2E,
        window: window ?? 0,
        ...(isMasked ? boxedMask(work, task.mask, dtype, batches, plan.rows) : {}),
      },
      { grid, sharedBytes: backwardSharedBytesOf(plan, channels, isMasked) },
    ),
  );
  work.add(
    addedQueries(form, task.channels)(
      { dq: gradients.dq, sums, m, tiles, scale },
      { grid: addedGridOf(form, matrices * tiles) },
    ),
  );
}

/** Queues the deltas of queries; for warp groups in lines, where a matrix has `padded` queries. */
function addDeltas(
  work: Work,
  { dOut, out, logSums, mask, batches, heads, m, channels }: BackwardTask,
  to: { readonly deltas: KernelTensor } | { readonly lines: Tensor },
  rows: number,
  padded: number,
): void {
  const matrices = batches * heads;
  const wide = isWide([out]);
  work.add(
    attentionDeltas({
      ...{ dtype: out.dtype, channels, rows, wide },
      natural: mask !== undefined && rows > 0,
    })(
      {
        ...to,
        ...{ out: work.dense(out), dOut: work.dense(dOut), logs: work.dense(logSums) },
        ...{ m, padded, matrices },
      },
      { grid: Math.ceil((matrices * padded) / DELTA_ROWS), ...(wide ? { index: 'i64' } : {}) },
    ),
  );
}
