/**
 * A kernel that never ends, with thousands of launches after it; another stream goes on, the wait
 * is aborted, the process ends.
 */
import { CoreDevice, i32 } from 'async-cuda/core';
import type { CudaError } from 'async-cuda/core';

import { ELEMENTWISE } from '../../core/kernels/elementwise.js';
import { WAITING } from '../../core/kernels/waiting.js';

const [thread = 'worker'] = process.argv.slice(2);
const name = process.env['ASYNC_CUDA_TEST_DEVICE'] as 'cpu' | 'cuda';
const said = (error: unknown): string =>
  error instanceof DOMException ? error.name : (error as CudaError).code;

const device = await CoreDevice.open(name, { thread: thread as 'worker' });
const forever = (await device.loadModule(WAITING)).kernel('forever');
const add1 = (await device.loadModule(ELEMENTWISE)).kernel('add1');
const stuck = device.createStream();
const buffer = device.alloc(i32, 256, { stream: stuck });
const free = device.alloc(i32, 256);
buffer.fill(stuck, 0);
free.fill(device.stream, 0);
await device.finished();

forever.launch(stuck, { grid: 1, block: 1 }, buffer);
const behind = Array.from({ length: 5000 }, () =>
  add1.launch(stuck, { grid: 1, block: 256 }, buffer, 256),
);
const read = buffer.read(stuck);

// Another stream is not delayed: not by the kernel, and not by the work after it.
let value = 0;
for (let i = 0; i < 50; i++) {
  add1.launch(device.stream, { grid: 1, block: 256 }, free, 256);
  value = (await free.read(device.stream))[255]!;
}
const aborted = await behind[4999]!
  .finished({ signal: AbortSignal.timeout(50) })
  .then(() => 'resolved', said);
const later = await stuck
  .finished({ signal: AbortSignal.timeout(20) })
  .then(() => 'resolved', said);
const values = [(await free.read(device.stream))[0]];

const ends = Promise.all([
  behind[0]!.then(() => 'resolved', said),
  behind[4999]!.then(() => 'resolved', said),
  read.then(() => 'resolved', said),
]);
const began = performance.now();
await device.close({ timeout: 200 });
const closed = performance.now() - began;
const rejected = await ends;
let reopened = 'not tried';
if (name === 'cpu') {
  const again = await CoreDevice.open('cpu', { thread: thread as 'worker' });
  const fresh = again.alloc(i32, 1);
  fresh.fill(again.stream, 3);
  reopened = String((await fresh.read(again.stream))[0]);
  await again.close();
}
console.log(JSON.stringify({ value, aborted, later, values, closed, rejected, reopened }));
// On a GPU nothing but the end of the process ends the kernel; on the CPU device the process ends
// by itself.
if (name === 'cuda') process.exit(0);
