// Halves, integers of 8 and 16 bits, bits, and functions of singles: lanes give the same results as
// single threads, for all values of 16 bits, and for pairs of their edges.

import { expect, it } from 'vitest';
import { STATUS } from '../index.js';
import { Grid } from '../run-grid.test-support.js';
import { sequence } from './sequence.test-support.js';
import { someOf } from '../../../test/random-runs.js';

const BLOCK = 256;

/** out[i] is the value that the instructions compute in %d from %a, %b and %c. */
const kernelOf = (instructions: string): string => `.version 8.6
.target sm_90
.address_size 64
.visible .entry k(.param .u64 in, .param .u64 out, .param .u32 count)
{
  .reg .b32 %a, %b, %c, %d, %t, %n, %i; .reg .b16 %x, %y, %z, %w; .reg .f32 %f, %g;
  .reg .b64 %in, %out, %by; .reg .pred %p;
  ld.param.u64 %in, [in]; ld.param.u64 %out, [out]; ld.param.u32 %n, [count];
  mov.u32 %t, %tid.x; mov.u32 %i, %ctaid.x; mad.lo.u32 %i, %i, ${BLOCK}, %t;
  mad.wide.u32 %in, %i, 4, %in; mad.wide.u32 %out, %i, 4, %out; mul.wide.u32 %by, %n, 4;
  ld.global.b32 %a, [%in]; add.u64 %in, %in, %by; ld.global.b32 %b, [%in];
  add.u64 %in, %in, %by; ld.global.b32 %c, [%in];
  ${instructions}
  st.global.b32 [%out], %d;
  ret;
}`;

/** Compares both back ends on these words, equally many for %a, %b and %c. */
function differences(instructions: string, words: Uint32Array, sameNaN = false): string[] {
  const count = words.length / 3;
  const results = [false, true].map((simd) => {
    const grid = new Grid(kernelOf(instructions), { simd, relaxedFma: true });
    const input = grid.put(words);
    const out = grid.put(new Uint32Array(count));
    expect(
      grid.run('k', [{ i64: input.address }, { i64: out.address }, { i32: count }], {
        grid: [count / BLOCK],
        block: [BLOCK],
      }).status,
    ).toBe(STATUS.done);
    if (simd) expect(grid.kernel('k').inLanes([BLOCK, 1, 1]), 'has lanes').toBeTypeOf('object');
    return out.view;
  }) as [Uint32Array, Uint32Array];
  const isNaN32 = (word: number): boolean => (word & 0x7fffffff) > 0x7f800000;
  const found: string[] = [];
  for (let i = 0; i < count && found.length < 5; i++) {
    const [one, lanes] = [results[0][i]!, results[1][i]!];
    if (one === lanes || (sameNaN && isNaN32(one) && isNaN32(lanes))) continue;
    const operands = [words[i]!, words[i + count]!, words[i + 2 * count]!];
    found.push(
      `${operands.map((word) => word.toString(16)).join(', ')}: ` +
        `${lanes.toString(16)} in lanes, ${one.toString(16)} alone`,
    );
  }
  return found;
}

const EDGES = {
  f16: [
    0, 1, 2, 3, 0x1ff, 0x200, 0x3fe, 0x3ff, 0x400, 0x401, 0x7ff, 0x800, 0x13ff, 0x1400, 0x2400,
    0x3bff, 0x3c00, 0x3c01, 0x3fff, 0x4000, 0x4200, 0x5bff, 0x6400, 0x6801, 0x7800, 0x7bfe, 0x7bff,
    0x7c00, 0x7c01, 0x7dff, 0x7e00, 0x7fff,
  ],
  bf16: [
    0, 1, 2, 3, 0x3f, 0x40, 0x7e, 0x7f, 0x80, 0x81, 0xff, 0x100, 0x1000, 0x1fff, 0x2000, 0x2001,
    0x3eff, 0x3f7f, 0x3f80, 0x3f81, 0x3fff, 0x4000, 0x4049, 0x5f7f, 0x5f80, 0x7e80, 0x7f00, 0x7f7e,
    0x7f7f, 0x7f80, 0x7f81, 0x7fff,
  ],
} as const;

