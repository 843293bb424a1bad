// The types of WebAssembly's functions and values, and their encodings.

import type { LocalType, WasmType } from '../scalar-types.js';

export const VALUE_TYPE: Record<LocalType, number> = {
  i32: 0x7f,
  i64: 0x7e,
  f32: 0x7d,
  f64: 0x7c,
  v128: 0x7b,
};

export interface Signature<T extends LocalType = WasmType> {
  params: readonly T[];
  results: readonly T[];
}
