/**
 * Loads one of NVIDIA's libraries from the places that `find.ts` lists, and finds functions in it.
 */
import { existsSync } from 'node:fs';

import { candidatePaths, thisMachine } from './find.js';
import type { Machine, Tried } from './find.js';
import { firstLine } from './koffi.js';
import type { Koffi, KoffiLibrary } from './koffi.js';
import { fileNames, howToGet } from './libraries.js';
import type { LibraryRow } from './libraries.js';
import { LibraryNotFoundError } from './library-not-found.js';

export interface OpenedLibrary {
  readonly library: KoffiLibrary;
  /** The library's file; a bare name where the loader's own search found it. */
  readonly path: string;
}

export interface OpenLibraryOptions {
  /** The library's file; no other path is tried. */
  path?: string | undefined;
  machine?: Machine;
}

/**
 * Loads a library. A file that exists and does not load (it is for another processor, or its own
 * dependencies are missing) is skipped; the loader's reason is part of the error if no other file
 * loads.
 *
 * @throws {LibraryNotFoundError} with every path tried and how to get the library
 */
export function openLibrary(
  koffi: Koffi,
  row: LibraryRow,
  { path, machine = thisMachine() }: OpenLibraryOptions = {},
): OpenedLibrary {
  const tried: Tried[] = [];
  for (const candidate of path === undefined ? paths(row, machine, tried) : [path]) {
    // A bare name goes through the loader's own search. A path is checked here first, since the
    // message is plainer. A NUL would end the loader's text, and another file would be loaded.
    if (candidate.includes('\0')) {
      tried.push({
        path: candidate.replaceAll('\0', '\\0'),
        reason: 'its name has a NUL character',
      });
      continue;
    }
    if (isPath(candidate) && !existsSync(candidate)) {
      tried.push({ path: candidate, reason: 'no such file' });
      continue;
    }
    try {
      return { library: loadForGood(koffi, candidate), path: candidate };
    } catch (error) {
      tried.push({
        path: candidate,
        reason: firstLine(error).replace(/^Failed to load shared library: /, ''),
      });
    }
  }
  throw new LibraryNotFoundError(
    row.from === 'driver'
      ? `NVIDIA's driver library (lib${row.base})`
      : `${row.name} (lib${row.base})`,
    tried,
    howToGet(row),
  );
}

/** The flags RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE. */
const KEEP: Readonly<Partial<Record<NodeJS.Platform, number>>> = { linux: 0x1005, darwin: 0x91 };
/** Paths that are pinned already: koffi keeps its data about a function until the thread ends. */
const kept = new Set<string>();

/**
 * Loads a library that stays in the process. koffi closes the libraries that a Worker has loaded
 * when the Worker ends. A library that no other thread has loaded would then be removed from the
 * process, and pointers to its objects, which other libraries keep until the process ends, would
 * dangle.
 *
 * @throws Error with the loader's reason
 */
export function loadForGood(
  koffi: Koffi,
  path: string,
  options?: Parameters<Koffi['load']>[1],
): KoffiLibrary {
  const library = options === undefined ? koffi.load(path) : koffi.load(path, options);
  const keep = KEEP[process.platform];
  if (keep !== undefined && !kept.has(path)) {
    (
      koffi.load(null).func('uintptr_t dlopen(const char* path, int flags)') as (
        path: string,
        flags: number,
      ) => unknown
    )(path, keep);
    kept.add(path);
  }
  return library;
}

/**
 * Yields the paths to try. For the driver the loader's own search comes first, whose cache covers
 * most systems; for other libraries, the user's variables come first.
 */
function* paths(row: LibraryRow, machine: Machine, tried: Tried[]): Generator<string> {
  const overridden = row.environment.some((name) => machine.env[name]);
  const names = overridden ? [] : fileNames(row, machine.platform);
  if (row.from === 'driver') yield* names;
  yield* candidatePaths(row, machine, tried);
  if (row.from !== 'driver') yield* names;
}

function isPath(candidate: string): boolean {
  return candidate.includes('/') || candidate.includes('\\');
}

/** Returns the function of a C declaration; undefined where the library does not have it. */
export function findFunction(
  library: KoffiLibrary,
  declaration: string,
): ((...args: never[]) => unknown) | undefined {
  try {
    return library.func(declaration);
  } catch (error) {
    // koffi 3 throws "Cannot find function 'x' in shared library". Any other error is a mistake in
    // the declaration.
    if (!firstLine(error).startsWith('Cannot find function')) throw error;
    return undefined;
  }
}
