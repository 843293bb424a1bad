/**
 * mma in every shape and type against a plain matrix product. The positions of elements
 * are written here as in the PTX ISA, case by case, and not as the compiler computes them.
 */
import { describe, expect, it } from 'vitest';
import { compilePtx } from '../index.js';
import { Grid, kernelText } from '../run-grid.test-support.js';
import {
  BITS,
  C16,
  C8,
  ROW16,
  fragments,
  group,
  inGroup,
  isInteger,
  matrix,
  product,
  random,
  readFragments,
  run,
  size,
} from './mma.test-support.js';
import type { Fragment, Place } from './mma.test-support.js';

interface Shape {
  name: string;
  types: readonly string[];
  a: Place;
  b: Place;
  c: Place;
  registers: readonly [number, number];
}

const SHAPES: readonly Shape[] = [
  {
    name: 'm8n8k4',
    types: ['f64'],
    registers: [1, 1],
    a: (lane) => [group(lane), inGroup(lane)],
    b: (lane) => [inGroup(lane), group(lane)],
    c: C8,
  },
  {
    name: 'm16n8k4',
    types: ['tf32', 'f64'],
    registers: [2, 1],
    a: (lane, i) => [ROW16(lane, i === 1), inGroup(lane)],
    b: (lane) => [inGroup(lane), group(lane)],
    c: C16,
  },
  {
    name: 'm16n8k8',
    types: ['f16', 'bf16'],
    registers: [2, 1],
    a: (lane, i) => [ROW16(lane, i >= 2), inGroup(lane) * 2 + (i & 1)],
    b: (lane, i) => [inGroup(lane) * 2 + i, group(lane)],
    c: C16,
  },
  {
    name: 'm16n8k8',
    types: ['tf32', 'f64'],
    registers: [4, 2],
    a: (lane, i) => [ROW16(lane, i === 1 || i === 3), i < 2 ? inGroup(lane) : inGroup(lane) + 4],
    b: (lane, i) => [i === 0 ? inGroup(lane) : inGroup(lane) + 4, group(lane)],
    c: C16,
  },
  {
    name: 'm16n8k16',
    types: ['f16', 'bf16'],
    registers: [4, 2],
    a: (lane, i) => [
      ROW16(lane, !(i < 2 || (i >= 4 && i < 6))),
      inGroup(lane) * 2 + (i & 1) + (i < 4 ? 0 : 8),
    ],
    b: (lane, i) => [inGroup(lane) * 2 + (i & 1) + (i < 2 ? 0 : 8), group(lane)],
    c: C16,
  },
  {
    name: 'm16n8k16',
    types: ['f64'],
    registers: [8, 4],
    a: (lane, i) => [ROW16(lane, i % 2 === 1), (i % 2 === 0 ? i * 2 : i * 2 - 2) + inGroup(lane)],
    b: (lane, i) => [inGroup(lane) + i * 4, group(lane)],
    c: C16,
  },
  {
    name: 'm16n8k16',
    types: ['s8', 'u8', 'e4m3', 'e5m2'],
    registers: [2, 1],
    a: (lane, i) => [ROW16(lane, i >= 4), inGroup(lane) * 4 + (i & 3)],
    b: (lane, i) => [inGroup(lane) * 4 + i, group(lane)],
    c: C16,
  },
  {
    name: 'm16n8k32',
    types: ['s8', 'u8', 'e4m3', 'e5m2', 'e3m2', 'e2m3', 'e2m1'],
    registers: [4, 2],
    a: (lane, i) => [
      ROW16(lane, !(i < 4 || (i >= 8 && i < 12))),
      inGroup(lane) * 4 + (i & 3) + (i < 8 ? 0 : 16),
    ],
    b: (lane, i) => [inGroup(lane) * 4 + (i & 3) + (i < 4 ? 0 : 16), group(lane)],
    c: C16,
  },
  {
    name: 'm16n8k32',
    types: ['s4', 'u4'],
    registers: [2, 1],
    a: (lane, i) => [ROW16(lane, i >= 8), inGroup(lane) * 8 + (i & 7)],
    b: (lane, i) => [inGroup(lane) * 8 + (i & 7), group(lane)],
    c: C16,
  },
  {
    name: 'm16n8k64',
    types: ['s4', 'u4'],
    registers: [4, 2],
    a: (lane, i) => [
      ROW16(lane, !(i < 8 || (i >= 16 && i < 24))),
      inGroup(lane) * 8 + (i & 7) + (i < 16 ? 0 : 32),
    ],
    b: (lane, i) => [inGroup(lane) * 8 + (i & 7) + (i < 8 ? 0 : 32), group(lane)],
    c: C16,
  },
  {
    name: 'm8n8k16',
    types: ['s8', 'u8'],
    registers: [1, 1],
    a: (lane, i) => [group(lane), inGroup(lane) * 4 + i],
    b: (lane, i) => [inGroup(lane) * 4 + i, group(lane)],
    c: C8,
  },
  {
    name: 'm8n8k32',
    types: ['s4', 'u4'],
    registers: [1, 1],
    a: (lane, i) => [group(lane), inGroup(lane) * 8 + i],
    b: (lane, i) => [inGroup(lane) * 8 + i, group(lane)],
    c: C8,
  },
  {
    name: 'm8n8k128',
    types: ['b1'],
    registers: [1, 1],
    a: (lane, i) => [group(lane), inGroup(lane) * 32 + i],
    b: (lane, i) => [inGroup(lane) * 32 + i, group(lane)],
    c: C8,
  },
  {
    name: 'm16n8k128',
    types: ['b1'],
    registers: [2, 1],
    a: (lane, i) => [ROW16(lane, i >= 32), inGroup(lane) * 32 + (i & 31)],
    b: (lane, i) => [inGroup(lane) * 32 + i, group(lane)],
    c: C16,
  },
  {
    name: 'm16n8k256',
    types: ['b1'],
    registers: [4, 2],
    a: (lane, i) => [
      ROW16(lane, !(i < 32 || (i >= 64 && i < 96))),
      inGroup(lane) * 32 + (i & 31) + (i < 64 ? 0 : 128),
    ],
    b: (lane, i) => [inGroup(lane) * 32 + (i & 31) + (i < 32 ? 0 : 128), group(lane)],
    c: C16,
  },
];

