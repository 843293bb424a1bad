// Engines postpone arithmetic until something with an effect needs it, and loads come in order: a
// long run would load everything first, into registers that a processor does not have. An anchor, a
// store of a result, now and then keeps the two in step.

import type { Inst } from '../analysis/program.js';
import type { Anchor, CodePlan } from './code-plan.js';
import type { LaneKernelEmitter } from './lane-kernel.js';
import { isPure } from './spread.js';

/** A pass: counts loads, and marks results that may be anchored. */
export function anchorResults({ general, whole }: CodePlan, k: LaneKernelEmitter): void {
  for (const version of whole ? [general, whole] : [general])
    for (const { steps } of version.blocks.values()) {
      const insts = steps.map(({ inst }) => inst);
      k.inVersion(version === whole, () => {
        steps.forEach((step, index) => {
          step.anchor = anchorOf(k, insts, index);
        });
      });
    }
}

function anchorOf(k: LaneKernelEmitter, insts: readonly Inst[], index: number): Anchor | undefined {
  const inst = insts[index]!;
  const [register] = inst.defs;
  if (inst.mnemonic === 'ld')
    return { kind: 'load', vectors: register && k.isVarying(register) ? k.groups : 1 };
  return register && isPure(inst) && k.isVarying(register)
    ? { kind: 'result', stored: isStoredNext(insts, index) }
    : undefined;
}

/**
 * Before anything else is loaded, a store takes the instruction's result, or what is computed from
 * it: that is an anchor already.
 */
function isStoredNext(insts: readonly Inst[], index: number): boolean {
  const known = new Set(insts[index]!.defs);
  for (const inst of insts.slice(index + 1)) {
    if (inst.mnemonic === 'ld') return false;
    if (!inst.uses.some((register) => known.has(register))) continue;
    if (inst.mnemonic === 'st') return true;
    if (isPure(inst)) for (const register of inst.defs) known.add(register);
  }
  return false;
}
