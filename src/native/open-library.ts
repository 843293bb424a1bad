/**
 * Loads one of NVIDIA's libraries, wherever `find.ts` says that it may lie, and finds functions in
 * it.
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
  /** The file; a bare name where the loader's own search found it. */
  readonly path: string;
}

export interface OpenLibraryOptions {
  /** The library's file; nothing else is tried. */
  path?: string | undefined;
  machine?: Machine;
}

/**
 * Loads a library. One that is there and does not load (it is for another processor, or lacks a
 * library of its own) is passed over, and the loader's reason is told if no other loads.
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
    // A bare name goes through the loader's own search; of a path we can tell more plainly that it
    // is not there. The loader's text would end there, and it would load another file.
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

/** RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE */
const KEEP: Readonly<Partial<Record<NodeJS.Platform, number>>> = { linux: 0x1005, darwin: 0x91 };
/** That stay already: koffi keeps what it is told of a function for as long as the thread lives. */
const kept = new Set<string>();

/**
 * Loads a library that stays. koffi closes what a Worker has loaded when that ends, and a library
 * that nobody else has loaded is then taken out of the process: what it made, and what other
 * libraries have of it until the process ends, would point into nothing.
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
 * The driver by the loader's own search first, whose cache knows most systems; of the others, what
 * the user's variables name comes first.
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

/** The function that a C declaration names; undefined where the library does not have it. */
export function findFunction(
  library: KoffiLibrary,
  declaration: string,
): ((...args: never[]) => unknown) | undefined {
  try {
    return library.func(declaration);
  } catch (error) {
    // koffi 3: "Cannot find function 'x' in shared library". Anything else is a mistake in the
    // declaration.
    if (!firstLine(error).startsWith('Cannot find function')) throw error;
    return undefined;
  }
}
