// Branches and comparisons on which the threads of a unit nearly always agree, and the hand-over
// from code for whole units to the general code if they do not.

import type { Block } from '../../analysis/blocks.js';
import type { Register } from '../../analysis/program.js';
import { scalarType } from '../../scalar-types.js';
import { opcodeNamed } from '../../wasm/opcodes.js';
import type { BlockCode, UniformComparison } from '../code-plan.js';
import type { LaneKernelEmitter } from '../lane-kernel.js';
import type { ShortSide } from '../short-branches.js';
import { isPure } from '../spread.js';
import type { SteppingComparison } from '../uniform-predicates.js';
import { clearInGeneralForm, handedRegisters, knownAt } from './clearing.js';
import { jumpTo } from './divergence.js';
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
  const [done, differs] = [{}, {}];
  k.openLabel('block', done);
  k.openLabel('block', differs);
  testAlike(k, comparison, outcome, differs);
  k.endInstruction();
  k.branchTo(done);
  k.closeLabel();
  k.conditionally(() => {
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
  });
  k.closeLabel();
  k.endInstruction();
  code.get(outcome).set(k.registerLocal(target!));
}

/**
 * Branches to `differs` where the threads of the unit do not all compare alike, or where stepping
 * values pass the end of their range within the unit. Else the result is in the local `outcome`.
 */
function testAlike(
  k: LaneKernelEmitter,
  { inst, stepping, stride, signed, operation }: SteppingComparison,
  outcome: number,
  differs: object,
): void {
  const { code } = k;
  const type = scalarType(signed ? 's32' : 'u32');
  const [, left, right] = inst.args;
  const isLeft = stepping === left;
  const bound = isLeft ? right! : left!;
  k.inst = inst;
  const first = k.temp('i32');
  k.push(stepping, type);
  code.set(first);
  // The bound is between the first and the last value, modulo 2^32. Strides are less than 2^26, and
  // units have 32 threads: values pass an end of their range at most once.
  const steps = Math.abs(stride) * (k.width - 1);
  if (stride > 0) {
    k.push(bound, type);
    code.get(first);
  } else {
    code.get(first);
    k.push(bound, type);
  }
  code.op('i32.sub');
  // A value that equals the bound is on the side of the greater ones, or of the less.
  const withGreater = (operation === 'lt' || operation === 'ge') === isLeft;
  if (withGreater === stride > 0) code.i32(1).op('i32.sub');
  code.i32(steps).op('i32.lt_u');
  k.branchTo(differs, 'br_if');
  const [least, greatest] = signed ? [-(2 ** 31), 2 ** 31 - 1] : [0, -1];
  code.get(first);
  if (stride > 0) code.i32((greatest - steps) | 0).op(signed ? 'i32.gt_s' : 'i32.gt_u');
  else code.i32((least + steps) | 0).op(signed ? 'i32.lt_s' : 'i32.lt_u');
  k.branchTo(differs, 'br_if');
  if (isLeft) code.get(first);
  k.push(bound, type);
  if (!isLeft) code.get(first);
  code.op(opcodeNamed(`i32.${operation}${signed ? '_s' : '_u'}`)).set(outcome);
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
