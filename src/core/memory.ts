/**
 * Allocations: what buffers and their views stand on. A buffer that is forgotten without being closed is freed when it
 * is collected, in stream order like any other, and a warning says once that it leaked.
 */
import type { CaptureScope } from './capture.js';
import type { Device } from './device.js';
import { Resource } from './resource.js';
import type { Stream } from './stream.js';

export class Allocation extends Resource {
  readonly device: Device;
  readonly bytes: number;
  /** The stream that the memory was allocated on, and is freed on. */
  readonly stream: Stream;
  /** What it is called in errors. */
  readonly label: string | undefined;
  /** The operation that allocated it. */
  root = 0;
  /** Its number as an operation of the stream. */
  mark = 0;
  private readonly describe: () => string;

  constructor(device: Device, stream: Stream, handle: number, bytes: number, label: string | undefined, describe: () => string) {
    super(handle);
    this.device = device;
    this.stream = stream;
    this.bytes = bytes;
    this.label = label;
    this.describe = describe;
  }

  /** Queues the freeing behind everything that uses the memory. */
  dispose(): void {
    if (this.disposed) return;
    this.disposed = true;
    this.device.freed(this);
    // Within a capture the free would be recorded, or refused.
    const scope = this.scope?.ended === false ? this.scope : scopeOf(this.stream) ?? scopeOf(this.device.stream) ?? this.scope;
    if (scope?.defer(() => this.queueFree()) !== true) this.queueFree();
  }

  private queueFree(): void {
    const { device } = this;
    if (device.runtime.lost !== undefined) return;
    const stream = this.stream.isClosed || this.stream.capturing !== undefined ? device.stream : this.stream;
    // As a writer: behind the last writer and every reader.
    this.order(stream, 2);
    if (stream !== this.stream) stream.waitFor(this.stream, this.mark);
    stream.free(this.handle);
  }

  override toString(): string {
    return this.describe();
  }
}

/** The capture that a stream is part of, or kept out of. */
function scopeOf({ capturing }: Stream): CaptureScope | undefined {
  return capturing?.outside === true ? capturing.scope : capturing;
}

/** Frees what was forgotten. The allocation must not refer to the object that is watched. */
export const leaks = new FinalizationRegistry<Allocation>((allocation) => {
  if (allocation.disposed || allocation.device.isClosed) return;
  allocation.device.leaked(allocation.toString());
  allocation.dispose();
});