/**
 * All triples of the edges with both signs, in the low halves; the same in another order in the
 * upper ones; then random ones.
 */
function triples(format: 'f16' | 'bf16'): Uint32Array {
  const edges = EDGES[format].flatMap((bits) => [bits, bits | 0x8000]);
  const all = edges.length ** 3;
  const count = all + 2 * all;
  const words = new Uint32Array(3 * count);
  const next = sequence(count + format.length);
  const edge = (i: number, place: number): number =>
    edges[Math.floor(i / edges.length ** place) % edges.length]!;
  for (let i = 0; i < all; i++)
    for (let place = 0; place < 3; place++)
      words[i + place * count] = edge(i, place) | (edge((i * 7919) % all, place) << 16);
  for (let i = all; i < count; i++) {
    // Near each other in size, so that sums round; every third is unrelated.
    const around = next();
    for (let place = 0; place < 3; place++) {
      const free = next();
      words[i + place * count] = i % 3 ? (free & 0x87ff87ff) | (around & 0x78007800) : free;
    }
  }
  return words;
}

for (const format of ['f16', 'bf16'] as const) {
  const words = triples(format);
  const single = (text: string): string =>
    `cvt.u16.u32 %x, %a; cvt.u16.u32 %y, %b; cvt.u16.u32 %z, %c; ${text}; cvt.u32.u16 %d, %w;`;
  someOf(
    3,
    it,
  )([
    ['add.rn', 2],
    ['sub.rn', 2],
    ['mul.rn', 2],
    ['fma.rn', 3],
    ['min', 2],
    ['max', 2],
    ['min.NaN', 2],
    ['max.NaN', 2],
    ['abs', 1],
    ['neg', 1],
  ] as const)(`%s.${format}, single and packed`, { timeout: 120_000 }, (name, operands) => {
    expect(
      differences(`${name}.${format}x2 %d${', %a, %b, %c'.slice(0, 4 * operands)};`, words),
    ).toEqual([]);
    expect(
      differences(single(`${name}.${format} %w${', %x, %y, %z'.slice(0, 4 * operands)}`), words),
    ).toEqual([]);
  });

  someOf(3, it)(['eq', 'lt', 'le', 'gt', 'ge', 'neu', 'ltu', 'leu', 'gtu', 'geu'])(
    `setp.%s.${format}`,
    { timeout: 60_000 },
    (comparison) => {
      expect(
        differences(
          `cvt.u16.u32 %x, %a; cvt.u16.u32 %y, %b; setp.${comparison}.${format} %p, %x, %y; ` +
            'selp.b32 %d, 1, 2, %p;',
          words,
        ),
      ).toEqual([]);
    },
  );

  /** Each half, the middle between it and the next one, and values slightly beside both. */
  const around = new Uint32Array(3 * 65536 * 8);
  const as32 = (bits: number): number => {
    if (format === 'bf16') return (bits << 16) >>> 0;
    const exponent = (bits >> 10) & 31;
    const value =
      exponent === 31
        ? (bits & 0x3ff) === 0
          ? Infinity
          : NaN
        : exponent === 0
          ? (bits & 0x3ff) * 2 ** -24
          : (1 + (bits & 0x3ff) / 1024) * 2 ** (exponent - 15);
    return new Uint32Array(new Float32Array([bits & 0x8000 ? -value : value]).buffer)[0]!;
  };
  for (let bits = 0; bits < 65536; bits++) {
    const [here, next] = [as32(bits), as32(bits ^ 0x8000 ? Math.min(bits + 1, 65535) : bits)];
    const middle = here + ((next - here) >> 1);
    [here, here + 1, here - 1, middle, middle + 1, middle - 1, bits << 16, bits].forEach(
      (word, k) => {
        around[8 * bits + k] = word >>> 0;
      },
    );
  }

  it(`conversions from and to ${format}`, { timeout: 120_000 }, () => {
    expect(
      differences(`mov.b32 %f, %a; cvt.rn.${format}.f32 %w, %f; cvt.u32.u16 %d, %w;`, around),
    ).toEqual([]);
    expect(
      differences(`mov.b32 %f, %a; mov.b32 %g, %b; cvt.rn.${format}x2.f32 %d, %g, %f;`, around),
    ).toEqual([]);
    expect(
      differences(
        `cvt.u16.u32 %x, %a; cvt.f32.${format} %f, %x; mov.b32 %d, %f;`,
        Uint32Array.from({ length: 3 * 65536 }, (_, i) => i % 65536),
        true,
      ),
    ).toEqual([]);
  });
}

