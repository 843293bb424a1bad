// Loads of one block through the same base register at constant offsets, whose addresses differ
// freely from thread to thread: the pixels of a window, the components of a point. The first load
// checks the addresses of all of them, which are then one vector for each group plus constants; the
// others use that result. If it failed, each of them makes its own check.

import type { Block } from '../analysis/blocks.js';
import type { Inst } from '../analysis/program.js';
import type { CodePlan } from './code-plan.js';
import type { LaneEmitter } from './lane-emitter.js';
import type { LaneKernelEmitter } from './lane-kernel.js';
import { access } from './places.js';
import type { Access } from './places.js';
import { isPure } from './spread.js';

export interface JointCheck {
  first: Inst;
  /** The least and the greatest offset. */
  start: number;
  end: number;
  /**
   * The local that is true if all addresses of all loads are good, and each group's addresses at
   * the least offset; present once the first load is written.
   */
  written?: { good: number; addresses: readonly number[] };
}

/** Offsets further apart than this are not joined. */
const FURTHEST = 4096;

/**
 * The checks of a block, by load. Between the first load and the last one the base keeps its value,
 * and code for whole units does not hand over to the general code, in which the first load would
 * not have run.
 */
function jointChecks(e: LaneEmitter, block: Block): ReadonlyMap<Inst, JointCheck> {
  const checks = new Map<Inst, JointCheck>();
  const open = new Map<string, { check: JointCheck; base: number; loads: Inst[] }>();
  const close = (key: string): void => {
    const { check, loads } = open.get(key)!;
    if (loads.length > 1) for (const inst of loads) checks.set(inst, check);
    open.delete(key);
  };
  for (const inst of block.insts) {
    const found = loadOf(e, inst);
    if (found) {
      const {
        address: { base, offset },
        size,
      } = found;
      const key = `${base!.id} ${size} ${((offset % size) + size) % size}`;
      const group = open.get(key);
      if (
        group &&
        Math.max(group.check.end, offset) - Math.min(group.check.start, offset) <= FURTHEST
      ) {
        group.check.start = Math.min(group.check.start, offset);
        group.check.end = Math.max(group.check.end, offset);
        group.loads.push(inst);
      } else {
        if (group) close(key);
        open.set(key, {
          check: { first: inst, start: offset, end: offset },
          base: base!.id,
          loads: [inst],
        });
      }
    }
    const passes = isPure(inst) || inst.mnemonic === 'ld' || inst.mnemonic === 'st';
    const compares = inst.defs.some(({ type }) => type.kind === 'predicate');
    for (const [key, { base }] of [...open])
      if (!passes || compares || inst.defs.some(({ id }) => id === base)) close(key);
  }
  for (const key of [...open.keys()]) close(key);
  return checks;
}

function loadOf(e: LaneEmitter, inst: Inst): Access | undefined {
  if (inst.mnemonic !== 'ld' || inst.predicate) return undefined;
  const before = e.inst;
  e.inst = inst;
  const found = access(e, inst.args[1], inst.args[0]);
  e.inst = before;
  return found?.wide && !found.shared && found.stride === undefined && found.steps === undefined
    ? found
    : undefined;
}

/** A pass: loads of adjacent places whose addresses differ freely. */
export function joinChecks({ general }: CodePlan, k: LaneKernelEmitter): void {
  for (const { block } of general.blocks.values())
    for (const [inst, check] of jointChecks(k, block)) k.joint.set(inst, check);
}
