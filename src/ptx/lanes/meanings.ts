// The result of an analysis for each meaning that a row of the table of instructions can have
// (`isa/traits.ts`). A table of this type is complete: a new meaning does not compile until every
// analysis has an entry for it, and no analysis compares mnemonics.

import type { Inst } from '../analysis/program.js';
import type { Meaning } from '../isa/traits.js';

export type ByMeaning<T> = Readonly<Record<Meaning, T>>;

/** How one analysis computes a value from those of the operands. */
export type Transfer<Operands, Value> = ByMeaning<(operands: Operands) => Value>;

/** The same function for several meanings. */
export function meanings<T, M extends Meaning>(names: readonly M[], value: T): Record<M, T> {
  return Object.fromEntries(names.map((name) => [name, value])) as Record<M, T>;
}

/** The entry of the instruction's meaning. */
export const ofMeaning = <T>(table: ByMeaning<T>, { traits: { meaning } }: Inst): T =>
  table[meaning];

/**
 * Whether the result is an address, or a part of one, if the operands are. `passes`: the low bits
 * of the result depend only on the low bits of the operands. None of these instructions faults.
 */
export const ADDRESS_ARITHMETIC: ByMeaning<'passes' | 'makes' | undefined> = {
  move: 'passes',
  convert: 'passes',
  'convert address': 'passes',
  sum: 'passes',
  difference: 'passes',
  product: 'makes',
  'multiply-add': 'passes',
  'shift left': 'passes',
  ...meanings(
    ['minimum', 'shift right', 'and', 'or', 'xor', 'not', 'comparison', 'load', 'opaque'],
    undefined,
  ),
};
