/** Attention: softmax of the products of queries and keys, times values. */
import type { KernelDType } from '../core/index.js';
import { CudaArgumentError } from '../core/index.js';
import { checkOptions, invalid } from '../ground/arguments.js';
import type { DeviceOp, OrOp } from '../ops/index.js';
import { beginsAt } from '../tensor/alignment.js';
import { Tensor } from '../tensor/index.js';
import { broadcastTo, tryReshape } from '../tensor/layouts.js';
import type { KernelTensor, Layout, Shape } from '../tensor/index.js';
import { showShape } from '../tensor/shape.js';
import { ROWS, attentionRows } from './attention-rows.js';
import { checkTensor, operation } from './operation.js';
import type { Work } from './operation.js';
import { sectionOf } from './tile-order.js';
import { sharedBytesOf, warpGroupAttention } from './warp-group-attention.js';
import type { AttentionPlan } from './warp-group-attention.js';
import { hasWarpGroups } from './warp-group-matmul.js';

/** dtypes of attention. */
export type AttentionName = 'f16' | 'bf16' | 'f32';

/** Options of {@link attention}. */
export interface AttentionOptions<D extends AttentionName = AttentionName> {
  /**
   * Whether query i of M sees only the first i + 1 + N - M of N keys: those up to its own position,
   * where the last query and the last key are at the same one. Default: false.
   */
  readonly causal?: boolean;
  /** The factor of products of queries and keys. Default: 1 / √D. */
  readonly scale?: number;
  /**
   * How many positions a key may be before the query's own, which is i + N - M. Default: any
   * number.
   */
  readonly window?: number;
  /**
   * Added to the scaled products, of the operands' dtype; or bool, true for keys that are seen. It
   * broadcasts to `[…, heads, M, N]`. Default: none.
   */
  readonly mask?: OrOp<Tensor<D | 'bool'>>;
}

const NAMES: readonly string[] = ['f16', 'bf16', 'f32'];
/** Sizes from which on indices after the end do not fit in 32 bits. */
const WIDE_FROM = 2 ** 31 - 2 ** 20;
const MOST_BLOCKS = 2 ** 31 - 1;
/** Extents of axes are below, and so is a window that leaves keys out. */
const MOST_EXTENT = 2 ** 30;
/** Elements of 16 bytes, at multiples of which the lines of a tensor copy begin. */
const RUN = 8;
const ALIGNMENT = 16;
/** The time of a tile besides its steps, in steps. */
const AROUND = 2;

/**
 * Attention: each query gives the mean of the values, weighted by the softmax of its products with
 * the keys. q `[…, heads, M, D]`, k and v `[…, kvHeads, N, D]` of one dtype give a new contiguous
 * tensor of q's shape and dtype. Adjacent heads of q share a head of k and v, where these have
 * fewer. The scores are never in memory as a whole. A query that sees no key gives zeros.
 *
 * f16 and bf16 with D a multiple of 8 of at most 256, without a mask, run on the warp groups of
 * compute capability 9.0: products are summed in f32, and shares are rounded to the dtype before
 * they are multiplied with values. The error of an element is within 2^-7 (bf16) or 2^-10 (f16) of
 * the greatest magnitude of its channel's values, and results of a GPU and of the CPU device differ
 * within it. Everything else is computed in f32 and rounded once, with the same bits on every
 * device.
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
  return planned(q, k, v, options, undefined) as never;
}

/** {@link attention} with a given plan, for measurements and tests. @internal */
export function attentionBy(
  plan: AttentionPlan | undefined,
  q: OrOp<KernelTensor>,
  k: OrOp<KernelTensor>,
  v: OrOp<KernelTensor>,
  options: AttentionOptions = {},
): DeviceOp<KernelTensor> {
  return planned(q, k, v, options, plan);
}

/** The arguments of one attention. */
interface Task {
  readonly q: KernelTensor;
  readonly k: KernelTensor;
  readonly v: KernelTensor;
  readonly mask: KernelTensor | undefined;
  /** All axes before the heads as one. */
  readonly batches: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly m: number;
  readonly n: number;
  readonly channels: number;
  readonly causal: boolean;
  readonly scale: number;
  readonly window: number | undefined;
}

