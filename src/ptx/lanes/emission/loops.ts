// The structured control flow of a kernel: loops with their entries, and the order of blocks in a
// turn that never goes round.

import { successors } from '../../analysis/blocks.js';
import type { Block } from '../../analysis/blocks.js';
import type { Register } from '../../analysis/program.js';
import { firstBlock } from '../../analysis/regions.js';
import type { Region } from '../../analysis/regions.js';
import { checksFirst } from '../check-hoisting-order.js';
import { LaneEmitter } from '../lane-emitter.js';
import type { LaneKernelEmitter } from '../lane-kernel.js';
import { access } from '../places.js';
import { registersOfGridSize } from '../side-by-side.js';
import { straightOrder } from '../straight-turns.js';
import { goesTogether } from '../warp.js';
import { emitBlock, guardOf } from './block-code.js';
import { arriveAt, lastBlock, onlyExit, repeatLoop, sendTo, takeWaiting } from './divergence.js';
import { restoreAt } from './frames.js';
import { startsWhole } from './turns.js';
import { steadyTurns } from './versioned-code.js';

/** Instructions of a loop that is worth a second copy. */
const LONGEST_TWICE = 500;

/**
 * Bytes that a thread moves at a time in a loop for whose sake blocks run side by side: a histogram
 * of bytes is 3 % slower then.
 */
const SMALLEST_STRIDING = 4;

/**
 * Times that a unit goes round a loop through memory in one turn. Units that keep step find their
 * neighbours' cache lines where they are: with 64 blocks of 256 threads over 64 MB, 8 times gave
 * 2.85 ms and 6 times 2.95, and on another machine 3.4 and 3.2, where 4 times gave 3.7 and 16 times
 * 3.9. Places that are powers of two apart share a first-level cache's few lines, of which a unit's
 * part takes two for each time.
 */
export const BURST = 8;

export function innerEntries(k: LaneKernelEmitter, region: Region): number[] {
  return k.frames.live.filter((block) => region.members.has(block) && block !== region.header);
}

/** Blocks at which control can come in from outside the flow, with the numbers that say so. */
export function arrivals(k: LaneKernelEmitter, region: Region): Map<number, number> {
  const found = new Map(
    innerEntries(k, region).map((block) => [k.frames.entryOf.get(block)!, block]),
  );
  if (k.everyone) return found;
  for (const [block, { numbers }] of k.handovers) {
    if (!region.members.has(block) || block === region.header) continue;
    for (const number of numbers.values()) found.set(number, block);
  }
  return found;
}

/** Whether control can come to the block from outside the flow. */
export function isEntered(k: LaneKernelEmitter, block: number): boolean {
  return k.frames.live.includes(block) || (!k.everyone && k.handovers.has(block));
}

