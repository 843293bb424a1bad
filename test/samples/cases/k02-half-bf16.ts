/** Half and bfloat16 arithmetic, conversions, and the half functions of cuda_fp16.h. */
import { near, numbersOf } from '../equality.js';
import { Values } from '../host-values.js';
import { bf16, f16, f32 } from '../reference/rounded.js';
import type { SampleModule } from '../sample-case.js';

const random = new Values(2);
const n = 900;
const a = random.wildHalves(n);
const b = random.wildHalves(n);
const c = random.wildHalves(n);
const pairs = random.wildHalves(n * 2);
const floats = random.wildFloats(n);
for (let i = 0; i < n; i += 3) floats[i] = Math.fround(random.unit() * 400 - 200);

const halves = (words: Uint16Array): number[] => Array.from(numbersOf(words, 'f16'), Number);
const bfloats = (words: Uint16Array): number[] => Array.from(numbersOf(words, 'bf16'), Number);
/** fmaxf and fminf: the operand that is a number. */
const clampToByte = (x: number): number =>
  Math.min(Number.isNaN(x) ? -128 : Math.max(x, -128), 127);
const nearestEven = (x: number): number => {
  const floor = Math.floor(x);
  return x - floor > 0.5 || (x - floor === 0.5 && floor % 2 !== 0) ? floor + 1 : floor;
};

/**
 * No value lies between h[0] and what becomes of it: when thread 0 writes it makes no difference to
 * the others.
 */
const arguments16 = random.wildHalves(n).map((word) => {
  const x = numbersOf(Uint16Array.of(word), 'f16')[0] as number;
  return x > 0.25 && x < 5 ? word ^ 0x8000 : word;
});
arguments16[0] = 0x3400;

function hmath(x: number): number {
  const larger = Number.isNaN(x) ? 0.5 : Math.max(x, 0.5);
  const product = f16.round(f16.round(Math.sqrt(x)) * f16.round(1 / x));
  const result = f16.round(f16.round(f16.round(Math.exp(x)) + product) + larger);
  return x > 0.25 ? x : result;
}

export const K02_HALF_BF16: SampleModule = {
  name: 'k02_half_bf16',
  cases: [
    {
      kernel: 'vadd_half',
      name: 'all kinds of halves',
      memory: { a, b, c },
      launches: [{ grid: 4, block: 256, args: [n, 'a', 'b', 'c'] }],
      outputs: {
        c: {
          equal: 'bits',
          format: 'f16',
          reference: () => halves(a).map((x, i) => f16.round(x + halves(b.subarray(i, i + 1))[0]!)),
        },
      },
    },
    {
      kernel: 'vadd_half2',
      name: 'fused, in pairs',
      memory: { a, b, c },
      launches: [{ grid: 2, block: 256, args: [n / 2, 'a', 'b', 'c'] }],
      outputs: {
        c: {
          equal: 'bits',
          format: 'f16',
          reference: () => {
            const [x, y, z] = [halves(a), halves(b), halves(c)];
            return x.map((value, i) => f16.fma(value, y[i]!, z[i]!));
          },
        },
      },
    },
    {
      kernel: 'vadd_bf16',
      name: 'all kinds of bfloats',
      memory: { a, b, c },
      launches: [{ grid: 4, block: 256, args: [n, 'a', 'b', 'c'] }],
      outputs: {
        c: {
          equal: 'bits',
          format: 'bf16',
          reference: () =>
            bfloats(a).map((x, i) => bf16.fma(x, 1, bfloats(b.subarray(i, i + 1))[0]!)),
        },
      },
    },
    {
      kernel: 'vmix',
      name: 'bfloat pairs and halves to floats',
      memory: { a: pairs, b, c: new Float32Array(n) },
      launches: [{ grid: 8, block: 128, args: [n, 'a', 'b', 'c'] }],
      outputs: {
        c: {
          equal: 'bits',
          reference: () => {
            const [x, y] = [bfloats(pairs), halves(b)];
            return y.map((value, i) => f32.fma(x[2 * i]!, value, x[2 * i + 1]!));
          },
        },
      },
    },
    {
      kernel: 'cvts',
      name: 'all kinds of floats',
      memory: { a: floats, h: new Uint16Array(n), b: new Uint16Array(n), s: new Int8Array(n) },
      launches: [{ grid: 4, block: 256, args: [n, 'a', 'h', 'b', 's'] }],
      outputs: {
        h: { equal: 'bits', format: 'f16', reference: () => Array.from(floats, f16.round) },
        b: { equal: 'bits', format: 'bf16', reference: () => Array.from(floats, bf16.round) },
        s: {
          equal: 'bits',
          reference: () => Array.from(floats, (x) => nearestEven(clampToByte(x)) + 0),
        },
      },
    },
    {
      // ex2, sqrt and rcp.approx are within 2 ulp of f32 and round to a neighbour in f16 at worst;
      // the product and the sum that follow it are without .rn, so ptxas may round them once.
      kernel: 'hmath',
      name: 'all kinds of halves',
      memory: { h: arguments16 },
      launches: [{ grid: 4, block: 256, args: [n, 'h'] }],
      outputs: {
        h: {
          equal: near(2),
          format: 'f16',
          reference: () =>
            halves(arguments16).map((x, i) =>
              i === 0
                ? f16.round(f16.round(f16.round(Math.exp(x)) + f16.round(0.5 * 4)) + 0.5)
                : hmath(x),
            ),
        },
      },
    },
  ],
};
