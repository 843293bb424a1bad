/** Attention of sequences of different lengths, whose positions are one axis. */
import { CudaArgumentError, i32 } from '../core/index.js';
import { invalid } from '../ground/arguments.js';
import type { DeviceOp, OrOp } from '../ops/index.js';
import type { KernelTensor, Shape, Tensor } from '../tensor/index.js';
import { addPackedAttention } from './attention.js';
import type { Offsets } from './attention.js';
import { checkAttentionOptions, checkShapeOf, taskOf } from './attention-operands.js';
import type { AttentionName, AttentionOptions } from './attention-operands.js';
import { checkTensor, operation } from './operation.js';

const NAME = 'packedAttention';

/**
 * {@link attention} of sequences of different lengths, which are packed one after the other:
 * q `[positions, heads, D]`, k and v `[keyPositions, kvHeads, D]`, of one dtype. `queryOffsets` and
 * `keyOffsets`, i32 of one more element than sequences, have the position at which each sequence
 * begins, and at last the number of all positions, in increasing order. A query sees the keys of
 * its own sequence; `causal` and `window` count positions from the end of the sequence, as those
 * of one attention do. The result is a new contiguous tensor of q's shape and dtype. Positions of
 * no sequence are not written.
 *
 * f16 and bf16 run on the warp groups of compute capability 9.0 where those of {@link attention}
 * do, within the same bounds; nothing of a sequence reaches the results of another. Everything else
 * is computed in f32 and rounded once, with the same bits on every device.
 *
 * @throws CudaArgumentError as {@link attention} does, for operands of other than three axes, and
 *   for offsets of another dtype or of different lengths; at the call, or when run where operations
 *   give the operands
 *
 * @example
 * ```ts
 * // Sequences of one and of two positions.
 * using x = await device.ones(f32, [3, 1, 4]);
 * using offsets = await device.tensor(i32, [0, 1, 3]);
 * using y = await packedAttention(x, x, x, offsets, offsets, { causal: true });
 * console.log(y.shape, (await y.read())[0]); // [ 3, 1, 4 ] 1
 * ```
 */
export function packedAttention<D extends AttentionName, S extends Shape>(
  q: OrOp<Tensor<D, S>>,
  k: OrOp<Tensor<NoInfer<D>>>,
  v: OrOp<Tensor<NoInfer<D>>>,
  queryOffsets: OrOp<Tensor<'i32'>>,
  keyOffsets: OrOp<Tensor<'i32'>>,
  options: Omit<AttentionOptions<NoInfer<D>>, 'mask'> = {},
): DeviceOp<Tensor<D, S>> {
  checkAttentionOptions(options);
  if ('mask' in options && options.mask !== undefined)
    throw invalid(
      'options.mask',
      `nothing, since ${NAME}(…) takes no mask`,
      options.mask,
      'Write attention(…) for each sequence.',
    );
  const inputs = [q, k, v, queryOffsets, keyOffsets];
  return operation(NAME, inputs, ([givenQ, givenK, givenV, forQueries, forKeys]) => {
    // [heads][positions][channels]
    const [heads, keyHeads, valueHeads] = [givenQ, givenK, givenV].map((each, at) =>
      byHeads(['q', 'k', 'v'][at]!, each),
    );
    const task = taskOf(NAME, [heads, keyHeads, valueHeads], undefined, options);
    const offsets: Offsets = {
      queries: checkedOffsets('queryOffsets', forQueries),
      keys: checkedOffsets('keyOffsets', forKeys),
    };
    checkShapeOf(NAME, 'keyOffsets', offsets.keys, offsets.queries.shape);
    return (work) => {
      const { dtype, shape } = givenQ as KernelTensor;
      const out = work.result(dtype, [...shape]) as unknown as KernelTensor;
      const dense = { queries: work.dense(offsets.queries), keys: work.dense(offsets.keys) };
      addPackedAttention(work, out.transpose(0, 1), task, dense);
      return out;
    };
  }) as never;
}

/** The tensor with heads before positions. */
function byHeads(argument: string, value: unknown): KernelTensor {
  checkTensor(NAME, argument, value);
  if (value.rank !== 3)
    throw invalid(
      argument,
      `three axes, [positions, heads, channels], for ${NAME}(…)`,
      value,
      'Write unsqueeze(1) for one head, and attention(…) for sequences of one length.',
    );
  return value.transpose(0, 1);
}

function checkedOffsets(argument: string, value: unknown): KernelTensor {
  checkTensor(NAME, argument, value);
  if (value.dtype !== i32 || value.rank !== 1)
    throw invalid(
      argument,
      `a Tensor of i32 of one axis, for ${NAME}(…)`,
      value,
      'Write device.tensor(i32, [0, …, positions]).',
    );
  if (value.size === 0)
    throw new CudaArgumentError(
      argument,
      `${NAME}: ${argument} has no elements, and has to have one more than there are sequences. ` +
        'Write [0, positions] for one sequence.',
    );
  return value;
}
