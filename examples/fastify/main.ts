/** `npm run example:server`: the server on the best device there is, until SIGTERM or SIGINT. */
import { parseArgs } from 'node:util';
import { Device } from 'async-cuda';

import { Canvas } from '../../demo/canvas.js';
import { TASKS } from '../../demo/inference/tasks.js';
import type { TaskName } from '../../demo/inference/tasks.js';
import { buildServer } from './server.js';

const { values } = parseArgs({
  options: {
    host: { type: 'string', default: '127.0.0.1' },
    port: { type: 'string', default: '8080' },
    task: { type: 'string', default: 'text' },
    device: { type: 'string' },
    'max-batch': { type: 'string', default: '16' },
    'max-delay': { type: 'string', default: '5' },
  },
});
const task = values.task as TaskName;
if (!Object.hasOwn(TASKS, task)) throw new Error(`--task: expected ${Object.keys(TASKS).join(' or ')}, got ${task}`);

const device = await (values.device === undefined ? Device.open() : Device.open(values.device));
const models = await TASKS[task](device);
const app = buildServer({
  device,
  task,
  find: (photographs) => models.find(photographs),
  batching: { maxBatchSize: Number(values['max-batch']), maxQueueDelay: Number(values['max-delay']) },
  description: `${models.description}, ${device.name}`,
});

// The first batch pays for what happens once: kernels that are compiled, memory that grows. It has something to read, so that all of it happens.
const sign = new Canvas(160, 96, [250, 250, 250]);
sign.text(80, 60, '1 2 3', { size: 40, color: [20, 20, 20], align: 'center' });
await models.find([sign]);
await app.listen({ host: values.host, port: Number(values.port) });
console.log(`listening on ${app.listeningOrigin}, on ${models.description}, ${device.name}`);

let stopping: Promise<void> | undefined;
async function stop(signal: string): Promise<void> {
  console.log(`${signal}: finishing what is under way`);
  await app.close();
  await models.close();
  await device.close();
  console.log('closed');
}
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => (stopping ??= stop(signal)));
