/** The result of each node of the tree, by running it. */
import { expect, test } from 'vitest';
import { TreeBuilder } from '../tree-builder.test-support.js';
import type {
  BinaryOperator,
  CompareOperator,
  Expression,
  StorageType,
  UnaryOperator,
  ValueType,
} from '../tree.js';
import { writeJavaScript } from './javascript.js';
import { simulateKernel } from './simulate.js';

const ARRAYS = {
  bool: Uint8Array,
  i32: Int32Array,
  u32: Uint32Array,
  i64: BigInt64Array,
  u64: BigUint64Array,
  f32: Float32Array,
  f64: Float64Array,
} as const;

/** The value of an expression whose operands come from memory. */
function evaluate(
  type: ValueType,
  make: (t: TreeBuilder, operands: Expression[]) => Expression,
  ...operands: [ValueType, number | bigint][]
): number | bigint {
  const t = new TreeBuilder('evaluate');
  const out = t.tensor('out', type, 'output');
  const inputs = operands.map(([operand], index) =>
    t.load(t.tensor(`in${index}`, operand, 'input'), t.i32(0)),
  );
  const tree = t.tree(t.store(out, t.i32(0), make(t, inputs)));
  const result = new ARRAYS[type](1);
  simulateKernel(tree, {
    grid: 1,
    block: 1,
    args: {
      out: result,
      ...Object.fromEntries(
        operands.map(([operand, value], index) => [
          `in${index}`,
          ARRAYS[operand].of(value as never),
        ]),
      ),
    },
  });
  return result[0]!;
}

test.each<[BinaryOperator, ValueType, number | bigint, number | bigint, number | bigint]>([
  ['add', 'i32', 2147483647, 1, -2147483648],
  ['sub', 'u32', 0, 1, 4294967295],
  ['mul', 'i32', 123456789, 987654321, Math.imul(123456789, 987654321)],
  ['mul', 'u32', 4294967295, 4294967295, 1],
  ['mul', 'i64', 1n << 62n, 2n, -(1n << 63n)],
  ['add', 'u64', (1n << 64n) - 1n, 2n, 1n],
  ['div', 'i32', -7, 2, -3],
  ['div', 'i32', -2147483648, -1, -2147483648],
  ['div', 'u32', 4294967295, 2, 2147483647],
  ['div', 'i64', -7n, 2n, -3n],
  ['rem', 'i32', -7, 3, -1],
  ['rem', 'u32', 4294967295, 10, 5],
  ['rem', 'f64', -7.5, 2, -1.5],
  ['rem', 'f32', 5, Infinity, 5],
  ['add', 'f32', 16777216, 1, 16777216],
  ['div', 'f32', 1, 3, Math.fround(1 / 3)],
  ['div', 'f64', 1, 3, 1 / 3],
  ['and', 'u32', 0xf0f0f0f0, 0xff00ff00, 0xf000f000],
  ['or', 'i32', -2147483648, 1, -2147483647],
  ['xor', 'u64', (1n << 64n) - 1n, 1n, (1n << 64n) - 2n],
  ['min', 'f32', -0, 0, -0],
  ['max', 'f32', NaN, 1, NaN],
  ['min', 'i64', -5n, 3n, -5n],
  ['max', 'u32', 4294967295, 1, 4294967295],
  ['mulhi', 'i32', -1, 5, -1],
  ['mulhi', 'u32', 4294967295, 4294967295, 4294967294],
  ['mulhi', 'u64', (1n << 64n) - 1n, (1n << 64n) - 1n, (1n << 64n) - 2n],
  ['mulhi', 'i64', -1n, 5n, -1n],
  ['copysign', 'f32', 3, -0, -3],
])('%s of %s: %s, %s', (operator, type, left, right, expected) => {
  expect(
    evaluate(type, (t, [a, b]) => t.binary(operator, a!, b!), [type, left], [type, right]),
  ).toBe(expected);
});

test.each<[BinaryOperator, ValueType, number | bigint, number, number | bigint]>([
  ['shl', 'i32', 1, 33, 2],
  ['shl', 'u32', 1, 31, 2147483648],
  ['shr', 'i32', -8, 1, -4],
  ['shr', 'u32', 4294967288, 1, 2147483644],
  ['shl', 'i64', 1n, 65, 2n],
  ['shr', 'i64', -8n, 1, -4n],
  ['shr', 'u64', 1n << 63n, 63, 1n],
])('%s of %s: %s by %d', (operator, type, left, right, expected) => {
  expect(
    evaluate(type, (t, [a, b]) => t.binary(operator, a!, b!), [type, left], ['u32', right]),
  ).toBe(expected);
});

