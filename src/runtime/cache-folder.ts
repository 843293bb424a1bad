/**
 * The folder on disk where the library keeps compiled code: the platform's folder for caches, or
 * the one that `ASYNC_CUDA_CACHE_DIR` names. `ASYNC_CUDA_CACHE_DISABLE`, unless it is empty or 0,
 * switches the cache off.
 */
import { mkdirSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, isAbsolute, join, resolve } from 'node:path';

/** The environment that the folder follows from. Tests fabricate one. */
export interface CacheSurroundings {
  env: Readonly<Record<string, string | undefined>>;
  platform: NodeJS.Platform;
  /** Returns the user's home folder. It may throw where there is no such user. */
  home: () => string;
}

const thisProcess = (): CacheSurroundings => ({
  env: process.env,
  platform: process.platform,
  home: homedir,
});

/** Returns the folder; undefined where the cache is switched off, or the user has no home. */
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
    // The XDG base directory specification: a path that is not absolute is ignored.
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
 * Creates a folder with this mode, and the missing folders above it. Node's own `recursive` does
 * not end where an existing folder answers ENOENT, as /proc and mounts made on demand do: it would
 * keep the process from ending. A folder that could not be created is noticed when a file is
 * written.
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

/** As {@link makeFolderSync}, without blocking the thread. */
export async function makeFolder(path: string, mode: number, mayLackParent = true): Promise<void> {
  try {
    await mkdir(path, { mode });
  } catch (error) {
    if (!isMissing(error, path, mayLackParent)) return;
    await makeFolder(dirname(path), mode);
    await makeFolder(path, mode, false);
  }
}

/** Whether the failure is a missing parent folder. */
function isMissing(error: unknown, path: string, mayLackParent: boolean): boolean {
  return (
    mayLackParent && (error as NodeJS.ErrnoException).code === 'ENOENT' && dirname(path) !== path
  );
}
