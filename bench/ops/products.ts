/**
 * A queue of small and large matrix products worked off by one thread: as many loops as streams,
 * each of which takes the next product, runs it on its stream and awaits it. In C: as many threads,
 * each with a stream and cuStreamSynchronize.
 */
import { readFile } from 'node:fs/promises';
import { performance } from 'node:perf_hooks';

import type { Benchmark, Setup } from '../benchmark.js';
import {
  type CoreDevice,
  type DeviceBuffer,
  type DeviceOp,
  type Kernel,
  type OpContext,
  core,
  ops,
} from '../library.js';
import { openPolicy } from './policy.js';

const STREAMS = 8;
const UNITS = 512;
const SAMPLES = 3;
/** One in this many is large. */
const EVERY = 16;
/** On the CPU device only the results are checked. */
const SIZES = { cuda: { small: 512, large: 2048 }, cpu: { small: 64, large: 128 } };
/** Rows and columns of a block's part of the product. */
const TILE = 64;

/**
 * Products that are queued on a stream at a time: a program that does not block can queue ahead.
 */
const AHEAD = 2;

const { f32, i32, input, output } = core;

type Matrix = DeviceBuffer<'f32'>;

/** The products of one stream. */
class Worker {
  private readonly small: { size: number; result: Matrix; op: DeviceOp<void> };
  private readonly large: { size: number; result: Matrix; op: DeviceOp<void> };

  constructor(device: CoreDevice, kernel: Kernel, factors: readonly [Matrix, Matrix]) {
    const { small, large } = SIZES[device.kind];
    const prepare = (size: number) => {
      const result = device.alloc(f32, size * size);
      const launch = { grid: [size / TILE, size / TILE], block: 256 } as const;
      const op = ops.operation(device, ({ stream }: OpContext) => {
        kernel.launch(stream, launch, size, size, size, ...factors, result);
      });
      return { size, result, op };
    };
    this.small = prepare(small);
    this.large = prepare(large);
  }

  unit(index: number): DeviceOp<void> {
    return (index % EVERY === 0 ? this.large : this.small).op;
  }

  async clear(): Promise<void> {
    for (const { result } of [this.small, this.large]) await result.fill(result.device.stream, 0);
  }

  /** How many of its results were written. @throws Error where one is wrong */
  async written(): Promise<number> {
    let found = 0;
    for (const { size, result } of [this.small, this.large]) {
      const [value] = await result.slice(0, 1).read(result.device.stream);
      if (value !== 0 && value !== size / 2) throw new Error(`a product of ${size}² gave ${value}`);
      found += value === 0 ? 0 : 1;
    }
    return found;
  }

  close(): void {
    this.small.result.close();
    this.large.result.close();
  }
}

export async function openProducts(device: CoreDevice) {
  const { large } = SIZES[device.kind];
  const module = await device.loadModule(
    await readFile(new URL('../../test/ptx/samples/sm_75/k04_sgemm.ptx', import.meta.url), 'utf8'),
  );
  const kernel = module.kernel('sgemm_reg', [i32, i32, i32, input(f32), input(f32), output(f32)]);
  const policy = openPolicy(device, STREAMS);
  const [left, right] = [device.alloc(f32, large * large), device.alloc(f32, large * large)];
  // So every element of a product of n² is n / 2.
  await left.fill(device.stream, 1);
  await right.fill(device.stream, 0.5);
  const workers = policy.streams.map((stream) => ({
    stream,
    worker: new Worker(device, kernel, [left, right]),
  }));
  return {
    async workOff(units: number): Promise<void> {
      let next = 0;
      // The next one of a stream is queued before the earlier one has ended.
      const lanes = Array.from({ length: AHEAD }, () => workers).flat();
      await Promise.all(
        lanes.map(async ({ stream, worker }) => {
          while (next < units) await worker.unit(next++).runOn(stream);
        }),
      );
    },
    async clear(): Promise<void> {
      for (const { worker } of workers) await worker.clear();
    },
    async prove(): Promise<void> {
      let written = 0;
      for (const { worker } of workers) written += await worker.written();
      if (written < 2) throw new Error(`${written} results were written`);
    },
    async close(): Promise<void> {
      for (const { worker } of workers) worker.close();
      left.close();
      right.close();
      policy.close();
      await module.close();
    },
  };
}

export const products: Benchmark = {
  area: 'ops',
  name: `queue of matrix products, one JS thread, ${STREAMS} streams`,
  unit: '1/s',
  statistic: 'median',
  rounds: 15,
  peers: [
    {
      name: `C, ${STREAMS} threads`,
      bar: '>= 1',
      program: 'products',
      request: ({ count, device }: Setup) => {
        const { small, large } = SIZES[device.kind];
        return `queue ${SAMPLES} ${count(UNITS)} ${small} ${large} ${EVERY} ${STREAMS}`;
      },
    },
  ],
  async start({ device, count }) {
    const queue = await openProducts(device);
    return {
      async round() {
        await queue.clear();
        await queue.workOff(count(UNITS));
        await queue.prove();
        const rates: number[] = [];
        for (let k = 0; k < SAMPLES; k++) {
          const start = performance.now();
          await queue.workOff(count(UNITS));
          rates.push(count(UNITS) / ((performance.now() - start) / 1e3));
        }
        return { samples: rates };
      },
      close: () => queue.close(),
    };
  },
};
