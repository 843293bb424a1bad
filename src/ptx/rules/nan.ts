// The NaN of PTX arithmetic: one for each format. WebAssembly leaves a NaN's bits to the machine,
// so every result is corrected where they matter. Loads, stores and moves keep the bits.

import type { Emitter } from '../emit/emitter.js';
import type { ScalarType } from '../scalar-types.js';

/**
 * Replaces a NaN on the stack by the canonical one, if the module is compiled so. Halves are always
 * canonical.
 */
export function canonicalNaN(e: Emitter, type: ScalarType): void {
  if (e.around.canonicalNaN && (type.wasm === 'f32' || type.wasm === 'f64'))
    e.call(`canonical_${type.wasm}`);
}

export const NAN_FUNCTIONS = `
(func $canonical_f32 (param $x f32) (result f32)
  (select $x (f32.reinterpret_i32 0x7fffffff) (f32.eq $x $x)))
(func $canonical_f64 (param $x f64) (result f64)
  (select $x (f64.reinterpret_i64 0x7ff8000000000000L) (f64.eq $x $x)))
`;
