/** Compares a device's results for the operands of a case with the reference. */
import type { Case } from './cases.js';
import { FORMATS, INTEGERS, NAN, canonicalNaN, isNaNBits } from './reference.js';

export interface Comparison {
  count: number;
  /** Results that are another number, or a number for a NaN. */
  wrong: number;
  /** NaNs whose bits are not the canonical ones. */
  otherNaNs: number;
  /** One of the wrong results. */
  example?: string;
}

const hex = (bits: bigint): string => `0x${bits.toString(16)}`;

export function compare(
  { instruction, operands, result, reference }: Case,
  columns: readonly (readonly bigint[])[],
  results: ArrayLike<bigint>,
): Comparison {
  const format = FORMATS[result];
  const cell = Math.max(16, (format ?? INTEGERS[result])!.bits);
  const comparison: Comparison = { count: results.length, wrong: 0, otherNaNs: 0 };
  const values = operands.map(() => 0n);
  for (let index = 0; index < results.length; index++) {
    columns.forEach((column, place) => {
      values[place] = column[index]!;
    });
    const wanted = reference(values);
    const got = results[index]!;
    if (wanted === NAN && format && isNaNBits(got, format)) {
      if (got !== canonicalNaN(format)) comparison.otherNaNs++;
      continue;
    }
    if (wanted !== NAN && got === BigInt.asUintN(cell, wanted)) continue;
    comparison.wrong++;
    comparison.example ??=
      `${instruction} of ${values.map(hex).join(', ')}: ${hex(got)}, not ` +
      `${wanted === NAN ? 'NaN' : hex(BigInt.asUintN(cell, wanted))}`;
  }
  return comparison;
}
