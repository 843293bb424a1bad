/**
 * Keeps the crew's threads off the processor of the thread that wakes them. Linux puts a woken
 * thread on its waker's processor where no other seems idle at that moment (the JavaScript thread
 * is about to sleep after a launch), and leaves it there: Linux moves no thread to a processor that
 * is idle for less than half a millisecond at a time. A grid of half a millisecond on two threads
 * then takes longer than on one (1024 rows' norm on two processors: 0.5 to 0.85 ms, and 0.3 to 0.45
 * with this).
 */
import { loadKoffi, koffiPath } from '../../native/koffi.js';

/** The bytes of the kernel's own set of 1024 processors. */
const SET_BYTES = 128;

/**
 * Is called before the threads are woken, with their Linux numbers, of which 0 means none. Another
 * set of threads is passed in another array.
 */
export type KeepApart = (threads: Int32Array) => void;

/** The system calls that this uses, and the processors that this process may use. */
interface Machine {
  readonly allowed: Uint8Array;
  /** The call sched_getcpu. */
  processor(): number;
  /** The call sched_setaffinity. */
  set(thread: number, bytes: number, processors: Uint8Array): number;
}

/**
 * Returns the function. It has no effect where there are no such calls, or this process may use one
 * processor only.
 */
export function keepApart(path: string | undefined, open = openMachine): KeepApart {
  let machine: Machine | undefined;
  let isOpen = false;
  let kept = -1;
  let threadsKept: Int32Array | undefined;
  return (threads) => {
    if (!isOpen) machine = open(path);
    isOpen = true;
    if (machine === undefined) return;
    const processor = machine.processor();
    if (processor < 0 || (processor === kept && threads === threadsKept)) return;
    const others = machine.allowed.slice();
    others[processor >> 3]! &= ~(1 << (processor & 7));
    // This processor is the only one, or the others were removed from this process.
    if (others.every((bits) => bits === 0)) return;
    kept = processor;
    threadsKept = threads;
    for (const thread of threads) if (thread !== 0) machine.set(thread, SET_BYTES, others);
  };
}

function openMachine(path: string | undefined): Machine | undefined {
  if (process.platform !== 'linux') return undefined;
  try {
    const libc = loadKoffi(path ?? koffiPath()).load('libc.so.6');
    const get = libc.func('int sched_getaffinity(int pid, size_t size, _Out_ uint8_t* mask)') as (
      thread: number,
      bytes: number,
      mask: Uint8Array,
    ) => number;
    const allowed = new Uint8Array(SET_BYTES);
    if (get(0, SET_BYTES, allowed) !== 0) return undefined;
    const processor = libc.func('int sched_getcpu()') as () => number;
    const set = libc.func('int sched_setaffinity(int pid, size_t size, const uint8_t* mask)') as (
      thread: number,
      bytes: number,
      mask: Uint8Array,
    ) => number;
    return { allowed, processor, set };
  } catch {
    return undefined;
  }
}
