// wgmma in every type, with operands in registers and in shared memory in every layout, against a
// plain matrix product. Places in shared memory are written here as the canonical layouts of the
// PTX ISA ("Asynchronous Warpgroup Level Matrix Shared Memory Layout"), and not as the compiler
// computes them.

import { describe, expect, it } from 'vitest';
import { someOf } from '../../../test/random-runs.js';

import { FAULT, compilePtx } from '../index.js';
import { Grid, kernelText } from '../run-grid.test-support.js';
import { decode, encode } from './element-values.test-support.js';

type Matrix = readonly (readonly number[])[];

/** Bytes of shared memory of the kernel. */
const SHARED = 98304;

const BITS: Readonly<Record<string, number>> = {
  f16: 16,
  bf16: 16,
  tf32: 32,
  e4m3: 8,
  e5m2: 8,
  s8: 8,
  u8: 8,
  b1: 1,
};
const RANGES: Readonly<Record<string, readonly [number, number]>> = {
  f16: [-8, 8],
  bf16: [-8, 8],
  tf32: [-8, 8],
  e4m3: [-4, 4],
  e5m2: [-4, 4],
  s8: [-128, 127],
  u8: [0, 255],
  b1: [0, 1],
};

/** Numbers from a multiplicative generator, the same in each run. */
function numbers(seed: number): (below: number) => number {
  let state = seed * 2 + 1;
  return (below) => {
    state = Math.imul(state, 0x2c9277b5) >>> 0;
    return (state >>> 8) % below;
  };
}

function matrix(type: string, rows: number, columns: number, seed: number): number[][] {
  const next = numbers(seed);
  const [least, most] = RANGES[type]!;
  return Array.from({ length: rows }, () =>
    Array.from({ length: columns }, () => least + next(most - least + 1)),
  );
}

/** Where a matrix is in shared memory: its descriptor's fields, and the swizzled bytes. */
interface Placement {
  readonly start: number;
  readonly lead: number;
  readonly stride: number;
  /** 0, 32, 64 or 128 */
  readonly swizzle: number;
  /** The first index is that of rows of A, or columns of B; the second is the common one. */
  place(outer: number, inner: number): number;
}

const SWIZZLE_CODES: Readonly<Record<number, bigint>> = { 0: 0n, 128: 1n, 64: 2n, 32: 3n };

function descriptor({ start, lead, stride, swizzle }: Placement): bigint {
  return (
    BigInt(start >> 4) |
    (BigInt(lead >> 4) << 16n) |
    (BigInt(stride >> 4) << 32n) |
    (SWIZZLE_CODES[swizzle]! << 62n)
  );
}

/** Bits 4 to 6 of an address, exclusive or as many of bits 7 to 9 as the swizzle has. */
const swizzled = (address: number, swizzle: number): number =>
  address ^ (((address >> 7) & (Math.max(swizzle / 16, 1) - 1)) << 4);

/**
 * A matrix of `outer` times `inner` bytes at `from`, with the common dimension contiguous. `gap`
 * makes the strides larger than needed.
 */
function commonMajor(from: number, swizzle: number, bits: number, gap: number): Placement {
  if (swizzle === 0) {
    // Core matrices of 8 x 16 bytes; the two along the common dimension are `lead` bytes apart.
    const lead = 128 + 128 * gap;
    const stride = 2 * lead;
    return {
      start: from,
      lead,
      stride,
      swizzle,
      place: (outer, inner) => {
        const byte = Math.floor((inner * bits) / 8);
        return (
          from +
          (outer % 8) * 16 +
          Math.floor(outer / 8) * stride +
          Math.floor(byte / 16) * lead +
          (byte % 16)
        );
      },
    };
  }
  const stride = 8 * swizzle * (1 + gap);
  return {
    start: from,
    lead: 16,
    stride,
    swizzle,
    place: (outer, inner) =>
      swizzled(
        from +
          (outer % 8) * swizzle +
          Math.floor(outer / 8) * stride +
          Math.floor((inner * bits) / 8),
        swizzle,
      ),
  };
}