test.each<[UnaryOperator, ValueType, number | bigint, number | bigint]>([
  ['neg', 'i32', -2147483648, -2147483648],
  ['neg', 'u32', 1, 4294967295],
  ['neg', 'i64', 5n, -5n],
  ['neg', 'u64', 1n, (1n << 64n) - 1n],
  ['neg', 'f32', 0, -0],
  ['not', 'u32', 0, 4294967295],
  ['not', 'i64', 0n, -1n],
  ['not', 'u64', 0n, (1n << 64n) - 1n],
  ['not', 'bool', 0, 1],
  ['abs', 'i32', -5, 5],
  ['abs', 'i32', -2147483648, -2147483648],
  ['abs', 'i64', -5n, 5n],
  ['abs', 'f64', -0, 0],
  ['floor', 'f32', -1.5, -2],
  ['ceil', 'f32', -0.5, -0],
  ['trunc', 'f64', -1.5, -1],
  ['rint', 'f32', 2.5, 2],
  ['sqrt', 'f32', 2, Math.fround(Math.SQRT2)],
  ['sqrt', 'f64', 2, Math.SQRT2],
  ['popc', 'u32', 0xff00ff00, 16],
  ['popc', 'i64', -1n, 64n],
  ['clz', 'i32', 1, 31],
  ['clz', 'u64', 1n, 63n],
  ['brev', 'u32', 1, 2147483648],
  ['brev', 'i32', 1, -2147483648],
  ['brev', 'i64', 1n, -(1n << 63n)],
])('%s of %s: %s', (operator, type, operand, expected) => {
  expect(evaluate(type, (t, [a]) => t.unary(operator, a!), [type, operand])).toBe(expected);
});

test('bits of 64-bit integers can be counted into an i32', () => {
  expect(evaluate('i32', (t, [a]) => t.unary('popc', a!, 'i32'), ['u64', (1n << 64n) - 1n])).toBe(
    64,
  );
  expect(evaluate('i32', (t, [a]) => t.unary('clz', a!, 'i32'), ['i64', 0n])).toBe(64);
});

test.each<[ValueType, ValueType, number | bigint, number | bigint]>([
  ['i32', 'u32', -1, 4294967295],
  ['u32', 'i32', 4294967295, -1],
  ['i32', 'i64', -1, -1n],
  ['i32', 'u64', -1, (1n << 64n) - 1n],
  ['u32', 'i64', 4294967295, 4294967295n],
  ['i64', 'i32', 0x1ffffffffn, -1],
  ['u64', 'u32', 0x1ffffffffn, 4294967295],
  ['i64', 'u32', -1n, 4294967295],
  ['i32', 'f32', 16777217, 16777216],
  ['u32', 'f64', 4294967295, 4294967295],
  ['i64', 'f32', 2n ** 53n + 2n ** 29n + 1n, 2 ** 53 + 2 ** 30],
  ['u64', 'f64', (1n << 64n) - 1n, 2 ** 64],
  ['f64', 'f32', 0.1, Math.fround(0.1)],
  ['f32', 'i32', -1.9, -1],
  ['f32', 'u32', -5, 0],
  ['f64', 'i64', 1e30, 0x7fffffffffffffffn],
  ['f64', 'i32', NaN, 0],
  ['f32', 'bool', NaN, 1],
  ['i64', 'bool', 0n, 0],
  ['bool', 'i64', 1, 1n],
  ['bool', 'f32', 1, 1],
])('%s to %s: %s', (from, to, value, expected) => {
  expect(evaluate(to, (t, [a]) => t.convert(to, a!), [from, value])).toBe(expected);
});

test.each<[ValueType, ValueType, number | bigint, number | bigint]>([
  ['f32', 'u32', -0, 0x80000000],
  ['f32', 'i32', NaN, 0x7fffffff],
  ['f64', 'u64', 1, 0x3ff0000000000000n],
  ['f64', 'i64', -0, -(1n << 63n)],
  ['u32', 'f32', 0x3f800000, 1],
  ['i64', 'f64', 0x3ff0000000000000n, 1],
  ['i32', 'u32', -1, 4294967295],
])('the bits of %s as %s: %s', (from, to, value, expected) => {
  expect(evaluate(to, (t, [a]) => t.bitcast(to, a!), [from, value])).toBe(expected);
});

