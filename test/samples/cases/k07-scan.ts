/** Prefix sums: by shuffles within a block, and Blelloch's in shared memory. */
import { Values } from '../host-values.js';
import type { SampleModule } from '../sample-case.js';

const random = new Values(7);
const n = 1000;
const x = random.wildIntegers(n);
const g = random.wildIntegers(512);

const inclusive = Int32Array.from(x);
for (let i = 0; i < n; i++) if (i % 256 !== 0) inclusive[i]! += inclusive[i - 1]!;

export const K07_SCAN: SampleModule = {
  name: 'k07_scan',
  cases: [
    {
      kernel: 'scan_block',
      name: '1000 integers that wrap, four blocks',
      memory: { x, out: new Int32Array(1024).fill(-9), sums: new Int32Array(4) },
      launches: [{ grid: 4, block: 256, args: ['x', 'out', 'sums', n] }],
      outputs: {
        out: {
          equal: 'bits',
          reference: () => [...inclusive, ...Array.from({ length: 24 }, () => -9)],
        },
        sums: { equal: 'bits', reference: () => [255, 511, 767, 999].map((i) => inclusive[i]!) },
      },
    },
    {
      kernel: 'scan_blelloch',
      name: '512 integers that wrap',
      memory: { g },
      launches: [{ grid: 1, block: 256, shared: 2048, args: ['g', 512] }],
      outputs: {
        g: {
          equal: 'bits',
          reference: () => {
            let sum = 0;
            return g.map((value) => {
              const before = sum;
              sum = (sum + value) | 0;
              return before;
            });
          },
        },
      },
    },
  ],
};
