/**
 * A memory pool: stream-ordered allocations, and what is kept of them for the next ones. Freed memory stays with the
 * pool while the pool holds no more than its release threshold, and otherwise goes back to the device at once: a GPU
 * gives it back at the next synchronisation, which is the earliest point at which a program could see the difference.
 */
import type { CpuDevice } from '../device.js';
import { GRANULE } from './arena.js';
import type { Range } from './arena.js';
import type { Allocation, DeviceMemory } from './device-memory.js';

export class MemoryPool {
  readonly handle: number;
  readonly device: CpuDevice;
  /** 0: no bound but the device's memory. */
  readonly maxBytes: number;
  readonly isDefault: boolean;
  releaseThreshold = 0;
  /** The three REUSE_* switches by attribute; they change no result on this device. */
  readonly reuse = new Map<number, number>([[1, 1], [2, 1], [3, 1]]);
  used = 0;
  usedHigh = 0;
  reserved = 0;
  reservedHigh = 0;
  destroyed = false;
  private readonly kept = new Map<number, Range[]>();

  constructor(handle: number, device: CpuDevice, maxBytes: number, isDefault: boolean) {
    this.handle = handle;
    this.device = device;
    this.maxBytes = maxBytes;
    this.isDefault = isDefault;
  }

  take(memory: DeviceMemory, bytes: number): Allocation | undefined {
    const rounded = roundToGranule(bytes + memory.gap);
    const stack = this.kept.get(rounded);
    let range = stack?.pop();
    if (range === undefined) {
      if (this.maxBytes > 0 && this.reserved + rounded > this.maxBytes) return undefined;
      range = memory.reserve(bytes + memory.gap);
      if (range === undefined) return undefined;
      this.reserved += range.bytes;
      this.reservedHigh = Math.max(this.reservedHigh, this.reserved);
    }
    this.used += range.bytes;
    this.usedHigh = Math.max(this.usedHigh, this.used);
    return memory.adopt(range, bytes, 'pool', this);
  }

  /** The stream has reached the free of this range. */
  put(memory: DeviceMemory, range: Range): void {
    // The free of a stream of another device can arrive after the reset of this one.
    if (memory !== this.device.context?.memory) return;
    this.used -= range.bytes;
    // Memory that is watched goes into quarantine, which is the device's.
    if (this.reserved > this.releaseThreshold || this.destroyed || memory.watch !== undefined) {
      this.reserved -= range.bytes;
      memory.giveBack(range);
      return;
    }
    const stack = this.kept.get(range.bytes);
    if (stack === undefined) this.kept.set(range.bytes, [range]);
    else stack.push(range);
  }

  /** Gives unused memory back until at most `keep` bytes are held. */
  trim(memory: DeviceMemory, keep: number): void {
    for (const [bytes, stack] of this.kept) {
      while (this.reserved > keep && stack.length > 0) {
        memory.giveBack(stack.pop()!);
        this.reserved -= bytes;
      }
      if (stack.length === 0) this.kept.delete(bytes);
    }
  }

  /** The device's memory is gone, and with it whatever the pool held. */
  forget(): void {
    this.kept.clear();
    this.used = this.reserved = this.usedHigh = this.reservedHigh = 0;
  }
}

export function roundToGranule(bytes: number): number {
  return Math.max(1, Math.ceil(bytes / GRANULE)) * GRANULE;
}
