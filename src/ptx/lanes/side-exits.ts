// A kernel whose units may be parted is written twice: once for units all of whose threads run and
// go the same way, without masks, and once in general. The first hands over to the second where
// threads take a branch differently, or where the checks of a run of accesses fail, with all
// registers in the same locals. The unit's next turn begins with the first again.

import type { Block } from '../analysis/blocks.js';
import type { Inst, Register } from '../analysis/program.js';
import type { Agreed } from './uniform-predicates.js';
import { checksFirst } from './check-hoisting-order.js';
import type { ChecksFirst } from './check-hoisting-order.js';
import type { HoistedChecks } from './hoisted-checks.js';
import type { LaneEmitter } from './lane-emitter.js';
import type { LanePlan } from './plan.js';

export interface Handover {
  /**
   * By index of the instruction in the block before which the general code goes on, in ascending
   * order: the number that says so.
   */
  numbers: ReadonlyMap<number, number>;
  /** The block's own registers that are alive at one of them. */
  carried: readonly Register[];
}

/** Instructions, times groups, of kernels that are written twice: more take engines too long. */
const MOST_WORK = 2500;

/** Whether the kernel is worth writing twice. */
export function handsOver(
  e: LaneEmitter,
  plan: LanePlan,
  blocks: readonly Block[],
  order: readonly number[],
): boolean {
  let instructions = 0;
  for (const index of order) instructions += blocks[index]!.insts.length + 1;
  return instructions * e.groups <= MOST_WORK && order.some((index) => plan.parts(index));
}

/** By block. Numbers go on from `first`. */
export function planHandovers(
  e: LaneEmitter,
  plan: LanePlan,
  blocks: readonly Block[],
  order: readonly number[],
  agreed: Agreed,
  hoisted: HoistedChecks,
  first: number,
  isLocal: (register: Register) => boolean,
): ReadonlyMap<number, Handover> {
  const found = new Map<number, Handover>();
  let number = first;
  for (const index of order) {
    const block = blocks[index]!;
    const { ending, insts } = block;
    const places = new Set<number>();
    const early = checksFirst(e, block, hoisted.of);
    if (early) places.add(0);
    insts.forEach((inst, at) => {
      if (agreed.comparison(inst)) places.add(at);
      if (hoisted.after.has(inst)) places.add(placeAfter(early, block, inst));
    });
    if (
      ending.kind === 'branch' &&
      plan.parts(index) &&
      !agreed.has(ending.inst.predicate!.register)
    )
      places.add(insts.length);
    if (!places.size) continue;
    const numbers = new Map([...places].sort((a, b) => a - b).map((place) => [place, number++]));
    const carried = new Set<Register>();
    for (const place of places) {
      const before = new Set(insts.slice(0, place).flatMap((inst) => inst.defs));
      const after = [
        ...insts.slice(place).flatMap((inst) => inst.uses),
        ...('inst' in ending ? ending.inst.uses : []),
      ];
      for (const register of after)
        if (before.has(register) && isLocal(register)) carried.add(register);
    }
    found.set(index, { numbers, carried: [...carried] });
  }
  return found;
}

/**
 * Where the general code goes on if a check behind an instruction fails: what has come before the
 * checks of the block can be done again.
 */
export function placeAfter(early: ChecksFirst | undefined, { insts }: Block, inst: Inst): number {
  return early && early.block.insts.indexOf(inst) < early.run.from ? 0 : insts.indexOf(inst) + 1;
}
