// The .approx instructions on operands that are not ordinary numbers: the tables of the PTX ISA,
// which an H200 also follows, thread by thread and in lanes.

import { describe, expect, it } from 'vitest';
import { Grid, kernelText } from '../run-grid.test-support.js';

/** Runs an instruction on 32 cells of operands; operands and results are bits. */
function run(
  instruction: string,
  bits: 16 | 32,
  columns: readonly (readonly number[])[],
  simd: boolean,
): number[] {
  const names = ['%a', '%b'].slice(0, columns.length);
  const [register, move] = bits === 16 ? ['b16', 'u16'] : ['b32', 'u32'];
  const grid = new Grid(
    kernelText(
      'k',
      '.param .u64 in, .param .u64 out',
      `
    .reg .b64 %p, %q, %i; .reg .b32 %t; .reg .${register} %r, %a, %b;
    ld.param.u64 %p, [in]; ld.param.u64 %q, [out]; mov.u32 %t, %tid.x; mul.wide.u32 %i, %t, 4;
    add.u64 %p, %p, %i; add.u64 %q, %q, %i;
    ${names.map((name, index) => `ld.global.${move} ${name}, [%p+${128 * index}];`).join(' ')}
    ${instruction} %r, ${names.join(', ')}; st.global.${move} [%q], %r; ret;`,
    ),
    { simd },
  );
  const cells = new Uint32Array(32 * columns.length);
  columns.forEach((column, index) => {
    cells.set(column, 32 * index);
  });
  const input = grid.put(cells);
  const output = grid.put(new Uint32Array(32));
  expect(
    grid.run('k', [{ i64: input.address }, { i64: output.address }], { grid: [1], block: [32] })
      .status,
  ).toBe(0);
  return [...output.view.subarray(0, columns[0]!.length)];
}

const single = (value: number): number => new Uint32Array(Float32Array.of(value).buffer)[0]!;
const number = (bits: number): number => new Float32Array(Uint32Array.of(bits).buffer)[0]!;
const TINY = 2 ** -140;
const INPUTS = [-Infinity, -1, -TINY, -0, 0, TINY, Infinity, NaN];

