// Checks an instruction against the forms of its row: the types and modifiers that may occur
// together, the version and target that have them, and the kinds of operands. docs/ptx-coverage.md
// is generated from the forms; tests compile each of them and, where it is installed, assemble it
// with NVIDIA's assembler.

import type { Arg } from '../analysis/program.js';
import type { PtxModule, Statement } from '../syntax/ast.js';
import { isScalarType } from '../scalar-types.js';
import { fits } from '../isa/form.js';
import type { Since } from '../isa/form.js';
import { UNKNOWN } from '../isa/traits.js';
import type { InstructionTraits, Traits } from '../isa/traits.js';
import { fitsPlace } from './operand-kinds.js';

/** The versions since which the forms exist that a combination fits; empty if it fits none. */
export type Verdict = readonly Since[];

const verdicts = new Map<string, Verdict>();
/** The same by the array of modifiers that all instructions of one form in a text share. */
const seen = new WeakMap<
  readonly string[],
  { readonly mnemonic: string; readonly operands: number; readonly verdict: Verdict }
>();
/** A hostile text cannot fill the memory with combinations. */
const MOST_VERDICTS = 5000;

/**
 * Undefined for a mnemonic without forms, whose rule checks what it takes. Forms with as many
 * operands come first: others may be younger.
 */
function verdictOn(
  { forms: rows }: Pick<InstructionTraits, 'forms'>,
  mnemonic: string,
  modifiers: readonly string[],
  operands: number,
): Verdict | undefined {
  const last = seen.get(modifiers);
  if (last?.mnemonic === mnemonic && last.operands === operands) return last.verdict;
  if (!rows.length) return undefined;
  const key = `${nameOf(mnemonic, modifiers)} ${operands}`;
  let verdict = verdicts.get(key);
  if (!verdict) {
    const fitting = rows.filter((row) => fits(row, modifiers));
    const equal = fitting.filter((row) => row.takes(operands));
    verdict = (equal.length ? equal : fitting).flatMap((row) => row.since(modifiers));
    if (verdicts.size < MOST_VERDICTS) verdicts.set(key, verdict);
  }
  seen.set(modifiers, { mnemonic, operands, verdict });
  return verdict;
}

const nameOf = (mnemonic: string, modifiers: readonly string[]): string =>
  modifiers.length ? `${mnemonic}.${modifiers.join('.')}` : mnemonic;

/** The error for a combination of types and modifiers that no form has. */
export function formComplaint(
  row: Pick<InstructionTraits, 'forms'>,
  mnemonic: string,
  modifiers: readonly string[],
  operands: number,
): { code: 'semantic' | 'unsupported'; message: string } | undefined {
  if (verdictOn(row, mnemonic, modifiers, operands)?.length !== 0) return undefined;
  const rows = row.forms;
  const name = nameOf(mnemonic, modifiers);
  const stranger = modifiers.find(
    (modifier) =>
      !rows.some(({ places }) => places.some((place) => place.words.includes(modifier))),
  );
  if (stranger === undefined)
    return {
      code: 'unsupported',
      message: `instruction '${name}': this combination of types and modifiers is not covered`,
    };
  if (isScalarType(stranger))
    return { code: 'semantic', message: `'${mnemonic}' does not take .${stranger}` };
  const words = [
    ...new Set(rows.flatMap(({ places }) => places.flatMap((place) => [...place.words]))),
  ];
  const near = similarWord(stranger, words);
  const hint =
    near === undefined
      ? `; it takes ${words.map((word) => `.${word}`).join(' ')}`
      : `; did you mean '.${near}'?`;
  return {
    code: 'unsupported',
    message: `instruction '${name}': '${mnemonic}' takes no modifier '.${stranger}'${hint}`,
  };
}

/**
 * The first of `words` that differs from `word` by one letter added, removed or replaced, or by two
 * exchanged.
 */
function similarWord(word: string, words: readonly string[]): string | undefined {
  for (const other of words) {
    let start = 0;
    while (start < word.length && word[start] === other[start]) start++;
    let end = 0;
    while (
      end < Math.min(word.length, other.length) - start &&
      word.at(-1 - end) === other.at(-1 - end)
    )
      end++;
    const [left, right] = [
      word.slice(start, word.length - end),
      other.slice(start, other.length - end),
    ];
    if (left.length < 2 && right.length < 2) return other;
    if (left.length === 2 && left === [...right].reverse().join('')) return other;
  }
  return undefined;
}

/**
 * Instructions whose forms do not list every number of operands that they take: their rules count
 * them.
 */
const COUNTED_ELSEWHERE = new Set(['call', 'bra', 'brx']);
/** The operands of a form, and whether the last one may be left out. */
interface RowOperands {
  readonly tokens: readonly string[];
  readonly optional: boolean;
}
/**
 * The forms that fit, by the array of modifiers that all instructions of one form in a text share.
 */
const operandRows = new WeakMap<
  readonly string[],
  { readonly mnemonic: string; readonly rows: readonly RowOperands[] }
