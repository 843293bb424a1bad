// The matrix products that exist: rows of multiplicand type, shapes and accumulators, for mma,
// mma.sp and wmma. An instruction is looked up here and becomes a product with the layouts of its
// four fragments.

import { ELEMENT_TYPES } from './element-types.js';
import type { ElementType } from './element-types.js';
import { QUAD_LAYOUTS, layoutA, layoutB, layoutC } from './layouts.js';
import type { Layout } from './layouts.js';

export interface Product {
  readonly m: number;
  readonly n: number;
  readonly k: number;
  /** The products that are computed at once: 4 for m8n8k4 of f16, else 1. */
  readonly batch: number;
  readonly a: Operand;
  readonly b: Operand;
  readonly c: Operand;
  readonly d: Operand;
  readonly sparse: boolean;
  /** Bytes before the matrices in the warp's area: metadata of a sparse product, or descriptors. */
  readonly headerBytes: number;
}

/** Bytes of the sparsity metadata in a warp's area: one word for each lane. */
export const METADATA_BYTES = 128;
/** The operands of a wgmma that are not in registers: `GROUP_HEADER` in runtime/warp-groups.ts. */
export const GROUP_HEADER_BYTES = 80;

export interface Operand {
  readonly type: ElementType;
  readonly layout: Layout;
}

interface Row {
  readonly multiplicands: readonly string[];
  readonly accumulators: readonly string[];
  readonly shapes: readonly string[];
}

const HALF = ['f16', 'f32'];

const MMA: readonly Row[] = [
  { multiplicands: ['f16'], accumulators: HALF, shapes: ['m8n8k4', 'm16n8k8', 'm16n8k16'] },
  { multiplicands: ['bf16'], accumulators: ['f32'], shapes: ['m16n8k8', 'm16n8k16'] },
  { multiplicands: ['tf32'], accumulators: ['f32'], shapes: ['m16n8k4', 'm16n8k8'] },
  {
    multiplicands: ['f64'],
    accumulators: ['f64'],
    shapes: ['m8n8k4', 'm16n8k4', 'm16n8k8', 'm16n8k16'],
  },
  {
    multiplicands: ['s8', 'u8'],
    accumulators: ['s32'],
    shapes: ['m8n8k16', 'm16n8k16', 'm16n8k32'],
  },
  {
    multiplicands: ['s4', 'u4'],
    accumulators: ['s32'],
    shapes: ['m8n8k32', 'm16n8k32', 'm16n8k64'],
  },
  { multiplicands: ['b1'], accumulators: ['s32'], shapes: ['m8n8k128', 'm16n8k128', 'm16n8k256'] },
  { multiplicands: ['e4m3', 'e5m2'], accumulators: HALF, shapes: ['m16n8k16', 'm16n8k32'] },
];
const SMALL_FLOATS = ['e4m3', 'e5m2', 'e3m2', 'e2m3', 'e2m1'];
/** .kind::f8f6f4, dense and sparse. */
const EIGHT_SIX_FOUR: readonly [Row, Row] = [
  { multiplicands: SMALL_FLOATS, accumulators: HALF, shapes: ['m16n8k32'] },
  { multiplicands: SMALL_FLOATS, accumulators: HALF, shapes: ['m16n8k64'] },
];

/** The rows of a wgmma that one warp computes. */
const WARP_ROWS = 16;

const SPARSE: readonly Row[] = [
  { multiplicands: ['f16'], accumulators: HALF, shapes: ['m16n8k16', 'm16n8k32'] },
  { multiplicands: ['bf16'], accumulators: ['f32'], shapes: ['m16n8k16', 'm16n8k32'] },
  { multiplicands: ['tf32'], accumulators: ['f32'], shapes: ['m16n8k8', 'm16n8k16'] },
  { multiplicands: ['s8', 'u8'], accumulators: ['s32'], shapes: ['m16n8k32', 'm16n8k64'] },
  { multiplicands: ['s4', 'u4'], accumulators: ['s32'], shapes: ['m16n8k64', 'm16n8k128'] },
  { multiplicands: ['e4m3', 'e5m2'], accumulators: HALF, shapes: ['m16n8k64'] },
];

