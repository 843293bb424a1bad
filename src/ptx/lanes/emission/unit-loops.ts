// The loops over a block's units: in kernels without state, in blocks that a function runs by
// itself, and in those that a scheduler runs.

import { CTX, STATUS } from '../../context.js';
import type { LocalType } from '../../scalar-types.js';
import { Code } from '../../wasm/code.js';
import { emitBeginTurn, emitEndPass, emitEndTurn } from '../block-passes.js';
import type { PassLocals } from '../block-passes.js';
import type { LaneKernelEmitter } from '../lane-kernel.js';
import { beginGeneral, clearRegisters, forgetting } from './clearing.js';
import { pushStatesAddress, restoreAt } from './frames.js';
import { emitRegion } from './loops.js';
import { prefetchRows } from './prefetching-code.js';
import { emitTurn, emitWhole, enterEntry, findEntry } from './turns.js';
import {
  countIndices,
  emitNextPlace,
  emitNextUnit,
  prologueBytes,
  storeFuel,
} from './unit-places.js';
import { findExisting, findMissing, startsWhole } from './whole-units.js';

/**
 * A kernel without state: all units of a block, then the next block. Units for which the code for
 * whole units is enough have a loop of their own, which excludes the general code and what engines
 * keep in registers for it.
 */
function emitStateless(k: LaneKernelEmitter): void {
  const {
    code,
    kernel: { shape },
  } = k;
  k.further = k.newLocal('i32');
  countIndices(k);
  const done = {};
  const generalTurn = k.turnLabel;
  const begin = (): void => {
    code.get(k.base).set(k.thread);
    if (k.entryNumber >= 0) code.i32(0).set(k.entryNumber);
    clearRegisters(k);
  };
  const next = (): void => {
    code.get(k.base).i32(k.width).op('i32.add').set(k.base);
    emitNextPlace(k);
  };
  k.openLabel('block', done);
  k.openLabel('loop', k.unitLabel);
  k.unitStarts.push(code.length);
  if (startsWhole(k)) {
    k.entryNumber = k.newLocal('i32');
    const [apart, whole] = [{}, {}];
    k.openLabel('block', generalTurn);
    k.openLabel('block', k.generalLabel);
    k.openLabel('block', k.handedLabel);
    k.openLabel('block', apart);
    k.openLabel('loop', whole);
    k.unitStarts.push(code.length);
    code.get(k.base).i32(k.width).op('i32.add').get(k.contextField('threads')).op('i32.gt_u');
    k.branchTo(apart, 'br_if');
    begin();
    k.turnLabel = {};
    k.openLabel('block', k.turnLabel);
    emitWhole(k);
    k.closeLabel();
    k.turnLabel = generalTurn;
    next();
    k.branchTo(whole);
    k.closeLabel();
    k.closeLabel();
    endBlock(k, done);
    beginGeneral(k);
    begin();
    findMissing(k, k.active);
    k.branchTo(k.generalLabel);
    k.closeLabel();
    beginGeneral(k);
    k.closeLabel();
  } else {
    endBlock(k, done);
    begin();
    findExisting(k, k.active);
    k.openLabel('block', generalTurn);
  }
  emitRegion(k, shape.root);
  k.closeLabel();
  next();
  k.branchTo(k.unitLabel);
  k.closeLabel();
  k.closeLabel();
  code.i32(STATUS.done).op('end');
}

/** No unit of the block is left: continues with the next one, or ends the call. */
function endBlock(k: LaneKernelEmitter, done: object): void {
  const { code } = k;
  code.get(k.base).get(k.to).op('i32.ge_u');
  k.when(() => {
    code.get(k.further).op('i32.eqz');
    k.branchTo(done, 'br_if');
    const block = k.contextWord(CTX.ctaid);
    code.get(k.ctx).get(block).i32(1).op('i32.add').tee(block).memory('i32.store', CTX.ctaid);
    code.get(k.further).i32(1).op('i32.sub').set(k.further);
    code.i32(0).set(k.base);
    for (const local of k.tids) if (local >= 0) code.i32(0).set(local);
    k.branchTo(k.unitLabel);
  });
}

/** The current unit, if there is one, and where it continues. */
function beginUnit(
  k: LaneKernelEmitter,
  passes: PassLocals,
  passed: object,
  skipped: object,
): void {
  const { code } = k;
  k.unitStarts.push(code.length);
  code.get(k.base).get(k.to).op('i32.ge_u');
  k.branchTo(passed, 'br_if');
  code.get(k.base).set(k.thread);
  k.openLabel('block', skipped);
  emitBeginTurn(code, passes, k.entryNumber, (depth) =>
    code.op('br_if').u32(k.depthOf(skipped) + depth),
  );
  findExisting(k, k.active);
  code.i32(k.threadSlice).set(k.slice);
}

/**
 * After a turn's code: closes what it and the unit have opened, and continues with the next unit's
 * place.
 */
function endUnit(k: LaneKernelEmitter, passes: PassLocals, opened = true): void {
  const { code } = k;
  k.closeLabel();
  emitEndTurn(code, passes);
  k.closeLabel();
  code
    .get(k.fuel)
    .i32(k.threadSlice + 1)
    .get(k.slice)
    .op('i32.sub')
    .op('i32.sub')
    .set(k.fuel);
  if (opened) k.closeLabel();
  code.get(passes.frame).i32(k.frames.unitBytes).op('i32.add').set(passes.frame);
  emitNextUnit(k);
}

/**
 * Units for which the code for whole units is enough have a loop of their own, which excludes the
 * general code and what engines keep in registers for it; the others leave it for one turn. This is
 * done for turns without loops: a transpose in cache takes 5 % less time, and a softmax, whose
 * turns have loops, took 3 % more.
 */
