// wmma end to end: matrices in memory, in every shape, type and layout, against a plain product;
// and the moves of tiles between memory and lanes, for which the PTX ISA defines the contents of
// each lane.

import { describe, expect, it } from 'vitest';
import { FAULT } from '../index.js';
import { Grid, kernelText } from '../run-grid.test-support.js';
import { decode, encode } from './element-values.test-support.js';
import { tagsOf } from '../../../test/random-runs.js';

const BITS: Readonly<Record<string, number>> = {
  f16: 16,
  bf16: 16,
  tf32: 32,
  f32: 32,
  f64: 64,
  s8: 8,
  u8: 8,
  s4: 4,
  u4: 4,
  b1: 1,
  s32: 32,
};

let state = 12345;
const below = (limit: number): number => {
  state = (Math.imul(state, 1103515245) + 12345) >>> 0;
  return (state >>> 8) % limit;
};
const LIMITS: Readonly<Record<string, readonly [number, number]>> = {
  s8: [-128, 256],
  u8: [0, 256],
  s4: [-8, 16],
  u4: [0, 16],
  b1: [0, 2],
  s32: [-1000, 2001],
};
const matrix = (type: string, rows: number, columns: number): number[][] => {
  const [least, count] = LIMITS[type] ?? [-8, 17];
  return Array.from({ length: rows }, () =>
    Array.from({ length: columns }, () => least + below(count)),
  );
};

/** Stores a matrix in memory; `stride` is in elements between rows, or columns. */
function pack(
  type: string,
  values: readonly (readonly number[])[],
  order: 'row' | 'col',
  stride: number,
): Uint8Array {
  const bits = BITS[type]!;
  const rows = values.length;
  const columns = values[0]!.length;
  const out = new Uint8Array(Math.ceil(((order === 'row' ? rows : columns) * stride * bits) / 8));
  values.forEach((row, i) =>
    row.forEach((value, j) => {
      const at = (order === 'row' ? i * stride + j : j * stride + i) * bits;
      const code = encode(type, value);
      for (let bit = 0; bit < bits; bit++)
        if ((code >> BigInt(bit)) & 1n) out[(at + bit) >> 3]! |= 1 << ((at + bit) & 7);
    }),
  );
  return out;
}

function unpack(
  type: string,
  bytes: Uint8Array,
  rows: number,
  columns: number,
  order: 'row' | 'col',
  stride: number,
): number[][] {
  const size = BITS[type]! / 8;
  return Array.from({ length: rows }, (_, i) =>
    Array.from({ length: columns }, (__, j) => {
      const at = (order === 'row' ? i * stride + j : j * stride + i) * size;
      let code = 0n;
      for (let byte = 0; byte < size; byte++) code |= BigInt(bytes[at + byte]!) << BigInt(8 * byte);
      return decode(type, code);
    }),
  );
}

interface Case {
  shape: string;
  multiplicand: string;
  c: string;
  d: string;
  orders: readonly ('row' | 'col')[];
  operation?: string;
}

/** The sizes of fragments in the ISA's table for wmma: a, b, c or d. */
function registers(shape: string, operand: 'a' | 'b' | 'c', type: string): number {
  if (operand === 'c') return shape.startsWith('m8n8') ? 2 : type === 'f16' ? 4 : 8;
  if (type === 'f16') return 8;
  if (type === 'bf16')
    return { m16n16k16: 4, m8n32k16: operand === 'a' ? 2 : 8, m32n8k16: operand === 'a' ? 8 : 2 }[
      shape
    ]!;
  if (type === 'tf32') return 4;
  if (type === 's8' || type === 'u8')
    return { m16n16k16: 2, m8n32k16: operand === 'a' ? 1 : 4, m32n8k16: operand === 'a' ? 4 : 1 }[
      shape
    ]!;
  return 1;
}

