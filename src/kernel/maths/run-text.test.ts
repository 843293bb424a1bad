import fc from 'fast-check';
import { expect, test } from 'vitest';
import { F32, F64, fma as exactFma } from '../../ptx/exact-floats.test-support.js';
import { bitsOfF64, f32OfBits, f64OfBits, runnable } from './run-text.test-support.js';

const word = fc.integer({ min: 0, max: 0xffffffff });
const bitsOfF32 = (value: number): number => new Uint32Array(new Float32Array([value]).buffer)[0]!;

test('a multiply-add of f32 is rounded once', () => {
  const run = runnable('fma', '(a, b, c, gpu) => { return a * b + c; }', 'f32');
  fc.assert(fc.property(word, word, word, fc.boolean(), (a, b, c, close) => {
    const [x, y] = [f32OfBits(a), f32OfBits(b)];
    // Half of the addends lie near the product, where what is lost decides.
    const z = close ? Math.fround(-x * y * (1 + (c - 2 ** 31) * 2 ** -50)) : f32OfBits(c);
    fc.pre(Number.isFinite(x) && Number.isFinite(y) && Number.isFinite(z));
    const exact = exactFma(BigInt(bitsOfF32(x)), BigInt(bitsOfF32(y)), BigInt(bitsOfF32(z)), F32, 'rn');
    expect(bitsOfF32(run(x, y, z))).toBe(Number(exact));
  }), { numRuns: 2000 });
});

test('a multiply-add of f64 is rounded once', () => {
  const run = runnable('fma', '(a, b, c, gpu) => { return c - a * b; }', 'f64');
  const plain = fc.double({ min: -1e20, max: 1e20, noNaN: true });
  fc.assert(fc.property(fc.oneof(plain, fc.double({ noNaN: true, noDefaultInfinity: true })), plain, fc.bigInt({ min: -64n, max: 64n }), fc.boolean(), (x, y, step, close) => {
    const product = x * y;
    const z = close && Number.isFinite(product) ? f64OfBits(BigInt.asUintN(64, bitsOfF64(product) + step)) : Number(step);
    fc.pre(Number.isFinite(z));
    const exact = exactFma(bitsOfF64(-x), bitsOfF64(y), bitsOfF64(z), F64, 'rn');
    expect(bitsOfF64(run(x, y, z))).toBe(exact);
  }), { numRuns: 2000 });
});

test.each([
  ['two products in one sum', '(a, b, gpu) => { return a * a + b * b; }'],
  ['a conditional of two literals', '(a, b, gpu) => { const s = a > b ? 1.0 : 2.0; return a * s; }'],
  ['an integer where a float is wanted', '(a, b, gpu) => { return gpu.bits(a); }'],
  ['functions of Math that round as they like', '(a, b, gpu) => { return Math.exp(a) + b; }'],
  ['names from around', '(a, b, gpu) => { return a + c; }'],
])('texts are refused with %s', (_, text) => {
  expect(() => runnable('f', text, 'f32')).toThrow(/^f \(f32\): /);
});
