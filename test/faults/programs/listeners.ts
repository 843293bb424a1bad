/** Listeners that throw: each is an uncaught exception, without any other effect. */
import { CoreDevice, i32 } from 'async-cuda/core';
import type { CudaError } from 'async-cuda/core';

import { FAULTING } from '../../core/kernels/faulting.js';

const [thread = 'worker'] = process.argv.slice(2);
const name = process.env['ASYNC_CUDA_TEST_DEVICE'] as 'cpu' | 'cuda';
const uncaught: string[] = [];
process.on('uncaughtException', (error) => uncaught.push(error.message));

const device = await CoreDevice.open(name, { thread: thread as 'worker' });
const other = await CoreDevice.open(name, { thread: thread as 'worker' });
const heard: string[] = [];
for (const event of ['error', 'lost'] as const) {
  device.on(event, () => {
    throw new Error(`thrown on ${event}`);
  });
  other.on(event, () => heard.push(event));
}
const buffer = device.alloc(i32, 4);
device.alloc(i32, 2 ** 45).close();
await device.stream.finished();
await new Promise((resolve) => setTimeout(resolve, 50));
buffer.fill(device.stream, 5);
const value = (await buffer.read(device.stream))[0];
const module = await device.loadModule(FAULTING);
const lost = await module
  .kernel('read_far')
  .launch(device.stream, { grid: 1, block: 1 }, buffer)
  .then(
    () => 'resolved',
    (error: unknown) => (error as CudaError).code,
  );
await new Promise((resolve) => setTimeout(resolve, 50));
await Promise.all([device.close(), other.close()]);
console.log(JSON.stringify({ uncaught, heard, value, lost }));
if (name === 'cuda') process.exit(0);
