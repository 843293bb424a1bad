/** Convergent operations, and messages to the host. */
import { describe, expect, test } from 'vitest';
import { KernelSourceError } from '../../../src/compiler/source-error.js';
import type { Expression, StorageType } from '../../../src/compiler/tree.js';
import { emitKernel } from '../../../src/compiler/emit/emit.js';
import { offer, runKernel } from './run-kernel.js';
import type { HostArray } from './run-kernel.js';
import {
  TreeBuilder,
  add,
  as,
  binary,
  bitcast,
  compare,
  constant,
  convert,
  lt,
  mul,
  nowhere,
  shuffle,
  sub,
  vote,
} from '../../../src/compiler/emit/trees.test-support.js';

const span = nowhere;
const lanes = Array.from({ length: 32 }, (_, lane) => lane);

test('shared memory, static and dynamic, between barriers', () => {
  const t = new TreeBuilder('reverse');
  const [x, y] = [t.tensor('x', 'f64', 'input'), t.tensor('y', 'f64', 'output')];
  const tile = t.array('shared', 'f64', 64);
  const bytes = t.array('shared', 'u8', 3);
  const more = t.array('dynamic', 'i32', 0);
  const i = t.variable(t.special('threadIdx.x'));
  tile.put(i.value, x.at(i.value));
  more.put(i.value, mul(i.value, 2));
  t.if(compare('eq', i.value, 0), () => bytes.put(2, 7));
  t.sync();
  y.put(
    i.value,
    binary(
      'add',
      tile.at(sub(63, i.value)),
      convert(add(more.at(binary('xor', i.value, 1)), bytes.at(2)), 'f64'),
    ),
  );
  const input = Float64Array.from({ length: 64 }, (_, at) => at * 1.5);
  const { of, emitted } = runKernel(t.tree, {
    values: { x: input, y: new Float64Array(64) },
    block: [64],
    dynamicShared: 256,
  });
  expect([...of<Float64Array>('y')]).toEqual(
    [...input].map((_, at) => input[63 - at]! + (at ^ 1) * 2 + 7),
  );
  // 512 and 3 bytes, rounded up to lines of 128: the dynamic part begins there.
  expect(emitted.sharedBytes).toBe(640);
});

test('shared memory of whole lines begins with one, and leaves no gaps', () => {
  const t = new TreeBuilder('lines');
  const out = t.tensor('out', 'i32', 'output');
  const i = t.variable(t.special('threadIdx.x'));
  const [few, odd, lines] = [
    t.array('shared', 'i32', 1),
    t.array('shared', 'i32', 33),
    t.array('shared', 'i32', 64),
  ];
  for (const array of [few, odd, lines]) array.put(0, i.value);
  for (const array of [few, odd, lines]) out.put(i.value, array.at(0));
  const { emitted } = runKernel(t.tree, { values: { out: new Int32Array(32) }, block: [32] });
  expect(
    [...emitted.ptx.matchAll(/\.shared \.align (\d+) \.b8 \t\w+\[(\d+)\]/g)].map(
      ([, align, bytes]) => [Number(align), Number(bytes)],
    ),
  ).toEqual([
    [128, 256],
    [16, 4],
    [16, 132],
  ]);
  expect(emitted.sharedBytes).toBe(256 + 16 + 132);
});

const atomicTypes: readonly (readonly [StorageType, (length: number) => HostArray])[] = [
  ['i32', (length) => new Int32Array(length)],
  ['u32', (length) => new Uint32Array(length)],
  ['i64', (length) => new BigInt64Array(length)],
  ['u64', (length) => new BigUint64Array(length)],
  ['f32', (length) => new Float32Array(length)],
  ['f64', (length) => new Float64Array(length)],
];

