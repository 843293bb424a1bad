/**
 * Copies out of staging on the thread pool: several cores fill an array that nobody else can reach yet. One core copies
 * at 13 GB/s on the host of an H200, the driver's own pageable path at 17.
 *
 * Only for arrays that the library has made itself: one that a user holds can be detached at any time.
 */
import { koffiPath, loadKoffi } from '../native/koffi.js';

type Copy = (target: Uint8Array, source: number, bytes: number) => Promise<void>;

let copy: Copy | undefined | null = null;

/** Undefined where there is no libc to ask. `source` is an address that stays valid until the promise resolves. */
export function nativeCopy(path: string | undefined): Copy | undefined {
  if (copy !== null) return copy;
  try {
    const memcpy = loadKoffi(path ?? koffiPath()).load('libc.so.6').func('uintptr_t memcpy(void* target, uintptr_t source, size_t bytes)') as {
      async: (target: Uint8Array, source: number, bytes: number, done: (error: Error | null) => void) => void;
    };
    copy = (target, source, bytes) =>
      new Promise((resolve, reject) => {
        memcpy.async(target, source, bytes, (error) => {
          if (error === null) resolve();
          else reject(error);
        });
      });
  } catch {
    copy = undefined;
  }
  return copy;
}
