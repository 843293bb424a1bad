import { CLASS_NAME, NamedError } from '../ground/named-error.js';

// The error type of the PTX compiler. A message has ptxas's form: the position, then what is wrong,
// then the source line. An editor's problem matcher can read it, too.

/**
 * - `syntax`: the text does not parse.
 * - `semantic`: the text parses, and PTX does not allow it.
 * - `unsupported`: it is valid PTX, and the compiler does not cover it.
 */
export type PtxErrorCode = 'syntax' | 'semantic' | 'unsupported';

/** A position in a PTX text. Lines and columns begin at 1. */
export interface PtxErrorPlace {
  line: number;
  column: number;
  /** The text of the source line that contains the position. */
  sourceLine?: string;
  /** The whole instruction, if the error is in one. */
  instruction?: string;
  fileName?: string;
}

/** Limits a message: a text that is not PTX may be one token of a megabyte. */
const MOST_CHARACTERS = 1000;

/**
 * An error in a PTX text, with its position. Lines and columns begin at 1.
 *
 * @example
 * ```ts
 * try {
 *   parsePtx('.version 8.0\n.target sm_80\n.address_size 64\n.global .u32;');
 * } catch (error) {
 *   if (error instanceof PtxError) console.log(error.code, error.line); // syntax 4
 * }
 * ```
 */
export class PtxError extends NamedError {
  /** @internal */
  static override readonly [CLASS_NAME]: string = 'PtxError';

  readonly code: PtxErrorCode;
  readonly line: number;
  readonly column: number;
  declare readonly instruction?: string;

  constructor(code: PtxErrorCode, message: string, place: PtxErrorPlace) {
    const where = `${place.fileName ?? 'ptx'}:${place.line}:${place.column}`;
    const excerpt = place.sourceLine === undefined ? '' : `\n  ${place.sourceLine.trim()}`;
    const shortened =
      message.length > MOST_CHARACTERS ? `${message.slice(0, MOST_CHARACTERS)}…` : message;
    super(`${where}: error: ${shortened}${excerpt}`);
    this.name = 'PtxError';
    this.code = code;
    this.line = place.line;
    this.column = place.column;
    if (place.instruction !== undefined) this.instruction = place.instruction;
  }
}

/** Maps offsets of one source text to lines and columns, and makes errors that quote it. */
export class SourceText {
  readonly text: string;
  readonly fileName: string | undefined;
  private readonly starts: number[] = [0];

  constructor(text: string, fileName?: string) {
    this.text = text;
    this.fileName = fileName;
    for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1))
      this.starts.push(at + 1);
  }

  /** The line of an offset; the first is 1. */
  lineOf(offset: number): number {
    let low = 0;
    let high = this.starts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.starts[middle]! <= offset) low = middle;
      else high = middle - 1;
    }
    return low + 1;
  }

  /** The column of an offset; the first is 1. */
  columnOf(offset: number): number {
    return offset - this.starts[this.lineOf(offset) - 1]! + 1;
  }

  /** The text of a line, at most 400 characters of it. */
  lineText(line: number): string {
    const start = this.starts[line - 1] ?? this.text.length;
    const end = this.starts[line] ?? this.text.length + 1;
    return this.text
      .slice(start, end - 1)
      .replace(/\r$/, '')
      .slice(0, 400);
  }

  error(code: PtxErrorCode, message: string, offset: number, instruction?: string): PtxError {
    const line = this.lineOf(offset);
    return new PtxError(code, message, {
      line,
      column: this.columnOf(offset),
      sourceLine: this.lineText(line),
      ...(instruction === undefined ? {} : { instruction }),
      ...(this.fileName === undefined ? {} : { fileName: this.fileName }),
    });
  }
}