const accumulators = (type: string): string[] =>
  isInteger(type)
    ? ['s32']
    : type === 'f64'
      ? ['f64']
      : type === 'bf16' || type === 'tf32'
        ? ['f32']
        : ['f32', 'f16'];
const accumulatorRegisters = (type: string, elements: number): number =>
  type === 'f16' ? elements / 2 : elements;

describe('mma', () => {
  for (const shape of SHAPES) {
    for (const left of shape.types) {
      // Types of one family may be mixed: s8 with u8, and the small floats with each other.
      for (const right of shape.types.filter(
        (other) =>
          isInteger(left) === isInteger(other) &&
          (BITS[other] === 8 || isInteger(left) || other === left),
      )) {
        for (const accumulator of accumulators(left)) {
          for (const operation of left === 'b1' ? ['.xor.popc', '.and.popc'] : ['']) {
            const kind = [left, right].some((type) => /^e[23]m[123]$/.test(type))
              ? '.kind::f8f6f4'
              : '';
            const types = [accumulator, left, right, accumulator].join('.');
            const text = `mma.sync.aligned.${shape.name}.row.col${kind}.${types}${operation}`;
            it(text, () => {
              const [m, n, k] = size(shape.name);
              const a = matrix(left, m, k, 1 + k);
              const b = matrix(right, k, n, 2 + k);
              const c = matrix(accumulator, m, n, 3 + k);
              const elements = (m * n) / 32;
              const registers = accumulatorRegisters(accumulator, elements);
              const output = run(
                text,
                [
                  {
                    type: left,
                    registers: shape.registers[0],
                    place: shape.a,
                    bytes: fragments(left, shape.registers[0], shape.a, a),
                  },
                  {
                    type: right,
                    registers: shape.registers[1],
                    place: shape.b,
                    bytes: fragments(right, shape.registers[1], shape.b, b),
                  },
                  {
                    type: accumulator,
                    registers,
                    place: shape.c,
                    bytes: fragments(accumulator, registers, shape.c, c),
                  },
                ],
                { type: accumulator, registers, place: shape.c },
              );
              const expected =
                operation === '.xor.popc'
                  ? c.map((row, i) =>
                      row.map((start, j) =>
                        a[i]!.reduce((sum, bit, p) => sum + (bit ^ b[p]![j]!), start),
                      ),
                    )
                  : product(a, b, c);
              expect(readFragments(output, accumulator, registers, shape.c, m, n)).toEqual(
                expected,
              );
            });
          }
        }
      }
    }
  }

  // m8n8k4 of f16: four products, each by eight threads.
  const quad = (lane: number): number => (lane % 16) >> 2;
  const upper = (lane: number): number => (lane < 16 ? 0 : 4);
  const PLACES: Readonly<Record<string, Place>> = {
    'a.row': (lane, i) => [(lane % 4) + upper(lane), i],
    'a.col': (lane, i) => [(i % 4) + upper(lane), lane % 4],
    'b.row': (lane, i) => [lane % 4, i + upper(lane)],
    'b.col': (lane, i) => [i, (lane % 4) + upper(lane)],
    f16: (lane, i) => [(lane % 4) + upper(lane), i],
    f32: (lane, i) => [(lane & 1) + (i & 2) + upper(lane), (i & 4) + (lane & 2) + (i & 1)],
  };
  for (const orders of ['row.row', 'row.col', 'col.row', 'col.col']) {
    // If C is single, D is.
    for (const [d, c] of [
      ['f32', 'f32'],
      ['f16', 'f16'],
      ['f32', 'f16'],
    ] as const) {
      it(`mma.sync.aligned.m8n8k4.${orders}.${d}.f16.f16.${c}`, () => {
        const [orderA, orderB] = orders.split('.');
        // The four products are stacked.
        const stacked =
          (rows: number, place: Place): Place =>
          (lane, i) => {
            const [row, column] = place(lane, i);
            return [quad(lane) * rows + row, column];
          };
        const a = matrix('f16', 32, 4, 11);
        const b = matrix('f16', 16, 8, 12);
        const accumulated = matrix(c, 32, 8, 13);
        const places = [
          stacked(8, PLACES[`a.${orderA}`]!),
          stacked(4, PLACES[`b.${orderB}`]!),
          stacked(8, PLACES[c]!),
          stacked(8, PLACES[d]!),
        ] as const;
        const registers = (type: string): number => (type === 'f16' ? 4 : 8);
        const output = run(
          `mma.sync.aligned.m8n8k4.${orders}.${d}.f16.f16.${c}`,
          [
            {
              type: 'f16',
              registers: 2,
              place: places[0],
              bytes: fragments('f16', 2, places[0], a),
            },
            {
              type: 'f16',
              registers: 2,
              place: places[1],
              bytes: fragments('f16', 2, places[1], b),
            },
            {
              type: c,
              registers: registers(c),
              place: places[2],
              bytes: fragments(c, registers(c), places[2], accumulated),
            },
          ],
          { type: d, registers: registers(d), place: places[3] },
        );
        const expected = [0, 1, 2, 3].flatMap((q) =>
          product(
            a.slice(q * 8, q * 8 + 8),
            b.slice(q * 4, q * 4 + 4),
            accumulated.slice(q * 8, q * 8 + 8),
          ),
        );
        expect(readFragments(output, d, registers(d), places[3], 32, 8)).toEqual(expected);
      });
    }
  }

  const one = (
    values: readonly (readonly number[])[],
    type: string,
    registers: number,
    place: Place,
  ): Fragment & { bytes: Uint8Array } => ({
    type,
    registers,
    place,
    bytes: fragments(type, registers, place, values),
  });

  it('.satfinite clamps at the ends of s32, and without it sums wrap', () => {
    const shape = SHAPES.find(({ name, types }) => name === 'm16n8k32' && types.includes('u8'))!;
    const a = matrix('u8', 16, 32, 5).map((row) => row.map(() => 255));
    const b = matrix('s8', 32, 8, 6).map((row) => row.map((_, j) => (j % 2 ? 127 : -128)));
    const c = matrix('s32', 16, 8, 7).map((row) =>
      row.map((_, j) => (j % 2 ? 0x7fffff00 : -0x7fffff00)),
    );
    const go = (finite: string): number[][] =>
      readFragments(
        run(
          `mma.sync.aligned.m16n8k32.row.col${finite}.s32.u8.s8.s32`,
          [one(a, 'u8', 4, shape.a), one(b, 's8', 2, shape.b), one(c, 's32', 4, shape.c)],
          { type: 's32', registers: 4, place: shape.c },
        ),
        's32',
        4,
        shape.c,
        16,
        8,
      );
    expect(go('.satfinite')).toEqual(
      c.map((row) => row.map((_, j) => (j % 2 ? 0x7fffffff : -0x80000000))),
    );
    expect(go('')).toEqual(product(a, b, c).map((row) => row.map((value) => value | 0)));
  });

  it('sums of f32 round at each step of k, starting from c', () => {
    const shape = SHAPES.find(({ name, types }) => name === 'm16n8k16' && types.includes('f16'))!;
    const next = random(99);
    const fractions = (rows: number, columns: number): number[][] =>
      Array.from({ length: rows }, () =>
        Array.from({ length: columns }, () => (next(2001) - 1000) / 1024),
      );
    const [a, b, c] = [
      fractions(16, 16),
      fractions(16, 8),
      fractions(16, 8).map((row) => row.map((value) => Math.fround(value * 1000.1))),
    ];
    const output = readFragments(
      run(
        'mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32',
        [one(a, 'f16', 4, shape.a), one(b, 'f16', 2, shape.b), one(c, 'f32', 4, shape.c)],
        { type: 'f32', registers: 4, place: shape.c },
      ),
      'f32',
      4,
      shape.c,
      16,
      8,
    );
    expect(output).toEqual(
      c.map((row, i) =>
        row.map((start, j) =>
          a[i]!.reduce((sum, value, p) => Math.fround(sum + value * b[p]![j]!), start),
        ),
      ),
    );
  });

  it('the low 13 bits of tf32 are ignored', () => {
    const shape = SHAPES.find(({ name, types }) => name === 'm16n8k4' && types.includes('tf32'))!;
    const a = matrix('tf32', 16, 4, 21);
    const b = matrix('tf32', 4, 8, 22);
    const zero = matrix('f32', 16, 8, 23).map((row) => row.map(() => 0));
    const dirty = one(a, 'tf32', 2, shape.a);
    const words = new Uint32Array(dirty.bytes.buffer);
    words.forEach((word, index) => {
      words[index] = word | 0x1abc;
    });
    const output = run(
      'mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32',
      [dirty, one(b, 'tf32', 1, shape.b), one(zero, 'f32', 4, shape.c)],
      { type: 'f32', registers: 4, place: shape.c },
    );
    expect(readFragments(output, 'f32', 4, shape.c, 16, 8)).toEqual(product(a, b, zero));
  });

  it('warps of a block have their own matrices, in a loop with other warp operations', () => {
    const body = `.reg .b64 %p; .reg .b32 %t, %a<2>, %b, %i, %s; .reg .f32 %d<4>; .reg .pred %q;
      mov.u32 %t, %tid.x; shr.u32 %s, %t, 5; cvt.rn.f32.u32 %d0, %s; cvt.rn.f16.f32 %h, %d0;
      mov.b32 %b, {%h, %h};
      mov.u32 %a0, 0x3c003c00; mov.u32 %a1, 0x3c003c00; mov.f32 %d0, 0f00000000;
      mov.f32 %d1, %d0; mov.f32 %d2, %d0; mov.f32 %d3, %d0; mov.u32 %i, 0;
      again: mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%d0, %d1, %d2, %d3}, {%a0,
      %a1}, {%b}, {%d0, %d1, %d2, %d3};
      shfl.sync.idx.b32 %b, %b, 0, 31, -1; add.u32 %i, %i, 1; setp.lt.u32 %q, %i, 5; @%q bra again;
      ld.param.u64 %p, [out]; mad.wide.u32 %p, %t, 4, %p; add.f32 %d0, %d0, %d3;
      st.global.f32 [%p], %d0; ret;`;
    const grid = new Grid(kernelText('k', '.param .u64 out', `.reg .b16 %h; ${body}`));
    const out = grid.put(new Float32Array(128));
    expect(grid.run('k', [{ i64: out.address }], { grid: [1], block: [128] }).status).toBe(0);
    expect([...out.view]).toEqual(
      Array.from({ length: 128 }, (_, thread) => 2 * 5 * 8 * (thread >> 5)),
    );
  });
});

