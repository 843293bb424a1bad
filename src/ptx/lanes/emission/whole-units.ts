// Units all of whose threads exist: where code for whole units begins and ends, and which threads
// other units have.

import { UNIT } from '../block-passes.js';
import type { LaneKernelEmitter } from '../lane-kernel.js';

/** Which threads exist: the last unit of a block may lack some. */
export function findExisting(k: LaneKernelEmitter, masks: readonly number[]): void {
  const { code, passes } = k;
  if (!startsWhole(k)) for (const local of masks) code.v128([-1, -1, -1, -1]).set(local);
  code.get(k.base).i32(k.width).op('i32.add').get(k.contextField('threads')).op('i32.le_u');
  if (passes) code.get(passes.gone).op('i32.eqz').op('i32.and');
  if (passes && k.frames.divergedBytes && startsWhole(k))
    code.get(passes.frame).memory('i32.load', UNIT.diverged).op('i32.eqz').op('i32.and');
  // Code for whole units needs no masks, and sets them where it hands over.
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

/** Which threads exist in a unit that lacks some. */
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

/**
 * Whether a turn in which all threads of the unit exist begins with code for whole units. A unit
 * that was suspended while divergent continues in general code.
 */
export function startsWhole(k: LaneKernelEmitter): boolean {
  return k.codePlan.whole !== undefined && k.whole >= 0;
}

export function enterWhole(k: LaneKernelEmitter): void {
  k.generalActive = k.active;
  k.active = k.active.map(() =>
    k.hoist('wholeUnit', 'v128', (prologue) => {
      prologue.v128([-1, -1, -1, -1]);
    }),
  );
  k.wholeUnit = true;
}

export function leaveWhole(k: LaneKernelEmitter): void {
  k.wholeUnit = false;
  k.active = k.generalActive;
}
