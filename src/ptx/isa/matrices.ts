// Rows of matrix instructions. `matrix/forms.ts` lists the products by shape and types; the forms
// here describe what may be written, since when, and how many registers each lane supplies.

import { wmma } from '../rules/matrix-memory.js';
import { orderGroup } from '../rules/warp-groups.js';
import { form } from './form.js';
import type { Form } from './form.js';
import { IN_STRUCTURE, NO_VECTOR_FORM } from './instruction.js';
import type { Rows } from './instruction.js';
import { OF_A_WARP } from './traits.js';

/** The bits of an element in its register. */
const BITS: Readonly<Record<string, number>> = {
  f64: 64,
  f32: 32,
  tf32: 32,
  s32: 32,
  f16: 16,
  bf16: 16,
  e4m3: 8,
  e5m2: 8,
  e3m2: 8,
  e2m3: 8,
  e2m1: 8,
  s8: 8,
  u8: 8,
  s4: 4,
  u4: 4,
  b1: 1,
};

/** A lane's registers of a fragment with this number of elements. */
function fragment(elements: number, type: string): string {
  const count = (elements * BITS[type]!) / 32 / (type === 'f64' ? 64 : 32);
  const register = type === 'f64' || type === 'f32' ? type : 'b32';
  return `{${Array.from({ length: count }, () => register).join(',')}}`;
}

const SHAPE = /m(\d+)n(\d+)k(\d+)/;
const sizes = (shape: string): number[] => SHAPE.exec(shape)!.slice(1).map(Number);

/** The four fragments of a product. */
function fragments(
  shape: string,
  multiplicand: string,
  d: string,
  c: string,
  sparse: boolean,
): string {
  const [m, n, k] = sizes(shape) as [number, number, number];
  return [
    fragment(m * n, d),
    fragment((m * k) / (sparse ? 2 : 1), multiplicand),
    fragment(k * n, multiplicand),
    fragment(m * n, c),
  ].join(' ');
}

/** Types of A and of B, accumulators, modifiers, and the shapes with what they need. */
type Row = readonly [
  a: string,
  b: string,
  accumulators: readonly string[],
  modifiers: string,
  shapes: Readonly<Record<string, string>>,
];

const AMPERE = '7.0 sm_80';
const INT8 = ['s8|u8', 's8|u8'] as const;
const INT4 = ['s4|u4', 's4|u4'] as const;
const FP8 = ['e4m3|e5m2', 'e4m3|e5m2'] as const;
const SMALL = ['e4m3|e5m2|e3m2|e2m3|e2m1', 'e4m3|e5m2|e3m2|e2m3|e2m1'] as const;

const DENSE: readonly Row[] = [
  ['f16', 'f16', ['f16', 'f32'], '', { m16n8k8: '6.5 sm_75', m16n8k16: AMPERE }],
  ['bf16', 'bf16', ['f32'], '', { m16n8k8: AMPERE, m16n8k16: AMPERE }],
  ['tf32', 'tf32', ['f32'], '', { m16n8k4: AMPERE, m16n8k8: AMPERE }],
  [
    'f64',
    'f64',
    ['f64'],
    '[rn|rz|rm|rp]',
    { m8n8k4: AMPERE, m16n8k4: '7.8 sm_90', m16n8k8: '7.8 sm_90', m16n8k16: '7.8 sm_90' },
  ],
  [...INT8, ['s32'], '[satfinite]', { m8n8k16: '6.5 sm_75', m16n8k16: AMPERE, m16n8k32: AMPERE }],
  [...INT4, ['s32'], '[satfinite]', { m8n8k32: '6.5 sm_75', m16n8k32: AMPERE, m16n8k64: AMPERE }],
  [
    'b1',
    'b1',
    ['s32'],
    'xor popc',
    { m8n8k128: '7.0 sm_75', m16n8k128: AMPERE, m16n8k256: AMPERE },
  ],
  [
    'b1',
    'b1',
    ['s32'],
    'and popc',
    { m8n8k128: '7.1 sm_80', m16n8k128: '7.1 sm_80', m16n8k256: '7.1 sm_80' },
  ],
  [...FP8, ['f32'], '', { m16n8k16: '8.7 sm_89', m16n8k32: '8.4 sm_89' }],
  [...FP8, ['f16'], '', { m16n8k16: '8.7 sm_89', m16n8k32: '8.7 sm_89' }],
  [...SMALL, ['f16', 'f32'], 'kind::f8f6f4', { m16n8k32: '8.7 sm_120f' }],
];

