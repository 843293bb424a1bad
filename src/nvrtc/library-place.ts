/**
 * Which file of a library is to be loaded, and what tells it from another that lies there later.
 */
import { realpath, stat } from 'node:fs/promises';

import { findLibrary } from '../native/find.js';
import type { LibraryRow } from '../native/libraries.js';
import type { LibraryPlace } from './thread/messages.js';

/**
 * Found anew each time, as variables may have been set; where nothing is found the compiler's
 * thread asks the loader too.
 */
export function placeOf(row: LibraryRow): LibraryPlace {
  const found = findLibrary(row);
  return { path: 'path' in found ? found.path : undefined, env: { ...process.env } };
}

/** Part of a key; undefined where the file is not known. It changes with the library's version. */
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
