/** Page-locked memory between a context and the device, where the library cannot reach the device's own: grown when it is too small. */
import { u8 } from '../core/index.js';
import type { Device, PinnedBuffer } from '../core/index.js';
import { ask } from './thread-crew.js';

/** Tensors begin at multiples of this. */
const ALIGNMENT = 64;
const LEAST_BYTES = 1 << 16;

/** Memory, and where it is in the process. */
export interface StagingArea {
  readonly buffer: PinnedBuffer;
  readonly address: number;
}

export class Staging {
  private readonly device: Device;
  private area: StagingArea | undefined;
  private growing: Promise<StagingArea> | undefined;

  constructor(device: Device) {
    this.device = device;
  }

  /** At least so many bytes; at once where they are there. What is there is given back once its copies are over. */
  ofBytes(bytes: number): StagingArea | Promise<StagingArea> {
    if (this.growing === undefined && this.area !== undefined && this.area.buffer.byteLength >= bytes) return this.area;
    const before = this.growing ?? Promise.resolve(undefined);
    const growing = before.catch(() => undefined).then(() => this.grow(bytes)).finally(() => {
      if (this.growing === growing) this.growing = undefined;
    });
    return (this.growing = growing);
  }

  private async grow(bytes: number): Promise<StagingArea> {
    if (this.area !== undefined && this.area.buffer.byteLength >= bytes) return this.area;
    const old = this.area;
    this.area = undefined;
    const buffer = await this.device.pinned(u8, Math.max(LEAST_BYTES, 2 ** Math.ceil(Math.log2(bytes))));
    const start = await ask({ kind: 'address', buffer: buffer.buffer });
    this.area = { buffer, address: start + buffer.bufferOffset };
    if (old !== undefined) void old.buffer.close();
    return this.area;
  }

  async close(): Promise<void> {
    await this.growing?.catch(() => undefined);
    await this.area?.buffer.close();
    this.area = undefined;
  }
}

/** Where tensors of these sizes begin, one behind the other, and the size of all. */
export function layOut(sizes: readonly number[]): { offsets: number[]; bytes: number } {
  let bytes = 0;
  const offsets = sizes.map((size) => {
    const offset = bytes;
    bytes += Math.ceil(size / ALIGNMENT) * ALIGNMENT;
    return offset;
  });
  return { offsets, bytes };
}
