// The turn of a unit: code for a whole unit first, then the general code.

import { UNIT } from '../block-passes.js';
import type { LaneKernelEmitter } from '../lane-kernel.js';
import { clearRegisters, forgetAllBut, forgetRegisters, handedRegisters } from './clearing.js';
import { restoreAt } from './frames.js';
import { emitRegion, emitStraight } from './loops.js';

/** Which threads there are: the last unit of a block may lack some. */
export function findExisting(k: LaneKernelEmitter, masks: readonly number[]): void {
  const { code, passes } = k;
  if (!startsWhole(k)) for (const local of masks) code.v128([-1, -1, -1, -1]).set(local);
  code.get(k.base).i32(k.width).op('i32.add').get(k.contextField('threads')).op('i32.le_u');
  if (passes) code.get(passes.gone).op('i32.eqz').op('i32.and');
  if (passes && k.frames.partedBytes && startsWhole(k))
    code.get(passes.frame).memory('i32.load', UNIT.parted).op('i32.eqz').op('i32.and');
  // Code for a whole unit needs no masks, and sets them where it hands over.
  if (startsWhole(k)) {
    code.set(k.whole);
    return;
  }
  if (k.whole >= 0) code.tee(k.whole);
  code.op('i32.eqz');
  k.when(() => {
    findMissing(k, masks);
  });
}

/** Which threads there are of a unit that lacks some. */
export function findMissing(k: LaneKernelEmitter, masks: readonly number[]): void {
  const { code, passes } = k;
  k.eachGroup((group) => {
    code.get(k.base).op('i32x4.splat');
    k.addSteps32(Array.from({ length: k.width }, (_, lane) => lane));
    code.get(k.contextField('threads')).op('i32x4.splat').op('i32x4.lt_u');
    if (passes) {
      const [a, b, c, d] = [0, 1, 2, 3].map((lane) => 1 << (4 * group + lane)) as [
        number,
        number,
        number,
        number,
      ];
      code
        .get(passes.gone)
        .op('i32x4.splat')
        .v128([a, b, c, d])
        .op('v128.and')
        .v128([0, 0, 0, 0])
        .op('i32x4.eq')
        .op('v128.and');
    }
    code.set(masks[group]!);
  });
}

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
 * Whether a turn in which all threads of the unit are there begins with code for a whole unit.
 * One that is suspended while it is parted goes on parted.
 */
export function startsWhole(k: LaneKernelEmitter): boolean {
  return k.codePlan.whole !== undefined && k.whole >= 0;
}

/**
 * A turn from where the entry's number says: by code for a whole unit as long as its threads stay
 * together. `restore` restores what is alive at the entry; code for a whole unit does so where it
 * enters.
 */
export function emitTurn(k: LaneKernelEmitter, restore: () => void): void {
  const {
    code,
    kernel: {
      shape: { root },
    },
  } = k;
  const first = startsWhole(k);
  if (!first) forgetRegisters(k);
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
    forgetAllBut(k, new Set());
    findMissing(k, k.active);
    restore();
    k.branchTo(k.generalLabel);
  }
  k.closeLabel();
  forgetAllBut(k, handedRegisters(k));
  k.closeLabel();
  emitRegion(k, root);
}

export function enterWhole(k: LaneKernelEmitter): void {
  k.generalActive = k.active;
  k.active = k.active.map(() =>
    k.hoist('everyone', 'v128', (prologue) => {
      prologue.v128([-1, -1, -1, -1]);
    }),
  );
  k.everyone = true;
}

export function leaveWhole(k: LaneKernelEmitter): void {
  k.everyone = false;
  k.active = k.generalActive;
}

/** Code for a whole unit. */
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

/** Finds where the first thread that is ready goes on; leaves where none is. */
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