test.each<[CompareOperator, ValueType, number | bigint, number | bigint, number]>([
  ['lt', 'f32', NaN, 1, 0],
  ['ne', 'f32', NaN, NaN, 1],
  ['eq', 'f64', -0, 0, 1],
  ['lt', 'u64', 1n, 1n << 63n, 1],
  ['ge', 'i32', -1, 0, 0],
  ['le', 'u32', 4294967295, 0, 0],
])('%s of %s: %s, %s', (operator, type, left, right, expected) => {
  expect(
    evaluate('bool', (t, [a, b]) => t.compare(operator, a!, b!), [type, left], [type, right]),
  ).toBe(expected);
});

test.each<[StorageType, ValueType, number, number]>([
  ['i8', 'i32', 200, -56],
  ['u8', 'i32', -1, 255],
  ['i16', 'i32', 40000, -25536],
  ['u16', 'i32', -1, 65535],
  ['f16', 'f32', 0.1, 0.0999755859375],
  ['bf16', 'f32', 1.00390625, 1],
  ['f8e4m3', 'f32', 1000, 448],
])('narrow to %s', (storage, type, value, expected) => {
  expect(evaluate(type, (t, [a]) => t.narrow(storage, a!), [type, value])).toBe(expected);
});

test('a value of every storage type is read as it was written', () => {
  const t = new TreeBuilder('storages');
  const kinds: [StorageType, Expression, ArrayBufferView, unknown][] = [
    ['i8', t.i32(200), new Int8Array(1), [-56]],
    ['u8', t.i32(-1), new Uint8Array(1), [255]],
    ['i16', t.i32(40000), new Int16Array(1), [-25536]],
    ['u16', t.i32(-1), new Uint16Array(1), [65535]],
    ['bool', t.constant('bool', true), new Uint8Array(1), [1]],
    ['f16', t.f32(1e6), new Uint16Array(1), [0x7c00]],
    ['bf16', t.f32(-1), new Uint16Array(1), [0xbf80]],
    ['f8e4m3', t.f32(-1e6), new Uint8Array(1), [0xfe]],
    ['f8e5m2', t.f32(NaN), new Uint8Array(1), [0x7f]],
    ['u64', t.constant('u64', (1n << 64n) - 1n), new BigUint64Array(1), [(1n << 64n) - 1n]],
  ];
  const tree = t.tree(
    ...kinds.map(([storage, value]) =>
      t.store(t.tensor(storage, storage, 'output'), t.i32(0), value),
    ),
  );
  simulateKernel(tree, {
    grid: 1,
    block: 1,
    args: Object.fromEntries(kinds.map(([storage, , array]) => [storage, array])),
  });
  for (const [storage, , array, expected] of kinds)
    expect([storage, [...(array as unknown as Iterable<unknown>)]]).toEqual([storage, expected]);
});

test("a NaN is written with PTX's bits", () => {
  const t = new TreeBuilder('nan');
  const single = t.tensor('single', 'f32', 'output');
  const double = t.tensor('double', 'f64', 'output');
  const zero = t.scalar('zero', 'f32');
  const tree = t.tree(
    t.store(single, t.i32(0), t.binary('div', zero, zero)),
    t.store(double, t.i32(0), t.unary('neg', t.convert('f64', t.binary('div', zero, zero)))),
  );
  const args = { single: new Float32Array(1), double: new Float64Array(1), zero: 0 };
  simulateKernel(tree, { grid: 1, block: 1, args });
  expect(new Uint32Array(args.single.buffer)[0]).toBe(0x7fffffff);
  expect(new BigUint64Array(args.double.buffer)[0]).toBe(0x7ff8000000000000n);
});

test('adding to f32 flushes subnormal numbers in global memory, and not in shared memory', () => {
  const t = new TreeBuilder('flush');
  const out = t.tensor('out', 'f32');
  const shared = t.array('s', 'shared', 'f32', 1);
  const tiny = t.scalar('tiny', 'f32');
  const tree = t.tree(
    t.store(shared, t.i32(0), t.f32(0)),
    t.evaluate(t.atomic('add', shared, t.i32(0), tiny)),
    t.evaluate(t.atomic('add', out, t.i32(0), tiny)),
    t.store(out, t.i32(1), t.load(shared, t.i32(0))),
  );
  const out32 = new Float32Array(2);
  simulateKernel(tree, { grid: 1, block: 1, args: { out: out32, tiny: 2 ** -140 } });
  expect([...out32]).toEqual([0, 2 ** -140]);
});

