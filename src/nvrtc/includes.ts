/**
 * Finds the files that a source may include, without compiling it, so that a cached program is
 * known to belong to the files as they are. NVRTC does not report which files it has read, so every
 * name in an `#include` counts, read or skipped.
 */
import { createHash } from 'node:crypto';
import { readFile, readdir, stat } from 'node:fs/promises';
import { dirname, isAbsolute, join, resolve } from 'node:path';

export interface Dependencies {
  /**
   * Part of a key: files of the user's folders by their contents, CUDA's files by their version.
   */
  readonly key: readonly unknown[];
  /** Why a program of this source cannot be cached; undefined where it can. */
  readonly unknown: string | undefined;
  /** Names that are in no folder: NVRTC may have them itself. */
  readonly unresolved: readonly string[];
}

export interface IncludeSearch {
  /** The source's file: NVRTC searches its folder for headers, whether or not the file exists. */
  readonly name: string;
  readonly headers: readonly (readonly [name: string, text: string])[];
  /** The user's folders. */
  readonly folders: readonly string[];
  /** CUDA's folders, whose files change with their version only. */
  readonly cudaFolders: readonly string[];
}

interface Text {
  readonly text: string;
  /** Folders of the file and of those that include it, innermost first. */
  readonly from: readonly string[];
}

/**
 * An include with or without angle brackets, or one whose name only the preprocessor can compute.
 * Matches in comments are harmless.
 */
const INCLUDE = new RegExp(
  /(?:#|%:|\?\?=)(?:[ \t]|\/\*[^]*?\*\/)*/.source +
    /(include_next|include|import|embed)\b(?:[ \t]|\/\*[^]*?\*\/)*/.source +
    /(?:"([^"\n]*)"|<([^>\n]*)>|([^\n]*))/.source,
  'g',
);
const HAS_INCLUDE = /__has_(include(?:_next)?|embed)\s*\(\s*(?:"([^"\n]*)"|<([^>\n]*)>|([^\n]*))/g;
/** Macros whose expansion is in the program and not in the source. */
const CLOCK = /\b__(?:DATE|TIME|TIMESTAMP)__\b/;
/** The file whose version counts for all of CUDA's headers: they are found by name and not read. */
const VERSION_HEADER = 'cuda.h';

export async function dependenciesOf(source: string, search: IncludeSearch): Promise<Dependencies> {
  const inMemory = new Set(search.headers.map(([name]) => name));
  const files = new Map<string, string>();
  const cudaFiles = new Map<string, string>();
  const unresolved = new Set<string>();
  let unknown: string | undefined;
  const beside = (name: string): string => dirname(resolve(name));
  const texts: Text[] = [{ text: source, from: [beside(search.name)] }];
  for (const [name, text] of search.headers)
    texts.push({ text, from: [beside(name), beside(search.name)] });

  for (let next = texts.pop(); next !== undefined; next = texts.pop()) {
    if (CLOCK.test(next.text)) unknown = 'it has the time of its compilation';
    for (const name of includesIn(next.text)) {
      if (name === undefined) {
        unknown = 'a macro computes what it includes';
        continue;
      }
      // The brackets and the version of NVRTC decide which of these two is read; both count.
      const near = await firstFile(isAbsolute(name) ? [''] : next.from, name);
      const far = isAbsolute(name) ? undefined : await firstFile(search.folders, name);
      for (const found of [near, far]) {
        if (found === undefined || files.has(found)) continue;
        const bytes = await readFile(found).catch(() => undefined);
        if (bytes === undefined) {
          unknown = `${found} cannot be read`;
          continue;
        }
        files.set(found, createHash('sha256').update(bytes).digest('hex'));
        texts.push({ text: bytes.toString('utf8'), from: [dirname(found), ...next.from] });
      }
      if (far !== undefined || inMemory.has(name)) continue;
      const cuda = await firstFile(search.cudaFolders, name);
      if (cuda !== undefined) cudaFiles.set(cuda, await stamp(cuda));
      else if (near === undefined) unresolved.add(name);
    }
  }
  // One of CUDA's headers could include one of these in place of its own.
  if (cudaFiles.size > 0 || unresolved.size > 0)
    unknown ??= await shadowed(search, unresolved.size > 0);
  return {
    key: [
      [...files].sort(byName),
      [...cudaFiles].sort(byName),
      search.folders,
      cudaFiles.size === 0
        ? []
        : await Promise.all(
            search.cudaFolders.map(async (folder) => [
              folder,
              await stamp(join(folder, VERSION_HEADER)),
            ]),
          ),
      [...unresolved].sort(),
    ],
    unknown,
    unresolved: [...unresolved],
  };
}

/** Yields the names; undefined for one that only the preprocessor can compute. */
function* includesIn(text: string): Generator<string | undefined> {
  const spliced = text.replace(/(?:\\|\?\?\/)\r?\n/g, '');
  for (const pattern of [INCLUDE, HAS_INCLUDE]) {
    for (const [, directive, quoted, angled] of spliced.matchAll(pattern)) {
      // The next file of that name (include_next) and an embedded file are not searched.
      yield directive === 'include' || directive === 'import' ? (quoted ?? angled) : undefined;
    }
  }
}

async function firstFile(folders: readonly string[], name: string): Promise<string | undefined> {
  for (const folder of folders) {
    const path = folder === '' ? name : join(folder, name);
    if ((await stat(path).catch(() => undefined))?.isFile() === true) return path;
  }
  return undefined;
}

async function stamp(path: string): Promise<string> {
  const found = await stat(path).catch(() => undefined);
  return found === undefined ? 'none' : `${found.size} ${found.mtimeMs}`;
}

/** Returns why it is not certain which files CUDA's headers include; undefined where it is. */
async function shadowed(
  { folders, cudaFolders }: IncludeSearch,
  bundled: boolean,
): Promise<string | undefined> {
  if (folders.length === 0) return undefined;
  if (bundled && cudaFolders.length === 0)
    return "it is not known which of the folders' headers CUDA's include";
  const cuda = new Set((await Promise.all(cudaFolders.map(entries))).flat());
  const both = (await Promise.all(folders.map(entries))).flat().find((name) => cuda.has(name));
  return both === undefined ? undefined : `CUDA's headers may include the folders' ${both}`;
}

function entries(folder: string): Promise<string[]> {
  return readdir(folder).catch(() => []);
}

function byName([a]: [string, string], [b]: [string, string]): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
