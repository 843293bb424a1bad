// In code for whole units: registers through which several blocks access memory at constant
// offsets, such as the address of a tile that each row is written into after a branch of its own.
// All their accesses are one range, which is checked once, where the register is computed. The
// blocks after the branches then have nothing to check, and engines compute the address before them
// instead of in each.

import { successors } from '../analysis/blocks.js';
import type { Block } from '../analysis/blocks.js';
import type { Inst, Register } from '../analysis/program.js';
import { accessOf, rangesOf } from './access-ranges.js';
import type { FoundAccess, Range } from './access-ranges.js';
import type { CodePlan } from './code-plan.js';
import type { LaneEmitter } from './lane-emitter.js';
import type { LaneKernelEmitter } from './lane-kernel.js';

/**
 * Accesses after branches that justify a check ahead of them: it is wasted if no branch is taken.
 */
const LEAST_ACCESSES = 3;

/**
 * The checks, by the instruction that computes the register. `entries`: blocks at which a turn may
 * begin.
 */
function findHoistedChecks(
  e: LaneEmitter,
  blocks: readonly Block[],
  order: readonly number[],
  entries: readonly number[],
): Map<Inst, Range[]> {
  const definitions = new Map<Register, { inst: Inst; block: number }[]>();
  const accesses: { block: number; found: FoundAccess }[] = [];
  for (const block of order) {
    for (const inst of blocks[block]!.insts) {
      for (const register of inst.defs)
        definitions.set(register, [...(definitions.get(register) ?? []), { inst, block }]);
      const found = accessOf(e, inst);
      if (found) accesses.push({ block, found: { inst, found } });
    }
    const { ending } = blocks[block]!;
    if ('inst' in ending)
      for (const register of ending.inst.defs)
        definitions.set(register, [
          ...(definitions.get(register) ?? []),
          { inst: ending.inst, block },
        ]);
  }
  const checks = new Map<Inst, Range[]>();
  for (const [register, [definition, another]] of definitions) {
    if (!definition || another || definition.inst.predicate || e.isVarying(register)) continue;
    const { inst, block } = definition;
    if (!blocks[block]!.insts.includes(inst)) continue;
    const through = accesses.filter(
      (access) => access.block !== block && access.found.found.address.base === register,
    );
    if (through.length < LEAST_ACCESSES) continue;
    const reached = reachedOnlyBy(block, blocks, order, entries);
    const ranges = rangesOf(
      e,
      through.filter((access) => reached.has(access.block)).map((access) => access.found),
    ).filter((range) => range.accesses.length >= LEAST_ACCESSES);
    if (ranges.length) checks.set(inst, [...(checks.get(inst) ?? []), ...ranges]);
  }
  return checks;
}

/** The blocks that a turn reaches only by way of `through`. */
function reachedOnlyBy(
  through: number,
  blocks: readonly Block[],
  order: readonly number[],
  entries: readonly number[],
): Set<number> {
  const only = new Set(order);
  const open = [order[0]!, ...entries].filter((block) => block !== through);
  for (let block = open.pop(); block !== undefined; block = open.pop()) {
    if (!only.delete(block)) continue;
    for (const to of successors(blocks[block]!)) if (to !== through) open.push(to);
  }
  only.delete(through);
  return only;
}

/** A pass: checks in the version for whole units that serve several blocks. */
export function hoistChecks(code: CodePlan, k: LaneKernelEmitter): void {
  if (!code.whole) return;
  const { blocks, shape } = k.kernel;
  const checks = findHoistedChecks(k, blocks, shape.order, k.frames.entries);
  code.hoisted = new Set(
    [...checks.values()].flat().flatMap(({ accesses }) => accesses.map(({ inst }) => inst)),
  );
  for (const { steps } of code.whole.blocks.values())
    steps.forEach((step, index) => {
      const ranges = checks.get(step.inst);
      if (ranges) step.checks = { ranges, place: index + 1 };
    });
}
