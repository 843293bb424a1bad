/**
 * PTX text to a WebAssembly module: a kernel of the median size of public programs, and one of the
 * largest.
 */
import { performance } from 'node:perf_hooks';

import type { Bar, Benchmark } from '../benchmark.js';
import { kernelOfSize } from '../../test/ptx/large-kernel.js';

type Ptx = typeof import('async-cuda/ptx');

function compileTime(instructions: number, samples: number, bar: Bar): Benchmark {
  return {
    area: 'cpu-device',
    name: `parse and compile ${instructions.toLocaleString('en')} instructions`,
    unit: 'ms',
    statistic: 'median',
    bar,
    peers: [],
    async start({ count }) {
      const { compilePtx } = (await import(
        new URL('../../dist/ptx.js', import.meta.url).href
      )) as Ptx;
      const text = kernelOfSize(instructions);
      return {
        async round() {
          if (!WebAssembly.validate(compilePtx(text).wasm as Uint8Array<ArrayBuffer>))
            throw new Error('the module is not valid');
          const times: number[] = [];
          for (let k = 0; k < count(samples); k++) {
            const start = performance.now();
            compilePtx(text);
            times.push(performance.now() - start);
          }
          return { samples: times };
        },
      };
    },
  };
}

export const compileTimes = [compileTime(183, 200, '<= 1.5'), compileTime(33_000, 5, '<= 250')];
