// Where every way round a loop waits at a barrier, a turn never goes round: the blocks between two
// waits can stand in an order in which control only goes ahead, with no loop around them.

import { successors } from '../analysis/blocks.js';
import type { Block } from '../analysis/blocks.js';

/**
 * Such an order of all blocks that a turn may come to from one of its entries; none where a turn
 * may go round.
 */
export function straightOrder(
  blocks: readonly Block[],
  entries: readonly number[],
  endsTurn: (block: Block) => boolean,
): number[] | undefined {
  const order: number[] = [];
  const seen = new Map<number, 'open' | 'done'>();
  for (const entry of entries) {
    if (seen.has(entry)) continue;
    const open: { block: number; left: number[] }[] = [];
    const enter = (block: number): void => {
      seen.set(block, 'open');
      open.push({ block, left: endsTurn(blocks[block]!) ? [] : [...successors(blocks[block]!)] });
    };
    enter(entry);
    for (let top = open.at(-1); top; top = open.at(-1)) {
      const next = top.left.pop();
      if (next === undefined) {
        seen.set(top.block, 'done');
        order.push(top.block);
        open.pop();
      } else if (seen.get(next) === 'open') {
        return undefined;
      } else if (!seen.has(next)) {
        enter(next);
      }
    }
  }
  return order.reverse();
}
