/** Sparse products, the game of life, option prices, a hash. */
import { near } from '../equality.js';
import { Values } from '../host-values.js';
import { f32 } from '../reference/rounded.js';
import { normalCdf } from '../reference/special-functions.js';
import type { SampleModule } from '../sample-case.js';

const { fround } = Math;
const random = new Values(19);

const rows = 21;
const lengths = Array.from({ length: rows }, (_, i) => [0, 1, 31, 32, 33, 70, 5][i % 7]!);
const rp = Int32Array.of(
  0,
  ...lengths.map((_, i) => lengths.slice(0, i + 1).reduce((sum, length) => sum + length, 0)),
);
const entries = rp[rows]!;
const ci = random.integers(entries, 0, 99);
const v = random.floats(entries, -1, 1);
const x = random.floats(100, -1, 1);
function row(r: number): number {
  let lanes = Array.from({ length: 32 }, (_, lane) => {
    let sum = 0;
    for (let j = rp[r]! + lane; j < rp[r + 1]!; j += 32) sum = f32.fma(v[j]!, x[ci[j]!]!, sum);
    return sum;
  });
  for (let offset = 16; offset > 0; offset >>= 1)
    lanes = lanes.map((value, lane) => fround(value + (lanes[lane + offset] ?? value)));
  return lanes[0]!;
}

const [w, h] = [37, 19];
const cells = Uint8Array.from({ length: w * h }, () => random.below(2));
function lives(value: number, at: number): number {
  let n = 0;
  for (let dy = -1; dy <= 1; dy++) {
    for (let dx = -1; dx <= 1; dx++) {
      if (dx !== 0 || dy !== 0)
        n += cells[((Math.floor(at / w) + dy + h) % h) * w + (((at % w) + dx + w) % w)]!;
    }
  }
  return n === 3 || (n === 2 && value !== 0) ? 1 : 0;
}

const n = 300;
const [S, X, T] = [random.floats(n, 5, 30), random.floats(n, 1, 100), random.floats(n, 0.25, 10)];
const [R, V] = [fround(0.02), fround(0.3)];
function prices(i: number): [call: number, put: number] {
  const q = Math.sqrt(T[i]!);
  const d1 = (Math.log(S[i]! / X[i]!) + (R + 0.5 * V * V) * T[i]!) / (V * q);
  const [k1, k2, e] = [normalCdf(d1), normalCdf(d1 - V * q), Math.exp(-R * T[i]!)];
  return [S[i]! * k1 - X[i]! * e * k2, X[i]! * e * (1 - k2) - S[i]! * (1 - k1)];
}

const input = random.words(16 * 64);
function hash(t: number): number {
  const words = [...input.subarray(t * 16, t * 16 + 16)];
  let [a, b, c, d] = [0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476];
  for (let i = 0; i < 64; i++) {
    const f =
      i < 16
        ? (b & c) | (~b & d)
        : i < 32
          ? b ^ c ^ d
          : i < 48
            ? (b & c) | (b & d) | (c & d)
            : c ^ (b | ~d);
    const sum = (a + f + words[i & 15]!) >>> 0;
    a = d;
    d = c;
    c = b;
    b = (b + ((sum << ((i % 31) + 1)) | (sum >>> (31 - (i % 31))))) >>> 0;
    words[i & 15] = (Math.imul(words[i & 15]!, 5) + words[(i + 3) & 15]!) >>> 0;
  }
  return (a + b + c + d) >>> 0;
}

export const K19_SPMV: SampleModule = {
  name: 'k19_spmv',
  cases: [
    {
      kernel: 'csr_vector',
      name: 'rows of 0 to 70 entries',
      memory: { rp, ci, v, x, y: new Float32Array(rows) },
      launches: [{ grid: 3, block: 256, args: [rows, 'rp', 'ci', 'v', 'x', 'y'] }],
      outputs: {
        y: { equal: 'bits', reference: () => Array.from({ length: rows }, (_, r) => row(r)) },
      },
    },
    {
      kernel: 'life',
      name: '37 × 19',
      memory: { cells, next: new Uint8Array(w * h) },
      launches: [{ grid: [3, 3], block: [16, 8], args: ['cells', 'next', w, h] }],
      outputs: { next: { equal: 'bits', reference: () => cells.map(lives) } },
    },
    {
      // lg2 and ex2.approx, and prices of up to 100 of which two are subtracted.
      kernel: 'blackscholes',
      name: '300 options',
      memory: { call: new Float32Array(n), put: new Float32Array(n), S, X, T },
      launches: [{ grid: 3, block: 128, args: ['call', 'put', 'S', 'X', 'T', 0.02, 0.3, n] }],
      outputs: {
        call: {
          equal: near(8, 100),
          reference: () => Array.from({ length: n }, (_, i) => prices(i)[0]),
          referenceEqual: near(32, 100),
        },
        put: {
          equal: near(8, 100),
          reference: () => Array.from({ length: n }, (_, i) => prices(i)[1]),
          referenceEqual: near(32, 100),
        },
      },
    },
    {
      kernel: 'sha_like',
      name: '64 messages',
      memory: { input, o: new Uint32Array(64) },
      launches: [{ grid: 2, block: 32, args: ['input', 'o', 64] }],
      outputs: {
        o: { equal: 'bits', reference: () => Uint32Array.from({ length: 64 }, (_, t) => hash(t)) },
      },
    },
  ],
};
