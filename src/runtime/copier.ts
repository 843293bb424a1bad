/**
 * A thread of the copy crew: the code that it runs, and what it shares with the JavaScript thread.
 * It is apart from the crew itself, which starts threads, because this file is part of the script
 * that they run.
 */
import { loadKoffi } from '../native/koffi.js';

export type Memcpy = (target: number, source: number, bytes: number) => unknown;

export const PIECE_BYTES = 1 << 16;
const SPIN_MS = 1;
const SPIN_LOOKS = 1000;

/**
 * Words of the shared control block. `job` contains the next piece to take: the job number in bits
 * 16 to 31, pieces in bits 8 to 15, the index in bits 0 to 7. The thread that increments the index
 * has that piece, and the rest of the block belongs to this job until the piece is done.
 */
export const WORD = { job: 0, done: 16, sleepers: 32, bell: 48, stop: 64 } as const;
/** The index of the doubles after the words: addresses and bytes of the job. */
export const JOB = { target: 40, source: 41, bytes: 42 } as const;
export const CONTROL_BYTES = 512;
/** The longest copy that fits into one job. */
export const MAX_BYTES = 255 * PIECE_BYTES;

/** Takes pieces until none are left. Returns whether there were any. */
export function copyPieces(words: Int32Array, job: Float64Array, memcpy: Memcpy): boolean {
  let any = false;
  for (;;) {
    const word = Atomics.load(words, WORD.job);
    const index = word & 0xff;
    if (index >= ((word >>> 8) & 0xff)) return any;
    if (Atomics.compareExchange(words, WORD.job, word, word + 1) !== word) continue;
    const at = index * PIECE_BYTES;
    memcpy(
      job[JOB.target]! + at,
      job[JOB.source]! + at,
      Math.min(PIECE_BYTES, job[JOB.bytes]! - at),
    );
    Atomics.add(words, WORD.done, 1);
    any = true;
  }
}

export function loadMemcpy(path: string | undefined): Memcpy {
  return loadKoffi(path)
    .load('libc.so.6')
    .func('uintptr_t memcpy(uintptr_t target, uintptr_t source, size_t bytes)');
}

/** Runs a crew thread until it is stopped; `loaded` is called when it has loaded memcpy. */
export function runCopies(
  control: SharedArrayBuffer,
  path: string | undefined,
  loaded: () => void,
): void {
  const words = new Int32Array(control);
  const job = new Float64Array(control);
  const memcpy = loadMemcpy(path);
  loaded();
  let last = performance.now();
  while (Atomics.load(words, WORD.stop) === 0) {
    if (copyPieces(words, job, memcpy)) last = performance.now();
    for (let looks = 0; looks < SPIN_LOOKS && nothingToTake(words); looks++);
    if (performance.now() - last < SPIN_MS) continue;
    const bell = Atomics.load(words, WORD.bell);
    Atomics.add(words, WORD.sleepers, 1);
    // The word is read after the count is increased: a thread that begins a job reads the count
    // after that.
    if (nothingToTake(words) && Atomics.load(words, WORD.stop) === 0)
      Atomics.wait(words, WORD.bell, bell);
    Atomics.sub(words, WORD.sleepers, 1);
    last = performance.now();
  }
}

function nothingToTake(words: Int32Array): boolean {
  const word = Atomics.load(words, WORD.job);
  return (word & 0xff) >= ((word >>> 8) & 0xff);
}