function multiply(
  { shape, multiplicand, c, d, operation }: Case,
  orders: readonly ('row' | 'col')[],
  space: 'global' | 'shared' | 'generic',
  padding: number,
): void {
  const [m, n, k] = /m(\d+)n(\d+)k(\d+)/.exec(shape)!.slice(1).map(Number) as [
    number,
    number,
    number,
  ];
  const [orderA, orderB, orderC, orderD] = orders as [
    'row' | 'col',
    'row' | 'col',
    'row' | 'col',
    'row' | 'col',
  ];
  const a = matrix(multiplicand, m, k);
  const b = matrix(multiplicand, k, n);
  const start = matrix(c, m, n);
  // Strides in elements; the padding keeps rows aligned to 16 bytes.
  const stride = (type: string, own: number): number =>
    padding ? own + (padding * 128) / BITS[type]! : own;
  const strides = {
    a: stride(multiplicand, orderA === 'row' ? k : m),
    b: stride(multiplicand, orderB === 'row' ? n : k),
    c: stride(c, orderC === 'row' ? n : m),
    d: stride(d, orderD === 'row' ? n : m),
  };
  const register = (type: string): string =>
    type === 'f64' ? 'f64' : type === 'f32' ? 'f32' : 'b32';
  const list = (name: string, count: number): string =>
    `{${Array.from({ length: count }, (_, index) => `%${name}${index}`).join(', ')}}`;
  const counts = {
    a: registers(shape, 'a', multiplicand),
    b: registers(shape, 'b', multiplicand),
    c: registers(shape, 'c', c),
    d: registers(shape, 'c', d),
  };
  const packed = [
    pack(multiplicand, a, orderA, strides.a),
    pack(multiplicand, b, orderB, strides.b),
    pack(c, start, orderC, strides.c),
  ];
  const ss = space === 'generic' ? '' : `.${space}`;
  // Shared memory: thread 0 copies each matrix there, then the warp reads it.
  const copy = (name: string, bytes: number): string =>
    space !== 'shared'
      ? ''
      : `
    mov.u32 %i, 0; copy_${name}: mov.u64 %s, buffer_${name}; cvt.u64.u32 %w, %i;
    add.u64 %s, %s, %w; add.u64 %w, %p, %w; ld.global.b8 %h, [%w]; st.shared.b8 [%s], %h;
    add.u32 %i, %i, 1; setp.lt.u32 %q, %i, ${bytes}; @%q bra copy_${name}; bar.sync 0;
      mov.u64 %p, buffer_${name};`;
  const load = (name: 'a' | 'b' | 'c', type: string, order: string, bytes: number): string => `
    ld.param.u64 %p, [${name}]; ${copy(name, bytes)}
    wmma.load.${name}.sync.aligned.${order}.${shape}${ss}.${type} ${list(name, counts[name])},
      [%p]${padding ? `, ${name === 'a' ? '%n' : strides[name]}` : ''};`;
  const types = multiplicand === 'f16' ? `${d}.${c}` : `${d}.${multiplicand}.${multiplicand}.${c}`;
  const body = `.reg .b64 %p, %s, %w; .reg .b32 %i, %n; .reg .b16 %h; .reg .pred %q;
    ${
      space === 'shared'
        ? ['a', 'b', 'c']
            .map(
              (name, index) => `.shared .align 32 .b8
      buffer_${name}[${packed[index]!.length}];`,
            )
            .join(' ')
        : ''
    }
    ${(['a', 'b', 'c', 'd'] as const)
      .map(
        (name) =>
          `.reg
      .${register(name === 'c' ? c : name === 'd' ? d : multiplicand)} ` +
          `%${name}<${counts[name]}>;`,
      )
      .join(' ')}
    mov.u32 %n, ${strides.a};
    ${load('a', multiplicand, orderA, packed[0]!.length)}
      ${load('b', multiplicand, orderB, packed[1]!.length)}
        ${load('c', c, orderC, packed[2]!.length)}
    wmma.mma${operation ?? ''}.sync.aligned.${orderA}.${orderB}.${shape}.${types}
      ${list('d', counts.d)}, ${list('a', counts.a)}, ${list('b', counts.b)},
        ${list('c', counts.c)};
    ld.param.u64 %p, [d];
    wmma.store.d.sync.aligned.${orderD}.${shape}${space === 'shared' ? '' : ss}.${d}
      [%p], ${list('d', counts.d)}${padding ? `, ${strides.d}` : ''};
    ret;`;
  const grid = new Grid(
    kernelText('k', '.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d', body),
  );
  const inputs = packed.map((bytes) => grid.put(bytes));
  const output = grid.put(new Uint8Array(((orderD === 'row' ? m : n) * strides.d * BITS[d]!) / 8));
  const outcome = grid.run(
    'k',
    [...inputs, output].map(({ address }) => ({ i64: address })),
    { grid: [1], block: [32] },
  );
  expect(outcome.status).toBe(0);
  const term = (x: number, y: number): number => (operation === '.xor.popc' ? x ^ y : x * y);
  const expected = start.map((row, i) =>
    row.map((from, j) => a[i]!.reduce((sum, value, p) => sum + term(value, b[p]![j]!), from)),
  );
  expect(unpack(d, output.view, m, n, orderD, strides.d)).toEqual(expected);
}

