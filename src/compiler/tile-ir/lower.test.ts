/** Tile kernels as Tile IR: marks, parameters, and errors that show the user's text. */
import { expect, test } from 'vitest';

import type { KernelSource, SignatureEntry } from '../signature.js';
import { KernelSourceError } from '../source-error.js';
import { tileIrKernel } from './lower.js';
import { markedSource } from './marked-source.js';
import type { TileIrForm } from './tile-ir-form.js';

const tensor = (
  access: 'input' | 'output',
  storage: 'f16' | 'f32' | 'i8' | 'u8' | 'i16' | 'i32' = 'f32',
): SignatureEntry => ({
  kind: 'tensor',
  element: { storage },
  access,
  rank: 1,
});

const matmul: KernelSource = {
  name: 'mat mul',
  signature: { c: tensor('output', 'f16'), a: tensor('input', 'f16'), b: tensor('input', 'f16') },
  uses: {},
  indexType: 'i32',
  text:
    "({ c, a, b }, tile) => { let sum = 0; for (const part of tile.over('k')) " +
    'sum = tile.dot(a.load(part), b.load(part), sum); c.store(sum); }',
};
const matmulForm: TileIrForm = {
  axes: [
    { name: 'm', tile: 128, cut: 'blocks', divides: true },
    { name: 'n', tile: 128, cut: 'blocks', divides: true },
    { name: 'k', tile: 64, cut: 'walk', divides: false },
  ],
  tensors: {
    c: { axes: [0, 1], strides: ['sixteen', 'one'] },
    a: { axes: [0, 2], strides: ['sixteen', 'one'] },
    b: { axes: [2, 1], strides: ['any', 'one'] },
  },
  broadcast: false,
};

const elements = (body: string, uses: KernelSource['uses'] = {}): KernelSource => ({
  name: 'elements',
  signature: { y: tensor('output'), x: tensor('input') },
  uses,
  indexType: 'i32',
  text: `({ y, x }, tile) => { const v = x.load(); ${body} }`,
});
const elementsForm: TileIrForm = {
  axes: [
    { name: 'rows', tile: 1, cut: 'blocks', divides: true },
    { name: 'columns', tile: 64, cut: 'blocks', divides: false },
  ],
  tensors: {
    y: { axes: [0, 1], strides: ['any', 'one'] },
    x: { axes: [0, 1], strides: ['any', 'one'] },
  },
  broadcast: true,
};
const textIn = (bytecode: Uint8Array): string => Buffer.from(bytecode).toString('latin1');

test('loads, products and stores are marks in a kernel of numbers', () => {
  const { source, operations } = markedSource(matmul, matmulForm);
  expect(operations.map(({ is }) => is)).toEqual(['load', 'load', 'product', 'store']);
  expect(source.text).toContain('args$.products$[2] + (sum$0)');
});

test('products of i8 and u8 are summed in i32, and wider integers are refused', () => {
  const of = (a: 'i8' | 'i16', b: 'u8' | 'i16'): KernelSource => ({
    ...matmul,
    signature: { c: tensor('output', 'i32'), a: tensor('input', a), b: tensor('input', b) },
  });
  const { source } = markedSource(of('i8', 'u8'), matmulForm);
  expect(source.text).toContain('args$.wholeProducts$[2] + (sum$0)');
  expect(() => tileIrKernel(of('i8', 'u8'), matmulForm, true)).not.toThrow();
  expect(() => tileIrKernel(of('i16', 'i16'), matmulForm, true)).toThrow(
    'Tile IR multiplies integers of i8 and u8 as they are loaded: tile.dot(',
  );
});

test('the parameters are addresses, lengths and the strides that are not known', () => {
  const { abi, entry, bytecode } = tileIrKernel(matmul, matmulForm, true);
  expect(abi.map(({ kind, param }) => `${kind} ${param}`)).toEqual(
    [0, 1, 2].flatMap((at) => [`pointer ${at}`, `extent ${at}`, `extent ${at}`, `stride ${at}`]),
  );
  expect(entry).toBe('mat_mul');
  expect(textIn(bytecode)).toMatch(/^\x7fTileIR\0/);
  expect(textIn(bytecode)).toContain('mat_mul');
});

test('the bytes depend on nothing but the kernel and its form', () => {
  const of = (form: TileIrForm): string => textIn(tileIrKernel(matmul, form, true).bytecode);
  expect(of(matmulForm)).toBe(of(matmulForm));
  expect(
    of({ ...matmulForm, axes: matmulForm.axes.map((axis) => ({ ...axis, divides: true })) }),
  ).not.toBe(of(matmulForm));
});

test('branches of a device function are computed on both sides', () => {
  const step = {
    text: '(v) => { if (v > 1) return v * 2; if (v < -1) return -1; return v; }',
    uses: {},
  };
  expect(() =>
    tileIrKernel(elements('y.store(tile.step(v));', { step }), elementsForm, true),
  ).not.toThrow();
});

test('loops of a device function, and operations that Tile IR lacks, are errors', () => {
  const sum = {
    text: '(v) => { let s = v; for (let i = 0; i < 3; i++) s += v; return s; }',
    uses: {},
  };
  const lower = (source: KernelSource) => () => tileIrKernel(source, elementsForm, true);
  expect(lower(elements('y.store(tile.sums(v));', { sums: sum }))).toThrow(
    new KernelSourceError(
      'Tile IR has loops over the tiles of an axis, and no others',
      "Write for (const part of tile.over('k')) { … }, or leave the options' backend out.",
      undefined,
      '',
    ).message,
  );
  expect(lower(elements('y.store(tile.popcount(tile.bits(v)));'))).toThrow(
    'Tile IR has no operation for this: popc of i32',
  );
});

test('places of the user’s file are in the bytecode where they are asked for', () => {
  const lines = { file: '/home/user/kernels.ts', placeOf: () => ({ line: 7, column: 3 }) };
  const plain = textIn(tileIrKernel(matmul, matmulForm, true).bytecode);
  const placed = textIn(tileIrKernel(matmul, matmulForm, true, lines).bytecode);
  expect(plain).not.toContain('kernels.ts');
  expect(placed).toContain('/home/user/kernels.ts');
});
