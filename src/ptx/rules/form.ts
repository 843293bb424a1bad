// The valid combinations of types and modifiers of an instruction, as data: `form('add', '[sat] s32', 'T T T')`.
// A form is a row of places; each is filled by one of the words between its bars, and one in brackets may stay empty.
// Assemblers take modifiers in any order, only types keep theirs, and so does this one.

import { isScalarType } from '../scalar-types.js';

export interface FormPlace {
  readonly words: readonly string[];
  readonly optional: boolean;
}

/** One row. Its text is taken apart when it is first looked at: a program uses few of all mnemonics. */
export class Form {
  readonly mnemonic: string;
  private readonly placesText: string;
  private readonly operandsText: string;
  private parsed: readonly FormPlace[] | undefined;

  constructor(mnemonic: string, places: string, operands: string) {
    this.mnemonic = mnemonic;
    this.placesText = places;
    this.operandsText = operands;
  }

  get places(): readonly FormPlace[] {
    this.parsed ??= words(this.placesText).map(place => {
      const optional = place.startsWith('[');
      return { words: (optional ? place.slice(1, -1) : place).split('|'), optional };
    });
    return this.parsed;
  }

  /**
   * What the operands are, for tables and tests: a type's name is a register of that type, `T` one of the instruction's
   * last type, `T1` of its first, `{T}` a vector of as many as .v2, .v4 or .v8 says, `[…]` an address, `p` a predicate,
   * a number itself, and `?` after an operand says that it may be left out.
   */
  get operands(): readonly string[] {
    return words(this.operandsText);
  }
}

export const form = (mnemonic: string, places: string, operands = ''): Form => new Form(mnemonic, places, operands);

/** As `form`, where `{relaxed cta|gpu}` stands for all of what is in the braces or nothing of it. */
export function forms(mnemonic: string, places: string, operands = ''): Form[] {
  const group = /\{([^}]*)\}/.exec(places);
  if (!group) return [form(mnemonic, places, operands)];
  return ['', group[1]!].flatMap(chosen => forms(mnemonic, places.replace(group[0], chosen), operands));
}

const words = (text: string): string[] => text.split(/\s+/).filter(word => word !== '');

/** True when every modifier fills a place of the form and no place that must be filled is empty. */
export function fits({ places }: Form, modifiers: readonly string[]): boolean {
  const left = [...modifiers];
  for (const place of places) {
    // The first type that is left, or any other word.
    const next = left.find(isScalarType);
    const index = left.findIndex(modifier => place.words.includes(modifier) && (modifier === next || !isScalarType(modifier)));
    if (index >= 0) left.splice(index, 1);
    else if (!place.optional) return false;
  }
  return left.length === 0;
}
