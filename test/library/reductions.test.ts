/** Reductions along axes, compared with JavaScript. */
import {
  CudaArgumentError,
  Device,
  bf16,
  bool,
  f16,
  f32,
  f64,
  i16,
  i32,
  i64,
  i8,
  u16,
  u32,
  u64,
  u8,
} from 'async-cuda';
import type { AnyTensor, DType, DeviceOp } from 'async-cuda';
import * as library from 'async-cuda/library';
import { beforeAll, expect, test } from 'vitest';

import { failure, onDevice, range } from '../core/test-device.js';
import { someOf } from '../random-runs.js';

type AnyReduction = (
  x: unknown,
  options?: { axis?: number | readonly number[]; keepDims?: boolean },
) => DeviceOp<AnyTensor>;
const of = (name: string): AnyReduction =>
  (library as unknown as Record<string, AnyReduction>)[name]!;

const REDUCTIONS: Readonly<Record<string, (values: readonly number[]) => number>> = {
  sum: (values) => values.reduce((a, b) => a + b, 0),
  min: (values) => Math.min(...values),
  max: (values) => Math.max(...values),
  any: (values) => Number(values.some((value) => value !== 0)),
  all: (values) => Number(values.every((value) => value !== 0)),
  argmax: (values) => values.indexOf(Math.max(...values)),
  argmin: (values) => values.indexOf(Math.min(...values)),
};

/** Small whole numbers, some of them equal: sums are exact, and extremes occur more than once. */
const numbers = (size: number): number[] => range(size).map((i) => ((i * 7919) % 101) - 50);

/** What a reduction gives, by the definition. */
function reduced(
  f: (values: readonly number[]) => number,
  values: readonly number[],
  shape: readonly number[],
  axes: readonly number[],
): number[] {
  const groups = new Map<number, number[]>();
  const kept = shape.map((_, axis) => axis).filter((axis) => !axes.includes(axis));
  const count = kept.reduce((product, axis) => product * shape[axis]!, 1);
  for (let group = 0; group < count; group++) groups.set(group, []);
  values.forEach((value, at) => {
    const index = new Array<number>(shape.length);
    let rest = at;
    for (let axis = shape.length - 1; axis >= 0; axis--) {
      index[axis] = rest % shape[axis]!;
      rest = Math.floor(rest / shape[axis]!);
    }
    groups.get(kept.reduce((group, axis) => group * shape[axis]! + index[axis]!, 0))!.push(value);
  });
  return [...groups.values()].map(f);
}

