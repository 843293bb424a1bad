/** Neighbouring elements are read and written at once, only where the address allows it. */
import * as fc from '../../fast-check.js';
import { describe, expect, test } from 'vitest';
import { runKernel } from './run-kernel.js';
import { TreeBuilder, add, lt, mul } from '../../../src/compiler/emit/trees.test-support.js';
import { readKernel } from '../../../src/compiler/read/read-kernel.js';
import type { KernelTree, StorageType } from '../../../src/compiler/tree.js';
import { scaled } from '../../random-runs.js';

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
    if (!between)
      for (const [at, value] of values)
        y.put(add(mul(i.value, 4), at), mul(value.value, value.value));
  });
  return t.tree;
}

const input = Float32Array.from({ length: 64 }, (_, at) => at + 0.5);
const run = (tree: KernelTree, alignment: Record<number, number>): { ptx: string; y: number[] } => {
  const { of, emitted } = runKernel(tree, {
    values: { x: input, y: new Float32Array(64) },
    target: { alignment },
  });
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

  test('of two at 8 bytes, and single ones without a known alignment', () => {
    const { ptx, y } = run(fours(order), { 0: 8 });
    expect(ptx.match(/ld\.global\.nc\.v2\.f32/g)).toHaveLength(2);
    expect(ptx.match(/st\.global\.f32/g)).toHaveLength(4);
    expect(y).toEqual(squares);
  });
});

test('past writes to other tensors, and to other elements', () => {
  const { ptx, y } = run(fours([0, 1, 2, 3], true), { 0: 256, 1: 256 });
  expect(ptx.match(/(?:ld|st)\.global\S*/g)).toEqual(['ld.global.v4.f32', 'st.global.v4.f32']);
  expect(y).toEqual([...input]);
  const text =
    '({ y }, gpu) => { const i = gpu.threadIdx.x * 4; for (let k = 0; k < 4; k++) y[i + k] = ' +
    'y[i + k] * 2 + 1; }';
  const { of, emitted } = runKernel(fromText(text, 'f32', 'inout'), {
    values: { x: input, y: input.slice() },
    block: [16, 1, 1],
    target: { alignment: { 0: 16, 1: 16 } },
  });
  expect(emitted.ptx.match(/(?:ld|st)\.global\S*/g)).toEqual([
    'ld.global.v4.f32',
    'st.global.v4.f32',
  ]);
  expect([...of<Float32Array>('y')]).toEqual(Array.from(input, (value) => value * 2 + 1));
});

test('not past a write that may alias a later read', () => {
  const text =
    '({ y, x }, gpu) => { const i = gpu.threadIdx.x * 4; const j = gpu.i32(x[i]); for (let k ' +
    '= 0; k < 4; k++) y[j + k] = y[i + k] + 1; }';
  const y = Float32Array.from({ length: 8 }, (_, at) => at);
  const { of, emitted } = runKernel(fromText(text, 'f32', 'inout'), {
    values: { x: Float32Array.of(1, 0, 0, 0), y },
    block: [1, 1, 1],
    target: { alignment: { 0: 16, 1: 16 } },
  });
  expect(emitted.ptx).not.toMatch(/(?:ld|st)\.global\.v/);
  expect([...of<Float32Array>('y')]).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
});

/** One step of a body, for example `of[from + offset] = of[from + offset] + 1`. */
interface Step {
  readonly to: readonly [of: 'y' | 'z', from: 'i' | 'j', offset: number];
  readonly from: readonly [of: 'x' | 'y' | 'z', from: 'i' | 'j', offset: number];
}

