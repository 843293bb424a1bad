/** `npm run example:server`: the server on the best device there is, until SIGTERM or SIGINT. */
import { readFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { Device } from 'async-cuda';
import { RoundRobin } from 'async-cuda/ops';

import { TASKS, sizesUpTo } from '../../demo/inference/tasks.js';
import type { TaskName } from '../../demo/inference/tasks.js';
import { decodePhotograph } from './decoding.js';
import { PhotographFinder } from './finder.js';
import type { PhotographFinderOptions } from './finder.js';
import { HttpThreads } from './http-threads.js';

/** One of each task on which something is found. */
const PHOTOGRAPHS = {
  text: '../../demo/inference/photographs/cafe.jpg',
  digits: '../../demo/inference/digits/photographs/menu.jpg',
} as const satisfies Record<TaskName, string>;

const { values } = parseArgs({
  options: {
    host: { type: 'string', default: '127.0.0.1' },
    port: { type: 'string', default: '8080' },
    task: { type: 'string', default: 'text' },
    device: { type: 'string' },
    'max-batch': { type: 'string', default: '16' },
    'max-delay': { type: 'string', default: '5' },
    'max-running': { type: 'string' },
    'max-megapixels': { type: 'string' },
    'http-threads': { type: 'string' },
    eager: { type: 'boolean', default: true },
  },
  allowNegative: true,
});
const task = values.task as TaskName;
if (!Object.hasOwn(TASKS, task))
  throw new Error(`--task: expected ${Object.keys(TASKS).join(' or ')}, got ${task}`);

const device = await (values.device === undefined ? Device.open() : Device.open(values.device));
const maxBatchSize = Number(values['max-batch']);
// What is no number of photographs the batcher refuses.
const models = await TASKS[task](device, maxBatchSize >= 1 ? { mostAtOnce: maxBatchSize } : {});
const options: PhotographFinderOptions = {
  device,
  task,
  find: (photographs) => models.find(photographs),
  batching: {
    maxBatchSize,
    maxQueueDelay: Number(values['max-delay']),
    eager: values.eager,
    ...(values['max-running'] === undefined
      ? {}
      : { maxConcurrentBatches: Number(values['max-running']) }),
  },
  ...(values['max-megapixels'] === undefined
    ? {}
    : { mostPixelsUnderWay: 1e6 * Number(values['max-megapixels']) }),
};
if (options.mostPixelsUnderWay !== undefined && !(options.mostPixelsUnderWay > 0))
  throw new Error(`--max-megapixels: expected a number above 0, got ${values['max-megapixels']}`);
/**
 * Requests that may be under way at once: two batches that are decoded, two that wait and two that
 * run. More would not be answered sooner: where more come than can be answered, all would wait as
 * much longer.
 */
const maxInFlight = 6 * maxBatchSize;
// As the threads of HTTP give it.
const file = await readFile(new URL(PHOTOGRAPHS[task], import.meta.url));
const payload = new Uint8Array(new SharedArrayBuffer(file.length));
payload.set(file);
if (models.plansBatches) {
  const alone = new RoundRobin(device, 1);
  const photograph = await decodePhotograph(device, payload, alone);
  for (const size of sizesUpTo(maxBatchSize))
    await models.find(Array.from({ length: Math.min(size, maxBatchSize) }, () => photograph));
  photograph.close();
  alone.close();
}

// The first photographs pay for what happens once: kernels that are compiled, and on a GPU memory
// for as many of them as may be under way, which holds up the whole process while it is made. Those
// are not awaited.
const rehearsal = new PhotographFinder(options);
const requests = device.kind === 'cuda' ? maxInFlight : 1;
await Promise.all(
  Array.from({ length: requests }, () => rehearsal.find(payload, AbortSignal.timeout(60_000))),
);
await rehearsal.close();

const finder = new PhotographFinder(options);
const description = `${models.description}, ${device.name}`;
const threads = await HttpThreads.start(finder, {
  host: values.host,
  port: Number(values.port),
  server: { task, maxInFlight, description },
  ...(values['http-threads'] === undefined ? {} : { threads: Number(values['http-threads']) }),
});
console.log(`listening on ${threads.origin}, on ${description}`);

let stopping: Promise<void> | undefined;
async function stop(signal: string): Promise<void> {
  console.log(`${signal}: finishing what is under way`);
  await threads.close();
  await finder.close();
  await models.close();
  await device.close();
  console.log('closed');
}
for (const signal of ['SIGTERM', 'SIGINT'] as const)
  process.on(signal, () => (stopping ??= stop(signal)));
