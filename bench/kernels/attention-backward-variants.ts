/**
 * Compares tiles of the gradients of attention by Hopper's warp groups, with the backward pass
 * alone ({@link comparePlans} says how). The operations are those of five products.
 *
 *     npx tsx bench/kernels/attention-backward-variants.ts [channels,…=128,64] [causal,…=no,yes]
 *       [plan;…]
 *
 * A plan is rows,keys,stages. Runs the sources, not the built package: the plans are not public.
 * The best go to `BACKWARD_PLANS` in src/library/attention-backward.ts.
 */
import type { Tensor } from '../../src/index.js';
import { attentionForward } from '../../src/library/attention.js';
import { attentionBackwardBy } from '../../src/library/attention-backward.js';
import { backwardSharedBytesOf } from '../../src/library/halved-attention-backward.js';
import type { BackwardPlan } from '../../src/library/warp-group-attention-backward.js';
import { proveGradients } from './attention-contender.js';
import { comparePlans } from './attention-plans.js';
import type { Operand } from './attention-plans.js';

const planOf = (text: string): BackwardPlan => {
  const [rows, keys, stages] = text.split(',').map(Number);
  return { rows: rows!, keys: keys!, stages: stages! };
};

await comparePlans({
  request: 'attention_backward',
  title: 'attentionBackward',
  products: 5,
  rounds: 7,
  operands: 4,
  plans: {
    64: ['128,128,2', '128,128,3', '64,64,3', '64,64,2'],
    128: ['64,128,2', '64,64,2', '64,64,3'],
    256: ['64,64,2'],
  },
  begin: async (operands, channels, causal) => {
    const [q, k, v, dOut] = operands as [Operand, Operand, Operand, Operand];
    const forward = await attentionForward(q as never, k as never, v as never, { causal });
    const { out, logSums } = forward as unknown as { out: Operand; logSums: Tensor<'f32'> };
    return {
      variant(text) {
        const plan = text === '' ? undefined : planOf(text);
        const op = attentionBackwardBy(plan, [dOut, q, k, v, out, logSums] as never, { causal });
        // Gradients are closed in order with the next run, whose memory they become.
        const closing = op.map((result) => {
          result.close();
        });
        return {
          sharedBytes: plan === undefined ? 0 : backwardSharedBytesOf(plan, channels),
          async prove(stream) {
            using first = await op.runOn(stream);
            await proveGradients([q, k, v, out, dOut], logSums as never, first as never, causal);
          },
          run: (stream) => closing.runOn(stream).then(() => () => undefined),
        };
      },
      close: () => {
        forward.close();
      },
    };
  },
});
