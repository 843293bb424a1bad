// Turns of a loop, and units of a block, that run without checks: see `versioned-loops.ts` and
// `versioned-kernels.ts`.

import type { Block } from '../../analysis/blocks.js';
import type { Inst, Register } from '../../analysis/program.js';
import { UNIT } from '../block-passes.js';
import type { PassLocals } from '../block-passes.js';
import type { LoopPass } from '../code-plan.js';
import type { LaneKernelEmitter } from '../lane-kernel.js';
import { BURST } from '../streaming-loops.js';
import { checkSteadyUnits } from '../versioned-kernels.js';
import { checkSteady, workOf } from '../versioned-loops.js';
import type { SteadyLoop, SteadyPlace } from '../versioned-loops.js';
import { emitGrouped } from './block-code.js';
import { restoreAt, saveRegisters, setState } from './frames.js';
import { emitNextFrame } from './unit-places.js';
import { enterWhole, leaveWhole } from './whole-units.js';

/** Fewer units of a block are not worth the checks for all of them. */
const LEAST_STEADY_UNITS = 3;

/** Turns of a loop at a time that run without checks: the look-ahead, at first and at last. */
const STEADY_TURNS = [16, 3] as const;

/**
 * Turns of a loop of one block in code for whole units that need no checks. It is called before the
 * loop, and returns the code for the loop's beginning. Threads that have had all turns of their
 * slice are suspended.
 */
export function steadyTurns(k: LaneKernelEmitter, block: Block, loop: SteadyLoop): () => void {
  const { code, slice } = k;
  const { index } = block;
  const ahead = k.newLocal('i32');
  code.i32(STEADY_TURNS[0]).set(ahead);
  return () => {
    const [past, fewer] = [{}, {}];
    const {
      effort: { lanes, threads },
      loadsAhead,
    } = k;
    const turns = k.newLocal('i32');
    k.openLabel('block', past);
    k.conditionally(() => {
      code
        .get(slice)
        .get(ahead)
        .get(slice)
        .get(ahead)
        .op('i32.lt_s')
        .op('select')
        .tee(turns)
        .i32(STEADY_TURNS[1])
        .op('i32.lt_s');
      k.branchTo(past, 'br_if');
      k.openLabel('block', fewer);
      emitSteadyTurns(k, block, loop, turns, fewer, {
        past: () => {
          code.get(slice).get(turns).op('i32.sub').tee(slice);
          k.branchTo(past, 'br_if');
        },
      });
      setState(k, k.frames.entryOf.get(index)!);
      k.branchTo(k.turnLabel);
      k.closeLabel();
      code
        .i32(0)
        .i32(STEADY_TURNS[1])
        .get(ahead)
        .i32(STEADY_TURNS[1])
        .op('i32.eq')
        .op('select')
        .set(ahead);
    });
    k.closeLabel();
    Object.assign(k.effort, { lanes, threads });
    k.loadsAhead = loadsAhead;
  };
}

/**
 * Writes this many turns of a loop, and then stores its registers; branches to `checked` before the
 * first if they need checks. `past` may leave before the registers are stored. `count`: the number
 * of turns, if they are unrolled.
 */
function emitSteadyTurns(
  k: LaneKernelEmitter,
  block: Block,
  loop: SteadyLoop,
  turns: number,
  checked: object,
  { past = () => undefined, count }: { past?: () => void; count?: number } = {},
): void {
  const { code } = k;
  const { index } = block;
  const again = {};
  k.block = block;
  const places = checkSteady(
    k,
    loop,
    turns,
    (inst) => {
      k.emitInst(inst);
    },
    () => {
      code.op('i32.eqz');
      k.branchTo(checked, 'br_if');
    },
  );
  k.endInstruction();
  if (count !== undefined) for (let turn = 0; turn < count; turn++) emitSteadyTurn(k, loop, places);
  else {
    const left = k.newLocal('i32');
    code.get(turns).set(left);
    k.openLabel('loop', again);
    emitSteadyTurn(k, loop, places);
    code.get(left).i32(1).op('i32.sub').tee(left);
    k.branchTo(again, 'br_if');
    k.closeLabel();
  }
  past();
  saveRegisters(k, k.frames.spills.early(index));
  saveRegisters(k, k.frames.spills.saved(index));
}

function emitSteadyTurn(
  k: LaneKernelEmitter,
  loop: SteadyLoop,
  places: readonly SteadyPlace[],
): void {
  const { code } = k;
  emitWork(k, workOf(k, loop), places, new Set());
  for (const { local, delta } of places)
    if (delta !== undefined) code.get(local).get(delta).op('i32.add').set(local);
}

/**
 * Instructions whose accesses have been checked. `kept`: registers that are read once more after
 * them.
 */