function emitUnits(k: LaneKernelEmitter, passes: PassLocals, passed: object): void {
  const {
    code,
    kernel: {
      shape: { root },
    },
  } = k;
  const [ended, turn] = [k.endedLabel, k.turnLabel];
  const [apart, whole, skipped] = [{}, {}, {}];
  for (const label of [ended, turn, k.generalLabel, k.handedLabel, apart])
    k.openLabel('block', label);
  k.openLabel('loop', whole);
  beginUnit(k, passes, passed, skipped);
  clearRegisters(k);
  code.get(k.whole).op('i32.eqz');
  k.branchTo(apart, 'br_if');
  [k.endedLabel, k.turnLabel] = [{}, {}];
  k.openLabel('block', k.endedLabel);
  k.openLabel('block', k.turnLabel);
  emitWhole(k);
  endUnit(k, passes);
  k.branchTo(whole);
  k.closeLabel();
  [k.endedLabel, k.turnLabel] = [ended, turn];
  k.closeLabel();
  beginGeneral(k);
  findMissing(k, k.active);
  enterEntry(k);
  k.branchTo(k.generalLabel);
  k.closeLabel();
  beginGeneral(k);
  k.closeLabel();
  emitRegion(k, root);
  endUnit(k, passes, false);
}

/** The whole block, one pass over its units after the other. */
function emitPasses(k: LaneKernelEmitter, passes: PassLocals): void {
  const { code } = k;
  k.entryNumber = k.newLocal('i32');
  k.slice = k.newLocal('i32');
  k.fuel = 1;
  const pass = {};
  const passed = {};
  const skipped = {};
  const scratch = k.contextField('scratch');
  const frames = k.framesBase();
  prefetchRows(k, passes);
  k.openLabel('loop', pass);
  k.openLabel('block', passed);
  k.openLabel('loop', k.unitLabel);
  if (k.codePlan.ownLoop) {
    emitUnits(k, passes, passed);
  } else {
    beginUnit(k, passes, passed, skipped);
    k.openLabel('block', k.endedLabel);
    k.openLabel('block', k.turnLabel);
    emitTurn(k, () => {
      enterEntry(k);
    });
    endUnit(k, passes);
  }
  k.branchTo(k.unitLabel);
  k.closeLabel();
  k.closeLabel();
  emitEndPass(code, passes, scratch, frames);
  code.i32(0).set(k.base);
  for (const local of k.tids) if (local >= 0) code.i32(0).set(local);
  k.branchTo(pass);
  k.closeLabel();
  code.op('unreachable').op('end');
}

/** The function's locals and bytes. */
export function emitKernel(k: LaneKernelEmitter): {
  locals: readonly LocalType[];
  code: Uint8Array;
} {
  if (k.passes) emitPasses(k, k.passes);
  else if (k.kernel.layout.stateful) emitScheduled(k);
  else emitStateless(k);
  const all = new Code();
  all.append(prologueBytes(k)).append(forgetting(k, k.code.finish()));
  return { locals: k.localTypes, code: all.finish() };
}

/** The units that the scheduler passes, each to its next cut. */
function emitScheduled(k: LaneKernelEmitter): void {
  const { code } = k;
  k.entryNumber = k.newLocal('i32');
  k.slice = k.newLocal('i32');
  k.fuel = k.newLocal('i32');
  k.states = k.masks();
  if (!k.plan.together) k.todo = k.masks();
  const done = {};
  k.openLabel('block', done);
  k.openLabel('loop', k.unitLabel);
  k.unitStarts.push(code.length);
  code.get(k.base).get(k.to).op('i32.ge_u');
  k.branchTo(done, 'br_if');
  code.get(k.base).set(k.thread);
  const existing = k.masks();
  findExisting(k, existing);
  const turns = {};
  const { together } = k.plan;
  const unitDone = {};
  k.openLabel('block', unitDone);
  const at = k.newLocal('i32');
  pushStatesAddress(k);
  code.set(at);
  const ready = together ? k.active : k.todo;
  k.states.forEach((local, group) => {
    code
      .get(at)
      .memory('v128.load', 16 * group)
      .tee(local)
      .v128([0, 0, 0, 0])
      .op('i32x4.ge_s')
      .get(existing[group]!)
      .op('v128.and')
      .set(ready[group]!);
  });
  if (together) {
    findEntry(k, at, unitDone);
  } else {
    k.openLabel('loop', turns);
    findEntry(k, at, unitDone);
    k.active.forEach((local, group) => {
      code
        .get(k.entryNumber)
        .op('i32x4.splat')
        .get(k.states[group]!)
        .op('i32x4.eq')
        .get(k.todo[group]!)
        .op('v128.and')
        .set(local);
    });
  }
  code.i32(k.threadSlice).set(k.slice);
  k.openLabel('block', k.turnLabel);
  emitTurn(k, () => {
    k.enterAt(
      k.entryNumber,
      k.frames.entries,
      () => undefined,
      (entry) => {
        restoreAt(k, entry);
      },
    );
    if (!together)
      k.todo.forEach((local, group) => {
        code.get(local).get(k.active[group]!).op('v128.andnot').set(local);
      });
  });
  k.closeLabel();
  code
    .get(k.fuel)
    .i32(k.threadSlice)
    .get(k.slice)
    .op('i32.sub')
    .op('i32.sub')
    .i32(1)
    .op('i32.sub')
    .set(k.fuel);
  if (!together) {
    k.branchTo(turns);
    k.closeLabel();
  }
  k.closeLabel();
  emitNextUnit(k);
  k.branchTo(k.unitLabel);
  k.closeLabel();
  k.closeLabel();
  storeFuel(k);
  code.i32(STATUS.done).op('end');
}