>();

function operandRowsOf(
  { forms }: InstructionTraits,
  mnemonic: string,
  modifiers: readonly string[],
): readonly RowOperands[] {
  let known = operandRows.get(modifiers);
  if (known?.mnemonic !== mnemonic) {
    const rows = forms
      .filter((row) => fits(row, modifiers))
      .map(({ operands }) => ({
        tokens: operands.map((token) => token.replace('?', '')),
        optional: operands.at(-1)?.endsWith('?') === true,
      }));
    operandRows.set(modifiers, (known = { mnemonic, rows }));
  }
  return known.rows;
}

/**
 * The error in the kinds of an instruction's operands, or in their number; `at` is the operand, if
 * it is one.
 */
export function operandComplaint(
  traits: InstructionTraits,
  mnemonic: string,
  modifiers: readonly string[],
  args: readonly Arg[],
  writes: boolean,
): { message: string; at: number | undefined } | undefined {
  const rows = operandRowsOf(traits, mnemonic, modifiers);
  if (!rows.length) return undefined;
  let furthest = -1;
  for (const { tokens, optional } of rows) {
    if (
      args.length !== tokens.length &&
      !(optional && args.length === tokens.length - 1) &&
      !COUNTED_ELSEWHERE.has(mnemonic)
    )
      continue;
    let right = 0;
    while (
      right < args.length &&
      (right >= tokens.length ||
        fitsPlace(traits.operands, modifiers, args[right]!, tokens[right]!, right === 0 && writes))
    )
      right++;
    if (right === args.length) return undefined;
    furthest = Math.max(furthest, right);
  }
  if (furthest >= 0)
    return {
      message: `'${nameOf(mnemonic, modifiers)}' does not take this operand`,
      at: args[furthest]!.at,
    };
  return {
    message:
      `'${mnemonic}' takes ` +
      `${[...new Set(rows.map(({ tokens }) => tokens.length))].join(' or ')} operands, found ` +
      `${args.length}`,
    at: undefined,
  };
}

/** `8.10` is later than `8.9`. */
function versionNumber(version: string): number {
  const [major = '0', minor = '0'] = version.split('.');
  return Number(major) * 100 + Number(minor);
}

function has(target: string, { target: number, specific, gone }: Since): boolean {
  const own = Number(/\d+/.exec(target)?.[0] ?? '0');
  if (gone) return own < number;
  if (own < number) return false;
  if (specific === '') return true;
  return (
    Math.floor(own / 10) === Math.floor(number / 10) &&
    (target.endsWith('a') || (specific === 'f' && target.endsWith('f')))
  );
}

/** The error for a combination in PTX of this version and for this target, if some form has it. */
export function sinceComplaint(
  row: Pick<InstructionTraits, 'forms'>,
  mnemonic: string,
  modifiers: readonly string[],
  operands: number,
  version: string,
  target: string,
): string | undefined {
  const verdict = verdictOn(row, mnemonic, modifiers, operands);
  return verdict?.length
    ? tooEarly(nameOf(mnemonic, modifiers), verdict, version, target)
    : undefined;
}

/** The error if no alternative exists in this version and target. */
export function tooEarly(
  name: string,
  verdict: Verdict,
  version: string,
  target: string,
): string | undefined {
  const own = versionNumber(version);
  const timely = verdict.filter((since) => since.version <= own);
  const [first] = timely;
  if (!first) {
    const needed = Math.min(...verdict.map((since) => since.version));
    return `'${name}' needs .version ${Math.floor(needed / 100)}.${needed % 100} or later`;
  }
  if (timely.some((since) => has(target, since))) return undefined;
  if (first.gone) return `'${name}' is gone since .target sm_${first.target}: it needs .sync`;
  return `'${name}' needs .target sm_${first.target}${first.specific === '' ? ' or later' : 'a'}`;
}

/** Checks every instruction of a module, including those of functions without a call. */
export function checkForms(module: PtxModule, instructions: Traits): void {
  const { source, version, target } = module;
  // Instructions that are written alike share their modifiers; one bit for each number of operands
  // that has been checked with them.
  const checked = new Map<readonly string[], number>();
  const visit = (statements: readonly Statement[]): void => {
    for (let at = 0; at < statements.length; at++) {
      const statement = statements[at]!;
      if (statement.kind === 'block') visit(statement.statements);
      else if (statement.kind === 'instruction') {
        const { mnemonic, modifiers, operands, start, end } = statement;
        const seen = checked.get(modifiers) ?? 0;
        const bit = 1 << operands.length;
        if (seen & bit) continue;
        checked.set(modifiers, seen | bit);
        const complaint = sinceComplaint(
          instructions.get(mnemonic) ?? UNKNOWN,
          mnemonic,
          modifiers,
          operands.length,
          version,
          target,
        );
        if (complaint)
          throw source.error('semantic', complaint, start, source.text.slice(start, end));
      }
    }
  };
  for (const fn of module.functions) if (fn.body) visit(fn.body);
}
