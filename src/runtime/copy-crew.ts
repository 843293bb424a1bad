/**
 * Copies of host memory by several cores. One core copies what is not in its cache at 9 to 14 GB/s on the host of an
 * H200, four at 35 to 50 (measured); the link to the device takes 55.
 *
 * The JS thread cuts a copy into pieces, copies pieces itself, and returns when all are done. So nobody touches the
 * memory of a user's array while JavaScript runs: it cannot be detached, resized or collected meanwhile. The helpers are
 * threads of their own that look for pieces without sleeping for a millisecond after the last copy, and sleep after that.
 */
import { availableParallelism } from 'node:os';

import { koffiPath, loadKoffi } from '../driver/libcuda/koffi.js';
import { ThreadWorker } from './workers.js';

type Memcpy = (target: number, source: number, bytes: number) => unknown;

const PIECE_BYTES = 1 << 17;
const HELPERS = 3;
/** Below this a copy is over before a helper has seen it. */
const MIN_BYTES = 2 * PIECE_BYTES;
const SPIN_MS = 1;
const SPIN_LOOKS = 1000;

/**
 * Words of the shared control block. `job` names the piece to be taken next: job number in bits 16 to 31, pieces in bits
 * 8 to 15, index in bits 0 to 7. Whoever moves it from one index to the next has that piece, and the rest of the block
 * belongs to this job until the piece is done.
 */
const WORD = { job: 0, done: 16, sleepers: 32, bell: 48, stop: 64 } as const;
/** Doubles behind the words: addresses and bytes of the job. */
const JOB = { target: 40, source: 41, bytes: 42 } as const;
const CONTROL_BYTES = 512;
/** The longest copy that one job can be. */
const MAX_BYTES = 255 * PIECE_BYTES;

/** Takes pieces until none are left. Returns whether there were any. */
function copyPieces(words: Int32Array, job: Float64Array, memcpy: Memcpy): boolean {
  let any = false;
  for (;;) {
    const word = Atomics.load(words, WORD.job);
    const index = word & 0xff;
    if (index >= ((word >>> 8) & 0xff)) return any;
    if (Atomics.compareExchange(words, WORD.job, word, word + 1) !== word) continue;
    const at = index * PIECE_BYTES;
    memcpy(job[JOB.target]! + at, job[JOB.source]! + at, Math.min(PIECE_BYTES, job[JOB.bytes]! - at));
    Atomics.add(words, WORD.done, 1);
    any = true;
  }
}

function loadMemcpy(path: string | undefined): Memcpy {
  return loadKoffi(path).load('libc.so.6').func('uintptr_t memcpy(uintptr_t target, uintptr_t source, size_t bytes)');
}

/** What a helper's thread does until it is told to stop. */
export function helpCopying(control: SharedArrayBuffer, path: string | undefined): void {
  const words = new Int32Array(control);
  const job = new Float64Array(control);
  const memcpy = loadMemcpy(path);
  let last = performance.now();
  while (Atomics.load(words, WORD.stop) === 0) {
    if (copyPieces(words, job, memcpy)) last = performance.now();
    for (let looks = 0; looks < SPIN_LOOKS && nothingToTake(words); looks++);
    if (performance.now() - last < SPIN_MS) continue;
    const bell = Atomics.load(words, WORD.bell);
    Atomics.add(words, WORD.sleepers, 1);
    // Looked at after the count: whoever begins a job looks at the count after that.
    if (nothingToTake(words) && Atomics.load(words, WORD.stop) === 0) Atomics.wait(words, WORD.bell, bell);
    Atomics.sub(words, WORD.sleepers, 1);
    last = performance.now();
  }
}

function nothingToTake(words: Int32Array): boolean {
  const word = Atomics.load(words, WORD.job);
  return (word & 0xff) >= ((word >>> 8) & 0xff);
}

export class CopyCrew {
  private readonly path: string | undefined;
  private readonly count: number;
  private readonly memcpy: Memcpy;
  private readonly address: (memory: Uint8Array) => bigint;
  private readonly control = new SharedArrayBuffer(CONTROL_BYTES);
  private readonly words = new Int32Array(this.control);
  private readonly job = new Float64Array(this.control);
  private number = 0;
  private helpers: ThreadWorker[] | undefined;

  private constructor(path: string | undefined, helpers: number) {
    this.count = helpers;
    const koffi = loadKoffi(path);
    this.path = path;
    this.address = (memory) => koffi.address(memory);
    this.memcpy = loadMemcpy(path);
  }

  /** Undefined where there are too few cores for it (`cores` in all), or no libc to ask. */
  static open(path: string | undefined, cores = availableParallelism()): CopyCrew | undefined {
    if (cores < 4) return undefined;
    try {
      return new CopyCrew(path ?? koffiPath(), Math.min(HELPERS, cores - 2));
    } catch {
      return undefined;
    }
  }

  /** Starts the helpers. They join in when they are there; it takes tens of milliseconds. */
  start(): void {
    if (this.helpers !== undefined) return;
    this.helpers = [];
    for (let i = 0; i < this.count; i++) {
      this.helpers.push(new ThreadWorker(
        { role: 'copier', config: { provider: 'libcuda', ordinal: 0, koffiPath: this.path }, copying: this.control },
        () => undefined,
        // Without it the others, or the JS thread alone, do the work.
        () => undefined,
      ));
    }
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
    for (let at = 0; at < bytes; at += MAX_BYTES) this.copyJob(target + at, source + at, Math.min(MAX_BYTES, bytes - at));
  }

  private copyJob(target: number, source: number, bytes: number): void {
    if (bytes < MIN_BYTES || this.helpers === undefined) {
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
    // Whoever took a piece is at it: some ten microseconds.
    while (Atomics.load(words, WORD.done) < pieces);
  }

  async close(): Promise<void> {
    const { helpers, words } = this;
    if (helpers === undefined) return;
    this.helpers = undefined;
    Atomics.store(words, WORD.stop, 1);
    Atomics.add(words, WORD.bell, 1);
    Atomics.notify(words, WORD.bell);
    await Promise.all(helpers.map(async (helper) => helper.terminate()));
  }
}
