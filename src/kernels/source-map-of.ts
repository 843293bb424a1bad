/** The source map of a running text, and original places from it. */
import { readFileSync } from 'node:fs';
import { SourceMap, findSourceMap } from 'node:module';
import { dirname, isAbsolute, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

/** A place in an original file. Line and column count from 0 here. */
export interface OriginalPlace {
  readonly file: string;
  readonly line: number;
  readonly column: number;
  /** The file's text, where map or disk has it. */
  readonly content: string | undefined;
  /** Columns of the running line after the mapped place, which is this one. */
  readonly columnsAfter: number;
}

export interface TextMap {
  /** Line and column count from 0. Undefined where nothing is mapped. */
  at(line: number, column: number): OriginalPlace | undefined;
}

interface Payload {
  readonly sources?: readonly (string | null)[];
  readonly sourcesContent?: readonly (string | null)[];
  readonly sourceRoot?: string;
}

/** The path of a file: URL or path; undefined for names of other kinds. */
export function pathOf(file: string): string | undefined {
  try {
    if (file.startsWith('file:')) return fileURLToPath(file.replace(/[?#].*$/, ''));
  } catch {
    return undefined;
  }
  return isAbsolute(file) ? file : undefined;
}

export function readText(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}

/** Gives the URL of the last such comment in the text. */
export function mapUrlIn(text: string): string {
  return (
    [...text.matchAll(/^[ \t]*(?:\/\/|\/\*)[#@][ \t]*sourceMappingURL=([^\s'"*]+)/gm)].at(
      -1,
    )?.[1] ?? ''
  );
}

function payloadOf(
  mapUrl: string,
  folder: string | undefined,
): { payload: Payload; folder: string | undefined } | undefined {
  const data = /^data:application\/json[^,]*?(;base64)?,(.*)$/s.exec(mapUrl);
  if (data !== null) {
    const json =
      data[1] === undefined
        ? decodeURIComponent(data[2]!)
        : Buffer.from(data[2]!, 'base64').toString();
    return { payload: JSON.parse(json) as Payload, folder };
  }
  const path =
    pathOf(mapUrl) ??
    (folder === undefined ? undefined : resolve(folder, decodeURIComponent(mapUrl)));
  const json = path === undefined ? undefined : readText(path);
  return json === undefined
    ? undefined
    : { payload: JSON.parse(json) as Payload, folder: dirname(path!) };
}

/**
 * Gives the path of a source, where its name leads to one: webpack names sources by their project
 * and path.
 */
function sourcePath(source: string, sourceRoot: string, folder: string | undefined): string {
  const path = pathOf(source);
  if (path !== undefined) return path;
  const webpack = /^webpack:\/\/[^/]*\/(?:\.\/)?(.*?)(?:\?.*)?$/.exec(source);
  if (webpack !== null) return resolve(webpack[1]!);
  if (/^[a-z][a-z\d+.-]+:/i.test(source) || folder === undefined) return source;
  return resolve(folder, pathOf(sourceRoot) ?? sourceRoot, source);
}

/**
 * Gives the map that belongs to a running text: the one that its comment names, inline or beside
 * the file, or else Node's own. `file` is the text's name, a path or URL. Undefined where there is
 * none, or none that can be read.
 */
export function sourceMapOf(file: string, mapUrl: string): TextMap | undefined {
  const path = pathOf(file);
  try {
    const found =
      mapUrl === '' ? undefined : payloadOf(mapUrl, path === undefined ? undefined : dirname(path));
    if (found !== undefined)
      return textMap(
        new SourceMap(found.payload as ConstructorParameters<typeof SourceMap>[0]),
        found.payload,
        found.folder,
      );
    const known = findSourceMap(file) ?? (path === undefined ? undefined : findSourceMap(path));
    return known === undefined
      ? undefined
      : textMap(known, known.payload, path === undefined ? undefined : dirname(path));
  } catch {
    // A broken map counts as none: the running text is shown.
    return undefined;
  }
}

function textMap(map: SourceMap, payload: Payload, folder: string | undefined): TextMap {
  return {
    at(line, column) {
      const entry = map.findEntry(line, column);
      if (!('originalSource' in entry) || typeof entry.originalSource !== 'string')
        return undefined;
      const file = sourcePath(entry.originalSource, payload.sourceRoot ?? '', folder);
      const index = payload.sources?.indexOf(entry.originalSource) ?? -1;
      const columnsAfter = entry.generatedLine === line ? column - entry.generatedColumn : 0;
      return {
        file,
        line: entry.originalLine,
        column: entry.originalColumn,
        columnsAfter,
        content: payload.sourcesContent?.[index] ?? readText(file),
      };
    },
  };
}
