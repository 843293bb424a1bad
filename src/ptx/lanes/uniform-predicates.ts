// Predicates that decide only branches, and on which the threads of a unit nearly always agree:
// comparisons of stepping values with uniform ones, and logic on such predicates. Code for whole
// units has them as scalars, the first thread's, and hands over to the general code before a
// comparison on which the threads do not agree.

import type { Block } from '../analysis/blocks.js';
import type { Liveness } from '../analysis/liveness.js';
import type { Arg, Inst, Register } from '../analysis/program.js';
import type { CodePlan } from './code-plan.js';
import { INTEGER_COMPARISONS } from './comparison.js';
import type { LaneEmitter } from './lane-emitter.js';
import type { LaneKernelEmitter } from './lane-kernel.js';
import type { LanePlan } from './plan.js';

/** A comparison of a value that steps from thread to thread with a uniform one. */
export interface SteppingComparison {
  inst: Inst;
  /** The operand that steps, and its step. */
  stepping: Arg;
  stride: number;
  signed: boolean;
  operation: string;
}

export interface Agreed {
  has(register: Register): boolean;
  /** The comparison of an instruction whose result is such a predicate. */
  comparison(inst: Inst): SteppingComparison | undefined;
}

const LOGIC = new Set(['and', 'or', 'xor', 'not', 'mov']);

const isLogic = ({ mnemonic, modifiers, predicate }: Inst): boolean =>
  LOGIC.has(mnemonic) && modifiers.length === 1 && modifiers[0] === 'pred' && !predicate;

/** The instruction as such a comparison, which is one of order. */
function comparisonOf(e: LaneEmitter, inst: Inst): SteppingComparison | undefined {
  if (inst.traits.meaning !== 'comparison' || inst.predicate) return undefined;
  // A result that is known at compile time needs no test.
  if (inst.defs.some((register) => e.isConstant(register))) return undefined;
  const [comparison, name, ...rest] = inst.modifiers;
  const [, left, right] = inst.args;
  const row = INTEGER_COMPARISONS[comparison ?? ''];
  if (
    !row ||
    row.op === 'eq' ||
    row.op === 'ne' ||
    rest.length ||
    inst.args.length !== 3 ||
    inst.args[0]!.kind !== 'register' ||
    !left ||
    !right
  )
    return undefined;
  if (name !== 's32' && name !== 'u32') return undefined;
  const [a, b] = [e.stride(left), e.stride(right)];
  const stepping = b === 0 ? left : a === 0 ? right : undefined;
  const stride = b === 0 ? a : b;
  if (!stepping || !stride || stepping.kind === 'not') return undefined;
  return { inst, stepping, stride, signed: name === 's32' && !row.unsigned, operation: row.op };
}

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
  const comparisons = new Map<Inst, SteppingComparison>();
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
      const comparison = insts
        .slice(at + 1)
        .every(({ mnemonic }) => mnemonic !== 'ld' && mnemonic !== 'st')
        ? comparisonOf(e, inst)
        : undefined;
      if (comparison) comparisons.set(inst, comparison);
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
