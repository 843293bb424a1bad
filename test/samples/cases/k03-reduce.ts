/** Sums by shuffles, by a tree in shared memory, and by the last block. */
import { near } from '../equality.js';
import { Values } from '../host-values.js';
import type { SampleModule } from '../sample-case.js';

const { fround } = Math;
const random = new Values(3);
const n = 5003;
const whole = random.wholeFloats(n, -100, 100);
const fractions = random.floats(n, -1, 1);

const sum = (values: ArrayLike<number>): number =>
  Array.from(values).reduce((total, value) => total + value, 0);

/** shfl.down adds: lanes whose partner is beyond the warp add their own value. */
function warpSum(lanes: number[]): number {
  let current = lanes;
  for (let offset = 16; offset > 0; offset >>= 1)
    current = current.map((value, lane) => fround(value + (current[lane + offset] ?? value)));
  return current[0]!;
}

/** What reduce_sum's one block of `threads` adds to its output. */
function blockSum(values: Float32Array, threads: number): number {
  const own = Array.from({ length: threads }, (_, t) => {
    let v = 0;
    for (let i = t; i < values.length; i += threads) v = fround(v + values[i]!);
    return v;
  });
  const warps = Array.from({ length: threads / 32 }, (_, w) =>
    warpSum(own.slice(w * 32, w * 32 + 32)),
  );
  return warpSum(Array.from({ length: 32 }, (_, lane) => warps[lane] ?? 0));
}

function tree(values: number[]): number {
  let current = values;
  for (let k = current.length / 2; k >= 1; k /= 2)
    current = current.slice(0, k).map((value, t) => fround(value + current[t + k]!));
  return current[0]!;
}

const treeSums = (values: Float32Array, blocks: number, threads: number): number[] =>
  Array.from({ length: blocks }, (_, block) =>
    tree(
      Array.from({ length: threads }, (_, t) =>
        fround(
          (values[block * threads * 2 + t] ?? 0) + (values[block * threads * 2 + t + threads] ?? 0),
        ),
      ),
    ),
  );

function lastBlock(values: Float32Array, blocks: number): number[] {
  return Array.from({ length: blocks }, (_, block) =>
    tree(
      Array.from({ length: 256 }, (_, t) => {
        let s = 0;
        for (let i = block * 256 + t; i < values.length; i += blocks * 256)
          s = fround(s + values[i]!);
        return s;
      }),
    ),
  );
}

export const K03_REDUCE: SampleModule = {
  name: 'k03_reduce',
  cases: [
    {
      kernel: 'reduce_sum',
      name: 'whole numbers, seven blocks in any order',
      memory: { x: whole, out: Float32Array.of(-5) },
      launches: [{ grid: 7, block: 256, args: ['x', 'out', n] }],
      outputs: { out: { equal: 'bits', reference: () => [sum(whole) - 5] } },
    },
    {
      kernel: 'reduce_sum',
      name: 'fractions, one block',
      memory: { x: fractions, out: new Float32Array(1) },
      launches: [{ grid: 1, block: 1024, args: ['x', 'out', n] }],
      outputs: { out: { equal: 'bits', reference: () => [blockSum(fractions, 1024)] } },
    },
    {
      // Seven partial sums below 64 in any order: an error of half an ulp each.
      kernel: 'reduce_sum',
      name: 'fractions, seven blocks in any order',
      memory: { x: fractions, out: new Float32Array(1) },
      launches: [{ grid: 7, block: 128, args: ['x', 'out', n] }],
      outputs: {
        out: {
          equal: near(7, 64),
          reference: () => [sum(fractions)],
          referenceEqual: near(20, 64),
        },
      },
    },
    {
      kernel: 'reduce_tree',
      name: 'fractions, the last block in part',
      memory: { x: fractions, out: new Float32Array(10) },
      launches: [{ grid: 10, block: 256, shared: 1024, args: ['x', 'out', n] }],
      outputs: { out: { equal: 'bits', reference: () => treeSums(fractions, 10, 256) } },
    },
    {
      kernel: 'reduce_tree',
      name: 'infinities of both signs',
      memory: { x: Float32Array.of(1, Infinity, 2, -Infinity, -0, -0), out: new Float32Array(3) },
      launches: [{ grid: 3, block: 1, shared: 4, args: ['x', 'out', 6] }],
      outputs: { out: { equal: 'bits', reference: () => [Infinity, -Infinity, -0] } },
    },
    {
      kernel: 'reduce_lastblock',
      name: 'fractions, three times over',
      memory: { x: fractions, part: new Float32Array(9), out: new Float32Array(1) },
      launches: Array.from({ length: 3 }, () => ({
        grid: 9,
        block: 256,
        args: ['x', 'part', 'out', n],
      })),
      outputs: {
        part: { equal: 'bits', reference: () => lastBlock(fractions, 9) },
        out: {
          equal: 'bits',
          reference: () => [
            lastBlock(fractions, 9).reduce((total, part) => fround(total + part), 0),
          ],
        },
      },
    },
  ],
};
