// Accesses of 128 bits that others may watch. WebAssembly has none, so they take turns by one word
// in the null page, which every module that runs in this memory shares and no kernel can address.

import type { Emitter } from '../emit/emitter.js';
import { WIDE_LOCK } from '../context.js';

/**
 * Code that reads or writes 128 bits as one. In memory that only this block sees nobody can come in
 * between.
 */
export function asOne(e: Emitter, watched: boolean, access: () => void): void {
  const { code } = e;
  if (watched) e.call('take_lock');
  access();
  if (watched) code.i32(WIDE_LOCK).i32(0).memory('i32.atomic.store', 0);
}

export const WIDE_ACCESS_FUNCTIONS = `
(func $take_lock
  (loop $again (br_if $again (i32.atomic.rmw.cmpxchg ${WIDE_LOCK} 0 1))))
`;
