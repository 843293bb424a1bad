/** Generated text that records, for every piece, its place in the user's source. */
import {
  GenMapping,
  maybeAddMapping,
  setSourceContent,
  toEncodedMap,
} from '@jridgewell/gen-mapping';
import type { Span } from '../tree.js';
import type { Locate } from './failure.js';

/** Text in pieces; the text after a mark comes from the mark's span, up to the next mark. */
export type Rope = string | { readonly at: Span } | readonly Rope[];

const isMark = (piece: { readonly at: Span } | readonly Rope[]): piece is { readonly at: Span } =>
  !Array.isArray(piece);

interface Mark {
  readonly line: number;
  readonly column: number;
  readonly span: Span;
}

/** The source of a source map for a file path. */
function sourceUrl(file: string): string {
  if (file.startsWith('/')) return `file://${encodeURI(file)}`;
  return /^[A-Za-z]:[\\/]/.test(file) ? `file:///${encodeURI(file.replaceAll('\\', '/'))}` : file;
}

export class MappedText {
  private readonly lines: string[] = [];
  private readonly marks: Mark[] = [];

  /** Adds one line. */
  add(indent: number, rope: Rope): void {
    let text = '  '.repeat(indent);
    const append = (piece: Rope): void => {
      if (typeof piece === 'string') text += piece;
      else if (!isMark(piece)) piece.forEach(append);
      // A mark without text of its own belongs to the mark around it.
      else if (piece.at.end > piece.at.start)
        this.marks.push({ line: this.lines.length + 1, column: text.length, span: piece.at });
    };
    append(rope);
    this.lines.push(text);
  }

  toString(): string {
    return this.lines.join('\n');
  }

  /**
   * Gives the source map as JSON. Spans without a place in a file are places in their own text,
   * which the map then carries.
   */
  sourceMap(
    file: string,
    name: string,
    texts: readonly string[],
    locate: Locate | undefined,
  ): string {
    const map = new GenMapping({ file });
    for (const { line, column, span } of this.marks) {
      const position = locate?.(span);
      if (position !== undefined) {
        maybeAddMapping(map, {
          generated: { line, column },
          source: sourceUrl(position.file),
          original: { line: position.line, column: position.column - 1 },
        });
        continue;
      }
      const text = texts[span.text] ?? '';
      const source = `async-cuda:${name}${span.text === 0 ? '' : `-${span.text}`}.js`;
      const place = placeInText(text, span.start);
      maybeAddMapping(map, {
        generated: { line, column },
        source,
        original: { line: place.line, column: place.column - 1 },
      });
      setSourceContent(map, source, text);
    }
    return JSON.stringify(toEncodedMap(map));
  }
}

/** Line and column, from 1, of an offset. */
export function placeInText(
  text: string,
  offset: number,
): { line: number; column: number; codeLine: string } {
  const before = text.slice(0, offset);
  const start = before.lastIndexOf('\n') + 1;
  const end = text.indexOf('\n', offset);
  return {
    line: before.split('\n').length,
    column: offset - start + 1,
    codeLine: text.slice(start, end < 0 ? text.length : end).replace(/\r$/, ''),
  };
}

/** The map as a comment that debuggers read. */
export function inlineMap(json: string): string {
  const bytes = new TextEncoder().encode(json);
  let text = '';
  for (const byte of bytes) text += String.fromCharCode(byte);
  return `//# sourceMappingURL=data:application/json;charset=utf-8;base64,${btoa(text)}`;
}
