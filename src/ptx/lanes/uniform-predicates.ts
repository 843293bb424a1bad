// Predicates that decide only branches, and on which the threads of a unit nearly always agree:
// comparisons of stepping values with uniform ones, and logic on such predicates. Code for whole
// units has them as scalars, the first thread's, and hands over to the general code before a
// comparison on which the threads do not agree.

import type { Block } from '../analysis/blocks.js';
import type { Liveness } from '../analysis/liveness.js';
import type { Arg, Inst, Register } from '../analysis/program.js';
import type { CodePlan } from './code-plan.js';
import { comparisonOf } from './guards.js';
import type { Guard } from './guards.js';
import type { LaneEmitter } from './lane-emitter.js';
import type { LaneKernelEmitter } from './lane-kernel.js';
import type { LanePlan } from './plan.js';

export interface Agreed {
  has(register: Register): boolean;
  /** The comparison of an instruction whose result is such a predicate. */
  comparison(inst: Inst): Guard | undefined;
}

const LOGIC = new Set(['and', 'or', 'xor', 'not', 'mov']);

const isLogic = ({ mnemonic, modifiers, predicate }: Inst): boolean =>
  LOGIC.has(mnemonic) && modifiers.length === 1 && modifiers[0] === 'pred' && !predicate;

/**
 * `entries`: blocks at which threads may be resumed. Predicates that are live there are kept as
 * they are.
 */
function planAgreed(
  e: LaneEmitter,
  plan: LanePlan,
  blocks: readonly Block[],
  order: readonly number[],
  liveness: Liveness,
  entries: readonly number[],
): Agreed {
  const candidates = new Map<number, Register>();
  const comparisons = new Map<Inst, Guard>();
  const isScalar = (arg: Arg): boolean =>
    arg.kind === 'not'
      ? isScalar(arg.operand)
      : arg.kind === 'integer' ||
        (arg.kind === 'register' &&
          (candidates.has(arg.register.id) || plan.spread(arg.register).stride === 0));
  for (const index of order) {
    const { insts } = blocks[index]!;
    insts.forEach((inst, at) => {
      for (const register of inst.defs)
        if (register.type.kind === 'predicate' && e.isVarying(register) && !e.isConstant(register))
          candidates.set(register.id, register);
      // Nothing can hand over within a run of accesses that are checked together.
      const guard = insts
        .slice(at + 1)
        .every(({ mnemonic }) => mnemonic !== 'ld' && mnemonic !== 'st')
        ? comparisonOf(e, inst)
        : undefined;
      if (guard) comparisons.set(inst, guard);
    });
  }
  for (const entry of [0, ...entries])
    for (const { id } of liveness.liveIn(entry)) candidates.delete(id);
  for (let before = -1; before !== candidates.size;) {
    before = candidates.size;
    for (const index of order) {
      const { insts, ending } = blocks[index]!;
      for (const inst of insts) {
        const made = comparisons.has(inst) || (isLogic(inst) && inst.args.slice(1).every(isScalar));
        if (!made) for (const { id } of inst.defs) candidates.delete(id);
        if (!isLogic(inst) || !inst.defs.every(({ id }) => candidates.has(id)))
          for (const { id } of inst.uses) candidates.delete(id);
      }
      if (!('inst' in ending)) continue;
      for (const { id } of ending.inst.defs) candidates.delete(id);
      if (ending.kind !== 'branch') for (const { id } of ending.inst.uses) candidates.delete(id);
    }
  }
  return {
    has: (register) => candidates.has(register.id),
    comparison: (inst) =>
      inst.defs.every(({ id }) => candidates.has(id)) ? comparisons.get(inst) : undefined,
  };
}

/** A pass: comparisons in the version for whole units whose results are such predicates. */
export function makeUniform(code: CodePlan, k: LaneKernelEmitter): void {
  if (!code.whole) return;
  const { blocks, shape, liveness } = k.kernel;
  const agreed = planAgreed(k, k.plan, blocks, shape.order, liveness, k.frames.live);
  k.agreed = agreed;
  for (const { steps } of code.whole.blocks.values())
    steps.forEach((step, place) => {
      const comparison = agreed.comparison(step.inst);
      if (comparison) step.uniform = { comparison, place, side: undefined };
    });
}
