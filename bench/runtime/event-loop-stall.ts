/**
 * How long the event loop is held up while the GPU has all the work it can take: four streams of launches, large and
 * small copies, for two seconds. Sampled by the gaps between `setImmediate` callbacks.
 */
import { performance } from 'node:perf_hooks';
import { setImmediate as nextTurn } from 'node:timers/promises';

import type { Benchmark } from '../benchmark.js';
import { type Device, core } from '../library.js';
import { expectStamp, stamp } from '../stamp.js';
import { COUNTING, Tick, loadKernels } from './tick.js';

const STREAMS = 4;
const MS = 2000;
const TICKS = 200;
const ELEMENTS = 16 << 20;
const COPY_BYTES = [64 << 10, 1 << 20, 8 << 20, 32 << 20];

const { f32, i32, inout, input, u8 } = core;

/** Keeps one stream busy until `stop` is set; checks every copy, and at the end that every launch has run. */
async function work(device: Device, copyBytes: number, stop: { now: boolean }): Promise<number> {
  using stream = device.createStream();
  const module = await loadKernels(device);
  const saxpy = module.kernel('saxpy', [inout(f32), input(f32), f32, i32]);
  const tick = await Tick.open(device, stream);
  using x = device.alloc(f32, ELEMENTS, { stream });
  using y = device.alloc(f32, ELEMENTS, { stream });
  using copied = device.alloc(u8, copyBytes, { stream });
  const host = new Uint8Array(copyBytes);
  const back = new Uint8Array(copyBytes);
  x.fill(stream, 0);
  y.fill(stream, 0);
  let turns = 0;
  while (!stop.now) {
    tick.launches(TICKS, COUNTING);
    for (let i = 0; i < 4; i++) saxpy.launch(stream, { grid: ELEMENTS / 256, block: 256 }, y, x, 2, ELEMENTS);
    const mark = stamp(host);
    copied.write(stream, host);
    await copied.read(stream, { into: back });
    expectStamp(back, mark);
    turns++;
  }
  await tick.expect(turns * TICKS);
  await tick.close();
  await module.close();
  return turns * (TICKS + 4);
}

export const eventLoopStall: Benchmark = {
  area: 'runtime',
  name: 'longest event-loop stall, GPU saturated',
  unit: 'ms',
  statistic: 'longest',
  bar: '<= 1',
  peers: [],
  rounds: 2,
  async start({ device, count }) {
    return {
      async round() {
        const stop = { now: false };
        const workers = Promise.all(COPY_BYTES.slice(0, STREAMS).map((bytes) => work(device, bytes, stop)));
        let running = true;
        workers.catch(() => undefined).finally(() => {
          running = false;
        });
        const gaps: number[] = [];
        const end = performance.now() + count(MS);
        let last = performance.now();
        while (running) {
          await nextTurn();
          const now = performance.now();
          gaps.push(now - last);
          last = now;
          stop.now ||= now > end;
        }
        const launches = (await workers).reduce((sum, each) => sum + each);
        return { samples: gaps, notes: { 'gaps above 1 ms': gaps.filter((gap) => gap > 1).length, turns: gaps.length, launches } };
      },
    };
  },
};
