import { CLASS_NAME, NamedError } from '../ground/named-error.js';

// The one error type of the compiler. Every message reads like ptxas's: position first, then what
// is wrong, then the offending source line, so that the same text serves a person and an editor's
// problem matcher.

export type PtxErrorCode = 'syntax' | 'semantic' | 'unsupported';

export interface PtxErrorPlace {
  line: number;
  column: number;
  /** Text of the source line the position is on. */
  sourceLine?: string;
  /** The whole instruction, when the error belongs to one. */
  instruction?: string;
  fileName?: string;
}

/** A text that is no PTX may be one token of a megabyte, which is not to be read in a message. */
const MOST_CHARACTERS = 1000;

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
    super(
      `${where}: error: ` +
        `${message.length > MOST_CHARACTERS ? `${message.slice(0, MOST_CHARACTERS)}…` : message}${excerpt}`,
    );
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

  /** 1-based line of an offset. */
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

  columnOf(offset: number): number {
    return offset - this.starts[this.lineOf(offset) - 1]! + 1;
  }

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
