/**
 * What memory a device's objects hold: told where it is made and given back, for {@link Device.stats} and the channels
 * `async-cuda:alloc` and `async-cuda:free`.
 */
import type { Channel } from 'node:diagnostics_channel';

import { allocated, deviceName, freed } from './channels.js';
import type { MemoryKind, MemoryMessage } from './channels.js';
import type { Device } from './device.js';

/** What the ledger wants to know of a piece of memory. */
export interface Piece {
  readonly kind: MemoryKind;
  readonly handle: number;
  readonly bytes: number;
  readonly label?: string | undefined;
}

export class MemoryLedger {
  /** Pieces that were ever made. */
  made = 0;
  /** Those that are held, the page-locked ones apart. */
  held = 0;
  pinnedHeld = 0;
  bytes = 0;
  peakBytes = 0;
  pinnedBytes = 0;
  private readonly device: Device;

  constructor(device: Device) {
    this.device = device;
  }

  take(memory: Piece): void {
    this.made++;
    this.change(memory, 1);
    if (this.bytes > this.peakBytes) this.peakBytes = this.bytes;
    if (allocated.hasSubscribers) this.tell(allocated, memory);
  }

  give(memory: Piece): void {
    this.change(memory, -1);
    if (freed.hasSubscribers) this.tell(freed, memory);
  }

  private change({ kind, bytes }: Piece, sign: 1 | -1): void {
    if (kind === 'pinned') {
      this.pinnedHeld += sign;
      this.pinnedBytes += sign * bytes;
    } else {
      this.held += sign;
      this.bytes += sign * bytes;
    }
  }

  private tell(channel: Channel, { kind, handle, bytes, label }: Piece): void {
    const { device } = this;
    const bytesInUse = kind === 'pinned' ? this.pinnedBytes : this.bytes;
    const message: MemoryMessage = { time: performance.now(), device: deviceName(device), kind, memory: handle, bytes, label, bytesInUse };
    device.shared.recorder?.memory(message);
    channel.publish(message);
  }
}
