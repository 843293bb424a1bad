// Formats of 4, 6 and 8 bits: every code, every half as a source, and sweeps of singles, against
// values enumerated from the formats' definitions.

import { describe, expect, it } from 'vitest';
import { check, evaluate, everyHalf, seeds, u } from './evaluate.test-support.js';
import { scale } from '../../../test/random-runs.js';

interface Format {
  name: string;
  exponent: number;
  mantissa: number;
  bias: number;
  /** Finite magnitudes by code. */
  values: number[];
  nan: number | undefined;
  stride: number;
}

function format(
  name: string,
  exponent: number,
  mantissa: number,
  bias: number,
  finite: number,
  nan: number | undefined,
  stride: number,
): Format {
  const values = Array.from({ length: finite }, (_, code) => {
    const e = code >> mantissa;
    const m = code & (2 ** mantissa - 1);
    return e === 0
      ? m * 2 ** (1 - bias - mantissa)
      : (2 ** mantissa + m) * 2 ** (e - bias - mantissa);
  });
  return { name, exponent, mantissa, bias, values, nan, stride };
}
const E4M3 = format('e4m3', 4, 3, 7, 0x7f, 0x7f, 8);
const E5M2 = format('e5m2', 5, 2, 15, 0x7c, 0x7f, 8);
const FORMATS = [
  E4M3,
  E5M2,
  format('e2m3', 2, 3, 1, 0x20, undefined, 8),
  format('e3m2', 3, 2, 3, 0x20, undefined, 8),
  format('e2m1', 2, 1, 1, 0x8, undefined, 4),
];
const F16 = format('f16', 5, 10, 15, 0x7c00, 0x7fff, 16);
const BF16 = format('bf16', 8, 7, 127, 0x7f80, 0x7fff, 16);

const signOf = (f: Format): number => 2 ** (f.exponent + f.mantissa);
const isNegative = (x: number): boolean => x < 0 || Object.is(x, -0);

/** Index of the largest value that is not above x. */
function floorIndex(values: readonly number[], x: number): number {
  let low = 0;
  let high = values.length;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (values[middle]! <= x) low = middle;
    else high = middle;
  }
  return low;
}

function encode(f: Format, x: number, relu: boolean): number {
  if (Number.isNaN(x)) return f.nan ?? f.values.length - 1;
  if (relu && isNegative(x)) return 0;
  const magnitude = Math.abs(x);
  let code = floorIndex(f.values, magnitude);
  if (code + 1 < f.values.length) {
    const below = magnitude - f.values[code]!;
    const above = f.values[code + 1]! - magnitude;
    if (above < below || (above === below && code % 2 === 1)) code++;
  }
  return code + (isNegative(x) ? signOf(f) : 0);
}

const f32 = (bits: bigint): number =>
  new Float32Array(new Uint32Array([Number(u(32, bits))]).buffer)[0]!;
const bits32 = (value: number): bigint =>
  BigInt(new Uint32Array(new Float32Array([value]).buffer)[0]!);
function halfValue(bits: number): number {
  const magnitude = bits & 0x7fff;
  if (magnitude > 0x7c00) return NaN;
  const value = magnitude === 0x7c00 ? Infinity : F16.values[magnitude]!;
  return bits & 0x8000 ? -value : value;
}
const pair = (f: Format, high: number, low: number): bigint => BigInt((high << f.stride) | low);

/** Singles at, beside and between the format's values, and random ones. */
function singles(f: Format): bigint[] {
  const points = f.values.flatMap((value, code) => [
    value,
    (value + (f.values[code + 1] ?? value * 1.5)) / 2,
  ]);
  const near = points.flatMap((point) => [-1n, 0n, 1n].map((step) => u(32, bits32(point) + step)));
  const special = [
    0x7f800000n,
    0x7fc00000n,
    0xffc00000n,
    1n,
    0x007fffffn,
    0x7f7fffffn,
    0x00400000n,
  ];
  const all = [...near, ...special].flatMap((bits) => [bits, bits ^ 0x80000000n]);
  while (all.length % 1024) all.push(u(32, seeds()));
  return all;
}

