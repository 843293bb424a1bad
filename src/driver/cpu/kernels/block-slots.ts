/**
 * The memory that a running thread block needs beside its arguments: its context block, a copy of
 * the launch's parameters, its shared memory and the compiler's scratch. Slots are kept by size, so
 * that launching in a loop takes nothing from the allocator.
 */
import { CTX } from '../../../ptx/index.js';
import { GRANULE } from '../memory/arena.js';
import type { Range } from '../memory/arena.js';
import type { DeviceMemory } from '../memory/device-memory.js';
import { WATCH } from './stall.js';

/**
 * How a slot is divided, which depends on the kernel, its block size and its dynamic shared memory
 * only.
 */
export interface SlotLayout {
  bytes: number;
  params: number;
  shared: number;
  sharedBytes: number;
  scratch: number;
  scratchBytes: number;
}

const MIN_ALIGNMENT = 128;
/**
 * What slots begin at a multiple of: shared variables keep alignments up to it, the largest that
 * instructions ask for.
 */
const SLOT_ALIGNMENT = 1024;
/**
 * Bytes in front of a slot that nobody uses. A kernel whose last block writes past the end of a
 * buffer, a thread or 1024 of them too many, meets nothing there on a GPU; here it would write over
 * what is kept of a block that is running.
 */
const GUARD = 8192;

export function layOutSlot(
  paramBytes: number,
  sharedBytes: number,
  sharedAlign: number,
  scratchBytes: number,
): SlotLayout {
  const params = CTX.bytes;
  const shared = alignUp(params + paramBytes, Math.max(sharedAlign, MIN_ALIGNMENT));
  const scratch = alignUp(shared + sharedBytes, MIN_ALIGNMENT);
  return { bytes: scratch + scratchBytes, params, shared, sharedBytes, scratch, scratchBytes };
}

function alignUp(value: number, alignment: number): number {
  return Math.ceil(value / alignment) * alignment;
}

export interface BlockSlot {
  readonly range: Range;
  /** Address of the context block; a multiple of SLOT_ALIGNMENT. */
  readonly address: number;
  readonly sizeClass: number;
  /** How often the block in it has used up its fuel. */
  yields: number;
  /** What is remembered of the block: see `stall.ts`. */
  readonly watch: Int32Array;
}

export class BlockSlots {
  private readonly memory: DeviceMemory;
  private readonly spare: BlockSlot[][] = [];

  constructor(memory: DeviceMemory) {
    this.memory = memory;
  }

  /** Undefined where the device has no memory left for it. */
  take(bytes: number): BlockSlot | undefined {
    const sizeClass = 32 - Math.clz32(bytes - 1);
    const kept = this.spare[sizeClass]?.pop();
    if (kept !== undefined) return kept;
    const range = this.memory.reserve(GUARD + 2 ** sizeClass + SLOT_ALIGNMENT - GRANULE);
    return range === undefined
      ? undefined
      : {
          range,
          address: alignUp(range.address + GUARD, SLOT_ALIGNMENT),
          sizeClass,
          yields: 0,
          watch: new Int32Array(WATCH.words),
        };
  }

  giveBack(slot: BlockSlot): void {
    slot.yields = 0;
    (this.spare[slot.sizeClass] ??= []).push(slot);
  }

  /** Returns all memory that no block uses; false where there was none. */
  trim(): boolean {
    let any = false;
    for (const stack of this.spare) {
      for (const slot of stack?.splice(0) ?? []) {
        this.memory.giveBack(slot.range);
        any = true;
      }
    }
    return any;
  }
}
