/**
 * Runs a kernel of the sample k14_printf, and prints as JSON how it ended. Its output and the loss
 * of a device need a process of their own.
 */
import { readFileSync } from 'node:fs';

import { CoreDevice, f32, i32 } from 'async-cuda/core';
import type { CudaError } from 'async-cuda/core';

const [file, what, list] = process.argv.slice(2) as [string, string, string];
const values = list.split(',').map(Number);
await using device = await CoreDevice.open(process.env['ASYNC_CUDA_TEST_DEVICE'] as 'cpu' | 'cuda');
device.on('lost', () => undefined);
const { stream } = device;
const module = await device.loadModule(readFileSync(file, 'utf8'));

async function run(): Promise<void> {
  if (what === 'hello') {
    const buffer = device.alloc(f32, values.length);
    buffer.write(stream, Float32Array.from(values));
    await module
      .kernel('hello')
      .launch(stream, { grid: 1, block: values.length }, -2147483648, buffer);
  } else {
    const buffer = device.alloc(i32, 8);
    buffer.write(stream, Int32Array.from(values));
    await module.kernel('trapk').launch(stream, { grid: 1, block: 1 }, buffer);
  }
}

const error = await run().then(
  () => undefined,
  (reason: CudaError) => reason,
);
const ended = {
  code: error?.code ?? null,
  driverName: error?.driverName ?? null,
  message: error?.message ?? null,
};
process.stdout.write(`\n${JSON.stringify(ended)}\n`);