function emitWork(
  k: LaneKernelEmitter,
  work: readonly Inst[],
  places: readonly Pick<SteadyPlace, 'range' | 'local'>[],
  kept: ReadonlySet<Register>,
): void {
  const last = new Map<Register, number>();
  work.forEach((inst, index) => {
    for (const register of [...inst.uses, ...inst.defs])
      if (k.isBlockLocal(register) && !kept.has(register)) last.set(register, index);
  });
  const steps = work.map((inst, index) => ({
    inst,
    last: [...last].filter(([, at]) => at === index).map(([register]) => register),
  }));
  const known = new Map(k.hoistedPlaces);
  for (const {
    range: { start, accesses },
    local,
  } of places)
    for (const { inst, offset } of accesses) known.set(inst, { local, offset: offset - start });
  k.unchecked = known;
  emitGrouped(k, steps, ({ inst }) => {
    k.emitInst(inst);
  });
  k.unchecked = undefined;
}

/**
 * All whole units of the block that are left, if nothing in them needs a check that cannot be made
 * for all of them here.
 */
export function emitSteadyUnits(k: LaneKernelEmitter): void {
  const { code, base, width } = k;
  const { units } = k.codePlan;
  if (!units) return;
  const { lanes, threads: each } = k.effort;
  const [none, again] = [{}, {}];
  const threads = k.newLocal('i32');
  const end = k.newLocal('i32');
  enterWhole(k);
  k.block = units.block;
  k.openLabel('block', none);
  code
    .get(k.contextField('threads'))
    .get(base)
    .op('i32.sub')
    .i32(-width)
    .op('i32.and')
    .tee(threads)
    .i32(LEAST_STEADY_UNITS * width)
    .op('i32.lt_s');
  k.branchTo(none, 'br_if');
  code.get(base).tee(k.thread).get(threads).op('i32.add').set(end);
  k.conditionally(() => {
    for (const inst of units.first) k.emitInst(inst);
    const places = checkSteadyUnits(k, units, threads, () => {
      code.op('i32.eqz');
      k.branchTo(none, 'br_if');
    });
    k.endInstruction();
    k.openLabel('loop', again);
    k.unitStarts.push(code.length);
    emitWork(k, units.work, places, new Set(units.first.flatMap(({ defs }) => defs)));
    for (const { local, step } of places)
      if (step) code.get(local).i32(step).op('i32.add').set(local);
    code.get(base).i32(width).op('i32.add').tee(base).get(end).op('i32.lt_u');
    k.branchTo(again, 'br_if');
    k.closeLabel();
  });
  for (const { defs } of units.first) for (const register of defs) k.releaseRegister(register);
  k.closeLabel();
  leaveWhole(k);
  Object.assign(k.effort, { lanes, threads: each });
}

/**
 * Units one after the other for as long as they are at the loop and its next turns need no checks:
 * all work for each is here, and nothing of what engines keep for the rest of the code. From the
 * first unit on for which this does not hold, all run the usual way.
 */
export function emitLoopPass(
  k: LaneKernelEmitter,
  passes: PassLocals,
  { header, loop, unrolled }: LoopPass,
): void {
  const {
    code,
    fuel,
    base,
    width,
    kernel: { blocks },
  } = k;
  const { lanes, threads } = k.effort;
  const none = {};
  const each = {};
  enterWhole(k);
  if (loop) {
    const turns = k.newLocal('i32');
    k.openLabel('block', none);
    code.get(k.contextField('threads')).i32(width).op('i32.le_u');
    k.branchTo(none, 'br_if');
    k.openLabel('loop', each);
    code.get(base).i32(width).op('i32.add').get(k.contextField('threads')).op('i32.gt_u');
    k.branchTo(none, 'br_if');
    // Its state, and that none of its threads has exited.
    code
      .get(passes.frame)
      .memory('i64.load', UNIT.state)
      .i64(k.frames.entryOf.get(header)!)
      .op('i64.ne');
    k.branchTo(none, 'br_if');
    if (k.frames.divergedBytes) {
      code.get(passes.frame).memory('i32.load', UNIT.diverged);
      k.branchTo(none, 'br_if');
    }
    code.get(base).set(k.thread);
    k.conditionally(() => {
      restoreAt(k, header);
      code.i32(BURST).set(turns);
      emitSteadyTurns(k, blocks[header]!, loop, turns, none, unrolled ? { count: BURST } : {});
    });
    code.i32(1).set(passes.left).i32(1).set(passes.ready);
    code
      .get(fuel)
      .i32(BURST + 1)
      .op('i32.sub')
      .set(fuel);
    emitNextFrame(k, passes);
    k.branchTo(each);
    k.closeLabel();
    k.closeLabel();
  }
  leaveWhole(k);
  Object.assign(k.effort, { lanes, threads });
}
