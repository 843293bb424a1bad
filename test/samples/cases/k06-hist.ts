/** Atomics: a histogram, one of every kind, and a spin lock. */
import { expect } from 'vitest';

import { Values } from '../host-values.js';
import type { SampleModule } from '../sample-case.js';

const random = new Values(6);
const n = 4099;
// Half of all in three bins: many threads at the same address.
const data = Uint8Array.from(random.bytes(n), (byte, i) => (i % 2 === 0 ? byte % 3 : byte));
const before = Uint32Array.from({ length: 256 }, (_, i) => (i === 7 ? 4294967295 : i));

const i = Int32Array.of(-3, -2147483648, 5, 0, 77, 0, 2147483647, -1);
const u = new Uint32Array(40);
u.set([0xffffffff, 0, 3, 0x12345678, 16, 40]);
u.fill(99, 8);
const l = BigUint64Array.of(2n ** 64n - 3n, 7n, 0n);
const f = Float32Array.of(0.25, -1);
const d = Float64Array.of(-2.5);
const sl = BigInt64Array.of(100n);

const xorOfThreads = 0; // 0 ^ 1 ^ … ^ 31

/** What atomicInc leaves: back to 0 from 16, and from all above it. */
function incremented(value: number, times: number): number {
  let now = value;
  for (let time = 0; time < times; time++) now = now >= 16 ? 0 : now + 1;
  return now;
}

function decremented(value: number, times: number): number {
  let now = value;
  for (let time = 0; time < times; time++) now = now === 0 || now > 16 ? 16 : now - 1;
  return now;
}

export const K06_HIST: SampleModule = {
  name: 'k06_hist',
  cases: [
    {
      kernel: 'hist256',
      name: '4099 bytes, crowded bins, a count that wraps',
      memory: { data, h: before },
      launches: [{ grid: 3, block: 160, args: ['data', 'h', n] }],
      outputs: {
        h: {
          equal: 'bits',
          reference: () => {
            const counts = before.slice();
            for (const byte of data) counts[byte]!++;
            return counts;
          },
        },
      },
    },
    {
      kernel: 'atomics',
      name: 'one of every kind, from 32 threads',
      memory: { i, u, l, f, d, sl },
      launches: [{ grid: 1, block: 32, args: ['i', 'u', 'l', 'f', 'd', 'sl'] }],
      outputs: {
        i: {
          equal: 'bits',
          // The last exchange, and the first value of the compare-and-swap, depend on the order.
          normalForm: (values: Int32Array) =>
            values.map((value, at) => (at === 4 || at === 5 ? 0 : value)),
          check: (values: Int32Array) => {
            expect(values[4]).toBeGreaterThanOrEqual(0);
            expect(values[4]).toBeLessThan(32);
            // The old value of an exchange: 77, or a thread other than 0, for 0 is what it
            // replaces.
            expect(values[5] === 77 || (values[5]! > 0 && values[5]! < 32)).toBe(true);
          },
          reference: () => [
            -3 + 496,
            -2147483648 - 32 + 2 ** 32,
            0,
            0,
            0,
            0,
            (2147483647 + 32) | 0,
            31,
          ],
        },
        u: {
          equal: 'bits',
          // The compare-and-swap gives 0 until it has swapped, then the one value that is there for
          // good.
          normalForm: (values: Uint32Array) => values.map((value, at) => (at < 8 ? value : 0)),
          check: (values: Uint32Array) => {
            const given = new Set(values.slice(8));
            expect(given.has(0)).toBe(true);
            expect(given.size).toBeLessThanOrEqual(2);
          },
          reference: () => [
            0,
            0xffffffff,
            31,
            0x12345678 ^ xorOfThreads,
            incremented(16, 32),
            decremented(40, 32),
            0,
            0,
            ...Array.from({ length: 32 }, () => 0),
          ],
        },
        l: { equal: 'bits', reference: () => BigUint64Array.of(29n, 31n, 5n) },
        f: { equal: 'bits', reference: () => [48.25, 3] },
        d: { equal: 'bits', reference: () => [77.5] },
        // -threadIdx.x is unsigned: widened, it is 0 or above 2^31.
        sl: { equal: 'bits', reference: () => BigInt64Array.of(0n) },
      },
    },
    {
      kernel: 'spin',
      name: 'a lock between the threads of a warp and of five blocks',
      memory: { lock: new Int32Array(1), data: Int32Array.of(-7) },
      launches: [{ grid: 5, block: 70, args: ['lock', 'data'] }],
      outputs: {
        lock: { equal: 'bits', reference: () => [0] },
        data: { equal: 'bits', reference: () => [343] },
      },
    },
  ],
};
