// The valid combinations of types and modifiers of an instruction, as data: `form('sat s32', 'T T
// T')`. A form is a list of places. One of the words between a place's bars fills it, and a place
// in brackets may stay empty. Assemblers take modifiers in any order, and only types in their own
// order; so does this compiler.

import { isScalarType } from '../scalar-types.js';

export interface FormPlace {
  readonly words: readonly string[];
  readonly optional: boolean;
}

/** The PTX version and the target since which something exists. */
export interface Since {
  /** `.version 8.10` is 810; 0 if it has always existed. */
  readonly version: number;
  /** The number of the .target; 0 if all targets have it. */
  readonly target: number;
  /**
   * `a`: only in PTX for architectures such as sm_100a, which runs on no other; `f`: also on those
   * of the same family (sm_100f, sm_103f).
   */
  readonly specific: '' | 'a' | 'f';
  /** It exists before this target, and not from it on. */
  readonly gone: boolean;
}

/**
 * One form. Its text is parsed at its first use: a program uses few of all mnemonics. The table of
 * instructions adds the mnemonic of the row.
 */
export class Form {
  readonly mnemonic: string;
  private readonly placesText: string;
  private readonly operandsText: string;
  /** The text as written. */
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
   * The operands, for tables and tests. The name of a type is a register of that type, `T` is the
   * last type of the instruction, `T1` its first, `{T}` a vector with the length of .v2, .v4 or
   * .v8, `[…]` an address, `p` a predicate, and a number is itself. `?` after an operand marks it
   * as optional.
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

  /** The same form for another instruction. */
  of(mnemonic: string): Form {
    return new Form(mnemonic, this.placesText, this.operandsText, this.sinceText, this.wordsSince);
  }

  /** The same form with words that exist only since later versions. */
  withWords(wordsSince: Readonly<Record<string, string>>): Form {
    return new Form(this.mnemonic, this.placesText, this.operandsText, this.sinceText, wordsSince);
  }

  /**
   * The versions since which the form exists with these modifiers: any one of the alternatives is
   * enough.
   */
  since(modifiers: readonly string[]): readonly Since[] {
    const youngest = modifiers.flatMap((modifier) =>
      Object.hasOwn(this.wordsSince, modifier) ? sinceIn(this.wordsSince[modifier]!) : [],
    );
    return this.sinceText.split(' or ').map((text) => youngest.reduce(both, sinceIn(text)));
  }
}

/**
 * Makes a form. `since` gives the first PTX version and target, as in `8.0 sm_90`, with ` or `
 * between alternatives; `sm_100f` is that family only, `sm_100a` the PTX of that architecture only;
 * `before sm_70` marks a form that later targets do not have.
 */
export const form = (places: string, operands = '', since = ''): Form =>
  new Form('', places, operands, since);

/** Makes two forms, with and without the words in braces, as in `{relaxed cta|gpu}`. */
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

/** True if every modifier fills a place of the form and no required place is empty. */
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
