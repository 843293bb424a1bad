/**
 * What memory a device's objects hold: told where it is made and given back, for
 * {@link CoreDevice.stats} and the channels `async-cuda:alloc` and `async-cuda:free`.
 */
import type { Channel } from 'node:diagnostics_channel';

import { allocated, deviceName, freed } from './channels.js';
import type { MemoryKind, MemoryMessage } from './channels.js';
import type { CoreDevice } from './device.js';

/** What the ledger wants to know of a piece of memory. */
export interface Piece {
  readonly kind: MemoryKind;
  readonly handle: number;
  readonly bytes: number;
  readonly label?: string | undefined;
  /** Whether there is, or was, memory; undefined where the device has not come to it. */
  readonly made: boolean | undefined;
}

/** A piece that was taken or given back. */
interface Entry {
  readonly piece: Piece;
  readonly sign: 1 | -1;
}

/** Entries that are kept before anybody looks which of them are settled. */
const LOOK_AFTER = 256;
/**
 * Where a stream does not come to its allocations for long, the oldest of so many count as made.
 */
const MOST_ENTRIES = 8192;

/**
 * Allocations in stream order fail later than they are taken, and then have not been: the peak must
 * not know of them either.
 */
export class MemoryLedger {
  /** Pieces that are held, the page-locked ones apart; those that could not be made, too. */
  held = 0;
  pinnedHeld = 0;
  pinnedBytes = 0;
  private taken = 0;
  private failures = 0;
  /** In the order of the calls; in front of them everything is known. */
  private entries: Entry[] = [];
  private lookAt = LOOK_AFTER;
  /** Of what is known: bytes held, and the most there were. */
  private settledBytes = 0;
  private settledPeak = 0;
  /** Of the entries. */
  private openBytes = 0;
  /** Pieces that could not be made and are held all the same. */
  private readonly failed = new Set<Piece>();
  private readonly device: CoreDevice;

  constructor(device: CoreDevice) {
    this.device = device;
  }

  take(memory: Piece): void {
    this.taken++;
    this.note(memory, 1);
    if (allocated.hasSubscribers) this.tell(allocated, memory);
  }

  give(memory: Piece): void {
    this.note(memory, -1);
    if (freed.hasSubscribers) this.tell(freed, memory);
  }

  /**
   * As far as is known by now: bytes held and the most there were, and the pieces that were ever
   * made; page-locked memory in these only.
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
   * Strikes out what failed, and puts together what comes before the first piece of which nothing
   * is known.
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

  private tell(channel: Channel, { kind, handle, bytes, label }: Piece): void {
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
