// Loops that all of their threads leave for the same block: at the loop's end it is known which
// threads have left it, without a mask on the way.

import { successors } from '../analysis/blocks.js';
import type { Region } from '../analysis/regions.js';
import type { CodePlan } from './code-plan.js';
import type { LaneKernelEmitter } from './lane-kernel.js';

/** A pass: finds such loops in general code. */
export function findLoopExits({ general }: CodePlan, k: LaneKernelEmitter): void {
  for (const loop of general.loops.values()) loop.exit = onlyExit(k, loop.region);
}

/**
 * The block to which every thread that leaves a loop goes, if nothing else ends its stay there and
 * some stay longer than others.
 */
function onlyExit(k: LaneKernelEmitter, region: Region): number | undefined {
  const {
    kernel: { blocks },
    plan,
  } = k;
  if (plan.convergent(region.header)) return undefined;
  // The masks of a unit that is suspended as a whole contain which threads wait where, which has to
  // be known by then.
  if (k.passes && region.items.some((item) => typeof item !== 'number')) return undefined;
  const exits = new Set<number>();
  for (const member of region.members) {
    const { ending } = blocks[member]!;
    if (ending.kind === 'cut' || ending.kind === 'return' || ending.kind === 'exit')
      return undefined;
    for (const to of successors(blocks[member]!)) if (!region.members.has(to)) exits.add(to);
  }
  const [to, ...others] = exits;
  return others.length || to === undefined || (k.passes && plan.leaves(to)) ? undefined : to;
}
