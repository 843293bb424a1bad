/**
 * Page-locked memory between a context and the device, where the library cannot reach the device's
 * own: grown when it is too small.
 */
import { u8 } from '../core/index.js';
import type { CoreDevice, PinnedBuffer, Stream } from '../core/index.js';
import { copyFromStaging, copyToStaging } from '../core/host-work.js';
import type { HostUse } from '../core/host-work.js';
import { capacityFor } from '../native/memory-places.js';
import type { AnyTensor } from '../tensor/index.js';
import { ask } from './thread-crew.js';

/** Memory, and where it is in the process. */
export interface StagingArea {
  readonly buffer: PinnedBuffer;
  readonly address: number;
}

export class Staging {
  private readonly device: CoreDevice;
  private area: StagingArea | undefined = undefined;
  /** Uses that were queued before there was memory for them, and the end of the last of them. */
  private latecomers = 0;
  private last: Promise<void> = Promise.resolve();

  constructor(device: CoreDevice) {
    this.device = device;
  }

  /**
   * At least so many bytes whose uses the streams can order: they are there, and nothing that was
   * queued without them is under way.
   */
  ready(bytes: number): StagingArea | undefined {
    return this.latecomers === 0 && this.area !== undefined && this.area.buffer.byteLength >= bytes
      ? this.area
      : undefined;
  }

  /**
   * At least so many bytes, for what takes its place in a stream before they are there: once all
   * that came so before it is over. To be followed by {@link usedUntil}.
   */
  later(bytes: number): Promise<StagingArea> {
    // Waited for from here on: what is queued next on other streams may wait for this use of it.
    const free = this.area?.buffer.memory.settled();
    const area = Promise.all([this.last, free]).then(() => this.ofBytes(bytes));
    // Whoever waits for it is told; where its work is not begun nobody is.
    area.catch(ignore);
    return area;
  }

  /** The end of what was given {@link later}. */
  usedUntil(done: Promise<void>): void {
    this.latecomers++;
    const end = (): void => {
      this.latecomers--;
    };
    const over = done.then(end, end);
    this.last = this.last.then(() => over);
  }

  /** What is there is given back once its copies are over. */
  private async ofBytes(bytes: number): Promise<StagingArea> {
    const old = this.area;
    if (old !== undefined && old.buffer.byteLength >= bytes) return old;
    const buffer = await this.device.pinned(u8, capacityFor(bytes));
    try {
      const start = await ask({ kind: 'address', buffer: buffer.buffer });
      this.area = { buffer, address: start + buffer.bufferOffset };
    } catch (error) {
      await buffer.close();
      throw error;
    }
    old?.buffer.close().catch(ignore);
    return this.area;
  }

  async close(): Promise<void> {
    await this.last;
    await this.area?.buffer.close();
    this.area = undefined;
  }
}

/** Queues the copies of tensors to page-locked memory, in front of work on it. */
export function stageIn(
  stream: Stream,
  { buffer }: StagingArea,
  tensors: readonly AnyTensor[],
  offsets: readonly number[],
): void {
  for (let i = 0; i < tensors.length; i++)
    copyToStaging(stream, tensors[i]!.dense(), buffer, offsets[i]!);
}

/** Those from it, behind the work. */
export function stageOut(
  stream: Stream,
  { buffer }: StagingArea,
  tensors: readonly (AnyTensor | undefined)[],
  offsets: readonly number[],
): void {
  for (let i = 0; i < tensors.length; i++) {
    const tensor = tensors[i];
    if (tensor !== undefined) copyFromStaging(stream, buffer, offsets[i]!, tensor.dense());
  }
}

/**
 * What work between them uses. What an earlier failure has left there is nobody's; a copy that has
 * just failed leaves it undefined for the work and what comes of it.
 */
export function useOf({ buffer }: StagingArea, inputs: readonly AnyTensor[]): HostUse {
  return {
    buffer,
    access: inputs.some((tensor) => tensor.dense().byteLength > 0) ? 'inout' : 'out',
  };
}

function ignore(): void {
  // Told through the work that waits for it.
}