export function emitRegion(k: LaneKernelEmitter, region: Region): void {
  const {
    code,
    kernel: { blocks },
  } = k;
  const inner = arrivals(k, region);
  const { items } = region;
  const isLoop = region.header >= 0;
  /**
   * Turns that begin at the loop's header come in from before it: those that go round have
   * nothing to restore.
   */
  const restoredAhead =
    isLoop && k.everyone && inner.size === 0 && k.frames.live.includes(region.header);
  const end = {};
  /** Where a loop's threads come together that wait to go round again. */
  const tail = {};
  k.openLabel('block', end);
  if (isLoop) {
    // Threads that a turn resumes inside are let through.
    code.get(k.entryNumber).op('i32.eqz');
    k.when(() => {
      arriveAt(k, region.header, end);
    });
    k.awaited.delete(region.header);
    if (!k.handovers.size) emitUnparted(k, region, end);
    else if (k.everyone && isStreamingLoop(k, region)) shortenTurn(k, blocks[region.header]!);
    const to = onlyExit(k, region);
    if (to !== undefined) {
      const entered = k.masks();
      k.active.forEach((local, group) => {
        code.get(local).set(entered[group]!);
      });
      k.leaving.set(region, { to, entered });
    }
    k.awaited.delete(region.header);
    if (restoredAhead) restoreWhole(k, region.header);
    const steady =
      restoredAhead && region.members.size === 1
        ? steadyTurns(k, blocks[region.header]!)
        : undefined;
    const label = {};
    k.loopLabels.set(region, label);
    k.openLabel('loop', label);
    k.openLabel('block', tail);
    steady?.();
  }
  const after: object[] = [];
  for (let index = items.length - 1; index > 0; index--) {
    const label = {};
    after[index] = label;
    k.blockLabels.set(firstBlock(items[index]!), label);
    k.openLabel('block', label);
  }
  const bottom = {};
  if (inner.size) {
    k.openLabel('block', bottom);
    const numbers = Math.max(...inner.keys()) + 1;
    code.get(k.entryNumber).op('br_table').u32(numbers);
    for (let number = 0; number < numbers; number++) {
      const block = inner.get(number);
      const index =
        block === undefined
          ? 0
          : items.findIndex((item) =>
              typeof item === 'number' ? item === block : item.members.has(block),
            );
      code.u32(k.depthOf(index > 0 ? after[index]! : bottom));
    }
    code.u32(k.depthOf(bottom));
    k.closeLabel();
  }
  items.forEach((item, index) => {
    if (index > 0) k.closeLabel();
    if (typeof item !== 'number') {
      k.weight *= 8;
      emitRegion(k, item);
      k.weight /= 8;
      return;
    }
    const next = after[index + 1] ?? (isLoop ? tail : end);
    if (isEntered(k, item)) {
      if (k.everyone) {
        if (item !== region.header || !restoredAhead) restoreWhole(k, item);
      } else {
        if (item !== region.header) {
          code.get(k.entryNumber).op('i32.eqz');
          k.when(() => {
            arriveAt(k, item, next);
          });
        }
        if (!k.handovers.has(item)) code.i32(0).set(k.entryNumber);
      }
    } else if (item !== region.header) {
      arriveAt(k, item, next);
    }
    emitBlock(k, blocks[item]!);
  });
  if (isLoop) {
    k.closeLabel();
    if (!k.everyone && k.plan.waitsAt(region.header)) repeatLoop(k, region);
    k.closeLabel();
    k.loopLabels.delete(region);
    const left = k.leaving.get(region);
    if (left) {
      k.leaving.delete(region);
      k.active.forEach((local, group) => {
        code.get(left.entered[group]!).set(local);
      });
      sendTo(k, lastBlock(k, region), left.to);
    }
  }
  k.closeLabel();
}

/** In code for a whole unit: what a turn needs that begins at the block. */
export function restoreWhole(k: LaneKernelEmitter, block: number): void {
  const { code } = k;
  if (startsWhole(k)) {
    code.get(k.entryNumber);
    k.when(() => {
      restoreAt(k, block);
    });
  }
  code.i32(0).set(k.entryNumber);
}

export function orderOfTurn(k: LaneKernelEmitter): number[] | undefined {
  const { blocks } = k.kernel;
  // The first entry comes last, so that its blocks come first.
  return straightOrder(blocks, [...k.frames.live, 0], (block) => endsTurn(k, block));
}

/** Whether threads that come to the end of the block always wait there. */
export function endsTurn(k: LaneKernelEmitter, { ending }: Block): boolean {
  return ending.kind === 'cut' && !goesTogether(k, ending.inst);
}

/** Blocks of a turn that never goes round, in an order in which control only goes ahead. */
export function emitStraight(k: LaneKernelEmitter, order: readonly number[]): void {
  const {
    code,
    kernel: { blocks },
  } = k;
  const following = new Map(k.following);
  order.forEach((block, index) => {
    k.following.set(block, order[index + 1] ?? -1);
  });
  const labels = order.map(() => ({}));
  for (let index = order.length - 1; index >= 0; index--) {
    k.blockLabels.set(order[index]!, labels[index]!);
    k.openLabel('block', labels[index]!);
  }
  const label = (block: number): number =>
    k.depthOf(
      k.frames.live.includes(block) || block === 0 ? k.blockLabels.get(block)! : k.turnLabel,
    );
  code.get(k.entryNumber).op('br_table').u32(k.frames.entries.length);
  for (const block of [0, ...k.frames.entries]) code.u32(label(block));
  const reached = new Set(
    order.flatMap((block) => (endsTurn(k, blocks[block]!) ? [] : successors(blocks[block]!))),
  );
  for (const block of order) {
    k.closeLabel();
    if (k.frames.live.includes(block)) {
      const restore = (): void => {
        restoreAt(k, block);
      };
      if (reached.has(block)) {
        code.get(k.entryNumber);
        k.when(restore);
      } else {
        restore();
      }
      code.i32(0).set(k.entryNumber);
    }
    emitBlock(k, blocks[block]!);
  }
  for (const [block, next] of following) k.following.set(block, next);
}

