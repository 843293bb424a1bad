/** Graphs, sparse matrices, and structures that threads share without a barrier. */
import { expect } from 'vitest';

import { Values } from '../host-values.js';
import type { SampleModule } from '../sample-case.js';

const random = new Values(33);

const nodes = 1500;
const edges = random.integers(2 * 1300, 0, nodes - 1);
const ascending = Int32Array.from({ length: nodes }, (_, i) => i);
function components(): number[] {
  const parents = [...ascending];
  const root = (x: number): number => (parents[x] === x ? x : root(parents[x]!));
  for (let i = 0; i < edges.length; i += 2) {
    const [a, b] = [root(edges[i]!), root(edges[i + 1]!)];
    parents[Math.max(a, b)] = Math.min(a, b);
  }
  return parents.map((_, x) => root(x));
}

const [wide, high] = [7, 50];
const cells = random.words(wide * high);
function generation(words: Uint32Array): Uint32Array {
  const across = wide * 32;
  const alive = (x: number, y: number): number =>
    (words[((y + high) % high) * wide + (((x + across) % across) >> 5)]! >>> (x & 31)) & 1;
  const next = new Uint32Array(words.length);
  for (let y = 0; y < high; y++) {
    for (let x = 0; x < across; x++) {
      let around = -alive(x, y);
      for (let dy = -1; dy <= 1; dy++)
        for (let dx = -1; dx <= 1; dx++) around += alive(x + dx, y + dy);
      if (around === 3 || (around === 2 && alive(x, y)))
        next[y * wide + (x >> 5)]! |= 1 << (x & 31);
    }
  }
  return next;
}

const counted = Uint32Array.from({ length: 5000 }, () => random.below(1000));
const slots = 1511;
const counts = (): bigint[] =>
  Array.from({ length: 1000 }, (_, key) => BigInt(counted.filter((one) => one === key).length)).map(
    (n, key) => (n === 0n ? 0n : n * 1000n + BigInt(key)),
  );

/** Rows of up to `most` entries. */
function rowsOf(count: number, most: number): Int32Array {
  const ends = new Int32Array(count + 1);
  for (let i = 0; i < count; i++) ends[i + 1] = ends[i]! + random.below(most + 1);
  return ends;
}
const from = rowsOf(400, 5);
const to = random.integers(from[400]!, 0, 399);
const lengths = random.integers(from[400]!, 1, 100);
const far: number = 0x3fffffff;
function shortest(): number[] {
  const distances = Array.from({ length: 400 }, (_, i) => (i === 0 ? 0 : far));
  for (let change = true; change;) {
    change = false;
    for (let v = 0; v < 400; v++) {
      for (let j = from[v]!; distances[v] !== far && j < from[v + 1]!; j++) {
        const length = distances[v]! + lengths[j]!;
        if (length < distances[to[j]!]!) [distances[to[j]!], change] = [length, true];
      }
    }
  }
  return distances;
}

/** A lower triangle with a diagonal of ones, so that all values stay whole. */
const triangle = Array.from({ length: 200 }, (_, row) => [
  ...new Set(Array.from({ length: row === 0 ? 0 : random.below(6) }, () => random.below(row))),
  row,
]);
const rows = Int32Array.from({ length: 201 }, (_, row) => triangle.slice(0, row).flat().length);
const columns = Int32Array.from(triangle.flat());
const entries = Float64Array.from(
  triangle.flatMap((row) => row.map((_, i) => (i === row.length - 1 ? 1 : random.below(3) - 1))),
);
const right = Float64Array.from({ length: 200 }, () => random.below(9));
function solution(): number[] {
  const x: number[] = [];
  for (let row = 0; row < 200; row++) {
    let sum = right[row]!;
    for (let j = rows[row]!; j < rows[row + 1]! - 1; j++) sum -= entries[j]! * x[columns[j]!]!;
    x.push(sum);
  }
  return x;
}

const matrixRows = Int32Array.from(
  Array.from({ length: 90 }, (_, row) =>
    Array.from({ length: random.below(40) }, () => row),
  ).flat(),
);
const matrixColumns = random.integers(matrixRows.length, 0, 49);
const weights = random.wholeFloats(matrixRows.length, 0, 9);
const vector = random.wholeFloats(50, 0, 9);
function product(): Float32Array {
  const y = new Float32Array(90);
  matrixRows.forEach((row, i) => {
    y[row]! += weights[i]! * vector[matrixColumns[i]!]!;
  });
  return y;
}

const keys = random.words(256);
const [left, other] = [
  random.integers(1200, -999, 999).sort(),
  random.integers(800, -999, 999).sort(),
];

