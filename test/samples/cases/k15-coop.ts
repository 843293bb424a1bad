/** Cooperative groups: tiles, coalesced threads, the grid; and the warp's operations. */
import { expect } from 'vitest';

import { Values } from '../host-values.js';
import type { SampleCase, SampleModule, Target } from '../sample-case.js';

const { fround } = Math;
const random = new Values(15);

const x = random.wildIntegers(96);
const add = (a: number, b: number): number => (a + b) | 0;
function tile(i: number): number {
  const warp = x.slice(i & ~31, (i & ~31) + 32);
  const eight = x.slice(i & ~7, (i & ~7) + 8);
  const lane = i & 31;
  const scan = warp.slice(0, lane + 1).reduce(add, 0);
  // shfl_down of the last lane gives it its own value.
  return [
    warp.reduce(add, 0),
    Math.max(...eight),
    scan,
    warp[Math.min(lane + 1, 31)]!,
    eight.some((v) => v > 3) ? 1 : 0,
  ].reduce(add, 0);
}

const chosen = random.integers(130, -2, 3);
const positive = [...chosen.keys()].filter((i) => chosen[i]! > 0);

const n = 1001;
const a = random.floats(n, -1000, 1000);

/** `lanes` is the mask of a whole warp. */
function warpOperations(v: number, threads: number, target: Target): number[] {
  const some = v !== 0 ? 1 : 0;
  const votes = some + some + (some ? -1 : 0);
  const matched = -1 + 1;
  const block = (some ? threads : 0) + some + some;
  const reduced = (Math.imul(32, v) + v + v) | 0;
  return [votes, -1, matched, block, target === 'sm_75' ? 1234 : reduced];
}

const warpops = (v: number, threads: number): SampleCase => ({
  kernel: 'warpops',
  name: `the value ${v} in ${threads} threads`,
  memory: { o: Int32Array.of(0, 0, 0, 0, 1234) },
  launches: [{ grid: 1, block: threads, args: ['o', v] }],
  outputs: { o: { equal: 'bits', reference: (target) => warpOperations(v, threads, target) } },
  differsByTarget: 'the source reduces only where __CUDA_ARCH__ >= 800',
});

export const K15_COOP: SampleModule = {
  name: 'k15_coop',
  cases: [
    {
      kernel: 'cg_tile',
      name: 'three warps, sums that wrap',
      memory: { x, out: new Int32Array(96) },
      launches: [{ grid: 1, block: 96, args: ['x', 'out'] }],
      outputs: {
        out: { equal: 'bits', reference: () => Array.from({ length: 96 }, (_, i) => tile(i)) },
      },
    },
    {
      kernel: 'cg_coalesced',
      name: '130 threads, the last warp of two',
      memory: { c: new Int32Array(132).fill(-1).fill(0, 0, 1), chosen },
      launches: [{ grid: 1, block: 130, args: ['c', 'chosen'] }],
      outputs: {
        c: {
          equal: 'bits',
          // Warps take their places in any order, threads of a warp in theirs.
          normalForm: (c: Int32Array) =>
            Int32Array.of(c[0]!, ...c.slice(1, 1 + c[0]!).sort(), ...c.slice(1 + c[0]!)),
          check: (c: Int32Array) => {
            const at = (thread: number): number => c.indexOf(thread, 1);
            for (let i = 1; i < positive.length; i++) {
              if (positive[i]! >> 5 === positive[i - 1]! >> 5)
                expect(at(positive[i]!)).toBeGreaterThan(at(positive[i - 1]!));
            }
          },
          reference: () => [
            positive.length,
            ...positive,
            ...Array.from({ length: 131 - positive.length }, () => -1),
          ],
        },
      },
    },
    {
      kernel: 'cg_grid',
      name: '1001 floats, four passes by five blocks that wait for each other',
      memory: { a },
      launches: [{ grid: 5, block: 64, cooperative: true, args: ['a', n] }],
      outputs: {
        a: {
          equal: 'bits',
          reference: () =>
            a.map((value) => [1, 2, 3, 4].reduce((now) => fround(now * 0.5 + 1), value)),
        },
      },
    },
    warpops(5, 64),
    warpops(0, 32),
    warpops(-3, 96),
    warpops(-2147483648, 64),
  ],
};
