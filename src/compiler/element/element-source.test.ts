/** Forms of element kernels: vector accesses, and errors that show the user's text. */
import { expect, test } from 'vitest';

import { emitKernel } from '../emit/emit.js';
import { gpuNamesIn } from '../read/gpu-names.js';
import { readKernel } from '../read/read-kernel.js';
import type { KernelSource, SignatureEntry } from '../signature.js';
import { KernelSourceError } from '../source-error.js';
import type { ElementForm } from './element-form.js';
import { elementSource } from './element-source.js';
import { ARITHMETIC_NAMES } from './gpu-of-elements.js';

const tensor = (
  access: 'input' | 'output' | 'inout',
  storage: 'f32' | 'f16' | 'u8' = 'f32',
): SignatureEntry => ({ kind: 'tensor', element: { storage }, access, rank: 1 });

const add: KernelSource = {
  name: 'add',
  signature: { y: tensor('output'), x: tensor('input'), b: tensor('input') },
  text: '({ x, b }) => x + b',
  uses: {},
  indexType: 'i32',
};
const run: ElementForm = { width: 4, axes: 1, single: [], coordinates: 0 };

function accesses(source: KernelSource, form: ElementForm): string[] {
  const { ptx } = emitKernel(readKernel(elementSource(source, form)), {
    capability: '9.0',
    checks: false,
    alignment: { 0: 16, 1: 16, 2: 16 },
  });
  expect(ptx).not.toContain('.local');
  return [...ptx.matchAll(/(ld|st)\.global\.(?:nc\.)?(\S+)/g)]
    .map(([, verb, type]) => `${verb} ${type}`)
    .sort();
}

test('runs of elements are accessed by vectors, and the rest one by one', () => {
  expect(accesses(add, run)).toEqual([
    'ld f32',
    'ld f32',
    'ld v4.f32',
    'ld v4.f32',
    'st f32',
    'st v4.f32',
  ]);
  // One element for all is read once by each thread.
  expect(accesses(add, { ...run, single: ['b'] })).toEqual([
    'ld f32',
    'ld f32',
    'ld f32',
    'ld v4.f32',
    'st f32',
    'st v4.f32',
  ]);
  const bytes = {
    ...add,
    signature: { y: tensor('output', 'u8'), x: tensor('inout', 'u8'), b: tensor('input', 'f16') },
    text: '({ x, b }) => ({ y: x, x: gpu.i32(b) })',
  };
  expect(
    accesses({ ...bytes, text: '({ x, b }, gpu) => ({ y: x, x: gpu.i32(b) })' }, run).filter(
      (each) => each.includes('v4'),
    ),
  ).toEqual(['ld v4.u16', 'ld v4.u8', 'st v4.u8', 'st v4.u8']);
});

test('rows that broadcast are accessed by vectors only', () => {
  expect(accesses(add, { ...run, access: { y: 'dense', x: 'dense', b: 'row' } })).toEqual([
    'ld v4.f32',
    'ld v4.f32',
    'st v4.f32',
  ]);
  expect(accesses(add, { ...run, access: { y: 'dense', x: 'column', b: 'row' } })).toEqual([
    'ld f32',
    'ld v4.f32',
    'st v4.f32',
  ]);
});

test("every span of a tree is in one of the user's texts", () => {
  const forms: ElementForm[] = [
    run,
    { ...run, width: 1, axes: 3 },
    { ...run, access: { y: 'dense', x: 'one', b: 'dense' } },
  ];
  for (const form of forms) {
    const tree = readKernel(elementSource(add, form));
    const seen = new Set<number>();
    const walk = (value: unknown): void => {
      if (typeof value !== 'object' || value === null) return;
      const { span } = value as { span?: { text: number; start: number; end: number } };
      if (span !== undefined) {
        seen.add(span.text);
        expect(tree.texts[span.text]!.slice(span.start, span.end)).not.toContain('$');
      }
      for (const child of Object.values(value)) walk(child);
    };
    walk(tree.body);
    expect([...seen].map((text) => tree.texts[text])).toEqual([add.text]);
  }
});

const two: KernelSource['signature'] = {
  y: tensor('output'),
  z: tensor('inout'),
  x: tensor('input'),
  a: { kind: 'scalar', storage: 'f32' },
};

function refuses(
  signature: KernelSource['signature'],
  text: string,
  message: string,
  code: string,
): void {
  let thrown: unknown;
  try {
    readKernel(elementSource({ ...add, signature, text }, run));
  } catch (error) {
    thrown = error;
  }
  expect(thrown).toBeInstanceOf(KernelSourceError);
  const { message: whole, span, text: shown } = thrown as KernelSourceError;
  expect(whole).toBe(message);
  expect(shown.slice(span!.start, span!.end)).toBe(code);
}