export const GRAPHS: SampleModule = {
  name: 'graphs',
  cases: [
    {
      kernel: 'cc_flat',
      name: 'after cc_link',
      memory: { edges, parents: ascending, out: new Int32Array(nodes) },
      launches: [
        { grid: 11, block: 128, args: ['edges', 'parents', 1300], kernel: 'cc_link' },
        { grid: 12, block: 128, args: ['parents', 'out', nodes] },
      ],
      outputs: { out: { equal: 'bits', reference: components } },
    },
    {
      kernel: 'life',
      name: 'two generations',
      memory: { cells, next: new Uint32Array(wide * high) },
      launches: [
        { grid: [1, 7], block: [8, 8], args: ['cells', 'next', wide, high] },
        { grid: [1, 7], block: [8, 8], args: ['next', 'cells', wide, high] },
      ],
      outputs: { cells: { equal: 'bits', reference: () => generation(generation(cells)) } },
    },
    {
      kernel: 'sum64',
      name: 'after hash64',
      memory: {
        counted,
        keys: new BigUint64Array(slots),
        values: new BigUint64Array(slots),
        out: new BigUint64Array(1000),
      },
      launches: [
        { grid: 5, block: 256, args: ['counted', 'keys', 'values', slots, 5000], kernel: 'hash64' },
        { grid: 6, block: 256, args: ['keys', 'values', 'out', slots] },
      ],
      outputs: { out: { equal: 'bits', reference: counts } },
    },
    {
      kernel: 'queue',
      name: 'as many takers as givers',
      memory: {
        cells: new Uint32Array(32),
        head: new Uint32Array(1),
        tail: new Uint32Array(1),
        sum: new BigUint64Array(1),
        seen: new Uint32Array(64),
      },
      launches: [
        { grid: 1, block: 32, args: ['cells', 16], kernel: 'q_init' },
        { grid: 4, block: 64, args: ['cells', 16, 'head', 'tail', 'sum', 'seen', 5] },
      ],
      outputs: {
        sum: {
          equal: 'bits',
          reference: () => [
            Array.from({ length: 640 }, (_, i) => BigInt(Math.floor(i / 5) * 10 + (i % 5))).reduce(
              (sum, one) => sum + one,
            ),
          ],
        },
        seen: {
          equal: 'bits',
          check: (seen: Uint32Array) => {
            expect(seen.reduce((sum, one) => sum + one)).toBe(640);
          },
        },
      },
    },
    {
      kernel: 'sssp',
      name: 'forty rounds',
      memory: {
        from,
        to,
        lengths,
        distances: Int32Array.from({ length: 400 }, (_, i) => (i === 0 ? 0 : far)),
        changed: new Int32Array(1),
      },
      launches: Array.from({ length: 40 }, () => ({
        grid: 4,
        block: 128,
        args: ['from', 'to', 'lengths', 'distances', 'changed', 400],
      })),
      outputs: { distances: { equal: 'bits', reference: shortest } },
    },
    {
      kernel: 'sptrsv',
      name: 'warps that wait for each other',
      memory: {
        rows,
        columns,
        entries,
        right,
        x: new Float64Array(200),
        done: new Int32Array(200),
      },
      launches: [
        { grid: 25, block: 256, args: ['rows', 'columns', 'entries', 'right', 'x', 'done', 200] },
      ],
      outputs: { x: { equal: 'bits', reference: solution } },
    },
    {
      kernel: 'coo',
      name: 'rows of 0 to 39 entries',
      memory: { matrixRows, matrixColumns, weights, vector, y: new Float32Array(90) },
      launches: [
        {
          grid: Math.ceil(matrixRows.length / 128),
          block: 128,
          args: ['matrixRows', 'matrixColumns', 'weights', 'vector', 'y', matrixRows.length],
        },
      ],
      outputs: { y: { equal: 'bits', reference: product } },
    },
    {
      kernel: 'radix',
      name: 'a block',
      memory: { keys, out: new Uint32Array(256) },
      launches: [{ grid: 1, block: 256, args: ['keys', 'out', 256] }],
      outputs: { out: { equal: 'bits', reference: () => keys.slice().sort() } },
    },
    {
      kernel: 'mpath',
      name: 'seven a thread',
      memory: { left, other, out: new Int32Array(2000) },
      launches: [{ grid: 2, block: 256, args: ['left', 1200, 'other', 800, 'out', 7] }],
      outputs: { out: { equal: 'bits', reference: () => Int32Array.of(...left, ...other).sort() } },
    },
    {
      kernel: 'locks',
      name: 'five blocks',
      memory: { counters: new Int32Array(2) },
      launches: [{ grid: 5, block: 64, args: ['counters', 0] }],
      outputs: { counters: { equal: 'bits', reference: () => [960, 960] } },
    },
  ],
};
