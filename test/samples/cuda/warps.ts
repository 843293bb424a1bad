/** Warps in lockstep without synchronisation, and waits of single threads. */
import { Values } from '../host-values.js';
import type { SampleModule } from '../sample-case.js';

const random = new Values(36);

const numbers = random.wholeFloats(5000, -9, 9);
/** Whole numbers, whose sums are exact in any order. */
const sums = (blocks: number, threads: number): number[] =>
  Array.from({ length: blocks }, (_, block) => {
    let sum = 0;
    numbers.forEach((value, i) => {
      if (Math.floor(i / threads) % blocks === block) sum += value;
    });
    return sum;
  });

const data = random.integers(96, -99, 99);
const scanned = (): number[] =>
  Array.from(data, (_, i) => data.subarray(i & ~31, i + 1).reduce((sum, value) => sum + value, 0));

export const WARPS: SampleModule = {
  name: 'warps',
  cases: [
    {
      kernel: 'old_reduce',
      name: 'blocks of 256',
      memory: { numbers, out: new Float32Array(7) },
      launches: [{ grid: 7, block: 256, shared: 1024, args: ['numbers', 'out', numbers.length] }],
      outputs: { out: { equal: 'bits', reference: () => sums(7, 256) } },
    },
    {
      kernel: 'old_reduce',
      name: 'blocks of 64',
      memory: { numbers, out: new Float32Array(3) },
      launches: [{ grid: 3, block: 64, shared: 256, args: ['numbers', 'out', numbers.length] }],
      outputs: { out: { equal: 'bits', reference: () => sums(3, 64) } },
    },
    {
      kernel: 'old_scan',
      name: 'a row of 96 threads',
      memory: { data },
      launches: [{ grid: 1, block: 96, args: ['data', 3] }],
      outputs: { data: { equal: 'bits', reference: scanned } },
    },
    {
      // Neighbours in a row of 48 are run 16 at a time in lanes.
      kernel: 'old_scan',
      name: 'two rows of 48 threads',
      memory: { data },
      launches: [{ grid: 1, block: [48, 2], args: ['data', 3] }],
      outputs: { data: { equal: 'bits', reference: scanned } },
    },
    {
      kernel: 'old_walk',
      name: 'ten steps',
      memory: { out: new Int32Array(1) },
      launches: [{ grid: 1, block: 32, args: ['out'] }],
      outputs: { out: { equal: 'bits', reference: () => [54] } },
    },
    {
      kernel: 'four_barriers',
      name: 'one after the other',
      memory: { out: new Int32Array(32) },
      launches: [{ grid: 1, block: 64, args: ['out'] }],
      outputs: {
        out: {
          equal: 'bits',
          reference: () => Array.from({ length: 32 }, (_, lane) => 100 + lane),
        },
      },
    },
  ],
};