const ALL = ['m16n16k16', 'm8n32k16', 'm32n8k16'];
const CASES: readonly Case[] = [
  ...ALL.flatMap((shape) =>
    [
      ['f32', 'f32'],
      ['f16', 'f16'],
      ['f32', 'f16'],
      ['f16', 'f32'],
    ].map(([c, d]) => ({ shape, multiplicand: 'f16', c: c!, d: d!, orders: [] })),
  ),
  ...ALL.map((shape) => ({ shape, multiplicand: 'bf16', c: 'f32', d: 'f32', orders: [] })),
  ...ALL.flatMap((shape) =>
    ['s8', 'u8'].map((multiplicand) => ({ shape, multiplicand, c: 's32', d: 's32', orders: [] })),
  ),
  { shape: 'm16n16k8', multiplicand: 'tf32', c: 'f32', d: 'f32', orders: [] },
  { shape: 'm8n8k4', multiplicand: 'f64', c: 'f64', d: 'f64', orders: [] },
  ...['s4', 'u4'].map((multiplicand): Case => ({
    shape: 'm8n8k32',
    multiplicand,
    c: 's32',
    d: 's32',
    orders: ['row', 'col'],
  })),
  ...['.xor.popc', '.and.popc'].map((operation): Case => ({
    shape: 'm8n8k128',
    multiplicand: 'b1',
    c: 's32',
    d: 's32',
    orders: ['row', 'col'],
    operation,
  })),
];

describe('wmma', () => {
  for (const item of CASES) {
    it(
      `${item.shape} ${item.d} = ${item.multiplicand} * ${item.multiplicand} + ` +
        `${item.c}${item.operation ?? ''}`,
      { tags: tagsOf(CASES, item, 6) },
      () => {
        const both = ['row', 'col'] as const;
        for (const orderA of item.orders.length ? ['row' as const] : both) {
          for (const orderB of item.orders.length ? ['col' as const] : both) {
            for (const orderC of both) {
              for (const padding of [0, 2])
                multiply(
                  item,
                  [orderA, orderB, orderC, orderC === 'row' ? 'col' : 'row'],
                  'global',
                  padding,
                );
            }
          }
        }
        multiply(item, ['row', 'col', 'row', 'row'], 'shared', 1);
        multiply(item, ['row', 'col', 'col', 'row'], 'generic', 0);
      },
    );
  }
  it('a fragment outside memory is a fault at its line', () => {
    const grid = new Grid(
      kernelText(
        'k',
        '.param .u64 out',
        `.reg .b32 %a<8>; .reg .b64 %o; mov.b64 %o, 1024;
      wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%a0,%a1,%a2,%a3,%a4,%a5,%a6,%a7}, [%o];
      ret;`,
      ),
    );
    const { status, fault } = grid.run('k', [{ i64: 0 }], { grid: [1], block: [32] });
    expect(status).toBe(3);
    expect(fault).toMatchObject({ kind: FAULT.outOfBounds, address: 1024n, line: 8 });
  });
});

/**
 * Runs one warp: 2 KiB of shared memory filled from `input`, `body`, then %r0 to %r3 of each lane.
 */
