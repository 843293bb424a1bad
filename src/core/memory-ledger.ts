/**
 * The memory that a device's objects hold. Allocations and frees are recorded here, for
 * {@link CoreDevice.stats} and the channels `async-cuda:alloc` and `async-cuda:free`.
 */
import type { Channel } from 'node:diagnostics_channel';

import { allocated, deviceName, freed } from './channels.js';
import type { MemoryKind, MemoryMessage } from './channels.js';
import type { CoreDevice } from './device.js';

/** A piece of memory, as the ledger sees it. */
export interface Piece {
  readonly kind: MemoryKind;
  readonly handle: number;
  readonly bytes: number;
  readonly label?: string | undefined;
  /**
   * Whether the memory was allocated; undefined where the device has not reached the allocation.
   */
  readonly made: boolean | undefined;
}

/** An allocation or a free. */
interface Entry {
  readonly piece: Piece;
  readonly sign: 1 | -1;
}

/** Entries that are kept before they are checked for allocations that have settled. */
const LOOK_AFTER = 256;
/**
 * Where a stream does not reach its allocations for long, the oldest entries beyond this number
 * count as made.
 */
const MOST_ENTRIES = 8192;

/**
 * An allocation in stream order may fail after it was recorded. The peak must not include it then.
 */
export class MemoryLedger {
  /**
   * The number of pieces that are held, without and with page-locked memory apart; failed
   * allocations included.
   */
  held = 0;
  pinnedHeld = 0;
  pinnedBytes = 0;
  private taken = 0;
  private failures = 0;
  /**
   * Allocations and frees in the order of the calls, whose result may not be known. The result of
   * all earlier ones is known.
   */
  private entries: Entry[] = [];
  private lookAt = LOOK_AFTER;
  /** Bytes that are held according to the known entries, and their peak. */
  private settledBytes = 0;
  private settledPeak = 0;
  /** Bytes of the open entries. */
  private openBytes = 0;
  /** Pieces that could not be allocated, and were not closed yet. */
  private readonly failed = new Set<Piece>();
  private readonly device: CoreDevice;

  constructor(device: CoreDevice) {
    this.device = device;
  }

  take(memory: Piece): void {
    this.taken++;
    this.note(memory, 1);
    if (allocated.hasSubscribers) this.publish(allocated, memory);
  }

  give(memory: Piece): void {
    this.note(memory, -1);
    if (freed.hasSubscribers) this.publish(freed, memory);
  }

  /**
   * The numbers as far as they are known by now: bytes held, their peak, and the pieces that were
   * ever allocated; page-locked memory is in the last one only.
   */
  numbers(): { bytes: number; peakBytes: number; made: number } {
    this.settle();
    let bytes = this.settledBytes;
    let peakBytes = this.settledPeak;
    for (const { piece, sign } of this.entries) {
      bytes += sign * piece.bytes;
      if (bytes > peakBytes) peakBytes = bytes;
    }
    return { bytes, peakBytes, made: this.taken - this.failures };
  }

  private note(piece: Piece, sign: 1 | -1): void {
    if (piece.kind === 'pinned') {
      this.pinnedHeld += sign;
      this.pinnedBytes += sign * piece.bytes;
      return;
    }
    this.held += sign;
    if (sign < 0 && this.failed.delete(piece)) return;
    this.entries.push({ piece, sign });
    this.openBytes += sign * piece.bytes;
    if (this.entries.length < this.lookAt) return;
    this.settle();
    this.lookAt = Math.min(MOST_ENTRIES, this.entries.length * 2 + LOOK_AFTER);
  }

  /**
   * Removes failed allocations, and sums up the entries before the first piece whose result is not
   * known.
   */
  private settle(): void {
    const { entries, failed } = this;
    const open: Entry[] = [];
    const mostOpen = entries.length >= MOST_ENTRIES ? MOST_ENTRIES / 2 : MOST_ENTRIES;
    for (let i = 0; i < entries.length; i++) {
      const entry = entries[i]!;
      const { piece, sign } = entry;
      const made = sign < 0 ? !failed.delete(piece) : piece.made;
      if (made === false) {
        this.openBytes -= sign * piece.bytes;
        if (sign < 0) continue;
        this.failures++;
        failed.add(piece);
      } else if (open.length > 0 || (made === undefined && entries.length - i <= mostOpen))
        open.push(entry);
      else {
        this.openBytes -= sign * piece.bytes;
        this.settledBytes += sign * piece.bytes;
        if (this.settledBytes > this.settledPeak) this.settledPeak = this.settledBytes;
      }
    }
    this.entries = open;
  }

  private publish(channel: Channel, { kind, handle, bytes, label }: Piece): void {
    const { device } = this;
    const bytesInUse = kind === 'pinned' ? this.pinnedBytes : this.settledBytes + this.openBytes;
    const message: MemoryMessage = {
      time: performance.now(),
      device: deviceName(device),
      kind,
      memory: handle,
      bytes,
      label,
      bytesInUse,
    };
    device.shared.recorder?.memory(message);
    channel.publish(message);
  }
}