function planned(
  givenQ: unknown,
  givenK: unknown,
  givenV: unknown,
  options: AttentionOptions,
  plan: AttentionPlan | undefined,
): DeviceOp<KernelTensor> {
  checkOptions('options', options, ['causal', 'scale', 'window', 'mask']);
  const { causal = false, scale, window } = options;
  if (typeof causal !== 'boolean') throw invalid('options.causal', 'true or false', causal);
  if (scale !== undefined && !Number.isFinite(scale))
    throw invalid('options.scale', 'a finite number', scale);
  if (window !== undefined && !(Number.isSafeInteger(window) && window >= 0))
    throw invalid('options.window', 'a whole number of at least 0', window);
  return operation('attention', [givenQ, givenK, givenV, options.mask], ([...values]) => {
    const [q, k, v] = checkedOperands(values);
    const mask = values[3];
    const [heads, m, channels] = q.shape.slice(-3) as [number, number, number];
    const [kvHeads, n] = k.shape.slice(-3) as [number, number, number];
    const outer = q.shape.slice(0, -3);
    const task: Task = {
      ...{ q, k, v, heads, kvHeads, m, n, channels, causal },
      mask: mask === undefined ? undefined : checkedMask(mask, q.dtype, [...outer, heads, m, n]),
      batches: outer.reduce((a, b) => a * b, 1),
      scale: scale ?? 1 / Math.sqrt(channels),
      // From a number on all keys are within it.
      window: window === undefined || window >= MOST_EXTENT ? undefined : window,
    };
    return (work) => {
      const out = work.result(q.dtype, [...q.shape]) as unknown as KernelTensor;
      if (out.size === 0) return out;
      if (n === 0) work.add((out as unknown as Tensor<'f32'>).fill(0));
      else if (isForWarpGroups(task)) byWarpGroups(work, out, task, plan);
      else byRows(work, out, task);
      return out;
    };
  });
}

/** Gives q, k and v. @throws CudaArgumentError where they do not fit */
function checkedOperands(values: readonly unknown[]): [KernelTensor, KernelTensor, KernelTensor] {
  const [q, k, v] = ['q', 'k', 'v'].map((argument, at) => {
    const each = values[at];
    checkTensor('attention', argument, each);
    if (!NAMES.includes(each.dtype.name))
      throw invalid(
        argument,
        `a Tensor of ${NAMES.join(', ')}, for attention(…)`,
        each.dtype.name,
        'Convert it with convert(f32).',
      );
    const { dtype } = values[0] as KernelTensor;
    if (each.dtype !== dtype)
      throw invalid(
        argument,
        `a Tensor of ${dtype.name}, as q is, for attention(…)`,
        each,
        `Convert it with convert(${dtype.name}).`,
      );
    if (each.rank < 3)
      throw invalid(
        argument,
        'at least three axes, […, heads, positions, channels], for attention(…)',
        each,
        'Add an axis of one head with unsqueeze(0).',
      );
    if (each.shape.some((extent) => extent >= MOST_EXTENT))
      throw invalid(argument, `axes of fewer than ${MOST_EXTENT} elements, for attention(…)`, each);
    return each;
  }) as [KernelTensor, KernelTensor, KernelTensor];
  const fails = (argument: string, what: string): never => {
    throw new CudaArgumentError(
      argument,
      `attention: ${what}: q: ${showShape(q.shape)}, k: ${showShape(k.shape)}, v: ` +
        `${showShape(v.shape)}.`,
    );
  };
  if (showShape(v.shape) !== showShape(k.shape)) fails('v', 'k and v have different shapes');
  if (k.shape.at(-1) !== q.shape.at(-1)) fails('k', 'q and k have different numbers of channels');
  if (showShape(k.shape.slice(0, -3)) !== showShape(q.shape.slice(0, -3)))
    fails('k', 'q and k differ in the axes before the heads');
  const [heads, kvHeads] = [q.shape.at(-3)!, k.shape.at(-3)!];
  if (heads !== 0 && (kvHeads === 0 || heads % kvHeads !== 0))
    fails('k', `${heads} heads of q are no multiple of ${kvHeads} heads of k`);
  return [q, k, v];
}

/** Gives the mask in the shape of the scores. */
function checkedMask(mask: unknown, dtype: KernelDType, shape: readonly number[]): KernelTensor {
  checkTensor('attention', 'options.mask', mask);
  if (mask.dtype !== dtype && mask.dtype.name !== 'bool')
    throw invalid('options.mask', `a Tensor of bool or of ${dtype.name}, as q is`, mask);
  let layout: Layout;
  try {
    layout = broadcastTo(mask.layout, shape as never);
  } catch {
    throw new CudaArgumentError(
      'options.mask',
      `attention: a mask of ${showShape(mask.shape)} does not broadcast to […, heads, queries, ` +
        `keys], ${showShape(shape)}.`,
    );
  }
  return new Tensor(mask.buffer, layout, false);
}