onDevice('Reductions', (host) => {
  let device: Device;
  beforeAll(() => {
    device = Device.of(host.device);
  });

  const read = async (op: DeviceOp<AnyTensor>): Promise<(number | bigint)[]> =>
    Array.from((await op.andThen((tensor) => tensor.read())) as ArrayLike<number>);
  const plain = async (op: DeviceOp<AnyTensor>): Promise<number[]> => (await read(op)).map(Number);

  someOf(2, test)([1, 2, 31, 33, 255, 257, 1000, 1025, 8193, 100_003])(
    '%i elements',
    async (size) => {
      const values = numbers(size);
      using x = await device.tensor(i32, values);
      using floats = await device.tensor(f32, values);
      for (const [name, f] of Object.entries(REDUCTIONS)) {
        expect(await plain(of(name)(x)), name).toEqual([f(values)]);
        expect(await plain(of(name)(floats)), name).toEqual([f(values)]);
      }
      expect((await plain(library.mean(floats) as never))[0]).toBeCloseTo(
        REDUCTIONS['sum']!(values) / size,
        4,
      );
    },
  );

  const cases: [number[], number | number[]][] = [
    [[3, 5], 0],
    [[3, 5], 1],
    [[3, 5], -1],
    [[33, 31], 0],
    [[33, 31], 1],
    [[4, 5, 6], 0],
    [[4, 5, 6], 1],
    [[4, 5, 6], 2],
    [
      [4, 5, 6],
      [0, 2],
    ],
    [
      [4, 5, 6],
      [0, 1],
    ],
    [
      [4, 5, 6],
      [1, 2],
    ],
    [
      [2, 3, 4, 5],
      [1, 3],
    ],
    [
      [2, 3, 4, 5],
      [0, 2],
    ],
    [[1000, 3], 0],
    [[3, 1000], 1],
    [[2, 9000], 1],
    [[9000, 2], 0],
    [[1, 7, 1], 1],
    [[5], []],
    [[2, 700, 3], 1],
  ];
  someOf(3, test)(cases)('of %j along %j', async (shape, axis) => {
    const values = numbers(shape.reduce((product, extent) => product * extent, 1));
    using x = await device.tensor(f32, values, shape);
    const axes = (typeof axis === 'number' ? [axis] : axis).map(
      (each) => (each + shape.length) % shape.length,
    );
    for (const [name, f] of Object.entries(REDUCTIONS)) {
      if (name.startsWith('arg') && typeof axis !== 'number') continue;
      using given = await of(name)(x, { axis });
      expect(given.shape).toEqual(shape.filter((_, at) => !axes.includes(at)));
      expect(Array.from((await given.read()) as ArrayLike<number>, Number), name).toEqual(
        reduced(f, values, shape, axes),
      );
    }
    using kept = await of('sum')(x, { axis, keepDims: true });
    expect(kept.shape).toEqual(shape.map((extent, at) => (axes.includes(at) ? 1 : extent)));
  });

  test('of views', async () => {
    const values = numbers(60);
    using x = await device.tensor(f32, values, [3, 4, 5]);
    const turned = x.permute([2, 0, 1]);
    const order = range(60).map(
      (i) => values[(Math.floor(i / 4) % 3) * 20 + (i % 4) * 5 + Math.floor(i / 12)]!,
    );
    for (const [name, f] of Object.entries(REDUCTIONS)) {
      expect(await plain(of(name)(turned)), name).toEqual([f(order)]);
      for (const axis of [0, 1, 2])
        expect(await plain(of(name)(turned, { axis })), `${name} ${axis}`).toEqual(
          reduced(f, order, [5, 3, 4], [axis]),
        );
    }
    expect(
      await plain(library.sum(x.slice([null, null, -1], [1, 3]) as never, { axis: 1 }) as never),
    ).toEqual(
      reduced(
        REDUCTIONS['sum']!,
        [40, 20, 0].flatMap((from) => values.slice(from + 5, from + 15)),
        [3, 2, 5],
        [1],
      ),
    );
    expect(await plain(of('sum')(x.slice(0, 0, 0).broadcastTo([1000])))).toEqual([
      1000 * values[0]!,
    ]);
  });

  // Fifty kernels are compiled here.
  test('dtypes of sums and products', async () => {
    const given: [DType, string][] = [
      [i8, 'i64'],
      [i16, 'i64'],
      [i32, 'i64'],
      [i64, 'i64'],
      [u8, 'u64'],
      [u16, 'u64'],
      [u32, 'u64'],
      [u64, 'u64'],
      [f16, 'f16'],
      [bf16, 'bf16'],
      [f32, 'f32'],
      [f64, 'f64'],
    ];
    for (const [dtype, expected] of given) {
      using x = await device.tensor(
        dtype,
        [100, 100, 3, 5].map((value) =>
          dtype.name.endsWith('64') && dtype.kind !== 'float' ? BigInt(value) : value,
        ) as number[],
      );
      for (const [name, value] of [
        ['sum', 208],
        ['prod', 150_000],
        ['max', 100],
        ['min', 3],
      ] as const) {
        using result = await of(name)(x);
        expect(result.dtype.name, `${name} of ${dtype.name}`).toBe(
          name === 'max' || name === 'min' ? dtype.name : expected,
        );
        const rounded =
          dtype === f16 && name === 'prod'
            ? Infinity
            : dtype === bf16 && name === 'prod'
              ? 149504
              : value;
        expect(Number((await result.read())[0])).toBe(rounded);
      }
    }
    // Beyond what the elements' own type holds.
    expect(await read(library.sum(device.full(u32, [5], 2 ** 32 - 1)) as never)).toEqual([
      5n * (2n ** 32n - 1n),
    ]);
    expect(await read(library.sum(device.tensor(bool, [1, 0, 1, 1])) as never)).toEqual([3n]);
    // f16 is summed in f32: the sum of 4096 ones is not 2048.
    expect(await read(library.sum(device.ones(f16, [4096])) as never)).toEqual([4096]);
    expect(await read(library.mean(device.full(f16, [3000], 60000)) as never)).toEqual([60000]);
    expect(await read(library.any(device.tensor(bool, [0, 0, 1])) as never)).toEqual([1]);
    expect(await read(library.all(device.tensor(bool, [1, 0, 1])) as never)).toEqual([0]);
    for (const dtype of [i64, u64]) {
      const values = dtype === i64 ? [-(2n ** 63n), 5n, 2n ** 63n - 1n] : [5n, 2n ** 64n - 1n, 0n];
      using x = await device.tensor(dtype as typeof i64, values);
      expect(await read(library.max(x) as never)).toEqual([
        dtype === i64 ? 2n ** 63n - 1n : 2n ** 64n - 1n,
      ]);
      expect(await read(library.min(x) as never)).toEqual([dtype === i64 ? -(2n ** 63n) : 0n]);
      expect(await read(library.argmax(x) as never)).toEqual([dtype === i64 ? 2 : 1]);
    }
  }, 120_000);

  test('NaN, infinities, and no elements', async () => {
    using x = await device.tensor(f32, [1, NaN, Infinity, NaN]);
    expect(await read(library.max(x) as never)).toEqual([NaN]);
    expect(await read(library.argmax(x) as never)).toEqual([1]);
    expect(await read(library.argmin(x) as never)).toEqual([1]);
    expect(await read(library.max(device.full(f32, [70], -Infinity)) as never)).toEqual([
      -Infinity,
    ]);
    using none = await device.zeros(f32, [2, 0]);
    expect(await read(library.sum(none) as never)).toEqual([0]);
    expect(await read(library.prod(none) as never)).toEqual([1]);
    expect(await read(library.mean(none) as never)).toEqual([NaN]);
    expect(await read(library.any(none) as never)).toEqual([0]);
    expect(await read(library.all(none, { axis: 1 }) as never)).toEqual([1, 1]);
    expect(await read(library.sum(none, { axis: 0 }) as never)).toEqual([]);
    expect(await read(library.max(none, { axis: 0 }) as never)).toEqual([]);
    for (const name of ['max', 'min', 'argmax', 'argmin'])
      expect((await failure(() => of(name)(none))).message).toContain(
        'of no elements has no value',
      );
    expect(await read(library.sum(device.full(f32, [], 3)) as never)).toEqual([3]);
  });

  test('the order of additions is fixed: each run has the same bits', async () => {
    using x = await device.rand(f32, [300_001], { seed: 5, from: -1, to: 1 });
    const [first] = await read(library.sum(x) as never);
    for (let time = 0; time < 3; time++)
      expect(await read(library.sum(x) as never)).toEqual([first]);
    const values = await x.read();
    expect(first).toBeCloseTo(
      values.reduce((a, b) => a + b, 0),
      2,
    );
  });

  test('wrong arguments are refused at the call', async () => {
    using x = await device.zeros(i32, [2, 3]);
    const message = async (call: () => unknown): Promise<string> => {
      const error = await failure(call);
      expect(error).toBeInstanceOf(CudaArgumentError);
      return error.message;
    };
    expect(await message(() => of('sum')(x, { axis: 2 }))).toBe(
      'options.axis: expected an axis from -2 to 1, got 2.',
    );
    expect(await message(() => of('sum')(x, { axis: [0, -2] }))).toContain(
      'axes that are named once',
    );
    expect(await message(() => of('sum')(x, { axes: 1 } as never))).toContain(
      "Did you mean 'axis'?",
    );
    expect(await message(() => of('mean')(x))).toContain('Convert it with convert(f32).');
    expect(await message(() => of('argmax')(x, { axis: [0] }))).toContain('one axis');
    expect(await message(() => of('sum')([1, 2]))).toContain('Copy it to the device first');
  });
});

