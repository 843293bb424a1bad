/**
 * A memory pool: stream-ordered allocations, and the memory that is kept for the next ones. Freed
 * memory stays in the pool while the pool has no more than its release threshold, and otherwise
 * returns to the device at once. A GPU returns it at the next synchronisation, which is the
 * earliest point at which a program could see the difference.
 */
import { GRANULE } from './arena.js';
import type { Range } from './arena.js';
import type { Allocation, DeviceMemory } from './device-memory.js';

/** The device that a pool is on. */
export interface PoolDevice {
  readonly ordinal: number;
  /** Its primary context, which has the memory. */
  readonly context: { readonly memory: DeviceMemory } | undefined;
}

export class MemoryPool {
  readonly handle: number;
  readonly device: PoolDevice;
  /** The bound in bytes; 0 means that of the device's memory. */
  readonly maxBytes: number;
  readonly isDefault: boolean;
  releaseThreshold = 0;
  /** The three REUSE_* switches by attribute; they change no result on this device. */
  readonly reuse = new Map<number, number>([
    [1, 1],
    [2, 1],
    [3, 1],
  ]);
  used = 0;
  usedHigh = 0;
  reserved = 0;
  reservedHigh = 0;
  destroyed = false;
  /**
   * Kept ranges by size; undefined where the memory itself is in quarantine, as on a checked
   * device.
   */
  private readonly kept = new Map<number, (Range | undefined)[]>();

  constructor(handle: number, device: PoolDevice, maxBytes: number, isDefault: boolean) {
    this.handle = handle;
    this.device = device;
    this.maxBytes = maxBytes;
    this.isDefault = isDefault;
  }

  /** `isCounted`: the allocation replaces one that is still to be freed, and counts until then. */
  take(memory: DeviceMemory, bytes: number, isCounted: boolean): Allocation | undefined {
    const rounded = roundToGranule(bytes);
    if (isCounted) {
      const range = memory.reserve(bytes + memory.gap);
      return range && memory.adopt(range, bytes, 'pool', this);
    }
    const stack = this.kept.get(rounded);
    const isKept = stack !== undefined && stack.length > 0;
    if (!isKept && this.maxBytes > 0 && this.reserved + rounded > this.maxBytes) return undefined;
    const range = stack?.at(-1) ?? memory.reserve(bytes + memory.gap);
    if (range === undefined) return undefined;
    if (isKept) {
      if (stack.pop() === undefined) memory.promised -= rounded;
    } else {
      this.reserved += rounded;
      this.reservedHigh = Math.max(this.reservedHigh, this.reserved);
    }
    this.used += rounded;
    this.usedHigh = Math.max(this.usedHigh, this.used);
    return memory.adopt(range, bytes, 'pool', this);
  }

  /** Removes memory that was counted and does not exist. */
  lose(bytes: number): void {
    const rounded = roundToGranule(bytes);
    this.used -= rounded;
    this.reserved -= rounded;
  }

  /** The stream has reached the free of this range. */
  put(memory: DeviceMemory, range: Range): void {
    // The free of a stream of another device may be reached after the reset of this one.
    if (memory !== this.device.context?.memory) return;
    const rounded = range.bytes - memory.gap;
    const isWatched = memory.watch !== undefined;
    this.used -= rounded;
    if (isWatched) memory.giveBack(range);
    if (this.reserved > this.releaseThreshold || this.destroyed) {
      this.reserved -= rounded;
      if (!isWatched) memory.giveBack(range);
      return;
    }
    if (isWatched) memory.promised += rounded;
    const kept = isWatched ? undefined : range;
    const stack = this.kept.get(rounded);
    if (stack === undefined) this.kept.set(rounded, [kept]);
    else stack.push(kept);
  }

  /** Returns unused memory to the device until at most `keep` bytes are left. */
  trim(memory: DeviceMemory, keep: number): void {
    for (const [bytes, stack] of this.kept) {
      while (this.reserved > keep && stack.length > 0) {
        const range = stack.pop();
        if (range === undefined) memory.promised -= bytes;
        else memory.giveBack(range);
        this.reserved -= bytes;
      }
      if (stack.length === 0) this.kept.delete(bytes);
    }
  }

  /** The device's memory does not exist any more, and neither does the pool's. */
  forget(): void {
    this.kept.clear();
    this.used = this.reserved = this.usedHigh = this.reservedHigh = 0;
  }
}

export function roundToGranule(bytes: number): number {
  return Math.max(1, Math.ceil(bytes / GRANULE)) * GRANULE;
}
