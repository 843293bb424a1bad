/** Rows and elements of a transformer: softmax, RMS norm, GELU and SiLU, rotary embedding. */
import { near } from '../equality.js';
import { SPECIAL_F32, Values } from '../host-values.js';
import type { SampleModule } from '../sample-case.js';

const { fround } = Math;
const random = new Values(5);
const [rows, columns] = [4, 301];
const x = random.floats(rows * columns, -6, 6);
// A row in which one element is all.
x[columns] = 90;
const w = random.floats(columns, 0.5, 1.5);
const rowOf = (i: number): Float32Array =>
  x.subarray(Math.floor(i / columns) * columns, (Math.floor(i / columns) + 1) * columns);

function softmax(value: number, i: number): number {
  const row = rowOf(i);
  const most = Math.max(...row);
  return Math.exp(value - most) / row.reduce((total, other) => total + Math.exp(other - most), 0);
}

function rmsNorm(value: number, i: number): number {
  return (
    (value /
      Math.sqrt(
        rowOf(i).reduce((total, other) => total + other * other, 0) / columns + fround(1e-5),
      )) *
    w[i % columns]!
  );
}

const elements = Float32Array.of(
  ...SPECIAL_F32.filter((value) => Math.abs(value) < 1e4),
  ...random.floats(700, -7, 7),
  ...random.floats(100, -0.01, 0.01),
);
const gelu = (v: number): number =>
  0.5 * v * (1 + Math.tanh(0.7978845608 * (v + 0.044715 * v * v * v)));
const silu = (v: number): number => v / (1 + Math.exp(-v));

const q = random.floats(128, -2, 2);
function rope(value: number, at: number): number {
  const i = at >> 1;
  const angle = 1000 * fround(10000 ** fround((-2 * i) / 64));
  return at & 1
    ? q[2 * i]! * Math.sin(angle) + value * Math.cos(angle)
    : value * Math.cos(angle) - q[2 * i + 1]! * Math.sin(angle);
}

export const K05_SOFTMAX: SampleModule = {
  name: 'k05_softmax',
  cases: [
    {
      // ex2.approx: 2 ulp; below 2^-126 its results are flushed or not by the instruction's
      // modifier, so less than that is noise.
      kernel: 'softmax',
      name: '301 columns, blocks of 128',
      memory: { x, y: new Float32Array(rows * columns) },
      launches: [{ grid: rows, block: 128, args: ['x', 'y', columns] }],
      outputs: {
        y: {
          equal: near(8),
          reference: () => Array.from(x, softmax),
          referenceEqual: near(64, 2 ** -100),
        },
      },
    },
    {
      // rsqrt.approx: 2 ulp, and two products.
      kernel: 'rms_norm',
      name: '301 columns, blocks of 96',
      memory: { x, w, y: new Float32Array(rows * columns) },
      launches: [{ grid: rows, block: 96, args: ['x', 'w', 'y', columns, 1e-5] }],
      outputs: {
        y: { equal: near(4), reference: () => Array.from(x, rmsNorm), referenceEqual: near(16) },
      },
    },
    {
      // 1 + tanh cancels: what is left of its error is an ulp of 1, times v / 2.
      kernel: 'gelu_silu',
      name: 'small, large and special',
      memory: {
        x: elements,
        y: new Float32Array(elements.length),
        z: new Float32Array(elements.length),
      },
      launches: [{ grid: 4, block: 256, args: ['x', 'y', 'z', elements.length] }],
      outputs: {
        y: {
          equal: near(4, 4),
          reference: () => Array.from(elements, gelu),
          referenceEqual: near(8, 4),
        },
        z: {
          equal: near(4),
          reference: () => Array.from(elements, silu),
          referenceEqual: near(32, 2 ** -100),
        },
      },
    },
    {
      // powf and sincosf are libdevice's; its powf goes through ex2.approx. An ulp of the angle is
      // 1000 * 2^-24.
      kernel: 'rope',
      name: 'position 1000',
      memory: { q },
      launches: [{ grid: 1, block: 64, args: ['q', 64, 1000] }],
      outputs: {
        q: {
          equal: near(2000, 1),
          reference: () => Array.from(q, rope),
          referenceEqual: near(4000, 1),
        },
      },
    },
  ],
};
