/**
 * Grids of arithmetic on two threads of the CPU device, compared with one. The bar holds where two
 * cores are free.
 */
import { readFile } from 'node:fs/promises';
import { performance } from 'node:perf_hooks';

import type { Benchmark, Contender } from '../benchmark.js';
import { core } from '../library.js';
import type { CoreDevice } from '../library.js';

const SAMPLES = 9;
/**
 * How long a kernel is launched before its first round: until then V8's own threads compile the
 * code that opened the device and loaded the module, on the measured processors (4 to 6 % of one
 * for the first two seconds, and nothing from the third on).
 */
const WARM_MS = 3000;
const { f32, i32, input, output } = core;

interface Work {
  /** One launch and its end. */
  run(): Promise<void>;
  /** Throws unless the result of the last run is right. */
  check(): Promise<void>;
}

type Prepare = (device: CoreDevice) => Promise<Work>;

const sample = (file: string): Promise<string> =>
  readFile(new URL(`../../test/ptx/samples/sm_80/${file}.ptx`, import.meta.url), 'utf8');

/** 1024 × 1024 points, 1000 steps at most. */
async function mandelbrot(device: CoreDevice): Promise<Work> {
  const side = 1024;
  const module = await device.loadModule(await sample('k10_mandel'));
  const kernel = module.kernel('mandel', [output(i32), i32, i32, f32, f32, f32, i32]);
  const steps = device.alloc(i32, side * side);
  // One for all rounds: otherwise the engine's threads would look for garbage on the measured
  // processors.
  const values = new Int32Array(side * side);
  return {
    run: async () => {
      await kernel.launch(
        device.stream,
        { grid: [side / 16, side / 16], block: [16, 16] },
        steps,
        side,
        side,
        -2,
        -1.5,
        3 / side,
        1000,
      );
    },
    async check() {
      await steps.read(device.stream, { into: values });
      // -2 leaves at once, 0 never does.
      if (values[0] !== 1 || values[(side / 2) * side + Math.round((2 / 3) * side)] !== 1000)
        throw new Error('mandelbrot gave a wrong result');
    },
  };
}

/** Two matrices of 512 × 512, in tiles of 16 with two barriers each. */
async function sgemm(device: CoreDevice): Promise<Work> {
  const n = 512;
  const module = await device.loadModule(await sample('k04_sgemm'));
  const kernel = module.kernel('sgemm_tiled', [i32, i32, i32, input(f32), input(f32), output(f32)]);
  const [a, b, c] = [device.alloc(f32, n * n), device.alloc(f32, n * n), device.alloc(f32, n * n)];
  const values = new Float32Array(n * n);
  a.fill(device.stream, 2);
  b.fill(device.stream, 3);
  return {
    run: async () => {
      await kernel.launch(
        device.stream,
        { grid: [n / 16, n / 16], block: [16, 16] },
        n,
        n,
        n,
        a,
        b,
        c,
      );
    },
    async check() {
      await c.read(device.stream, { into: values });
      if (!values.every((value) => value === 6 * n)) throw new Error('sgemm gave a wrong result');
    },
  };
}

async function contender(prepare: Prepare, workers: number): Promise<Contender> {
  const device = await core.CoreDevice.open('cpu', { workers });
  const work = await prepare(device);
  for (const end = performance.now() + WARM_MS; performance.now() < end;) await work.run();
  return {
    async round() {
      const times: number[] = [];
      for (let k = 0; k < SAMPLES; k++) {
        const start = performance.now();
        await work.run();
        times.push(performance.now() - start);
      }
      await work.check();
      return { samples: times };
    },
    close: () => device.close(),
  };
}

function byTwo(name: string, prepare: Prepare): Benchmark {
  return {
    area: 'cpu-device',
    name: `${name}, two workers`,
    unit: 'ms',
    statistic: 'median',
    // 1.9 times as fast.
    peers: [{ name: 'one worker', bar: '<= 0.526', start: () => contender(prepare, 1) }],
    start: () => contender(prepare, 2),
  };
}

export const cpuWorkers = [byTwo('mandelbrot', mandelbrot), byTwo('sgemm of 512', sgemm)];
