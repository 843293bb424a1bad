/** The types of a kernel as element types of Tile IR. */
import type { ElementName } from '../../tileir/index.js';
import type { StorageType, ValueType } from '../tree.js';

/** dtypes in memory; undefined where Tile IR has none. */
export const STORED_AS: Readonly<Partial<Record<StorageType, ElementName>>> = {
  bool: 'i8',
  i8: 'i8',
  u8: 'i8',
  i16: 'i16',
  u16: 'i16',
  i32: 'i32',
  u32: 'i32',
  i64: 'i64',
  u64: 'i64',
  f16: 'f16',
  bf16: 'bf16',
  f32: 'f32',
  f64: 'f64',
  f8e4m3: 'f8E4M3FN',
  f8e5m2: 'f8E5M2',
};

export const COMPUTED_AS: Readonly<Record<ValueType, ElementName>> = {
  bool: 'i1',
  i32: 'i32',
  u32: 'i32',
  i64: 'i64',
  u64: 'i64',
  f32: 'f32',
  f64: 'f64',
};

/** Bits of the types that values have. */
export const BITS: Readonly<Record<ValueType, 1 | 32 | 64>> = {
  bool: 1,
  i32: 32,
  u32: 32,
  i64: 64,
  u64: 64,
  f32: 32,
  f64: 64,
};

export const isFloat = (type: ValueType): boolean => type === 'f32' || type === 'f64';
export const signOf = (type: ValueType | StorageType): 'signed' | 'unsigned' =>
  type.startsWith('i') ? 'signed' : 'unsigned';

export type Constant = number | bigint | boolean;

/** The bits of a constant. */
export function bitsOf(value: Constant, type: ValueType): bigint {
  const view = new DataView(new ArrayBuffer(8));
  switch (type) {
    case 'bool':
      return value === true || (value !== false && Number(value) !== 0) ? 1n : 0n;
    case 'f32':
      view.setFloat32(0, Number(value), true);
      return BigInt(view.getUint32(0, true));
    case 'f64':
      view.setFloat64(0, Number(value), true);
      return view.getBigUint64(0, true);
    default:
      return BigInt.asUintN(BITS[type], BigInt(value));
  }
}

/** The element of a constant tile. A boolean has all bits of a byte. */
export function elementOf(value: Constant, type: ValueType): Uint8Array {
  const bits = bitsOf(value, type);
  if (type === 'bool') return Uint8Array.of(bits === 0n ? 0 : 0xff);
  return Uint8Array.from({ length: BITS[type] / 8 }, (_, at) =>
    Number((bits >> BigInt(8 * at)) & 0xffn),
  );
}
