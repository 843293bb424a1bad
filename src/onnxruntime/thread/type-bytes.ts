/** Bytes of an element, by ONNXTensorElementDataType; those that this library has. */
export const TYPE_BYTES: Readonly<Record<number, number>> = {
  1: 4,
  2: 1,
  3: 1,
  4: 2,
  5: 2,
  6: 4,
  7: 8,
  9: 1,
  10: 2,
  11: 8,
  12: 4,
  13: 8,
  16: 2,
  17: 1,
  19: 1,
};

export function bytesOf(type: number): number {
  return TYPE_BYTES[type]!;
}
