/** The error of a kernel whose source is nested too deeply for recursive readers. */
import { tokTypes, tokenizer } from 'acorn';
import type { KernelSource, Used } from '../signature.js';
import { KernelSourceError } from '../source-error.js';
import type { Span } from '../tree.js';

/** Whether V8 or acorn threw it because the stack was full. */
export function isStackOverflow(error: unknown): boolean {
  return error instanceof RangeError && /call stack|stack space/.test(error.message);
}

const OPENING: ReadonlySet<unknown> = new Set([
  tokTypes.parenL,
  tokTypes.bracketL,
  tokTypes.braceL,
  tokTypes.dollarBraceL,
]);
const CLOSING: ReadonlySet<unknown> = new Set([
  tokTypes.parenR,
  tokTypes.bracketR,
  tokTypes.braceR,
]);
/** Tokens between statements. */
const APART: ReadonlySet<unknown> = new Set([tokTypes.semi, tokTypes.braceL, tokTypes.braceR]);

const OPERATORS: ReadonlySet<unknown> = new Set([
  tokTypes.question,
  tokTypes.incDec,
  tokTypes.prefix,
  tokTypes.logicalOR,
  tokTypes.logicalAND,
  tokTypes.bitwiseOR,
  tokTypes.bitwiseXOR,
  tokTypes.bitwiseAND,
  tokTypes.equality,
  tokTypes.relational,
  tokTypes.bitShift,
  tokTypes.plusMin,
  tokTypes.modulo,
  tokTypes.star,
  tokTypes.slash,
  tokTypes.starstar,
  tokTypes.coalesce,
]);

/** Nested brackets take more of the reader's stack than a chain of operators does. */
const BRACKET_COST = 4;

interface Deep {
  readonly cost: number;
  readonly start: number;
  readonly end: number;
}

/**
 * Gives the most deeply nested place of a text: within its brackets, or a statement of many
 * operators. Undefined where there are no tokens.
 */
function deepestIn(text: string): Deep | undefined {
  let deepest: Deep | undefined;
  const note = (found: Deep): void => {
    if (deepest === undefined || found.cost > deepest.cost) deepest = found;
  };
  let depth = 0;
  let statement: { start: number; operators: number } | undefined;
  let end = 0;
  const close = (): void => {
    if (statement !== undefined) note({ cost: statement.operators, start: statement.start, end });
    statement = undefined;
  };
  try {
    for (const token of tokenizer(text, { ecmaVersion: 'latest' })) {
      const { type, start } = token;
      if (OPENING.has(type)) note({ cost: BRACKET_COST * ++depth, start, end: token.end });
      else if (CLOSING.has(type)) depth--;
      if (APART.has(type)) {
        close();
      } else {
        statement ??= { start, operators: 0 };
        if (OPERATORS.has(type)) statement.operators++;
      }
      end = token.end;
    }
  } catch {
    // The rest is no JavaScript: the tokens before it count.
  }
  close();
  return deepest;
}

/** The texts of a kernel: its own, and those of the functions that it uses. */
function* textsOf(
  text: string,
  uses: Readonly<Record<string, Used>>,
  seen = new Set<string>(),
): Generator<string> {
  if (seen.has(text)) return;
  seen.add(text);
  yield text;
  for (const used of Object.values(uses)) {
    if (typeof used === 'object' && 'text' in used) yield* textsOf(used.text, used.uses, seen);
  }
}

/** Makes the error of a kernel that is nested too deeply, with its deepest place. */
export function tooDeepError({
  text: own,
  uses,
}: Pick<KernelSource, 'text' | 'uses'>): KernelSourceError {
  let found: { readonly cost: number; readonly text: string; readonly span: Span } | undefined;
  for (const text of textsOf(own, uses)) {
    const deep = deepestIn(text);
    if (deep !== undefined && (found === undefined || deep.cost > found.cost))
      found = {
        cost: deep.cost,
        text,
        span: { text: text === own ? 0 : 1, start: deep.start, end: deep.end },
      };
  }
  return new KernelSourceError(
    'This kernel is nested too deeply to be read',
    'Write it in smaller expressions, or with fewer functions inside each other.',
    found?.span,
    found?.text ?? own,
  );
}