test('atomics give the value from before', () => {
  const t = new TreeBuilder('atomics');
  const a = t.tensor('a', 'u32');
  const old = t.tensor('old', 'u32', 'output');
  const u = (value: number): Expression => t.u32(value);
  const steps: [Parameters<TreeBuilder['atomic']>[0], number, number?][] = [
    ['add', 0xffffffff],
    ['min', 3],
    ['max', 9],
    ['and', 0xc],
    ['or', 3],
    ['xor', 1],
    ['exch', 7],
    ['cas', 5, 7],
    ['cas', 1, 7],
  ];
  const tree = t.tree(
    ...steps.map(([operator, operand, compare], index) =>
      t.store(
        old,
        t.i32(index),
        t.atomic(operator, a, t.i32(0), u(operand), compare === undefined ? undefined : u(compare)),
      ),
    ),
  );
  const args = { a: Uint32Array.of(5), old: new Uint32Array(steps.length) };
  simulateKernel(tree, { grid: 1, block: 1, args });
  expect([...args.old]).toEqual([5, 4, 3, 9, 8, 11, 10, 7, 5]);
  expect(args.a[0]).toBe(5);
});

test('atomics of 64 bits wrap, and threads apply them one after the other', () => {
  const t = new TreeBuilder('counts');
  const a = t.tensor('a', 'i64');
  const args = { a: BigInt64Array.of((1n << 63n) - 4n) };
  simulateKernel(t.tree(t.evaluate(t.atomic('add', a, t.i32(0), t.i64(1n)))), {
    grid: 2,
    block: 4,
    args,
  });
  expect(args.a[0]).toBe(-(1n << 63n) + 4n);
});

const VECTOR = {
  fields: [
    { name: 'id', storage: 'i8', offset: 0 },
    { name: 'mass', storage: 'f32', offset: 4 },
    { name: 'length', storage: 'i64', offset: 8 },
  ],
  bytes: 16,
  align: 8,
} as const;

test('structures are read and written field by field', () => {
  const t = new TreeBuilder('structures');
  const p = t.tensor('p', VECTOR);
  const [, mass, length] = t.struct('by', VECTOR);
  const i = t.globalX;
  const tree = t.tree(
    t.store(p, i, t.mul(t.load(p, i, 'mass'), mass!), 'mass'),
    t.store(p, i, t.add(t.load(p, i, 'length'), length!), 'length'),
    t.store(p, i, t.i32(300), 'id'),
  );
  const bytes = new ArrayBuffer(32);
  const view = new DataView(bytes);
  view.setFloat32(20, 1.5, true);
  view.setBigInt64(24, -1n, true);
  simulateKernel(tree, {
    grid: 1,
    block: 2,
    args: { p: bytes, by: { id: 0, mass: 2, length: 3 } },
  });
  expect([view.getInt8(16), view.getFloat32(20, true), view.getBigInt64(24, true)]).toEqual([
    44,
    3,
    2n,
  ]);
});

test('axes have extents and strides', () => {
  const t = new TreeBuilder('transpose');
  const out = t.tensor('out', 'f32', 'output', 2);
  const a = t.tensor('a', 'f32', 'input', 2);
  const [x, y] = [t.special('threadIdx.x'), t.special('threadIdx.y')];
  const at = (m: typeof a, row: Expression, column: Expression): Expression =>
    t.add(t.mul(row, m.strides[0]!), t.mul(column, m.strides[1]!));
  const tree = t.tree(
    t.store(out, at(out, x, y), t.add(t.load(a, at(a, y, x)), t.convert('f32', a.extents[1]!))),
  );
  const args = {
    a: { data: Float32Array.of(0, 1, 2, 3, 4, 5, 6, 7), shape: [2, 3], strides: [4, 1] },
    out: { data: new Float32Array(6), shape: [3, 2] },
  };
  simulateKernel(tree, { grid: 1, block: [3, 2], args });
  expect([...args.out.data]).toEqual([3, 7, 4, 8, 5, 9]);
});

