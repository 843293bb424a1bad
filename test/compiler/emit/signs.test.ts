/**
 * The code is shorter where the compiler can derive the sign of a power's exponent; the results
 * have the same bits.
 */
import { expect, test } from 'vitest';
import { readKernel } from '../../../src/compiler/read/read-kernel.js';
import { runKernel } from './run-kernel.js';
import { someOf } from '../../random-runs.js';

const COUNT = 1024;
const special = [
  0,
  -0,
  1,
  -1,
  Infinity,
  -Infinity,
  NaN,
  1e-40,
  3.4e38,
  -3.4e38,
  88,
  89,
  -87.4,
  -103.9,
  -104.1,
  1e-8,
];

/**
 * exp of the expression of `a`, `b` and `c`; with `hidden`, of the same number in a form of which
 * the compiler cannot derive the sign.
 */
function kernelOf(exponent: string, hidden: boolean) {
  const tensor = (access: 'input' | 'output' | 'inout') =>
    ({ kind: 'tensor', element: { storage: 'f32' }, access, rank: 1 }) as const;
  return readKernel({
    name: 'power',
    signature: { x: tensor('input'), kept: tensor('inout'), out: tensor('output') },
    indexType: 'i32',
    uses: {},
    text: `({ x, kept, out }, gpu) => {
      const i = gpu.globalId.x;
      const a = x[3 * i], b = x[3 * i + 1], c = x[3 * i + 2];
      const e = ${exponent};
      ${hidden ? 'gpu.volatileStore(kept, i, e);' : ''}
      out[i] = Math.exp(${hidden ? 'gpu.volatileLoad(kept, i)' : 'e'});
    }`,
  });
}

const x = Float32Array.from({ length: 3 * COUNT }, (_, at) =>
  at % 5 === 0 ? special[(at * 7) % special.length]! : Math.sin(at * at) * (at % 2 === 0 ? 100 : 2),
);
const compile = (exponent: string, hidden: boolean) => {
  const ran = runKernel(kernelOf(exponent, hidden), {
    values: { x, kept: new Float32Array(COUNT), out: new Float32Array(COUNT) },
    grid: [COUNT / 128],
    block: [128],
  });
  expect(ran.outcome.fault).toBeUndefined();
  return {
    bounded: ran.emitted.ptx.includes('min.NaN'),
    selects: ran.emitted.ptx.includes('setp.gt.f32'),
    results: [
      ...new Uint32Array(
        ran.of<Float32Array>('out').buffer,
        ran.of<Float32Array>('out').byteOffset,
        COUNT,
      ),
    ],
  };
};

someOf(
  5,
  test,
)([
  'a - Math.max(a, b)',
  'b - Math.max(a, b)',
  'a - Math.max(c, Math.max(a, b))',
  'b - Math.max(Math.max(c, Math.max(a, b)), gpu.warp.shuffleXor(a, 1))',
  'a - a',
  '-(a * a)',
  '-Math.abs(a - b)',
  '-(a * a) * Math.abs(b)',
  'a * a * -Math.abs(b)',
  'Math.min(-Math.abs(a), b)',
  'Math.max(-Math.abs(a), -(b * b))',
  '-Math.sqrt(Math.abs(a))',
  '-Math.max(a, 0)',
])('exp(%s) is bounded on one side, and the same', (exponent) => {
  const [seen, hidden] = [compile(exponent, false), compile(exponent, true)];
  expect([seen.bounded && !exponent.includes('Math.min'), seen.selects]).toEqual([false, false]);
  expect([hidden.bounded, hidden.selects]).toEqual([true, true]);
  expect(seen.results).toEqual(hidden.results);
});

test.each([
  'a - b',
  'Math.max(a, b) - a',
  'a - Math.min(a, b)',
  'c - Math.max(a, b)',
  'a * a',
  '-(a * b)',
  'Math.abs(a)',
  '-a',
  'Math.max(-Math.abs(a), b)',
  '-Math.max(a, -1)',
  'Math.sqrt(a)',
  '-(a * a) * b',
  '(a + b) - Math.max(a, b)',
])('exp(%s) is bounded on both', (exponent) => {
  const [seen, hidden] = [compile(exponent, false), compile(exponent, true)];
  expect([seen.bounded, seen.selects]).toEqual([true, true]);
  expect(seen.results).toEqual(hidden.results);
});
