// The code of a basic block: its instructions, with the checks of their accesses made together
// where the plan does so, and its end.

import type { Inst, Register } from '../../analysis/program.js';
import type { BlockCode, CheckedRun, Step } from '../code-plan.js';
import type { LaneKernelEmitter } from '../lane-kernel.js';
import { checkRun } from '../unchecked-accesses.js';
import { emitAgreement, handOver } from './agreement.js';
import { emitEnding } from './endings.js';
import { saveRegisters } from './frames.js';

/**
 * Instructions that are written group by group: processors look so far ahead that the chains of the
 * groups overlap.
 */
const LONGEST_GROUPED = 32;

/** Vectors that are loaded before a result is anchored. */
const LOADS_AHEAD = 10;

export function emitBlock(k: LaneKernelEmitter, code: BlockCode): void {
  const { block, steps, run } = code;
  k.block = block;
  const count = steps.length;
  const known =
    k.wholeUnit && steps.some(({ inst }) => k.hoistedPlaces.has(inst))
      ? k.hoistedPlaces
      : undefined;
  if (run && !run.twice) {
    emitSteps(k, code, 0, run.from);
    const rest = (bad: object): void => {
      const places = checkRun(k, run, () => {
        k.code.op('i32.eqz');
        k.branchTo(bad, 'br_if');
      });
      k.unchecked = known ? new Map([...known, ...places]) : places;
      emitSteps(k, code, run.from, count);
      k.unchecked = undefined;
    };
    emitUnless(k, rest, () => {
      handOver(k, block, 0);
    });
  } else if (k.wholeUnit) {
    k.unchecked = known;
    emitSteps(k, code, 0, count);
    k.unchecked = undefined;
  } else {
    emitEnterable(k, code, count);
  }
  saveRegisters(k, code.spilled);
  emitEnding(k, code);
  k.endInstruction();
  if ('inst' in block.ending)
    for (const register of block.ending.inst.uses) k.releaseRegister(register);
}

/** `kept`: registers that are used once more after these steps. */
function emitSteps(
  k: LaneKernelEmitter,
  code: BlockCode,
  from: number,
  to: number,
  kept?: ReadonlySet<Register>,
): void {
  emitGrouped(
    k,
    code.steps.slice(from, to),
    (step) => {
      emitStep(k, code, step);
    },
    kept,
  );
}

function emitStep(k: LaneKernelEmitter, { block }: BlockCode, step: Step): void {
  const { inst, uniform, checks, anchor } = step;
  if (uniform) emitAgreement(k, block, uniform);
  else k.emitInst(inst);
  if (k.unchecked && anchor?.kind === 'load') k.loadsAhead += anchor.vectors;
  if (k.unchecked && anchor?.kind === 'result' && k.loadsAhead >= LOADS_AHEAD) {
    k.loadsAhead = 0;
    if (!anchor.stored) writeDown(k, inst.defs[0]!);
  }
  if (!checks) return;
  const places = checkRun(k, { ranges: checks.ranges, stores: false }, () => {
    k.code.op('i32.eqz');
    k.when(() => {
      handOver(k, block, checks.place);
    });
  });
  for (const [access, place] of places) k.hoistedPlaces.set(access, place);
}

/**
 * Writes steps: group by group those around accesses whose places have been checked, if they have
 * such forms, and the others by `one`. Engines keep loads and stores in their order, and keep
 * values of one group in registers where those of all groups would be spilled; without loads and
 * stores they choose the order themselves.
 */
export function emitGrouped<S extends Pick<Step, 'inst' | 'last'>>(
  k: LaneKernelEmitter,
  steps: readonly S[],
  one: (step: S) => void,
  kept?: ReadonlySet<Register>,
): void {
  for (let index = 0; index < steps.length;) {
    const group = groupAt(k, steps, index);
    const grouped = group.length > 1 && group.some((inst) => k.unchecked!.has(inst));
    if (grouped) k.emitByGroup(group);
    for (const step of steps.slice(index, index + Math.max(group.length, 1))) {
      if (!grouped) one(step);
      for (const register of step.last) if (!kept?.has(register)) k.releaseRegister(register);
      index++;
    }
  }
}

/** The instructions from a step on that can be written group by group. */
function groupAt(k: LaneKernelEmitter, steps: readonly Pick<Step, 'inst'>[], from: number): Inst[] {
  const group: Inst[] = [];
  if (!k.unchecked || !k.codePlan.byGroup) return group;
  for (const { inst } of steps.slice(from, from + LONGEST_GROUPED)) {
    if (!k.goesByGroup(inst)) break;
    group.push(inst);
  }
  return group;
}

/** Makes engines compute a result here: see `anchors.ts`. */
function writeDown(k: LaneKernelEmitter, register: Register): void {
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
 * Code that may leave for a label at its beginning, to continue with code that leaves for good. The
 * latter is written first, before any register of the block has been released, and comes after the
 * code, which then continues without a branch.
 */
function emitUnless(
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

/** A block of general code that control may enter where code for whole units hands over. */
function emitEnterable(k: LaneKernelEmitter, block: BlockCode, count: number): void {
  const { code } = k;
  const { entries, run } = block;
  const write = (from: number, to: number): void => {
    if (!run || run.from < from || run.from >= to) {
      emitSteps(k, block, from, to);
      return;
    }
    emitSteps(k, block, from, run.from);
    emitTwice(k, block, run, to);
  };
  const open = [...entries];
  const upTo = (to: number): void => {
    const [place, number] = open.pop() ?? [0];
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
  if (entries.size) code.i32(0).set(k.entryNumber);
}

/**
 * Writes the steps of a run without checks if they are valid, else with checks. Registers that are
 * live around it get their locals before.
 */
function emitTwice(k: LaneKernelEmitter, block: BlockCode, run: CheckedRun, end: number): void {
  const { code } = k;
  const outside = registersAround(k, block, run.from, end);
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
    emitSteps(k, block, run.from, end, outside);
  });
  k.unchecked = undefined;
  Object.assign(k.effort, { lanes, threads });
  code.op('else');
  k.nest(() => {
    emitSteps(k, block, run.from, end, outside);
  });
  code.op('end');
  const read = readAtEnd(block, end);
  for (const register of outside) if (!read.includes(register)) k.releaseRegister(register);
}

/** Registers that the steps share with the code around them. */
function registersAround(
  k: LaneKernelEmitter,
  block: BlockCode,
  from: number,
  end: number,
): Set<Register> {
  const run = block.steps.slice(from, end).map(({ inst }) => inst);
  const inside = new Set(run.flatMap((inst) => inst.defs));
  const outside = new Set<Register>();
  for (const inst of run)
    for (const register of [...inst.uses, ...inst.defs])
      if (!k.isBlockLocal(register) || !inside.has(register)) outside.add(register);
  for (const { inst } of block.steps.slice(0, from))
    for (const register of inst.defs) if (inside.has(register)) outside.add(register);
  for (const register of readAtEnd(block, end)) outside.add(register);
  return outside;
}

/** Registers that the block reads after these steps. */
function readAtEnd({ block: { ending }, steps }: BlockCode, end: number): Register[] {
  return [
    ...('inst' in ending ? ending.inst.uses : []),
    ...steps.slice(end).flatMap(({ inst }) => inst.uses),
  ];
}
