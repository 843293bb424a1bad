/** The context that callbacks of an operation receive. */
import type {
  CoreDevice,
  Stream,
  MemoryPool,
  DTypeName,
  DType,
  DeviceBuffer,
} from '../core/index.js';

/**
 * `queue`: values are known when the device has reached them. `block`: the thread waits for them.
 * `record`: the work is recorded as a graph, so no value is ever known.
 */
export type RunMode = 'queue' | 'block' | 'record';

/** The context of callbacks that queue work themselves. */
export interface OpContext {
  readonly device: CoreDevice;
  /**
   * The stream that the operation runs on. Work that the callback queues on it is part of the
   * operation.
   */
  readonly stream: Stream;
  /** The pool that the operation allocates from; undefined for the device's own. */
  readonly pool: MemoryPool | undefined;
  /** Whether the work is recorded as a graph instead of running. */
  readonly recording: boolean;
  /**
   * Allocates in the order of the stream, from the pool of the operation, uninitialised. The
   * operation owns the memory: it is closed after the step that allocated it, unless the step's
   * value holds it. Where the work is recorded, the memory is allocated apart from the stream and
   * the graph owns it, or, with `allocate: 'nodes'`, a node of the graph allocates it.
   * cuMemAllocAsync
   */
  alloc<D extends DTypeName>(
    dtype: DType<D>,
    length: number,
    options?: { label?: string },
  ): DeviceBuffer<D>;
}
