/** The memory of the arrays that a kernel declares. */
import type { DeclaredArray, KernelTree } from '../tree.js';
import { storageBytes } from '../storage-types.js';
import { memoryOf } from './memory.js';
import type { Memory } from './memory.js';

export interface SharedMemoryOptions {
  /** Bytes of the shared memory whose length the launch gives. */
  readonly sharedBytes?: number;
  /**
   * Whether reading shared memory that no thread has written is an error. Default true; with false
   * it reads zeros.
   */
  readonly checkUninitialized?: boolean;
}

/**
 * Makes the shared arrays of one block, in the order of the tree's. All dynamic arrays share one
 * memory.
 */
export function sharedOf(
  tree: KernelTree,
  { sharedBytes = 0, checkUninitialized = true }: SharedMemoryOptions,
): Memory[] {
  // Rounded up: an array of 8-byte elements ends where the bytes end.
  const dynamic = new ArrayBuffer(sharedBytes);
  const flags = checkUninitialized ? new Uint8Array(sharedBytes) : undefined;
  return tree.arrays
    .filter((array) => array.space !== 'local')
    .map((array) => {
      if (array.space === 'dynamic')
        return memoryOf(array.name, 'shared', array.storage, {
          buffer: dynamic,
          offset: 0,
          bytes: sharedBytes,
          ...(flags && { written: flags }),
        });
      const bytes = array.length * storageBytes[array.storage];
      return memoryOf(array.name, 'shared', array.storage, {
        buffer: new ArrayBuffer(bytes),
        offset: 0,
        bytes,
        ...(checkUninitialized && { written: new Uint8Array(bytes) }),
      });
    });
}

export function localMemory({ name, storage, length }: DeclaredArray): Memory {
  const bytes = length * storageBytes[storage];
  return memoryOf(name, 'local', storage, { buffer: new ArrayBuffer(bytes), offset: 0, bytes });
}
