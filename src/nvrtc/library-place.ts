/**
 * Finds the file of a library, and what distinguishes it from another file at the same path later.
 */
import { realpath, stat } from 'node:fs/promises';

import { findLibrary } from '../native/find.js';
import type { LibraryRow } from '../native/libraries.js';
import type { LibraryPlace } from './thread/messages.js';

/**
 * Finds the file anew each time, since variables may have been set; where nothing is found the
 * compiler's thread uses the loader's search, too.
 */
export function placeOf(row: LibraryRow): LibraryPlace {
  const found = findLibrary(row);
  return { path: 'path' in found ? found.path : undefined, env: { ...process.env } };
}

/**
 * Returns part of a key; undefined where the file is not known. It changes with the library's
 * version.
 */
export async function identityOf({ path }: LibraryPlace): Promise<readonly unknown[] | undefined> {
  if (path === undefined) return undefined;
  try {
    const real = await realpath(path);
    const { size, mtimeMs } = await stat(real);
    return [real, size, mtimeMs];
  } catch {
    return undefined;
  }
}
