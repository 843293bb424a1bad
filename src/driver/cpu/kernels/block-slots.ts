/**
 * The memory that a running thread block needs besides its arguments: its context block, a copy of
 * the launch's parameters, its shared memory and the compiler's scratch. Slots are kept by size, so
 * that launching in a loop does not allocate.
 */
import { CTX, SHARED_ALIGNMENT } from '../../../ptx/index.js';
import { GRANULE } from '../memory/arena.js';
import type { Range } from '../memory/arena.js';
import type { DeviceMemory } from '../memory/device-memory.js';
import { PART_ALIGNMENT, windowAlignment } from './shared-window.js';
import { WATCH } from './stall.js';

/**
 * The layout of a slot, which depends on the kernel, its block size and its dynamic shared memory
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

/** The alignment of slots: shared variables keep alignments up to it. */
const SLOT_ALIGNMENT = SHARED_ALIGNMENT;
/**
 * Unused bytes before a slot. A kernel whose last block writes past the end of a buffer, by one to
 * 1024 threads, damages nothing on a GPU; here it would overwrite the state of a running block.
 */
const GUARD = 8192;

export function layOutSlot(
  paramBytes: number,
  sharedBytes: number,
  sharedAlign: number,
  scratchBytes: number,
): SlotLayout {
  const params = CTX.bytes;
  const shared = alignUp(params + paramBytes, windowAlignment(sharedBytes, sharedAlign));
  const scratch = alignUp(shared + sharedBytes, PART_ALIGNMENT);
  return { bytes: scratch + scratchBytes, params, shared, sharedBytes, scratch, scratchBytes };
}

function alignUp(value: number, alignment: number): number {
  return Math.ceil(value / alignment) * alignment;
}

export interface BlockSlot {
  readonly range: Range;
  /** The address of the context block, a multiple of SLOT_ALIGNMENT. */
  readonly address: number;
  readonly sizeClass: number;
  /** How often the block in it has used up its fuel. */
  yields: number;
  /** The recorded state of the block: see `stall.ts`. */
  readonly watch: Int32Array;
}

export class BlockSlots {
  private readonly memory: DeviceMemory;
  private readonly spare: BlockSlot[][] = [];

  constructor(memory: DeviceMemory) {
    this.memory = memory;
  }

  /** Returns a slot; undefined where the device has no memory left for it. */
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

  /** Returns all memory that no block uses to the device; false where there was none. */
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
