/**
 * Memory that a graph allocates itself, by a node, at each launch. It is made by
 * {@link CoreDevice.alloc} on a stream that is captured with `allocate: 'nodes'`. Memory that is
 * closed within the capture is freed by a node, and the driver may give later nodes the same
 * memory. Other memory stays from a launch to the next, which frees it and allocates it again at
 * the same address.
 */
import { ACCESS_WRITE } from '../runtime/commands.js';
import { CudaError } from '../ground/errors.js';
import type { CaptureScope } from './capture.js';
import type { CoreDevice } from './device.js';
import { DeviceBuffer } from './buffer.js';
import { Allocation } from './memory.js';
import type { Stream } from './stream.js';

export class NodeMemory extends Allocation {
  /** Whether a launch has allocated it. */
  private allocated = false;
  /** The capture that the node belongs to. */
  private readonly home: CaptureScope;

  constructor(
    device: CoreDevice,
    stream: Stream,
    handle: number,
    bytes: number,
    label: string | undefined,
    describe: () => string,
  ) {
    super(device, stream, handle, bytes, label, describe, true);
    this.home = stream.captureScope!;
    this.home.nodeMemory.add(this);
  }

  /** The graph keeps the memory: a buffer that is collected does not leak it. */
  override get isKept(): boolean {
    return true;
  }

  /** A launch of the graph has been queued. */
  launched(): void {
    this.allocated = true;
  }

  override order(stream: Stream, access: number): void {
    if (!this.allocated) {
      throw new CudaError(
        'ERR_CUDA_CAPTURE',
        `${this.toString()} is allocated by a node of a graph: it is allocated once the ` +
          'graph has been launched.',
      );
    }
    super.order(stream, access);
  }

  override checkScope(scope: CaptureScope): void {
    if (scope.isWithin(this.home)) return;
    throw new CudaError(
      'ERR_CUDA_CAPTURE',
      `${this.toString()} is allocated by a node of another graph, whose launches decide ` +
        'whether it is allocated: copy it before the capture.',
    );
  }

  /**
   * Within the capture a node frees the memory. After it the graph frees the memory, at its next
   * launch or its end.
   */
  override dispose(): void {
    if (this.disposed) return;
    const { home, stream } = this;
    if (home.ended) {
      this.disposed = true;
      return;
    }
    // The body of a conditional node may not run, so it cannot free the memory.
    if (stream.captureScope !== home) return;
    this.disposed = true;
    home.order(stream, this, ACCESS_WRITE);
    stream.free(this.handle);
    home.uses.delete(this);
    home.nodeMemory.delete(this);
  }

  /** The graph has ended, and the memory of its last launch has been freed. */
  release(): void {
    this.disposed = true;
    this.device.runtime.handles.drop(this.handle);
  }

  /** The address where a launch may have left the memory allocated; else 0. */
  get left(): number {
    return this.allocated ? this.device.runtime.shared.values[this.handle]! : 0;
  }
}

/**
 * Whether a value is memory of a node, or a buffer or tensor of it. Closing it within a capture
 * frees it there.
 */
export function isNodeMemory(value: unknown): boolean {
  const buffer =
    value instanceof DeviceBuffer
      ? value
      : (value as { buffer?: unknown } | null | undefined)?.buffer;
  return buffer instanceof DeviceBuffer && buffer.memory instanceof NodeMemory;
}
