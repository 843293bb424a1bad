// A kernel whose units may be parted is written twice: once for units all of whose threads run and go the same way, without
// masks, and once in general. The first hands over to the second where threads take a branch differently, or where the
// checks of a run of accesses fail, with all registers in the same locals. The unit's next turn begins with the first again.

import type { Block } from '../analysis/blocks.js';
import type { Register } from '../analysis/program.js';
import type { Shape } from '../analysis/regions.js';
import type { LaneEmitter } from './lane-emitter.js';
import { findGuard } from './guards.js';
import type { LanePlan } from './plan.js';
import { findUncheckedRun } from './unchecked.js';

/** Numbers of a block that go on from those of the entries: the general code goes on there. */
export interface Handover {
  /** Before the block's unchecked run. */
  atRun: number | undefined;
  /** Before the branch at its end. */
  atEnd: number | undefined;
  /** The block's own registers that are alive there. */
  carried: readonly Register[];
}

/** Instructions, times groups, of kernels that are written twice: more take engines too long. */
const MOST_WORK = 2500;

/** By block; none if the kernel is not to be written twice. */
export function planHandovers(e: LaneEmitter, plan: LanePlan, blocks: readonly Block[], { order }: Shape, first: number, isLocal: (register: Register) => boolean): ReadonlyMap<number, Handover> {
  const found = new Map<number, Handover>();
  let instructions = 0;
  for (const index of order) instructions += blocks[index]!.insts.length + 1;
  if (instructions * e.groups > MOST_WORK || !order.some(index => plan.parts(index))) return found;
  let number = first;
  for (const index of order) {
    const block = blocks[index]!;
    const { ending, insts } = block;
    const run = findUncheckedRun(e, block);
    const parts = plan.parts(index);
    if (!run && !parts) continue;
    const carried = new Set<Register>();
    if ('inst' in ending && parts) {
      const guard = findGuard(e, block, isLocal(ending.inst.predicate!.register));
      for (const register of guard ? guard.inst.uses : ending.inst.uses) carried.add(register);
    }
    if (run) {
      const before = new Set(insts.slice(0, run.from).flatMap(inst => inst.defs));
      const after = [...insts.slice(run.from).flatMap(inst => inst.uses), ...'inst' in ending ? ending.inst.uses : []];
      for (const register of after) if (before.has(register)) carried.add(register);
    }
    found.set(index, { atRun: run ? number++ : undefined, atEnd: parts ? number++ : undefined, carried: [...carried].filter(isLocal) });
  }
  return found;
}
