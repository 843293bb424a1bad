/** Sorting, and the first elements in order, compared with JavaScript. */
import {
  CudaArgumentError,
  DTYPES,
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
import type { DType } from 'async-cuda';
import type { KernelTensor } from 'async-cuda/tensor';
import { argSort, sort, topK } from 'async-cuda/library';
import * as fc from '../fast-check.js';
import { beforeAll, expect, test } from 'vitest';

import { allModes, failure, onDevice, range } from '../core/test-device.js';
import { someOf } from '../random-runs.js';

type Value = number | bigint;

/** Positions in order, as they are documented: stable, -0 as +0, NaN last. */
function order(values: readonly Value[], descending = false): number[] {
  const isNaN = (value: Value): boolean => Number.isNaN(value);
  return values
    .map((_, i) => i)
    .sort((a, b) => {
      const [left, right] = [values[a]!, values[b]!];
      if (isNaN(left) || isNaN(right)) return Number(isNaN(left)) - Number(isNaN(right)) || a - b;
      const before = left < right ? -1 : left > right ? 1 : 0;
      return (descending ? -before : before) || a - b;
    });
}

/** Values of a dtype, some of which occur more than once, with its least and largest. */
function valuesOf({ name, kind, bytes }: DType, size: number): Value[] {
  const noise = (i: number): number => Math.imul(i + 7, 2654435761) >>> 0;
  if (kind === 'bool') return range(size).map((i) => noise(i) & 1);
  if (kind === 'float') {
    const edges = [NaN, -0, 0, Infinity, -Infinity, 1, -1];
    return range(size).map((i) =>
      i % 5 === 0 ? edges[noise(i) % (name === 'f8e4m3' ? 3 : 7)]! : ((noise(i) >>> 8) % 31) - 15,
    );
  }
  const bits = BigInt(bytes * 8);
  const wrap = (value: bigint): bigint =>
    kind === 'signed' ? BigInt.asIntN(Number(bits), value) : BigInt.asUintN(Number(bits), value);
  const whole = range(size).map((i) =>
    wrap(i % 3 === 0 ? BigInt(noise(i) % 5) - 2n : BigInt(noise(i)) * 0x9e3779b97f4a7c15n),
  );
  return bytes === 8 ? whole : whole.map(Number);
}

onDevice(
  'Sorting',
  (host) => {
    let device: Device;
    beforeAll(() => {
      device = Device.of(host.device);
    });

    const message = async (call: () => unknown): Promise<string> => {
      const error = await failure(call);
      expect(error).toBeInstanceOf(CudaArgumentError);
      return error.message;
    };
    const plain = async (tensor: KernelTensor): Promise<Value[]> =>
      Array.from((await tensor.read()) as ArrayLike<Value>);

    async function check(
      dtype: DType,
      values: readonly Value[],
      descending: boolean,
    ): Promise<void> {
      using x = (await device.tensor(dtype, values as number[])) as unknown as KernelTensor;
      const given = await plain(x);
      const expected = order(given, descending);
      using sorted = await sort(x, { descending });
      using positions = await argSort(x, { descending });
      const where = `${dtype.name}[${values.length}]${descending ? ' descending' : ''}`;
      expect(await plain(positions), where).toEqual(expected);
      // toEqual distinguishes -0 from +0.
      expect(await plain(sorted), where).toEqual(expected.map((at) => given[at]!));
    }

    someOf(1, test)(Object.values(DTYPES).filter(({ kind }) => kind !== 'complex') as DType[])(
      'short and long rows of $name',
      async (dtype) => {
        await check(dtype, valuesOf(dtype, 300), false);
        await check(dtype, valuesOf(dtype, 5000), true);
      },
      120_000,
    );

    someOf(
      1,
      test,
    )([
      0, 1, 2, 31, 32, 33, 255, 257, 1023, 1024, 1025, 2047, 2048, 2049, 4095, 4096, 4097, 8193,
      12_289,
    ])(
      '%i elements',
      async (size) => {
        await check(i32, valuesOf(i32, size), false);
        await check(f32, valuesOf(f32, size), true);
      },
      120_000,
    );

    test('whatever the values are', { tags: 'random' }, async () => {
      await fc.assert(
        fc.asyncProperty(
          fc.array(fc.float({ noDefaultInfinity: false }), { maxLength: 2500, size: 'max' }),
          fc.boolean(),
          (values, descending) => check(f32, values, descending),
        ),
        { numRuns: 6 },
      );
    });

    test('whatever the values of 64 bits are', { tags: 'thorough' }, async () => {
      await fc.assert(
        fc.asyncProperty(
          fc.array(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), {
            maxLength: 2500,
            size: 'max',
          }),
          (values) => check(i64, values, false),
        ),
        { numRuns: 4 },
      );
    });

    test('equal keys, and keys in order', { tags: 'thorough' }, async () => {
      await check(u32, new Array<number>(4500).fill(7), false);
      await check(u32, range(4500), true);
      await check(
        u32,
        range(4500).map((i) => (i % 2 === 0 ? 0 : 0xffffffff)),
        false,
      );
      await check(
        u64,
        range(5000).map((i) => BigInt(i % 3) << 56n),
        false,
      );
    });

    test('rows, other axes, views', { tags: 'thorough' }, async () => {
      for (const [rows, count] of [
        [3000, 3],
        [300, 17],
        [5, 2048],
        [3, 2500],
        [2, 9000],
      ] as const) {
        const values = valuesOf(i16, rows * count) as number[];
        using x = await device.tensor(i16, values, [rows, count]);
        using sorted = await sort(x);
        expect(sorted.shape).toEqual([rows, count]);
        const expected = range(rows).flatMap((row) =>
          values.slice(row * count, (row + 1) * count).sort((a, b) => a - b),
        );
        expect(await plain(sorted)).toEqual(expected);
      }
      const values = valuesOf(f32, 6 * 5 * 4) as number[];
      using cube = await device.tensor(f32, values, [6, 5, 4]);
      for (const axis of [0, 1, -1]) {
        using positions = await argSort(cube, { axis });
        const [outer, count, inner] = [
          [1, 6, 20],
          [6, 5, 4],
          [30, 4, 1],
        ][axis === -1 ? 2 : axis]! as [number, number, number];
        const found = await plain(positions);
        for (let o = 0; o < outer; o++) {
          for (let i = 0; i < inner; i++)
            expect(range(count).map((k) => found[(o * count + k) * inner + i])).toEqual(
              order(range(count).map((k) => values[(o * count + k) * inner + i]!)),
            );
        }
      }
      using column = await sort(cube.slice(null, null, [1, 2]).transpose(), { axis: 0 });
      expect(column.size).toBe(30);
      using parts = await device.tensor(u8, valuesOf(u8, 8001) as number[]);
      using sorted = await sort(parts.slice([1, 8001, 2]));
      expect(await plain(sorted)).toEqual(
        (valuesOf(u8, 8001) as number[]).filter((_, i) => i % 2 === 1).sort((a, b) => a - b),
      );
    });

    someOf(
      2,
      test,
    )([
      [1, 1],
      [100, 10],
      [2048, 2048],
      [2049, 1],
      [9000, 5],
      [30_000, 256],
      [5000, 257],
      [5000, 4000],
      [5000, 5000],
      [70_000, 3],
    ])(
      'the first of %i: %i',
      async (size, k) => {
        for (const largest of [true, false]) {
          const values = valuesOf(f32, size) as number[];
          using x = await device.tensor(f32, values);
          const { values: found, indices } = await topK(x, k, { largest });
          const expected = order(values, largest).slice(0, k);
          expect(await plain(indices)).toEqual(expected);
          expect(await plain(found)).toEqual(expected.map((at) => values[at]!));
          found.close();
          indices.close();
        }
      },
      120_000,
    );

    test('the first of rows and of other axes', { tags: 'thorough' }, async () => {
      for (const dtype of [i8, u16, f16, bf16, f64, i64, bool] as DType[]) {
        const values = valuesOf(dtype, 3 * 2600 * 2);
        using x = (await device.tensor(
          dtype,
          values as number[],
          [3, 2600, 2],
        )) as unknown as KernelTensor;
        const given = await plain(x);
        using both = await topK(x, 7, { axis: 1 });
        expect(both.values.shape).toEqual([3, 7, 2]);
        const [found, at] = [await plain(both.values as KernelTensor), await plain(both.indices)];
        for (const [row, inner] of [
          [0, 0],
          [1, 1],
          [2, 0],
        ] as const) {
          const column = range(2600).map((i) => given[(row * 2600 + i) * 2 + inner]!);
          const expected = order(column, true).slice(0, 7);
          expect(range(7).map((i) => at[(row * 7 + i) * 2 + inner])).toEqual(expected);
          expect(range(7).map((i) => found[(row * 7 + i) * 2 + inner])).toEqual(
            expected.map((each) => column[each]!),
          );
        }
      }
      using none = await topK(device.zeros(f32, [0, 4]), 2);
      expect(none.indices.shape).toEqual([0, 2]);
    });

    test('wrong arguments are refused', async () => {
      using x = await device.zeros(f32, [3, 4]);
      expect(await message(() => sort(x, { axis: 2 }))).toContain('options.axis');
      expect(await message(() => sort(x, { descending: 1 as never }))).toContain(
        'options.descending',
      );
      expect(await message(() => argSort([1] as never))).toContain('x: expected a Tensor');
      expect(await message(() => topK(x, 5))).toContain('k: expected at most 4');
      expect(await message(() => topK(x, -1))).toContain('k');
      expect(await message(() => sort(x.slice([0, 1], [0, 1]).reshape([]) as never))).toContain(
        'options.axis',
      );
    }, 120_000);
  },
  allModes.slice(0, 1),
); // The kernels are the same in each mode, and there are many: one mode is enough.
