// Branches and comparisons on which the threads of a unit nearly always agree, and the hand-over
// from code for whole units to the general code if they do not.

import type { Block } from '../../analysis/blocks.js';
import type { Register } from '../../analysis/program.js';
import type { BlockCode, UniformComparison } from '../code-plan.js';
import { testAlike } from '../guards.js';
import type { Guard } from '../guards.js';
import type { LaneKernelEmitter } from '../lane-kernel.js';
import type { ShortSide } from '../short-branches.js';
import { isPure } from '../spread.js';
import { clearInGeneralForm, handedRegisters, knownAt } from './clearing.js';
import { jumpTo, partThreads, sendTo } from './divergence.js';
import { saveRegisters } from './frames.js';

/** Leaves code for whole units: the general code continues before an instruction of the block. */
export function handOver(k: LaneKernelEmitter, block: Block, place: number): void {
  const { code } = k;
  for (const local of k.generalActive) code.v128([-1, -1, -1, -1]).set(local);
  const known = new Set(knownAt(k, block, place));
  clearInGeneralForm(
    k,
    [...handedRegisters(k)].filter((register) => !known.has(register)),
  );
  for (const register of known) {
    if (!k.agreed?.has(register) || k.isBlockLocal(register)) continue;
    for (const local of k.laneLocal(register))
      code.i32(0).get(k.registerLocal(register)).op('i32.sub').op('i32x4.splat').set(local);
  }
  code.i32(k.codePlan.general.blocks.get(block.index)!.entries.get(place)!).set(k.entryNumber);
  k.branchTo(k.handedLabel);
}

/** A comparison in code for whole units: the threads agree, or the general code continues. */
export function emitAgreement(
  k: LaneKernelEmitter,
  block: Block,
  { comparison, place, side }: UniformComparison,
): void {
  const { code } = k;
  const [target] = comparison.inst.defs;
  const outcome = k.newLocal('i32');
  eitherAlike(
    k,
    comparison,
    outcome,
    () => undefined,
    () => {
      if (!side) {
        handOver(k, block, place);
        return;
      }
      k.disagreed = target;
      k.emitInst(comparison.inst);
      emitSide(k, block, side, target!);
      k.disagreed = undefined;
      k.releaseRegister(target!);
      jumpTo(k, block.index, side.join, false);
    },
  );
  k.endInstruction();
  code.get(outcome).set(k.registerLocal(target!));
}

/** Code for a unit whose threads compare alike, and for one whose threads do not. */
function eitherAlike(
  k: LaneKernelEmitter,
  guard: Guard,
  outcome: number,
  alike: () => void,
  otherwise: () => void,
): void {
  const [done, differs] = [{}, {}];
  k.openLabel('block', done);
  k.openLabel('block', differs);
  testAlike(k, guard, outcome, () => {
    k.branchTo(differs, 'br_if');
  });
  k.endInstruction();
  k.conditionally(alike);
  k.branchTo(done);
  k.closeLabel();
  k.conditionally(otherwise);
  k.closeLabel();
}

/** A branch in code for whole units: if the threads do not agree, the general code takes it. */
export function emitAgreed(k: LaneKernelEmitter, { block, ending }: BlockCode): void {
  const { code } = k;
  const { inst, yes, no } = block.ending as Block['ending'] & { kind: 'branch' };
  const { register, negated } = inst.predicate!;
  const differ = (): void => {
    const { side } = ending;
    if (side) {
      emitSide(k, block, side, register);
      jumpTo(k, block.index, side.join, false);
    } else {
      handOver(k, block, block.insts.length);
    }
  };
  if (!k.isVarying(register)) {
    // They always differ.
    differ();
    return;
  }
  const outcome = k.newLocal('i32');
  k.pushNarrowed(k.laneLocal(register));
  code
    .tee(outcome)
    .i32(k.width === 32 ? -1 : (1 << k.width) - 1)
    .op('i32.eq');
  const [all, none] = negated ? [no, yes] : [yes, no];
  k.when(() => {
    jumpTo(k, block.index, all, false);
  });
  code.get(outcome);
  k.when(differ);
  jumpTo(k, block.index, none);
}

/** In code for whole units: a block that runs for the threads that the branch before it selects. */
function emitSide(
  k: LaneKernelEmitter,
  from: Block,
  { block, negated }: ShortSide,
  register: Register,
): void {
  const lastUse = new Map<Register, number>();
  block.insts.forEach((inst, index) => {
    for (const used of [...inst.uses, ...inst.defs])
      if (k.isBlockLocal(used)) lastUse.set(used, index);
  });
  k.block = block;
  // A store of some threads is not one of all.
  const { unchecked } = k;
  k.unchecked = undefined;
  block.insts.forEach((inst, index) => {
    const own = isPure(inst) && inst.defs.every((defined) => k.isOwn(defined));
    k.emitInst(inst, own ? undefined : { register, negated });
    for (const [used, last] of lastUse) if (last === index) k.releaseRegister(used);
  });
  k.unchecked = unchecked;
  saveRegisters(k, k.frames.spills.early(block.index));
  k.block = from;
}

/** A branch on which the threads nearly always agree. */
export function emitGuard(k: LaneKernelEmitter, block: Block, guard: Guard): void {
  const { code } = k;
  const ending = block.ending as Block['ending'] & { kind: 'branch' };
  const { register, negated } = ending.inst.predicate!;
  k.laneLocal(register);
  const outcome = k.newLocal('i32');
  eitherAlike(
    k,
    guard,
    outcome,
    () => {
      code.get(outcome);
      if (negated) code.op('i32.eqz');
      code.op('if').byte(0x40);
      k.nest(() => {
        sendTo(k, block.index, ending.yes);
      });
      code.op('else');
      k.nest(() => {
        sendTo(k, block.index, ending.no);
      });
      code.op('end');
    },
    () => {
      k.emitInst(guard.inst);
      k.inst = ending.inst;
      partThreads(k, block.index, register, negated, ending.yes, ending.no);
    },
  );
}