/** The same with rows of A or columns of B contiguous: elements of 16 bits only. */
function outerMajor(from: number, swizzle: number, outerExtent: number, gap: number): Placement {
  if (swizzle === 0) {
    const stride = 128 + 128 * gap;
    const lead = (outerExtent / 8) * stride;
    return {
      start: from,
      lead,
      stride,
      swizzle,
      place: (outer, inner) =>
        from +
        (outer % 8) * 2 +
        Math.floor(outer / 8) * stride +
        (inner % 8) * 16 +
        Math.floor(inner / 8) * lead,
    };
  }
  const perSpan = swizzle / 2;
  const stride = 8 * swizzle;
  const lead = 2 * stride * (1 + gap);
  return {
    start: from,
    lead,
    stride,
    swizzle,
    place: (outer, inner) =>
      swizzled(
        from +
          (outer % perSpan) * 2 +
          Math.floor(outer / perSpan) * lead +
          (inner % 8) * swizzle +
          Math.floor(inner / 8) * stride,
        swizzle,
      ),
  };
}

function put(memory: Uint8Array, type: string, values: Matrix, { place }: Placement): void {
  const bits = BITS[type]!;
  values.forEach((row, outer) => {
    row.forEach((value, inner) => {
      const at = place(outer, inner);
      const code = encode(type, value);
      if (bits === 1) memory[at]! |= Number(code) << (inner % 8);
      else for (let i = 0; i < bits / 8; i++) memory[at + i] = Number(code >> BigInt(8 * i)) & 255;
    });
  });
}

/** The row and column of a lane's element of the accumulators, and of A in registers. */
const accumulatorPlace = (thread: number, i: number): readonly [number, number] => [
  16 * (thread >> 5) + ((thread & 31) >> 2) + (i & 2 ? 8 : 0),
  8 * (i >> 2) + 2 * (thread & 3) + (i & 1),
];
const registerPlace =
  (perRegister: number) =>
  (thread: number, i: number): readonly [number, number] => {
    const register = Math.floor(i / perRegister);
    return [
      16 * (thread >> 5) + ((thread & 31) >> 2) + (register & 1 ? 8 : 0),
      4 * perRegister * (register >> 1) + perRegister * (thread & 3) + (i % perRegister),
    ];
  };

interface Case {
  readonly types: readonly [d: string, a: string, b: string];
  readonly n: number;
  readonly a: 'registers' | { transposed: boolean; swizzle: number };
  readonly b: { transposed: boolean; swizzle: number };
  readonly accumulate?: boolean;
  readonly signs?: readonly [number, number];
  readonly gap?: number;
  readonly saturating?: boolean;
}

const K: Readonly<Record<string, number>> = {
  f16: 16,
  bf16: 16,
  tf32: 8,
  e4m3: 32,
  e5m2: 32,
  s8: 32,
  u8: 32,
  b1: 256,
};

