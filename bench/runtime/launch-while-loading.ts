/**
 * Launches while a module is compiled: the longest time between the ends of back-to-back awaited
 * launches, while PTX whose compilation takes about a second is loaded. The peers load the same PTX
 * on another thread of theirs.
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';

import type { Benchmark, Setup } from '../benchmark.js';
import { SETTLE_MS, collectGarbage } from '../garbage.js';
import { calibrate, heavyModule } from '../kernels/heavy-module.js';
import { type CoreDevice, core } from '../library.js';
import { scratchFolder } from '../scratch.js';
import { QUIET, Tick } from './tick.js';

const LOAD_MS = 1000;
const ROUNDS = 3;
/** Launches that are recorded; more than there are in that time. */
const MAX_TURNS = 1 << 20;

const { f32, output } = core;

let calibrated: Promise<number> | undefined;

function kernelCount({ device, count }: Setup): Promise<number> {
  calibrated ??= calibrate(device, count(LOAD_MS));
  return calibrated;
}

/**
 * Loads the module and runs one of its kernels; `loading.now` is set while the load itself goes on.
 */
async function load(
  device: CoreDevice,
  ptx: string,
  kernels: number,
  loading: { now: boolean },
): Promise<number> {
  loading.now = true;
  const start = performance.now();
  const module = await device.loadModule(ptx);
  const took = performance.now() - start;
  loading.now = false;
  if (module.kernelNames.length !== kernels)
    throw new Error(`the module has ${module.kernelNames.length} kernels, not ${kernels}`);
  using y = device.alloc(f32, 1);
  y.fill(device.stream, -7);
  module
    .kernel(`heavy${kernels - 1}`, [output(f32), f32])
    .launch(device.stream, { grid: 1, block: 1 }, y, 0.5);
  const [value] = await y.read(device.stream);
  if (value === -7) throw new Error("the module's kernel wrote nothing");
  await module.close();
  return took;
}

export const launchWhileLoading: Benchmark = {
  area: 'runtime',
  name: 'longest launch then await, a module loading',
  unit: 'ms',
  statistic: 'longest',
  bar: '<= 1',
  rounds: ROUNDS,
  peers: (['cuda.core', 'CuPy'] as const).map((name) => ({
    // No bar: which contender waits longest for the driver's lock is chance (0.6 to 1.8 times
    // cuda.core's in fifteen runs).
    name,
    program: name,
    async request(setup) {
      // A driver caches what it has compiled, so each round of each peer needs a file of its own.
      const folder = scratchFolder();
      const kernels = await kernelCount(setup);
      // One more, for the round that is discarded.
      for (let round = 0; round <= ROUNDS; round++)
        await writeFile(join(folder, `${round}.ptx`), heavyModule(kernels));
      return `loading ${folder} heavy${kernels - 1}`;
    },
  })),
  async start(setup) {
    const { device } = setup;
    const kernels = await kernelCount(setup);
    const tick = await Tick.open(device);
    // Allocated and written beforehand: an array that grows is copied again and again.
    const gaps = new Float64Array(MAX_TURNS).fill(0);
    return {
      async round() {
        const ptx = heavyModule(kernels);
        await tick.warm(1000);
        for (let k = 0; k < 500; k++) await tick.launch(QUIET);
        const loading = { now: true };
        let turns = 0;
        // The garbage includes the text of the last round, which is megabytes.
        collectGarbage();
        const settled = performance.now() + SETTLE_MS;
        while (performance.now() < settled) await tick.launch(QUIET);
        let last = performance.now();
        const loaded = load(device, ptx, kernels, loading);
        loaded.catch(() => {
          loading.now = false;
        });
        while (loading.now) {
          await tick.launch(QUIET);
          const now = performance.now();
          gaps[turns++ % MAX_TURNS] = now - last;
          last = now;
        }
        const samples = [...gaps.subarray(0, Math.min(turns, MAX_TURNS))];
        return {
          samples,
          notes: {
            'load ms': await loaded,
            'gaps above 1 ms': samples.filter((gap) => gap > 1).length,
          },
        };
      },
      close: () => tick.close(),
    };
  },
};
