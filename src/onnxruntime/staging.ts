/**
 * Page-locked memory between a context and the device, where the library cannot reach the device's
 * own. It is replaced by a larger one when it is too small.
 */
import { u8 } from '../core/index.js';
import type { CoreDevice, PinnedBuffer, Stream } from '../core/index.js';
import { copyFromStaging, copyToStaging } from '../core/host-work.js';
import type { HostUse } from '../core/host-work.js';
import { capacityFor } from '../native/memory-places.js';
import type { AnyTensor } from '../tensor/index.js';
import { sendRequest } from './thread-crew.js';

/** Page-locked memory, and its address in the process. */
export interface StagingArea {
  readonly buffer: PinnedBuffer;
  readonly address: number;
}

export class Staging {
  private readonly device: CoreDevice;
  private area: StagingArea | undefined = undefined;
  /**
   * The number of uses that were queued before there was memory for them, and the end of the last
   * of them.
   */
  private lateUses = 0;
  private last: Promise<void> = Promise.resolve();

  constructor(device: CoreDevice) {
    this.device = device;
  }

  /**
   * Returns at least that many bytes whose uses the streams can order; undefined where they do not
   * exist yet, or where work that was queued without them is under way.
   */
  ready(bytes: number): StagingArea | undefined {
    return this.lateUses === 0 && this.area !== undefined && this.area.buffer.byteLength >= bytes
      ? this.area
      : undefined;
  }

  /**
   * Returns at least that many bytes, for work that takes its place in a stream before they exist:
   * they come once all earlier work of this kind is over. Call {@link usedUntil} after it.
   */
  later(bytes: number): Promise<StagingArea> {
    // The wait begins here: work that is queued next on other streams may wait for this use of it.
    const free = this.area?.buffer.memory.settled();
    const area = Promise.all([this.last, free]).then(() => this.ofBytes(bytes));
    // The work that waits for it receives the error; if no work begins, there is no waiter.
    area.catch(ignore);
    return area;
  }

  /** Records the end of the work that was given memory by {@link later}. */
  usedUntil(done: Promise<void>): void {
    this.lateUses++;
    const end = (): void => {
      this.lateUses--;
    };
    const over = done.then(end, end);
    this.last = this.last.then(() => over);
  }

  /**
   * Returns memory of at least that many bytes. Smaller memory is freed once its copies are over.
   */
  private async ofBytes(bytes: number): Promise<StagingArea> {
    const old = this.area;
    if (old !== undefined && old.buffer.byteLength >= bytes) return old;
    const buffer = await this.device.pinned(u8, capacityFor(bytes));
    try {
      const start = await sendRequest({ kind: 'address', buffer: buffer.buffer });
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

/** Queues the copies of tensors to page-locked memory, before work on it. */
export function stageIn(
  stream: Stream,
  { buffer }: StagingArea,
  tensors: readonly AnyTensor[],
  offsets: readonly number[],
): void {
  for (let i = 0; i < tensors.length; i++)
    copyToStaging(stream, tensors[i]!.dense(), buffer, offsets[i]!);
}

/** Queues the copies from it, after the work. */
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
 * Returns the use of the work between the copies. Memory that an earlier failure has left undefined
 * is simply overwritten; a copy that has just failed leaves it undefined for the work and for uses
 * of its results.
 */
export function useOf({ buffer }: StagingArea, inputs: readonly AnyTensor[]): HostUse {
  return {
    buffer,
    access: inputs.some((tensor) => tensor.dense().byteLength > 0) ? 'inout' : 'out',
  };
}

function ignore(): void {
  // The work that waits for it receives the error.
}
