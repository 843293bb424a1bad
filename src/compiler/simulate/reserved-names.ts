/** Names that a variable of a kernel cannot have in the generated JavaScript. */

const WORDS = `
  arguments await break case catch class const continue debugger default delete do else enum eval
  export extends false finally for function if implements import in instanceof interface let new
  null package private protected public return static super switch this throw true try typeof
  undefined var void while with yield Infinity NaN Math Number BigInt
`;

export const RESERVED_NAMES: ReadonlySet<string> = new Set(WORDS.trim().split(/\s+/));