function tiles(body: string, input: Uint8Array): { words: Uint32Array; shared: Uint8Array } {
  const grid = new Grid(
    kernelText(
      'k',
      '.param .u64 in, .param .u64 out, .param .u64 dump',
      `
    .reg .b64 %p, %w; .reg .b32 %i, %t, %s, %x, %y, %r<8>; .reg .b16 %h; .reg .pred %q;
    .shared .align 16 .b8 tile[2048];
    mov.u32 %t, %tid.x; mov.u32 %s, tile; ld.param.u64 %p, [in]; mov.u32 %i, %t;
    fill: cvt.u64.u32 %w, %i; add.u64 %w, %p, %w; ld.global.b8 %h, [%w]; add.u32 %x, %s, %i;
    st.shared.b8 [%x], %h;
    add.u32 %i, %i, 32; setp.lt.u32 %q, %i, 2048; @%q bra fill; bar.warp.sync -1;
    ${body}
    ld.param.u64 %p, [out]; mad.wide.u32 %p, %t, 16, %p;
    st.global.v4.b32 [%p], {%r0, %r1, %r2, %r3}; bar.warp.sync -1;
    ld.param.u64 %p, [dump]; mov.u32 %i, %t;
    dump: cvt.u64.u32 %w, %i; add.u64 %w, %p, %w; add.u32 %x, %s, %i; ld.shared.b8 %h, [%x];
    st.global.b8 [%w], %h;
    add.u32 %i, %i, 32; setp.lt.u32 %q, %i, 2048; @%q bra dump; ret;`,
    ),
  );
  const source = grid.put(input);
  const out = grid.put(new Uint32Array(128));
  const shared = grid.put(new Uint8Array(2048));
  expect(
    grid.run('k', [{ i64: source.address }, { i64: out.address }, { i64: shared.address }], {
      grid: [1],
      block: [32],
    }).status,
  ).toBe(0);
  return { words: out.view, shared: shared.view };
}

const noise = Uint8Array.from({ length: 2048 }, () => below(256));
/** Rows 48 bytes apart, in a permuted order: %x is the row's address for this lane. */
const ROWS = 'xor.b32 %y, %t, 5; mad.lo.u32 %x, %y, 48, %s;';
const rowStart = (lane: number): number => (lane ^ 5) * 48;