/** The matrices of a case, the kernel, and what it has to compute. */
function run(given: Case): { got: number[][]; wanted: number[][] } {
  const [d, aType, bType] = given.types;
  const { n, accumulate = true, signs = [1, 1], gap = 0 } = given;
  const k = K[aType]!;
  const a = matrix(aType, 64, k, n + 1);
  const b = matrix(bType, n, k, n + 2);
  const next = numbers(n);
  const c = Array.from({ length: 64 }, () => Array.from({ length: n }, () => next(101) - 50));
  const memory = new Uint8Array(SHARED);
  const placed = (
    { transposed, swizzle }: { transposed: boolean; swizzle: number },
    from: number,
    extent: number,
    type: string,
  ): Placement =>
    transposed
      ? outerMajor(from, swizzle, extent, gap)
      : commonMajor(from, swizzle, BITS[type]!, gap);
  const bPlacement = placed(given.b, 32768, n, bType);
  put(memory, bType, b, bPlacement);
  const inRegisters = given.a === 'registers';
  const aPlacement = given.a === 'registers' ? undefined : placed(given.a, 1024, 64, aType);
  if (aPlacement) put(memory, aType, a, aPlacement);

  const width = d === 'f16' ? 2 : 1;
  const count = n / 2 / width;
  const kind = d === 'f32' ? 'f32' : 'b32';
  const accumulators = new Uint32Array(128 * count);
  for (let thread = 0; thread < 128; thread++)
    for (let i = 0; i < n / 2; i++) {
      const [row, column] = accumulatorPlace(thread, i);
      const code = Number(BigInt.asUintN(32, encode(d, c[row]![column]!)));
      accumulators[thread * count + Math.floor(i / width)]! |= code << ((16 * i) % (16 * width));
    }
  const perRegister = Math.max(32 / BITS[aType]!, 1);
  const place = registerPlace(perRegister);
  const fragments = new Uint32Array(128 * 4);
  if (inRegisters)
    for (let thread = 0; thread < 128; thread++)
      for (let i = 0; i < 4 * perRegister; i++) {
        const [row, column] = place(thread, i);
        const code = Number(BigInt.asUintN(BITS[aType]!, encode(aType, a[row]![column]!)));
        fragments[thread * 4 + Math.floor(i / perRegister)]! |=
          code << (BITS[aType]! * (i % perRegister));
      }

  const list = (prefix: string, length: number): string =>
    `{${Array.from({ length }, (_, i) => `%${prefix}${i}`).join(', ')}}`;
  const each = (text: (index: number) => string): string =>
    Array.from({ length: count }, (_, i) => text(i)).join('\n');
  const transposes = BITS[aType] === 16;
  const operands = [
    ...(['s8', 'u8', 'b1'].includes(aType) ? [] : signs.map(String)),
    ...(transposes && given.a !== 'registers' ? [given.a.transposed ? '1' : '0'] : []),
    ...(transposes ? [given.b.transposed ? '1' : '0'] : []),
  ];
  const name = [
    `wgmma.mma_async.sync.aligned.m64n${n}k${k}`,
    ...(given.saturating ? ['satfinite'] : []),
    ...given.types,
    ...(aType === 'b1' ? ['and', 'popc'] : []),
  ].join('.');
  const grid = new Grid(
    kernelText(
      'k',
      ['data', 'c', 'fragments', 'd'].map((param) => `.param .u64 ${param}`).join(', ') +
        ', .param .u64 descA, .param .u64 descB, .param .u32 scale',
      `      .reg .b64 %p, %q, %da, %db, %base; .reg .b32 %t, %i, %w, %s; .reg .pred %more, %scale;
      .reg .${kind} %d<${count}>; .reg .b32 %a<4>; .reg .f32 %f<4>;
      mov.u32 %t, %tid.x;
      ld.param.u64 %p, [data]; mov.u32 %s, memory;
      shl.b32 %i, %t, 2;
    fill:
      cvt.u64.u32 %q, %i; add.u64 %q, %q, %p; ld.global.b32 %w, [%q];
      add.u32 %w, %w, 0; .reg .b32 %at; add.u32 %at, %s, %i; st.shared.b32 [%at], %w;
      add.u32 %i, %i, 512; setp.lt.u32 %more, %i, ${SHARED}; @%more bra fill;
      ld.param.u64 %p, [c]; mad.wide.u32 %p, %t, ${4 * count}, %p;
      ${each((i) => `ld.global.${kind} %d${i}, [%p+${4 * i}];`)}
      ld.param.u64 %p, [fragments]; mad.wide.u32 %p, %t, 16, %p;
      ${[0, 1, 2, 3].map((i) => `ld.global.b32 %a${i}, [%p+${4 * i}];`).join(' ')}
      and.b32 %w, %s, 0x3ffff; shr.u32 %w, %w, 4; cvt.u64.u32 %base, %w;
      ld.param.u64 %da, [descA]; add.u64 %da, %da, %base;
      ld.param.u64 %db, [descB]; add.u64 %db, %db, %base;
      ld.param.u32 %w, [scale]; setp.ne.u32 %scale, %w, 0;
      fence.proxy.async; bar.sync 0;
      wgmma.fence.sync.aligned;
      ${name} ${list('d', count)}, ${inRegisters ? list('a', 4) : '%da'}, %db, %scale${operands
        .map((operand) => `, ${operand}`)
        .join('')};
      wgmma.commit_group.sync.aligned;
      wgmma.wait_group.sync.aligned 0;
      ld.param.u64 %p, [d]; mad.wide.u32 %p, %t, ${4 * count}, %p;
      ${each((i) => `st.global.${kind} [%p+${4 * i}], %d${i};`)}
      ret;`,
      '.extern .shared .align 1024 .b8 memory[];',
    ),
  );
  const inputs = [memory, accumulators, fragments].map((bytes) => grid.put(bytes));
  const output = grid.put(new Uint8Array(128 * 4 * count));
  const outcome = grid.run(
    'k',
    [
      ...[...inputs, output].map(({ address }) => ({ i64: address })),
      { i64: aPlacement ? descriptor(aPlacement) : 0n },
      { i64: descriptor(bPlacement) },
      { i32: accumulate ? 1 : 0 },
    ],
    { grid: [1], block: [128], dynamicShared: SHARED },
  );
  expect(outcome.status).toBe(0);
  const words = new Uint32Array(output.view.slice().buffer);
  const got = Array.from({ length: 64 }, () => new Array<number>(n).fill(NaN));
  for (let thread = 0; thread < 128; thread++)
    for (let i = 0; i < n / 2; i++) {
      const [row, column] = accumulatorPlace(thread, i);
      const word = words[thread * count + Math.floor(i / width)]!;
      const bits = width === 2 ? (word >>> (16 * (i & 1))) & 0xffff : word;
      got[row]![column] = decode(d, BigInt(bits));
    }
  const sign = signs[0] * signs[1];
  const wanted = c.map((row, i) =>
    row.map((start, j) => {
      let sum = accumulate ? start : 0;
      for (let p = 0; p < k; p++) sum += sign * a[i]![p]! * b[j]![p]!;
      return sum;
    }),
  );
  return { got, wanted };
}

