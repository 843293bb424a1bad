// Reorders a block whose addresses can be computed before anything else in it: all accesses are
// checked at its beginning, and if one fails, the block can still run in another way, since the
// instructions before the checks can run again.

import type { Inst, Register } from '../analysis/program.js';
import { accessOf, rangesOf } from './access-ranges.js';
import type { FoundAccess } from './access-ranges.js';
import type { BlockCode, CodePlan } from './code-plan.js';
import type { LaneEmitter } from './lane-emitter.js';
import type { LaneKernelEmitter } from './lane-kernel.js';
import { isPure } from './spread.js';

/**
 * Adds the instructions that compute a register's value at an instruction; false if they are more
 * than sums of values that are uniform or step evenly.
 */
function collect(
  e: LaneEmitter,
  insts: readonly Inst[],
  register: Register,
  at: number,
  needed: Set<number>,
): boolean {
  for (let index = at - 1; index >= 0; index--) {
    const inst = insts[index]!;
    if (!inst.defs.includes(register)) continue;
    if (needed.has(index)) return true;
    if (inst.predicate || !isPure(inst) || inst.defs.some((defined) => e.isVarying(defined)))
      return false;
    needed.add(index);
    return inst.uses.every((used) => collect(e, insts, used, index, needed));
  }
  return true;
}

/**
 * Whether the instructions may be moved to the beginning, and run a second time: no instruction
 * before them reads or writes what they write, and they do not read it themselves.
 */
function mayComeFirst(insts: readonly Inst[], chosen: ReadonlySet<number>): boolean {
  return [...chosen].every((index) =>
    insts[index]!.defs.every((register) =>
      insts
        .slice(0, index + 1)
        .every(
          ({ defs, uses }, at) =>
            (at === index || !defs.includes(register)) && !uses.includes(register),
        ),
    ),
  );
}

/** A pass: in the version for whole units the checks of each block come first. */
export function putChecksFirst({ whole, hoisted }: CodePlan, k: LaneKernelEmitter): void {
  if (!whole) return;
  k.inVersion(true, () => {
    for (const code of whole.blocks.values()) checkFirst(code, k, hoisted);
  });
}

/** `checked`: accesses that other blocks have checked by then. */
function checkFirst(code: BlockCode, k: LaneKernelEmitter, checked: ReadonlySet<Inst>): void {
  const { insts } = code.block;
  const first = new Set<number>();
  const accesses: FoundAccess[] = [];
  insts.forEach((inst, index) => {
    const found = checked.has(inst) ? undefined : accessOf(k, inst);
    const base = found?.address.base;
    if (!found || !base) return;
    const needed = new Set(first);
    if (!collect(k, insts, base, index, needed) || !mayComeFirst(insts, needed)) return;
    for (const each of needed) first.add(each);
    accesses.push({ inst, found });
  });
  if (!accesses.length) return;
  code.steps = [
    ...code.steps.filter((_, index) => first.has(index)),
    ...code.steps.filter((_, index) => !first.has(index)),
  ];
  code.run = { from: first.size, ranges: rangesOf(k, accesses) };
  // The instructions before the checks can run again.
  for (const { checks } of code.steps.slice(0, first.size)) if (checks) checks.place = 0;
}
