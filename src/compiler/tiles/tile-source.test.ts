/** Forms of tile kernels: how threads share a tile, and errors that show the user's text. */
import * as fc from '../../../test/fast-check.js';
import { expect, test } from 'vitest';

import { emitKernel } from '../emit/emit.js';
import { readKernel } from '../read/read-kernel.js';
import type { KernelSource, SignatureEntry } from '../signature.js';
import { KernelSourceError } from '../source-error.js';
import { sameTree } from '../../../test/compiler/same-tree.test-support.js';
import { MOST_ELEMENTS, columnSlots, rowSlots, threadsFor, threadsForAxes } from './tile-form.js';
import type { CutAxis, TensorForm, TileForm } from './tile-form.js';
import { tileSource } from './tile-source.js';
import { someOf } from '../../../test/random-runs.js';

const tensor = (access: 'input' | 'output' | 'inout'): SignatureEntry => ({
  kind: 'tensor',
  element: { storage: 'f32' },
  access,
  rank: 1,
});
const softmax: KernelSource = {
  name: 'softmax',
  signature: { y: tensor('output'), x: tensor('input') },
  uses: {},
  indexType: 'i32',
  text:
    '({ y, x }, tile) => { const v = x.load(); const e = Math.exp(v - tile.max(v, 1)); ' +
    'y.store(e / tile.sum(e, 1)); }',
};

const cut = (name: string, tile: number, extent: number, widest: number): CutAxis => ({
  name,
  tile,
  extent,
  widest,
  cut: 'blocks',
});

/** Properties that every axis has in every role. */
function covers(
  { across, down, axes }: Pick<TileForm, 'across' | 'down' | 'axes'>,
  of: readonly CutAxis[],
): void {
  expect((across * down) % 32).toBe(0);
  expect(across * down).toBeLessThanOrEqual(1024);
  expect(2 ** Math.round(Math.log2(across))).toBe(across);
  axes.forEach((axis, at) => {
    const { tile, extent } = of[at]!;
    const [rows, columns] = [
      rowSlots(axis, { across, down }) * down,
      columnSlots(axis, { across, down }) * across,
    ];
    expect(rows).toBeGreaterThanOrEqual(tile);
    expect(columns).toBeGreaterThanOrEqual(tile);
    expect([
      columnSlots(axis, { across, down }) % axis.width,
      tile % axis.width,
      extent % axis.width,
    ]).toEqual([0, 0, 0]);
    expect(axis.exactRows).toBe(rows === tile && extent % tile === 0);
    expect(axis.exactColumns).toBe(columns === tile && extent % tile === 0);
  });
}

test('every element of a tile has one thread, in whole warps', { tags: 'random' }, () => {
  const size = fc.integer({ min: 1, max: 600 });
  fc.assert(
    fc.property(
      size,
      size,
      size,
      size,
      fc.constantFrom(1, 2, 4),
      (rows, columns, down, right, width) => {
        const of = [cut('rows', rows, down, 1), cut('columns', columns, right, width)] as const;
        const form = threadsFor(...of);
        if (form !== undefined) covers(form, of);
      },
    ),
  );
});

test('every element of tiles that share axes has one thread', { tags: 'random' }, () => {
  const axis = fc.record({
    tile: fc.integer({ min: 1, max: 160 }),
    extent: fc.integer({ min: 1, max: 600 }),
    widest: fc.constantFrom(1, 2, 4),
  });
  const pair = fc.tuple(
    fc.option(fc.integer({ min: 0, max: 2 }), { nil: undefined }),
    fc.option(fc.integer({ min: 0, max: 2 }), { nil: undefined }),
  );
  fc.assert(
    fc.property(
      fc.array(axis, { minLength: 3, maxLength: 3 }),
      fc.array(pair, { minLength: 1, maxLength: 3 }),
      (given, tiles) => {
        const of = given.map(({ tile, extent, widest }, at) => cut(`a${at}`, tile, extent, widest));
        const form = threadsForAxes(of, tiles);
        if (form === undefined) return;
        covers(form, of);
        for (const [row, column] of tiles) {
          expect(
            (row === undefined ? 1 : rowSlots(form.axes[row]!, form)) *
              (column === undefined ? 1 : columnSlots(form.axes[column]!, form)),
          ).toBeLessThanOrEqual(MOST_ELEMENTS);
        }
      },
    ),
  );
});

