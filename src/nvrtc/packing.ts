/** Follows `#pragma pack` in CUDA C++: whether structures are packed at the place that is read. */

/** Packing by `_Pragma`, and by a macro that makes a `_Pragma` from its argument. */
const OPERATOR = /_Pragma\s*\(\s*\w*"\s*pack\b/;
const OPERATOR_IN_MACRO = /_Pragma\s*\(\s*#/;
const GIVEN_TO_MACRO = /\(\s*pack\s*\(/;

export class Packing {
  /**
   * Whether structures are packed, after the values that were pushed; undefined where it is not
   * known any more.
   */
  private packed: readonly boolean[] | undefined = [false];

  constructor(source: string) {
    // Structures are packed from the place where the macro is used, and macros are not expanded
    // here.
    if (OPERATOR.test(source) || (OPERATOR_IN_MACRO.test(source) && GIVEN_TO_MACRO.test(source)))
      this.packed = undefined;
  }

  /** Whether structures may be packed. */
  get isPacked(): boolean {
    return this.packed?.at(-1) ?? true;
  }

  /**
   * Reads the text after `#pragma`. A pragma in a conditional directive makes the packing unknown.
   */
  pragma(text: string, isConditional: boolean): void {
    const [, rest] = /^pack\b([\s\S]*)$/.exec(text) ?? [];
    if (rest === undefined || this.packed === undefined) return;
    this.packed = isConditional
      ? undefined
      : repacked(
          this.packed,
          /^\s*\(([^)]*)\)/
            .exec(rest)?.[1]
            ?.split(',')
            .map((word) => word.trim()),
        );
  }
}

function repacked(
  packed: readonly boolean[],
  words: readonly string[] | undefined,
): readonly boolean[] | undefined {
  const [what, ...more] = words ?? [];
  const below = packed.slice(0, -1);
  switch (what) {
    case undefined:
      return undefined;
    case 'show':
      return packed;
    case '':
      return [...below, false];
    case 'push':
      return [...packed, more.length > 0 || packed.at(-1) === true];
    // A `pop` with a name may remove any number of values.
    case 'pop':
      return more.length > 0 ? undefined : below.length > 0 ? below : packed;
    default:
      return [...below, true];
  }
}
