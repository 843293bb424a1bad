/**
 * Creates and drops objects for the given number of milliseconds, with garbage collections; prints
 * what is left.
 */
import { setTimeout as sleep } from 'node:timers/promises';

import { CoreDevice, f32, i32, u8 } from 'async-cuda/core';

import { ELEMENTWISE } from '../../core/kernels/elementwise.js';

const [milliseconds = '1000', thread = 'worker'] = process.argv.slice(2);
const gc = globalThis.gc!;
const warnings: { code: string | undefined; message: string }[] = [];
process.on('warning', (warning) =>
  warnings.push({ code: (warning as Error & { code?: string }).code, message: warning.message }),
);
const errors: string[] = [];

const device = await CoreDevice.open(process.env['ASYNC_CUDA_TEST_DEVICE'] as 'cpu' | 'cuda', {
  thread: thread as 'worker',
});
device.on('error', (error) => errors.push(error.message));
const module = await device.loadModule(ELEMENTWISE);
const add1 = module.kernel('add1');
const pool = await device.pool();

interface Left {
  used: number;
  handles: number;
  free: number;
}

async function left(): Promise<Left> {
  for (let i = 0; i < 10; i++) {
    gc();
    await sleep(5);
    await device.finished();
  }
  await pool.trim();
  return {
    used: (await pool.statistics()).used,
    handles: device.runtime.handles.count,
    free: (await device.memoryInfo()).free,
  };
}

/** One round of all kinds of object, half of them never closed. */
async function round(i: number): Promise<void> {
  const stream = i % 3 === 0 ? device.createStream() : device.stream;
  const kept = device.alloc(i32, 1000, { stream });
  const forgotten = device.alloc(i32, 5000, { stream });
  kept.fill(stream, i);
  forgotten.fill(stream, i);
  add1.launch(stream, { grid: 4, block: 256 }, kept, 1000);
  const read = kept.read(stream);
  const image = device.alloc2D(u8, { width: 100, height: 10, channels: 3 });
  image.fill(stream, 1);
  device.createEvent().close();
  const event = stream.record();
  if (i % 2 === 0) device.alloc(f32, 1 << 16).write(device.stream, new Float32Array(1 << 16));
  if (i % 5 === 0) {
    const graph = await device.stream.capture((captured) => {
      add1.launch(captured, { grid: 1, block: 256 }, kept, 100);
    });
    graph.launch(device.stream);
    await graph.close();
  }
  if (i % 6 === 0) {
    const [closed, left] = [
      await device.allocPlain(u8, 10_000),
      await device.allocPlain(u8, 10_000),
    ];
    closed.fill(stream, 1);
    left.fill(stream, 2);
    closed.close();
  }
  if (i % 7 === 0) {
    const pinned = await device.pinned(u8, 10_000);
    const managed = await device.managed(u8, 10_000);
    managed.view().fill(1);
    if (i % 2 === 0) {
      await pinned.close();
      await managed.close();
    }
  }
  if ((await read)[999] !== i + 1) throw new Error(`wrong result in round ${i}`);
  event.close();
  kept.close();
  if (stream !== device.stream) stream.close();
}

// Once to warm up: streams keep their events, pools their memory.
for (let i = 0; i < 400; i++) await round(i);
{
  // All events that the device's own stream keeps.
  const [stream, buffer] = [device.createStream(), device.alloc(u8, 1)];
  buffer.fill(stream, 0);
  for (let i = 0; i < 40; i++) buffer.fill(device.stream, 0);
  buffer.close();
  stream.close();
}
const before = await left();
let rounds = 0;
const until = performance.now() + Number(milliseconds);
// A loaded machine may need more time for the number of rounds.
while (performance.now() < until || rounds <= 20) {
  await round(rounds++);
  if (rounds % 50 === 0) gc();
  if (rounds % 10 === 0) await sleep(0);
}
const after = await left();
console.log(JSON.stringify({ before, after, rounds, warnings, errors }));
await device.close();
