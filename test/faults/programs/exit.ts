/** Calls process.exit at a point that the seed picks, whatever is going on. */
import { setTimeout as sleep } from 'node:timers/promises';

import { CoreDevice, i32, u8 } from 'async-cuda/core';

import { ELEMENTWISE } from '../../core/kernels/elementwise.js';
import { WAITING } from '../../core/kernels/waiting.js';

const [point = '0', seed = '1'] = process.argv.slice(2);
let state = Number(seed) * 2654435761;
const random = (): number => {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
  return state / 2 ** 32;
};

function leave(): never {
  process.stdout.write('leaving\n');
  process.exit(7);
}

/** Exits after a random time of up to `ms` milliseconds. */
function leaveSoon(ms: number): void {
  setTimeout(leave, random() * ms);
}

const name = process.env['ASYNC_CUDA_TEST_DEVICE'] as 'cpu' | 'cuda';
const idle = (): Promise<void> => sleep(60_000);

if (point === 'opening') {
  leaveSoon(150);
  await CoreDevice.open(name);
  await idle();
}
// More threads than the machine has cores, so that some are at any point of their work.
const device = await CoreDevice.open(
  name,
  point === 'many-blocks' && name === 'cpu' ? { workers: 5 } : {},
);
const waiting = await device.loadModule(WAITING);
const elementwise = await device.loadModule(ELEMENTWISE);
const buffer = device.alloc(i32, 1 << 20);
const add1 = elementwise.kernel('add1');

switch (point) {
  case 'idle':
    await buffer.fill(device.stream, 1);
    leaveSoon(20);
    break;
  case 'long-kernel':
    // Some seconds on a GPU, more on the CPU device.
    waiting
      .kernel('spin')
      .launch(device.stream, { grid: 1, block: 32 }, buffer, 1, 1_000_000_000)
      .then(undefined, () => undefined);
    await sleep(random() * 100);
    leave();
    break;
  case 'many-blocks': {
    // The threads that run them are started by the first of these grids, and work on two at once.
    const spin = waiting.kernel('spin');
    const other = device.createStream();
    for (let i = 0; i < 5; i++) {
      for (const stream of [device.stream, other])
        spin
          .launch(stream, { grid: 64, block: 32 }, buffer, 1, 100_000 * 10 ** i)
          .then(undefined, () => undefined);
    }
    await sleep(random() * 150);
    leave();
    break;
  }
  case 'endless-kernel':
    waiting.kernel('forever').launch(device.stream, { grid: 1, block: 1 }, buffer);
    for (let i = 0; i < 3000; i++) add1.launch(device.stream, { grid: 1, block: 256 }, buffer, 256);
    void device.stream.finished();
    await sleep(random() * 100);
    leave();
    break;
  case 'launches':
    leaveSoon(30);
    for (;;) {
      for (let i = 0; i < 200; i++)
        add1.launch(device.stream, { grid: 16, block: 256 }, buffer, 4096);
      await device.stream.ready();
      await sleep(0);
    }
  case 'copies': {
    leaveSoon(60);
    const large = device.alloc(u8, 64 << 20);
    for (;;) {
      await large.write(device.stream, new Uint8Array(64 << 20));
      await large.read(device.stream);
    }
  }
  case 'loading':
    leaveSoon(30);
    for (;;) await (await device.loadModule(ELEMENTWISE)).close();
  case 'allocating':
    leaveSoon(40);
    for (;;) {
      const pinned = await device.pinned(u8, 1 << 20);
      const managed = await device.managed(u8, 1 << 20);
      const stream = device.createStream();
      device.alloc(u8, 1 << 20, { stream }).close();
      stream.close();
      await Promise.all([pinned.close(), managed.close()]);
    }
  case 'closing':
    for (let i = 0; i < 1000; i++) add1.launch(device.stream, { grid: 1, block: 256 }, buffer, 256);
    leaveSoon(10);
    await device.close();
    break;
  case 'closed': {
    // On a GPU the kernel goes on: nothing but the end of the process ends it.
    waiting.kernel('forever').launch(device.stream, { grid: 1, block: 1 }, buffer);
    const pinned = await device.pinned(u8, 1 << 20);
    const written = device.alloc(u8, 1 << 20);
    written.write(device.stream, pinned).catch(() => undefined);
    const managed = await device.managed(u8, 1 << 20);
    managed.prefetch(device.stream).catch(() => undefined);
    // No garbage is collected before: leaks would be reported, which other tests cover.
    const held: object[] = [buffer, pinned, written, managed];
    await device.close({ timeout: random() * 50 });
    if (held.includes(buffer)) leave();
    break;
  }
  case 'call':
    device.stream.call(() => leave());
    break;
  default:
    throw new Error(`no point '${point}'`);
}
await idle();
