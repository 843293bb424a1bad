/** Elementwise maths on tensors, compared with JavaScript. */
import {
  CudaArgumentError,
  Device,
  bool,
  f16,
  f32,
  i16,
  i32,
  i64,
  i8,
  u16,
  u32,
  u64,
  u8,
  zip,
} from 'async-cuda';
import type { AnyTensor, DType, DeviceOp } from 'async-cuda';
import * as library from 'async-cuda/library';
import { beforeAll, describe, expect, expectTypeOf, test } from 'vitest';

import { DTYPES, namesWhere } from '../../src/ground/dtype.js';
import type { FloatName } from '../../src/ground/dtype.js';
import { failure, onDevice, range } from '../core/test-device.js';
import { someOf } from '../random-runs.js';

type AnyUnary = (x: unknown) => DeviceOp<AnyTensor>;
type AnyBinary = (x: unknown, y: unknown) => DeviceOp<AnyTensor>;
const of = (name: string): AnyUnary & AnyBinary =>
  (library as unknown as Record<string, AnyUnary & AnyBinary>)[name]!;

const FLOAT_DTYPES: readonly DType<FloatName>[] = (
  namesWhere(({ kind, compute }) => kind === 'float' && compute !== null) as FloatName[]
).map((name) => DTYPES[name]);

const SIZES = [0, 1, 3, 4, 31, 33, 255, 1000, 1025, 4099];

const erf = (x: number): number => {
  // The series, in doubles: enough for |x| <= 4.
  let term = x;
  let sum = x;
  for (let n = 1; n < 80; n++) {
    term *= -(x * x) / n;
    sum += term / (2 * n + 1);
  }
  return (2 / Math.sqrt(Math.PI)) * sum;
};

/** Operations on floats, and arguments for which they are defined. */
const FLOATS: Readonly<
  Record<string, { f: (x: number) => number; from?: number; to?: number; ulp?: number }>
> = {
  exp: { f: Math.exp },
  expm1: { f: Math.expm1 },
  log: { f: Math.log, from: 0.01 },
  log1p: { f: Math.log1p, from: -0.9 },
  log2: { f: Math.log2, from: 0.01 },
  log10: { f: Math.log10, from: 0.01 },
  sqrt: { f: Math.sqrt, from: 0 },
  rsqrt: { f: (x) => 1 / Math.sqrt(x), from: 0.01 },
  reciprocal: { f: (x) => 1 / x, from: 0.01 },
  square: { f: (x) => x * x },
  sin: { f: Math.sin },
  cos: { f: Math.cos },
  tan: { f: Math.tan, from: -1.2, to: 1.2 },
  tanh: { f: Math.tanh },
  erf: { f: erf, from: -2.5, to: 2.5 },
  abs: { f: Math.abs },
  neg: { f: (x) => -x },
  sign: { f: Math.sign },
  floor: { f: Math.floor },
  ceil: { f: Math.ceil },
  trunc: { f: Math.trunc },
  sigmoid: { f: (x) => 1 / (1 + Math.exp(-x)) },
  relu: { f: (x) => Math.max(x, 0) },
  silu: { f: (x) => x / (1 + Math.exp(-x)) },
  gelu: { f: (x) => (x / 2) * (1 + erf(x * Math.SQRT1_2)), from: -2.5, to: 2.5 },
  geluTanh: {
    f: (x) => (x / 2) * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3))),
  },
  softplus: { f: (x) => Math.log1p(Math.exp(x)) },
};

/** Integers that fit every integer dtype, and their least and largest. */
const INTEGERS: readonly DType[] = [i8, u8, i16, u16, i32, u32, i64, u64];
const wrapped = ({ name, kind, bytes }: DType, value: bigint): number | bigint => {
  const word =
    kind === 'signed' ? BigInt.asIntN(bytes * 8, value) : BigInt.asUintN(bytes * 8, value);
  return name === 'i64' || name === 'u64' ? word : Number(word);
};
const extremes = ({ kind, bytes }: DType): bigint[] =>
  kind === 'signed'
    ? [-(1n << BigInt(bytes * 8 - 1)), (1n << BigInt(bytes * 8 - 1)) - 1n]
    : [0n, (1n << BigInt(bytes * 8)) - 1n];