describe('to small formats', () => {
  for (const f of FORMATS) {
    it(`${f.name}x2 from f32`, { tags: 'random' }, () => {
      const list = singles(f);
      const sets = list.map((bits, index) => [bits, list[(index * 7 + 3) % list.length]!]);
      const target =
        f.name === 'e2m1'
          ? `{ .reg .b8 %x; cvt.rn.satfinite.SUFFIX %x, %a, %b; mov.b16 %r, {%x, 0}; }`
          : 'cvt.rn.satfinite.SUFFIX %r, %a, %b;';
      for (const relu of [false, true]) {
        check(
          target.replace('SUFFIX', `${relu ? 'relu.' : ''}${f.name}x2.f32`),
          [32, 32],
          16,
          (a, b) => pair(f, encode(f, f32(a), relu), encode(f, f32(b), relu)),
          sets,
        );
      }
    });
  }
  for (const f of [E4M3, E5M2]) {
    it(`${f.name}x2 from every f16x2 half`, { tags: 'random' }, () => {
      for (const relu of [false, true]) {
        const sets = everyHalf().map(([low], index) => [
          low! | (BigInt((index * 40503) & 0xffff) << 16n),
        ]);
        check(
          `cvt.rn.satfinite.${relu ? 'relu.' : ''}${f.name}x2.f16x2 %r, %a;`,
          [32],
          16,
          (a) =>
            pair(
              f,
              encode(f, halfValue(Number(a >> 16n)), relu),
              encode(f, halfValue(Number(a & 0xffffn)), relu),
            ),
          sets,
        );
      }
    });
  }
});

describe('from small formats', () => {
  for (const f of FORMATS) {
    it(`every ${f.name}x2`, { tags: 'random' }, () => {
      const codes = 2 * signOf(f);
      const half = (code: number, relu: boolean): bigint => {
        const magnitude = code % signOf(f);
        const negative = code >= signOf(f);
        if (magnitude >= f.values.length)
          return f === E5M2 && magnitude === 0x7c
            ? negative
              ? relu
                ? 0n
                : 0xfc00n
              : 0x7c00n
            : 0x7fffn;
        if (negative && relu) return 0n;
        return BigInt(F16.values.indexOf(f.values[magnitude]!)) | (negative ? 0x8000n : 0n);
      };
      // The order mixes both codes, so that a part of them has all values of each.
      const pairs = codes * codes;
      const sets = Array.from({ length: scale < 1 ? Math.min(pairs, 4096) : pairs }, (_, at) => {
        const index = (at * 40503) % pairs;
        return [pair(f, Math.floor(index / codes), index % codes)];
      });
      for (const relu of [false, true]) {
        const convert = `cvt.rn.${relu ? 'relu.' : ''}f16x2.${f.name}x2`;
        const text =
          f.name === 'e2m1'
            ? `{ .reg .b8 %x, %y; mov.b16 {%x, %y}, %a; ${convert} %r, %x; }`
            : `${convert} %r, %a;`;
        check(
          text,
          [16],
          32,
          (a) =>
            (half(Number(a) >> f.stride, relu) << 16n) |
            half(Number(a) & (2 ** f.stride - 1), relu),
          sets,
        );
      }
    });
  }
});

