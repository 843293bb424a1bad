/**
 * Threads of the crew kept off the processor of the thread that wakes them. Linux puts a thread that is woken on its waker's processor
 * where no other seems idle at that moment (the JS thread is about to go to sleep behind a launch), and leaves it there: it moves nothing
 * to a processor that is idle for less than half a millisecond at a time. A grid of half a millisecond by two threads then takes longer
 * than by one (1024 rows' norm on two processors: 0.5 to 0.85 ms, and 0.3 to 0.45 like this).
 */
import { loadKoffi, koffiPath } from '../../native/koffi.js';

/** Of 1024 processors, as the kernel's own set. */
const SET_BYTES = 128;

/** To be called before the threads are woken, by their Linux numbers; 0 is none. */
export type KeepApart = (threads: Int32Array) => void;

interface Calls {
  /** sched_getcpu */
  processor(): number;
  /** sched_setaffinity */
  set(thread: number, bytes: number, processors: Uint8Array): number;
}

/** A wish: where there are no such calls, or this process may use one processor only, all stays as it is. */
export function keepApart(path: string | undefined, open = openCalls): KeepApart {
  let calls: Calls | undefined | false;
  let allowed: Uint8Array | undefined;
  let kept = -1;
  let threadsKept = 0;
  return (threads) => {
    if (calls === undefined) {
      const opened = open(path);
      calls = opened?.calls ?? false;
      allowed = opened?.allowed;
    }
    if (calls === false) return;
    const processor = calls.processor();
    if (processor < 0 || (processor === kept && threads.length === threadsKept)) return;
    const others = allowed!.slice();
    others[processor >> 3]! &= ~(1 << (processor & 7));
    // All that there are is the one, or it was taken from this process.
    if (others.every((bits) => bits === 0)) return;
    kept = processor;
    threadsKept = threads.length;
    for (const thread of threads) if (thread !== 0) calls.set(thread, SET_BYTES, others);
  };
}

function openCalls(path: string | undefined): { calls: Calls; allowed: Uint8Array } | undefined {
  if (process.platform !== 'linux') return undefined;
  try {
    const libc = loadKoffi(path ?? koffiPath()).load('libc.so.6');
    const get = libc.func('int sched_getaffinity(int pid, size_t size, _Out_ uint8_t* mask)') as (thread: number, bytes: number, mask: Uint8Array) => number;
    const allowed = new Uint8Array(SET_BYTES);
    if (get(0, SET_BYTES, allowed) !== 0) return undefined;
    const processor = libc.func('int sched_getcpu()') as () => number;
    const set = libc.func('int sched_setaffinity(int pid, size_t size, const uint8_t* mask)') as (thread: number, bytes: number, mask: Uint8Array) => number;
    return { calls: { processor, set }, allowed };
  } catch {
    return undefined;
  }
}
