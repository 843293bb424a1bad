// Reorders a block whose addresses can be computed before anything else in it: all accesses are
// checked at its beginning, and if one fails, the block can still run in another way, since the
// instructions before the checks can run again.

import type { Block } from '../analysis/blocks.js';
import type { Inst, Register } from '../analysis/program.js';
import type { BlockCode, CodePlan } from './code-plan.js';
import type { LaneEmitter } from './lane-emitter.js';
import type { LaneKernelEmitter } from './lane-kernel.js';
import { reorder } from './plain-code.js';
import { isPure } from './spread.js';
import { accessOf, rangesOf } from './unchecked-accesses.js';
import type { FoundAccess, UncheckedRun } from './unchecked-accesses.js';

export interface ChecksFirst {
  /** The block with the instructions first that its addresses need. */
  block: Block;
  /** The run of the instructions after them. */
  run: UncheckedRun;
}

/** `checked`: accesses that other blocks have checked by then. */
export function checksFirst(
  e: LaneEmitter,
  block: Block,
  checked?: ReadonlyMap<Inst, unknown>,
): ChecksFirst | undefined {
  const { insts } = block;
  const first = new Set<number>();
  const accesses: FoundAccess[] = [];
  insts.forEach((inst, index) => {
    const found = checked?.has(inst) ? undefined : accessOf(e, inst);
    const base = found?.address.base;
    if (!found || !base) return;
    const needed = new Set(first);
    if (!collect(e, insts, base, index, needed) || !mayComeFirst(insts, needed)) return;
    for (const each of needed) first.add(each);
    accesses.push({ index, inst, found });
  });
  if (!accesses.length) return undefined;
  const order = [...first].sort((a, b) => a - b);
  return {
    block: {
      ...block,
      insts: [
        ...order.map((index) => insts[index]!),
        ...insts.filter((_, index) => !first.has(index)),
      ],
    },
    run: { from: order.length, ...rangesOf(e, accesses) },
  };
}

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
    for (const code of whole.blocks.values()) checkFirst(code, k, hoisted?.of);
  });
}

/** `checked`: accesses that other blocks have checked by then. */
export function checkFirst(
  code: BlockCode,
  k: LaneKernelEmitter,
  checked?: ReadonlyMap<Inst, unknown>,
): void {
  const first = checksFirst(k, code.block, checked);
  if (!first) return;
  reorder(code, first.block);
  code.run = { ...first.run, twice: false };
  // The instructions before the checks can run again.
  for (const { checks } of code.steps.slice(0, first.run.from)) if (checks) checks.place = 0;
}