test('any order of reads and writes has the results of single accesses', { tags: 'random' }, () => {
  const place = <Of extends string>(...names: Of[]) =>
    fc.tuple(
      fc.constantFrom(...names),
      fc.constantFrom('i' as const, 'j' as const),
      fc.nat({ max: 7 }),
    );
  const steps: fc.Arbitrary<Step[]> = fc.array(
    fc.record({ to: place('y', 'z'), from: place('x', 'y', 'z') }),
    { minLength: 4, maxLength: 24 },
  );
  let joined = 0;
  fc.assert(
    fc.property(steps, fc.constantFrom(0, 4, 8), fc.boolean(), (given, j, sorted) => {
      // In this order there are accesses to join.
      const all = sorted
        ? given.map(({ to, from }, at): Step => ({
            to: [to[0], 'i', at % 8],
            from: [from[0], from[1], at % 8],
          }))
        : given;
      const assignment = ({ to, from }: Step): string =>
        `${to[0]}[${to[1]} + ${to[2]}] = ${from[0]}[${from[1]} + ${from[2]}] + 1;`;
      const text =
        `({ x, y, z, start }) => { const i = start * 4; const j = start * ${j}; ` +
        `${all.map(assignment).join(' ')} }`;
      const tensor = (access: 'input' | 'inout') =>
        ({ kind: 'tensor', element: { storage: 'f32' }, access, rank: 1 }) as const;
      const tree = readKernel({
        name: 'steps',
        signature: {
          x: tensor('input'),
          y: tensor('inout'),
          z: tensor('inout'),
          start: { kind: 'scalar', storage: 'i32' },
        },
        text,
        uses: {},
        indexType: 'i32',
      });
      const memory = Object.fromEntries(
        ['x', 'y', 'z'].map((name, at) => [
          name,
          Float32Array.from({ length: 16 }, (_, k) => 100 * at + k),
        ]),
      ) as Record<'x' | 'y' | 'z', Float32Array>;
      const { of, emitted } = runKernel(tree, {
        values: { ...memory, start: 1 },
        block: [1, 1, 1],
        target: { alignment: { 0: 16, 1: 16, 2: 16 } },
        shown: false,
      });
      if (/\.global\.v|\.nc\.v/.test(emitted.ptx)) joined++;
      for (const { to, from } of all)
        memory[to[0]][(to[1] === 'i' ? 4 : j) + to[2]] =
          memory[from[0]][(from[1] === 'i' ? 4 : j) + from[2]]! + 1;
      for (const name of new Set(all.map(({ to }) => to[0])))
        expect([...of<Float32Array>(name)]).toEqual([...memory[name]]);
    }),
    { numRuns: 300 },
  );
  expect(joined).toBeGreaterThan(scaled(50));
});

test('not from an element whose index is not a multiple', () => {
  const t = new TreeBuilder('odd');
  const [x, y] = [t.tensor('x', 'f32', 'input'), t.tensor('y', 'f32')];
  const i = t.variable(t.special('threadIdx.x'));
  t.if(lt(i.value, 15), () =>
    y.put(i.value, add(x.at(add(mul(i.value, 4), 1)), x.at(add(mul(i.value, 4), 2)))),
  );
  const { ptx } = run(t.tree, { 0: 256, 1: 256 });
  expect(ptx).not.toContain('.v2.');
});

/** From the text of a body whose tensors are x and y. */
function fromText(
  text: string,
  storage: StorageType,
  access: 'output' | 'inout' = 'output',
): KernelTree {
  const tensor = (of: StorageType, how: 'input' | 'output' | 'inout') =>
    ({ kind: 'tensor', element: { storage: of }, access: how, rank: 1 }) as const;
  return readKernel({
    name: 'wide',
    signature: { x: tensor(storage, 'input'), y: tensor(storage, access) },
    text,
    uses: {},
    indexType: 'i32',
  });
}

const NARROW = [
  { storage: 'f16', each: 8, view: Uint16Array },
  { storage: 'bf16', each: 8, view: Uint16Array },
  { storage: 'i16', each: 8, view: Uint16Array },
  { storage: 'u16', each: 8, view: Uint16Array },
  { storage: 'i8', each: 16, view: Uint8Array },
  { storage: 'u8', each: 16, view: Uint8Array },
  { storage: 'f8e4m3', each: 16, view: Uint8Array },
] as const;

