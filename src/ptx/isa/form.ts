// The valid combinations of types and modifiers of an instruction, as data: `form('sat s32',
// 'T T T')`. A form is a list of places; each place is filled by one of the words between its bars,
// and a place in brackets may stay empty. Assemblers take modifiers in any order, only types keep
// theirs, and so does this compiler.

import { isScalarType } from '../scalar-types.js';

export interface FormPlace {
  readonly words: readonly string[];
  readonly optional: boolean;
}

/** Since when there is something: a .version, a .target. */
export interface Since {
  /** `.version 8.10` is 810; 0 where it always was. */
  readonly version: number;
  /** Number of the .target; 0 where all have it. */
  readonly target: number;
  /**
   * `a`: only in PTX for architectures such as sm_100a, which runs on no other; `f`: of the same
   * family (sm_100f, sm_103f), too.
   */
  readonly specific: '' | 'a' | 'f';
  /** Gone since this target, not there until it. */
  readonly gone: boolean;
}

/**
 * One form. Its text is parsed when it is first needed: a program uses few of all mnemonics. The
 * table of instructions gives it the mnemonic of its row.
 */
export class Form {
  readonly mnemonic: string;
  private readonly placesText: string;
  private readonly operandsText: string;
  /** As it is written. */
  readonly sinceText: string;
  private readonly wordsSince: Readonly<Record<string, string>>;
  private counted: number | undefined = undefined;
  private parsed: readonly FormPlace[] | undefined = undefined;

  constructor(
    mnemonic: string,
    places: string,
    operands: string,
    since: string,
    wordsSince: Readonly<Record<string, string>> = {},
  ) {
    this.mnemonic = mnemonic;
    this.placesText = places;
    this.operandsText = operands;
    this.sinceText = since;
    this.wordsSince = wordsSince;
  }

  get places(): readonly FormPlace[] {
    this.parsed ??= words(this.placesText).map((place) => {
      const optional = place.startsWith('[');
      return { words: (optional ? place.slice(1, -1) : place).split('|'), optional };
    });
    return this.parsed;
  }

  /**
   * What the operands are, for tables and tests: a type's name is a register of that type, `T` one
   * of the instruction's last type, `T1` of its first, `{T}` a vector of as many as .v2, .v4 or .v8
   * says, `[…]` an address, `p` a predicate, a number itself, and `?` after an operand says that it
   * may be left out.
   */
  get operands(): readonly string[] {
    return words(this.operandsText);
  }

  takes(operands: number): boolean {
    this.counted ??= this.operands.length;
    return (
      operands === this.counted ||
      (operands === this.counted - 1 && this.operandsText.endsWith('?'))
    );
  }

  /** The same form as one of another instruction. */
  of(mnemonic: string): Form {
    return new Form(mnemonic, this.placesText, this.operandsText, this.sinceText, this.wordsSince);
  }

  /** The same form, of which some words are younger. */
  withWords(wordsSince: Readonly<Record<string, string>>): Form {
    return new Form(this.mnemonic, this.placesText, this.operandsText, this.sinceText, wordsSince);
  }

  /** Since when the form is there with these modifiers: what any of the alternatives asks for. */
  since(modifiers: readonly string[]): readonly Since[] {
    const youngest = modifiers.flatMap((modifier) =>
      Object.hasOwn(this.wordsSince, modifier) ? sinceIn(this.wordsSince[modifier]!) : [],
    );
    return this.sinceText.split(' or ').map((text) => youngest.reduce(both, sinceIn(text)));
  }
}

/**
 * A form. `since` says from which PTX and target on it is there, as in `8.0 sm_90`, with ` or `
 * between alternatives; `sm_100f` is of that family only, `sm_100a` of its architectures' own PTX;
 * `before sm_70` is gone later.
 */
export const form = (places: string, operands = '', since = ''): Form =>
  new Form('', places, operands, since);

/**
 * As `form`, where `{relaxed cta|gpu}` stands for all of what is in the braces or nothing of it.
 */
export function forms(places: string, operands = '', since = ''): Form[] {
  const group = /\{([^}]*)\}/.exec(places);
  if (!group) return [form(places, operands, since)];
  return ['', group[1]!].flatMap((chosen) =>
    forms(places.replace(group[0], chosen), operands, since),
  );
}

const words = (text: string): string[] => text.split(/\s+/).filter((word) => word !== '');

function sinceIn(text: string): Since {
  const [, major = '0', minor = '0', before, target = '0', specific = ''] =
    /^(?:(\d+)\.(\d+))? *(before )?(?:sm_(\d+)([af]?))?$/.exec(text)!;
  return {
    version: Number(major) * 100 + Number(minor),
    target: Number(target),
    specific: specific as Since['specific'],
    gone: before !== undefined,
  };
}

function both(one: Since, other: Since): Since {
  const later =
    one.target > other.target || (one.target === other.target && one.specific !== '') ? one : other;
  return {
    version: Math.max(one.version, other.version),
    target: later.target,
    specific: later.specific,
    gone: later.gone,
  };
}

/** True when every modifier fills a place of the form and no place that must be filled is empty. */
export function fits({ places }: Form, modifiers: readonly string[]): boolean {
  const left = [...modifiers];
  for (const place of places) {
    // The first type that is left, or any other word.
    const next = left.find(isScalarType);
    const index = left.findIndex(
      (modifier) =>
        place.words.includes(modifier) && (modifier === next || !isScalarType(modifier)),
    );
    if (index >= 0) left.splice(index, 1);
    else if (!place.optional) return false;
  }
  return left.length === 0;
}