const FLOAT_TYPES: readonly (readonly [string, string, string])[] = [
  ['f32', 'f16', 'f16'],
  ['f16', 'f16', 'f16'],
  ['f32', 'bf16', 'bf16'],
  ['f32', 'tf32', 'tf32'],
  ['f32', 'e4m3', 'e4m3'],
  ['f16', 'e4m3', 'e5m2'],
  ['f32', 'e5m2', 'e4m3'],
  ['f16', 'e5m2', 'e5m2'],
];
const INTEGER_TYPES: readonly (readonly [string, string, string])[] = [
  ['s32', 's8', 's8'],
  ['s32', 'u8', 's8'],
  ['s32', 's8', 'u8'],
  ['s32', 'u8', 'u8'],
  ['s32', 'b1', 'b1'],
];
const NORMAL = { transposed: false, swizzle: 128 };

describe('wgmma', () => {
  describe.each([...FLOAT_TYPES, ...INTEGER_TYPES])('%s = %s x %s', (...types) => {
    someOf(1, it)([24, 8, 64, 256])('64 x %i', (n) => {
      const { got, wanted } = run({ types, n, a: NORMAL, b: NORMAL });
      expect(got).toEqual(wanted);
    });
    it('A in registers', () => {
      const { got, wanted } = run({ types, n: 32, a: 'registers', b: NORMAL });
      expect(got).toEqual(wanted);
    });
    someOf(1, it)([64, 0, 32, 128])('swizzle of %i bytes, with gaps between strides', (swizzle) => {
      const b = { transposed: false, swizzle };
      const { got, wanted } = run({ types, n: 48, a: b, b, gap: swizzle === 128 ? 1 : 2 });
      expect(got).toEqual(wanted);
    });
  });

  describe.each(FLOAT_TYPES.slice(0, 3))('%s = %s x %s, transposed', (...types) => {
    someOf(
      3,
      it,
    )([
      [0, 0],
      [32, 64],
      [64, 128],
      [128, 32],
      [128, 128],
    ])('swizzles of %i and %i bytes', (left, right) => {
      const { got, wanted } = run({
        types,
        n: 128,
        a: { transposed: true, swizzle: left },
        b: { transposed: true, swizzle: right },
      });
      expect(got).toEqual(wanted);
    });
    it('one of the two', () => {
      for (const [left, right] of [
        [true, false],
        [false, true],
      ] as const) {
        const { got, wanted } = run({
          types,
          n: 64,
          a: { transposed: left, swizzle: 64 },
          b: { transposed: right, swizzle: 128 },
          gap: 1,
        });
        expect(got).toEqual(wanted);
      }
      const { got, wanted } = run({
        types,
        n: 64,
        a: 'registers',
        b: { transposed: true, swizzle: 128 },
      });
      expect(got).toEqual(wanted);
    });
  });

  it('without the accumulators', () => {
    for (const types of [FLOAT_TYPES[0]!, FLOAT_TYPES[1]!, INTEGER_TYPES[0]!]) {
      const { got, wanted } = run({ types, n: 16, a: NORMAL, b: NORMAL, accumulate: false });
      expect(got).toEqual(wanted);
    }
  });

  it.each([
    [-1, 1],
    [1, -1],
    [-1, -1],
  ] as const)('factors %i and %i', (...signs) => {
    for (const a of [NORMAL, 'registers'] as const) {
      const { got, wanted } = run({ types: FLOAT_TYPES[0]!, n: 16, a, b: NORMAL, signs });
      expect(got).toEqual(wanted);
    }
  });
});

