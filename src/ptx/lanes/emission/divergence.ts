// Divergence: masks of the threads of a unit that run, and of those that wait at a block for the
// others.

import type { Register } from '../../analysis/program.js';
import type { Region } from '../../analysis/regions.js';
import { STATE } from '../../emit/frame-layout.js';
import type { LaneKernelEmitter } from '../lane-kernel.js';
import { saveMasks, setState, suspendBefore } from './frames.js';

export function clearActive(k: LaneKernelEmitter): void {
  k.clearMasks(k.active);
}

/** Adds threads to those that wait at a block. */
function waitAt(k: LaneKernelEmitter, block: number, threads: readonly number[]): void {
  const { code } = k;
  k.awaited.add(block);
  k.waitMasks(block).forEach((local, group) => {
    code.get(local).get(threads[group]!).op('v128.or').set(local);
  });
}

/** Threads that wait at a loop's header become active. */
function takeWaiting(k: LaneKernelEmitter, header: number): void {
  if (!k.awaited.has(header)) return;
  const waiting = k.waitMasks(header);
  k.active.forEach((local, group) => {
    k.code.get(local).get(waiting[group]!).op('v128.or').set(local);
  });
  k.clearMasks(waiting);
}

/**
 * Control comes to a block: waiting threads become active, and a block without threads is skipped.
 */
export function arriveAt(k: LaneKernelEmitter, block: number, past: object): void {
  if (k.wholeUnit) return;
  const { code, plan } = k;
  if (k.awaited.has(block)) {
    const waiting = k.waitMasks(block);
    k.active.forEach((local, group) => {
      code.get(local).get(waiting[group]!).op('v128.or').set(local);
    });
    k.clearMasks(waiting);
  }
  const order = k.kernel.shape.order;
  const before = order[order.indexOf(block) - 1];
  if (before === undefined || (plan.convergent(before) && !plan.parts(before))) return;
  k.pushAny(k.active);
  code.op('i32.eqz');
  // If no thread waits anywhere, none is left.
  k.branchTo(plan.convergent(block) ? k.turnLabel : past, 'br_if');
}

/** The end of a loop at whose header threads wait. */
export function repeatLoop(k: LaneKernelEmitter, region: Region): void {
  takeWaiting(k, region.header);
  k.pushAny(k.active);
  k.when(() => {
    backEdge(k, region);
    if (k.passes) {
      saveMasks(k, region);
      k.branchTo(k.turnLabel);
    } else {
      clearActive(k);
    }
  });
}

/** The last block of a region. */
function lastBlock(k: LaneKernelEmitter, region: Region): number {
  const item = region.items.at(-1)!;
  return typeof item === 'number' ? item : lastBlock(k, item);
}

/** Takes a back edge with the active threads while the turn lasts; then they are suspended. */
function backEdge(k: LaneKernelEmitter, region: Region): void {
  const { code } = k;
  code.get(k.slice).i32(1).op('i32.sub').tee(k.slice).i32(0).op('i32.gt_s');
  k.branchTo(k.loopLabels.get(region)!, 'br_if');
  suspendBefore(k, k.frames.entryOf.get(region.header)!, region.header);
}

/** The active threads end: all that are left, or some of them. */
export function leaveKernel(k: LaneKernelEmitter, some: boolean): void {
  const { code } = k;
  if (k.passes && !some) return;
  if (k.whole >= 0) code.i32(0).set(k.whole);
  if (k.passes) {
    code.get(k.passes.gone);
    k.pushBits(k.active);
    code.op('i32.or').set(k.passes.gone);
  } else if (k.kernel.layout.stateful) {
    setState(k, STATE.exited);
  }
}

/** True if control falls through from the end of `from` to `to`. */
function fallsTo(k: LaneKernelEmitter, from: number, to: number): boolean {
  const inner = [...k.loopLabels.keys()].at(-1);
  // Threads that stay in the loop are unchanged where it ends.
  if (inner?.header === to) return lastBlock(k, inner) === from;
  if (k.following.get(from) !== to) return false;
  for (const region of k.loopLabels.keys())
    if (region.header === to || !region.members.has(to)) return false;
  return true;
}

/** All active threads go to a block, which control reaches in layout order. */
export function sendTo(k: LaneKernelEmitter, from: number, to: number): void {
  if (fallsTo(k, from, to)) return;
  if (k.plan.leaves(to)) leaveKernel(k, true);
  else waitAt(k, to, k.active);
  clearActive(k);
}

/** A divergent branch, each thread by its own predicate. */
export function partThreads(
  k: LaneKernelEmitter,
  from: number,
  register: Register,
  negated: boolean,
  yes: number,
  no: number,
): void {
  const { code } = k;
  if (k.isVarying(register)) k.laneLocal(register);
  const taken = k.temps(k.groups);
  const rest = k.temps(k.groups);
  k.eachGroup((group) => {
    const local = k.active[group]!;
    code.get(local);
    k.pushPart(register, 0);
    code.op('v128.and').set(taken[group]!).get(local);
    k.pushPart(register, 0);
    code.op('v128.andnot').set(rest[group]!);
  });
  const [yesMask, noMask] = negated ? [rest, taken] : [taken, rest];
  const become = (masks: readonly number[]): void => {
    k.active.forEach((local, group) => {
      code.get(masks[group]!).set(local);
    });
  };
  let stay: readonly number[] | undefined;
  for (const [to, mask] of [
    [yes, yesMask],
    [no, noMask],
  ] as const) {
    if (fallsTo(k, from, to)) {
      stay = mask;
    } else if (k.plan.leaves(to)) {
      become(mask);
      leaveKernel(k, true);
    } else {
      waitAt(k, to, mask);
    }
  }
  if (stay) become(stay);
  else clearActive(k);
}

/** All threads that are left go to a block at once. */
export function jumpTo(
  k: LaneKernelEmitter,
  from: number,
  to: number,
  mayFallThrough = true,
): void {
  for (const region of k.loopLabels.keys()) {
    if (region.header !== to) continue;
    backEdge(k, region);
    k.branchTo(k.turnLabel);
    return;
  }
  if (mayFallThrough && fallsTo(k, from, to)) return;
  if (k.plan.leaves(to)) {
    leaveKernel(k, false);
    k.branchTo(k.turnLabel);
    return;
  }
  k.branchTo(k.blockLabels.get(to)!);
}
