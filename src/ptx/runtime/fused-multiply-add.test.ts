// Exactness of everything that rounds once: fma in all modes, directed rounding, halves. The
// reference computes with exact integers.

import { describe, expect, it } from 'vitest';
import { BF16, F16, F32, F64, decode, encode, fma } from '../exact-floats.test-support.js';
import type { Format, Mode } from '../exact-floats.test-support.js';
import { Grid, kernelText } from '../run-grid.test-support.js';

const random = (() => {
  let state = 88172645463325252n;
  return (bits: number): bigint => {
    state = BigInt.asUintN(64, state * 6364136223846793005n + 1442695040888963407n);
    return BigInt.asUintN(bits, state ^ (state >> 31n));
  };
})();

/** Triples of all kinds: random bits, cancelling sums, and sums half-way between two values. */
function triples(f: Format, count: number): bigint[] {
  const out: bigint[] = [];
  const field = (exponent: number, fraction: bigint): bigint =>
    (BigInt(Math.max(0, Math.min(2 * f.bias, exponent))) << BigInt(f.mantissa)) |
    (fraction & ((1n << BigInt(f.mantissa)) - 1n));
  for (let index = 0; index < count; index++) {
    let [a, b, c] = [random(f.bits), random(f.bits), random(f.bits)];
    const kind = index % 6;
    if (kind === 1) {
      // Operands near one, and the addend near the product.
      a = field(f.bias + Number(random(3)) - 4, random(f.mantissa));
      b = field(f.bias + Number(random(3)) - 4, random(f.mantissa));
      c = fma(a, b, 0n, f, 'rn')! ^ (1n << BigInt(f.bits - 1));
      if (index % 12 > 6) c ^= random(2);
    } else if (kind === 2) {
      // A tie: 1.0…01 times 1.1 leaves half an ulp; the addend is tiny.
      a = field(f.bias, 1n);
      b = field(f.bias + Number(random(4)) - 8, 1n << BigInt(f.mantissa - 1));
      c =
        field(f.bias - f.mantissa - Number(random(6)), random(f.mantissa)) |
        (random(1) << BigInt(f.bits - 1));
    } else if (kind === 3) {
      // The product is far below the addend's last bit.
      c = field(f.bias + 3, 1n << BigInt(f.mantissa - 1));
      a =
        field(f.bias - f.mantissa + 2 - Number(random(3)), 0n) | (random(1) << BigInt(f.bits - 1));
      b = field(f.bias + Number(random(1)), random(1) ? 0n : 1n);
    } else if (kind === 4) {
      // Results among the subnormals.
      a = field(Math.floor(f.bias / 2) + Number(random(4)) - 8, random(f.mantissa));
      b = field(
        f.bias -
          Math.floor(f.bias / 2) -
          f.mantissa +
          Number(random(5)) -
          16 -
          Math.floor(f.bias / 16),
        random(f.mantissa),
      );
      c = index % 12 > 6 ? random(f.mantissa) : 0n;
    } else if (kind === 5) {
      a = field(f.bias + Math.floor(f.bias / 2), random(f.mantissa));
      b = field(f.bias + Math.floor(f.bias / 2) + Number(random(2)), random(f.mantissa));
      c = field(2 * f.bias - Number(random(2)), random(f.mantissa)) | (1n << BigInt(f.bits - 1));
    }
    out.push(a, b, c);
  }
  return out;
}

/** `code` computes %r from %a, %b and %c. */
function run(code: string, f: Format, operands: bigint[], relaxedFma: boolean): bigint[] {
  const body = `
  .reg .b64 %p, %q, %t; .reg .b32 %i; .reg .b${f.bits} %a, %b, %c, %r;
  ld.param.u64 %p, [in]; ld.param.u64 %q, [out];
  mov.u32 %i, %ctaid.x; .reg .b32 %n; mov.u32 %n, %ntid.x; .reg .b32 %x; mov.u32 %x, %tid.x;
  mad.lo.u32 %i, %i, %n, %x;
  mad.wide.u32 %p, %i, 24, %p; mad.wide.u32 %q, %i, 8, %q;
  ld.global.b${f.bits} %a, [%p]; ld.global.b${f.bits} %b, [%p+8]; ld.global.b${f.bits} %c, [%p+16];
  ${code}
  cvt.u64.u${f.bits} %t, %r; st.global.u64 [%q], %t; ret;`;
  const grid = new Grid(kernelText('k', '.param .u64 in, .param .u64 out', body), { relaxedFma });
  const input = grid.put(BigUint64Array.from(operands));
  const output = grid.put(new BigUint64Array(operands.length / 3));
  expect(
    grid.run('k', [{ i64: input.address }, { i64: output.address }], {
      grid: [operands.length / 3 / 256],
      block: [256],
    }).status,
  ).toBe(0);
  return [...output.view];
}

function verify(
  instruction: string,
  f: Format,
  mode: Mode,
  relaxedFma = false,
  count = 256 * 24,
): void {
  const operands = triples(f, count);
  const results = run(`${instruction} %r, %a, %b, %c;`, f, operands, relaxedFma);
  let wrong = 0;
  let example = '';
  results.forEach((result, index) => {
    const [a, b, c] = operands.slice(index * 3, index * 3 + 3) as [bigint, bigint, bigint];
    const wanted = fma(a, b, c, f, mode);
    if (wanted === undefined || wanted === result) return;
    if (!wrong++)
      example =
        `kind ${index % 6}: ${a.toString(16)} * ${b.toString(16)} + ${c.toString(16)} = ` +
        `${result.toString(16)}, not ${wanted.toString(16)}`;
  });
  expect(`${wrong} wrong ${example}`).toBe('0 wrong ');
}