describe('refusals', () => {
  const refusal = (instruction: string): string => {
    try {
      compilePtx(
        kernelText(
          'k',
          '.param .u64 x',
          '.reg .b32 %r<16>; .reg .f32 %f<8>; .reg .b64 %p<4>; .reg .pred %q;\n' +
            `${instruction}\nret;`,
        ),
      );
    } catch (error) {
      return (error as Error).message;
    }
    return 'compiled';
  };
  const D = '{%f0,%f1,%f2,%f3}';
  it.each([
    [
      `wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0,%f1}, %p0, %p1, %q, 1, 1, 0, 0;`,
      /takes 4 registers, found 2/,
    ],
    [
      `wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 ${D}, %p0, %p1, %q, 2, 1, 0, 0;`,
      /takes -1 or 1 as operand 5/,
    ],
    [
      `wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 ${D}, %p0, %p1, %q, 1, 1, 0, 2;`,
      /takes 0 or 1 as operand 8/,
    ],
    [`wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.f16 ${D}, %p0, %p1, %q, 1, 1, 0, 0;`, /wgmma/],
    [`wgmma.mma_async.sync.aligned.m64n12k16.f32.f16.f16 ${D}, %p0, %p1, %q, 1, 1, 0, 0;`, /wgmma/],
    [
      'wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 ' +
        `${D}, %p0, %p1, %r0, 0, %q, 1, 1, 0, 0;`,
      /wgmma/,
    ],
    ['wgmma.wait_group.sync.aligned 8;', /from 0 to 7/],
  ])('%s', (instruction, message) => {
    expect(refusal(instruction)).toMatch(message);
  });
  it('a target without warp groups', () => {
    expect(() =>
      compilePtx(kernelText('k', '', 'wgmma.fence.sync.aligned;\nret;').replace('sm_90a', 'sm_90')),
    ).toThrow(/sm_90a/);
  });
});

it('a matrix beyond shared memory is a fault', () => {
  const grid = new Grid(
    kernelText(
      'k',
      '',
      `.shared .align 1024 .b8 memory[1024]; .reg .b64 %d; .reg .b32 %s; .reg .f32 %f<4>;
      .reg .pred %p;
      mov.u32 %s, memory; and.b32 %s, %s, 0x3ffff; shr.u32 %s, %s, 4; cvt.u64.u32 %d, %s;
      add.u64 %d, %d, 0x4000004000000000;
      setp.ne.u32 %p, %s, %s;
      wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0,%f1,%f2,%f3}, %d, %d, %p, 1, 1, 0, 0;
      ret;`,
    ),
  );
  const { fault } = grid.run('k', [], { grid: [1], block: [128] });
  expect(fault).toMatchObject({ kind: FAULT.outOfBounds });
});
