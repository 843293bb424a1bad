// The types of matrix elements in registers, and how one element becomes a number of the dense
// matrix that the warp multiplies: f32, f64, i32, or the whole word for single bits.

export type Number = 'f32' | 'f64' | 'i32';

export interface ElementType {
  readonly name: string;
  /** The bits of an element in its register. */
  readonly bits: number;
  readonly as: Number;
}

const row = (name: string, bits: number, as: Number): [string, ElementType] => [
  name,
  { name, bits, as },
];

export const ELEMENT_TYPES: ReadonlyMap<string, ElementType> = new Map([
  row('f16', 16, 'f32'),
  row('bf16', 16, 'f32'),
  row('tf32', 32, 'f32'),
  row('f32', 32, 'f32'),
  row('f64', 64, 'f64'),
  row('e4m3', 8, 'f32'),
  row('e5m2', 8, 'f32'),
  // Elements of six and four bits take a byte each, as in .kind::f8f6f4.
  row('e3m2', 8, 'f32'),
  row('e2m3', 8, 'f32'),
  row('e2m1', 8, 'f32'),
  row('s8', 8, 'i32'),
  row('u8', 8, 'i32'),
  row('s4', 4, 'i32'),
  row('u4', 4, 'i32'),
  row('s32', 32, 'i32'),
  // A word of 32 single bits is one element of the dense matrix.
  row('b1', 32, 'i32'),
]);

/** Bytes of one number of a dense matrix. */
export const numberBytes = (type: ElementType): number => (type.as === 'f64' ? 8 : 4);

/** Elements that one register holds. */
export const perRegister = (type: ElementType): number => (type.bits === 64 ? 1 : 32 / type.bits);
