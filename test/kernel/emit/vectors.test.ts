/** Neighbouring elements are read and written at once, only where the address allows it. */
import { describe, expect, test } from 'vitest';
import { runKernel } from './run-kernel.js';
import { TreeBuilder, add, lt, mul } from '../../../src/kernel/emit/trees.test-support.js';
import type { KernelTree } from '../../../src/kernel/tree.js';

/** Four elements for each thread, in the order given. */
function fours(order: readonly number[], between = false): KernelTree {
  const t = new TreeBuilder('fours');
  const [x, y] = [t.tensor('x', 'f32', between ? 'inout' : 'input'), t.tensor('y', 'f32')];
  const i = t.variable(t.special('globalId.x'));
  t.if(lt(i.value, 16), () => {
    const values = order.map((at) => {
      const value = t.variable(x.at(add(mul(i.value, 4), at)));
      if (between) y.put(add(mul(i.value, 4), at), value.value);
      return [at, value] as const;
    });
    if (!between) for (const [at, value] of values) y.put(add(mul(i.value, 4), at), mul(value.value, value.value));
  });
  return t.tree;
}

const input = Float32Array.from({ length: 64 }, (_, at) => at + 0.5);
const run = (tree: KernelTree, alignment: Record<number, number>): { ptx: string; y: number[] } => {
  const { of, emitted } = runKernel(tree, { values: { x: input, y: new Float32Array(64) }, target: { alignment } });
  return { ptx: emitted.ptx, y: [...of<Float32Array>('y')] };
};
const squares = [...input].map((value) => value * value);

describe.each([{ order: [0, 1, 2, 3] }, { order: [3, 1, 0, 2] }])('$order', ({ order }) => {
  test('of four where tensors begin at 16 bytes', () => {
    const { ptx, y } = run(fours(order), { 0: 256, 1: 16 });
    expect(ptx).toContain('ld.global.nc.v4.f32');
    expect(ptx).toContain('st.global.v4.f32');
    expect(y).toEqual(squares);
  });

  test('of two at 8 bytes, alone where nothing is promised', () => {
    const { ptx, y } = run(fours(order), { 0: 8 });
    expect(ptx.match(/ld\.global\.nc\.v2\.f32/g)).toHaveLength(2);
    expect(ptx.match(/st\.global\.f32/g)).toHaveLength(4);
    expect(y).toEqual(squares);
  });
});

test('not where a write may be to what is read next', () => {
  const { ptx, y } = run(fours([0, 1, 2, 3], true), { 0: 256, 1: 256 });
  expect(ptx).not.toContain('ld.global.v');
  expect(ptx).not.toContain('st.global.v');
  expect(y).toEqual([...input]);
});

test('not from an element that is no multiple', () => {
  const t = new TreeBuilder('odd');
  const [x, y] = [t.tensor('x', 'f32', 'input'), t.tensor('y', 'f32')];
  const i = t.variable(t.special('threadIdx.x'));
  t.if(lt(i.value, 15), () => y.put(i.value, add(x.at(add(mul(i.value, 4), 1)), x.at(add(mul(i.value, 4), 2)))));
  const { ptx } = run(t.tree, { 0: 256, 1: 256 });
  expect(ptx).not.toContain('.v2.');
});