const plain = ((): Uint32Array => {
  const next = sequence(5);
  const edges = [
    0, 1, 2, 3, 7, 8, 15, 16, 31, 32, 127, 128, 255, 256, 32767, 32768, 65535, 65536, 0x7fffffff,
    0x80000000, 0xffffffff, 0xfffffffe, 0x80000001, 0xffff8000, 0xffffff80,
  ];
  const pairs = edges.flatMap((a) => edges.map((b) => [a, b]));
  const count = 65536;
  const words = new Uint32Array(3 * count);
  for (let i = 0; i < count; i++) {
    const [a, b] = pairs[i] ?? [next(), next() >>> (next() % 32)];
    words.set([a!], i);
    words.set([b!], i + count);
    words[i + 2 * count] = next() % 3 ? edges[next() % edges.length]! : next();
  }
  return words;
})();

someOf(
  5,
  it,
)([
  'div.u32 %d, %a, %b;',
  'div.s32 %d, %a, %b;',
  'rem.u32 %d, %a, %b;',
  'rem.s32 %d, %a, %b;',
  'popc.b32 %d, %a;',
  'clz.b32 %d, %a;',
  'brev.b32 %d, %a;',
  'bfind.u32 %d, %a;',
  'bfind.s32 %d, %a;',
  'shl.b32 %d, %a, %b;',
  'shr.u32 %d, %a, %b;',
  'shr.s32 %d, %a, %b;',
  'prmt.b32 %d, %a, %b, 0x7340;',
  'bfe.u32 %d, %a, 5, 9;',
  'bfe.s32 %d, %a, 25, 12;',
  'bfe.s32 %d, %a, 40, 2;',
  'bfi.b32 %d, %a, %b, 7, 11;',
  'dp4a.s32.s32 %d, %a, %b, %c;',
  'dp4a.u32.s32 %d, %a, %b, %c;',
  'dp4a.u32.u32 %d, %a, %b, %c;',
  'mov.b32 {%x, %y}, %a; mov.b32 %d, {%y, %x};',
  ...['u8', 's8', 'u16', 's16'].flatMap((type) => [
    `cvt.${type}.u32 %x, %a; cvt.u32.u16 %d, %x;`,
    `cvt.${type}.u32 %d, %a;`,
    `cvt.u16.u32 %x, %a; cvt.s32.${type} %d, %x;`,
    `cvt.rn.f32.${type} %f, %a; mov.b32 %d, %f;`,
    `cvt.rn.f32.s32 %f, %a; cvt.rzi.${type}.f32 %x, %f; cvt.u32.u16 %d, %x;`,
    `mov.b32 %f, %a; cvt.rni.${type}.f32 %d, %f;`,
    `cvt.rn.f16.${type} %w, %a; cvt.u32.u16 %d, %w;`,
    `cvt.u16.u32 %x, %a; cvt.rni.${type}.f16 %d, %x;`,
  ]),
  ...['u16', 's16'].flatMap((type) =>
    ['add', 'sub', 'mul.lo', 'mul.hi', 'min', 'max', 'div', 'rem'].map(
      (name) =>
        `cvt.u16.u32 %x, %a; cvt.u16.u32 %y, %b; ${name}.${type} %w, %x, %y; cvt.u32.u16 %d, %w;`,
    ),
  ),
  ...['u16', 's16'].flatMap((type) =>
    ['lt', 'ge', 'eq'].map(
      (name) =>
        `cvt.u16.u32 %x, %a; cvt.u16.u32 %y, %b; setp.${name}.${type} %p, %x, %y; selp.b16 ` +
        '%w, %x, %y, %p; cvt.u32.u16 %d, %w;',
    ),
  ),
  // Uniform, in a register with another sign than the instruction's.
  ...[
    'max.u16 %w, %s, %x;',
    'mul.hi.u16 %w, %x, %s;',
    'setp.lt.u16 %p, %s, %x; selp.b16 %w, %s, %x, %p;',
    'cvt.u8.s16 %w, %s;',
  ].map(
    (text) =>
      '{ .reg .s16 %s; .reg .u32 %q; add.u32 %q, %n, 40000; cvt.s16.u32 %s, %q; cvt.u16.u32 ' +
      `%x, %a; ${text} cvt.u32.u16 %d, %w; }`,
  ),
  '{ .reg .s16 %s; .reg .u32 %q; add.u32 %q, %n, 40000; cvt.s16.u32 %s, %q; cvt.u16.u32 %x, ' +
    '%a; mov.b32 %d, {%s, %x}; }',
  'cvt.u16.u32 %x, %a; shr.s16 %w, %x, 3; cvt.u32.u16 %d, %w;',
  'cvt.u16.u32 %x, %a; shl.b16 %w, %x, 17; cvt.u32.u16 %d, %w;',
])('%s', { timeout: 60_000 }, (instructions) => {
  expect(differences(instructions, plain)).toEqual([]);
});