describe.each(NARROW)('$storage, $each at once', ({ storage, each, view }) => {
  const bits = new view(4 * each).map(
    (_, at) =>
      (view === Uint16Array ? 0x3c00 + at * 37 - (at % 3) * 0x8000 : at * 29 + 3) &
      (storage === 'f8e4m3' ? 0x77 : 0xffff),
  );
  const block = { block: [4, 1, 1] as [number, number, number] };
  const kept = ['f16', 'bf16', 'f8e4m3'].includes(storage) ? 'f32' : 'i32';
  const body = `({ x, y }, gpu) => {
    const v = gpu.local.${kept}(${each});
    const i = gpu.threadIdx.x * ${each};
    for (let k = 0; k < ${each}; k++) v[k] = x[i + k];
    for (let k = 0; k < ${each}; k++) y[i + k] = v[${each - 1} - k];
  }`;
  const reversed = Array.from(
    bits,
    (_, at) => bits[Math.floor(at / each) * each + each - 1 - (at % each)],
  );

  test('where tensors begin at 16 bytes', () => {
    const { of, emitted } = runKernel(fromText(body, storage), {
      values: { x: bits, y: new view(bits.length) },
      target: { alignment: { 0: 16, 1: 16 }, capability: '9.0' },
      ...block,
    });
    expect(emitted.ptx.match(/ld\.global\S*/g)).toEqual(['ld.global.nc.v4.u32']);
    expect(emitted.ptx.match(/st\.global\S*/g)).toEqual(['st.global.v4.u32']);
    expect([...of<Uint16Array>('y')]).toEqual(reversed);
  });

  test('in halves where tensors begin at 8 bytes', () => {
    const { of, emitted } = runKernel(fromText(body, storage), {
      values: { x: bits, y: new view(bits.length) },
      target: { alignment: { 0: 8, 1: 8 }, capability: '9.0' },
      ...block,
    });
    const wide = storage === 'i16' ? 'v4.s16' : view === Uint16Array ? 'v4.u16' : 'v2.u32';
    expect(emitted.ptx.match(/ld\.global\S*/g)).toEqual([
      `ld.global.nc.${wide}`,
      `ld.global.nc.${wide}`,
    ]);
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
    const { of, emitted } = runKernel(fromText(turned, 'f32'), {
      values: { x: values, y: new Float32Array(32) },
      block: [8, 1, 1],
    });
    expect(emitted.ptx.match(/(?:ld|st)\.shared\S*/g)).toEqual([
      'st.shared.v4.f32',
      'ld.shared.v4.f32',
    ]);
    expect([...of<Float32Array>('y')]).toEqual(expected);
  });

  test('not from rows that begin at other places', () => {
    const { of, emitted } = runKernel(fromText(turned.replace('(8, 4)', '(8, 5)'), 'f32'), {
      values: { x: values, y: new Float32Array(32) },
      block: [8, 1, 1],
    });
    expect(emitted.ptx).not.toMatch(/(?:ld|st)\.shared\.v/);
    expect([...of<Float32Array>('y')]).toEqual(expected);
  });

  test('a write stays between the reads before and after it', () => {
    const text = `({ x, y }, gpu) => {
      const tile = gpu.shared.f32(64);
      const t = gpu.threadIdx.x * 4;
      for (let k = 0; k < 4; k++) tile[t + k] = x[t + k];
      const before = tile[t] + tile[t + 1];
      tile[t + 1] = 7;
      for (let k = 0; k < 4; k++) y[t + k] = tile[t + k] + before;
    }`;
    const { of } = runKernel(fromText(text, 'f32'), {
      values: { x: values, y: new Float32Array(32) },
      block: [8, 1, 1],
      target: { alignment: { 0: 16, 1: 16 } },
    });
    expect([...of<Float32Array>('y')]).toEqual(
      Array.from(
        values,
        (value, at) =>
          (at % 4 === 1 ? 7 : value) + values[at - (at % 4)]! + values[at - (at % 4) + 1]!,
      ),
    );
  });
});

test('accesses that bypass caches are joined as well', () => {
  const text = `({ x, y }, gpu) => {
    const v = gpu.local.f32(4);
    const t = gpu.threadIdx.x * 4;
    for (let k = 0; k < 4; k++) v[k] = gpu.streamingLoad(x, t + k);
    for (let k = 0; k < 4; k++) gpu.streamingStore(y, t + k, v[k] * v[k]);
  }`;
  const { of, emitted } = runKernel(fromText(text, 'f32'), {
    values: { x: input, y: new Float32Array(64) },
    block: [16, 1, 1],
    target: { alignment: { 0: 16, 1: 16 } },
  });
  expect(emitted.ptx.match(/(?:ld|st)\.global\S*/g)).toEqual([
    'ld.global.cs.v4.f32',
    'st.global.cs.v4.f32',
  ]);
  expect([...of<Float32Array>('y')]).toEqual(squares);
});
