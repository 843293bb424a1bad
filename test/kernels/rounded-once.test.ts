/**
 * Doubles and whole numbers that become narrow floats are rounded once on every path. The reference
 * compares with the exact middle of two neighbours, which a double always holds.
 */
import {
  DTYPES,
  Device,
  bf16,
  elementKernel,
  f16,
  f32,
  f64,
  i32,
  i64,
  input,
  kernel,
  output,
  struct,
  tileKernel,
  u32,
  u64,
} from 'async-cuda';
import type { DType } from 'async-cuda';
import * as fc from '../fast-check.js';
import { beforeAll, describe, expect, test } from 'vitest';

import type { KernelDTypeName } from '../../src/ground/dtype.js';
import type { NarrowName } from '../../src/ground/narrow-floats.js';
import { onDevice } from '../core/test-device.js';
import { someOf } from '../random-runs.js';

type Narrow = NarrowName & KernelDTypeName;
type Exact = number | bigint;

interface Format {
  readonly exponentBits: number;
  readonly fractionBits: number;
  /** How many numbers are finite and not negative. */
  readonly count: number;
}

const FORMATS: Readonly<Record<Narrow, Format>> = {
  f16: { exponentBits: 5, fractionBits: 10, count: 0x7c00 },
  bf16: { exponentBits: 8, fractionBits: 7, count: 0x7f80 },
  f8e4m3: { exponentBits: 4, fractionBits: 3, count: 0x7f },
  f8e5m2: { exponentBits: 5, fractionBits: 2, count: 0x7c },
};

/** The finite numbers that are not negative, in their order. */
const NUMBERS = Object.fromEntries(
  Object.entries(FORMATS).map(([name, { exponentBits, fractionBits, count }]) => {
    const bias = 2 ** (exponentBits - 1) - 1;
    return [
      name,
      Array.from({ length: count }, (_, code) => {
        const exponent = code >> fractionBits;
        const fraction = code % 2 ** fractionBits;
        return exponent === 0
          ? fraction * 2 ** (1 - bias - fractionBits)
          : (2 ** fractionBits + fraction) * 2 ** (exponent - bias - fractionBits);
      }),
    ];
  }),
) as unknown as Record<Narrow, readonly number[]>;

/**
 * The nearest number of the format, of two the even one. For numbers between the format's finite
 * ones.
 */
function nearest(name: Narrow, value: Exact): number {
  const numbers = NUMBERS[name];
  const size = value < 0 ? -value : value;
  let [low, high] = [0, numbers.length - 1];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (numbers[middle]! <= size) low = middle;
    else high = middle;
  }
  const tie = (numbers[low]! + numbers[high]!) / 2;
  const chosen = size < tie || (!(size > tie) && low % 2 === 0) ? low : high;
  return value < 0 || Object.is(value, -0) ? -numbers[chosen]! : numbers[chosen]!;
}

/**
 * Numbers below the largest: at, just above and just below the middles of neighbours, where
 * rounding twice shows, and random ones.
 */
function doubles(name: Narrow): fc.Arbitrary<number[]> {
  const numbers = NUMBERS[name];
  const one = fc
    .tuple(
      fc.nat(numbers.length - 8),
      fc.constantFrom(-1, 0, 1),
      fc.integer({ min: 10, max: 52 }),
      fc.boolean(),
    )
    .map(([at, side, distance, isNegative]) => {
      const value = ((numbers[at]! + numbers[at + 1]!) / 2) * (1 + side * 2 ** -distance);
      return isNegative ? -value : value;
    });
  return fc.array(one, { minLength: 64, maxLength: 64 });
}

/** The same for integers of so many bits. */
function integers(name: Narrow, bits: number, isSigned: boolean): fc.Arbitrary<bigint[]> {
  const most = Math.min(NUMBERS[name].at(-1)!, 2 ** (isSigned ? bits - 1 : bits));
  const ties = NUMBERS[name]
    .slice(0, -1)
    .map((low, at) => (low + NUMBERS[name][at + 1]!) / 2)
    .filter((tie) => Number.isInteger(tie) && tie < most);
  const one = fc
    .tuple(fc.nat(Math.max(0, ties.length - 1)), fc.bigInt(-2n, 2n), fc.boolean())
    .map(([at, by, isNegative]) => {
      const value = BigInt(ties[at] ?? 1) + by;
      const limit = BigInt(Math.floor(most)) - 1n;
      const within = value < 0n ? 0n : value > limit ? limit : value;
      return isNegative && isSigned ? -within : within;
    });
  return fc.array(one, { minLength: 64, maxLength: 64 });
}

