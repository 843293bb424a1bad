// The code of a basic block: its instructions, with the checks of their accesses made together
// where that is possible, and its end.

import type { Block } from '../../analysis/blocks.js';
import type { Inst, Register } from '../../analysis/program.js';
import { checksFirst } from '../check-hoisting-order.js';
import type { ChecksFirst } from '../check-hoisting-order.js';
import { findGuard } from '../guards.js';
import type { Guard } from '../guards.js';
import type { LaneKernelEmitter } from '../lane-kernel.js';
import { access } from '../places.js';
import { placeAfter } from '../side-exits.js';
import { isPure } from '../spread.js';
import { checkRun, findUncheckedRun } from '../unchecked-accesses.js';
import type { UncheckedRun } from '../unchecked-accesses.js';
import { emitAgreement, emitGuard, handOver } from './agreement.js';
import { emitEnding } from './endings.js';
import { saveRegisters } from './frames.js';

/**
 * Instructions that are written group by group: processors look so far ahead that the groups'
 * chains of them overlap.
 */
const LONGEST_GROUPED = 32;

/** Vectors that are loaded before a result is written down. */
const LOADS_AHEAD = 10;

export function guardOf(k: LaneKernelEmitter, block: Block): Guard | undefined {
  const { index, ending } = block;
  return k.plan.parts(index) && 'inst' in ending
    ? findGuard(k, block, k.isBlockLocal(ending.inst.predicate!.register))
    : undefined;
}

/** `early`: the run whose checks are all made before it, and where to go if one fails. */
export function emitBlock(
  k: LaneKernelEmitter,
  block: Block,
  early?: { run: UncheckedRun; otherwise: object },
): void {
  k.block = block;
  const agreeing = k.everyone && !k.unparted;
  const first = agreeing ? checksFirst(k, block, k.checksAhead?.of) : undefined;
  const { insts } = first?.block ?? block;
  const lastUse = new Map<number, number>();
  insts.forEach((inst, index) => {
    for (const register of inst.uses) if (k.isBlockLocal(register)) lastUse.set(register.id, index);
    for (const register of inst.defs) if (k.isBlockLocal(register)) lastUse.set(register.id, index);
  });
  const { ending } = block;
  if ('inst' in ending) for (const register of ending.inst.uses) lastUse.delete(register.id);
  const release = (index: number, keep?: ReadonlySet<Register>): void => {
    for (const register of [...insts[index]!.uses, ...insts[index]!.defs]) {
      if (lastUse.get(register.id) === index && !keep?.has(register)) k.releaseRegister(register);
    }
  };
  const emit = (from: number, to: number, keep?: ReadonlySet<Register>): void => {
    emitGrouped(
      k,
      insts,
      from,
      to,
      (inst) => !(agreeing && k.agreed?.comparison(inst)) && !k.checksAhead?.after.has(inst),
      (inst, index) => {
        const comparison = agreeing ? k.agreed?.comparison(inst) : undefined;
        if (comparison) emitAgreement(k, block, comparison);
        else k.emitInst(inst);
        if (k.unchecked) anchorResult(k, insts, index);
        if (agreeing) checkBefore(k, block, inst, first);
      },
      (index) => {
        release(index, keep);
      },
    );
  };
  const guard = agreeing ? undefined : guardOf(k, block);
  // A guard's comparison waits for the branch.
  const count = insts.length - (guard ? 1 : 0);
  const run = first?.run ?? early?.run;
  const known =
    agreeing && insts.some((inst) => k.hoistedPlaces.has(inst)) ? k.hoistedPlaces : undefined;
  if (run) {
    emit(0, run.from);
    const rest = (otherwise: object): void => {
      const places = checkRun(k, run, () => {
        k.code.op('i32.eqz');
        k.branchTo(otherwise, 'br_if');
      });
      k.unchecked = known ? new Map([...known, ...places]) : places;
      emit(run.from, count);
      k.unchecked = undefined;
    };
    if (early) rest(early.otherwise);
    else
      emitUnless(k, rest, () => {
        handOver(k, block, 0);
      });
  } else if (agreeing) {
    k.unchecked = known;
    emit(0, count);
    k.unchecked = undefined;
  } else {
    emitGeneral(k, block, guard, count, emit);
  }
  saveRegisters(k, k.frames.spills.early(block.index));
  if (guard) emitGuard(k, block, guard);
  else emitEnding(k, block);
  k.endInstruction();
  if ('inst' in ending) for (const register of ending.inst.uses) k.releaseRegister(register);
}

/**
 * Writes instructions: group by group those around accesses whose places have been checked, where
 * that `may` be, and else by `one`. Engines keep loads and stores in their order, and have values
 * of one group in registers where those of all would go through memory; without any of them they
 * choose the order themselves. `release` is called behind each.
 */
export function emitGrouped(
  k: LaneKernelEmitter,
  insts: readonly Inst[],
  from: number,
  to: number,
  may: (inst: Inst) => boolean,
  one: (inst: Inst, index: number) => void,
  release: (index: number) => void,
): void {
  for (let index = from; index < to;) {
    let end = index;
    let accesses = 0;
    while (
      k.unchecked &&
      end < to &&
      end - index < LONGEST_GROUPED &&
      may(insts[end]!) &&
      k.goesByGroup(insts[end]!)
    )
      accesses += k.unchecked.has(insts[end++]!) ? 1 : 0;
    const grouped = accesses > 0 && end - index > 1;
    if (grouped) k.emitByGroup(insts.slice(index, end));
    for (end = Math.max(end, index + 1); index < end; index++) {
      if (!grouped) one(insts[index]!, index);
      release(index);
    }
  }
}

