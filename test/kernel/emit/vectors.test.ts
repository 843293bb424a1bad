/** Neighbouring elements are read and written at once, only where the address allows it. */
import { describe, expect, test } from 'vitest';
import { runKernel } from './run-kernel.js';
import { TreeBuilder, add, lt, mul } from '../../../src/kernel/emit/trees.test-support.js';
import { readKernel } from '../../../src/kernel/read/read-kernel.js';
import type { KernelTree, StorageType } from '../../../src/kernel/tree.js';

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

/** From the text of a body whose tensors are x and y. */
function fromText(text: string, storage: StorageType): KernelTree {
  const tensor = (of: StorageType, how: 'input' | 'output' | 'inout') => ({ kind: 'tensor', element: { storage: of }, access: how, rank: 1 }) as const;
  return readKernel({ name: 'wide', signature: { x: tensor(storage, 'input'), y: tensor(storage, 'output') }, text, uses: {}, indexType: 'i32' });
}

const NARROW = [
  { storage: 'f16', each: 8, view: Uint16Array }, { storage: 'bf16', each: 8, view: Uint16Array }, { storage: 'i16', each: 8, view: Uint16Array }, { storage: 'u16', each: 8, view: Uint16Array },
  { storage: 'i8', each: 16, view: Uint8Array }, { storage: 'u8', each: 16, view: Uint8Array }, { storage: 'f8e4m3', each: 16, view: Uint8Array },
] as const;

describe.each(NARROW)('$storage, $each at once', ({ storage, each, view }) => {
  const bits = new view(4 * each).map((_, at) => (view === Uint16Array ? 0x3c00 + at * 37 - (at % 3) * 0x8000 : at * 29 + 3) & (storage === 'f8e4m3' ? 0x77 : 0xffff));
  const block = { block: [4, 1, 1] as [number, number, number] };
  const body = `({ x, y }, gpu) => {
    const v = gpu.local.${storage === 'f16' || storage === 'bf16' || storage === 'f8e4m3' ? 'f32' : 'i32'}(${each});
    const i = gpu.threadIdx.x * ${each};
    for (let k = 0; k < ${each}; k++) v[k] = x[i + k];
    for (let k = 0; k < ${each}; k++) y[i + k] = v[${each - 1} - k];
  }`;
  const reversed = Array.from(bits, (_, at) => bits[Math.floor(at / each) * each + each - 1 - (at % each)]);

  test('where tensors begin at 16 bytes', () => {
    const { of, emitted } = runKernel(fromText(body, storage), { values: { x: bits, y: new view(bits.length) }, target: { alignment: { 0: 16, 1: 16 }, capability: '9.0' }, ...block });
    expect(emitted.ptx.match(/ld\.global\S*/g)).toEqual(['ld.global.nc.v4.u32']);
    expect(emitted.ptx.match(/st\.global\S*/g)).toEqual(['st.global.v4.u32']);
    expect([...of<Uint16Array>('y')]).toEqual(reversed);
  });

  test('by halves at 8 bytes', () => {
    const { of, emitted } = runKernel(fromText(body, storage), { values: { x: bits, y: new view(bits.length) }, target: { alignment: { 0: 8, 1: 8 }, capability: '9.0' }, ...block });
    const wide = storage === 'i16' ? 'v4.s16' : view === Uint16Array ? 'v4.u16' : 'v2.u32';
    expect(emitted.ptx.match(/ld\.global\S*/g)).toEqual([`ld.global.nc.${wide}`, `ld.global.nc.${wide}`]);
    expect([...of<Uint16Array>('y')]).toEqual(reversed);
  });
});

describe('shared memory', () => {
  const turned = `({ x, y }, gpu) => {
    const tile = gpu.shared.f32(8, 4);
    const t = gpu.threadIdx.x;
    for (let k = 0; k < 4; k++) tile[t][k] = x[t * 4 + k];
    gpu.block.sync();
    for (let k = 0; k < 4; k++) y[t * 4 + k] = tile[7 - t][k];
  }`;
  const values = Float32Array.from({ length: 32 }, (_, at) => at + 0.25);
  const expected = Array.from(values, (_, at) => values[(7 - Math.floor(at / 4)) * 4 + (at % 4)]);

  test('is read and written by vectors', () => {
    const { of, emitted } = runKernel(fromText(turned, 'f32'), { values: { x: values, y: new Float32Array(32) }, block: [8, 1, 1] });
    expect(emitted.ptx.match(/(?:ld|st)\.shared\S*/g)).toEqual(['st.shared.v4.f32', 'ld.shared.v4.f32']);
    expect([...of<Float32Array>('y')]).toEqual(expected);
  });

  test('not from rows that begin at other places', () => {
    const { of, emitted } = runKernel(fromText(turned.replace('(8, 4)', '(8, 5)'), 'f32'), { values: { x: values, y: new Float32Array(32) }, block: [8, 1, 1] });
    expect(emitted.ptx).not.toMatch(/(?:ld|st)\.shared\.v/);
    expect([...of<Float32Array>('y')]).toEqual(expected);
  });

  test('what is written there stays between what is read before and after it', () => {
    const text = `({ x, y }, gpu) => {
      const tile = gpu.shared.f32(64);
      const t = gpu.threadIdx.x * 4;
      for (let k = 0; k < 4; k++) tile[t + k] = x[t + k];
      const before = tile[t] + tile[t + 1];
      tile[t + 1] = 7;
      for (let k = 0; k < 4; k++) y[t + k] = tile[t + k] + before;
    }`;
    const { of } = runKernel(fromText(text, 'f32'), { values: { x: values, y: new Float32Array(32) }, block: [8, 1, 1], target: { alignment: { 0: 16, 1: 16 } } });
    expect([...of<Float32Array>('y')]).toEqual(Array.from(values, (value, at) => (at % 4 === 1 ? 7 : value) + values[at - (at % 4)]! + values[at - (at % 4) + 1]!));
  });
});

test('what passes the caches by is joined too', () => {
  const text = `({ x, y }, gpu) => {
    const v = gpu.local.f32(4);
    const t = gpu.threadIdx.x * 4;
    for (let k = 0; k < 4; k++) v[k] = gpu.streamingLoad(x, t + k);
    for (let k = 0; k < 4; k++) gpu.streamingStore(y, t + k, v[k] * v[k]);
  }`;
  const { of, emitted } = runKernel(fromText(text, 'f32'), { values: { x: input, y: new Float32Array(64) }, block: [16, 1, 1], target: { alignment: { 0: 16, 1: 16 } } });
  expect(emitted.ptx.match(/(?:ld|st)\.global\S*/g)).toEqual(['ld.global.cs.v4.f32', 'st.global.cs.v4.f32']);
  expect([...of<Float32Array>('y')]).toEqual(squares);
});