describe('ue8m0', () => {
  const exponent = (bits: bigint, up: boolean, finite: boolean): bigint => {
    const magnitude = Math.abs(f32(bits));
    if (Number.isNaN(magnitude)) return 255n;
    let code = 0;
    while (code < 255 && (up ? 2 ** (code - 127) < magnitude : 2 ** (code - 126) <= magnitude))
      code++;
    if (magnitude === Infinity) code = 255;
    return BigInt(finite && code === 255 ? 254 : code);
  };
  for (const up of [false, true]) {
    for (const finite of [false, true]) {
      const name = `${up ? 'rp' : 'rz'}${finite ? '.satfinite' : ''}`;
      it(`${name} from f32 and bf16x2`, { tags: 'random' }, () => {
        const edges = Array.from({ length: 254 }, (_, e) => 2 ** (e - 126)).flatMap((value) => [
          bits32(value) - 1n,
          bits32(value),
          bits32(value) + 1n,
        ]);
        const list = [
          ...edges,
          0n,
          1n,
          0x3fffffn,
          0x400000n,
          0x400001n,
          0x7f800000n,
          0x7fc00000n,
          0xff800000n,
          0xc0000001n,
        ];
        while (list.length % 1024) list.push(u(32, seeds()));
        check(
          `cvt.${name}.ue8m0x2.f32 %r, %a, %b;`,
          [32, 32],
          16,
          (a, b) => (exponent(a, up, finite) << 8n) | exponent(b, up, finite),
          list.map((bits, index) => [bits, list[(index * 5 + 1) % list.length]!]),
        );
        check(
          `cvt.${name}.ue8m0x2.bf16x2 %r, %a;`,
          [32],
          16,
          (a) =>
            (exponent(a & 0xffff0000n, up, finite) << 8n) | exponent(u(32, a << 16n), up, finite),
          everyHalf().map(([low], index) => [low! | (BigInt((index * 40503) & 0xffff) << 16n)]),
        );
      });
    }
  }
  it('every code to bf16', { tags: 'random' }, () => {
    const bf16 = (code: bigint): bigint =>
      code === 255n ? 0x7fffn : code === 0n ? 0x40n : code << 7n;
    check(
      'cvt.rn.bf16x2.ue8m0x2 %r, %a;',
      [16],
      32,
      (a) => (bf16(a >> 8n) << 16n) | bf16(a & 255n),
      everyHalf(),
    );
  });
});

describe('stochastic rounding', () => {
  for (const [f, width] of [
    [F16, 13],
    [BF16, 16],
  ] as const) {
    it(`${f.name}x2: the carry of the random bits into what is kept`, { tags: 'random' }, () => {
      const values = [
        1,
        1.0001,
        3.14159,
        65504,
        1e5,
        -2.7,
        -0.1,
        6e-5,
        1e-7,
        0,
        -0,
        Infinity,
        NaN,
        1e-40,
      ];
      const sets = Array.from({ length: 1024 }, (_, index) => [
        bits32(values[index % values.length]! * (1 + (index % 31) / 1000)),
        bits32(values[(index * 3 + 1) % values.length]!),
        u(32, seeds()),
      ]);
      const rounded = (bits: bigint, random: number, finite: boolean, relu: boolean): number => {
        const x = f32(bits);
        if (Number.isNaN(x)) return 0x7fff;
        if (relu && isNegative(x)) return 0;
        const magnitude = Math.abs(x);
        const top = f.values.length - (finite ? 1 : 0);
        let code = magnitude === Infinity ? f.values.length : floorIndex(f.values, magnitude);
        if (magnitude < Infinity) {
          const step = 2 ** (Math.max(code >> f.mantissa, 1) - f.bias - f.mantissa);
          code += Math.floor((magnitude - f.values[code]!) / step + random / 2 ** width);
        }
        return Math.min(code, top) + (isNegative(x) ? 0x8000 : 0);
      };
      for (const finite of [false, true]) {
        for (const relu of [false, true]) {
          check(
            `cvt.rs${relu ? '.relu' : ''}${finite ? '.satfinite' : ''}.${f.name}x2.f32 %r, ` +
              '%a, %b, %c;',
            [32, 32, 32],
            32,
            (a, b, c) => {
              const bits = (half: bigint): number => Number(half) & (2 ** width - 1);
              return (
                (BigInt(rounded(a, bits(c >> 16n), finite, relu)) << 16n) |
                BigInt(rounded(b, bits(c & 0xffffn), finite, relu))
              );
            },
            sets,
          );
        }
      }
    });
  }
  it(
    'packs four, the first on top, and keeps what is exact whatever the bits',
    { tags: 'random' },
    () => {
      for (const f of FORMATS) {
        const result = f.name === 'e2m1' ? 16 : 32;
        const codes = [1, 2 % f.values.length, f.values.length - 1, 5].map(
          (code) => code % f.values.length,
        );
        const values = codes.map(
          (code) => `0f${bits32(f.values[code]!).toString(16).padStart(8, '0').toUpperCase()}`,
        );
        const wanted = codes.reduce((sum, code) => (sum << BigInt(f.stride)) | BigInt(code), 0n);
        const text = `{ .reg .f32 %x<4>;
          ${values.map((value, index) => `mov.f32 %x${index}, ${value};`).join(' ')}
        cvt.rs.satfinite.${f.name}x4.f32 %r, {%x0, %x1, %x2, %x3}, %a; }`;
        const random = Array.from({ length: 256 }, () => [u(32, seeds())]);
        expect(new Set(evaluate(text, [32], result, random)), f.name).toEqual(new Set([wanted]));
      }
    },
  );
  it('rounds a small format up as often as the random bits say', { tags: 'random' }, () => {
    // 1.25 is in the middle between 1 and 1.5, the codes 2 and 3 of e2m1.
    const text =
      '{ .reg .f32 %x; mov.f32 %x, 0f3FA00000; cvt.rs.satfinite.e2m1x4.f32 %r, {%x, %x, %x, ' +
      '%x}, %a; }';
    const results = evaluate(
      text,
      [32],
      16,
      Array.from({ length: 1024 }, () => [u(32, seeds())]),
    ).map((value) => Number(value >> 12n));
    expect(new Set(results)).toEqual(new Set([2, 3]));
    const ups = results.filter((code) => code === 3).length;
    expect(ups).toBeGreaterThan(400);
    expect(ups).toBeLessThan(624);
  });
});

