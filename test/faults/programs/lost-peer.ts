/** Loses one of two devices, and prints the results of work that uses the other. */
import { CoreDevice, i32 } from 'async-cuda/core';
import type { CudaError, DeviceName } from 'async-cuda/core';

import { FAULTING } from '../../core/kernels/faulting.js';

const [lostName, keptName, lostMode, keptMode] = process.argv.slice(2) as [
  DeviceName,
  DeviceName,
  'worker',
  'worker',
];
const unhandled: string[] = [];
process.on('unhandledRejection', (reason) => unhandled.push((reason as CudaError).code));

const outcome = (work: () => unknown): Promise<unknown> =>
  (async () => work())().then(
    (value) => (value === undefined ? 'resolved' : value),
    (error: unknown) => ({
      code: (error as CudaError).code,
      cause: ((error as CudaError).cause as CudaError | undefined)?.code,
    }),
  );

const a = await CoreDevice.open(lostName, { thread: lostMode });
const b = await CoreDevice.open(keptName, { thread: keptMode });
const heard: string[] = [];
for (const [name, device] of [
  ['a', a],
  ['b', b],
] as const) {
  device.on('lost', () => heard.push(`${name} lost`));
  device.on('error', (error) => heard.push(`${name} ${error.code}`));
}
const module = await a.loadModule(FAULTING);
const source = a.alloc(i32, 4);
const target = b.alloc(i32, 4);
const other = b.alloc(i32, 4);
const back = a.alloc(i32, 4);
for (const buffer of [source, back]) buffer.fill(a.stream, 1);
for (const buffer of [target, other]) buffer.fill(b.stream, 2);
// Results from before the fault stay.
const before = await (async () => {
  target.copyFrom(b.stream, source);
  return [...(await target.read(b.stream))];
})();

const free = b.createStream();
const waiting = b.createStream();
const kernel = module.kernel('read_far');
const faulting = kernel.launch(
  a.stream,
  { grid: 1, block: 1 },
  ...Array.from({ length: kernel.parameterCount }, () => source),
);
const event = a.stream.record();
const began = performance.now();
const inFlight = await Promise.all([
  outcome(() => faulting),
  outcome(() => {
    waiting.wait(event);
    waiting.wait(a.stream);
    return waiting.finished();
  }),
  outcome(() => target.copyFrom(b.stream, source)),
  outcome(() => back.copyFrom(a.stream, other)),
  outcome(() => {
    other.fill(free, 3);
    return other.read(free).then((values) => [...values]);
  }),
]);
const waited = performance.now() - began;
const later = await Promise.all([
  outcome(() => target.copyFrom(b.stream, source)),
  outcome(() => b.stream.wait(event)),
  outcome(() => b.stream.wait(a.stream)),
  outcome(() => back.copyFrom(a.stream, other)),
  outcome(() =>
    target
      .fill(b.stream, 7)
      .then(() => target.read(b.stream))
      .then((values) => [...values]),
  ),
]);
const closed = [await outcome(() => a.close()), await outcome(() => b.close())];
await new Promise((resolve) => setTimeout(resolve, 20));
console.log(JSON.stringify({ before, inFlight, later, closed, heard, unhandled, waited }));
