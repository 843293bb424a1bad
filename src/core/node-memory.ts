/**
 * Memory that a graph allocates itself, by a node, at each launch: made by {@link CoreDevice.alloc} on
 * a stream that is captured with `allocate: 'nodes'`. Closed within the capture, it is freed by a
 * node, and the driver may give later nodes the same memory. What is not closed there stays from a
 * launch to the next, which frees it and allocates it anew at the same address.
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
  /** The capture that it is part of. */
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

  /** The graph keeps it: whoever forgets a buffer of it loses nothing. */
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
        `${this.toString()} is allocated by a node of a graph: it is there once the graph ` +
          'has been launched.',
      );
    }
    super.order(stream, access);
  }

  override checkScope(scope: CaptureScope): void {
    if (scope.isWithin(this.home)) return;
    throw new CudaError(
      'ERR_CUDA_CAPTURE',
      `${this.toString()} is allocated by a node of another graph, whose launches decide ` +
        'whether it is there: copy it before the capture.',
    );
  }

  /**
   * Within the capture a node frees it; behind it the graph does, at its next launch or its end.
   */
  override dispose(): void {
    if (this.disposed) return;
    const { home, stream } = this;
    if (home.ended) {
      this.disposed = true;
      return;
    }
    // The body of a conditional node, which may not run, cannot free it.
    if (stream.captureScope !== home) return;
    this.disposed = true;
    home.order(stream, this, ACCESS_WRITE);
    stream.free(this.handle);
    home.uses.delete(this);
    home.nodeMemory.delete(this);
  }

  /** The graph has ended, and what its last launch left has been freed. */
  release(): void {
    this.disposed = true;
    this.device.runtime.handles.drop(this.handle);
  }

  /** Its address, where a launch may have left it allocated. */
  get left(): number {
    return this.allocated ? this.device.runtime.shared.values[this.handle]! : 0;
  }
}

/**
 * Whether a value is memory of a node, a buffer or a tensor of it, which closing within a capture
 * frees there.
 */
export function isNodeMemory(value: unknown): boolean {
  const buffer =
    value instanceof DeviceBuffer
      ? value
      : (value as { buffer?: unknown } | null | undefined)?.buffer;
  return buffer instanceof DeviceBuffer && buffer.memory instanceof NodeMemory;
}
