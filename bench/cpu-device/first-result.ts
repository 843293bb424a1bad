/**
 * From `import('async-cuda/core')` to the first result of saxpy, in processes that have done
 * nothing before. The start of the process itself does not count; it is noted. The time without
 * V8's code of the threads' script on disk is noted as well.
 */
import { execFile } from 'node:child_process';
import { performance } from 'node:perf_hooks';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import type { Benchmark } from '../benchmark.js';
import { quantile } from '../statistics.js';

const run = promisify(execFile);
const PROCESSES = 10;
const program = fileURLToPath(new URL('./first-result-process.mjs', import.meta.url));

interface Reply {
  /** ms from before the import until the values are checked */
  readonly firstResult: number;
  /** The time of the program's first statement, in ms since the epoch. */
  readonly began: number;
}

async function once(
  env: NodeJS.ProcessEnv = {},
): Promise<{ firstResult: number; processStart: number }> {
  const { NODE_OPTIONS: _, ...own } = process.env;
  const spawned = performance.timeOrigin + performance.now();
  const { stdout } = await run(process.execPath, [program], {
    env: { ...own, ...env },
    timeout: 60_000,
  });
  const { firstResult, began } = JSON.parse(stdout) as Reply;
  return { firstResult, processStart: began - spawned };
}

export const firstResult: Benchmark = {
  area: 'cpu-device',
  name: 'import to the first result of saxpy',
  unit: 'ms',
  statistic: 'median',
  bar: '<= 150',
  peers: [],
  rounds: 1,
  async start({ count }) {
    return {
      async round() {
        const results = [];
        const anew = [];
        await once();
        for (let k = 0; k < count(PROCESSES); k++) {
          results.push(await once());
          anew.push(await once({ ASYNC_CUDA_CACHE_DISABLE: '1' }));
        }
        return {
          samples: results.map((result) => result.firstResult),
          notes: {
            'process start ms': quantile(
              results.map((result) => result.processStart),
              0.5,
            ),
            'nothing on disk ms': quantile(
              anew.map((result) => result.firstResult),
              0.5,
            ),
          },
        };
      },
    };
  },
};