/**
 * A loop of one block, for as long as all threads of the unit go round in it: no masks are
 * needed.
 */
export function emitUnparted(k: LaneKernelEmitter, region: Region, end: object): void {
  const {
    code,
    kernel: { blocks },
  } = k;
  const block = blocks[region.header]!;
  const guard = guardOf(k, block);
  if (region.members.size > 1 || !guard || block.insts.length > LONGEST_TWICE) return;
  const parted = {};
  const label = {};
  k.openLabel('block', parted);
  k.pushAll(k.active);
  code.op('i32.eqz');
  k.branchTo(parted, 'br_if');
  if (k.frames.live.includes(region.header)) code.i32(0).set(k.entryNumber);
  if (isStreaming(k, block)) shortenTurn(k, block);
  k.loopLabels.set(region, label);
  k.openLabel('loop', label);
  const { lanes, threads } = k.effort;
  k.everyone = true;
  k.unparted = { region, end };
  const early = checksFirst(k, block);
  emitBlock(k, early?.block ?? block, early && { run: early.run, otherwise: parted });
  k.unparted = undefined;
  k.everyone = false;
  Object.assign(k.effort, { lanes, threads });
  k.closeLabel();
  k.loopLabels.delete(region);
  takeWaiting(k, region.header);
  k.closeLabel();
}

/** The unit goes round a few times only before it is the next one's turn, if there is another. */
export function shortenTurn(k: LaneKernelEmitter, block: Block): void {
  const {
    code,
    slice,
    fuel,
    kernel: { blocks, shape },
  } = k;
  k.ofGridSize ??= registersOfGridSize(blocks, shape.order);
  k.stridesByGrid ||= streamedAddresses(k, block, SMALLEST_STRIDING).some(({ id }) =>
    k.ofGridSize!.has(id),
  );
  code
    .get(slice)
    .i32(BURST)
    .op('i32.gt_s')
    .get(k.contextField('threads'))
    .i32(k.width)
    .op('i32.gt_u')
    .op('i32.and');
  k.when(() => {
    // Fuel is reckoned from what is left of the slice.
    code.get(fuel).get(slice).op('i32.add').i32(BURST).op('i32.sub').set(fuel);
    code.i32(BURST).set(slice);
  });
}

/**
 * A loop of one block that some threads leave before others, and that goes through memory: its
 * turns are short in code for a whole unit, so that units keep step.
 */
export function isStreamingLoop(k: LaneKernelEmitter, { header, members }: Region): boolean {
  return members.size === 1 && k.plan.parts(header) && isStreaming(k, k.kernel.blocks[header]!);
}

/** Whether a loop's threads go through memory side by side, to another place each time. */
function isStreaming(e: LaneEmitter, block: Block): boolean {
  return streamedAddresses(e, block).length > 0;
}

/** The registers that hold the addresses of such accesses, of so many bytes at least. */
function streamedAddresses(e: LaneEmitter, block: Block, smallest = 1): Register[] {
  const moved = new Set(block.insts.flatMap((inst) => inst.defs));
  return block.insts.flatMap((inst) => {
    if (inst.mnemonic !== 'ld' && inst.mnemonic !== 'st') return [];
    e.inst = inst;
    const found = access(
      e,
      inst.args[inst.mnemonic === 'st' ? 0 : 1],
      inst.args[inst.mnemonic === 'st' ? 1 : 0],
    );
    return found !== undefined &&
      !found.shared &&
      found.stride === found.size &&
      found.size >= smallest &&
      moved.has(found.address.base!)
      ? [found.address.base!]
      : [];
  });
}
