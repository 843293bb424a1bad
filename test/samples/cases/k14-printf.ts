/** Clocks and the device's heap. What prints or ends the device is in `programs.ts`. */
import { expect } from 'vitest';

import type { SampleModule } from '../sample-case.js';

export const K14_PRINTF: SampleModule = {
  name: 'k14_printf',
  cases: [
    {
      kernel: 'trapk',
      name: 'without a trap it reads the clocks',
      memory: { p: Int32Array.of(43, 0, -1, -5, -1, -1, 9) },
      launches: [{ grid: 1, block: 1, args: ['p'] }],
      outputs: {
        p: {
          equal: 'bits',
          normalForm: (p: Int32Array) =>
            p.map((value, i) => (i === 2 || i === 4 || i === 5 ? 0 : value)),
          check: (p: Int32Array) =>
            expect(new BigInt64Array(p.slice(4, 6).buffer)[0]).toBeGreaterThanOrEqual(0n),
          reference: () => [43, 0, 0, -5, 0, 0, 9],
        },
      },
    },
    {
      kernel: 'dmalloc',
      name: 'a block of memory for each of 70 threads',
      memory: { p: new BigUint64Array(72) },
      launches: [{ grid: 1, block: 70, args: ['p'] }],
      outputs: {
        p: {
          equal: 'bits',
          normalForm: (p: BigUint64Array) => p.map((pointer) => (pointer === 0n ? 0n : 1n)),
          check: (p: BigUint64Array) => {
            const sorted = [...p.slice(0, 70)].sort((a, b) => (a < b ? -1 : 1));
            for (let i = 1; i < 70; i++)
              expect(sorted[i]! - sorted[i - 1]!).toBeGreaterThanOrEqual(64n);
            // malloc aligns to 16 bytes.
            for (const pointer of sorted) expect(pointer % 16n).toBe(0n);
          },
          reference: () => BigUint64Array.from({ length: 72 }, (_, i) => (i < 70 ? 1n : 0n)),
        },
      },
    },
  ],
};
