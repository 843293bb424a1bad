// Strong accesses of 128 bits. WebAssembly has none, so they take turns by a lock in the null page,
// which all modules that run in this memory share and no kernel can address.

import type { Emitter } from '../emit/emitter.js';
import { WIDE_LOCK } from '../context.js';

/** Writes an access of 128 bits as one. Memory that only this block can access needs no lock. */
export function asOne(e: Emitter, observable: boolean, access: () => void): void {
  const { code } = e;
  if (observable) e.call('take_lock');
  access();
  if (observable) code.i32(WIDE_LOCK).i32(0).memory('i32.atomic.store', 0);
}

export const WIDE_ACCESS_FUNCTIONS = `
(func $take_lock
  (loop $again (br_if $again (i32.atomic.rmw.cmpxchg ${WIDE_LOCK} 0 1))))
`;
