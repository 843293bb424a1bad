/** Random numbers, 128-bit arithmetic, bit manipulation. */
import { near } from '../equality.js';
import { Values } from '../host-values.js';
import type { SampleModule } from '../sample-case.js';

const { fround } = Math;
const random = new Values(12);
const seed = 0xfedcba9876543210n;

/** Philox4x32-10 of the counter (i, 0, 0, 0). */
function philox(i: number): number[] {
  let c = [BigInt(i), 0n, 0n, 0n];
  let k = [seed & 0xffffffffn, seed >> 32n];
  for (let round = 0; round < 10; round++) {
    const [p, q] = [0xd2511f53n * c[0]!, 0xcd9e8d57n * c[2]!];
    c = [(q >> 32n) ^ c[1]! ^ k[0]!, q & 0xffffffffn, (p >> 32n) ^ c[3]! ^ k[1]!, p & 0xffffffffn];
    k = [BigInt.asUintN(32, k[0]! + 0x9e3779b9n), BigInt.asUintN(32, k[1]! + 0xbb67ae85n)];
  }
  return c.map(Number);
}

const n = 300;
const TO_UNIT = fround(2.3283064e-10);
/** Box and Muller's pair, then two uniform numbers. */
function normals(i: number): number[] {
  const r = philox(i);
  const u = fround(r[0]!) * TO_UNIT + fround(1.16415e-10);
  const v = fround(fround(fround(r[1]!) * TO_UNIT) * fround(6.2831853));
  const s = Math.sqrt(-2 * Math.log(u));
  return [
    s * Math.sin(v),
    s * Math.cos(v),
    fround(fround(r[2]!) * TO_UNIT),
    fround(fround(r[3]!) * TO_UNIT),
  ];
}
const drawn = Array.from({ length: n }, (_, i) => normals(i)).flat();
const part =
  (from: number) =>
  (values: Float32Array): Float32Array =>
    values.filter((_, at) => (at & 2) === from);

const EDGES_64 = [
  0n,
  1n,
  2n ** 64n - 1n,
  2n ** 63n,
  2n ** 63n - 1n,
  2n ** 32n,
  2n ** 32n - 1n,
  2n ** 63n + 1n,
];
const longs = BigUint64Array.of(
  ...EDGES_64,
  ...EDGES_64.map((value, i) => value + BigInt(i)),
  ...random.longs(240),
);
const signed = new BigInt64Array(
  BigUint64Array.of(...[...EDGES_64].reverse(), ...random.longs(248)).buffer,
);

function mulhi64(i: number): bigint {
  const [a0, a1, b0, b1] = [longs[i]!, longs[i + 1]!, signed[i]!, signed[i + 1]!];
  const wide = BigInt.asUintN(128, a0 * a1 + (BigInt.asUintN(64, b0) << 64n));
  const high = BigInt.asUintN(64, ((a0 * a1) >> 64n) + ((b0 * b1) >> 64n));
  return BigInt.asUintN(
    64,
    (high ^ (wide >> 64n) ^ BigInt.asUintN(64, wide)) + a0 / (a1 | 1n) + (b0 % (b1 | 1n)),
  );
}

// x % y where y is 0 is left open.
const words = Uint32Array.of(
  1,
  0xffffffff,
  0x80000000,
  0x7fffffff,
  0x80008000,
  0x7fff7fff,
  0x00ff00ff,
  31,
  32,
  33,
  ...random.words(289),
).map((word) => word || 5);
words[0] = 0;

const popc = (x: number): number => x.toString(2).replaceAll('0', '').length;
const reversed = (x: number): number =>
  Number.parseInt([...x.toString(2).padStart(32, '0')].reverse().join(''), 2);
const byteOf = (x: number, i: number): number => (x >>> (8 * i)) & 255;
const s8 = (x: number): number => (x << 24) >> 24;
const s16 = (x: number): number => (x << 16) >> 16;
const s24 = (x: number): number => (x << 8) >> 8;
/** The bytes that the low three bits of each nibble choose. */
const permuted = (x: number, y: number, s: number): number =>
  [0, 1, 2, 3].reduce((result, i) => {
    const chosen = (s >>> (4 * i)) & 7;
    return result | (byteOf(chosen < 4 ? x : y, chosen & 3) << (8 * i));
  }, 0);
