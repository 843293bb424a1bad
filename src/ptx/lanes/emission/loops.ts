// The structured control flow of a kernel: loops with their entries, and the order of blocks in a
// turn without loops.

import { successors } from '../../analysis/blocks.js';
import { firstBlock } from '../../analysis/regions.js';
import type { Region } from '../../analysis/regions.js';
import type { LaneKernelEmitter } from '../lane-kernel.js';
import { endsTurn } from '../straight-turns.js';
import { BURST } from '../streaming-loops.js';
import { emitBlock } from './block-code.js';
import { arriveAt, repeatLoop } from './divergence.js';
import { restoreAt } from './frames.js';
import { startsWhole } from './whole-units.js';

function innerEntries(k: LaneKernelEmitter, region: Region): number[] {
  return k.frames.live.filter((block) => region.members.has(block) && block !== region.header);
}

/** Blocks at which control can enter from outside the flow, with their numbers. */
export function arrivals(k: LaneKernelEmitter, region: Region): Map<number, number> {
  const found = new Map(
    innerEntries(k, region).map((block) => [k.frames.entryOf.get(block)!, block]),
  );
  if (k.wholeUnit) return found;
  for (const [block, { entries }] of k.codePlan.general.blocks) {
    if (!region.members.has(block) || block === region.header) continue;
    for (const number of entries.values()) found.set(number, block);
  }
  return found;
}

/** Whether control can enter the block from outside the flow. */
function isEntered(k: LaneKernelEmitter, block: number): boolean {
  return k.frames.live.includes(block) || (!k.wholeUnit && isHandedOver(k, block));
}

/** Whether code for whole units hands over to the general code in the block. */
const isHandedOver = (k: LaneKernelEmitter, block: number): boolean =>
  k.codePlan.general.blocks.get(block)!.entries.size > 0;

export function emitRegion(k: LaneKernelEmitter, region: Region): void {
  const { code } = k;
  const inner = arrivals(k, region);
  const { items } = region;
  const isLoop = region.header >= 0;
  const version = k.wholeUnit ? k.codePlan.whole! : k.codePlan.general;
  /**
   * Turns that begin at the loop's header enter from before it: threads that stay in the loop have
   * nothing to restore.
   */
  const restoredAhead =
    isLoop && k.wholeUnit && inner.size === 0 && k.frames.live.includes(region.header);
  const end = {};
  /** Where threads of a loop reconverge that wait for its next turn. */
  const tail = {};
  k.openLabel('block', end);
  if (isLoop) {
    // Threads that a turn resumes inside are passed through.
    code.get(k.entryNumber).op('i32.eqz');
    k.when(() => {
      arriveAt(k, region.header, end);
    });
    k.awaited.delete(region.header);
    if (k.wholeUnit && k.codePlan.shortLoops.has(region.header)) shortenTurn(k);
    if (restoredAhead) restoreWhole(k, region.header);
    const label = {};
    k.loopLabels.set(region, label);
    k.openLabel('loop', label);
    k.openLabel('block', tail);
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
      if (k.wholeUnit) {
        if (item !== region.header || !restoredAhead) restoreWhole(k, item);
      } else {
        if (item !== region.header) {
          code.get(k.entryNumber).op('i32.eqz');
          k.when(() => {
            arriveAt(k, item, next);
          });
        }
        if (!isHandedOver(k, item)) code.i32(0).set(k.entryNumber);
      }
    } else if (item !== region.header) {
      arriveAt(k, item, next);
    }
    emitBlock(k, version.blocks.get(item)!);
  });
  if (isLoop) {
    k.closeLabel();
    if (!k.wholeUnit && k.plan.waitsAt(region.header)) repeatLoop(k, region);
    k.closeLabel();
    k.loopLabels.delete(region);
  }
  k.closeLabel();
}

/** In code for whole units: restores what a turn needs that begins at the block. */
function restoreWhole(k: LaneKernelEmitter, block: number): void {
  const { code } = k;
  if (startsWhole(k)) {
    code.get(k.entryNumber);
    k.when(() => {
      restoreAt(k, block);
    });
  }
  code.i32(0).set(k.entryNumber);
}

/** Blocks of a turn without loops, in an order in which control only goes forward. */
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
    emitBlock(k, k.codePlan.whole!.blocks.get(block)!);
  }
  for (const [block, next] of following) k.following.set(block, next);
}

/** The unit goes round a few times only, and then the next one gets its turn, if there is one. */
function shortenTurn(k: LaneKernelEmitter): void {
  const { code, slice, fuel } = k;
  code
    .get(slice)
    .i32(BURST)
    .op('i32.gt_s')
    .get(k.contextField('threads'))
    .i32(k.width)
    .op('i32.gt_u')
    .op('i32.and');
  k.when(() => {
    // Fuel is computed from the rest of the slice.
    code.get(fuel).get(slice).op('i32.add').i32(BURST).op('i32.sub').set(fuel);
    code.i32(BURST).set(slice);
  });
}