const SPARSE: readonly Row[] = [
  ['f16', 'f16', ['f16', 'f32'], '', { m16n8k16: '7.1 sm_80', m16n8k32: '7.1 sm_80' }],
  ['bf16', 'bf16', ['f32'], '', { m16n8k16: '7.1 sm_80', m16n8k32: '7.1 sm_80' }],
  ['tf32', 'tf32', ['f32'], '', { m16n8k8: '7.1 sm_80', m16n8k16: '7.1 sm_80' }],
  [...INT8, ['s32'], '[satfinite]', { m16n8k32: '7.1 sm_80', m16n8k64: '7.1 sm_80' }],
  [...INT4, ['s32'], '[satfinite]', { m16n8k64: '7.1 sm_80', m16n8k128: '7.1 sm_80' }],
  [...FP8, ['f32'], '', { m16n8k64: '8.4 sm_89' }],
];

/** The rows that require ordered metadata. */
const ORDERED: readonly Row[] = [
  [...FP8, ['f16'], '', { m16n8k64: '8.7 sm_120f' }],
  [...SMALL, ['f16', 'f32'], 'kind::f8f6f4', { m16n8k64: '8.7 sm_120f' }],
];

const products = (rows: readonly Row[], sparse = ''): Form[] =>
  rows.flatMap(([a, b, accumulators, modifiers, shapes]) =>
    Object.entries(shapes).flatMap(([shape, since]) =>
      accumulators.map((type) =>
        form(
          `${sparse} sync aligned ${shape} row col ${modifiers} ${type} ${a} ${b} ${type}`,
          fragments(shape, a.split('|')[0]!, type, type, sparse !== '') + (sparse ? ' b32 0' : ''),
          since,
        ).withWords({ 'sp::ordered_metadata': '8.5 sm_80' }),
      ),
    ),
  );

/** f16 of sm_70: four products at once, with rows and columns in any order. */
const quads = (): Form[] =>
  [
    ['f16', 'f16'],
    ['f32', 'f16'],
    ['f32', 'f32'],
  ].map(([d, c]) => {
    return form(
      `sync aligned m8n8k4 row|col row|col ${d} f16 f16 ${c}`,
      `${fragment(256, d!)} {b32,b32} {b32,b32} ${fragment(256, c!)}`,
      '6.4 sm_70',
    );
  });

const registers = (count: number): string =>
  `{${Array.from({ length: count }, () => 'b32').join(',')}}`;
const BLACKWELL = '8.6 sm_100f or 8.6 sm_120f or 9.0 sm_110f';
const SINCE = { 'shared::cta': '7.8' };

const loaded = (): Form[] =>
  ['x1', 'x2', 'x4']
    .flatMap((times, power) => {
      const count = 2 ** power;
      return [
        form(
          `sync aligned m8n8 ${times} [trans] [shared|shared::cta] b16`,
          `${registers(count)} [s]`,
          '6.5 sm_75',
        ),
        form(
          `sync aligned m8n16 ${times} [shared|shared::cta] b8x16 b6x16_p32|b4x16_p64`,
          `${registers(count)} [s]`,
          BLACKWELL,
        ),
        ...(times === 'x4'
          ? []
          : ['b8', 'b8x16 b6x16_p32|b4x16_p64'].map((types) =>
              form(
                `sync aligned m16n16 ${times} trans [shared|shared::cta] ${types}`,
                `${registers(2 * count)} [s]`,
                BLACKWELL,
              ),
            )),
      ];
    })
    .map((row) => row.withWords(SINCE));

const stored = (): Form[] =>
  ['x1', 'x2', 'x4']
    .flatMap((times, power) => [
      form(
        `sync aligned m8n8 ${times} [trans] [shared|shared::cta] b16`,
        `[s] ${registers(2 ** power)}`,
        '7.8 sm_90',
      ),
      form(
        `sync aligned m16n8 ${times} trans [shared|shared::cta] b8`,
        `[s] ${registers(2 ** power)}`,
        BLACKWELL,
      ),
    ])
    .map((row) => row.withWords(SINCE));

