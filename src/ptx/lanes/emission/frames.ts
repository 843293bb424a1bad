// Suspends and resumes threads: their states, and their registers in the unit's frame.

import type { Register } from '../../analysis/program.js';
import type { Region } from '../../analysis/regions.js';
import { emitWarpResult } from '../../emit/arrivals.js';
import { statesBase } from '../../emit/scratch-places.js';
import { UNIT } from '../block-passes.js';
import { keptWaiting } from '../frame-plan.js';
import { isWide } from '../vector-emitter.js';
import type { LaneKernelEmitter } from '../lane-kernel.js';
import { steps } from '../spread.js';

export function pushStatesAddress(k: LaneKernelEmitter): void {
  k.code.get(statesBase(k)).get(k.base).i32(2).op('i32.shl').op('i32.add');
}

/** Writes a state for the active threads. */
export function setState(k: LaneKernelEmitter, state: number): void {
  const { code, states, active } = k;
  if (k.passes) {
    code.i32(state).set(k.passes.next);
    return;
  }
  const at = k.newLocal('i32');
  pushStatesAddress(k);
  code.set(at);
  states.forEach((local, group) => {
    code
      .get(at)
      .i32(state)
      .op('i32x4.splat')
      .get(local)
      .get(active[group]!)
      .op('v128.bitselect')
      .tee(local)
      .memory('v128.store', 16 * group);
  });
}

function frameOf(k: LaneKernelEmitter): number {
  if (k.passes) return k.passes.frame;
  const frame = k.newLocal('i32');
  k.code
    .get(k.framesBase())
    .get(k.base)
    .i32(Math.log2(k.width))
    .op('i32.shr_u')
    .i32(k.frames.unitBytes)
    .op('i32.mul')
    .op('i32.add')
    .set(frame);
  return frame;
}

export function suspendBefore(k: LaneKernelEmitter, state: number, target: number): void {
  setState(k, state);
  saveRegisters(k, k.frames.spills.saved(target));
}

export function saveRegisters(k: LaneKernelEmitter, saved: readonly Register[]): void {
  const { code, plan } = k;
  if (!saved.length) return;
  const frame = frameOf(k);
  for (const register of saved) {
    const slot = k.frames.slots.get(register.id)!;
    const { wasm } = register.type;
    if (k.sharesCell(register)) {
      code.get(frame).get(k.registerLocal(register)).memory(`${wasm}.store`, slot);
      continue;
    }
    k.eachGroup((group) => {
      for (const half of isWide(register) ? [0, 1] : [0]) {
        const offset = slot + 16 * (isWide(register) ? 2 * group + half : group);
        code.get(frame);
        pushCell(k, register, half);
        if (!plan.together) {
          code.get(frame).memory('v128.load', offset);
          k.pushMaskHalf(k.active[group]!, isWide(register) ? half : -1);
          code.op('v128.bitselect');
        }
        code.memory('v128.store', offset);
      }
    });
  }
}

/** The unit is suspended at the end of a loop that some of its threads have left. */
export function saveMasks(k: LaneKernelEmitter, region: Region): void {
  const { code } = k;
  const frame = frameOf(k);
  saveRegisters(k, k.frames.spills.waiting(region.header));
  [k.active, ...k.plan.waitingOut(region).map((block) => k.waitMasks(block))].forEach(
    (masks, index) => {
      masks.forEach((local, group) => {
        code
          .get(frame)
          .get(local)
          .memory('v128.store', k.frames.divergedAt + 16 * (k.groups * index + group));
      });
      k.clearMasks(masks);
    },
  );
  code.get(frame).i32(1).memory('i32.store', UNIT.diverged);
}

function restoreMasks(k: LaneKernelEmitter, region: Region): void {
  const {
    code,
    kernel: { remade },
  } = k;
  const frame = frameOf(k);
  const needed = k.frames.spills.needed(region.header);
  const kept = keptWaiting(k.plan, k.kernel, region.header).filter(
    (register) => !needed.includes(register),
  );
  // Locals that are allocated inside the condition would have no value after it.
  for (const register of kept) {
    if (k.isVarying(register)) k.laneLocal(register);
    else k.registerLocal(register);
  }
  code.get(frame).memory('i32.load', UNIT.diverged);
  k.when(() => {
    code.get(frame).i32(0).memory('i32.store', UNIT.diverged);
    [k.active, ...k.plan.waitingOut(region).map((block) => k.waitMasks(block))].forEach(
      (masks, index) => {
        masks.forEach((local, group) => {
          code
            .get(frame)
            .memory('v128.load', k.frames.divergedAt + 16 * (k.groups * index + group))
            .set(local);
        });
      },
    );
    k.restoreEntry(
      region.header,
      kept,
      [],
      remade,
      (register) => k.frames.slots.has(register.id),
      (registers) => {
        for (const register of registers) loadRegister(k, register, frame, { lane: -1 });
      },
      () => undefined,
    );
  });
}