describe('refusals', () => {
  const refuse = (instruction: string): string => {
    const declared = '.reg .b32 %r<16>; .reg .f32 %f<8>; .reg .b64 %p<4>;';
    try {
      compilePtx(kernelText('k', '.param .u64 x', `${declared}\n${instruction}\nret;`));
    } catch (error) {
      return (error as Error).message;
    }
    return 'compiled';
  };
  it.each([
    [
      'mma.sync.aligned.m16n8k16.row.row.f32.f16.f16.f32 {%f0,%f1,%f2,%f3}, ' +
        '{%r0,%r1,%r2,%r3}, {%r4,%r5}, {%f0,%f1,%f2,%f3};',
      /8:1: error: instruction 'mma/,
    ],
    [
      'mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f0,%f1,%f2,%f3}, {%r0,%r1,%r2}, ' +
        '{%r4,%r5}, {%f0,%f1,%f2,%f3};',
      /takes 4 registers, found 3/,
    ],
    [
      'mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%f0,%f1,%f2,%f3}, ' +
        '{%r0,%r1,%r2,%r3}, {%r4,%r5,%r6,%r7}, {%f0,%f1,%f2,%f3}, %r8, 2;',
      /selector is a constant from 0 to 1/,
    ],
    ['tcgen05.wait::ld.sync.aligned;', /8:1: error: instruction 'tcgen05/],
  ])('%s', (instruction, message) => {
    expect(refuse(instruction)).toMatch(message);
  });
});
