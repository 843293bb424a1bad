// If every path round a loop waits at a barrier, a turn has no loop: the blocks between two waits
// can be in an order in which control only goes forward, without a loop around them.

import { successors } from '../analysis/blocks.js';
import type { Block } from '../analysis/blocks.js';
import type { CodePlan } from './code-plan.js';
import type { LaneKernelEmitter } from './lane-kernel.js';
import { goesTogether } from './warp.js';

/**
 * Such an order of all blocks that a turn may reach from one of its entries; undefined if a turn
 * may go round a loop.
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

/** A pass: the order of a turn of whole units without loops. */
export function straighten({ whole }: CodePlan, k: LaneKernelEmitter): void {
  if (!whole || k.whole < 0) return;
  const { blocks } = k.kernel;
  // The first entry comes last, so that its blocks come first.
  whole.order = straightOrder(blocks, [...k.frames.live, 0], (block) => endsTurn(k, block));
}

/** Whether threads that reach the end of the block always wait there. */
export const endsTurn = (k: LaneKernelEmitter, { ending }: Block): boolean =>
  ending.kind === 'cut' && !goesTogether(k, ending.inst);

/**
 * A pass: if turns of whole units have no loops, these units have a loop of their own, which
 * excludes the general code and what engines keep in registers for it. A transpose in cache takes 5
 * % less time; a softmax, whose turns have loops, took 3 % more.
 */
export function separateWholeUnits(code: CodePlan): void {
  code.ownLoop = code.whole?.order !== undefined;
}
