/**
 * Many inputs: `npx tsx test/ptx/fuzz/main.ts [--count 1000000] [--from 0] [--device] [--show
 * NUMBER [--write FILE]]`. With `--device` what compiles runs on a CPU device, too.
 *
 * The inputs are numbered; `--show` prints one and the compiler's result. Another thread does the
 * work, so that the number of an input on which the compiler hangs or uses all memory is printed as
 * well. Exit status 1 if any is bad.
 */
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { Worker, isMainThread, parentPort, workerData } from 'node:worker_threads';
import { judge } from './judge.js';
import { Inputs } from './mutations.js';
import { runOnDevice } from './on-device.js';
import { seedModules } from './seeds.js';

const HANGS_MS = 60_000;
const MOST_HEAP_MB = 1024;
const MOST_SHOWN = 25;

interface Job {
  from: number;
  to: number;
  device: boolean;
  progress: SharedArrayBuffer;
}

function work({ from, to, device, progress }: Job): void {
  const inputs = new Inputs(seedModules());
  const counter = new Int32Array(progress);
  let accepted = 0;
  for (let number = from; number < to; number++) {
    Atomics.store(counter, 0, number);
    const text = inputs.at(number);
    const { complaint: said, module } = judge(text);
    if (module) accepted++;
    const complaint = said ?? (device && module ? runOnDevice(text, module, number) : undefined);
    if (complaint !== undefined) parentPort!.postMessage({ number, complaint });
  }
  parentPort!.postMessage({ accepted });
}

async function run(from: number, to: number, device: boolean): Promise<boolean> {
  const seen = new Map<string, number>();
  let bad = 0;
  let accepted = 0;
  const report = (number: number, complaint: string): void => {
    bad++;
    // One example of each kind of problem.
    const kind = complaint.replaceAll(/\d+/g, '#').split('\n').slice(0, 3).join('\n');
    if (!seen.has(kind) && seen.size < MOST_SHOWN)
      console.log(`input ${number}: ${complaint.split('\n').slice(0, 4).join('\n')}\n`);
    seen.set(kind, (seen.get(kind) ?? 0) + 1);
  };
  for (let start = from; start < to;) {
    const progress = new SharedArrayBuffer(4);
    const counter = new Int32Array(progress);
    counter[0] = start;
    // A thread does not inherit the loader of TypeScript.
    const worker = new Worker(
      `import('tsx/esm/api').then(tsx => { tsx.register(); return ` +
        `import(${JSON.stringify(import.meta.url)}); })`,
      {
        eval: true,
        workerData: { from: start, to, device, progress } satisfies Job,
        resourceLimits: { maxOldGenerationSizeMb: MOST_HEAP_MB },
      },
    );
    worker.on(
      'message',
      (message: { number: number; complaint: string } | { accepted: number }) => {
        if ('accepted' in message) accepted += message.accepted;
        else report(message.number, message.complaint);
      },
    );
    start = await new Promise<number>((resolve) => {
      let last = start;
      let hangs = false;
      const watch = setInterval(() => {
        const now = Atomics.load(counter, 0);
        if (now !== last || now === start) {
          last = now;
          return;
        }
        clearInterval(watch);
        hangs = true;
        report(now, 'hangs');
        void worker.terminate().then(() => {
          resolve(now + 1);
        });
      }, HANGS_MS);
      worker.on('error', (error) => {
        clearInterval(watch);
        // A failure before the first input is not caused by an input.
        if (!(error as { code?: string }).code?.startsWith('ERR_WORKER')) throw error;
        report(counter[0]!, `the thread died: ${error.message}`);
        resolve(counter[0]! + 1);
      });
      worker.on('exit', () => {
        clearInterval(watch);
        if (!hangs) resolve(to);
      });
    });
  }
  console.log(
    `${to - from} inputs from ${from}: ${accepted} compile, ${bad} bad of ${seen.size} kinds`,
  );
  return bad === 0;
}

if (isMainThread) {
  const { values } = parseArgs({
    options: {
      count: { type: 'string' },
      from: { type: 'string' },
      show: { type: 'string' },
      write: { type: 'string' },
      device: { type: 'boolean' },
    },
  });
  if (values.show !== undefined) {
    const text = new Inputs(seedModules()).at(Number(values.show));
    if (values.write !== undefined) writeFileSync(values.write, text);
    else console.log(text);
    console.log(judge(text).complaint ?? 'all is well');
  } else {
    const from = Number(values.from ?? 0);
    process.exitCode = (await run(
      from,
      from + Number(values.count ?? 1_000_000),
      values.device === true,
    ))
      ? 0
      : 1;
  }
} else {
  work(workerData as Job);
}