/**
 * Behind what computes a register: the check that all accesses through it in other blocks have in
 * common.
 */
export function checkBefore(
  k: LaneKernelEmitter,
  block: Block,
  inst: Inst,
  first: ChecksFirst | undefined,
): void {
  const ranges = k.checksAhead?.after.get(inst)?.map(({ range }) => range);
  if (!ranges) return;
  const places = checkRun(k, { ranges, stores: false }, () => {
    k.code.op('i32.eqz');
    k.when(() => {
      handOver(k, block, placeAfter(first, block, inst));
    });
  });
  for (const [access, place] of places) k.hoistedPlaces.set(access, place);
}

/**
 * Engines put off arithmetic until something with an effect needs it, and loads come in order: a
 * long run would load everything first, into registers that it does not have. Writing a result
 * down now and then keeps the two in step.
 */
export function anchorResult(k: LaneKernelEmitter, insts: readonly Inst[], index: number): void {
  const inst = insts[index]!;
  const [register] = inst.defs;
  if (inst.mnemonic === 'ld') {
    k.loadsAhead += register && k.isVarying(register) ? k.groups : 1;
    return;
  }
  if (!register || !isPure(inst) || !k.isVarying(register) || k.loadsAhead < LOADS_AHEAD) return;
  k.loadsAhead = 0;
  if (isStoredNext(insts, index)) return;
  const { code } = k;
  const locals = k.laneLocal(register);
  const room = k.temp('i32');
  k.pushRoom(16 * locals.length);
  code.set(room);
  locals.forEach((local, index) => {
    code
      .get(room)
      .get(local)
      .memory('v128.store', 16 * index);
  });
  k.endInstruction();
}

/**
 * Code that may leave for a label at its beginning, to go on with what leaves for good. That one
 * is emitted first, when no register of the block has been given up yet, and stands behind, where
 * it is in nobody's way.
 */
export function emitUnless(
  k: LaneKernelEmitter,
  body: (otherwise: object) => void,
  leave: () => void,
): void {
  const { code } = k;
  const [done, otherwise] = [{}, {}];
  k.openLabel('block', done);
  const start = code.length;
  k.conditionally(leave);
  const leaving = code.cut(start);
  k.openLabel('block', otherwise);
  body(otherwise);
  k.branchTo(done);
  k.closeLabel();
  code.append(leaving);
  k.closeLabel();
}

/** A block's instructions, which control may enter where code for a whole unit hands over. */
export function emitGeneral(
  k: LaneKernelEmitter,
  block: Block,
  guard: Guard | undefined,
  count: number,
  emit: (from: number, to: number, keep?: ReadonlySet<Register>) => void,
): void {
  const { code } = k;
  const run = findUncheckedRun(k, block);
  const write = (from: number, to: number): void => {
    if (!run || run.from < from || run.from >= to) {
      emit(from, to);
      return;
    }
    emit(from, run.from);
    emitBothWays(k, block, run, to, guard, (keep) => {
      emit(run.from, to, keep);
    });
  };
  const numbers = [...(k.handovers.get(block.index)?.numbers ?? [])];
  const upTo = (to: number): void => {
    const [place, number] = numbers.pop() ?? [0];
    if (number !== undefined && place > 0) {
      const label = {};
      k.openLabel('block', label);
      code.get(k.entryNumber).i32(number).op('i32.eq');
      k.branchTo(label, 'br_if');
      upTo(place);
      k.closeLabel();
    }
    write(place, to);
  };
  upTo(count);
  if (k.handovers.has(block.index)) code.i32(0).set(k.entryNumber);
}

/**
 * The run without checks if it can be, else with them. Registers alive around it have their
 * locals before.
 */
export function emitBothWays(
  k: LaneKernelEmitter,
  block: Block,
  run: UncheckedRun,
  end: number,
  guard: Guard | undefined,
  emit: (keep: ReadonlySet<Register>) => void,
): void {
  const { code } = k;
  const inside = new Set(block.insts.slice(run.from, end).flatMap((inst) => inst.defs));
  const outside = new Set<Register>();
  const ending = [
    ...('inst' in block.ending ? block.ending.inst.uses : []),
    ...(guard?.inst.uses ?? []),
    ...block.insts.slice(end).flatMap((inst) => inst.uses),
  ];
  for (const inst of block.insts.slice(run.from, end)) {
    for (const register of [...inst.uses, ...inst.defs])
      if (!k.isBlockLocal(register) || !inside.has(register)) outside.add(register);
  }
  for (const register of block.insts.slice(0, run.from).flatMap((inst) => inst.defs))
    if (inside.has(register)) outside.add(register);
  for (const register of ending) outside.add(register);
  for (const register of outside) {
    if (k.isVarying(register)) k.laneLocal(register);
    else k.registerLocal(register);
  }
  let tests = 0;
  const places = checkRun(k, run, () => {
    if (tests++) code.op('i32.and');
  });
  code.op('if').byte(0x40);
  k.unchecked = places;
  const { lanes, threads } = k.effort;
  k.nest(() => {
    emit(outside);
  });
  k.unchecked = undefined;
  Object.assign(k.effort, { lanes, threads });
  code.op('else');
  k.nest(() => {
    emit(outside);
  });
  code.op('end');
  for (const register of outside) if (!ending.includes(register)) k.releaseRegister(register);
}

/**
 * Before anything else is loaded, a store has the instruction's result, or what is computed from
 * it: that writes it down.
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