describe('cvt.pack and tf32', () => {
  it('cvt.pack clamps and packs', { tags: 'random' }, () => {
    for (const sign of ['u', 's']) {
      for (const bits of [16, 8, 4, 2]) {
        const clamp = (x: bigint): bigint => {
          const value = BigInt.asIntN(32, x);
          const [least, most] =
            sign === 's'
              ? [-(2n ** BigInt(bits - 1)), 2n ** BigInt(bits - 1) - 1n]
              : [0n, 2n ** BigInt(bits) - 1n];
          return u(bits, value < least ? least : value > most ? most : value);
        };
        const both = (a: bigint, b: bigint): bigint => (clamp(a) << BigInt(bits)) | clamp(b);
        if (bits === 16) check(`cvt.pack.sat.${sign}16.s32 %r, %a, %b;`, [32, 32], 32, both);
        else
          check(
            `cvt.pack.sat.${sign}${bits}.s32.b32 %r, %a, %b, %c;`,
            [32, 32, 32],
            32,
            (a, b, c) => (c << BigInt(2 * bits)) | both(a, b),
          );
      }
    }
  });
  it('tf32 in every rounding, .satfinite and .relu', { tags: 'random' }, () => {
    const list = Array.from({ length: 2048 }, (_, index) => [
      index % 3 ? u(32, seeds()) : u(32, (seeds() & 0xffffe000n) + (seeds() % 3n) + 0xfffn),
    ]);
    const special = [
      0x7f7fffffn,
      0x7f7fe000n,
      0x7f7ff000n,
      0xff7fffffn,
      0x7f800000n,
      0xff800000n,
      0x80000000n,
      0n,
    ];
    special.forEach((bits, index) => {
      list[index] = [bits];
    });
    for (const mode of ['rna', 'rn', 'rz']) {
      for (const finite of [false, true]) {
        for (const relu of mode === 'rna' ? [false] : [false, true]) {
          const results = evaluate(
            `cvt.${mode}${finite ? '.satfinite' : ''}${relu ? '.relu' : ''}.tf32.f32 %r, %a;`,
            [32],
            32,
            list,
          );
          results.forEach((result, index) => {
            const bits = list[index]![0]!;
            const magnitude = bits & 0x7fffffffn;
            if (magnitude > 0x7f800000n) {
              expect(Number.isNaN(f32(result))).toBe(true);
              return;
            }
            let kept = magnitude;
            if (mode === 'rna') kept += 0x1000n;
            else if (mode === 'rn') kept += 0xfffn + ((magnitude >> 13n) & 1n);
            kept = magnitude === 0x7f800000n ? magnitude : kept & ~0x1fffn;
            if (finite && kept >= 0x7f800000n) kept = 0x7f7fe000n;
            const wanted = relu && bits >> 31n ? 0n : kept | (bits & 0x80000000n);
            if (result !== wanted)
              expect.fail(
                `${mode} ${bits.toString(16)}: ${result.toString(16)}, not ${wanted.toString(16)}`,
              );
          });
        }
      }
    }
  });
});