describe('fma rounds once', () => {
  for (const mode of ['rn', 'rz', 'rm', 'rp'] as const) {
    it(`fma.${mode}.f32`, () => verify(`fma.${mode}.f32`, F32, mode));
    it(`fma.${mode}.f64`, () => verify(`fma.${mode}.f64`, F64, mode));
  }
  it('fma.rn with relaxed SIMD, where it is fused', () => {
    verify('fma.rn.f32', F32, 'rn', true);
    verify('fma.rn.f64', F64, 'rn', true);
  });
  it('fma.rn.f16', () => verify('fma.rn.f16', F16, 'rn'));
  it('fma.rn.bf16', () => verify('fma.rn.bf16', BF16, 'rn'));
});

describe('directed rounding of two operands', () => {
  /**
   * An exact comparison of the candidate and its two nearest values is enough: the reference is a
   * quotient of integers.
   */
  function quotient(a: bigint, b: bigint, f: Format, mode: Mode): bigint | undefined {
    const x = decode(a, f);
    const y = decode(b, f);
    if (!x || !y || y.m === 0n || x.m === 0n) return undefined;
    const extra = 200n;
    const negative = x.m < 0n !== y.m < 0n;
    const top = (x.m < 0n ? -x.m : x.m) << extra;
    const bottom = y.m < 0n ? -y.m : y.m;
    // One sticky bit represents the remainder of the division.
    const m = (top / bottom) * 2n + (top % bottom ? 1n : 0n);
    return encode(negative ? -m : m, x.e - y.e - Number(extra) - 1, f, mode);
  }
  function root(a: bigint, f: Format, mode: Mode): bigint | undefined {
    const x = decode(a, f);
    if (!x || x.m <= 0n) return undefined;
    let shift = 220;
    if ((x.e - shift) % 2 !== 0) shift++;
    const scaled = x.m << BigInt(shift);
    let low = 1n << BigInt(Math.floor((scaled.toString(2).length - 1) / 2));
    for (let previous = 0n; previous !== low;) {
      previous = low;
      low = (low + scaled / low) >> 1n;
      if (low * low <= scaled && (low + 1n) * (low + 1n) > scaled) break;
    }
    return encode(low * 2n + (low * low === scaled ? 0n : 1n), (x.e - shift) / 2 - 1, f, mode);
  }
  it.each(
    ['rn', 'rz', 'rm', 'rp'].flatMap((mode) =>
      (
        [
          ['f32', F32],
          ['f64', F64],
        ] as const
      ).map(([type, f]) => [mode, type, f] as const),
    ),
  )('the sign of a product of zero: mul.%s.%s', (mode, type, f) => {
    const sign = 1n << BigInt(f.bits - 1);
    const one = BigInt(f.bias) << BigInt(f.mantissa);
    const some = [0n, sign].flatMap((zero) =>
      [0n, sign, one, one | sign, 1n, 1n | sign].flatMap(
        (other) =>
          [
            [zero, other],
            [other, zero],
          ] as const,
      ),
    );
    // A block has 256 threads.
    const pairs = Array.from({ length: 256 }, (_, i) => some[i % some.length]!);
    const results = run(
      `mul.${mode}.${type} %r, %a, %b;`,
      f,
      pairs.flatMap(([a, b]) => [a, b, 0n]),
      false,
    );
    expect(results).toEqual(pairs.map(([a, b]) => (a ^ b) & sign));
  });
  for (const mode of ['rn', 'rz', 'rm', 'rp'] as const) {
    for (const [type, f] of [
      ['f32', F32],
      ['f64', F64],
    ] as const) {
      const one = BigInt(f.bias) << BigInt(f.mantissa);
      const check = (
        instruction: string,
        reference: (a: bigint, b: bigint) => bigint | undefined,
        unary = false,
      ): void => {
        const operands = triples(f, 256 * 12);
        const results = run(`${instruction} %r, %a${unary ? '' : ', %b'};`, f, operands, false);
        results.forEach((result, index) => {
          const [a, b] = operands.slice(index * 3, index * 3 + 2) as [bigint, bigint];
          const wanted = reference(a, b);
          if (wanted !== undefined && wanted !== result)
            expect.fail(
              `${instruction} ${a.toString(16)}, ${b.toString(16)} = ${result.toString(16)}, ` +
                `not ${wanted.toString(16)}`,
            );
        });
      };
      it(`add, sub, mul, div, rcp, sqrt .${mode}.${type}`, () => {
        const sign = 1n << BigInt(f.bits - 1);
        check(`add.${mode}.${type}`, (a, b) => fma(a, one, b, f, mode));
        check(`sub.${mode}.${type}`, (a, b) => fma(a, one, b ^ sign, f, mode));
        check(`mul.${mode}.${type}`, (a, b) => fma(a, b, (a ^ b) & sign, f, mode));
        check(`div.${mode}.${type}`, (a, b) => quotient(a, b, f, mode));
        check(`rcp.${mode}.${type}`, (a) => quotient(one, a, f, mode), true);
        check(`sqrt.${mode}.${type}`, (a) => root(a, f, mode), true);
      });
    }
  }
});
