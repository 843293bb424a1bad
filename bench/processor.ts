/**
 * One processor for all contenders of a row. Where a processor is half a core (any cloud host), whoever runs on the other
 * half makes it up to a seventh slower, for seconds: contenders on processors of their own then differ by more than the
 * five percent that a bar is about, and no number of rounds mends that. They take turns, so one processor serves all.
 */
import { execFile } from 'node:child_process';
import { readFile, readdir } from 'node:fs/promises';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Which of our threads calls the driver. */
export type Caller = 'main' | 'runtime thread';

/** What Linux keeps of the name that the library gives its thread, as far as Node passes it on (20 does not). */
const RUNTIME_THREAD = 'async-cuda runt';

/** `give back` undoes it. Undefined where this machine has no `taskset`, no thread of that name, or one processor only. */
export interface SharedProcessor {
  readonly processor: number;
  giveBack(): Promise<void>;
}

/** Pins our calling thread and the main threads of the peers' processes; threads that they start later are not to be expected. */
export async function shareProcessor(caller: Caller, peers: readonly number[]): Promise<SharedProcessor | undefined> {
  try {
    const ours = caller === 'main' ? process.pid : await runtimeThread();
    if (ours === undefined) return undefined;
    const threads = [ours, ...peers];
    const allowed = await Promise.all(threads.map(processorsOf));
    const processor = last(allowed[0]!);
    if (processor === undefined) return undefined;
    const pin = (list: (thread: number) => string): Promise<unknown> =>
      Promise.all(threads.map((_, at) => run('taskset', ['-p', '-c', list(at), String(threads[at])])));
    await pin(() => String(processor));
    return { processor, giveBack: async () => void (await pin((at) => allowed[at]!)) };
  } catch {
    return undefined;
  }
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

async function runtimeThread(): Promise<number | undefined> {
  for (const thread of await readdir('/proc/self/task')) {
    const name = await readFile(`/proc/self/task/${thread}/comm`, 'utf8').catch(() => '');
    if (name.trim() === RUNTIME_THREAD) return Number(thread);
  }
  return undefined;
}
