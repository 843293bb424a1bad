// Where threads can be suspended in a kernel, and the frame of each unit: its words, the cells of
// registers, and the masks of units that are suspended while they are divergent.

import type { Block } from '../analysis/blocks.js';
import { alignUp } from '../analysis/data-layout.js';
import type { Register } from '../analysis/program.js';
import { loopsIn } from '../analysis/regions.js';
import { UNIT } from './block-passes.js';
import { isWide } from './vector-emitter.js';
import type { LaneKernel, LaneKernelEmitter } from './lane-kernel.js';
import type { LanePlan } from './plan.js';
import { planSpills, spillAll } from './spills.js';
import type { Spills } from './spills.js';
import { goesTogether, meansAll } from './warp.js';

export interface FramePlan {
  /** Blocks at which a turn may begin; the number of an entry is its index plus one. */
  entries: readonly number[];
  entryOf: ReadonlyMap<number, number>;
  /** Blocks that end in a cut at which threads never wait; the block after it is no entry. */
  passing: ReadonlySet<number>;
  /** The entries at which threads can be suspended. */
  live: readonly number[];
  /** The offset of a register's cell in the frame. */
  slots: ReadonlyMap<number, number>;
  /** The offset and size of the masks of a unit that is suspended while it is divergent. */
  divergedAt: number;
  divergedBytes: number;
  /** The size of a unit's frame. */
  unitBytes: number;
  spills: Spills;
}

/** `alone`: the function runs the whole block by itself. */
export function planFrames(
  k: LaneKernelEmitter,
  plan: LanePlan,
  kernel: LaneKernel,
  alone: boolean,
): FramePlan {
  const { shape, blocks, layout, liveness, remade } = kernel;
  const entryOf = new Map<number, number>();
  const addEntry = (block: number): void => {
    if (!entryOf.has(block)) entryOf.set(block, entryOf.size + 1);
  };
  const passing = new Set<number>();
  const passed = new Set<number>();
  if (layout.stateful) {
    for (const header of shape.loopHeaders) addEntry(header);
    for (const index of shape.order) {
      const { ending } = blocks[index]!;
      if (ending.kind !== 'cut') continue;
      addEntry(ending.to);
      if (!passesThrough(k, plan, index, ending)) continue;
      passing.add(index);
      passed.add(ending.to);
    }
  }
  const entries = [...entryOf.keys()];
  const live = entries.filter((entry) => !passed.has(entry) || shape.loopHeaders.has(entry));
  const waiting = (header: number): Register[] =>
    alone && shape.loopHeaders.has(header) ? keptWaiting(plan, kernel, header) : [];

  const spilled = new Set<Register>();
  const spill = (registers: readonly Register[]): void => {
    for (const register of registers) if (!remade.has(register.id)) spilled.add(register);
  };
  for (const entry of live) spill(liveness.liveIn(entry));
  for (const header of shape.loopHeaders) spill(waiting(header));
  const slots = new Map<number, number>();
  let end = alone ? UNIT.bytes : 0;
  const bytes = (register: Register): number => cellBytes(k, plan, register);
  // The widest cells come first, so that each is aligned.
  for (const register of [...spilled].sort((a, b) => bytes(b) - bytes(a))) {
    slots.set(register.id, end);
    end += bytes(register);
  }
  // Units are seldom suspended while divergent: what they read and write in each turn is in few
  // cache lines.
  const divergedAt = alignUp(end, 16);
  const divergedBytes = alone ? bytesOfMasks(k, plan, kernel) : 0;
  const plannedBy = k.runs('spills') ? planSpills : spillAll;
  const spills = plannedBy({
    reached: shape.order.map((index) => blocks[index]!),
    entries: live,
    liveness,
    inFrame: (register) => slots.has(register.id),
    passes: (inst) => goesTogether(k, inst),
    loops: plan.together ? loopsIn(shape.root) : [],
    keeps: (block, register) => plan.together && plan.keeps(block, register),
    waiting,
  });
  return {
    entries,
    entryOf,
    passing,
    live,
    slots,
    divergedAt,
    divergedBytes,
    unitBytes: divergedAt + divergedBytes,
    spills,
  };
}

/**
 * Threads that are always suspended together share the cell of a value that is uniform or steps;
 * others have cells of their own.
 */
function cellBytes(k: LaneKernelEmitter, plan: LanePlan, register: Register): number {
  const bytes = isWide(register) ? 8 : 4;
  return plan.together && !k.isVarying(register) ? bytes : k.width * bytes;
}

function bytesOfMasks(k: LaneKernelEmitter, plan: LanePlan, { shape }: LaneKernel): number {
  const masks = shape.order.map((block) =>
    shape.loopHeaders.has(block) && !plan.convergent(block)
      ? 1 + plan.waitingOut(shape.regionOf(block)).length
      : 0,
  );
  return 16 * k.groups * Math.max(0, ...masks);
}

/**
 * Registers of threads that wait after a loop for those that stay in it, which may not need them.
 */
export function keptWaiting(
  plan: LanePlan,
  { liveness, shape }: LaneKernel,
  header: number,
): Register[] {
  if (plan.convergent(header)) return [];
  const waiting = plan.waitingOut(shape.regionOf(header));
  return [...new Set(waiting.flatMap((block) => liveness.liveIn(block)))];
}

/**
 * Whether a cut never makes its threads wait: a warp operation of all threads of a unit, which have
 * reached it together.
 */
function passesThrough(
  k: LaneKernelEmitter,
  plan: LanePlan,
  block: number,
  { cut, inst }: Block['ending'] & { kind: 'cut' },
): boolean {
  return (
    k.runs('warp operations in passing') &&
    cut === 'warp' &&
    plan.together &&
    plan.convergent(block) &&
    goesTogether(k, inst) &&
    meansAll(k, inst)
  );
}

/** Whether units wait only at the barrier for all threads, and are suspended as a whole. */
export function runsAlone(
  k: LaneKernelEmitter,
  plan: LanePlan,
  { blocks, shape, barriers }: LaneKernel,
): boolean {
  return (
    plan.together &&
    barriers !== 'general' &&
    shape.order.every((index) => {
      const { ending } = blocks[index]!;
      return (
        ending.kind !== 'cut' || ending.cut !== 'warp' || passesThrough(k, plan, index, ending)
      );
    })
  );
}