// Views of one element and a few, so that nothing is allocated: ten seconds each on two cores.
onDevice(
  'Reductions of 2^31 elements and more',
  (host) => {
    let device: Device;
    beforeAll(() => {
      device = Device.of(host.device);
    });

    test('of all of them', { tags: 'thorough', timeout: 300_000 }, async () => {
      const count = 2 ** 31 + 11;
      using three = await device.full(u8, [1], 3);
      expect(await library.sum(three.broadcastTo([count])).andThen((y) => y.item())).toBe(
        3n * BigInt(count),
      );
      using half = await device.full(f32, [1], 0.5);
      expect(await library.mean(half.broadcastTo([count])).andThen((y) => y.item())).toBe(0.5);
    });

    test(
      'along an axis of 2^31 elements and more',
      { tags: 'thorough', timeout: 300_000 },
      async () => {
        using row = await device.arange(u8, 2);
        const length = 2 ** 31 + 3;
        expect([
          ...(await library
            .sum(row.reshape([2, 1]).broadcastTo([2, length]), { axis: 1 })
            .andThen((y) => y.read())),
        ]).toEqual([0n, BigInt(length)]);
      },
    );

    test('positions and counts that their dtypes do not hold are refused', async () => {
      using one = await device.ones(u8, [1]);
      expect((await failure(() => library.argmax(one.broadcastTo([2 ** 31])))).message).toContain(
        'fewer than 2^31 elements along the axis',
      );
      expect(
        (await failure(() => library.histogram(one.broadcastTo([2 ** 32]), 4, { from: 0, to: 4 })))
          .message,
      ).toContain('fewer than 2^32 elements');
    });
  },
  ['worker'],
);
