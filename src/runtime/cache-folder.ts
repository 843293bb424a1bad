/**
 * Where the library keeps on disk what it need not compile twice: the platform's folder for caches,
 * or the one that `ASYNC_CUDA_CACHE_DIR` names. `ASYNC_CUDA_CACHE_DISABLE`, unless it is empty or
 * 0, switches the cache off.
 */
import { mkdirSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, isAbsolute, join, resolve } from 'node:path';

export interface CacheSurroundings {
  env: Readonly<Record<string, string | undefined>>;
  platform: NodeJS.Platform;
  /** The user's home folder; may throw where there is no such user. */
  home: () => string;
}

const thisProcess = (): CacheSurroundings => ({
  env: process.env,
  platform: process.platform,
  home: homedir,
});

/** Undefined where the cache is switched off, or the user has no home. */
export function cacheFolder(
  { env, platform, home }: CacheSurroundings = thisProcess(),
): string | undefined {
  const { ASYNC_CUDA_CACHE_DISABLE: disabled = '', ASYNC_CUDA_CACHE_DIR: named = '' } = env;
  if (disabled !== '' && disabled !== '0') return undefined;
  if (named !== '') return resolve(named);
  const parent = platformFolder(env, platform, home);
  return parent === undefined ? undefined : join(parent, 'async-cuda');
}

function platformFolder(
  env: CacheSurroundings['env'],
  platform: NodeJS.Platform,
  home: () => string,
): string | undefined {
  if (platform === 'win32') {
    const { LOCALAPPDATA: local = '' } = env;
    if (local !== '') return local;
  } else if (platform !== 'darwin') {
    // The XDG base directory specification: a path that is not absolute is to be ignored.
    const { XDG_CACHE_HOME: cache = '' } = env;
    if (isAbsolute(cache)) return cache;
  }
  let folder: string;
  try {
    folder = home();
  } catch {
    return undefined;
  }
  if (folder === '') return undefined;
  if (platform === 'win32') return join(folder, 'AppData', 'Local');
  return platform === 'darwin' ? join(folder, 'Library', 'Caches') : join(folder, '.cache');
}

/**
 * Makes a folder of that mode, with those above it. Node's own `recursive` never ends where a
 * folder that is there answers ENOENT, as /proc and mounts made on demand do: it would keep the
 * process from ending. That one could not be made shows when a file is written.
 */
export function makeFolderSync(path: string, mode: number, mayLackParent = true): void {
  try {
    mkdirSync(path, { mode });
  } catch (error) {
    if (!isMissing(error, path, mayLackParent)) return;
    makeFolderSync(dirname(path), mode);
    makeFolderSync(path, mode, false);
  }
}

/** {@link makeFolderSync}, without waiting for the disk. */
export async function makeFolder(path: string, mode: number, mayLackParent = true): Promise<void> {
  try {
    await mkdir(path, { mode });
  } catch (error) {
    if (!isMissing(error, path, mayLackParent)) return;
    await makeFolder(dirname(path), mode);
    await makeFolder(path, mode, false);
  }
}

/** Whether the folder above is what lacks. */
function isMissing(error: unknown, path: string, mayLackParent: boolean): boolean {
  return (
    mayLackParent && (error as NodeJS.ErrnoException).code === 'ENOENT' && dirname(path) !== path
  );
}