/** Pushes the group's values of any register, made again. */
function pushCell(k: LaneKernelEmitter, register: Register, half: number): void {
  const { code } = k;
  const { stride } = k.plan.spread(register);
  if (k.isVarying(register) || (stride === undefined && register.type.kind === 'predicate')) {
    k.pushPart(register, half);
    return;
  }
  code.get(k.registerLocal(register));
  if (register.type.kind === 'predicate') code.i32(-1).op('i32.mul');
  k.splat(register.type);
  const apart = steps(k.plan.spread(register), k.width)!;
  if (isWide(register)) k.addSteps(apart, half);
  else k.addSteps32(apart);
}

export function restoreAt(k: LaneKernelEmitter, entry: number): void {
  if (!k.frames.live.includes(entry)) {
    k.code.op('unreachable');
    return;
  }
  const { blocks, remade, shape } = k.kernel;
  k.block = undefined;
  // A unit that was suspended while divergent does not reach code for whole units.
  if (k.passes && !k.wholeUnit && shape.loopHeaders.has(entry) && !k.plan.convergent(entry))
    restoreMasks(k, shape.regionOf(entry));
  k.restoreEntry(
    entry,
    k.frames.spills.needed(entry),
    blocks,
    remade,
    (register) => k.frames.slots.has(register.id),
    (registers) => {
      const frame = frameOf(k);
      const first = { lane: -1 };
      for (const register of registers) loadRegister(k, register, frame, first);
    },
    (inst) => {
      k.forEachThread(false, [], inst.defs, () => {
        emitWarpResult(k, inst);
      });
    },
  );
}

/**
 * Loads a register. If threads have cells of their own, those whose value does not fit the first
 * one's step are left for another turn.
 */
function loadRegister(
  k: LaneKernelEmitter,
  register: Register,
  frame: number,
  first: { lane: number },
): void {
  const { code } = k;
  const slot = k.frames.slots.get(register.id)!;
  const { wasm } = register.type;
  const wide = isWide(register);
  if (k.sharesCell(register)) {
    code.get(frame).memory(`${wasm}.load`, slot).set(k.registerLocal(register));
    return;
  }
  if (k.isVarying(register)) {
    k.laneLocal(register).forEach((local, part) => {
      code
        .get(frame)
        .memory('v128.load', slot + 16 * part)
        .set(local);
    });
    return;
  }
  if (first.lane < 0) {
    first.lane = k.newLocal('i32');
    k.pushBits(k.active);
    code.op('i32.ctz').set(first.lane);
  }
  const { stride } = k.plan.spread(register);
  const local = k.registerLocal(register);
  code
    .get(frame)
    .get(first.lane)
    .i32(wide ? 3 : 2)
    .op('i32.shl')
    .op('i32.add')
    .memory(`${wasm}.load`, slot);
  if (stride === undefined) {
    pushStepOf(k, register, first.lane);
    if (wide) code.op('i64.extend_i32_s');
    code.op(`${wasm}.sub`);
  } else if (stride) {
    code.get(first.lane).i32(stride).op('i32.mul');
    if (wide) code.op('i64.extend_i32_s');
    code.op(`${wasm}.sub`);
  }
  if (register.type.kind === 'predicate') code.i32(1).op('i32.and');
  code.set(local);
  const shape = wide ? 'i64x2' : 'i32x4';
  k.eachGroup((group) => {
    for (const half of wide ? [0, 1] : [0]) {
      pushCell(k, register, half);
      code
        .get(frame)
        .memory('v128.load', slot + 16 * (wide ? 2 * group + half : group))
        .op(`${shape}.eq`);
    }
    if (wide) code.shuffle([0, 2, 4, 6]);
    const active = k.active[group]!;
    code.get(active).op('v128.and').set(active);
  });
}

/** Pushes the difference of a thread's value from the first one's, if the steps are uneven. */
function pushStepOf(k: LaneKernelEmitter, register: Register, lane: number): void {
  const { code } = k;
  const apart = steps(k.plan.spread(register), k.width)!;
  k.scoped(() => {
    const room = k.temp('i32');
    k.pushRoom(4 * k.width);
    code.set(room);
    k.eachGroup((group) => {
      code
        .get(room)
        .v128(apart.slice(4 * group, 4 * group + 4) as [number, number, number, number])
        .memory('v128.store', 16 * group);
    });
    code.get(room).get(lane).i32(2).op('i32.shl').op('i32.add').memory('i32.load');
  });
}