/** Columns of a wgmma: multiples of 8, or for integers of 16 and three small ones. */
const columns = (numbers: readonly number[], k: number): string =>
  numbers.map((n) => `m64n${n}k${k}`).join('|');
const EVERY_EIGHT = Array.from({ length: 32 }, (_, i) => 8 * (i + 1));
const EVERY_SIXTEEN = EVERY_EIGHT.filter((n) => n === 8 || n === 24 || n % 16 === 0);

/**
 * Types, columns, k, how many operands follow the two matrices and the scale, with A in shared
 * memory and in registers: factors of A and B, and whether they are transposed.
 */
const GROUP_PRODUCTS: readonly (readonly [
  types: string,
  numbers: readonly number[],
  k: number,
  shared: string,
  registers: string,
])[] = [
  ['f16|f32 f16 f16', EVERY_EIGHT, 16, '1 1 0 0', '1 1 0'],
  ['f32 bf16 bf16', EVERY_EIGHT, 16, '1 1 0 0', '1 1 0'],
  ['f32 tf32 tf32', EVERY_EIGHT, 8, '1 1', '1 1'],
  ['f16|f32 e4m3|e5m2 e4m3|e5m2', EVERY_EIGHT, 32, '1 1', '1 1'],
  ['[satfinite] s32 s8|u8 s8|u8', EVERY_SIXTEEN, 32, '', ''],
  ['s32 b1 b1 and popc', EVERY_SIXTEEN, 256, '', ''],
];

const groups = (): Form[] => [
  ...GROUP_PRODUCTS.flatMap(([types, numbers, k, shared, registers]) =>
    [`b64 b64 p ${shared}`, `{b32,b32,b32,b32} b64 p ${registers}`].map((operands) =>
      form(
        `mma_async sync aligned ${columns(numbers, k)} ${types}`,
        `{d} ${operands}`,
        '8.0 sm_90a',
      ),
    ),
  ),
  form('fence sync aligned', '', '8.0 sm_90a'),
  form('commit_group sync aligned', '', '8.0 sm_90a'),
  form('wait_group sync aligned', '0', '8.0 sm_90a'),
];

const OPERATION = {
  ...IN_STRUCTURE,
  effect: 'any',
  waits: OF_A_WARP,
  meaning: 'opaque',
} as const;

/**
 * The forms are made when a program first uses the instruction: making these took longer than those
 * of all other families, 1 ms of the start of each runtime thread.
 */
export const MATRICES = {
  mma: {
    ...OPERATION,
    get forms() {
      return [
        ...quads(),
        ...products(DENSE),
        ...products(SPARSE, 'sp|sp::ordered_metadata'),
        ...products(ORDERED, 'sp::ordered_metadata'),
      ];
    },
    operands: { writesFirst: true, braces: true },
  },
  ldmatrix: {
    ...OPERATION,
    get forms() {
      return loaded();
    },
    operands: { writesFirst: true, braces: true },
  },
  stmatrix: {
    ...OPERATION,
    get forms() {
      return stored();
    },
    operands: { writesFirst: false, braces: true },
  },
  movmatrix: {
    ...OPERATION,
    forms: [form('sync aligned m8n8 trans b16', 'b32 b32', '7.8 sm_75')],
    operands: { writesFirst: true },
  },
  wmma: {
    forms: [],
    operands: { writesFirst: (modifiers) => modifiers[0] !== 'store' },
    effect: 'any',
    waits: {
      cut: (modifiers) => (modifiers[0] === 'mma' ? 'warp' : undefined),
      meetsFirst: (modifiers) => modifiers[0] === 'load' || modifiers[0] === 'store',
    },
    meaning: 'opaque',
    scalar: wmma,
    vector: NO_VECTOR_FORM,
  },
  wgmma: {
    get forms() {
      return groups();
    },
    operands: {
      writesFirst: (modifiers) => modifiers[0] === 'mma_async',
      readsFirst: true,
      braces: true,
    },
    effect: 'any',
    waits: { cut: (modifiers) => (modifiers[0] === 'mma_async' ? 'warp' : undefined) },
    meaning: 'opaque',
    scalar: orderGroup,
    vector: NO_VECTOR_FORM,
  },
} satisfies Rows;