const broadcast = (
  tile: readonly [number, number],
  extents: readonly [number, number],
  access: Readonly<Record<string, TensorForm['access']>>,
): TileForm => ({
  ...threadsFor(cut('rows', tile[0], extents[0], 1), cut('columns', tile[1], extents[1], 4))!,
  broadcast: true,
  tensors: Object.fromEntries(
    Object.entries(access).map(([name, each]) => [
      name,
      { access: each, outer: [], row: 0, column: 1, rank: 2 },
    ]),
  ),
});

const run = (row: number | undefined, column: number | undefined): TensorForm => ({
  access: 'run',
  outer: [],
  row,
  column,
  rank: 2,
});

/** c (m × n), a (m × k), b (k × n), of which blocks walk k. */
const ofProduct: TileForm = {
  ...threadsForAxes(
    [cut('m', 32, 100, 4), cut('n', 32, 100, 4), { ...cut('k', 16, 100, 4), cut: 'walk' }],
    [
      [0, 1],
      [0, 2],
      [2, 1],
    ],
  )!,
  broadcast: false,
  tensors: { c: run(0, 1), a: run(0, 2), b: run(2, 1) },
};

const product: KernelSource = {
  name: 'product',
  signature: { c: tensor('output'), a: tensor('input'), b: tensor('input') },
  uses: {},
  indexType: 'i32',
  text:
    '({ c, a, b }, tile) => { let sum = 0; for (const k of tile.over("k")) sum = ' +
    'tile.dot(a.load(k), b.load(k), sum); c.store(sum / 2); }',
};

