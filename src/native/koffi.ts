/**
 * Loads koffi, the foreign function interface under all native libraries, when the first of them is
 * opened and not before: the CPU device has to work where koffi is not installed or has no build
 * for the platform.
 *
 * A Worker that was started from text cannot resolve packages, so the main thread finds koffi's
 * file ({@link koffiPath}) and passes it along.
 */
import { createRequire } from 'node:module';

import { LibraryNotFoundError } from './library-not-found.js';

export type Koffi = typeof import('koffi');
export type KoffiLibrary = ReturnType<Koffi['load']>;

/** Where koffi may be resolved from: this file, the program, the working directory. */
function* resolutionBases(): Generator<string> {
  // A bundler that emits CommonJS leaves import.meta.url undefined; in a Worker made from text
  // argv[1] is no path.
  const here: string | undefined = import.meta.url;
  if (here !== undefined) yield here;
  const program = process.argv[1];
  if (program !== undefined) yield program;
  yield `${process.cwd()}/`;
}

/** koffi's absolute path, to be handed to a Worker; undefined where it is not installed. */
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
 * koffi itself.
 * @param path an absolute path, as {@link koffiPath} gives it; resolved here without one
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
    'A real GPU is driven through it: run `npm install koffi` (without --omit=optional: its ' +
      'native code is an optional dependency). The CPU device does not need it.',
  );
}

export function firstLine(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return message.split('\n', 1)[0]!;
}
