/** Forms of element kernels: what is accessed at once, and that what is shown is the user's text. */
import { expect, test } from 'vitest';

import { emitKernel } from '../emit/emit.js';
import { readKernel } from '../read/read-kernel.js';
import type { KernelSource, SignatureEntry } from '../signature.js';
import type { ElementForm } from './element-form.js';
import { elementSource } from './element-source.js';

const tensor = (access: 'input' | 'output' | 'inout', storage: 'f32' | 'f16' | 'u8' = 'f32'): SignatureEntry => ({ kind: 'tensor', element: { storage }, access, rank: 1 });

const add: KernelSource = {
  name: 'add', signature: { y: tensor('output'), x: tensor('input'), b: tensor('input') }, text: '({ x, b }) => x + b', uses: {}, indexType: 'i32',
};
const run: ElementForm = { width: 4, axes: 1, single: [], coordinates: 0 };

function accesses(source: KernelSource, form: ElementForm): string[] {
  const { ptx } = emitKernel(readKernel(elementSource(source, form)), { capability: '9.0', checks: false, alignment: { 0: 16, 1: 16, 2: 16 } });
  expect(ptx).not.toContain('.local');
  return [...ptx.matchAll(/(ld|st)\.global\.(?:nc\.)?(\S+)/g)].map(([, verb, type]) => `${verb} ${type}`).sort();
}

test('runs of elements: vectors, and what is left over', () => {
  expect(accesses(add, run)).toEqual(['ld f32', 'ld f32', 'ld v4.f32', 'ld v4.f32', 'st f32', 'st v4.f32']);
  // One element for all is read once by each thread.
  expect(accesses(add, { ...run, single: ['b'] })).toEqual(['ld f32', 'ld f32', 'ld f32', 'ld v4.f32', 'st f32', 'st v4.f32']);
  const bytes = { ...add, signature: { y: tensor('output', 'u8'), x: tensor('inout', 'u8'), b: tensor('input', 'f16') }, text: '({ x, b }) => ({ y: x, x: gpu.i32(b) })' };
  expect(accesses({ ...bytes, text: '({ x, b }, gpu) => ({ y: x, x: gpu.i32(b) })' }, run).filter((each) => each.includes('v4'))).toEqual(['ld v4.u16', 'ld v4.u8', 'st v4.u8', 'st v4.u8']);
});

test('rows that broadcast: vectors only', () => {
  expect(accesses(add, { ...run, access: { y: 'dense', x: 'dense', b: 'row' } })).toEqual(['ld v4.f32', 'ld v4.f32', 'st v4.f32']);
  expect(accesses(add, { ...run, access: { y: 'dense', x: 'column', b: 'row' } })).toEqual(['ld f32', 'ld v4.f32', 'st v4.f32']);
});

test('every place that a tree names is in a text of the user\'s', () => {
  const forms: ElementForm[] = [run, { ...run, width: 1, axes: 3 }, { ...run, access: { y: 'dense', x: 'one', b: 'dense' } }];
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
