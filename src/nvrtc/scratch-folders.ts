/** Folders on disk that NVRTC itself writes to and reads from. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { cacheFolder, makeOwnFolderSync } from '../core/kept.js';

let own: string | undefined;

/** Makes a folder of this process, which is removed when the process ends. */
function ownFolder(): string {
  if (own === undefined) {
    const folder = mkdtempSync(join(tmpdir(), 'async-cuda-'));
    process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
    own = folder;
  }
  return own;
}

/**
 * The folder to which the headers that NVRTC contains are written once, for each version. They
 * become code, so a folder that others may write to is not used.
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
 * The folder of compiled headers. Another process cannot use them, since they are images of memory
 * at an address.
 */
export function precompiledHeadersFolder(): string {
  return ownFolder();
}