const WMMA_SHAPES = ['m16n16k16', 'm8n32k16', 'm32n8k16'];
const WMMA: readonly Row[] = [
  { multiplicands: ['f16'], accumulators: HALF, shapes: WMMA_SHAPES },
  { multiplicands: ['bf16'], accumulators: ['f32'], shapes: WMMA_SHAPES },
  { multiplicands: ['tf32'], accumulators: ['f32'], shapes: ['m16n16k8'] },
  { multiplicands: ['f64'], accumulators: ['f64'], shapes: ['m8n8k4'] },
  { multiplicands: ['s8', 'u8'], accumulators: ['s32'], shapes: WMMA_SHAPES },
  { multiplicands: ['s4', 'u4'], accumulators: ['s32'], shapes: ['m8n8k32'] },
  { multiplicands: ['b1'], accumulators: ['s32'], shapes: ['m8n8k128'] },
];

/** Products of wgmma. All of them have 64 rows, of which each of the four warps computes 16. */
const WARP_GROUP: readonly Row[] = [
  { multiplicands: ['f16'], accumulators: HALF, shapes: ['k16'] },
  { multiplicands: ['bf16'], accumulators: ['f32'], shapes: ['k16'] },
  { multiplicands: ['tf32'], accumulators: ['f32'], shapes: ['k8'] },
  { multiplicands: ['e4m3', 'e5m2'], accumulators: HALF, shapes: ['k32'] },
  { multiplicands: ['s8', 'u8'], accumulators: ['s32'], shapes: ['k32'] },
  { multiplicands: ['b1'], accumulators: ['s32'], shapes: ['k256'] },
];

const SHAPE = /^m(\d+)n(\d+)k(\d+)$/;

function shapeIn(
  modifiers: readonly string[],
): { name: string; m: number; n: number; k: number } | undefined {
  const name = modifiers.find((modifier) => SHAPE.test(modifier));
  if (name === undefined) return undefined;
  const [, m, n, k] = SHAPE.exec(name)!.map(Number);
  return { name, m: m!, n: n!, k: k! };
}

const typesIn = (modifiers: readonly string[]): ElementType[] =>
  modifiers.flatMap((modifier) => ELEMENT_TYPES.get(modifier) ?? []);

/** .alayout and .blayout, in order. */
const ordersIn = (modifiers: readonly string[]): ('row' | 'col')[] =>
  modifiers.filter((modifier) => modifier === 'row' || modifier === 'col');

/** The length of the common dimension in numbers of the dense matrix; for single bits, in words. */
const depth = (type: ElementType, k: number): number => (type.name === 'b1' ? k / 32 : k);

/**
 * An f16 fragment of wmma has eight registers in every shape; some then contain an element several
 * times.
 */
const wmmaRegisters = (type: ElementType): number | undefined =>
  type.name === 'f16' ? 8 : undefined;

/** The product that an `mma` or `wmma.mma` computes; undefined if there is no such form. */
export function productOf(mnemonic: string, modifiers: readonly string[]): Product | undefined {
  if (mnemonic === 'wgmma') return warpGroupProduct(modifiers);
  const shape = shapeIn(modifiers);
  const [a, b] = ordersIn(modifiers);
  let types = typesIn(modifiers);
  const wmma = mnemonic === 'wmma';
  // wmma.mma of f16 names only the types of its accumulators.
  const half = ELEMENT_TYPES.get('f16')!;
  if (wmma && types.length === 2) types = [types[0]!, half, half, types[1]!];
  if (!shape || !a || !b || types.length !== 4) return undefined;
  const [d, left, right, c] = types as [ElementType, ElementType, ElementType, ElementType];
  const sparse = modifiers.includes('sp') || modifiers.includes('sp::ordered_metadata');
  const rows = wmma
    ? WMMA
    : modifiers.includes('kind::f8f6f4')
      ? [EIGHT_SIX_FOUR[sparse ? 1 : 0]]
      : sparse
        ? SPARSE
        : MMA;
  const row = rows.find(
    ({ multiplicands, shapes }) => multiplicands.includes(left.name) && shapes.includes(shape.name),
  );
  if (
    !row?.multiplicands.includes(right.name) ||
    !row.accumulators.includes(c.name) ||
    !row.accumulators.includes(d.name)
  )
    return undefined;
  const { m, n } = shape;
  const k = depth(left, shape.k);
  if (!wmma && shape.name === 'm8n8k4' && left.name === 'f16') {
    return {
      m,
      n,
      k,
      batch: 4,
      sparse,
      headerBytes: 0,
      a: { type: left, layout: QUAD_LAYOUTS.a(a) },
      b: { type: right, layout: QUAD_LAYOUTS.b(b) },
      c: { type: c, layout: QUAD_LAYOUTS.c(c) },
      d: { type: d, layout: QUAD_LAYOUTS.c(d) },
    };
  }
  // Other shapes of mma exist as .row.col only.
  if (!wmma && (a !== 'row' || b !== 'col')) return undefined;
  const registers = wmma ? wmmaRegisters(left) : undefined;
  return {
    m,
    n,
    k,
    batch: 1,
    sparse,
    headerBytes: sparse ? METADATA_BYTES : 0,
    a: { type: left, layout: layoutA(left, m, sparse ? k / 2 : k, registers) },
    b: { type: right, layout: layoutB(right, k, n, registers) },
    c: { type: c, layout: layoutC(c, m, n) },
    d: { type: d, layout: layoutC(d, m, n) },
  };
}

