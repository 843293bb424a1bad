/**
 * Copies of host memory by several cores. One core copies data that is not in its cache at 9 to 14
 * GB/s on the host of an H200, four at 35 to 50 (measured); the link to the device takes 55.
 *
 * The JavaScript thread divides a copy into pieces, copies pieces itself, and returns when all are
 * done. So no thread accesses the memory of a user's array while JavaScript runs: the array cannot
 * be detached, resized or collected meanwhile. The crew's threads look for pieces without sleeping
 * for a millisecond after the last copy, and sleep after that.
 */
import { availableParallelism } from 'node:os';
import { setImmediate } from 'node:timers';

import { koffiPath, loadKoffi } from '../native/koffi.js';
import {
  CONTROL_BYTES,
  JOB,
  MAX_BYTES,
  PIECE_BYTES,
  WORD,
  copyPieces,
  loadMemcpy,
} from './copier.js';
import type { Memcpy } from './copier.js';
import { ThreadWorker } from './workers.js';

const HELPERS = 3;
/** A shorter copy is over before a crew thread has seen it. */
const MIN_BYTES = 2 * PIECE_BYTES;

let crew: CopyCrew | undefined;

export class CopyCrew {
  private readonly path: string | undefined;
  private readonly count: number;
  private readonly memcpy: Memcpy;
  private readonly address: (memory: Uint8Array) => bigint;
  private readonly control = new SharedArrayBuffer(CONTROL_BYTES);
  private readonly words = new Int32Array(this.control);
  private readonly job = new Float64Array(this.control);
  private number = 0;
  private readonly helpers: ThreadWorker[] = [];
  private started = false;
  private users = 0;

  private constructor(path: string | undefined, helpers: number) {
    this.count = helpers;
    const koffi = loadKoffi(path);
    this.path = path;
    this.address = (memory) => koffi.address(memory);
    this.memcpy = loadMemcpy(path);
  }

  /** Returns undefined where there are too few cores (`cores` in all), or no libc is available. */
  static open(path: string | undefined, cores = availableParallelism()): CopyCrew | undefined {
    if (cores < 4) return undefined;
    try {
      return new CopyCrew(path ?? koffiPath(), Math.min(HELPERS, cores - 2));
    } catch {
      return undefined;
    }
  }

  /**
   * Returns the crew of this JavaScript thread, which all of its devices share. Each device calls
   * {@link release} at its end.
   */
  static share(path: string | undefined): CopyCrew | undefined {
    crew ??= CopyCrew.open(path);
    if (crew !== undefined) crew.users++;
    return crew;
  }

  /** The last device to release the crew ends it. */
  async release(): Promise<void> {
    if (--this.users > 0) return;
    if (crew === this) crew = undefined;
    await this.close();
  }

  /**
   * Starts the threads if a copy of this size is worth it. They join in when they have started,
   * which takes tens of milliseconds. Creating one takes the JavaScript thread half a millisecond,
   * so each is created in a turn of its own.
   */
  start(bytes: number): void {
    if (this.started || bytes < MIN_BYTES) return;
    this.started = true;
    this.startNext();
  }

  private startNext(): void {
    if (!this.started || this.helpers.length === this.count) return;
    this.helpers.push(
      new ThreadWorker(
        {
          role: 'copier',
          config: { provider: 'libcuda', ordinal: 0, koffiPath: this.path },
          copying: this.control,
        },
        () => undefined,
        // Without it the other threads, or the JavaScript thread alone, make the copies.
        () => undefined,
      ),
    );
    setImmediate(() => this.startNext()).unref();
  }

  /** Copies from an address into an array's memory. */
  copyOut(target: Uint8Array, source: number): void {
    this.copy(Number(this.address(target)), source, target.length);
  }

  /** Copies an array's memory to an address. */
  copyIn(target: number, source: Uint8Array): void {
    this.copy(target, Number(this.address(source)), source.length);
  }

  private copy(target: number, source: number, bytes: number): void {
    for (let at = 0; at < bytes; at += MAX_BYTES)
      this.copyJob(target + at, source + at, Math.min(MAX_BYTES, bytes - at));
  }

  private copyJob(target: number, source: number, bytes: number): void {
    if (bytes < MIN_BYTES || this.helpers.length === 0) {
      this.memcpy(target, source, bytes);
      return;
    }
    const { words, job } = this;
    const pieces = Math.ceil(bytes / PIECE_BYTES);
    job[JOB.target] = target;
    job[JOB.source] = source;
    job[JOB.bytes] = bytes;
    this.number = (this.number + 1) & 0xffff;
    Atomics.store(words, WORD.done, 0);
    Atomics.store(words, WORD.job, (this.number << 16) | (pieces << 8));
    if (Atomics.load(words, WORD.sleepers) !== 0) {
      Atomics.add(words, WORD.bell, 1);
      Atomics.notify(words, WORD.bell);
    }
    copyPieces(words, job, this.memcpy);
    // The threads that took a piece are copying it: some ten microseconds.
    while (Atomics.load(words, WORD.done) < pieces);
  }

  async close(): Promise<void> {
    const { helpers, words } = this;
    this.started = false;
    Atomics.store(words, WORD.stop, 1);
    Atomics.add(words, WORD.bell, 1);
    Atomics.notify(words, WORD.bell);
    await Promise.all(helpers.splice(0).map(async (helper) => helper.end()));
  }
}
