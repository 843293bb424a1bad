/**
 * A function of the host that never ends holds a stream, and the device is closed, or lost,
 * meanwhile.
 */
import { CoreDevice, i32 } from 'async-cuda/core';
import type { CudaError } from 'async-cuda/core';

import { FAULTING } from '../../core/kernels/faulting.js';

const [thread = 'worker', end = 'closed'] = process.argv.slice(2);
const name = process.env['ASYNC_CUDA_TEST_DEVICE'] as 'cpu' | 'cuda';
const outcome = (work: PromiseLike<unknown>): PromiseLike<unknown> =>
  work.then(
    () => 'resolved',
    (error: unknown) => (error as CudaError).code,
  );

const device = await CoreDevice.open(name, { thread: thread as 'worker' });
const stream = device.createStream();
const faulting = (await device.loadModule(FAULTING)).kernel('trapped');
const buffer = device.alloc(i32, 4);
await buffer.fill(device.stream, 1);

let settle = (): void => undefined;
const begun = new Promise<void>((resolve) => {
  settle = resolve;
});
const held = outcome(
  stream.call(() => {
    settle();
    return new Promise(() => undefined);
  }),
);
const behind = outcome(stream.call(() => 1));
await begun;
if (end === 'lost') {
  try {
    await outcome(
      faulting.launch(
        device.stream,
        { grid: 1, block: 1 },
        ...Array.from({ length: faulting.parameterCount }, () => buffer),
      ),
    );
  } catch {
    // Inline the device is lost by now.
  }
} else await device.close({ timeout: 50 });
console.log(JSON.stringify([await held, await behind]));
if (name === 'cuda') process.exit(0);
