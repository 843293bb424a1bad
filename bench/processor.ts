/**
 * One processor for all contenders of a row. Where a processor is half a core (any cloud host), a
 * process on the other half makes it up to twice as slow, for tenths of a second up to minutes:
 * contenders on processors of their own then differ by more than the five percent of a bar,
 * whatever the number of rounds. They take turns, so one processor serves all: for each round the
 * one that is fastest just before it.
 */
import { readFile, readdir } from 'node:fs/promises';

import koffi from 'koffi';

/** Our thread that does the timed work. */
export type Caller = 'main' | 'runtime thread';

/** Undefined where this machine has one processor only, or no sched_setaffinity. */
export interface SharedProcessor {
  /** The one that was chosen last. */
  readonly processor: number;
  /** Chooses it anew. */
  choose(): void;
  giveBack(): void;
}

/**
 * Pins our calling thread and the main threads of the peers' processes; they are not expected to
 * start threads later. `work` is what our calling thread does: the runtime thread is the one that
 * it keeps busy. Where the calling thread is the main one the runtime thread, which calls the
 * driver for it, has the second fastest processor: a graph of 1000 kernels is launched in 20 to 40
 * µs, which C does on the fastest. All other threads of this process then have the other
 * processors: the thread that polls for the end of the calling thread's work would take half of
 * that one's processor where Linux puts it there (which it does for hundreds of milliseconds on
 * virtual machines, whose idle processors it does not count as such).
 */
export async function shareProcessor(
  caller: Caller,
  peers: readonly number[],
  work: () => Promise<unknown>,
): Promise<SharedProcessor | undefined> {
  const affinity = openAffinity();
  if (affinity === undefined) return undefined;
  const runtimeThread = await busiestThread(work);
  const ours = caller === 'main' ? process.pid : runtimeThread;
  if (ours === undefined) return undefined;
  const allowed = affinity.get(process.pid);
  if (allowed.length < 2) return undefined;
  const threads = [ours, ...peers];
  const callers =
    caller === 'main' && runtimeThread !== undefined && allowed.length > 2 ? [runtimeThread] : [];
  const aside = (await threadsOfThisProcess()).filter(
    (thread) => thread !== ours && !callers.includes(thread),
  );
  const shared = {
    processor: -1,
    choose() {
      const [first, second] = byPace(allowed, affinity) as [number, number];
      this.processor = first;
      for (const thread of threads) affinity.set(thread, [first]);
      for (const thread of callers) affinity.set(thread, [second]);
      for (const thread of aside)
        affinity.set(
          thread,
          allowed.filter((each) => each !== first && (callers.length === 0 || each !== second)),
        );
    },
    giveBack() {
      for (const thread of [...threads, ...callers, ...aside]) affinity.set(thread, allowed);
    },
  };
  shared.choose();
  return shared;
}

interface Affinity {
  get(thread: number): number[];
  /** A thread that has ended is ignored. */
  set(thread: number, processors: readonly number[]): void;
}

/** A set of 1024 processors, as the kernel's own. */
const SET_BYTES = 128;

function openAffinity(): Affinity | undefined {
  if (process.platform !== 'linux') return undefined;
  let libc: ReturnType<typeof koffi.load>;
  try {
    libc = koffi.load('libc.so.6');
  } catch {
    // The C library is another one.
    return undefined;
  }
  const get = libc.func('int sched_getaffinity(int pid, size_t size, _Out_ uint8_t *mask)') as (
    thread: number,
    size: number,
    mask: Uint8Array,
  ) => number;
  const set = libc.func('int sched_setaffinity(int pid, size_t size, const uint8_t *mask)') as (
    thread: number,
    size: number,
    mask: Uint8Array,
  ) => number;
  return {
    get(thread) {
      const mask = new Uint8Array(SET_BYTES);
      if (get(thread, SET_BYTES, mask) !== 0) return [];
      return Array.from({ length: SET_BYTES * 8 }, (_, at) => at).filter(
        (at) => (mask[at >> 3]! & (1 << (at & 7))) !== 0,
      );
    },
    set(thread, processors) {
      const mask = new Uint8Array(SET_BYTES);
      for (const each of processors) mask[each >> 3]! |= 1 << (each & 7);
      set(thread, SET_BYTES, mask);
    },
  };
}

/** How long this thread tries each processor, ms. */
const TRIAL_MS = 1.5;

/** The processors, the one first on which this thread gets the most done at the moment. */
function byPace(processors: readonly number[], affinity: Affinity): number[] {
  const paces = processors.map((processor): readonly [processor: number, pace: number] => {
    affinity.set(process.pid, [processor]);
    const begun = performance.now();
    let done = 0;
    let now = begun;
    for (; now - begun < TRIAL_MS; now = performance.now()) done += sums(5000);
    return [processor, done / (now - begun)];
  });
  return paces.sort((a, b) => b[1] - a[1]).map(([processor]) => processor);
}

/**
 * Independent sums: another process on the core has the largest effect on a busy one. Returns how
 * many.
 */
function sums(count: number): number {
  let a = 1,
    b = 2,
    c = 3,
    d = 4;
  for (let i = 0; i < count; i++) {
    a = (a + i) | 0;
    b ^= i;
    c = (c - (i << 1)) | 0;
    d ^= i >> 1;
  }
  // The result is used, so that no part is optimised away.
  return (a ^ b ^ c ^ d) === 0.5 ? 0 : count;
}

async function threadsOfThisProcess(): Promise<number[]> {
  return (await readdir('/proc/self/task').catch(() => [])).map(Number);
}

/**
 * The processor time of each thread of this process but the main one, in ticks. Empty where there
 * is no /proc.
 */
async function processorTimes(): Promise<ReadonlyMap<number, number>> {
  const times = new Map<number, number>();
  for (const thread of await threadsOfThisProcess()) {
    const stat = await readFile(`/proc/self/task/${thread}/stat`, 'utf8').catch(() => '');
    // After the name, which may contain any character: utime and stime are the 12th and 13th.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (thread !== process.pid) times.set(thread, Number(fields[11]) + Number(fields[12]));
  }
  return times;
}

async function busiestThread(work: () => Promise<unknown>): Promise<number | undefined> {
  const before = await processorTimes();
  await work();
  const after = await processorTimes();
  let most = 0;
  let found: number | undefined;
  for (const [thread, time] of after) {
    const spent = time - (before.get(thread) ?? 0);
    if (spent > most) [most, found] = [spent, thread];
  }
  return found;
}