describe('zeros, subnormals, infinities and NaN', () => {
  /** The result for each of INPUTS; undefined if it is an ordinary number. */
  const TABLES: Readonly<Record<string, readonly (number | undefined)[]>> = {
    // Subnormals as measured on an H200: ptxas writes the same code with .ftz and without.
    'sin.approx.f32': [NaN, undefined, -0, -0, 0, 0, NaN, NaN],
    'sin.approx.ftz.f32': [NaN, undefined, -0, -0, 0, 0, NaN, NaN],
    'cos.approx.f32': [NaN, undefined, 1, 1, 1, 1, NaN, NaN],
    'cos.approx.ftz.f32': [NaN, undefined, 1, 1, 1, 1, NaN, NaN],
    'tanh.approx.f32': [-1, undefined, -TINY, -0, 0, TINY, 1, NaN],
    'ex2.approx.f32': [0, 0.5, 1, 1, 1, 1, Infinity, NaN],
    'ex2.approx.ftz.f32': [0, 0.5, 1, 1, 1, 1, Infinity, NaN],
    'lg2.approx.f32': [NaN, NaN, NaN, -Infinity, -Infinity, -140, Infinity, NaN],
    'lg2.approx.ftz.f32': [NaN, NaN, -Infinity, -Infinity, -Infinity, -Infinity, Infinity, NaN],
    'rcp.approx.f32': [-0, -1, -Infinity, -Infinity, Infinity, Infinity, 0, NaN],
    'rcp.approx.ftz.f32': [-0, -1, -Infinity, -Infinity, Infinity, Infinity, 0, NaN],
    'rsqrt.approx.f32': [NaN, NaN, NaN, -Infinity, Infinity, 2 ** 70, 0, NaN],
    'rsqrt.approx.ftz.f32': [NaN, NaN, -Infinity, -Infinity, Infinity, Infinity, 0, NaN],
    'sqrt.approx.f32': [NaN, NaN, NaN, -0, 0, 2 ** -70, Infinity, NaN],
    'sqrt.approx.ftz.f32': [NaN, NaN, -0, -0, 0, 0, Infinity, NaN],
  };
  for (const simd of [false, true]) {
    it.each(Object.entries(TABLES))(
      `${simd ? 'in lanes' : 'thread by thread'}: %s`,
      (instruction, table) => {
        const got = run(instruction, 32, [INPUTS.map(single)], simd).map(number);
        expect(got.map((value, index) => (table[index] === undefined ? undefined : value))).toEqual(
          table,
        );
      },
    );

    // As bits: infinities, ones, subnormals and zeros of either sign, NaN.
    const HALVES = {
      f16: [0xfc00, 0x8001, 0x8000, 0, 1, 0x7c00, 0x7e00],
      bf16: [0xff80, 0x8001, 0x8000, 0, 1, 0x7f80, 0x7fc0],
    };
    it.each([
      ['tanh.approx.f16', [0xbc00, 0x8001, 0x8000, 0, 1, 0x3c00, 0x7fff]],
      ['tanh.approx.bf16', [0xbf80, 0x8001, 0x8000, 0, 1, 0x3f80, 0x7fff]],
      ['ex2.approx.f16', [0, 0x3c00, 0x3c00, 0x3c00, 0x3c00, 0x7c00, 0x7fff]],
      ['ex2.approx.ftz.bf16', [0, 0x3f80, 0x3f80, 0x3f80, 0x3f80, 0x7f80, 0x7fff]],
    ] as const)(
      `${simd ? 'in lanes' : 'thread by thread'}: %s, and two at a time`,
      (instruction, wanted) => {
        const inputs = HALVES[instruction.endsWith('bf16') ? 'bf16' : 'f16'];
        expect(run(instruction, 16, [inputs], simd)).toEqual(wanted);
        expect(
          run(
            `${instruction}x2`,
            32,
            [inputs.map((bits, index) => bits | (inputs.at(-1 - index)! << 16))],
            simd,
          ).map((bits) => bits >>> 0),
        ).toEqual(wanted.map((bits, index) => (bits | (wanted.at(-1 - index)! << 16)) >>> 0));
      },
    );
  }
});

describe('quotients of great divisors', () => {
  const divisors = [
    2 ** 126,
    2 ** 126 * (1 + 2 ** -23),
    -(2 ** 127),
    2 ** 128 * (1 - 2 ** -24),
    Infinity,
  ];
  const dividends = [2 ** 127, -(2 ** 127), 1, -0, TINY, Infinity, -Infinity, NaN];
  const pairs = divisors.flatMap((b) => dividends.map((a) => [a, b] as const));
  const quotients = (instruction: string, simd: boolean): number[] =>
    [0, 32].flatMap((from) => {
      const part = pairs.slice(from, from + 32);
      return run(
        instruction,
        32,
        [part.map(([a]) => single(a)), part.map(([, b]) => single(b))],
        simd,
      ).map(number);
    });
  for (const simd of [false, true]) {
    // An H200 multiplies by a reciprocal that it has flushed.
    it.each(['div.approx.f32', 'div.approx.ftz.f32'])(
      `${simd ? 'in lanes' : 'thread by thread'}: %s beyond 2^126 is zero, or NaN of infinities`,
      (instruction) => {
        const ftz = instruction.includes('ftz');
        const flushed = (x: number): number =>
          ftz && Math.abs(x) < 2 ** -126 ? Math.sign(x) * 0 || (Object.is(x, -0) ? -0 : 0) : x;
        expect(quotients(instruction, simd)).toEqual(
          pairs.map(([a, b]) => {
            if (Math.abs(b) <= 2 ** 126) return flushed(Math.fround(flushed(a) / b));
            return Number.isFinite(a) ? a * (b < 0 ? -0 : 0) : NaN;
          }),
        );
      },
    );
    it(`${simd ? 'in lanes' : 'thread by thread'}: div.full.f32 divides those, too`, () => {
      expect(quotients('div.full.f32', simd)).toEqual(pairs.map(([a, b]) => Math.fround(a / b)));
    });
  }
});
