/** What writes and reads of buffers take. */
import { checkOptions, checkSignal } from '../ground/arguments.js';
import type { BitArray, DTypeName, HostArray } from '../ground/dtype.js';
import type { PinnedBuffer } from './pinned.js';

/** What a write takes: the dtype's host array, its bytes, or page-locked memory. */
export type WriteSource<D extends DTypeName> =
  HostArray<D> | ArrayBuffer | SharedArrayBuffer | PinnedBuffer<D>;

/** What {@link DeviceBuffer.read} takes, and `read()` of a tensor. */
export interface ReadOptions<D extends DTypeName> {
  /** Array to read into, of as many elements. A new one where none is given. */
  into?: HostArray<D> | undefined;
}

/** What {@link DeviceBuffer.readBits} takes. */
export interface ReadBitsOptions<D extends DTypeName> {
  /** Array to read the raw words into, of the buffer's length. */
  into?: BitArray<D> | undefined;
}

/** What {@link DeviceBuffer.chunks} and {@link DeviceBuffer.readable} take. */
export interface ChunkOptions {
  /** Elements of one chunk. Default: what makes a megabyte. */
  length?: number;
  /** Stops waiting for the next chunk, never the work. */
  signal?: AbortSignal | undefined;
}

export function checkChunkOptions(options: unknown): asserts options is ChunkOptions {
  checkOptions('options', options, ['length', 'signal']);
  checkSignal((options as ChunkOptions).signal);
}