test("every span of a tree is in the user's text", () => {
  const access = { y: 'dense', x: 'strided' } as const;
  for (const [source, form] of [
    [softmax, broadcast([1, 4096], [8, 4096], access)],
    [softmax, broadcast([4, 40], [9, 100], access)],
    [product, ofProduct],
  ] as const) {
    const tree = readKernel(tileSource(source, form));
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
  ['y.store(x.load(1))', 'load takes what a loop over tiles counts, and no index: 1', '1'],
  [
    'y.store(tile.sum(x.load(), 2))',
    'The axis is 0 or 1, and known when the kernel is compiled: 2',
    '2',
  ],
  ['y.store(y.load())', 'y is an output, and is not read', 'y.load()'],
  ['x.store(1)', 'x is an input, and is not written', 'x.store(1)'],
  [
    'x.load()',
    'A tile kernel consists of variables, stores and loops over tiles: x.load()',
    'x.load()',
  ],
  ['let v; y.store(v)', 'v has no value yet here', 'v'],
  ['let v; y.store(v + 1); v = 2', 'v has no value yet here', 'v'],
  ['const [v] = x.load()', '[v] = x.load() is not supported in a tile kernel', '[v] = x.load()'],
  ['y.store(q)', '`q` is not defined in a kernel', 'q'],
  ['const q = tile.shared; y.store(q)', 'There is no shared in a tile kernel', 'tile.shared'],
  ['y.store(x.load().length)', 'has no length', 'x.load().length'],
  [
    'if (true) y.store(1)',
    'A tile kernel consists of variables, stores and loops over tiles: if (true) y.store(1)',
    'if (true) y.store(1);',
  ],
  [
    'for (let i = 0; i < 3; i++) y.store(i)',
    'A tile kernel consists of variables, stores and loops over tiles: for',
    'for (let i = 0; i < 3; i++) y.store(i);',
  ],
  [
    'for (const i of [1, 2]) y.store(i)',
    'A loop of a tile kernel goes over the tiles of an axis: for (const i of [1, 2])',
    'for (const i of [1, 2]) y.store(i);',
  ],
  [
    'for (const k of tile.over("columns")) y.store(1, k)',
    'Each block has one tile along columns: tile.over("columns")',
    '"columns"',
  ],
  ['for (const k of tile.over("k")) y.store(1, k)', 'There is no axis k: tile.over("k")', '"k"'],
  ['for (const k of tile.over(1)) y.store(1, k)', 'over takes the name of an axis', 'tile.over(1)'],
  [
    'const parts = tile.over("columns")',
    'over gives tiles to loop over, and no value',
    'tile.over("columns")',
  ],
  ['const v = 1; v = 2', 'is a constant', 'v = 2'],
  [
    'y.store(tile.dot(x.load(), x.load()))',
    'All tensors are broadcast to one shape here, and two of its tiles have no product',
    'tile.dot(x.load(), x.load())',
  ],
  [
    'y.store(tile.transpose(x.load()))',
    'Rows and columns of all tensors are one here',
    'tile.transpose(x.load())',
  ],
  ['let v = 0; v++', '++ and -- are not supported in a tile kernel: v++', 'v++'],
  ['let v = 0; v ||= 1', '||= is not supported in a tile kernel', 'v ||= 1'],
  ['let v = 0; y.store(v + (v = 1))', 'An assignment is a statement of its own', 'v = 1'],
  [
    'let v = 0; y.store(x.load() > 0 ? v = 1 : v)',
    'An assignment is a statement of its own',
    'v = 1',
  ],
  ['let v = 0; y.store(v), v++', '++ and -- are not supported in a tile kernel: v++', 'v++'],
  ['y = x.load()', 'Only variables are assigned in a tile kernel', 'y = x.load()'],
  ['y.store()', 'store takes a value', 'y.store()'],
  ['y.store(x.load(), 1)', 'store takes what a loop over tiles counts, and no index: 1', '1'],
])('%s', (statement, message, code) => {
  const text = `({ y, x }, tile) => { ${statement}; }`;
  refuses(
    { ...softmax, text },
    broadcast([1, 32], [4, 32], { y: 'dense', x: 'dense' }),
    message,
    code,
  );
});

test.each([
  ['({ y, x }) => { const v = x.load(); }', 'y'],
  ['({ y: out, x }) => { const v = x.load(); }', 'y: out'],
  ['(args) => { const v = args.x.load(); }', 'args'],
  ['({ x }) => { const v = x.load(); }', '{ x }'],
  ['() => { }', '() => { }'],
])('an output that nothing is stored to: %s', (text, code) => {
  refuses(
    { ...softmax, text },
    broadcast([1, 32], [4, 32], { y: 'dense', x: 'dense' }),
    'y is an output, and nothing is stored to it',
    code,
  );
});

test('the error names the missing one of several outputs', () => {
  const two: KernelSource = {
    ...softmax,
    signature: { y: tensor('output'), z: tensor('output'), x: tensor('input') },
  };
  const form = broadcast([1, 32], [4, 32], { y: 'dense', z: 'dense', x: 'dense' });
  refuses(
    { ...two, text: '({ y, z, x }) => { y.store(x.load()); }' },
    form,
    'z is an output, and nothing is stored to it',
    'z',
  );
});

test('a store within a loop counts, and an inout need not be stored', () => {
  const inLoop: KernelSource = {
    ...product,
    text:
      '({ c, a }, tile) => { ' +
      'for (const k of tile.over("k")) c.store(tile.sum(a.load(k), 1)); }',
  };
  expect(() => readKernel(tileSource(inLoop, ofProduct))).not.toThrow();
  const form = broadcast([1, 32], [4, 32], { y: 'dense', x: 'dense' });
  for (const text of ['({ y, x }) => { y.store(x.load()); }', '({ y }) => { y.store(1); }']) {
    expect(() =>
      readKernel(
        tileSource(
          { ...softmax, signature: { y: tensor('output'), x: tensor('inout') }, text },
          form,
        ),
      ),
    ).not.toThrow();
  }
});

test.each([
  [
    'c.store(a.load())',
    'a has many tiles along k, and this does not say which: a.load()',
    'a.load()',
  ],
  ['for (const k of tile.over("k")) c.store(1, k)', 'c has no axis k: c.store(1, k)', 'k'],
  [
    'for (const k of tile.over("k")) c.store(a.load(k) + b.load(k))',
    'The rows of one tile are m, those of the other k: a.load(k) + b.load(k)',
    'a.load(k) + b.load(k)',
  ],
  [
    'for (const k of tile.over("k")) c.store(a.load(k))',
    'The columns of one tile are k, those of the other n',
    'a.load(k)',
  ],
  [
    'for (const k of tile.over("k")) c.store(tile.dot(b.load(k), a.load(k)))',
    'The columns of the left tile are n, the rows of the right one m',
    'tile.dot(b.load(k), a.load(k))',
  ],
  [
    'for (const k of tile.over("k")) c.store(tile.dot(a.load(k), tile.transpose(a.load(k))))',
    'Rows and columns of this product are both m',
    'tile.dot(a.load(k), tile.transpose(a.load(k)))',
  ],
  [
    'for (const k of tile.over("k")) c.store(tile.dot(a.load(k), 1))',
    'dot takes tiles of rows and columns, and this value is the same along a column',
    '1',
  ],
  [
    'for (const k of tile.over("k")) c.store(tile.sum(tile.sum(a.load(k), 1), 1))',
    'This value is the same along a row, and there is nothing to reduce',
    'tile.sum(a.load(k), 1)',
  ],
  [
    'let last = 0; for (const k of tile.over("k")) last = a.load(k); c.store(tile.sum(last, 1))',
    '`last` is there after the loop over k, and this value differs along k: last = a.load(k)',
    'last = a.load(k)',
  ],
  [
    'for (const k of tile.over("k")) for (const j of tile.over("k")) c.store(1)',
    'A loop over k is already around this one',
    'tile.over("k")',
  ],
  ['for (const k of tile.over("k")) c.store(k)', 'k represents a tile of k, and is no number', 'k'],
  [
    'for (const k of tile.over("k")) { } c.store(tile.sum(a.load(k), 1))',
    'load takes what a loop over tiles counts, and no index: k',
    'k',
  ],
  [
    'for (const k of tile.over("k")) c.store(tile.dot(a.load(k)))',
    'dot takes two tiles, and what their product is added to',
    'tile.dot(a.load(k))',
  ],
])('with axes: %s', (statement, message, code) => {
  refuses(
    { ...product, text: `({ c, a, b }, tile) => { ${statement}; }` },
    ofProduct,
    message,
    code,
  );
});

someOf(
  2,
  test,
)([
  [
    'commas',
    'const v = x.load(); y.store(v), y.store(v * 2);',
    'const v = x.load(); y.store(v); y.store(v * 2);',
  ],
  [
    'an expression as the body',
    undefined,
    'y.store(x.load()); y.store(1);',
    '({ y, x }) => (y.store(x.load()), y.store(1))',
  ],
  ['void', 'void y.store(1);', 'y.store(1);'],
  [
    'a let that is assigned later',
    'let v, e; v = x.load(), e = Math.exp(v), y.store(e);',
    'const v = x.load(); const e = Math.exp(v); y.store(e);',
  ],
  [
    'a var that is assigned later',
    'var e; e = Math.exp(x.load()); y.store(e);',
    'const e = Math.exp(x.load()); y.store(e);',
  ],
  [
    'a second var',
    'var v = x.load(); var v = v * 2; y.store(v);',
    'let v = x.load(); v = v * 2; y.store(v);',
  ],
  [
    'an assignment within an expression',
    'let v, e; e = (v = x.load()) * v + 1; y.store(e);',
    'const v = x.load(); const e = v * v + 1; y.store(e);',
  ],
  [
    'an assignment that is stored',
    'let v = x.load(); y.store(v *= 2);',
    'let v = x.load(); v *= 2; y.store(v);',
  ],
  [
    'parameters taken apart by variables',
    undefined,
    'y.store(tile.sum(x.load(), 1) * tile.N);',
    'function (a, b) { var y = a.y, x = a.x, s = b.sum, n = b.N; y.store(s(x.load(), 1) * n); }',
  ],
  [
    'parameters under other names',
    undefined,
    'y.store(tile.sum(x.load(), 1));',
    '(a, b) => { const c = a, t = b, { y, x: z } = c; const { sum } = t; ' +
      'y.store(sum(z.load(), 1)); }',
  ],
  ['a power of esbuild', 'y.store(__pow(x.load(), 3));', 'y.store(x.load() ** 3);'],
])('reads %s', (_, statements, same, text = `({ y, x }, tile) => { ${statements} }`) => {
  const form = broadcast([1, 32], [4, 32], { y: 'dense', x: 'dense' });
  const treeOf = (of: string): string =>
    sameTree(readKernel(tileSource({ ...softmax, text: of, uses: { N: 2 } }, form)));
  expect(treeOf(text)).toBe(treeOf(`({ y, x }, tile) => { ${same} }`));
});

someOf(
  2,
  test,
)([
  [
    'without braces',
    'for (let k of tile.over("k")) sum = tile.dot(a.load(k), b.load(k), sum), sum += 0;',
    'for (const k of tile.over("k")) { sum = tile.dot(a.load(k), b.load(k), sum); sum += 0; }',
  ],
  [
    'that are counted',
    'for (var i = 0, parts = tile.over("k"); i < parts.length; i++) { var k = parts[i]; sum ' +
      '= tile.dot(a.load(k), b.load(k), sum); }',
    'for (const k of tile.over("k")) sum = tile.dot(a.load(k), b.load(k), sum);',
  ],
  [
    'that are counted and share variables',
    'for (var n = 1, i = 0, parts = tile.over("k"); i < parts.length; i++) { var k = ' +
      'parts[i], v = a.load(k); sum += n * tile.sum(v, 1); } for (var j = 0, others = ' +
      'tile.over("k"); j < others.length; j++) k = others[j], v = a.load(k), sum += ' +
      'tile.max(v, 1);',
    'const n = 1; for (const k of tile.over("k")) { const v = a.load(k); sum += n * ' +
      'tile.sum(v, 1); } for (const k of tile.over("k")) { const v = a.load(k); sum += ' +
      'tile.max(v, 1); }',
  ],
  [
    'after a comma',
    'for (var k of (sum += 1, tile.over("k"))) sum += tile.sum(a.load(k), 1);',
    'sum += 1; for (const k of tile.over("k")) sum += tile.sum(a.load(k), 1);',
  ],
])('reads loops %s', (_, statements, same) => {
  const treeOf = (of: string): string =>
    sameTree(
      readKernel(
        tileSource(
          { ...product, text: `({ c, a, b }, tile) => { let sum = 0; ${of} c.store(sum); }` },
          ofProduct,
        ),
      ),
    );
  expect(treeOf(statements)).toBe(treeOf(same));
});

test('a var that is assigned in a loop has no value after it', () => {
  refuses(
    {
      ...product,
      text:
        '({ c, a, b }, tile) => { for (var k of tile.over("k")) { var v = tile.sum(a.load(k), ' +
        '1); } c.store(v); }',
    },
    ofProduct,
    'v has no value yet here, or had it in a loop only',
    'v',
  );
});

test(
  'a mean of whole tiles is of a constant length, and of one that is a power of two takes no ' +
    'division',
  () => {
    const mean: KernelSource = {
      ...softmax,
      text: '({ y, x }, tile) => { const v = x.load(); y.store(v - tile.mean(v, 1)); }',
    };
    const divisions = (
      tile: readonly [number, number],
      extents: readonly [number, number],
    ): number => {
      const form = broadcast(tile, extents, { y: 'dense', x: 'dense' });
      const { ptx } = emitKernel(readKernel(tileSource(mean, form)), {
        capability: '9.0',
        block: [form.across, form.down, 1],
      });
      return ptx.match(/div\.rn\.f32/g)?.length ?? 0;
    };
    expect(divisions([1, 4096], [8, 4096])).toBe(0);
    expect(divisions([1, 3072], [8, 3072])).toBe(1);
    expect(divisions([1, 4096], [8, 4000])).toBe(1);
  },
);

/** Barriers of a kernel of tiles of 32 × 64 with `s` of this access. */
function barriers(
  statements: string,
  access: TensorForm['access'],
  tile: readonly [number, number] = [32, 64],
): number {
  const source: KernelSource = {
    ...softmax,
    signature: { s: tensor('inout'), y: tensor('output'), x: tensor('input') },
    text: `({ s, y, x }, tile) => { ${statements} }`,
  };
  const form = broadcast(tile, [tile[0] * 4, tile[1]], { s: access, y: 'dense', x: 'dense' });
  const { ptx } = emitKernel(readKernel(tileSource(source, form)), {
    capability: '9.0',
    block: [form.across * form.down, 1, 1],
  });
  return ptx.match(/bar\.sync/g)?.length ?? 0;
}

test.each([
  [
    'one that all read is written after it',
    'const a = s.load(); s.store(a + 1); y.store(a);',
    'one',
    1,
  ],
  [
    'a row that all rows read is written after it',
    'const a = s.load(); s.store(a + 1); y.store(a);',
    'row',
    1,
  ],
  [
    'a column that all columns read is written after it',
    'const a = s.load(); s.store(a + 1); y.store(a);',
    'column',
    1,
  ],
  ['what is read again is written before', 's.store(1); y.store(s.load());', 'one', 1],
  ['and written again after that', 's.store(1); y.store(s.load()); s.store(2);', 'one', 2],
  [
    'a thread reads and writes its own elements',
    's.store(s.load() + 1); y.store(s.load());',
    'dense',
    0,
  ],
  ['what is read only', 'y.store(s.load());', 'one', 0],
  ['what is written only', 's.store(1); s.store(2); y.store(1);', 'one', 0],
] as const)(
  'a barrier orders accesses of different threads: %s',
  (_, statements, access, count) => {
    expect(barriers(statements, access)).toBe(count);
  },
);

test(
  'no barrier is written for a row where threads have whole rows, or for a column where they ' +
    'have whole columns',
  () => {
    expect(barriers('s.store(s.load() + 1); y.store(s.load());', 'row', [1, 4096])).toBe(0);
    expect(barriers('s.store(s.load() + 1); y.store(s.load());', 'column', [1, 4096])).toBe(2);
    expect(barriers('s.store(s.load() + 1); y.store(s.load());', 'column', [256, 1])).toBe(0);
  },
);

test('operands that do not fit in shared memory', () => {
  const form: TileForm = {
    ...threadsForAxes(
      [cut('m', 128, 256, 4), cut('n', 128, 256, 4), { ...cut('k', 128, 256, 4), cut: 'walk' }],
      [
        [0, 1],
        [0, 2],
        [2, 1],
      ],
    )!,
    broadcast: false,
    tensors: ofProduct.tensors,
  };
  refuses(
    product,
    form,
    'The operands of products take 135168 bytes of shared memory here, and a block has 49152',
    'tile.dot(a.load(k), b.load(k), sum)',
  );
});

function refuses(source: KernelSource, form: TileForm, message: string, code: string): void {
  let thrown: unknown;
  try {
    readKernel(tileSource(source, form));
  } catch (error) {
    thrown = error;
  }
  expect(thrown).toBeInstanceOf(KernelSourceError);
  const { what, span, text: shown } = thrown as KernelSourceError;
  expect(what).toContain(message);
  expect(shown.slice(span!.start, span!.end)).toBe(code);
}
