/**
 * Files that become code are read only where no other user can have written them. A file counts
 * where it is a regular file of this user, which no other user may write. It is opened without
 * following a link and without waiting for a writer, as the open of a FIFO would, and is examined
 * through its descriptor, so that it cannot be exchanged in between. Windows has no owners and
 * modes of this kind: there the access list of the user's folder decides.
 */
import {
  closeSync,
  constants,
  fstatSync,
  futimesSync,
  linkSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import type { Stats } from 'node:fs';
import { open } from 'node:fs/promises';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';

import { makeFolderSync } from './cache-folder.js';

/**
 * On Linux and macOS opening fails with ELOOP for a symbolic link, and returns at once for a FIFO.
 * Windows has neither flag.
 */
const { O_RDONLY, O_NOFOLLOW = 0, O_NONBLOCK = 0 } = constants as Readonly<Record<string, number>>;
const READ = (O_RDONLY ?? 0) | O_NOFOLLOW | O_NONBLOCK;
/** Write permission of the group and of all others. */
const OTHERS_WRITE = 0o022;
/** Any permission of the group and of all others. */
const OTHERS_ANY = 0o077;
/** The mode of a folder that is made here: only this user has access. */
const OWN_FOLDER = 0o700;

const KEY_FILE = '.key';
const KEY_BYTES = 32;

/**
 * Returns why a file or folder does not belong to this user alone; undefined where it does.
 * `closed`: the modes that others must not have.
 */
function whyShared({ uid, mode }: Stats, closed: number): string | undefined {
  const own = process.geteuid?.();
  if (own === undefined) return undefined;
  if (uid !== own) return `it belongs to the user ${uid}, and this process runs as ${own}`;
  return (mode & closed) === 0
    ? undefined
    : `its mode ${(mode & 0o777).toString(8).padStart(4, '0')} lets others write`;
}

function isOwnFile(found: Stats, mostBytes: number, closed = OTHERS_WRITE): boolean {
  return found.isFile() && found.size <= mostBytes && whyShared(found, closed) === undefined;
}

/**
 * The bytes of a file; `refused` for one that is not a regular file of this user, is too large, or
 * is open to others.
 */
export type OwnBytes = Buffer | 'absent' | 'refused';

function unreadable(error: unknown): 'absent' | 'refused' {
  return (error as NodeJS.ErrnoException).code === 'ENOENT' ? 'absent' : 'refused';
}

/**
 * Reads a file of this user. `used` sets its times to now. `closed`: the permissions that others
 * must not have.
 */
export function readOwnFileSync(
  path: string,
  mostBytes: number,
  used = false,
  closed = OTHERS_WRITE,
): OwnBytes {
  let file: number | undefined;
  try {
    file = openSync(path, READ);
    const found = fstatSync(file);
    if (!isOwnFile(found, mostBytes, closed)) return 'refused';
    const bytes = Buffer.allocUnsafeSlow(found.size);
    let end = 0;
    for (let got = -1; end < bytes.length && got !== 0; end += got)
      got = readSync(file, bytes, end, bytes.length - end, end);
    if (used) touch(file);
    return bytes.subarray(0, end);
  } catch (error) {
    return unreadable(error);
  } finally {
    if (file !== undefined) closeSync(file);
  }
}

function touch(file: number): void {
  try {
    const now = new Date();
    futimesSync(file, now, now);
  } catch {
    // The file system is read-only.
  }
}

/** As {@link readOwnFileSync}, without blocking on the disk. */
export async function readOwnFile(
  path: string,
  mostBytes: number,
  used = false,
): Promise<OwnBytes> {
  try {
    const file = await open(path, READ);
    try {
      const found = await file.stat();
      if (!isOwnFile(found, mostBytes)) return 'refused';
      const bytes = Buffer.allocUnsafeSlow(found.size);
      let end = 0;
      for (let got = -1; end < bytes.length && got !== 0; end += got)
        got = (await file.read(bytes, end, bytes.length - end, end)).bytesRead;
      const now = new Date();
      if (used) await file.utimes(now, now).catch(() => undefined);
      return bytes.subarray(0, end);
    } finally {
      await file.close();
    }
  } catch (error) {
    return unreadable(error);
  }
}

/** The result of examining a folder. */
type Look = 'own' | 'absent' | 'shared';

const looks = new Map<string, Look>();
let isQuiet = false;

/**
 * Suppresses warnings on the library's own threads: the thread that starts them has examined the
 * folder, too.
 */
export function warnElsewhere(): void {
  isQuiet = true;
}

/**
 * Whether a folder belongs to this user alone, or does not exist. A folder of others causes one
 * warning per process and is not examined again: it is neither read from nor written to.
 */
export function lookAtFolderSync(folder: string): Look {
  const known = looks.get(folder);
  if (known !== undefined) return known;
  try {
    return judged(folder, statSync(folder));
  } catch {
    return 'absent';
  }
}

/** Makes the folder where it does not exist. Returns whether it belongs to this user alone. */
export function makeOwnFolderSync(folder: string): boolean {
  makeFolderSync(folder, OWN_FOLDER);
  return lookAtFolderSync(folder) === 'own';
}

function judged(folder: string, found: Stats): Look {
  // A file is in its place: no path below it can be opened.
  if (!found.isDirectory()) return 'absent';
  const why = whyShared(found, OTHERS_WRITE);
  const look = why === undefined ? 'own' : 'shared';
  if (why !== undefined && !isQuiet && !looks.has(folder)) {
    process.emitWarning(
      `${folder} is not used as a cache: ${why}. What is kept there is run as code. Make it ` +
        'yours alone (chown, chmod 700), or name another folder in ASYNC_CUDA_CACHE_DIR.',
      { code: 'ASYNC_CUDA_CACHE_SHARED' },
    );
  }
  looks.set(folder, look);
  return look;
}

const keys = new Map<string, Buffer>();

/**
 * Returns the key of a folder, by which the checksums of its files are made: random bytes in a file
 * that only this user may read. With `make` it is made, with its folder, where there is none.
 * Undefined where there is none, or the folder does not belong to this user alone.
 */
export function folderKey(folder: string, make: boolean): Buffer | undefined {
  const known = keys.get(folder);
  if (known !== undefined) return known;
  if (lookAtFolderSync(folder) === 'shared') return undefined;
  const path = join(folder, KEY_FILE);
  const read = (): Buffer | undefined => {
    const found = readOwnFileSync(path, KEY_BYTES, false, OTHERS_ANY);
    return typeof found !== 'string' && found.length === KEY_BYTES ? found : undefined;
  };
  let key = read();
  if (key === undefined && make) {
    const unfinished = `${path}.${randomBytes(6).toString('hex')}.tmp`;
    try {
      if (!makeOwnFolderSync(folder)) return undefined;
      writeFileSync(unfinished, randomBytes(KEY_BYTES), { mode: 0o600, flag: 'wx' });
      place(unfinished, path, read);
      // Another process may have been first.
      key = read();
    } catch {
      // A folder that cannot be written to keeps nothing.
    } finally {
      removeQuietly(unfinished);
    }
  }
  if (key !== undefined) keys.set(folder, key);
  return key;
}

function removeQuietly(path: string): void {
  try {
    rmSync(path, { force: true });
  } catch {
    // The folder is not a folder, or is read-only.
  }
}

/** Gives the finished file its name, unless a readable file has it already. */
function place(unfinished: string, path: string, read: () => Buffer | undefined): void {
  try {
    // Unlike a rename it replaces nothing: of several processes one is first.
    linkSync(unfinished, path);
  } catch {
    // Another file is there, or the file system has no links.
    if (read() === undefined) renameSync(unfinished, path);
  }
}

/** Drops what was recorded of a folder, which does not exist any more. */
export function forgetFolder(folder: string): void {
  keys.delete(folder);
  looks.delete(folder);
}

/** Returns the key of a folder as it is on disk now; undefined where it is the recorded one. */
export function changedKey(folder: string): Buffer | undefined {
  const known = keys.get(folder);
  keys.delete(folder);
  const key = folderKey(folder, false);
  if (known !== undefined && key?.equals(known) === true) return undefined;
  return key;
}
