/**
 * One processor for all contenders of a row. Where a processor is half a core (any cloud host), whoever runs on the other
 * half makes it up to a seventh slower, for seconds: contenders on processors of their own then differ by more than the
 * five percent that a bar is about, and no number of rounds mends that. They take turns, so one processor serves all.
 */
import { execFile } from 'node:child_process';
import { readFile, readdir } from 'node:fs/promises';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Which of our threads does what is timed. */
export type Caller = 'main' | 'runtime thread';

/** `giveBack` undoes it. Undefined where this machine has no `taskset` or one processor only. */
export interface SharedProcessor {
  readonly processor: number;
  giveBack(): Promise<void>;
}

/**
 * Pins our calling thread and the main threads of the peers' processes; threads that they start later are not to be expected.
 * `work` is what our calling thread does: the runtime thread is the one that it keeps busy. The main thread then has the other
 * processors: looking for the end of what the runtime thread does, it would take half of that one's processor where Linux puts it
 * there (which it does for hundreds of milliseconds on virtual machines, whose idle processors it does not count as such).
 */
export async function shareProcessor(caller: Caller, peers: readonly number[], work: () => Promise<unknown>): Promise<SharedProcessor | undefined> {
  const ours = caller === 'main' ? process.pid : await busiestThread(work);
  if (ours === undefined) return undefined;
  const aside = caller === 'main' ? [] : [process.pid];
  const threads = [ours, ...peers, ...aside];
  const allowed = await Promise.all(threads.map(processorsOf)).catch(() => []);
  const processor = last(allowed[0] ?? '');
  if (processor === undefined) return undefined;
  const pin = async (list: (at: number) => string): Promise<boolean> => {
    const done = await Promise.allSettled(threads.map((thread, at) => run('taskset', ['-p', '-c', list(at), String(thread)])));
    return done.every(({ status }) => status === 'fulfilled');
  };
  const giveBack = async (): Promise<void> => void (await pin((at) => allowed[at]!));
  if (await pin((at) => aside.includes(threads[at]!) ? without(allowed[at]!, processor) : String(processor))) return { processor, giveBack };
  // All of them, or none.
  await giveBack();
  return undefined;
}

/** As `taskset` prints and reads it: `0-3,8`. */
async function processorsOf(thread: number): Promise<string> {
  const { stdout } = await run('taskset', ['-p', '-c', String(thread)]);
  return /: *([\d,-]+)\s*$/.exec(stdout)![1]!;
}

/** The last of several: interrupts tend to the first. */
function last(list: string): number | undefined {
  return /[,-]/.test(list) ? Number(/\d+$/.exec(list)![0]) : undefined;
}

/** A list of several, without one of them. */
function without(list: string, processor: number): string {
  const all = list.split(',').flatMap((range) => {
    const [from, to = from] = range.split('-').map(Number) as [number, number?];
    return Array.from({ length: to - from + 1 }, (_, at) => from + at);
  });
  return all.filter((each) => each !== processor).join(',');
}

/** What each thread of this process but the main one has had of processors, in ticks. Empty where there is no /proc. */
async function processorTimes(): Promise<ReadonlyMap<number, number>> {
  const times = new Map<number, number>();
  for (const thread of await readdir('/proc/self/task').catch(() => [])) {
    const stat = await readFile(`/proc/self/task/${thread}/stat`, 'utf8').catch(() => '');
    // Behind the name, which may hold anything: utime and stime are the 12th and 13th.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (Number(thread) !== process.pid) times.set(Number(thread), Number(fields[11]) + Number(fields[12]));
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
