/**
 * The place of a kernel's function in the user's own file. The function's text and the stack of the
 * call of `kernel()` are known: the text is searched in the script of that call, and a source map
 * leads from there to the file that the user wrote.
 */
import { parseStack } from '../core/call-stack.js';
import type { StackFrame } from '../core/call-stack.js';
import { onlyScriptWith, runningScripts } from './running-scripts.js';
import type { RunningScript } from './running-scripts.js';
import { mapUrlIn, pathOf, readText, sourceMapOf } from './source-map-of.js';
import type { TextMap } from './source-map-of.js';

export interface SourceLocation {
  /** Path of the file, or a text in its place where there is none. */
  readonly file: string;
  /** The line, from 1. */
  readonly line: number;
  /** The column, from 1. */
  readonly column: number;
  /** The whole line of code. */
  readonly codeLine: string;
  /**
   * Whether the place is in a file that has this line. Otherwise line and column count within the
   * function's own text, as it runs.
   */
  readonly original: boolean;
}

export interface Locator {
  /** The function's text. */
  readonly text: string;
  /** Gives the place of a character of the text. Files are read at the first call. */
  at(offset: number): SourceLocation;
}

/** A running text, and where in it the function begins. */
interface Found {
  readonly file: string;
  readonly text: string;
  readonly offset: number;
  readonly mapUrl: string;
  readonly startLine: number;
  readonly startColumn: number;
  /** The file's contents, where its places are those of the text. */
  readonly disk: string | undefined;
}

/** Offsets where lines begin. */
function lineStarts(text: string): number[] {
  const starts = [0];
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) starts.push(at + 1);
  return starts;
}

/** Line and column of an offset, from 0. */
function placeOf(starts: readonly number[], offset: number): { line: number; column: number } {
  let [low, high] = [0, starts.length];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (starts[middle]! <= offset) low = middle;
    else high = middle;
  }
  return { line: low, column: offset - starts[low]! };
}

const lineOf = (text: string, line: number): string | undefined =>
  text.split('\n')[line]?.replace(/\r$/, '');

function occurrences(text: string, wanted: string): number[] {
  const found: number[] = [];
  for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, at + 1)) found.push(at);
  return found;
}

/**
 * Gives the first of several matches after the call; for a function that was written before the
 * call, the last one before it.
 */
function nearest(offsets: readonly number[], call: number): number {
  return offsets.find((offset) => offset >= call) ?? offsets.at(-1)!;
}

function offsetOf(
  text: string,
  { line, column }: StackFrame,
  startLine: number,
  startColumn: number,
): number {
  const within = line - 1 - startLine;
  const start = lineStarts(text)[within] ?? 0;
  return start + column - 1 - (within === 0 ? startColumn : 0);
}

/**
 * Whether `running` is the beginning of the file except for types. Node strips types by writing
 * spaces, or a semicolon, over them: then every place is the file's.
 */
function isStripped(running: string, disk: string): boolean {
  for (let at = 0; at < running.length; at++) {
    const character = running[at];
    if (character !== disk[at] && character !== ' ' && character !== ';') return false;
  }
  return true;
}

function find(text: string, frames: readonly StackFrame[]): Found | undefined {
  for (const frame of frames) {
    const { file } = frame;
    const path = pathOf(file);
    const disk = path === undefined ? undefined : readText(path);
    const offsets = disk === undefined ? [] : occurrences(disk, text);
    const inFile = (): Found => ({
      file: path!,
      text: disk!,
      offset: nearest(offsets, offsetOf(disk!, frame, 0, 0)),
      mapUrl: mapUrlIn(disk!),
      startLine: 0,
      startColumn: 0,
      disk,
    });
    if (offsets.length === 1) return inFile();
    // The call's position, which counts in the running text, selects among several matches.
    for (const script of runningScripts(file)) {
      const candidates = occurrences(script.text, text);
      if (candidates.length === 0) continue;
      return inScript(
        text,
        file,
        script,
        nearest(candidates, offsetOf(script.text, frame, script.startLine, script.startColumn)),
        disk,
      );
    }
    if (offsets.length > 0) return inFile();
  }
  // The function may come from a module that is not on the stack.
  const only = onlyScriptWith(text);
  if (only === undefined) return undefined;
  const path = pathOf(only.file);
  return inScript(
    text,
    only.file,
    only.script,
    only.script.text.indexOf(text),
    path === undefined ? undefined : readText(path),
  );
}

function inScript(
  text: string,
  file: string,
  { text: running, mapUrl, startLine, startColumn }: RunningScript,
  offset: number,
  disk: string | undefined,
): Found {
  const same = disk !== undefined && isStripped(running.slice(0, offset + text.length), disk);
  return {
    file,
    text: running,
    offset,
    mapUrl,
    startLine,
    startColumn,
    disk: same ? disk : undefined,
  };
}

/**
 * Gives the locator of the function whose text is `text`. `stack`: the calls at `kernel()`, from
 * `captureStack`, or an `Error.stack`. Where no file can be found (a bundle without maps that is
 * gone, a function from `eval`) places are within `text` itself, with `original: false`.
 */
export function locateText(text: string, stack: string | readonly StackFrame[]): Locator {
  let located: ((offset: number) => SourceLocation) | undefined;
  return {
    text,
    at(offset) {
      located ??= locate(text, typeof stack === 'string' ? parseStack(stack) : stack);
      return located(offset);
    },
  };
}

function locate(text: string, frames: readonly StackFrame[]): (offset: number) => SourceLocation {
  const found = find(text, frames);
  const own = lineStarts(text);
  const within = (offset: number): SourceLocation => {
    const { line, column } = placeOf(own, offset);
    return {
      file: '<kernel>',
      line: line + 1,
      column: column + 1,
      codeLine: lineOf(text, line)!,
      original: false,
    };
  };
  if (found === undefined) return within;
  const starts = lineStarts(found.text);
  const map: TextMap | undefined = sourceMapOf(found.file, found.mapUrl);
  return (offset) => {
    const { line, column } = placeOf(starts, found.offset + offset);
    const place = map?.at(line + found.startLine, column + (line === 0 ? found.startColumn : 0));
    if (place !== undefined) {
      const codeLine = place.content === undefined ? undefined : lineOf(place.content, place.line);
      const running = lineOf(found.text, line)!;
      // A map may give only the place where a line or statement begins: the characters after it
      // that are the same in both texts are mapped, too.
      const same =
        codeLine?.startsWith(running.slice(column - place.columnsAfter, column), place.column) ===
        true;
      // A map still names a file that is gone; the code that is shown is then the running one.
      return {
        file: place.file,
        line: place.line + 1,
        column: place.column + 1 + (same ? place.columnsAfter : 0),
        codeLine: codeLine ?? running,
        original: codeLine !== undefined,
      };
    }
    if (found.disk === undefined) return within(offset);
    return {
      file: pathOf(found.file) ?? found.file,
      line: line + 1,
      column: column + 1,
      codeLine: lineOf(found.disk, line)!,
      original: true,
    };
  };
}