/**
 * One warp's part of a `wgmma.mma_async`: 16 of the 64 rows. The layout of `a` is that of a
 * fragment in registers; `b` is always in shared memory.
 */
function warpGroupProduct(modifiers: readonly string[]): Product | undefined {
  const shape = shapeIn(modifiers);
  const [d, left, right] = typesIn(modifiers);
  if (!shape || !d || !left || !right) return undefined;
  const row = WARP_GROUP.find(
    ({ multiplicands, accumulators, shapes }) =>
      multiplicands.includes(left.name) &&
      multiplicands.includes(right.name) &&
      accumulators.includes(d.name) &&
      shapes.includes(`k${shape.k}`),
  );
  if (!row || shape.m !== 64) return undefined;
  const { n } = shape;
  const k = depth(left, shape.k);
  return {
    m: WARP_ROWS,
    n,
    k,
    batch: 1,
    sparse: false,
    headerBytes: GROUP_HEADER_BYTES,
    a: { type: left, layout: layoutA(left, WARP_ROWS, k) },
    b: { type: right, layout: layoutB(right, k, n) },
    c: { type: d, layout: layoutC(d, WARP_ROWS, n) },
    d: { type: d, layout: layoutC(d, WARP_ROWS, n) },
  };
}

/** A fragment that `wmma.load` or `wmma.store` moves, and its matrix in memory. */
export interface MemoryFragment {
  readonly operand: Operand;
  readonly order: 'row' | 'col';
  /** Elements from one row (or column) to the next if the instruction gives no stride. */
  readonly stride: number;
}

export function fragmentOf(modifiers: readonly string[]): MemoryFragment | undefined {
  const shape = shapeIn(modifiers);
  const [order] = ordersIn(modifiers);
  const [type] = typesIn(modifiers);
  const [, which] = modifiers;
  if (!shape || !order || !type) return undefined;
  const accumulator = which === 'c' || which === 'd';
  const row = WMMA.find(
    ({ multiplicands, accumulators, shapes }) =>
      shapes.includes(shape.name) &&
      (accumulator ? accumulators : multiplicands).includes(type.name),
  );
  if (!row) return undefined;
  const { m, n } = shape;
  const k = depth(type, shape.k);
  // Elements narrower than a byte run along the common dimension.
  const narrow = type.bits < 8 || type.name === 'b1';
  switch (which) {
    case 'a':
      if (narrow && order !== 'row') return undefined;
      return {
        operand: { type, layout: layoutA(type, m, k, wmmaRegisters(type)) },
        order,
        stride: order === 'row' ? shape.k : m,
      };
    case 'b':
      if (narrow && order !== 'col') return undefined;
      return {
        operand: { type, layout: layoutB(type, k, n, wmmaRegisters(type)) },
        order,
        stride: order === 'row' ? n : shape.k,
      };
    case 'c':
    case 'd':
      return {
        operand: { type, layout: layoutC(type, m, n) },
        order,
        stride: order === 'row' ? n : m,
      };
    default:
      return undefined;
  }
}
