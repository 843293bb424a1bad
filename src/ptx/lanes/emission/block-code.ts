// The code of a basic block: its instructions, with the checks of their accesses made together
// where the plan does so, and its end.

import type { Inst, Register } from '../../analysis/program.js';
import { checkRanges } from '../access-ranges.js';
import type { BlockCode, CheckedRun, Step } from '../code-plan.js';
import type { LaneKernelEmitter } from '../lane-kernel.js';
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
  const { block, steps, run, spilled } = code;
  k.block = block;
  if (k.wholeUnit) {
    const known = steps.some(({ inst }) => k.hoistedPlaces.has(inst)) ? k.hoistedPlaces : undefined;
    if (run) emitChecked(k, code, run, known);
    else emitWithout(k, code, steps, known);
  } else {
    emitEnterable(k, code);
  }
  saveRegisters(k, spilled);
  emitEnding(k, code);
  k.endInstruction();
  if ('inst' in block.ending)
    for (const register of block.ending.inst.uses) k.releaseRegister(register);
}

type Places = ReadonlyMap<Inst, { local: number; offset: number }>;

/** A block of code for whole units in which accesses are checked together. */
function emitChecked(
  k: LaneKernelEmitter,
  code: BlockCode,
  { from, ranges }: CheckedRun,
  known: Places | undefined,
): void {
  const { block, steps } = code;
  emitSteps(k, code, steps.slice(0, from));
  emitUnless(
    k,
    (otherwise) => {
      const places = checkRanges(k, ranges, () => {
        k.code.op('i32.eqz');
        k.branchTo(otherwise, 'br_if');
      });
      emitWithout(k, code, steps.slice(from), known ? new Map([...known, ...places]) : places);
    },
    () => {
      handOver(k, block, 0);
    },
  );
}

/** Steps with accesses that need no check, at known places. */
function emitWithout(
  k: LaneKernelEmitter,
  code: BlockCode,
  steps: readonly Step[],
  places: Places | undefined,
): void {
  k.unchecked = places;
  emitSteps(k, code, steps);
  k.unchecked = undefined;
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
  const places = checkRanges(k, checks.ranges, () => {
    k.code.op('i32.eqz');
    k.when(() => {
      handOver(k, block, checks.place);
    });
  });
  for (const [access, place] of places) k.hoistedPlaces.set(access, place);
}

/**
 * Writes steps: group by group those around accesses whose places have been checked, if they have
 * such forms, and the others one by one. Engines keep loads and stores in their order, and keep
 * values of one group in registers where those of all groups would be spilled; without loads and
 * stores they choose the order themselves.
 */
function emitSteps(k: LaneKernelEmitter, code: BlockCode, steps: readonly Step[]): void {
  for (let index = 0; index < steps.length;) {
    const group = groupAt(k, steps, index);
    const grouped = group.length > 1 && group.some((inst) => k.unchecked!.has(inst));
    if (grouped) k.emitByGroup(group);
    for (const step of steps.slice(index, index + Math.max(group.length, 1))) {
      if (!grouped) emitStep(k, code, step);
      for (const register of step.last) k.releaseRegister(register);
      index++;
    }
  }
}

/** The instructions from a step on that can be written group by group. */
function groupAt(k: LaneKernelEmitter, steps: readonly Step[], from: number): Inst[] {
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
function emitEnterable(k: LaneKernelEmitter, block: BlockCode): void {
  const { code } = k;
  const { entries, steps } = block;
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
    emitSteps(k, block, steps.slice(place, to));
  };
  upTo(steps.length);
  if (entries.size) code.i32(0).set(k.entryNumber);
}
