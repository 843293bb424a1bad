// The table of instructions: one row for each mnemonic, in one file for each family. A row that
// lacks a property does not compile; loading this file fails if a mnemonic has two rows.

import type { LaneRule, LaneRules } from '../lanes/lane-emitter.js';
import type { Rules } from '../rules/rule.js';
import { ARITHMETIC } from './arithmetic.js';
import { ASYNC_COPIES } from './async-copies.js';
import { ATOMICS } from './atomics.js';
import { BITS } from './bits.js';
import { COMPARISON } from './comparison.js';
import { CONTROL_FLOW } from './control-flow.js';
import { CONVERSION } from './conversion.js';
import type { Form } from './form.js';
import type { Instruction, Rows } from './instruction.js';
import { MATRICES } from './matrices.js';
import { MEMORY } from './memory.js';
import { SYNCHRONISATION } from './synchronisation.js';
import { TENSOR_MAPS } from './tensor-copies.js';
import { TEXTURES } from './textures.js';
import { alike } from './traits.js';
import { VIDEO } from './video.js';
import { WARP } from './warp.js';

/** The rows of all families; each form gets the mnemonic of its row. */
export function tableOf(families: readonly Rows[]): ReadonlyMap<string, Instruction> {
  const table = new Map<string, Instruction>();
  for (const rows of families) {
    for (const [mnemonic, row] of Object.entries(rows)) {
      if (table.has(mnemonic)) throw new Error(`instruction '${mnemonic}' has two rows`);
      const forms = row.forms.map((form) => form.of(mnemonic));
      const { scalar, vector } = row;
      table.set(mnemonic, { ...alike({ ...row, forms }), scalar, vector });
    }
  }
  return table;
}

export const INSTRUCTIONS = tableOf([
  ARITHMETIC,
  BITS,
  COMPARISON,
  CONVERSION,
  MEMORY,
  ASYNC_COPIES,
  ATOMICS,
  CONTROL_FLOW,
  SYNCHRONISATION,
  WARP,
  MATRICES,
  TENSOR_MAPS,
  TEXTURES,
  VIDEO,
]);

/** The values of one property in all rows that have it. */
function column<T>(of: (row: Instruction) => T | undefined): Map<string, T> {
  const found = new Map<string, T>();
  for (const [mnemonic, row] of INSTRUCTIONS) {
    const value = of(row);
    if (value !== undefined) found.set(mnemonic, value);
  }
  return found;
}

/** Forms by mnemonic. */
export const FORMS_OF: ReadonlyMap<string, readonly Form[]> = column(({ forms }) =>
  forms.length ? forms : undefined,
);
export const FORMS: readonly Form[] = [...FORMS_OF.values()].flat();

/** The scalar rules. */
export const RULES: Rules = column(({ scalar }) => scalar);

/** Joins several vector rules: the first that takes the form is used. */
function firstOf(rules: readonly LaneRule[] | undefined): LaneRule | undefined {
  const [first, ...others] = rules ?? [];
  return others.reduce<LaneRule | undefined>(
    (before, rule) => (before ? (e) => before(e) || rule(e) : rule),
    first,
  );
}

export const LANE_RULES: LaneRules = {
  group: column(({ vector }) => firstOf(vector.group)),
  unit: column(({ vector }) => vector.unit),
  halves: column(({ vector }) => vector.halves),
};
