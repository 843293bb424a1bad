/** What keeps a process alive, and what does not. */
import { CoreDevice, i32 } from 'async-cuda/core';

import { WAITING } from '../../core/kernels/waiting.js';

const [what] = process.argv.slice(2);
const device = await CoreDevice.open(process.env['ASYNC_CUDA_TEST_DEVICE'] as 'cpu' | 'cuda');
const buffer = device.alloc(i32, 32);
await buffer.fill(device.stream, 5);
if (what === 'fake-timers') {
  const never = (() => ({ unref: () => undefined })) as never;
  globalThis.setTimeout = never;
  globalThis.setImmediate = never;
  globalThis.setInterval = never;
}
if (what !== 'open') {
  const module = await device.loadModule(WAITING);
  module.kernel('spin').launch(device.stream, { grid: 1, block: 32 }, buffer, 1, 3_000_000);
  buffer.fill(device.stream, 5);
  const value = (await buffer.read(device.stream))[31];
  console.log(JSON.stringify({ value }));
}
buffer.close();
