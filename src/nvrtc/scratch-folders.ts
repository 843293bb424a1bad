/** Folders on disk that NVRTC itself writes to and reads from. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { cacheFolder, makeOwnFolderSync } from '../core/kept.js';

let own: string | undefined;

/** Of this process, removed when it ends. */
function ownFolder(): string {
  if (own === undefined) {
    const folder = mkdtempSync(join(tmpdir(), 'async-cuda-'));
    process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
    own = folder;
  }
  return own;
}

/**
 * Where the headers that NVRTC brings along are written once, for each version. They become code: a
 * folder that others may write does not have them.
 */
export function bundledHeadersFolder(): string {
  const kept = cacheFolder();
  const folder = kept === undefined ? undefined : join(kept, 'cuda-headers');
  const isOwn =
    kept !== undefined &&
    folder !== undefined &&
    makeOwnFolderSync(kept) &&
    makeOwnFolderSync(folder);
  return isOwn ? folder : join(ownFolder(), 'cuda-headers');
}

/**
 * Compiled headers: another process cannot use them, since they are images of memory at an address.
 */
export function precompiledHeadersFolder(): string {
  return ownFolder();
}
