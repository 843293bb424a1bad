/** A Worker that opens a device of its own, beside the main thread's. */
import { fileURLToPath } from 'node:url';
import { Worker, isMainThread, parentPort, workerData } from 'node:worker_threads';

import { CoreDevice, i32 } from 'async-cuda/core';

import { ELEMENTWISE } from '../../core/kernels/elementwise.js';
import { WAITING } from '../../core/kernels/waiting.js';

const name = process.env['ASYNC_CUDA_TEST_DEVICE'] as 'cpu' | 'cuda';

async function count(times: number): Promise<number> {
  const device = await CoreDevice.open(name);
  const add1 = (await device.loadModule(ELEMENTWISE)).kernel('add1');
  const buffer = device.alloc(i32, 100);
  buffer.fill(device.stream, 0);
  for (let i = 0; i < times; i++) add1.launch(device.stream, { grid: 1, block: 128 }, buffer, 100);
  const value = (await buffer.read(device.stream))[99]!;
  await device.close();
  return value;
}

if (isMainThread) {
  const file = fileURLToPath(import.meta.url);
  const start = (
    job: string,
  ): { worker: Worker; answer: Promise<unknown>; ended: Promise<number> } => {
    const worker = new Worker(file, { workerData: job });
    return {
      worker,
      answer: new Promise((resolve, reject) =>
        worker.once('message', resolve).once('error', reject),
      ),
      ended: new Promise((resolve) => worker.once('exit', resolve)),
    };
  };
  const first = start('count');
  const second = start('count');
  const values = await Promise.all([count(300), first.answer, second.answer]);
  const codes = await Promise.all([first.ended, second.ended]);
  // A Worker that ends, or is terminated, with work in flight does not affect others.
  const leaving = start('leave');
  await leaving.answer;
  await leaving.ended;
  const stopped = start('stay');
  await stopped.answer;
  await stopped.worker.terminate();
  console.log(JSON.stringify({ values, codes, after: await count(10) }));
} else {
  const job = workerData as string;
  if (job === 'count') parentPort!.postMessage(await count(500));
  else {
    const device = await CoreDevice.open(name);
    const spin = (await device.loadModule(WAITING)).kernel('spin');
    const buffer = device.alloc(i32, 32);
    spin
      .launch(device.stream, { grid: 1, block: 32 }, buffer, 1, 30_000_000)
      .then(undefined, () => undefined);
    parentPort!.postMessage('busy');
    if (job === 'leave') process.exit(0);
  }
}
