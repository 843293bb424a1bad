/** The message of an error in a kernel's source: file, line, code and what to write instead. */
import { codeFrame } from '../compiler/code-frame.js';
import type { Locate } from '../compiler/simulate/failure.js';
import type { KernelSourceError } from '../compiler/source-error.js';
import { locateText } from './source-location.js';
import type { Locator } from './source-location.js';

/** The text in place of a file's name. */
const RUNNING_TEXT =
  "the kernel's function as it runs (its own file could not be found, or has no source map)";

/**
 * Gives the message: `file:line:column: what is wrong`, the line of code with carets under it, what
 * to write instead.
 */
export function showSource(error: KernelSourceError, locator: Locator): string {
  const { span, what, fix } = error;
  if (span === undefined) return `${what}\n\n${fix}`;
  // The error may be in a device function, which lies outside of the kernel's locator.
  const own = error.text === locator.text ? locator : locateText(error.text, []);
  const start = own.at(span.start);
  const end = own.at(span.end);
  const length =
    end.file === start.file && end.line === start.line && end.column > start.column
      ? end.column - start.column
      : span.end - span.start;
  const place = start.original
    ? `${start.file}:${start.line}:${start.column}`
    : `line ${start.line}, column ${start.column} of ${RUNNING_TEXT}`;
  return (
    `${place}: ` +
    `${what}\n\n${codeFrame(start.codeLine, start.line, start.column, length)}\n\n${fix}`
  );
}

/** Places of spans for the simulation, by the locators of the tree's texts. */
export function locateSpans(locators: readonly Locator[]): Locate {
  return ({ text, start }) => {
    const place = locators[text]?.at(start);
    return place?.original === true ? place : undefined;
  };
}