test.each([
  ['({ x }) => ({ y: x })', '{ y: x }'],
  ['({ x }) => { const r = { y: x }; return r; }', 'r'],
  ['({ x }) => { if (x > 0) return { y: x, z: 1 }; return { y: 1 }; }', '{ y: 1 }'],
  ['({ x }) => (x > 0 ? { y: x, z: 1 } : { y: 1 })', '{ y: 1 }'],
  ['function (e) { var v; return v = e.x, { y: v }; }', '{ y: v }'],
])('an output that is not returned: %s', (text, code) => {
  refuses(two, text, 'z is not returned. Return it too: { y, z }.', code);
});

test.each([
  [
    '({ x }) => ({ y: x, z: x, q: x })',
    'q is returned, and is no output. Leave it out, or add it to the signature: { q: ' +
      'output(f32) }.',
    'q: x',
  ],
  [
    '({ x }) => { const r = { y: x, z: x, x }; return r; }',
    'x is returned, and is an input. Leave it out, or declare it as inout(…).',
    'x',
  ],
])('a returned value that is no output is rejected: %s', (text, message, code) => {
  refuses(two, text, message, code);
});

test.each([
  ['({ x }) => { const v = x; }', '{ const v = x; }'],
  ['({ x }) => { if (x > 0) return { y: x, z: x }; return; }', 'return;'],
  ['({ x }) => void x', 'void x'],
])('a body that returns nothing: %s', (text, code) => {
  refuses(
    two,
    text,
    'The body returns nothing, and y and z take their elements from what it returns. Return ' +
      'an object of their elements: return { y, z }.',
    code,
  );
});

test('the fix for one output is its element', () => {
  refuses(
    add.signature,
    '({ x }) => { }',
    'The body returns nothing, and y takes its element from what it returns. Return the ' +
      'element of y: return x * 2.',
    '{ }',
  );
  refuses(
    add.signature,
    '({ x }) => ({ y: x })',
    'y is all that is written, and this is an object. Return the element of y: return x * 2.',
    '{ y: x }',
  );
});

test.each([
  ['({ x }) => x', 'x'],
  ['({ z: v }) => v', 'v'],
  ['({ a }) => a', 'a'],
  ['({ x }) => x * 2', 'x * 2'],
  ['() => 1', '1'],
])('one number for several outputs: %s', (text, code) => {
  refuses(
    two,
    text,
    'y and z are written, and this is one number. Return an object of their elements: return ' +
      '{ y, z }.',
    code,
  );
});

test.each([
  ['({ x, y }) => ({ y: x + y, z: 1 })', 'y'],
  ['({ x, y: before }) => ({ y: x, z: 1 })', 'y: before'],
  ['(e) => ({ y: e.x, z: e.y })', 'e.y'],
  ['(e) => { const { x, y } = e; return { y: x + y, z: 1 }; }', 'y'],
  ['function (e) { var x, y; ({ x, y } = e); return { y: x + y, z: 1 }; }', 'y'],
])('an output that is read: %s', (text, code) => {
  refuses(
    two,
    text,
    'y is an output, and the body finds no element of it. Return an object of their ' +
      'elements: return { y, z }. To read what was in it before, declare it as inout(…).',
    code,
  );
});

test.each([
  '({ z, x }) => ({ z: z + x, y: x })',
  '(e) => { const r = { y: e.x, z: e.z }; r.y += 1; return r; }',
  '({ x }, gpu) => gpu.both(x)',
  '({ x }) => { const e = { y: x }; return { y: e.y, z: 1 }; }',
])('a correct body is accepted: %s', (text) => {
  const uses = { both: { text: '(v) => ({ y: v, z: v })', uses: {} } };
  expect(() =>
    readKernel(elementSource({ ...add, signature: two, text, uses }, run)),
  ).not.toThrow();
});

test('gpu has all members but those of threads, memory and the grid', () => {
  const others = [
    'threadIdx',
    'blockIdx',
    'blockDim',
    'gridDim',
    'globalId',
    'globalSize',
    'lane',
    'warpIdx',
    'warpSize',
    'warp',
    'block',
    'grid',
    'group',
    'tensor',
    'barrier',
    'cluster',
    'fence',
    'async',
    'shared',
    'dynamicShared',
    'volatileLoad',
    'volatileStore',
    'streamingLoad',
    'streamingStore',
    'clock',
    'globalTimer',
    'trap',
  ];
  // Only the compiler writes a cast to bool.
  const arithmetic = gpuNamesIn('').filter(
    (name) => !others.includes(name) && !name.startsWith('atomic') && name !== 'bool',
  );
  expect([...ARITHMETIC_NAMES].sort()).toEqual(arithmetic.sort());
});
