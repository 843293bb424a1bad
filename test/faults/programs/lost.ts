/** Loses the device to the named kernel, and prints the resulting events and errors. */
import { CoreDevice, i32, u8 } from 'async-cuda/core';
import type { CudaDeviceLostError, CudaError } from 'async-cuda/core';

import { FAULTING } from '../../core/kernels/faulting.js';

const [kernelName = 'read_far', thread = 'worker', listen = 'all'] = process.argv.slice(2);
const name = process.env['ASYNC_CUDA_TEST_DEVICE'] as 'cpu' | 'cuda';

const unhandled: string[] = [];
process.on('unhandledRejection', (reason) => unhandled.push((reason as CudaError).code));

const said = (error: unknown): unknown => {
  const { code, message, driverName, cause, inFlight: work } = error as CudaDeviceLostError;
  return { code, message, driverName, cause: (cause as CudaError | undefined)?.driverName, work };
};
const outcome = (work: () => unknown): Promise<unknown> =>
  (async () => work())().then(
    () => 'resolved',
    (error: unknown) => said(error),
  );

const device = await CoreDevice.open(name, { thread: thread as 'worker' });
const lost: unknown[] = [];
const errors: unknown[] = [];
device.on('lost', (error) => lost.push(said(error)));
device.on('error', (error) => errors.push(said(error)));
const module = await device.loadModule(FAULTING);
const other = device.createStream({ label: 'other' });
const buffer = device.alloc(i32, 4, { label: 'victim' });
const elsewhere = device.alloc(i32, 4, { stream: other });
const large = device.alloc(u8, 16 << 20, { stream: other });
buffer.fill(device.stream, 1);
elsewhere.fill(other, 2);
await device.finished();

const kernel = module.kernel(kernelName);
const faulting = kernel.launch(
  device.stream,
  { grid: 1, block: 1 },
  ...Array.from({ length: kernel.parameterCount }, () => buffer),
);
const event = device.stream.record();
other.wait(device.stream);
const behind = Array.from({ length: 20 }, () =>
  module.kernel('harmless').launch(other, { grid: 1, block: 1 }, elsewhere),
);

const began = performance.now();
let inFlight: unknown[] = [];
if (listen === 'none') {
  // Chains without an end: each would be an unhandled rejection of its own.
  const careless = (work: () => unknown): void => {
    try {
      work();
    } catch {
      // Inline the device may be lost by now.
    }
  };
  for (const pending of [faulting, ...behind]) careless(() => pending.then());
  careless(() => large.write(other, new Uint8Array(16 << 20)).then());
  careless(() => faulting.finished());
  careless(() => device.stream.finished());
  careless(() => other.finished());
  await new Promise((resolve) => setTimeout(resolve, 1500));
} else {
  inFlight = await Promise.all([
    outcome(() => faulting),
    ...behind.map((pending) => outcome(() => pending)),
    outcome(() => event.finished()),
    outcome(() => device.finished()),
    outcome(() => buffer.read(device.stream)),
    outcome(() => large.write(other, new Uint8Array(16 << 20))),
    outcome(() => large.read(other)),
    outcome(() => other.call(() => 1)),
  ]);
}
const waited = performance.now() - began;

const before = performance.now();
const later = await Promise.all([
  outcome(() => buffer.fill(device.stream, 1)),
  outcome(() => buffer.read(device.stream)),
  outcome(() => module.kernel('harmless')),
  outcome(() => device.alloc(i32, 1)),
  outcome(() => device.createStream()),
  outcome(() => device.stream.finished()),
  outcome(() => device.memoryInfo()),
  outcome(() => device.loadModule(FAULTING)),
  outcome(() => device.pinned(i32, 1)),
  outcome(() => device.stream.capture(() => undefined)),
]);
const atOnce = performance.now() - before;

// Disposal is still allowed, without errors.
const disposal = await outcome(async () => {
  buffer.close();
  elsewhere.close();
  event.close();
  other.close();
  await module.close();
});
const reopen = () =>
  outcome(async () => {
    const again = await CoreDevice.open(name, { thread: thread as 'worker' });
    const fresh = again.alloc(i32, 2);
    fresh.fill(again.stream, 6);
    const values = await fresh.read(again.stream);
    await again.close();
    if (values[1] !== 6) throw new Error('the new device gives wrong results');
  });
const reopened = await reopen();
const closed = await outcome(() => device.close());
const reopenedBehind = await reopen();
await new Promise((resolve) => setTimeout(resolve, 20));
console.log(
  JSON.stringify({
    inFlight,
    later,
    lost,
    errors,
    unhandled,
    waited,
    atOnce,
    disposal,
    reopened,
    closed,
    reopenedBehind,
  }),
);
