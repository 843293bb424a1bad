/**
 * The time of one awaited operation on the JavaScript thread, compared with an awaited launch of
 * level 3: building it, calling it (which queues, and polls for the end), and continuing after it;
 * and how many bytes each leaves to the garbage collector. Contenders take turns, so that a slow
 * machine affects all of them.
 *
 * `node --expose-gc --import tsx bench/ops/await-phases.ts [--device NAME] [--seconds N]`. Prints a
 * table: medians in µs of the parts and of the whole (which is timed by itself, without clocks
 * within), and bytes.
 */
import { performance } from 'node:perf_hooks';
import { parseArgs } from 'node:util';

import { collectGarbage } from '../garbage.js';
import { type DeviceName, core, ops } from '../library.js';
import { openDefault } from './policy.js';
import { Scale } from './scale.js';

const { CoreDevice } = core;
/** Awaits of one sample of the whole, and of one turn of a contender. */
const AWAITS = 400;
/** Awaits until the engine has optimised all functions. */
const WARM_UP = 20_000;
/** Fewer than cause a scavenge. */
const ALLOCATING = 2000;

type Thenable = PromiseLike<unknown>;

interface Contender {
  readonly name: string;
  make(): Thenable;
}

interface Parts {
  readonly build: number[];
  readonly call: number[];
  readonly goOn: number[];
  readonly whole: number[];
  bytes: number;
}

const median = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[values.length >> 1] ?? NaN;

async function whole({ make }: Contender, count: number): Promise<number> {
  const start = performance.now();
  for (let k = 0; k < count; k++) await make();
  return ((performance.now() - start) * 1e3) / count;
}

/** One await, with clocks within. */
async function timed({ make }: Contender, { build, call, goOn }: Parts): Promise<void> {
  const start = performance.now();
  const thenable = make();
  const built = performance.now();
  // As `await` does, but `then` is called at once and not from a microtask.
  let called = 0;
  await new Promise((resolve, reject) => {
    void thenable.then(resolve, reject);
    called = performance.now();
  });
  const end = performance.now();
  build.push((built - start) * 1e3);
  call.push((called - built) * 1e3);
  goOn.push((end - called) * 1e3);
}

const { values: given } = parseArgs({
  options: { device: { type: 'string' }, seconds: { type: 'string', default: '6' } },
});
const device = await CoreDevice.open(given.device as DeviceName | undefined);
const scale = await Scale.open(device);
const { stream } = device;

const launch: Contender['make'] = () => scale.launch(stream);
const built = scale.chain(1);

/** Alone on the device's own stream; then with the default policy, whose stream is a second one. */
const SETUPS = [
  {
    name: 'one stream',
    open() {
      ops.setPolicy(device, new ops.SingleStream(stream));
      return {
        close: () => {
          ops.setPolicy(device, undefined);
        },
      };
    },
  },
  { name: 'default policy', open: () => openDefault(device) },
];
const CONTENDERS: readonly Contender[] = [
  { name: 'launch of level 3', make: launch },
  { name: 'op, built anew', make: () => scale.chain(1) },
  { name: 'op, built once', make: () => built },
];

for (const { name, open } of SETUPS) {
  const opened = open();
  const all = CONTENDERS.map((contender) => ({
    contender,
    parts: { build: [], call: [], goOn: [], whole: [], bytes: Infinity } as Parts,
  }));
  await scale.prove(1, () => scale.chain(1));
  for (const { contender } of all) await whole(contender, WARM_UP);
  const until = performance.now() + (Number(given.seconds) * 1e3) / SETUPS.length;
  while (performance.now() < until) {
    for (const { contender, parts } of all) {
      await whole(contender, 50);
      parts.whole.push(await whole(contender, AWAITS));
      for (let k = 0; k < 50; k++) await timed(contender, parts);
    }
  }
  for (const { contender, parts } of all) {
    for (let k = 0; k < 5; k++) {
      collectGarbage();
      const before = process.memoryUsage().heapUsed;
      await whole(contender, ALLOCATING);
      const bytes = (process.memoryUsage().heapUsed - before) / ALLOCATING;
      if (bytes > 0) parts.bytes = Math.min(parts.bytes, bytes);
    }
  }
  console.log(`${device.name}, Node ${process.version}, ${name}`);
  console.table(
    Object.fromEntries(
      all.map(({ contender, parts: { build, call, goOn, whole: each, bytes } }) => [
        contender.name,
        {
          'build µs': Number(median(build).toFixed(3)),
          'call µs': Number(median(call).toFixed(3)),
          'go on µs': Number(median(goOn).toFixed(3)),
          'whole µs': Number(median(each).toFixed(3)),
          'least µs': Number(Math.min(...each).toFixed(3)),
          bytes: Math.round(bytes),
        },
      ]),
    ),
  );
  opened.close();
}
await scale.close();
await device.close();
