/** The directives and parameters of emitted kernels. */
import { describe, expect, test } from 'vitest';
import { KernelSourceError } from '../source-error.js';
import type { KernelTree } from '../tree.js';
import { emitKernel, entryName } from './emit.js';
import { TreeBuilder, add, constant, convert, lt, mul, nowhere } from './trees.test-support.js';

function simple(name = 'kernel'): KernelTree {
  const t = new TreeBuilder(name);
  t.tensor('x', 'f32').put(0, 1);
  return t.tree;
}

describe('names', () => {
  test.each([
    ['saxpy', 'saxpy'],
    ['1d', 'kernel_1d'],
    ['größe', 'gr__e'],
    ['a b', 'a_b'],
    ['', 'kernel_'],
    ['vprintf', 'kernel_vprintf'],
    ['_', 'kernel__'],
    ['$', '$'],
  ])('%j is %s', (name, entry) => {
    expect(entryName(name)).toBe(entry);
    expect(emitKernel(simple(name), { capability: '9.0' }).ptx).toContain(
      `.visible .entry ${entry}(`,
    );
  });
});

describe('targets', () => {
  test('the lowest version that has all instructions, or the given one', () => {
    expect(emitKernel(simple(), { capability: '8.9' }).isa).toBe('7.8');
    expect(emitKernel(simple(), { capability: '8.9', isa: '8.3' }).ptx).toMatch(
      /^\.version 8\.3\n\.target sm_89\n/,
    );
    const t = new TreeBuilder('f8');
    t.tensor('x', 'f8e4m3').put(0, constant(1.5, 'f32'));
    t.tensor('y', 'f8e4m3').put(0, convert(t.scalar('s', 'i32'), 'f32'));
    expect(emitKernel(t.tree, { capability: '8.9' }).isa).toBe('8.1');
    expect(emitKernel(t.tree, { capability: '8.0' }).isa).toBe('7.0');
  });

  test('a text that is no compute capability is an error', () => {
    expect(() => emitKernel(simple(), { capability: 'best' })).toThrow(/capability is "best"/);
  });
});

test('parameters are those of the ABI in its order', () => {
  const t = new TreeBuilder('params', 'i64');
  const [s, x] = [t.scalar('s', 'f16'), t.tensor('x', 'f32')];
  t.if(lt(t.special('globalId.x'), x.length), () => x.put(t.special('globalId.x'), s));
  const { ptx, abi } = emitKernel(t.tree, { capability: '9.0' });
  expect([...ptx.matchAll(/\.param (\.\w+) params_param_(\d)/g)].map((match) => match[1])).toEqual([
    '.b16',
    '.u64',
    '.u64',
  ]);
  expect(abi).toEqual(t.tree.abi);
});

test('the threads of a block are written where they are known', () => {
  expect(emitKernel(simple(), { capability: '9.0', block: [32, 4, 1] }).ptx).toContain(
    '.reqntid 32, 4, 1',
  );
  expect(emitKernel(simple(), { capability: '9.0', maxThreads: 256 }).ptx).toContain(
    '.maxntid 256, 1, 1',
  );
});

test('an error names the place', () => {
  const t = new TreeBuilder('wrong');
  t.push({ kind: 'evaluate', span: nowhere, value: t.tensor('x', 'i8').atomic('add', 0, 1) });
  try {
    emitKernel(t.tree, { capability: '9.0' });
    expect.unreachable();
  } catch (error) {
    expect(error).toBeInstanceOf(KernelSourceError);
    expect(error).toMatchObject({
      what: "There is no atomic 'add' on elements of i8",
      span: nowhere,
    });
  }
});

test('adjacent elements differ in an immediate', () => {
  const t = new TreeBuilder('stencil');
  const [x, y] = [t.tensor('x', 'f32', 'input'), t.tensor('y', 'f32', 'output')];
  const i = t.variable(t.special('globalId.x'));
  y.put(i.value, add(add(x.at(add(i.value, -1)), x.at(i.value)), x.at(add(i.value, 1))));
  const { ptx } = emitKernel(t.tree, { capability: '9.0' });
  expect(ptx).toMatch(/\[%rd\d+\+-4\]/);
  expect(ptx).toMatch(/\[%rd\d+\+4\]/);
  expect(ptx.match(/mul\.wide/g)).toHaveLength(1);
});

test('the element below a counter that begins at 1 differs in an immediate', () => {
  const t = new TreeBuilder('below');
  const [x, y] = [t.tensor('x', 'f32', 'input'), t.tensor('y', 'f32', 'output')];
  t.for(1, x.length, 1, (i) => y.put(i, x.at(add(i, -1))), { unroll: 1 });
  expect(emitKernel(t.tree, { capability: '9.0' }).ptx).toMatch(
    /ld\.global\.nc\.f32 %f\d+, \[%rd\d+\+-4\]/,
  );
});

test('an index that may wrap is computed in full', () => {
  const t = new TreeBuilder('wraps');
  const [x, y] = [t.tensor('x', 'f32', 'input'), t.tensor('y', 'f32', 'output')];
  y.put(0, x.at(add(mul(t.scalar('k', 'i32'), 3), -5)));
  expect(emitKernel(t.tree, { capability: '9.0' }).ptx).not.toMatch(/\+-20\]/);
});
