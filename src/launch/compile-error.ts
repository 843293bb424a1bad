/** Errors in a kernel's source, as users see them: with the place and the code. */
import { CudaCompileError } from '../core/index.js';
import { KernelSourceError } from '../kernel/source-error.js';
import type { Definition } from './variant.js';

/** Where a kernel was defined: the stack of the call. */
export interface DefinitionSite {
  readonly stack: string;
}

/** Remembers who called `below`. */
export function definitionSite(below: (...args: never[]) => unknown): DefinitionSite {
  const holder: { stack?: string } = {};
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 4;
  Error.captureStackTrace(holder, below);
  Error.stackTraceLimit = stackTraceLimit;
  // Reading it is what makes V8 write it; that is left until it is needed.
  return { get stack(): string { return holder.stack ?? ''; } };
}

/** What compiling threw, as the error that is told; anything but an error in the source as it is. */
export function compileError(error: unknown, { name }: Pick<Definition, 'name'>): unknown {
  if (!(error instanceof KernelSourceError)) return error;
  const frame = error.span === undefined ? '' : codeFrame(error.text, error.span.start, error.span.end);
  const place = error.span === undefined ? undefined : placeIn(error.text, error.span.start);
  const where = place === undefined ? '' : `, line ${place.line}, column ${place.column} of its text`;
  return new CudaCompileError(`kernel '${name}'${where}: ${error.what}. ${error.fix}${frame === '' ? '' : `\n${frame}`}`, frame, '', { cause: error });
}

/** Line and column, from 1, of an offset. */
function placeIn(text: string, offset: number): { line: number; column: number } {
  const before = text.slice(0, offset);
  return { line: before.split('\n').length, column: offset - before.lastIndexOf('\n') };
}

/** The lines around the span, with the span underlined. */
function codeFrame(text: string, start: number, end: number): string {
  const { line, column } = placeIn(text, start);
  const lines = text.split('\n');
  const first = Math.max(1, line - 2);
  const shown = lines.slice(first - 1, line);
  const length = Math.max(1, Math.min(end - start, (lines[line - 1] ?? '').length - column + 1));
  const width = String(line).length;
  return [...shown.map((each, index) => `${String(first + index).padStart(width)} | ${each}`), `${' '.repeat(width)} | ${' '.repeat(column - 1)}${'^'.repeat(length)}`].join('\n');
}
