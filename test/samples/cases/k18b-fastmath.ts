/** The same functions compiled with -use_fast_math: approximate, subnormals flushed. */
import { near } from '../equality.js';
import { Values } from '../host-values.js';
import type { SampleModule } from '../sample-case.js';
import { singles, sumOfSingles } from './k18-math.js';

const random = new Values(118);
const least = 2 ** -126;
const quotients = random.wildFloats(300);
const flush = (x: number): number => (Math.abs(x) < least ? 0 * x : x);
const inDomain = singles.slice(0, 240);

export const K18B_FASTMATH: SampleModule = {
  name: 'k18b_fastmath',
  cases: [
    {
      // sin, cos, tan, lg2, ex2.approx: errors of up to 2^-20 of 1, and of what is then multiplied
      // or divided.
      kernel: 'mathf_fm',
      name: 'from 0 to 1',
      memory: { x: inDomain, o: new Float32Array(inDomain.length) },
      launches: [{ grid: 3, block: 96, args: ['x', 'o', inDomain.length] }],
      outputs: {
        o: {
          equal: near(8, 32),
          reference: () => Array.from(inDomain, sumOfSingles),
          referenceEqual: near(64, 64),
        },
      },
    },
    {
      // Which of the special values give NaN and which infinities.
      kernel: 'mathf_fm',
      name: 'all kinds of floats',
      memory: { x: singles.slice(240), o: new Float32Array(singles.length - 240) },
      launches: [{ grid: 1, block: 128, args: ['x', 'o', singles.length - 240] }],
      outputs: { o: { equal: near(8, 32) } },
    },
    {
      // div by a constant becomes a product with its reciprocal, or div.approx: 2 ulp.
      kernel: 'fastdiv_fm',
      name: 'all kinds of floats',
      memory: { x: quotients, o: new Float32Array(300) },
      launches: [{ grid: 1, block: 300, args: ['x', 'o'] }],
      outputs: {
        o: { equal: near(2), reference: () => quotients.map((value) => flush(flush(value) / 3)) },
      },
    },
  ],
};
