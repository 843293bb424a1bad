/**
 * Copies from staging on the thread pool: several cores fill an array that no other code can reach
 * yet. One core copies at 13 GB/s on the host of an H200, the driver's own pageable path at 17.
 *
 * It is only for arrays that the library has made itself: an array of a user can be detached at any
 * time.
 */
import { koffiPath, loadKoffi } from '../native/koffi.js';

type Copy = (target: Uint8Array, source: number, bytes: number) => Promise<void>;

let copy: Copy | undefined | null = null;
/** The arrays that are being written. */
const written = new Set<Uint8Array>();

/**
 * Returns a copy function; undefined where no libc is available. `source` is an address that stays
 * valid until the promise resolves.
 */
export function nativeCopy(path: string | undefined): Copy | undefined {
  if (copy !== null) return copy;
  try {
    const memcpy = loadKoffi(path ?? koffiPath())
      .load('libc.so.6')
      .func('uintptr_t memcpy(void* target, uintptr_t source, size_t bytes)') as {
      async: (
        target: Uint8Array,
        source: number,
        bytes: number,
        done: (error: Error | null) => void,
      ) => void;
    };
    copy = (target, source, bytes) =>
      new Promise((resolve, reject) => {
        // koffi keeps the call's address and not its array, which could be collected while it is
        // being written.
        written.add(target);
        memcpy.async(target, source, bytes, (error) => {
          written.delete(target);
          if (error === null) resolve();
          else reject(error);
        });
      });
  } catch {
    copy = undefined;
  }
  return copy;
}