describe.each(['global', 'shared'])('atomics on %s memory', (space) => {
  test.each(atomicTypes)('of %s', (storage, make) => {
    const isFloat = storage[0] === 'f';
    const t = new TreeBuilder('atomics');
    const out = t.tensor('out', storage);
    const tile = space === 'shared' ? t.array('shared', storage, 8) : out;
    const i = t.variable(t.special('threadIdx.x'));
    const value = convert(i.value, storage as 'i32');
    const typed = (number: number): Expression => constant(number, storage as 'i32');
    t.if(lt(i.value, 8), () => tile.put(i.value, typed(1)));
    t.sync();
    const run = (expression: Expression): void =>
      t.push({ kind: 'evaluate', span, value: expression });
    run(tile.atomic('add', 0, value));
    if (!isFloat) {
      run(tile.atomic('max', 1, value));
      run(tile.atomic('min', 2, value));
      run(tile.atomic('or', 3, value));
      run(tile.atomic('xor', 4, value, undefined, 'system'));
      run(tile.atomic('and', 5, value, undefined, 'block'));
    }
    const old = t.variable(tile.atomic('exch', 6, value), storage as 'i32');
    run(tile.atomic('cas', 7, value, typed(1)));
    t.sync();
    if (space === 'shared') t.if(lt(i.value, 8), () => out.put(i.value, tile.at(i.value)));
    t.sync();
    run(out.atomic('add', 8, old.value));
    const { of, outcome } = runKernel(t.tree, {
      values: { out: make(9) },
      block: [32],
      target: { capability: '7.5' },
    });
    expect(outcome.status).toBe(0);
    const got = [...(of('out') as Float64Array)].map(Number);
    expect(got[0]).toBe(1 + 496);
    if (!isFloat) {
      expect(got.slice(1, 5)).toEqual([31, 0, 31, 1]);
      expect(got[5]).toBe(0);
    }
    // The last exchange's value is there; all others, and the 1 from before, were returned to a
    // thread.
    expect(got[6]! + got[8]!).toBe(1 + 496);
    expect(got[7]).toBeGreaterThanOrEqual(0);
    expect(got[7]).toBeLessThan(32);
  });
});

test('f16 has atomic adds, bf16 from 8.0 on, by one instruction from 9.0 on', () => {
  const t = new TreeBuilder('halves');
  const out = t.tensor('out', 'f16');
  const [y, i] = [t.tensor('y', 'f32'), t.variable(t.special('threadIdx.x'))];
  y.put(i.value, out.atomic('add', 0, constant(1, 'f32')));
  const { of } = runKernel(t.tree, {
    values: { out: new Uint16Array(2), y: new Float32Array(32) },
  });
  expect(of('out')[0]).toBe(0x5000);
  expect([...of<Float32Array>('y')].sort((a, b) => a - b)).toEqual(lanes);
  const b = new TreeBuilder('bhalves');
  b.push({
    kind: 'evaluate',
    span,
    value: b.tensor('out', 'bf16').atomic('add', 0, constant(1, 'f32')),
  });
  const [native, loop] = [
    emitKernel(b.tree, { capability: '9.0' }),
    emitKernel(b.tree, { capability: '8.0' }),
  ];
  offer(native);
  offer(loop);
  expect([native.ptx.includes('.add.noftz.bf16'), loop.ptx.includes('.cas.b16')]).toEqual([
    true,
    true,
  ]);
  expect(() => emitKernel(b.tree, { capability: '7.5' })).toThrow(KernelSourceError);
});

test.each([
  ['u8', 'add'],
  ['i8', 'exch'],
  ['f16', 'or'],
  ['f32', 'max'],
  ['f64', 'and'],
  ['f8e4m3', 'add'],
] as const)('there is no atomic on %s for %s', (storage, operator) => {
  const t = new TreeBuilder('none');
  t.push({ kind: 'evaluate', span, value: t.tensor('out', storage).atomic(operator, 0, 1) });
  expect(() => emitKernel(t.tree, { capability: '9.0' })).toThrow(
    /no atomic '\w+' on elements of \w+/,
  );
});

describe('shuffles', () => {
  const modes = {
    idx: (lane: number, by: number, width: number) => (lane & ~(width - 1)) + (by & (width - 1)),
    up: (lane: number, by: number, width: number) =>
      (lane & (width - 1)) - by < 0 ? lane : lane - by,
    down: (lane: number, by: number, width: number) =>
      (lane & (width - 1)) + by >= width ? lane : lane + by,
    bfly: (lane: number, by: number, width: number) =>
      (lane ^ by) >= (lane & ~(width - 1)) + width ? lane : lane ^ by,
  };
  test.each(
    (Object.keys(modes) as (keyof typeof modes)[]).flatMap(
      (mode) =>
        [
          [mode, 32, 5],
          [mode, 8, 3],
          [mode, 16, 1],
        ] as const,
    ),
  )('%s of width %d by %d', (mode, width, by) => {
    const t = new TreeBuilder('shuffles');
    const y = t.tensor('y', 'f64');
    const i = t.variable(t.special('lane'));
    const wide = t.variable(binary('mul', convert(i.value, 'i64'), 4294967297n), 'i64');
    const sum = [
      convert(shuffle(mode, i.value, by, width), 'f64'),
      convert(shuffle(mode, convert(i.value, 'f32'), by, width), 'f64'),
      shuffle(mode, convert(i.value, 'f64'), by, width),
      convert(binary('div', shuffle(mode, wide.value, by, width), 4294967297n), 'f64'),
    ];
    sum.forEach((value, at) => y.put(add(i.value, at * 32), value));
    const { of } = runKernel(t.tree, { values: { y: new Float64Array(128) } });
    const wanted = lanes.map((lane) => modes[mode](lane, by, width));
    for (let at = 0; at < 4; at++)
      expect([...of<Float64Array>('y')].slice(at * 32, at * 32 + 32)).toEqual(wanted);
  });
});