test('narrower floats may be given as values: outputs come back rounded', () => {
  const t = new TreeBuilder('halves');
  const out = t.tensor('out', 'f16', 'output');
  const a = t.tensor('a', 'f8e4m3', 'input');
  const args = { a: Float32Array.of(1.06), out: new Float32Array(1) };
  simulateKernel(t.tree(t.store(out, t.i32(0), t.mul(t.load(a, t.i32(0)), t.f32(0.1)))), {
    grid: 1,
    block: 1,
    args,
  });
  expect(args.out[0]).toBe(0.0999755859375);
  expect(args.a[0]).toBe(Math.fround(1.06));
});

test('indices of threads have 64 bits where the tree has i64 indices', () => {
  const t = new TreeBuilder('ids');
  t.indexType = 'i64';
  const out = t.tensor('out', 'i64', 'output');
  const i = t.globalX;
  const tree = t.tree(
    t.if(t.compare('lt', i, out.length), [
      t.store(out, i, t.add(t.mul(i, t.i64(10n)), t.convert('i64', t.special('lane')))),
    ]),
  );
  const args = { out: new BigInt64Array(70) };
  simulateKernel(tree, { grid: 2, block: 40, args });
  expect([args.out[33], args.out[41], args.out[69]]).toEqual([331n, 411n, 690n + 29n]);
});

test('loops: before, after, for ever, continue and break, from inside of others too', () => {
  const t = new TreeBuilder('loops');
  const out = t.tensor('out', 'i32', 'output');
  const [i, j, sum] = [t.local('i', 'i32'), t.local('j', 'i32'), t.local('sum', 'i32')];
  const step = (v: typeof i) => t.set(v, t.add(v, t.i32(1)));
  const odd = (v: typeof i) => t.compare('eq', t.binary('and', v, t.i32(1)), t.i32(1));
  const tree = t.tree(
    t.set(sum, t.i32(0)),
    t.set(i, t.i32(0)),
    t.loop(t.compare('lt', i, t.i32(10)), [step(i)], (outer) => [
      t.if(odd(i), [t.next(outer)]),
      t.set(j, t.i32(0)),
      t.loop(undefined, [step(j)], (inner) => [
        t.if(t.compare('ge', j, i), [t.next(outer)]),
        t.if(t.compare('eq', t.add(i, j), t.i32(13)), [t.leave(outer)]),
        t.if(odd(j), [t.next(inner)]),
        t.group((group) => [
          t.if(t.compare('eq', j, t.i32(4)), [t.leave(group)]),
          t.set(sum, t.add(sum, t.i32(1))),
        ]),
      ]),
    ]),
    t.store(out, t.i32(0), sum),
    t.set(j, t.i32(0)),
    t.loop(
      t.compare('lt', j, t.i32(0)),
      [step(j)],
      (id) => [t.set(sum, t.add(sum, t.i32(100))), t.if(odd(sum), [t.next(id)]), step(j)],
      true,
    ),
    t.store(out, t.i32(1), sum),
    t.store(out, t.i32(2), j),
  );
  let [expected, a] = [0, 0];
  outer: for (a = 0; a < 10; a++) {
    if (a & 1) continue;
    for (let b = 0; ; b++) {
      if (b >= a) continue outer;
      if (a + b === 13) break outer;
      if (b & 1) continue;
      if (b !== 4) expected++;
    }
  }
  const args = { out: new Int32Array(3) };
  simulateKernel(tree, { grid: 1, block: 1, args });
  expect([...args.out]).toEqual([expected, expected + 100, 2 - ((expected + 100) & 1)]);
});

test('statements inside expressions run in their order, loops among them', () => {
  const t = new TreeBuilder('blocks');
  const out = t.tensor('out', 'i32', 'output');
  const [i, n] = [t.local('i', 'i32'), t.local('n', 'i32')];
  const postIncrement = t.block([t.set(n, i), t.set(i, t.add(i, t.i32(1)))], n);
  const summed = t.local('summed', 'i32');
  // i + (a loop that adds 5 to i and gives its sum) * i: the first i is read before the loop.
  const looping = t.block(
    [
      t.set(summed, t.i32(0)),
      t.loop(t.compare('lt', summed, t.i32(5)), [], () => [
        t.set(summed, t.add(summed, t.i32(1))),
        t.set(i, t.add(i, t.i32(1))),
      ]),
    ],
    summed,
  );
  const skipped = t.block(
    [t.loop(undefined, [], (id) => [t.set(i, t.i32(1000)), t.leave(id)])],
    t.constant('bool', true),
  );
  const tree = t.tree(
    t.set(i, t.i32(0)),
    t.store(out, postIncrement, i),
    t.store(out, t.i32(1), t.add(i, t.mul(looping, i))),
    t.if(
      t.logical('and', t.compare('gt', i, t.i32(100)), skipped),
      [t.store(out, t.i32(2), t.i32(-1))],
      [t.store(out, t.i32(2), i)],
    ),
    t.store(
      out,
      t.i32(3),
      t.choose(
        t.compare('eq', i, t.i32(6)),
        t.block([t.group(() => [t.set(i, t.i32(7))])], i),
        t.i32(-1),
      ),
    ),
  );
  const args = { out: new Int32Array(4) };
  simulateKernel(tree, { grid: 1, block: 1, args });
  expect([...args.out]).toEqual([1, 1 + 5 * 6, 6, 7]);
});

