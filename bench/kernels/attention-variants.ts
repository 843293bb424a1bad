/**
 * Compares tiles of attention by Hopper's warp groups ({@link comparePlans} says how).
 *
 *     npx tsx bench/kernels/attention-variants.ts [channels,…=128,64] [causal,…=no,yes] [plan;…]
 *
 * A plan is rows,keys,stages,queries,turns. Runs the sources, not the built package: the plans
 * are not public. The best go to `PLANS` in src/library/attention.ts.
 */
import { attentionBy } from '../../src/library/attention.js';
import { sharedBytesOf } from '../../src/library/warp-group-attention.js';
import type { AttentionPlan } from '../../src/library/warp-group-attention.js';
import { proveAttention } from './attention-contender.js';
import { comparePlans } from './attention-plans.js';

const planOf = (text: string): AttentionPlan => {
  const [rows, keys, stages, queries, turns] = text.split(',').map(Number);
  return {
    ...{ rows: rows!, keys: keys!, stages: stages!, queries: queries! },
    turns: turns === 1,
  };
};

await comparePlans({
  request: 'attention',
  title: 'attention(…)',
  products: 2,
  rounds: 9,
  operands: 3,
  plans: {
    64: ['192,128,2,2,1', '192,128,2,2,0', '192,112,2,2,1', '192,96,3,2,1', '128,192,2,2,1'],
    128: ['128,128,2,2,1', '128,128,2,2,0', '128,176,2,1,1', '128,112,2,2,1', '192,80,2,1,1'],
    192: ['128,96,2,1,1', '128,112,2,1,1', '128,80,2,1,1'],
    256: ['128,80,2,1,1', '128,80,2,1,0', '128,64,2,1,1'],
  },
  begin: (operands, channels, causal) => {
    const [q, k, v] = operands as unknown as [never, never, never];
    return {
      variant(text) {
        const plan = text === '' ? undefined : planOf(text);
        const op = attentionBy(plan, q, k, v, { causal });
        return {
          sharedBytes: plan === undefined ? 0 : sharedBytesOf(plan, channels),
          async prove(stream) {
            using first = await op.runOn(stream);
            await proveAttention([q, k, v, first as never], causal);
          },
          run: (stream) =>
            op.runOn(stream).then((result) => () => {
              result.close();
            }),
        };
      },
    };
  },
});