onDevice('Elementwise maths', (host) => {
  let device: Device;
  beforeAll(() => {
    device = Device.of(host.device);
  });

  const read = async (op: DeviceOp<AnyTensor>): Promise<(number | bigint)[]> =>
    Array.from((await op.andThen((tensor) => tensor.read())) as ArrayLike<number>);
  const list = (
    dtype: DType,
    values: readonly (number | bigint)[],
    shape: readonly number[] = [values.length],
  ): DeviceOp<AnyTensor> =>
    device.tensor(dtype, values as number[], shape as number[]) as unknown as DeviceOp<AnyTensor>;

  someOf(3, test)(Object.keys(FLOATS))('%s of f32', async (name) => {
    const { f, from = -4, to = 4 } = FLOATS[name]!;
    const x = Float32Array.from(range(1025), (i) => from + ((to - from) * i) / 1024);
    const given = await read(of(name)(list(f32, [...x])));
    x.forEach((each, i) => {
      expect(Math.abs((given[i] as number) - f(each)), `${name}(${each})`).toBeLessThanOrEqual(
        1e-6 * Math.max(1, Math.abs(f(each))),
      );
    });
  });

  test('special values', async () => {
    expect(await read(library.relu(device.tensor(f32, [NaN, -Infinity, Infinity, -1])))).toEqual([
      NaN,
      0,
      Infinity,
      0,
    ]);
    expect(
      await read(library.maximum(device.tensor(f32, [NaN, 1]), device.tensor(f32, [1, NaN]))),
    ).toEqual([NaN, NaN]);
    expect(
      await read(library.equal(device.tensor(f32, [NaN, 1]), device.tensor(f32, [NaN, 1]))),
    ).toEqual([0, 1]);
    expect(await read(library.log(device.tensor(f32, [0, -1, 1])))).toEqual([-Infinity, NaN, 0]);
  });

  test.each(SIZES)('%i elements, and views that begin anywhere', async (size) => {
    using x = await device.arange(f32, size + 5);
    expect(await read(library.square(x.slice([0, size]) as never))).toEqual(
      range(size).map((i) => Math.fround(i * i)),
    );
    for (const from of [1, 2, 5]) {
      const view = x.slice([from, from + size]) as unknown as AnyTensor;
      expect(await read(of('add')(view, x.slice([0, size])))).toEqual(
        range(size).map((i) => 2 * i + from),
      );
      expect(await read(of('sub')(view, 1))).toEqual(range(size).map((i) => i + from - 1));
    }
  });

  someOf(2, test)(FLOAT_DTYPES)('floats as $name', async (dtype) => {
    const values = range(77).map((i) => (i - 38) / 16);
    using x = await device.tensor(dtype, values);
    const given = await x.read();
    // The expected value is the exact result, converted to the dtype.
    using expected = await device.tensor(
      dtype,
      [...given].map((each) => Math.fround(each * 3)),
    );
    expect(await read(of('mul')(x, 3))).toEqual([...(await expected.read())]);
    using tripled = (await library.mul(
      x as never,
      library.add(x as never, 0) as never,
    )) as unknown as AnyTensor;
    using squares = await device.tensor(
      dtype,
      [...given].map((each) => each * each),
    );
    expect([...((await tripled.read()) as Float32Array)]).toEqual([...(await squares.read())]);
  });

  someOf(1, test)(INTEGERS)('integers as $name: they wrap', async (dtype) => {
    const [least, most] = extremes(dtype);
    const values = [least!, most!, 1n, 7n, 100n];
    const others = [1n, 1n, 2n, 3n, 100n];
    const [x, y] = [values, others].map((each) => each.map((value) => wrapped(dtype, value)));
    const ops: Record<string, (a: bigint, b: bigint) => bigint> = {
      add: (a, b) => a + b,
      sub: (a, b) => a - b,
      mul: (a, b) => a * b,
      div: (a, b) => a / b,
      rem: (a, b) => a % b,
      minimum: (a, b) => (a < b ? a : b),
      maximum: (a, b) => (a > b ? a : b),
      bitwiseAnd: (a, b) => a & b,
      bitwiseOr: (a, b) => a | b,
      bitwiseXor: (a, b) => a ^ b,
    };
    for (const [name, f] of Object.entries(ops)) {
      expect(await read(of(name)(list(dtype, x!), list(dtype, y!))), name).toEqual(
        values.map((value, i) => wrapped(dtype, f(value, others[i]!))),
      );
    }
    const unary: Record<string, (a: bigint) => bigint> = {
      neg: (a) => -a,
      abs: (a) => (a < 0n ? -a : a),
      square: (a) => a * a,
      bitwiseNot: (a) => ~a,
      relu: (a) => (a < 0n ? 0n : a),
      sign: (a) => (a < 0n ? -1n : a > 0n ? 1n : 0n),
    };
    for (const [name, f] of Object.entries(unary))
      expect(await read(of(name)(list(dtype, x!))), name).toEqual(
        values.map((value) => wrapped(dtype, f(value))),
      );
    const compare: Record<string, (a: bigint, b: bigint) => boolean> = {
      equal: (a, b) => a === b,
      notEqual: (a, b) => a !== b,
      less: (a, b) => a < b,
      lessEqual: (a, b) => a <= b,
      greater: (a, b) => a > b,
      greaterEqual: (a, b) => a >= b,
    };
    for (const [name, f] of Object.entries(compare))
      expect(await read(of(name)(list(dtype, x!), list(dtype, y!))), name).toEqual(
        values.map((value, i) => Number(f(value, others[i]!))),
      );
    expect(await read(of('add')(list(dtype, x!), wrapped(dtype, 1n)))).toEqual(
      values.map((value) => wrapped(dtype, value + 1n)),
    );
  });

  test('functions of two floats', async () => {
    const x = range(99).map((i) => (i - 49) / 4);
    const y = range(99).map((i) => ((i * 7) % 31) / 4 + 0.25);
    const ops: Record<string, (a: number, b: number) => number> = {
      add: (a, b) => a + b,
      sub: (a, b) => a - b,
      mul: (a, b) => a * b,
      div: (a, b) => a / b,
      rem: (a, b) => a % b,
      atan2: Math.atan2,
      minimum: Math.min,
      maximum: Math.max,
    };
    for (const [name, f] of Object.entries(ops)) {
      const given = await read(of(name)(list(f32, x), list(f32, y)));
      x.forEach((each, i) => {
        expect(
          Math.abs((given[i] as number) - f(each, y[i]!)),
          `${name}(${each}, ${y[i]})`,
        ).toBeLessThanOrEqual(1e-6 * Math.max(1, Math.abs(f(each, y[i]!))));
      });
    }
    const powers = await read(of('pow')(list(f32, y), 1.5));
    y.forEach((each, i) => {
      expect(powers[i] as number).toBeCloseTo(each ** 1.5, 4);
    });
    expect(await read(of('div')(1, list(f32, [2, 4, 8])))).toEqual([0.5, 0.25, 0.125]);
  });

  test('truth values', async () => {
    const x = device.tensor(bool, [0, 0, 1, 1]);
    const y = device.tensor(bool, [0, 1, 0, 1]);
    expect(await read(library.logicalAnd(x, y))).toEqual([0, 0, 0, 1]);
    expect(await read(library.logicalOr(x, y))).toEqual([0, 1, 1, 1]);
    expect(await read(library.logicalXor(x, y))).toEqual([0, 1, 1, 0]);
    expect(await read(library.logicalNot(x))).toEqual([1, 1, 0, 0]);
    expect(await read(library.logicalOr(x, true))).toEqual([1, 1, 1, 1]);
  });

  test('where', async () => {
    const condition = device.tensor(bool, [1, 0, 1]);
    expect(
      await read(
        library.where(condition, device.tensor(i32, [1, 2, 3]), device.tensor(i32, [-1, -2, -3])),
      ),
    ).toEqual([1, -2, 3]);
    expect(await read(library.where(condition, device.tensor(f16, [1, 2, 3]), 0.5))).toEqual([
      1, 0.5, 3,
    ]);
    expect(await read(library.where(condition, 5n, device.tensor(i64, [1n, 2n, 3n])))).toEqual([
      5n,
      2n,
      5n,
    ]);
    expect(
      await read(
        library.where(
          device.tensor(bool, [1, 0], [2, 1]),
          device.tensor(u8, [1, 2, 3]),
          device.tensor(u8, [9], [1, 1]),
        ),
      ),
    ).toEqual([1, 2, 3, 9, 9, 9]);
    expect(await read(library.where(condition, condition, false))).toEqual([1, 0, 1]);
  });

  describe('broadcasting and views', () => {
    const shapes: [number[], number[], number[]][] = [
      [[4, 5], [5], [4, 5]],
      [[4, 1], [5], [4, 5]],
      [
        [3, 1, 5],
        [4, 1],
        [3, 4, 5],
      ],
      [
        [2, 3, 4, 5],
        [3, 1, 5],
        [2, 3, 4, 5],
      ],
      [[1], [7], [7]],
      [[], [3, 3], [3, 3]],
      [
        [2, 1, 3, 1, 2],
        [1, 4, 1, 5, 1],
        [2, 4, 3, 5, 2],
      ],
      [
        [0, 3],
        [1, 3],
        [0, 3],
      ],
      [
        [33, 31],
        [33, 1],
        [33, 31],
      ],
      [[1, 1], [1], [1, 1]],
    ];
    test.each(shapes)('%j with %j', async (a, b, shape) => {
      const size = (extents: number[]): number =>
        extents.reduce((product, extent) => product * extent, 1);
      const index = (at: number, extents: number[]): number => {
        // The memory of element `at`, from the last axis on.
        let [rest, element, stride] = [at, 0, 1];
        for (let axis = shape.length - 1; axis >= 0; axis--) {
          const position = rest % shape[axis]!;
          rest = Math.floor(rest / shape[axis]!);
          const extent = extents[axis - (shape.length - extents.length)] ?? 1;
          if (extent > 1) element += position * stride;
          stride *= extent;
        }
        return element;
      };
      using x = await device.tensor(f32, range(size(a)), a);
      using y = await device.tensor(
        f32,
        range(size(b)).map((i) => i * 1000),
        b,
      );
      using sum = await library.add(x, y);
      expect(sum.shape).toEqual(shape);
      expect([...(await sum.read())]).toEqual(
        range(size(shape)).map((i) => index(i, a) + 1000 * index(i, b)),
      );
    });

    test('transposed, reversed and stretched', async () => {
      using x = await device.tensor(f32, range(12), [3, 4]);
      expect(await read(library.neg(x.transpose()))).toEqual(
        range(12).map((i) => -((i % 3) * 4 + Math.floor(i / 3))),
      );
      expect(
        await read(
          library.add(
            x.slice([null, null, -1], [1, 4, 2]) as never,
            x.slice([0, 3], [0, 2]) as never,
          ),
        ),
      ).toEqual([9, 12, 9, 12, 9, 12]);
      expect(await read(library.mul(x.slice(0).broadcastTo([2, 4]), 2))).toEqual([
        0, 2, 4, 6, 0, 2, 4, 6,
      ]);
      expect(await read(library.mul(x.transpose(), library.square(x.transpose())))).toEqual(
        range(12).map((i) => ((i % 3) * 4 + Math.floor(i / 3)) ** 3),
      );
    });
  });

  test('operands that operations made for the call are closed, and no others', async () => {
    const { add, mul, sub } = library;
    using x = await device.tensor(f32, [1, 2, 3]);
    const seen: { isClosed: boolean }[] = [];
    const shared = mul(x, 10).shared();
    using kept = await shared;
    const live = async (): Promise<number> => (await device.stats()).live.buffers;
    const before = await live();
    const op = add(add(mul(x, 2), sub(x, 1)), mul(shared, device.ones(f32, [3])).label('named'));
    for (let i = 0; i < 3; i++) {
      const sum = await op;
      expect([...(await sum.read())]).toEqual([12, 25, 38]);
      expect(await live()).toBe(before + 1);
      sum.close();
    }
    // Nothing is left where an operand has another shape, either.
    await expect(add(mul(x, 2), device.zeros(f32, [2]))).rejects.toThrow(CudaArgumentError);
    expect(await live()).toBe(before);
    using three = await add(
      mul(x, 3).tap((tensor) => seen.push(tensor)),
      device.value(x),
    );
    expect([seen[0]!.isClosed, kept.isClosed, x.isClosed]).toEqual([true, false, false]);
    expect([...(await three.read())]).toEqual([4, 8, 12]);
  });

  test('chains are one operation, and can be recorded', async () => {
    using x = await device.arange(f32, 1000);
    const op = library.sqrt(library.add(library.square(x), 1)).andThen((y) => library.sub(y, x));
    const once = await read(op as unknown as DeviceOp<AnyTensor>);
    expect(
      once.every((value, i) => Math.abs((value as number) - (Math.hypot(i, 1) - i)) < 1e-4),
    ).toBe(true);
    const graph = await library.add(library.mul(x, 3), 1).capture();
    const value = graph.output as unknown as AnyTensor;
    await graph.replay();
    expect([...((await value.read()) as Float32Array)]).toEqual(range(1000).map((i) => 3 * i + 1));
    await graph.close();
    expect(
      await read(
        zip(library.neg(x), library.abs(x)).andThen(([a, b]) => library.add(a, b)) as never,
      ),
    ).toEqual(range(1000).map(() => 0));
  });

  test('wrong arguments are refused at the call', async () => {
    using x = await device.zeros(f32, [2, 3]);
    using whole = await device.zeros(i32, [2, 3]);
    const message = async (call: () => unknown): Promise<string> => {
      const error = await failure(call);
      expect(error).toBeInstanceOf(CudaArgumentError);
      return error.message;
    };
    expect(await message(() => of('add')(x, whole))).toContain(
      'y: expected a Tensor of a dtype that has a common one with f32, for add(…), ' +
        'got Tensor<i32, [2, 3]>',
    );
    expect(await message(() => of('exp')(whole))).toBe(
      `x: expected a Tensor of ${FLOAT_DTYPES.map(({ name }) => name).join(', ')}, for exp(…), ` +
        "got 'i32'. Convert it with convert(f32).",
    );
    expect(await message(() => of('add')(whole, 0.5))).toContain(
      'y: expected a whole number for i32',
    );
    expect(await message(() => of('add')(x, x.slice([0, 2], [0, 2])))).toBe(
      'add: shapes that do not broadcast: x: [2, 3], y: [2, 2]. From the end each extent has ' +
        'to be the same, or 1.',
    );
    expect(await message(() => of('add')(1, 2))).toContain(
      'x: expected a Tensor, for add(…), got 1.',
    );
    expect(await message(() => of('neg')(new Float32Array(2)))).toContain(
      'Copy it to the device first',
    );
    expect(await message(() => of('where')(x, x))).toContain(
      'condition: expected a Tensor of bool',
    );
    expect(
      (await failure(() => of('add')(device.zeros(f32, [2]), device.zeros(f32, [3])))).message,
    ).toContain('do not broadcast');
    const more = of as unknown as (name: string) => (...args: unknown[]) => unknown;
    expect(await message(() => more('add')(x, 1, { out: x }))).toBe(
      'options: expected nothing, since add(…) takes no options, got { out: Tensor<f32, [2, ' +
        `3]> on ${device.kind}:0 }.`,
    );
    expect(await message(() => more('exp')(x, { axis: 0 }))).toContain('exp(…) takes no options');
    expect(await message(() => more('where')(x, x, x, true))).toContain(
      'where(…) takes no options',
    );
    for (const op of [x, x].map(library.exp as never))
      expect(
        (await (op as unknown as DeviceOp<AnyTensor>).andThen((tensor) => tensor.read()))[0],
      ).toBe(1);
    x.close();
    expect((await failure(() => of('neg')(x))).code).toBe('ERR_CUDA_DISPOSED');
  });

  test('types', () => {
    const declared = (): void => {
      expectTypeOf(library.exp(device.zeros(f16, [2, 3]))).branded.toEqualTypeOf<
        DeviceOp<import('async-cuda').Tensor<'f16', [2, 3]>>
      >();
      expectTypeOf(
        library.less(device.zeros(i32, [2, 1]), device.zeros(i32, [3])),
      ).branded.toEqualTypeOf<DeviceOp<import('async-cuda').Tensor<'bool', [2, 3]>>>();
      // @ts-expect-error: an integer has no exponential
      library.exp(device.zeros(i32, [2]));
      // @ts-expect-error: dtypes that differ
      library.add(device.zeros(i32, [2]), device.zeros(f32, [2]));
    };
    expect(declared).toBeTypeOf('function');
  });
});
