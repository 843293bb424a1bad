// A kernel whose units may diverge is written twice: once for whole units, without masks, and once
// in general. The first hands over to the second, by a side exit, if threads diverge at a branch,
// or if the checks of a run of accesses fail, with all registers in the same locals. The unit's
// next turn begins with the first again.

import type { Block } from '../analysis/blocks.js';
import type { Register } from '../analysis/program.js';
import type { BlockCode, CodePlan } from './code-plan.js';
import type { LaneEmitter } from './lane-emitter.js';
import type { LaneKernelEmitter } from './lane-kernel.js';
import { plainVersion } from './plain-code.js';
import type { LanePlan } from './plan.js';

/**
 * Instructions, times groups, of kernels that are written twice: more would take engines too long.
 */
const MOST_WORK = 2500;

/** Whether the kernel is worth writing twice. */
function handsOver(
  e: LaneEmitter,
  plan: LanePlan,
  blocks: readonly Block[],
  order: readonly number[],
): boolean {
  let instructions = 0;
  for (const index of order) instructions += blocks[index]!.insts.length + 1;
  return instructions * e.groups <= MOST_WORK && order.some((index) => plan.parts(index));
}

/** A pass: a version for whole units, with plain code so far. */
export function addWholeUnits(code: CodePlan, k: LaneKernelEmitter): void {
  const { blocks, shape } = k.kernel;
  if (handsOver(k, k.plan, blocks, shape.order)) code.whole = plainVersion(k);
}

/**
 * A pass: numbers each place at which the version for whole units hands over, and enters the
 * general version there. Registers that are live at one of them keep their locals.
 */
export function linkVersions(code: CodePlan, k: LaneKernelEmitter): void {
  if (!code.whole) return;
  // Numbers from one on are those of entries.
  let number = k.frames.entries.length + 1;
  let linked = false;
  for (const [index, whole] of code.whole.blocks) {
    const places = placesOf(whole, k);
    if (!places.length) continue;
    linked = true;
    code.general.blocks.get(index)!.entries = new Map(places.map((place) => [place, number++]));
    for (const { id } of carriedBy(whole.block, places, (register) => k.isBlockLocal(register)))
      k.carried.add(id);
  }
  if (!linked) code.whole = undefined;
}

/** Indices of the instructions of a block before which the general code may continue. */
function placesOf({ block, steps, run }: BlockCode, { plan, agreed }: LaneKernelEmitter): number[] {
  const places = new Set<number>();
  if (run) places.add(0);
  for (const { uniform, checks } of steps) {
    if (uniform) places.add(uniform.place);
    if (checks) places.add(checks.place);
  }
  const { ending, index, insts } = block;
  if (
    ending.kind === 'branch' &&
    plan.parts(index) &&
    !agreed?.has(ending.inst.predicate!.register)
  )
    places.add(insts.length);
  return [...places].sort((a, b) => a - b);
}

/** Registers local to the block that are live at one of the places. */
function carriedBy(
  { insts, ending }: Block,
  places: readonly number[],
  isLocal: (register: Register) => boolean,
): ReadonlySet<Register> {
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
  return carried;
}