/** Some hundred for every exponent and both signs. */
const singles = ((): Uint32Array => {
  const next = sequence(11);
  return Uint32Array.from(
    { length: 3 * 65536 },
    (_, i) =>
      (((i & 511) << 23) |
        (i & 512 ? next() & 0x7fffff : [0, 1, 0x7fffff, 0x400000][(i >> 10) & 3]!)) >>>
      0,
  );
})();

someOf(
  5,
  it,
)([
  'ex2.approx',
  'ex2.approx.ftz',
  'lg2.approx',
  'lg2.approx.ftz',
  'sin.approx',
  'sin.approx.ftz',
  'cos.approx',
  'cos.approx.ftz',
  'tanh.approx',
])('%s.f32', (name) => {
  expect(differences(`mov.b32 %f, %a; ${name}.f32 %g, %f; mov.b32 %d, %g;`, singles, true)).toEqual(
    [],
  );
});

it.each(['eq', 'lt', 'le', 'gt', 'ge'])("%%lanemask_%s, whatever the block's shape", (name) => {
  const text = `.version 8.6
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out)
{
  .reg .b32 %m, %t, %x, %y, %z, %n; .reg .b64 %out;
  ld.param.u64 %out, [out]; mov.u32 %t, %tid.x; mov.u32 %y, %tid.y; mov.u32 %n, %ntid.x;
  mad.lo.u32 %t, %y, %n, %t;
  mad.wide.u32 %out, %t, 4, %out; mov.u32 %m, %lanemask_${name}; st.global.u32 [%out], %m;
  ret;
}`;
  const one = (lane: number): number =>
    [1 << lane, (1 << lane) - 1, (2 << lane) - 1, -2 << lane, -1 << lane][
      ['eq', 'lt', 'le', 'gt', 'ge'].indexOf(name)
    ]! >>> 0;
  for (const block of [[32], [96], [64, 2], [16, 4], [12, 4], [8, 3], [100]] as const) {
    const grid = new Grid(text, { simd: true });
    const [x, y = 1] = block;
    const out = grid.put(new Uint32Array(x * y));
    expect(grid.run('k', [{ i64: out.address }], { grid: [1], block: [...block] }).status).toBe(
      STATUS.done,
    );
    expect([...out.view], block.join('×')).toEqual(
      Array.from({ length: x * y }, (_, i) => one(i % 32)),
    );
  }
});
