/** Forms of tile kernels: how threads share a tile, and that what is shown is the user's text. */
import fc from 'fast-check';
import { expect, test } from 'vitest';

import { readKernel } from '../read/read-kernel.js';
import type { KernelSource, SignatureEntry } from '../signature.js';
import { KernelSourceError } from '../source-error.js';
import { threadsFor } from './tile-form.js';
import { tileSource } from './tile-source.js';

const tensor = (access: 'input' | 'output' | 'inout'): SignatureEntry => ({ kind: 'tensor', element: { storage: 'f32' }, access, rank: 1 });
const softmax: KernelSource = {
  name: 'softmax', signature: { y: tensor('output'), x: tensor('input') }, uses: {}, indexType: 'i32',
  text: '({ y, x }, tile) => { const v = x.load(); const e = Math.exp(v - tile.max(v, 1)); y.store(e / tile.sum(e, 1)); }',
};

test('every element of a tile has one thread, in whole warps', () => {
  const size = fc.integer({ min: 1, max: 600 });
  fc.assert(fc.property(size, size, size, size, fc.constantFrom(1, 2, 4), (rows, columns, down, right, width) => {
    const form = threadsFor([rows, columns], [down, right], width);
    if (form === undefined) return;
    expect((form.across * form.down) % 32).toBe(0);
    expect(form.across * form.down).toBeLessThanOrEqual(1024);
    expect(form.rows * form.down).toBeGreaterThanOrEqual(rows);
    expect(form.columns * form.across).toBeGreaterThanOrEqual(columns);
    expect(form.columns % form.width).toBe(0);
    expect([columns % form.width, right % form.width]).toEqual([0, 0]);
    expect(form.wholeRows).toBe(columns >= right);
    if (form.exactColumns) expect([form.columns * form.across, right % columns]).toEqual([columns, 0]);
    if (form.exactRows) expect([form.rows * form.down, down % rows]).toEqual([rows, 0]);
  }));
});

test('every place that a tree names is in the user\'s text', () => {
  for (const [tile, extents] of [[[1, 4096], [8, 4096]], [[4, 40], [9, 100]]] as const) {
    const form = { ...threadsFor(tile, extents, 4)!, access: { y: 'dense', x: 'strided' } as const };
    const tree = readKernel(tileSource(softmax, form));
    let places = 0;
    const walk = (value: unknown): void => {
      if (typeof value !== 'object' || value === null) return;
      const { span } = value as { span?: { text: number; start: number; end: number } };
      if (span !== undefined) {
        places++;
        expect(tree.texts[span.text]!.slice(span.start, span.end)).not.toContain('$');
      }
      for (const child of Object.values(value)) walk(child);
    };
    walk(tree.body);
    expect(places).toBeGreaterThan(100);
  }
});

test.each([
  ['y.store(x.load(1))', 'load takes no arguments: x.load(1)', 'x.load(1)'],
  ['y.store(tile.sum(x.load(), 2))', 'The axis is 0 or 1, and known when the kernel is compiled: 2', '2'],
  ['y.store(y.load())', 'y is an output, and is not read', 'y.load()'],
  ['x.store(1)', 'x is an input, and is not written', 'x.store(1)'],
  ['x.load()', 'A tile kernel consists of constants and stores: x.load()', 'x.load()'],
  ['let v = x.load()', 'There are only constants in a tile kernel: let v = x.load()', 'let v = x.load();'],
  ['const [v] = x.load()', '[v] = x.load() is not known in a tile kernel', '[v] = x.load()'],
  ['y.store(q)', '`q` is not known in a kernel', 'q'],
  ['const q = tile.shared; y.store(q)', 'There is no shared in a tile kernel', 'tile.shared'],
  ['y.store(x.load().length)', 'has no length', 'x.load().length'],
  ['if (true) y.store(1)', 'A tile kernel consists of constants and stores: if (true) y.store(1)', 'if (true) y.store(1);'],
])('%s', (statement, message, code) => {
  const form = { ...threadsFor([1, 32], [4, 32], 4)!, access: { y: 'dense', x: 'dense' } as const };
  const text = `({ y, x }, tile) => { ${statement}; }`;
  let thrown: unknown;
  try {
    readKernel(tileSource({ ...softmax, text }, form));
  } catch (error) {
    thrown = error;
  }
  expect(thrown).toBeInstanceOf(KernelSourceError);
  const { what, span, text: shown } = thrown as KernelSourceError;
  expect(what).toContain(message);
  expect(shown.slice(span!.start, span!.end)).toBe(code);
});