describe('ldmatrix, stmatrix, movmatrix', () => {
  const half = (row: number, column: number): number =>
    noise[rowStart(row) + 2 * column]! | (noise[rowStart(row) + 2 * column + 1]! << 8);
  for (const count of [1, 2, 4]) {
    const list = `{${['%r0', '%r1', '%r2', '%r3'].slice(0, count).join(', ')}}`;
    for (const trans of ['', '.trans']) {
      it(`ldmatrix.sync.aligned.m8n8.x${count}${trans}.shared.b16`, () => {
        const { words } = tiles(
          `${ROWS} ldmatrix.sync.aligned.m8n8.x${count}${trans}.shared.b16 ${list}, [%x];`,
          noise,
        );
        for (let lane = 0; lane < 32; lane++) {
          for (let j = 0; j < count; j++) {
            const [row, column] = [lane >> 2, 2 * (lane % 4)];
            const wanted = trans
              ? half(8 * j + column, row) | (half(8 * j + column + 1, row) << 16)
              : half(8 * j + row, column) | (half(8 * j + row, column + 1) << 16);
            expect(words[4 * lane + j]).toBe(wanted >>> 0);
          }
        }
      });
      it(`stmatrix.sync.aligned.m8n8.x${count}${trans}.shared.b16 puts back what ldmatrix
        read`, () => {
        const clear =
          'mov.u32 %i, 0; zero: add.u32 %y, %s, %i; st.shared.b32 [%y], 0; add.u32 %i, %i, 4; ' +
          'setp.lt.u32 %q, %i, 2048; @%q bra zero; bar.warp.sync -1;';
        const { shared } = tiles(
          `${ROWS} ldmatrix.sync.aligned.m8n8.x${count}${trans}.shared.b16 ${list}, [%x]; ${clear}
          stmatrix.sync.aligned.m8n8.x${count}${trans}.shared.b16 [%x], ${list};`,
          noise,
        );
        const wanted = new Uint8Array(2048);
        for (let lane = 0; lane < 8 * count; lane++)
          wanted.set(noise.subarray(rowStart(lane), rowStart(lane) + 16), rowStart(lane));
        expect(shared).toEqual(wanted);
      });
    }
  }
  for (const [format, width] of [
    ['b6x16_p32', 6],
    ['b4x16_p64', 4],
  ] as const) {
    const packed = (row: number, column: number): number => {
      let value = 0;
      for (let bit = 0; bit < width; bit++) {
        const at = column * width + bit;
        value |= ((noise[rowStart(row) + (at >> 3)]! >> (at & 7)) & 1) << bit;
      }
      return value;
    };
    it(`ldmatrix.sync.aligned.m8n16.x2.shared.b8x16.${format}`, () => {
      const { words } = tiles(
        `${ROWS} ldmatrix.sync.aligned.m8n16.x2.shared.b8x16.${format} {%r0, %r1}, [%x];`,
        noise,
      );
      for (let lane = 0; lane < 32; lane++) {
        for (let j = 0; j < 2; j++) {
          const bytes = [0, 1, 2, 3].map((e) => packed(8 * j + (lane >> 2), 4 * (lane % 4) + e));
          expect(words[4 * lane + j]).toBe(
            bytes.reduce((word, byte, e) => (word | (byte << (8 * e))) >>> 0, 0),
          );
        }
      }
    });
  }
  it('ldmatrix.sync.aligned.m16n16.x2.trans.shared.b8', () => {
    const { words } = tiles(
      `${ROWS} ldmatrix.sync.aligned.m16n16.x2.trans.shared.b8 {%r0, %r1, %r2, %r3}, [%x];`,
      noise,
    );
    for (let lane = 0; lane < 32; lane++) {
      for (let j = 0; j < 4; j++) {
        const bytes = [0, 1, 2, 3].map(
          (e) => noise[rowStart(16 * (j >> 1) + 4 * (lane % 4) + e) + (lane >> 2) + 8 * (j & 1)]!,
        );
        expect(words[4 * lane + j]).toBe(
          bytes.reduce((word, byte, e) => (word | (byte << (8 * e))) >>> 0, 0),
        );
      }
    }
  });
  it('movmatrix transposes between lanes', () => {
    const { words } = tiles(
      `${ROWS} ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r0, %r1}, [%x];
      movmatrix.sync.aligned.m8n8.trans.b16 %r2, %r0;
      ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r3}, [%x];`,
      noise,
    );
    for (let lane = 0; lane < 32; lane++) expect(words[4 * lane + 2]).toBe(words[4 * lane + 3]);
  });
  // A lane that has its part of one result begins the next instruction before the others have read
  // theirs.
  it('one after the other, and products of several shapes, do not disturb each other', () => {
    const ones = Uint8Array.from({ length: 2048 }, (_, index) => (index & 1 ? 0x3c : 0));
    const small =
      'mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f0, %f1, %f2, %f3}, {%r0, %r1}, ' +
      '{%r4}, {%f0, %f1, %f2, %f3};';
    const large =
      'mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f0, %f1, %f2, %f3}, {%r0, %r1, ' +
      '%r2, %r3}, {%r4, %r5}, {%f0, %f1, %f2, %f3};';
    const { words } = tiles(
      `.reg .f32 %f<4>; mov.f32 %f0, 0f00000000; mov.f32 %f1, %f0; mov.f32 %f2, %f0;
      mov.f32 %f3, %f0; ${ROWS}
      ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r4, %r5}, [%x];
      movmatrix.sync.aligned.m8n8.trans.b16 %r5, %r5;
      ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r0, %r1, %r2, %r3}, [%x];
      ${small} ${large} ${small}
      ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r0, %r1, %r2, %r3}, [%x]; ${large}
      ${[0, 1, 2, 3].map((index) => `cvt.rzi.u32.f32 %r${index}, %f${index};`).join(' ')}`,
      ones,
    );
    expect([...words]).toEqual(new Array<number>(128).fill(8 + 16 + 8 + 16));
  });
  it('a lane that has exited has no row: the others read zeros there', () => {
    const { words } = tiles(
      `${ROWS} setp.eq.u32 %q, %t, 1; @%q exit; ldmatrix.sync.aligned.m8n8.x1.shared.b16 ` +
        '{%r0}, [%x];',
      noise,
    );
    for (let lane = 0; lane < 32; lane++) {
      if (lane === 1) continue;
      const wanted =
        lane >> 2 === 1
          ? 0
          : (half(lane >> 2, 2 * (lane % 4)) | (half(lane >> 2, 2 * (lane % 4) + 1) << 16)) >>> 0;
      expect(words[4 * lane]).toBe(wanted);
    }
  });
});