const perByte = (f: (i: number) => number): number =>
  [0, 1, 2, 3].reduce((result, i) => result | ((f(i) & 255) << (8 * i)), 0);

function bits(i: number): number {
  const [x, y] = [words[i]!, words[i + 1]!];
  const [sx, sy] = [x | 0, y | 0];
  const firstSet = x === 0 ? 0 : 32 - Math.clz32(x & -x);
  let r = (popc(x) + Math.clz32(x) + firstSet + reversed(x)) | 0;
  r ^= permuted(x, y, 0x5410) + permuted(x, y, y);
  const pair = (BigInt(y) << 32n) | BigInt(x);
  r =
    (r +
      (Number(BigInt.asUintN(32, pair >> 27n)) ^
        Number(BigInt.asUintN(32, pair >> BigInt(Math.min(y, 32)))))) |
    0;
  r = (r + (((x >>> 3) & 0x3f) | ((y << 8) & 0xff00))) | 0;
  r ^= [0, 1, 2, 3].reduce((sum, b) => sum + s8(byteOf(x, b)) * s8(byteOf(y, b)), r) | 0;
  r = (r + (r + s16(x) * s8(y) + s16(x >>> 16) * s8(y >>> 8))) | 0;
  const [low, high] = [
    Math.max(s16(x), s16(y)) & 0xffff,
    Math.max(s16(x >>> 16), s16(y >>> 16)) & 0xffff,
  ];
  r =
    (r +
      (perByte((b) => byteOf(x, b) + byteOf(y, b)) ^
        (low | (high << 16)) ^
        perByte((b) => Math.abs(byteOf(x, b) - byteOf(y, b))))) |
    0;
  r =
    (r +
      ((Math.abs(x - y) + r) | 0) +
      Math.imul(s24(x), s24(y)) +
      Math.floor((sx + sy) / 2) +
      Math.floor((sx + sy + 1) / 2)) |
    0;
  r = (r + Math.floor(x / 7) + (x % y) + Math.trunc(sx / 3)) | 0;
  const joined = (BigInt(x) << 32n) | BigInt(y);
  const product = BigInt(x) * BigInt(y);
  return (
    (r ^
      joined.toString(2).replaceAll('0', '').length ^
      (64 - (product === 0n ? 0 : product.toString(2).length))) >>>
    0
  );
}

export const K12_PHILOX: SampleModule = {
  name: 'k12_philox',
  cases: [
    {
      // sin and cos.approx are within 2^-20.5 on this range, times at most 6.7.
      kernel: 'philox_normal',
      name: '300 of 320 threads, the normal numbers',
      memory: { o: new Float32Array(n * 4) },
      launches: [{ grid: 5, block: 64, args: ['o', seed, n] }],
      outputs: {
        o: {
          equal: near(10, 8),
          normalForm: part(0),
          reference: () => drawn.filter((_, at) => (at & 2) === 0),
        },
      },
    },
    {
      kernel: 'philox_normal',
      name: '300 of 320 threads, the uniform numbers',
      memory: { o: new Float32Array(n * 4) },
      launches: [{ grid: 5, block: 64, args: ['o', seed, n] }],
      outputs: {
        o: {
          equal: 'bits',
          normalForm: part(2),
          reference: () => drawn.filter((_, at) => (at & 2) === 2),
        },
      },
    },
    {
      kernel: 'mulhi64',
      name: 'extreme and random',
      memory: { a: longs, b: signed, o: new BigUint64Array(256) },
      launches: [{ grid: 2, block: 128, args: ['a', 'b', 'o', 255] }],
      outputs: {
        o: {
          equal: 'bits',
          reference: () =>
            BigUint64Array.from({ length: 256 }, (_, i) => (i < 255 ? mulhi64(i) : 0n)),
        },
      },
    },
    {
      kernel: 'bits',
      name: 'extreme and random',
      memory: { a: words, o: new Uint32Array(299) },
      launches: [{ grid: 5, block: 64, args: ['a', 'o', 298] }],
      outputs: {
        o: {
          equal: 'bits',
          reference: () => Uint32Array.from({ length: 299 }, (_, i) => (i < 298 ? bits(i) : 0)),
        },
      },
    },
  ],
};