test('votes, matches, masks and barriers that reduce', () => {
  const t = new TreeBuilder('votes');
  const y = t.tensor('y', 'u32');
  const i = t.variable(t.special('threadIdx.x'));
  const odd = compare('eq', binary('and', i.value, 1), 1);
  const flag = (value: Expression): Expression => convert(value, 'u32');
  const values: Expression[] = [
    vote('ballot', odd),
    flag(vote('any', odd)),
    flag(vote('all', odd)),
    flag(vote('uni', constant(true))),
    {
      op: 'match',
      type: 'u32',
      span,
      value: binary('and', i.value, 3),
      mask: as(0xffffffff, 'u32'),
    },
    {
      op: 'match',
      type: 'u32',
      span,
      value: convert(binary('and', i.value, 1), 'f64'),
      mask: as(0xffffffff, 'u32'),
    },
    { op: 'activemask', type: 'u32', span },
    convert({ op: 'barrierReduce', type: 'i32', span, mode: 'count', predicate: odd }, 'u32'),
    flag({ op: 'barrierReduce', type: 'bool', span, mode: 'or', predicate: odd }),
    flag({ op: 'barrierReduce', type: 'bool', span, mode: 'and', predicate: odd }),
  ];
  values.forEach((value, at) => y.put(add(i.value, at * 32), value));
  t.push({ kind: 'barrier', span, of: 'warp', mask: as(0xffffffff, 'u32') });
  for (const scope of ['block', 'device', 'system'] as const)
    t.push({ kind: 'fence', span, scope });
  const { of } = runKernel(t.tree, { values: { y: new Uint32Array(320) } });
  const rows = values.map((_, at) => [...of<Uint32Array>('y')].slice(at * 32, at * 32 + 32));
  const all = (value: number): number[] => lanes.map(() => value);
  expect(rows).toEqual([
    all(0xaaaaaaaa),
    all(1),
    all(0),
    all(1),
    lanes.map((lane) => (0x11111111 << (lane & 3)) >>> 0),
    lanes.map((lane) => (0x55555555 << (lane & 1)) >>> 0),
    all(0xffffffff),
    all(16),
    all(1),
    all(0),
  ]);
});

test('the barrier of the grid', () => {
  const t = new TreeBuilder('grid');
  t.cooperative = true;
  const [x, y] = [t.tensor('x', 'i32'), t.tensor('y', 'i32')];
  const i = t.variable(t.special('globalId.x'));
  const n = t.variable(t.special('globalSize.x'));
  for (let round = 0; round < 3; round++) {
    x.put(i.value, add(i.value, round));
    t.sync('grid');
    y.put(i.value, add(y.at(i.value), x.at(sub(sub(n.value, 1), i.value))));
    t.sync('grid');
  }
  const { of, outcome } = runKernel(t.tree, {
    values: { x: new Int32Array(32), y: new Int32Array(32) },
    grid: [4],
    block: [8],
    interleave: true,
  });
  expect(outcome.status).toBe(0);
  expect([...of<Int32Array>('y')]).toEqual(lanes.map((i) => 3 * (31 - i) + 3));
});

test('indices of threads, in i32 and i64', () => {
  for (const indexType of ['i32', 'i64'] as const) {
    for (const block of [undefined, [4, 2, 3] as const]) {
      const t = new TreeBuilder('indices', indexType);
      const y = t.tensor('y', 'i32');
      const names = ['x', 'y', 'z'] as const;
      const linear = t.variable(0);
      const id = (axis: 'x' | 'y' | 'z'): Expression =>
        convert(t.special(`globalId.${axis}`), 'i32');
      const size = (axis: 'x' | 'y' | 'z'): Expression =>
        convert(t.special(`globalSize.${axis}`), 'i32');
      linear.set(add(id('x'), mul(size('x'), add(id('y'), mul(size('y'), id('z'))))));
      y.put(linear.value, add(mul(t.special('warp'), 1000), t.special('lane')));
      for (const axis of names)
        t.if(compare('ge', t.special(`threadIdx.${axis}`), t.special(`blockDim.${axis}`)), () =>
          y.put(0, -1),
        );
      const { of } = runKernel(t.tree, {
        values: { y: new Int32Array(2 * 3 * 2 * 24) },
        grid: [2, 3, 2],
        block: [4, 2, 3],
        target: block ? { block } : {},
      });
      const got = of<Int32Array>('y');
      got.forEach((value, at) => {
        const [x, row, z] = [at % 8, Math.floor(at / 8) % 6, Math.floor(at / 48)];
        const thread = (x % 4) + 4 * ((row % 2) + 2 * (z % 3));
        expect(value).toBe(Math.floor(thread / 32) * 1000 + (thread % 32));
      });
    }
  }
});

