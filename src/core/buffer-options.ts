/** Options of writes and reads of buffers. */
import { checkOptions, checkSignal } from '../ground/arguments.js';
import type { BitArray, DTypeName, HostArray } from '../ground/dtype.js';
import type { PinnedBuffer } from './pinned.js';

/** The source of a write: the dtype's host array, its bytes, or page-locked memory. */
export type WriteSource<D extends DTypeName> =
  HostArray<D> | ArrayBuffer | SharedArrayBuffer | PinnedBuffer<D>;

/** Options of {@link DeviceBuffer.read} and of a tensor's `read()`. */
export interface ReadOptions<D extends DTypeName> {
  /** The array to read into, which has as many elements as the buffer. Default: a new one. */
  into?: HostArray<D> | undefined;
}

/** Options of {@link DeviceBuffer.readBits}. */
export interface ReadBitsOptions<D extends DTypeName> {
  /** The array to read the raw words into, which has the buffer's length. Default: a new one. */
  into?: BitArray<D> | undefined;
}

/** Options of {@link DeviceBuffer.chunks} and {@link DeviceBuffer.readable}. */
export interface ChunkOptions {
  /** Elements of one chunk. Default: one megabyte. */
  length?: number;
  /** Ends the wait for the next chunk; the work goes on. */
  signal?: AbortSignal | undefined;
}

export function checkChunkOptions(options: unknown): asserts options is ChunkOptions {
  checkOptions('options', options, ['length', 'signal']);
  checkSignal((options as ChunkOptions).signal);
}
