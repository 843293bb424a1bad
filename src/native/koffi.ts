/**
 * Loads koffi, the foreign function interface to native libraries, when the first library is
 * opened: the CPU device has to work where koffi is not installed or has no build for the platform.
 *
 * A Worker that was started from text cannot resolve packages, so the main thread finds koffi's
 * file ({@link koffiPath}) and passes its path.
 */
import { createRequire } from 'node:module';

import { LibraryNotFoundError } from './library-not-found.js';

export type Koffi = typeof import('koffi');
export type KoffiLibrary = ReturnType<Koffi['load']>;

/** Yields the bases from which koffi is resolved: this file, the program, the working directory. */
function* resolutionBases(): Generator<string> {
  // A bundler that emits CommonJS leaves import.meta.url undefined. In a Worker made from text
  // argv[1] is not a path.
  const here: string | undefined = import.meta.url;
  if (here !== undefined) yield here;
  const program = process.argv[1];
  if (program !== undefined) yield program;
  yield `${process.cwd()}/`;
}

/**
 * Returns koffi's absolute path, to be passed to a Worker; undefined where koffi is not installed.
 */
export function koffiPath(): string | undefined {
  return resolveKoffi([]);
}

function resolveKoffi(tried: { path: string; reason: string }[]): string | undefined {
  for (const base of resolutionBases()) {
    try {
      return createRequire(base).resolve('koffi');
    } catch (error) {
      tried.push({ path: base, reason: firstLine(error) });
    }
  }
  return undefined;
}

/**
 * Loads koffi.
 *
 * @param path an absolute path, as {@link koffiPath} returns it; without one, koffi is resolved
 *   here
 * @throws {LibraryNotFoundError} where koffi is not installed, or has no native build for this
 *   platform
 */
export function loadKoffi(path?: string): Koffi {
  const tried: { path: string; reason: string }[] = [];
  const file = path ?? resolveKoffi(tried);
  if (file !== undefined) {
    try {
      return createRequire(file)(file) as Koffi;
    } catch (error) {
      tried.push({ path: file, reason: firstLine(error) });
    }
  }
  throw new LibraryNotFoundError(
    'koffi',
    tried,
    'It is needed for a GPU: run `npm install koffi` (without --omit=optional: its ' +
      'native code is an optional dependency). The CPU device does not need it.',
  );
}

export function firstLine(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return message.split('\n', 1)[0]!;
}
