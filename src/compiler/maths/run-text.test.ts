import * as fc from '../../../test/fast-check.js';
import { expect, test } from 'vitest';
import { fusedExactly } from './exact-reals.test-support.js';
import { bitsOfF64, f32OfBits, f64OfBits, runnable } from './run-text.test-support.js';

const word = fc.integer({ min: 0, max: 0xffffffff });

test.each([
  ['f32', 1 + 2 ** -23, 1 + 2 ** -23, -(1 + 2 ** -22), 2 ** -46],
  ['f32', 2 ** -75, 2 ** -75, 0, 0],
  ['f32', 2 ** -75, 2 ** -75, 2 ** -149, 2 ** -148],
  ['f32', 2 ** 64, 2 ** 64, -(2 ** 127), 2 ** 127],
  ['f32', 2 ** 64, 2 ** 64, 1, Infinity],
  ['f64', 1 + 2 ** -52, 1 - 2 ** -52, -1, -(2 ** -104)],
  ['f64', 2 ** -538, 3 * 2 ** -538, 2 ** -1074, 2 ** -1073],
  ['f64', 3, 7, -21, 0],
  ['f64', -1, 0, -0, -0],
] as const)('%s: %d · %d + %d is %d', (type, a, b, c, result) => {
  expect(fusedExactly(a, b, c, type)).toBe(result);
  expect(runnable('fma', '(a, b, c, gpu) => { return gpu.fma(a, b, c); }', type)(a, b, c)).toBe(
    result,
  );
});

test('a multiply-add of f32 is rounded once', { tags: 'random' }, () => {
  const run = runnable('fma', '(a, b, c, gpu) => { return a * b + c; }', 'f32');
  fc.assert(
    fc.property(word, word, word, fc.boolean(), (a, b, c, close) => {
      const [x, y] = [f32OfBits(a), f32OfBits(b)];
      // Half of the addends lie near the product, where the rounding error decides.
      const z = close ? Math.fround(-x * y * (1 + (c - 2 ** 31) * 2 ** -50)) : f32OfBits(c);
      fc.pre(Number.isFinite(x) && Number.isFinite(y) && Number.isFinite(z));
      expect(run(x, y, z)).toBe(fusedExactly(x, y, z, 'f32'));
    }),
    { numRuns: 2000 },
  );
});

test('a multiply-add of f64 is rounded once', { tags: 'random' }, () => {
  const run = runnable('fma', '(a, b, c, gpu) => { return c - a * b; }', 'f64');
  const plain = fc.double({ min: -1e20, max: 1e20, noNaN: true });
  fc.assert(
    fc.property(
      fc.oneof(plain, fc.double({ noNaN: true, noDefaultInfinity: true })),
      plain,
      fc.bigInt({ min: -64n, max: 64n }),
      fc.boolean(),
      (x, y, step, close) => {
        const product = x * y;
        const z =
          close && Number.isFinite(product)
            ? f64OfBits(BigInt.asUintN(64, bitsOfF64(product) + step))
            : Number(step);
        fc.pre(Number.isFinite(z));
        expect(run(x, y, z)).toBe(fusedExactly(-x, y, z, 'f64'));
      },
    ),
    { numRuns: 2000 },
  );
});

test.each([
  ['two products in one sum', '(a, b, gpu) => { return a * a + b * b; }'],
  [
    'a conditional of two literals',
    '(a, b, gpu) => { const s = a > b ? 1.0 : 2.0; return a * s; }',
  ],
  ['an integer where a float is wanted', '(a, b, gpu) => { return gpu.bits(a); }'],
  ['functions of Math that round as they like', '(a, b, gpu) => { return Math.exp(a) + b; }'],
  ['names from around', '(a, b, gpu) => { return a + c; }'],
])('texts are refused with %s', (_, text) => {
  expect(() => runnable('f', text, 'f32')).toThrow(/^f \(f32\): /);
});
