/** Matrix instructions on whole numbers, whose sums are exact in any order; asynchronous copies. */
import { Values } from '../host-values.js';
import type { SampleModule } from '../sample-case.js';

const random = new Values(35);

const [aBits, bBits] = [random.words(32), random.words(32)];
function bitProducts(): number[] {
  const ones = (word: number): number =>
    [...(word >>> 0).toString(2)].filter((digit) => digit === '1').length;
  const sum = (term: (k: number) => number, length: number): number =>
    Array.from({ length }, (_, k) => term(k)).reduce((total, one) => total + one);
  const nibble = (words: Uint32Array, row: number, k: number): number =>
    (words[4 * row + (k >> 3)]! << (28 - 4 * (k & 7))) >> 28;
  const places = Array.from({ length: 64 }, (_, p) => [p >> 3, p & 7] as const);
  const different = places.map(
    ([i, j]) => 1 + sum((k) => ones(aBits[4 * i + k]! ^ bBits[4 * j + k]!), 4),
  );
  // This one is stored column by column.
  const both = places.map(
    ([j, i]) => different[8 * i + j]! + sum((k) => ones(aBits[4 * i + k]! & bBits[4 * j + k]!), 4),
  );
  return [
    ...different,
    ...both,
    ...places.map(([i, j]) => sum((k) => nibble(aBits, i, k) * nibble(bBits, j, k), 32) - 5),
  ];
}

/** -8 to 8 in f16. */
const small = random.integers(128 * 96 + 64 * 96, -8, 8);
function half(v: number): number {
  const exponent = Math.floor(Math.log2(Math.abs(v)));
  return v === 0
    ? 0
    : (v < 0 ? 0x8000 : 0) | ((exponent + 15) << 10) | ((Math.abs(v) / 2 ** exponent - 1) * 1024);
}
const halves = Uint16Array.from(small, half);
const [aSmall, bSmall] = [small.subarray(0, 128 * 96), small.subarray(128 * 96)];
function tiles(): number[] {
  return Array.from({ length: 128 * 64 }, (_, p) => {
    let sum = 0;
    for (let k = 0; k < 96; k++) sum += aSmall[(p >> 6) * 96 + k]! * bSmall[(p & 63) * 96 + k]!;
    return sum;
  });
}

const signed = Int8Array.from({ length: 16 * 32 }, () => random.word());
const unsigned = Uint8Array.from({ length: 32 * 8 }, () => random.word());
const sums = Int32Array.from({ length: 128 }, () =>
  random.one([2147480000, -2147480000, random.below(1000)]),
);
function saturated(c: number, p: number): number {
  let sum = c;
  for (let k = 0; k < 32; k++) sum += signed[(p >> 3) * 32 + k]! * unsigned[8 * k + (p & 7)]!;
  return Math.max(-(2 ** 31), Math.min(2 ** 31 - 1, sum));
}

const batches = 11;
const values = random.integers(3 * batches * 96, 0, 999);
function piped(_: unknown, p: number): number {
  const [block, thread] = [Math.floor(p / 96), p % 96];
  let sum = 0;
  for (let b = 0; b < batches; b++)
    sum = (Math.imul(sum, 3) + values[(block * batches + b) * 96 + ((thread + b) % 96)]!) | 0;
  return sum;
}

const rounds = 25;
const items = random.wholeFloats(32 * rounds, 0, 99);
function ringed(_: unknown, p: number): number {
  const [warp, lane] = [(p >> 5) + 1, p & 31];
  let sum = 0;
  for (let i = 0; i < rounds; i++) sum += items[32 * i + ((lane * warp + i) & 31)]! * warp;
  return sum;
}

export const MATRICES: SampleModule = {
  name: 'matrices',
  cases: [
    {
      kernel: 'wm_b1',
      name: 'any bits',
      memory: { aBits, bBits, out: new Int32Array(192) },
      launches: [{ grid: 1, block: 32, args: ['aBits', 'bBits', 'out'] }],
      outputs: { out: { equal: 'bits', reference: bitProducts } },
    },
    {
      kernel: 'hgemm',
      name: '128 x 64 x 96',
      memory: {
        a: halves.slice(0, 128 * 96),
        b: halves.slice(128 * 96),
        c: new Float32Array(128 * 64),
      },
      launches: [{ grid: [2, 2], block: 128, args: ['a', 'b', 'c', 128, 64, 96] }],
      outputs: { c: { equal: 'bits', reference: tiles } },
    },
    {
      kernel: 'imma',
      name: 'sums at the limits',
      memory: { signed, unsigned, sums, out: new Int32Array(128) },
      launches: [{ grid: 1, block: 32, args: ['signed', 'unsigned', 'sums', 'out'] }],
      outputs: { out: { equal: 'bits', reference: () => Array.from(sums, saturated) } },
    },
    {
      kernel: 'pipe',
      name: 'more batches than stages',
      memory: { values, out: new Int32Array(288) },
      launches: [{ grid: 3, block: 128, args: ['values', 'out', batches] }],
      outputs: { out: { equal: 'bits', reference: () => Array.from({ length: 288 }, piped) } },
    },
    {
      kernel: 'ring',
      name: 'more items than slots',
      memory: { items, out: new Float32Array(96) },
      launches: [{ grid: 1, block: 128, args: ['items', 'out', rounds] }],
      outputs: { out: { equal: 'bits', reference: () => Array.from({ length: 96 }, ringed) } },
    },
  ],
};
