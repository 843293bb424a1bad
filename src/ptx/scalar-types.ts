// The fundamental types of PTX as data: width, class, and the WebAssembly type of a register of
// that type. Halves are bits in an i32; values narrower than 32 bits are kept zero-extended in
// their i32.

export type WasmType = 'i32' | 'i64' | 'f32' | 'f64';
/** The type of a local or of a run-time function's value: the scalars, and four lanes. */
export type LocalType = WasmType | 'v128';
export type TypeClass = 'bits' | 'signed' | 'unsigned' | 'float' | 'predicate';

export interface ScalarType {
  readonly name: string;
  readonly bits: number;
  readonly kind: TypeClass;
  readonly wasm: WasmType;
}

const row = (name: string, bits: number, kind: TypeClass, wasm: WasmType): [string, ScalarType] => [
  name,
  { name, bits, kind, wasm },
];

export const SCALAR_TYPES: ReadonlyMap<string, ScalarType> = new Map([
  row('pred', 1, 'predicate', 'i32'),
  row('b8', 8, 'bits', 'i32'),
  row('u8', 8, 'unsigned', 'i32'),
  row('s8', 8, 'signed', 'i32'),
  row('b16', 16, 'bits', 'i32'),
  row('u16', 16, 'unsigned', 'i32'),
  row('s16', 16, 'signed', 'i32'),
  row('b32', 32, 'bits', 'i32'),
  row('u32', 32, 'unsigned', 'i32'),
  row('s32', 32, 'signed', 'i32'),
  row('b64', 64, 'bits', 'i64'),
  row('u64', 64, 'unsigned', 'i64'),
  row('s64', 64, 'signed', 'i64'),
  row('f16', 16, 'float', 'i32'),
  row('bf16', 16, 'float', 'i32'),
  row('f16x2', 32, 'float', 'i32'),
  row('bf16x2', 32, 'float', 'i32'),
  row('f32', 32, 'float', 'f32'),
  row('f64', 64, 'float', 'f64'),
  row('tf32', 32, 'float', 'i32'),
  row('u16x2', 32, 'unsigned', 'i32'),
  row('s16x2', 32, 'signed', 'i32'),
  row('e4m3', 8, 'float', 'i32'),
  row('e5m2', 8, 'float', 'i32'),
  row('e4m3x2', 16, 'float', 'i32'),
  row('e5m2x2', 16, 'float', 'i32'),
  row('e3m2x2', 16, 'float', 'i32'),
  row('e2m3x2', 16, 'float', 'i32'),
  row('e2m1x2', 8, 'float', 'i32'),
  row('ue8m0x2', 16, 'float', 'i32'),
  row('e4m3x4', 32, 'float', 'i32'),
  row('e5m2x4', 32, 'float', 'i32'),
  row('e3m2x4', 32, 'float', 'i32'),
  row('e2m3x4', 32, 'float', 'i32'),
  row('e2m1x4', 16, 'float', 'i32'),
  row('f32x2', 64, 'float', 'i64'),
  row('b128', 128, 'bits', 'i64'),
  row('u128', 128, 'unsigned', 'i64'),
  row('s128', 128, 'signed', 'i64'),
  row('texref', 64, 'bits', 'i64'),
  row('samplerref', 64, 'bits', 'i64'),
  row('surfref', 64, 'bits', 'i64'),
]);

/**
 * Thrown if a rule forms the name of a type that PTX does not have, such as the type twice as wide
 * as .u128.
 */
export class NoSuchType extends RangeError {}

export function scalarType(name: string): ScalarType {
  const type = SCALAR_TYPES.get(name);
  if (!type) throw new NoSuchType(`no PTX type '${name}'`);
  return type;
}

export const isScalarType = (name: string): boolean => SCALAR_TYPES.has(name);
