/** Lists of handles, as the driver takes and returns them: 64 bits each, one after the other. */
import type { Koffi } from '../../native/koffi.js';
import { NativeMemory } from '../../native/native-memory.js';

/**
 * Writes the handles to memory of their own, which is kept for the length of the call; undefined
 * where there are none.
 */
export function writeHandles(koffi: Koffi, handles: readonly number[]): NativeMemory | undefined {
  if (handles.length === 0) return undefined;
  const memory = new NativeMemory(koffi, 8 * handles.length);
  handles.forEach((handle, i) => {
    memory.setU64(8 * i, handle);
  });
  return memory;
}

/** Copies the list of `count` handles from the driver's memory, which its next call may change. */
export function readHandles(koffi: Koffi, address: number, count: number): number[] {
  if (count === 0 || address === 0) return [];
  return Array.from(new BigUint64Array(koffi.view(address, 8 * count)), Number);
}