const stores = <D extends Narrow, E extends 'f64' | 'i32' | 'u32' | 'i64' | 'u64'>(
  to: DType<D>,
  from: DType<E>,
) =>
  kernel(
    `store_${to.name}_${from.name}`,
    { out: output(to), v: input(from) },
    ({ out, v }, gpu) => {
      const i = gpu.globalId.x;
      if (i < out.length) out[i] = v[i]! as never;
    },
  );

onDevice('Narrow floats are rounded once', (host) => {
  let device: Device;
  beforeAll(() => {
    device = Device.of(host.device);
  });

  describe.each(Object.keys(FORMATS) as Narrow[])('%s', (name) => {
    const dtype: DType<Narrow> = DTYPES[name];
    const expected = (values: readonly Exact[]): number[] =>
      values.map((value) => nearest(name, value));
    const check = (
      values: fc.Arbitrary<number[]>,
      made: (values: number[]) => Promise<ArrayLike<number>>,
    ): Promise<void> =>
      fc.assert(
        fc.asyncProperty(values, async (given) => {
          expect(Array.from(await made(given))).toEqual(expected(given));
        }),
        { numRuns: 12 },
      );

    test('from lists', { tags: 'random' }, () =>
      check(doubles(name), (values) =>
        device
          .tensor(dtype, values)
          .andThen((x) => x.read())
          .then(),
      ),
    );

    test('by full and fill', { tags: 'random' }, () =>
      check(
        doubles(name).map((values) => values.slice(0, 2)),
        async ([a, b]) => [
          (await device.full(dtype, [1], a!).andThen((x) => x.read()))[0]!,
          (
            await device
              .zeros(dtype, [3])
              .andThen((x) => x.fill(b!))
              .andThen((x) => x.read())
          )[2]!,
        ],
      ),
    );

    test('as scalars of kernels', { tags: 'random' }, async () => {
      const take = kernel(`take_${name}`, { out: output(f32), v: dtype }, ({ out, v }, gpu) => {
        if (gpu.globalId.x === 0) out[0] = v;
      });
      await fc.assert(
        fc.asyncProperty(doubles(name), async ([value]) => {
          expect(
            (
              await take({ out: device.zeros(f32, [1]), v: value! }).andThen(({ out }) =>
                out.read(),
              )
            )[0],
          ).toBe(nearest(name, value!));
          const simulated = new Float32Array(1);
          await take.simulate({ out: simulated, v: value! });
          expect(simulated[0]).toBe(nearest(name, value!));
        }),
        { numRuns: 12 },
      );
    });

    test('in fields of structures', { tags: 'random' }, () => {
      const pair = struct({ a: dtype, b: dtype });
      fc.assert(
        fc.property(doubles(name), ([a, b]) => {
          expect(pair.unpack(pair.pack([{ a: a!, b: b! }]))).toEqual([
            { a: nearest(name, a!), b: nearest(name, b!) },
          ]);
        }),
      );
    });

    test('f64 that kernels store, and those of their simulation', { tags: 'random' }, async () => {
      const store = stores(dtype, f64);
      await check(doubles(name), (values) =>
        store({ out: device.zeros(dtype, [values.length]), v: device.tensor(f64, values) })
          .andThen(({ out }) => out.read())
          .then(),
      );
      await check(doubles(name), async (values) => {
        const out = new Float32Array(values.length);
        await store.simulate({ out: out as never, v: Float64Array.from(values) });
        return out;
      });
    });

    someOf(2, test)([{ from: i32 }, { from: u32 }, { from: i64 }, { from: u64 }])(
      '$from.name that kernels store, and those of their simulation',
      { tags: 'random' },
      async ({ from }) => {
        const store = stores(dtype, from as DType<'i64'>);
        const bits = from.bytes * 8;
        const isSigned = from.kind === 'signed';
        const isWide = bits === 64;
        await fc.assert(
          fc.asyncProperty(integers(name, bits, isSigned), async (values) => {
            // Whole numbers have no negative zero.
            const given = expected(values).map((value) => value + 0);
            const out = await store({
              out: device.zeros(dtype, [values.length]),
              v: device.tensor(
                from as DType<'i64'>,
                (isWide ? values : values.map(Number)) as never,
              ),
            }).andThen((made) => made.out.read());
            expect(Array.from(out, (value) => value + 0)).toEqual(given);
            const simulated = new Float32Array(values.length);
            const array = isWide
              ? (isSigned ? BigInt64Array : BigUint64Array).from(values)
              : (isSigned ? Int32Array : Uint32Array).from(values.map(Number));
            await store.simulate({ out: simulated as never, v: array as never });
            expect(Array.from(simulated, (value) => value + 0)).toEqual(given);
          }),
          { numRuns: 8 },
        );
      },
    );

    test('literals of kernels', async () => {
      const above = {
        f16: 1 + 2 ** -11 + 2 ** -40,
        bf16: 1 + 2 ** -8 + 2 ** -40,
        f8e4m3: 1.0625 + 2 ** -40,
        f8e5m2: 1.125 + 2 ** -40,
      }[name];
      const constant = kernel(
        `constant_${name}`,
        { out: output(dtype) },
        ({ out }, gpu) => {
          const i = gpu.globalId.x;
          if (i < out.length) out[i] = i === 0 ? gpu.ABOVE : -gpu.ABOVE;
        },
        { uses: { ABOVE: above } },
      );
      expect([
        ...(await constant({ out: device.zeros(dtype, [2]) }).andThen(({ out }) => out.read())),
      ]).toEqual([nearest(name, above), -nearest(name, above)]);
    });

    test('what element kernels compute in f64', { tags: 'random' }, async () => {
      const sum = elementKernel(
        `sum_${name}`,
        { y: output(dtype), a: input(dtype), b: input(f64) },
        ({ a, b }) => a + b,
      );
      await check(doubles(name), (values) =>
        sum({ a: device.zeros(dtype, [values.length]), b: device.tensor(f64, values) })
          .andThen(({ y }) => y.read())
          .then((y) =>
            Array.from(y, (value, i) => (value === 0 ? nearest(name, values[i]!) : value)),
          ),
      );
    });

    test('what element kernels compute in f64 of several outputs', { tags: 'random' }, async () => {
      const twice = elementKernel(
        `twice_${name}`,
        { y: output(dtype), z: output(f64), b: input(f64) },
        ({ b }) => ({ y: b, z: b }),
      );
      await check(doubles(name), (values) =>
        twice({ b: device.tensor(f64, values) })
          .andThen(({ y }) => y.read())
          .then(),
      );
    });

    test('what tile kernels compute in f64', { tags: 'random' }, async () => {
      const tiled = tileKernel(
        `tiled_${name}`,
        { y: output(dtype), b: input(f64) },
        ({ y, b }, tile) => {
          y.store(b.load() + tile.max(b.load() * 0, 1));
        },
        { tile: [1, null] },
      );
      await check(doubles(name), (values) =>
        tiled({ b: device.tensor(f64, values, [1, 64]) })
          .andThen(({ y }) => y.read())
          .then(),
      );
    });

    test('by convert', { tags: 'random' }, () =>
      check(doubles(name), (values) =>
        device
          .tensor(f64, values)
          .andThen((x) => x.convert(dtype))
          .andThen((y) => y.read())
          .then(),
      ),
    );
  });

  test.each([f16, bf16])(
    'by casts to $name, in local and shared arrays',
    { tags: 'random' },
    async (dtype) => {
      const { name } = dtype;
      const cast = kernel(
        `cast_${name}`,
        { out: output(f32), local: output(f32), shared: output(f32), v: input(f64) },
        ({ out, local, shared, v }, gpu) => {
          const i = gpu.globalId.x;
          if (gpu.IS_HALF) {
            const own = gpu.local.f16(1);
            const all = gpu.shared.f16(64);
            own[0] = v[i]!;
            all[gpu.threadIdx.x] = v[i]!;
            out[i] = gpu.f16(v[i]!);
            local[i] = own[0];
            shared[i] = all[gpu.threadIdx.x]!;
          } else {
            const own = gpu.local.bf16(1);
            const all = gpu.shared.bf16(64);
            own[0] = v[i]!;
            all[gpu.threadIdx.x] = v[i]!;
            out[i] = gpu.bf16(v[i]!);
            local[i] = own[0];
            shared[i] = all[gpu.threadIdx.x]!;
          }
        },
        { uses: { IS_HALF: name === 'f16' } },
      );
      await fc.assert(
        fc.asyncProperty(doubles(name), async (values) => {
          const given = values.map((value) => nearest(name, value));
          const results = await cast(
            {
              out: device.zeros(f32, [64]),
              local: device.zeros(f32, [64]),
              shared: device.zeros(f32, [64]),
              v: device.tensor(f64, values),
            },
            { grid: 1, block: 64 },
          ).andThen(({ out, local, shared }) =>
            out
              .read()
              .andThen((a) => local.read().andThen((b) => shared.read().map((c) => [a, b, c]))),
          );
          for (const each of results) expect(Array.from(each)).toEqual(given);
        }),
        { numRuns: 6 },
      );
    },
  );
});
