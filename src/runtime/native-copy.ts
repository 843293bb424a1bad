/**
 * Copies out of staging on the thread pool: several cores fill an array that nobody else can reach
 * yet. One core copies at 13 GB/s on the host of an H200, the driver's own pageable path at 17.
 *
 * Only for arrays that the library has made itself: one that a user holds can be detached at any
 * time.
 */
import { koffiPath, loadKoffi } from '../native/koffi.js';

type Copy = (target: Uint8Array, source: number, bytes: number) => Promise<void>;

let copy: Copy | undefined | null = null;
/** Arrays that copies are underway to. */
const written = new Set<Uint8Array>();

/**
 * Undefined where there is no libc to ask. `source` is an address that stays valid until the
 * promise resolves.
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
        // koffi holds the call's address and not its array, which could be collected while it is
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
