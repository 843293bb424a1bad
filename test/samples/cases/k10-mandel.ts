/** Escape times: threads of a warp leave the loop at different times. */
import { f32, f64 } from '../reference/rounded.js';
import type { SampleModule } from '../sample-case.js';

const [w, h, most] = [41, 30, 60];

/** Rounded as nvcc compiled it: 2 * zx * zy + cy is fused, the squares are not. */
function escape(x: number, y: number, s: number, { round, fma }: typeof f32): number {
  const cx = fma(x, s, round(-2.1));
  const cy = fma(y, s, round(-1.05));
  let [zx, zy, xx, yy, i] = [0, 0, 0, 0, 0];
  do {
    const t = round(cx + round(xx - yy));
    zy = fma(round(zx + zx), zy, cy);
    zx = t;
    i++;
    xx = round(zx * zx);
    yy = round(zy * zy);
  } while (i < most && round(xx + yy) < 4);
  return i;
}

const times = (s: number, arithmetic: typeof f32): number[] =>
  Array.from({ length: w * h }, (_, at) => escape(at % w, Math.floor(at / w), s, arithmetic));
const out = (): Int32Array => new Int32Array(w * h);
const plain = { fma: f64.fma, round: (x: number): number => x };
const single = { fma: f32.fma, round: Math.fround };

export const K10_MANDEL: SampleModule = {
  name: 'k10_mandel',
  cases: [
    {
      kernel: 'mandel',
      name: '41 × 30, 60 iterations',
      memory: { out: out() },
      launches: [{ grid: [3, 4], block: [16, 8], args: ['out', w, h, -2.1, -1.05, 0.07, most] }],
      outputs: { out: { equal: 'bits', reference: () => times(Math.fround(0.07), single) } },
    },
    {
      kernel: 'mandel',
      name: 'no iterations',
      memory: { out: out().fill(5) },
      launches: [{ grid: [3, 4], block: [16, 8], args: ['out', w, h, -2.1, -1.05, 0.07, 0] }],
      outputs: { out: { equal: 'bits', reference: out } },
    },
    {
      kernel: 'mandel_d',
      name: '41 × 30, 60 iterations',
      memory: { out: out() },
      launches: [{ grid: [3, 4], block: [16, 8], args: ['out', w, h, -2.1, -1.05, 0.07, most] }],
      outputs: { out: { equal: 'bits', reference: () => times(0.07, plain) } },
    },
  ],
};
