// The table of instructions: one row for each mnemonic, in one file for each family. A row that
// lacks a property does not compile; loading this file fails if a mnemonic has two rows.

import type { LaneRule, LaneRules } from '../lanes/lane-emitter.js';
import type { Rule } from '../rules/rule.js';
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

/**
 * One property of the rows, made when a mnemonic is first looked up. A program uses few of all
 * mnemonics, and making all rows took the runtime thread a third of its start (9 of 26 ms of
 * processor time, Node 20 on a cloud machine with two cores).
 */
export class Column<T> implements Iterable<readonly [string, T]> {
  private readonly rows: ReadonlyMap<string, Instruction>;
  private readonly of: (row: Instruction, mnemonic: string) => T | undefined;
  private readonly made = new Map<string, T | undefined>();

  constructor(
    rows: ReadonlyMap<string, Instruction>,
    of: (row: Instruction, mnemonic: string) => T | undefined,
  ) {
    this.rows = rows;
    this.of = of;
  }

  /** Undefined if the mnemonic has no row, or its row lacks the property. */
  get(mnemonic: string): T | undefined {
    const made = this.made.get(mnemonic);
    if (made !== undefined) return made;
    const row = this.rows.get(mnemonic);
    if (row === undefined) return undefined;
    const value = this.of(row, mnemonic);
    this.made.set(mnemonic, value);
    return value;
  }

  has(mnemonic: string): boolean {
    return this.get(mnemonic) !== undefined;
  }

  *[Symbol.iterator](): Generator<readonly [string, T]> {
    for (const mnemonic of this.rows.keys()) {
      const value = this.get(mnemonic);
      if (value !== undefined) yield [mnemonic, value];
    }
  }

  keys(): string[] {
    return [...this].map(([mnemonic]) => mnemonic);
  }
}

/** The rows of all families, as they are written. */
function rowsOf(families: readonly Rows[]): ReadonlyMap<string, Instruction> {
  const all = new Map<string, Instruction>();
  for (const rows of families) {
    for (const mnemonic of Object.keys(rows)) {
      if (all.has(mnemonic)) throw new Error(`instruction '${mnemonic}' has two rows`);
      all.set(mnemonic, rows[mnemonic]!);
    }
  }
  return all;
}

/** The instructions of rows; each form gets the mnemonic of its row. */
const instructionsOf = (rows: ReadonlyMap<string, Instruction>): Column<Instruction> =>
  new Column(rows, (row, mnemonic) => {
    const forms = row.forms.map((form) => form.of(mnemonic));
    const { scalar, vector } = row;
    return { ...alike({ ...row, forms }), scalar, vector };
  });

export const tableOf = (families: readonly Rows[]): Column<Instruction> =>
  instructionsOf(rowsOf(families));

const ROWS = rowsOf([
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

export const INSTRUCTIONS = instructionsOf(ROWS);

/** Forms by mnemonic. */
export const FORMS_OF = new Column<readonly Form[]>(ROWS, (_, mnemonic) => {
  const { forms } = INSTRUCTIONS.get(mnemonic)!;
  return forms.length ? forms : undefined;
});

/** The forms of all instructions. */
export const allForms = (): Form[] => [...FORMS_OF].flatMap(([, forms]) => forms);

/** The scalar rules. */
export const RULES = new Column<Rule>(ROWS, ({ scalar }) => scalar);

/** Joins several vector rules: the first that takes the form is used. */
function firstOf(rules: readonly LaneRule[] | undefined): LaneRule | undefined {
  const [first, ...others] = rules ?? [];
  return others.reduce<LaneRule | undefined>(
    (before, rule) => (before ? (e) => before(e) || rule(e) : rule),
    first,
  );
}

export const LANE_RULES: LaneRules = {
  group: new Column<LaneRule>(ROWS, ({ vector }) => firstOf(vector.group)),
  unit: new Column<LaneRule>(ROWS, ({ vector }) => vector.unit),
  halves: new Column<LaneRule>(ROWS, ({ vector }) => vector.halves),
};
