// The turn of a unit: code for whole units first, then the general code.

import type { LaneKernelEmitter } from '../lane-kernel.js';
import { beginGeneral, clearRegisters } from './clearing.js';
import { restoreAt } from './frames.js';
import { emitRegion, emitStraight } from './loops.js';
import { enterWhole, findMissing, leaveWhole, startsWhole } from './whole-units.js';

export function enterEntry(k: LaneKernelEmitter): void {
  k.enterAt(
    k.entryNumber,
    k.frames.entries,
    () => undefined,
    (entry) => {
      restoreAt(k, entry);
    },
  );
}

/**
 * A turn from the entry with the entry's number: in code for whole units as long as its threads
 * stay together. `restore` restores what is live at the entry; code for whole units does so where
 * it enters.
 */
export function emitTurn(k: LaneKernelEmitter, restore: () => void): void {
  const {
    code,
    kernel: {
      shape: { root },
    },
  } = k;
  const first = startsWhole(k);
  clearRegisters(k);
  if (!k.codePlan.whole) {
    restore();
    emitRegion(k, root);
    return;
  }
  const apart = {};
  k.openLabel('block', k.generalLabel);
  k.openLabel('block', k.handedLabel);
  if (first) {
    k.openLabel('block', apart);
    code.get(k.whole);
  } else {
    restore();
    k.pushAll(k.active);
  }
  code.op('i32.eqz');
  k.branchTo(first ? apart : k.generalLabel, 'br_if');
  emitWhole(k);
  if (first) {
    k.closeLabel();
    beginGeneral(k);
    findMissing(k, k.active);
    restore();
    k.branchTo(k.generalLabel);
  }
  k.closeLabel();
  beginGeneral(k);
  k.closeLabel();
  emitRegion(k, root);
}

/** Code for whole units. */
export function emitWhole(k: LaneKernelEmitter): void {
  const { lanes, threads } = k.effort;
  enterWhole(k);
  const { order } = k.codePlan.whole!;
  if (order) emitStraight(k, order);
  else emitRegion(k, k.kernel.shape.root);
  leaveWhole(k);
  k.branchTo(k.turnLabel);
  Object.assign(k.effort, { lanes, threads });
}

/** Finds where the first ready thread continues; leaves if there is none. */
export function findEntry(k: LaneKernelEmitter, at: number, none: object): void {
  const { code } = k;
  const ready = k.plan.together ? k.active : k.todo;
  k.pushAll(ready);
  code.op('if').byte(0x40);
  code.get(at).memory('i32.load').set(k.entryNumber);
  code.op('else');
  k.nest(() => {
    k.pushBits(ready);
    const bits = k.newLocal('i32');
    code.tee(bits).op('i32.eqz');
    k.branchTo(none, 'br_if');
    code
      .get(at)
      .get(bits)
      .op('i32.ctz')
      .i32(2)
      .op('i32.shl')
      .op('i32.add')
      .memory('i32.load')
      .set(k.entryNumber);
  });
  code.op('end');
}
