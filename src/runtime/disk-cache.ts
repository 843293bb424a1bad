/**
 * The cache on disk of what takes long to make: the PTX of kernels in TypeScript, and their tuning;
 * programs of CUDA C++; engines of TensorRT; and V8's code of the script of the library's own
 * threads, one for each version of V8. The driver caches machine code itself.
 *
 * It is made for many processes at a time: a file appears whole (it is written under another name,
 * then renamed), is recognised by a checksum, and may be removed at any moment. Whatever the disk
 * refuses counts as absent; no function here throws.
 *
 * Cached data is run as code. So the folder and its files have to belong to this user alone
 * (`own-files.ts`), and the checksum is keyed: HMAC-SHA-256, over the entry's name and its bytes,
 * by a key in the folder that only this user can read.
 *
 * `get` and `set` block on the disk, so they are not for the JavaScript thread, which uses `read`
 * and `write`.
 */
import { createHmac, hash, randomBytes, timingSafeEqual } from 'node:crypto';
import {
  closeSync,
  existsSync,
  lstatSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  writevSync,
} from 'node:fs';
import { lstat, open, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';

import { cacheFolder } from './cache-folder.js';
import {
  changedKey,
  folderKey,
  forgetFolder,
  lookAtFolderSync,
  readOwnFile,
  readOwnFileSync,
} from './own-files.js';
import { VERSION } from './version.js';

/** The limit of all files together; the least recently used are removed first. */
const MAX_BYTES = 2 ** 30;
/** The largest number of files, since all of them are examined now and then. */
const MAX_ENTRIES = 10_000;
/**
 * The share of the limits that is kept where files had to be removed, so that not every new file
 * causes a removal.
 */
const KEPT_SHARE = 0.9;
/**
 * The share of the free room, found by the last examination of all files, that this process may
 * fill before it examines them again: other processes fill it, too.
 */
const UNSEEN_SHARE = 1 / 16;
/** A file that was begun this long ago will not be finished. */
const ABANDONED_MS = 3_600_000;

/** Bytes that are added to a checksum at once. */
const PART = 2 ** 30;

const MAGIC = Buffer.from('async-cuda disk cache 2\n');
const CHECKSUM_BYTES = 32;
const HEAD_BYTES = MAGIC.length + CHECKSUM_BYTES;

const ENTRY = /^[0-9a-f]{64}\.(code|kernel|tuning|program|plan)$/;
const UNFINISHED = /^(?:[0-9a-f]{64}\.(?:code|kernel|tuning|program|plan)|\.key)\.[0-9a-f]+\.tmp$/;

/** A file of the cache. */
interface KeptFile {
  name: string;
  bytes: number;
  /** The time of its last use: milliseconds. */
  used: number;
}

export interface CacheContents {
  folder: string;
  entries: number;
  bytes: number;
}

/**
 * The entry that contains V8's code of a script. `engine` is everything that it depends on besides
 * the script.
 */
export function codeEntry(scriptDigest: string, engine: readonly unknown[]): string {
  return `${hash('sha256', JSON.stringify([VERSION, scriptDigest, engine]))}.code`;
}

/**
 * The entry of a kernel in TypeScript: its PTX, or its tuning. `key` is everything that it depends
 * on.
 */
export function kernelEntry(kind: 'kernel' | 'tuning', key: readonly unknown[]): string {
  return `${hash('sha256', JSON.stringify([VERSION, ...key]))}.${kind}`;
}

/** The entry of machine code that NVIDIA's assembler made. `key` is everything it depends on. */
export function cubinEntry(key: readonly unknown[]): string {
  return kernelEntry('kernel', ['cubin', ...key]);
}

/** The entry of a program in CUDA C++. `key` is everything that it depends on. */
export function programEntry(key: readonly unknown[]): string {
  return `${hash('sha256', JSON.stringify([VERSION, ...key]))}.program`;
}

/**
 * The entry of an engine of TensorRT. `digest`: SHA-256, in hexadecimal, of everything that it
 * depends on.
 */
export function planEntry(digest: string): string {
  return `${digest}.plan`;
}

/** Bytes and files. */
interface Room {
  bytes: number;
  entries: number;
}

/**
 * By folder and size: what may be written before all files are examined again. Examining them with
 * each new file took half a second in a folder of thirty thousand.
 */
const rooms = new Map<string, Room>();

export class DiskCache {
  readonly folder: string;
  private readonly maxBytes: number;

  constructor(folder: string, maxBytes = MAX_BYTES) {
    this.folder = folder;
    this.maxBytes = maxBytes;
  }

  /** Warns, once, where the folder is not used since it does not belong to this user alone. */
  look(): void {
    lookAtFolderSync(this.folder);
  }

  /** Returns what was stored as `entry`, if it is there and whole. */
  get(entry: string): Buffer | undefined {
    if (folderKey(this.folder, false) === undefined) return undefined;
    const file = readOwnFileSync(join(this.folder, entry), this.maxBytes, true);
    const bytes = typeof file === 'string' ? undefined : this.contentsOf(entry, file);
    // The file is not whole, or not a file of this user.
    if (bytes === undefined && file !== 'absent') this.delete(entry);
    return bytes;
  }

  /**
   * As {@link get}, without blocking on the disk, except for the folder's key when that is first
   * needed.
   */
  async read(entry: string): Promise<Buffer | undefined> {
    if (folderKey(this.folder, false) === undefined) return undefined;
    const path = join(this.folder, entry);
    const file = await readOwnFile(path, this.maxBytes, true);
    const bytes = typeof file === 'string' ? undefined : this.contentsOf(entry, file);
    // The removal is not waited for.
    if (bytes === undefined && file !== 'absent') rm(path, { force: true }).catch(ignore);
    return bytes;
  }

  /**
   * Stores an entry. The entries that have not been used for longest are removed where there are
   * too many.
   */
  set(entry: string, bytes: Uint8Array): void {
    if (bytes.length + HEAD_BYTES > this.maxBytes) return;
    const path = join(this.folder, entry);
    const unfinished = `${path}.${randomBytes(6).toString('hex')}.tmp`;
    const writeOnce = (): boolean => {
      const key = folderKey(this.folder, true);
      return (
        key !== undefined &&
        attempt(() => {
          writeSync(unfinished, [headOf(key, entry, bytes), bytes]);
          renameSync(unfinished, path);
        })
      );
    };
    // The folder may have been removed since it was examined: it is made again.
    const written = writeOnce() || (this.hasGone() && writeOnce());
    if (!written) attempt(() => rmSync(unfinished, { force: true }));
    else if (!this.takeRoom(bytes.length + HEAD_BYTES)) this.evict();
  }

  /**
   * As {@link set}, without blocking on the disk, except for the folder's key when that is first
   * needed.
   */
  async write(entry: string, bytes: Uint8Array): Promise<void> {
    if (bytes.length + HEAD_BYTES > this.maxBytes) return;
    this.hasGone();
    const key = folderKey(this.folder, true);
    if (key === undefined) return;
    const path = join(this.folder, entry);
    const unfinished = `${path}.${randomBytes(6).toString('hex')}.tmp`;
    try {
      const file = await open(unfinished, 'wx', 0o600);
      try {
        await file.appendFile(headOf(key, entry, bytes));
        await file.appendFile(bytes);
      } finally {
        await file.close();
      }
      await rename(unfinished, path);
      if (this.takeRoom(bytes.length + HEAD_BYTES)) return;
      // One examination runs at a time: files that are written meanwhile are seen by the next.
      Object.assign(this.room, { bytes: Infinity, entries: Infinity });
      const names = (await readdir(this.folder)).filter(isOwn);
      const files = await Promise.all(
        names.map(async (name): Promise<KeptFile[]> => {
          // Another process may have removed it meanwhile.
          const found = await lstat(join(this.folder, name)).catch(ignore);
          return found === undefined ? [] : [{ name, bytes: found.size, used: found.mtimeMs }];
        }),
      );
      await Promise.all(
        this.surplus(files.flat()).map((name) => rm(join(this.folder, name), { force: true })),
      );
    } catch {
      Object.assign(this.room, { bytes: 0, entries: 0 });
      await rm(unfinished, { force: true }).catch(ignore);
    }
  }

  delete(entry: string): void {
    attempt(() => rmSync(join(this.folder, entry), { force: true }));
  }

  /** Returns how much is stored. */
  contents(): CacheContents {
    const files = this.files().filter(({ name }) => ENTRY.test(name));
    return {
      folder: this.folder,
      entries: files.length,
      bytes: files.reduce((sum, { bytes }) => sum + bytes, 0),
    };
  }

  /** Removes all entries, and no other file of the folder. Returns how much was removed. */
  clear(): CacheContents {
    const before = this.contents();
    for (const { name } of this.files())
      attempt(() => rmSync(join(this.folder, name), { force: true }));
    const after = this.contents();
    return {
      folder: this.folder,
      entries: before.entries - after.entries,
      bytes: before.bytes - after.bytes,
    };
  }

  /**
   * Returns the contents of a file; undefined where it is not whole, or was written with another
   * key.
   */
  private contentsOf(entry: string, file: Buffer): Buffer | undefined {
    const bytes = file.subarray(HEAD_BYTES);
    if (bytes.length === 0 || !file.subarray(0, MAGIC.length).equals(MAGIC)) return undefined;
    const stored = file.subarray(MAGIC.length, HEAD_BYTES);
    const isBy = (key: Buffer | undefined): boolean =>
      key !== undefined && timingSafeEqual(checksum(key, entry, bytes), stored);
    // The key may have been replaced since this process read it.
    return isBy(folderKey(this.folder, false)) || isBy(changedKey(this.folder)) ? bytes : undefined;
  }

  /** Whether the folder does not exist any more: it is then examined again. */
  private hasGone(): boolean {
    if (existsSync(this.folder)) return false;
    forgetFolder(this.folder);
    return true;
  }

  private get room(): Room {
    const key = `${this.maxBytes} ${this.folder}`;
    const found = rooms.get(key) ?? { bytes: 0, entries: 0 };
    rooms.set(key, found);
    return found;
  }

  /** Counts a file of this size, which was written now. Returns whether it certainly fits. */
  private takeRoom(bytes: number): boolean {
    const { room } = this;
    room.bytes -= bytes;
    room.entries--;
    return room.bytes >= 0 && room.entries >= 0;
  }

  private evict(): void {
    for (const name of this.surplus(this.files()))
      attempt(() => rmSync(join(this.folder, name), { force: true }));
  }

  /**
   * Names of what is to go: the least recently used of what is too much, and what was begun and
   * left.
   */
  private surplus(files: readonly KeptFile[]): string[] {
    const entries = files.filter(({ name }) => ENTRY.test(name)).sort((a, b) => a.used - b.used);
    let bytes = entries.reduce((sum, entry) => sum + entry.bytes, 0);
    const abandoned = Date.now() - ABANDONED_MS;
    const going = files
      .filter(({ name, used }) => UNFINISHED.test(name) && used < abandoned)
      .map(({ name }) => name);
    let count = entries.length;
    if (bytes > this.maxBytes || count > MAX_ENTRIES) {
      for (const entry of entries) {
        if (bytes <= this.maxBytes * KEPT_SHARE && count <= MAX_ENTRIES * KEPT_SHARE) break;
        going.push(entry.name);
        bytes -= entry.bytes;
        count--;
      }
    }
    const { room } = this;
    room.bytes = (this.maxBytes - bytes) * UNSEEN_SHARE;
    room.entries = Math.floor((MAX_ENTRIES - count) * UNSEEN_SHARE);
    return going;
  }

  /** The files of the cache. */
  private files(): KeptFile[] {
    let names: string[] = [];
    attempt(() => {
      names = readdirSync(this.folder);
    });
    return names.filter(isOwn).flatMap((name) => {
      try {
        const { size, mtimeMs } = lstatSync(join(this.folder, name));
        return [{ name, bytes: size, used: mtimeMs }];
      } catch {
        // Another process has removed it meanwhile.
        return [];
      }
    });
  }
}

/** Returns this process's cache; undefined where it is switched off. */
export function openDiskCache(): DiskCache | undefined {
  const folder = cacheFolder();
  return folder === undefined ? undefined : new DiskCache(folder);
}

function isOwn(name: string): boolean {
  return ENTRY.test(name) || UNFINISHED.test(name);
}

/** Writes a new file. @throws the error of the disk */
function writeSync(path: string, parts: readonly Uint8Array[]): void {
  const file = openSync(path, 'wx', 0o600);
  try {
    for (const part of parts)
      for (let at = 0; at < part.length;) at += writevSync(file, [part.subarray(at)]);
  } finally {
    closeSync(file);
  }
}

function headOf(key: Buffer, entry: string, bytes: Uint8Array): Buffer {
  return Buffer.concat([MAGIC, checksum(key, entry, bytes)]);
}

function checksum(key: Buffer, entry: string, bytes: Uint8Array): Buffer {
  const hmac = createHmac('sha256', key).update(entry).update('\0');
  // OpenSSL accepts no more than 2^31 - 1 bytes at once.
  for (let at = 0; at < bytes.length; at += PART) hmac.update(bytes.subarray(at, at + PART));
  return hmac.digest();
}

/** Returns whether `act` succeeded. */
function attempt(act: () => void): boolean {
  try {
    act();
    return true;
  } catch {
    return false;
  }
}

function ignore(): undefined {
  return undefined;
}
