/**
 * The first launch of a kernel in TypeScript, in processes that find it on disk: how much longer it
 * takes, until its end, than the same code loaded as a cubin and launched. In both the device is
 * open and the tensors exist.
 */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import type { Benchmark } from '../benchmark.js';
import { scratchFolder } from '../scratch.js';
import { quantile } from '../statistics.js';

const run = promisify(execFile);
/** Two processes differ by more than the bar. */
const PROCESSES = 41;
/**
 * For a pair in which the kernel was faster: a sample is a positive number. The notes have both
 * times.
 */
const LEAST_MS = 0.001;
const program = fileURLToPath(new URL('./first-launch-process.mjs', import.meta.url));

/** ms measured by the child process. */
async function once(
  device: string,
  way: 'typescript' | 'loaded' | 'write',
  image: string,
  env: NodeJS.ProcessEnv,
): Promise<number> {
  const { NODE_OPTIONS: _, ...own } = process.env;
  const { stdout } = await run(process.execPath, [program, device, way, image], {
    env: { ...own, ...env },
    timeout: 60_000,
  });
  return (JSON.parse(stdout) as { ms: number }).ms;
}

export const firstLaunch: Benchmark = {
  area: 'kernels',
  name: 'first launch of a kernel in TypeScript from a warm disk cache, beyond a loaded cubin',
  unit: 'ms',
  statistic: 'median',
  bar: '<= 2',
  peers: [],
  rounds: 1,
  warmUp: false,
  start({ device, count }) {
    const name = device.kind === 'cuda' ? `cuda:${device.ordinal}` : 'cpu';
    return Promise.resolve({
      async round() {
        const folder = scratchFolder();
        const image = join(folder, 'softmax.image');
        const env = { ASYNC_CUDA_CACHE_DIR: join(folder, 'cache') };
        // The second process finds the first one's files, and writes what only a second one writes.
        const cold = await once(name, 'write', image, env);
        await once(name, 'typescript', image, env);
        await once(name, 'loaded', image, env);
        const typescript: number[] = [];
        const loaded: number[] = [];
        for (let k = 0; k < count(PROCESSES); k++) {
          typescript.push(await once(name, 'typescript', image, env));
          loaded.push(await once(name, 'loaded', image, env));
        }
        return {
          samples: typescript.map((ms, k) => Math.max(ms - loaded[k]!, LEAST_MS)),
          notes: {
            'TypeScript ms': quantile(typescript, 0.5),
            'loaded ms': quantile(loaded, 0.5),
            'nothing on disk ms': cold,
          },
        };
      },
    });
  },
};