test('printf takes its arguments from the stack', () => {
  const t = new TreeBuilder('printing');
  const i = t.variable(t.special('threadIdx.x'));
  t.push({
    kind: 'print',
    span,
    format: 'é %d %lld %f %u\n',
    values: [i.value, convert(i.value, 'i64'), convert(i.value, 'f64'), convert(i.value, 'u32')],
  });
  t.push({ kind: 'print', span, format: 'end\n', values: [] });
  const { grid } = runKernel(t.tree, { values: {}, block: [1] });
  expect(grid.printed.map((entry) => entry.format)).toEqual(['é %d %lld %f %u\n', 'end\n']);
});

test('assertions and traps', () => {
  const t = new TreeBuilder('asserting');
  const n = t.scalar('n', 'i32');
  t.push({ kind: 'assert', span, test: lt(n, 5), message: 'n < 5' });
  expect(runKernel(t.tree, { values: { n: 3 }, block: [1] }).outcome.status).toBe(0);
  const failed = runKernel(t.tree, { values: { n: 5 }, block: [1] });
  expect(failed.outcome.status).not.toBe(0);
  expect(failed.grid.asserts).toContain('n < 5');
  const u = new TreeBuilder('trapping');
  u.if(lt(u.scalar('n', 'i32'), 5), () => u.push({ kind: 'trap', span }));
  expect(runKernel(u.tree, { values: { n: 5 }, block: [1] }).outcome.status).toBe(0);
  expect(runKernel(u.tree, { values: { n: 4 }, block: [1] }).outcome.status).not.toBe(0);
});

describe('checks', () => {
  const build = (): TreeBuilder => {
    const t = new TreeBuilder('checked');
    const [at, x] = [t.scalar('at', 'i32'), t.tensor('x', 'i32')];
    x.put(at, 1);
    return t;
  };
  test.each([0, 31])('%d is in bounds', (at) => {
    const { outcome, emitted } = runKernel(build().tree, {
      values: { at, x: new Int32Array(32) },
      block: [1],
      target: { checks: true },
    });
    expect(outcome.status).toBe(0);
    expect(emitted.abi.at(-1)).toEqual({ kind: 'length', param: 1 });
  });
  test.each([32, -1])('%d is out of bounds', (at) => {
    const { outcome, grid } = runKernel(build().tree, {
      values: { at, x: new Int32Array(32) },
      block: [1],
      target: { checks: true },
    });
    expect(outcome.status).not.toBe(0);
    expect(grid.asserts).toContain('an index of x is out of bounds');
  });
});

test('clocks increase', () => {
  const t = new TreeBuilder('clocks');
  const y = t.tensor('y', 'i64');
  y.put(0, t.special('clock'));
  y.put(1, t.special('clock'));
  y.put(2, convert(t.special('globaltimer'), 'i64'));
  const { of, emitted } = runKernel(t.tree, { values: { y: new BigInt64Array(3) }, block: [1] });
  expect(of('y')[1]! >= of('y')[0]!).toBe(true);
  expect(emitted.ptx.match(/%clock64/g)).toHaveLength(2);
});

test('lines of the source are in the text', () => {
  const t = new TreeBuilder('lines');
  const x = t.tensor('x', 'u32');
  x.put(t.special('threadIdx.x'), bitcast(constant(5), 'u32'));
  const emitted = emitKernel(t.tree, {
    capability: '9.0',
    lines: { file: 'a\\b.ts', lineOf: () => ({ line: 12, column: 3 }) },
  });
  offer(emitted);
  const { ptx } = emitted;
  expect(ptx).toContain('.file 1 "a/b.ts"');
  expect(ptx).toContain('.loc 1 12 3');
});

test.each([
  ['7.5', 'sm_75', '6.4'],
  ['8.0', 'sm_80', '7.0'],
  ['8.9', 'sm_89', '7.8'],
  ['9.0', 'sm_90', '7.8'],
  ['10.0', 'sm_100', '8.6'],
  ['12.0', 'sm_120', '8.7'],
])('compute capability %s is %s, in PTX %s', (capability, target, isa) => {
  const t = new TreeBuilder('1 + add');
  t.tensor('x', 'f32').put(0, 1);
  const emitted = emitKernel(t.tree, { capability, block: [32, 1, 1] });
  expect(emitted).toMatchObject({ target, isa, entry: 'kernel_1___add' });
  expect(emitted.ptx).toContain('.reqntid 32, 1, 1');
  offer(emitted);
});