test('variables of one name keep it where their scopes do not overlap', () => {
  const t = new TreeBuilder('names');
  const out = t.tensor('out', 'i32', 'output');
  const [a, b, c, word] = [
    t.local('i', 'i32'),
    t.local('i', 'i32'),
    t.local('out', 'i32', true),
    t.local('class', 'i32', true),
  ];
  const loop = (v: typeof a, n: number) => [
    t.set(v, t.i32(0)),
    t.loop(t.compare('lt', v, t.i32(n)), [t.set(v, t.add(v, t.i32(1)))], () => [
      t.store(out, v, t.i32(n)),
    ]),
  ];
  const tree = t.tree(
    t.if(t.compare('eq', t.threadX, t.i32(0)), loop(a, 3)),
    t.if(t.compare('eq', t.threadX, t.i32(0)), loop(b, 2)),
    t.set(c, t.i32(9)),
    t.set(word, t.i32(2)),
    t.store(out, word, c),
  );
  const { code } = writeJavaScript(tree);
  expect(code).toContain('for (let i = 0; i < 3; i = i + 1 | 0) {');
  expect(code).toContain('for (let i = 0; i < 2; i = i + 1 | 0) {');
  expect(code).toContain('const out$2 = 9;');
  expect(code).toContain('const class$2 = 2;');
  const args = { out: new Int32Array(3) };
  simulateKernel(tree, { grid: 1, block: 1, args });
  expect([...args.out]).toEqual([2, 2, 9]);
});

test('local arrays belong to the thread, and are zero at first and after a clear', () => {
  const t = new TreeBuilder('locals');
  const out = t.tensor('out', 'i32', 'output');
  const own = t.array('own', 'local', 'i32', 2);
  const i = t.threadX;
  const tree = t.tree(
    t.store(own, t.i32(0), t.add(t.load(own, t.i32(0)), i)),
    t.store(out, i, t.load(own, t.i32(0))),
    t.clear(own),
    t.store(out, t.add(i, t.i32(4)), t.load(own, t.i32(0))),
  );
  const args = { out: new Int32Array(8) };
  simulateKernel(tree, { grid: 1, block: 4, args });
  expect([...args.out]).toEqual([0, 1, 2, 3, 0, 0, 0, 0]);
});

test.each<[StorageType, ValueType, number | bigint | boolean]>([
  ['i8', 'i32', 1],
  ['u64', 'u64', 1n],
  ['i64', 'i64', 1n],
  ['f16', 'f32', 1],
  ['f64', 'f64', 1],
  ['bool', 'bool', true],
])('a local array of %s is cleared', (storage, type, value) => {
  const t = new TreeBuilder('clears');
  const out = t.tensor('out', 'bool', 'output');
  const own = t.array('own', 'local', storage, 1);
  const one = t.constant(type, value);
  const isOne = t.compare('eq', t.load(own, t.i32(0)), one);
  const tree = t.tree(
    t.store(own, t.i32(0), one),
    t.store(out, t.i32(0), isOne),
    t.clear(own),
    t.store(out, t.i32(1), isOne),
  );
  const args = { out: new Uint8Array(2) };
  simulateKernel(tree, { grid: 1, block: 1, args });
  expect([...args.out]).toEqual([1, 0]);
});

test("print writes C's formats, in whole lines to the console", () => {
  const t = new TreeBuilder('prints');
  const tree = t.tree(t.print('%d: %.2f\n', t.threadX, t.constant('f64', 1.005)));
  const texts: string[] = [];
  simulateKernel(tree, { grid: 1, block: 2, args: {}, print: (text) => texts.push(text) });
  expect(texts).toEqual(['0: 1.00\n', '1: 1.00\n']);
});