/** The tensor with all axes before the last three as one, as a view or a copy. */
function inFourAxes(work: Work, tensor: KernelTensor, batches: number): KernelTensor {
  const shape = [batches, ...tensor.shape.slice(-3)];
  const layout = tryReshape<Shape, Shape>(tensor.layout, shape);
  if (layout !== undefined) return new Tensor(tensor.buffer, layout, false);
  return work.dense(tensor).reshape(shape as never);
}

/** Whether the kernel for warp groups computes this. */
function isForWarpGroups({ q, mask, channels, scale }: Task): boolean {
  return (
    hasWarpGroups(q.device, q.dtype) &&
    mask === undefined &&
    channels % RUN === 0 &&
    channels <= 256 &&
    // The greatest score has the greatest product.
    scale > 0
  );
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

/** Gives the tensor, or a copy, of which tensor copies can take boxes. */
function inBoxes(work: Work, tensor: KernelTensor): KernelTensor {
  const { shape, strides } = tensor.layout;
  const fits = shape.every((extent, axis) => {
    const stride = strides[axis]!;
    if (axis === shape.length - 1) return stride === 1;
    return extent === 1 || (stride > 0 && stride % RUN === 0);
  });
  if (beginsAt(tensor, ALIGNMENT) && fits) return tensor;
  const copy = work.temporary(tensor.dtype, [...shape]) as unknown as KernelTensor;
  work.add(copy.copyFrom(tensor));
  return copy;
}

function byWarpGroups(
  work: Work,
  out: KernelTensor,
  task: Task,
  given: AttentionPlan | undefined,
): void {
  const { batches, heads, kvHeads, m, n, causal, scale, window } = task;
  const { multiprocessorCount, l2CacheBytes } = out.device.properties;
  const channels = Math.ceil(task.channels / 64) * 64;
  const plan = given ?? PLANS[channels]!;
  const { rows, keys } = plan;
  const down = Math.ceil(m / rows);
  const matrices = batches * heads;
  const tiles = down * matrices;
  if (tiles > MOST_BLOCKS)
    throw invalid('q', `at most ${MOST_BLOCKS} tiles of ${rows} queries, for attention(…)`, tiles);
  const grid = Math.min(tiles, multiprocessorCount);
  let section = 1;
  if (causal) {
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
  const launch = warpGroupAttention({
    ...{ plan, dtype: out.dtype, channels, causal },
    window: window !== undefined,
  });
  work.add(
    launch(
      {
        ...{ out: inFourAxes(work, out, batches), q, k, v, m, n, heads, down, section, matrices },
        group: heads / kvHeads,
        factor: scale * Math.LOG2E,
        window: window ?? 0,
      },
      { grid, sharedBytes: sharedBytesOf(plan, channels) },
    ),
  );
}

function byRows(work: Work, out: KernelTensor, task: Task): void {
  const { batches, heads, kvHeads, m, n, channels, causal, scale, window } = task;
  const [result, q, k, v] = [out, task.q, task.k, task.v].map((each) =>
    inFourAxes(work, each, batches),
  ) as [KernelTensor, KernelTensor, KernelTensor, KernelTensor];
  const mask = task.mask === undefined ? undefined : inFourAxes(work, task.mask, batches);
  const wide = [q, k, v, mask].some((each) => {
    const { shape, strides } = (each ?? q).layout;
    const reach = shape.reduce((sum, extent, axis) => sum + (extent - 1) * strides[axis]!, 1);
    return reach >= WIDE_FROM || (each ?? q).size >= WIDE_FROM;
  });
  const down = Math.ceil(m / ROWS);
  const grid = down * batches * heads;
  if (grid > MOST_BLOCKS)
    throw invalid('q', `at most ${MOST_BLOCKS} tiles of ${ROWS} queries, for attention(…)`, grid);
  const launch = attentionRows({
    ...{ dtype: out.dtype, channels, causal, wide, mask: mask?.dtype },
    window: window !== undefined,
  });
  work.add(
    launch(
      {
        ...{ out: result, q, k, v, mask: mask ?? q, m, n, heads, down, scale },
        group: heads / kvHeads,
        window: window ?? 0,
      },
      { grid, ...(wide ? { index: 'i64' } : {}) },
    ),
  );
}
