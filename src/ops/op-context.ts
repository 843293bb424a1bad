/** What an operation's callbacks are given of its run. */
import type {
  CoreDevice,
  Stream,
  MemoryPool,
  DTypeName,
  DType,
  DeviceBuffer,
} from '../core/index.js';

/**
 * `queue`: values arrive when the device has come to them. `block`: the thread waits for them.
 * `record`: the work is recorded as a graph, so that nothing arrives.
 */
export type RunMode = 'queue' | 'block' | 'record';

/** What callbacks are given that queue work themselves. */
export interface OpContext {
  readonly device: CoreDevice;
  /**
   * The stream that the operation runs on. What is queued on it in the callback is part of the
   * operation.
   */
  readonly stream: Stream;
  /** The pool that the operation allocates from; undefined for the device's own. */
  readonly pool: MemoryPool | undefined;
  /** Whether the work is recorded as a graph instead of running. */
  readonly recording: boolean;
  /**
   * Allocates in the order of the stream, from the pool of the operation, uninitialised. The memory
   * is the operation's: it is closed behind the step that allocated it, unless the step gives it
   * on. Where the work is recorded it is allocated beside the stream and is the graph's, which
   * closes it, or a node of the graph allocates it where it was captured so. cuMemAllocAsync
   */
  alloc<D extends DTypeName>(
    dtype: DType<D>,
    length: number,
    options?: { label?: string },
  ): DeviceBuffer<D>;
}
