/** `#pragma pack` in CUDA C++: whether structures are packed where a text is read. */

/** Packing by `_Pragma`, and by a macro that makes one of what it is given. */
const OPERATOR = /_Pragma\s*\(\s*\w*"\s*pack\b/;
const OPERATOR_IN_MACRO = /_Pragma\s*\(\s*#/;
const GIVEN_TO_MACRO = /\(\s*pack\s*\(/;

export class Packing {
  /**
   * Whether they are, behind what it was when it was pushed; undefined where it is not known any
   * more.
   */
  private packed: readonly boolean[] | undefined = [false];

  constructor(source: string) {
    // Where the macro stands is where structures are packed: it is not followed.
    if (OPERATOR.test(source) || (OPERATOR_IN_MACRO.test(source) && GIVEN_TO_MACRO.test(source)))
      this.packed = undefined;
  }

  /** Whether structures may be packed. */
  get isPacked(): boolean {
    return this.packed?.at(-1) ?? true;
  }

  /** Reads what stands behind `#pragma`. One in a conditional directive is not followed. */
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
    // Of several that have a name, it may be any.
    case 'pop':
      return more.length > 0 ? undefined : below.length > 0 ? below : packed;
    default:
      return [...below, true];
  }
}
