/** Random numbers, compared with those of the device and with Philox in JavaScript. */
import {
  CudaArgumentError,
  Device,
  bf16,
  bool,
  f16,
  f32,
  f64,
  f8e4m3,
  i16,
  i32,
  i64,
  i8,
  u32,
  u64,
  u8,
  zip,
} from 'async-cuda';
import type { AnyTensor, DType, DeviceOp } from 'async-cuda';
import { randomIntegers, randomNormal, randomUniform } from 'async-cuda/library';
import * as fc from '../fast-check.js';
import { beforeAll, expect, test } from 'vitest';

import { failure, onDevice, range } from '../core/test-device.js';
import { someOf } from '../random-runs.js';

const REALS = [f16, bf16, f32, f64] as const;

/** The words of Philox4x32-10. */
function philox(seed: bigint, size: number): bigint[] {
  const low = (value: bigint): bigint => value & 0xffffffffn;
  return range(Math.ceil(size / 4))
    .flatMap((counter) => {
      let [a, b, c, d] = [BigInt(counter), 0n, 0n, 0n];
      let [k0, k1] = [low(seed), low(seed >> 32n)];
      for (let round = 0; round < 10; round++) {
        const [p, q] = [0xd2511f53n * a, 0xcd9e8d57n * c];
        [a, b, c, d] = [(q >> 32n) ^ b ^ k0, low(q), (p >> 32n) ^ d ^ k1, low(p)];
        [k0, k1] = [low(k0 + 0x9e3779b9n), low(k1 + 0xbb67ae85n)];
      }
      return [a, b, c, d];
    })
    .slice(0, size);
}

onDevice('Random numbers', (host) => {
  let device: Device;
  beforeAll(() => {
    device = Device.of(host.device);
  });

  const read = async (op: DeviceOp<AnyTensor>): Promise<(number | bigint)[]> =>
    Array.from((await op.andThen((tensor) => tensor.read())) as ArrayLike<number | bigint>);
  const of = (op: unknown): Promise<(number | bigint)[]> => read(op as DeviceOp<AnyTensor>);

  someOf(1, test)(REALS)(
    'uniform ones are those of device.rand: $name',
    async (dtype) => {
      for (const size of [1, 2, 3, 4, 5, 1023, 5000]) {
        for (const options of [
          { seed: size },
          { seed: 2n ** 64n - 3n, from: -3.3, to: 12.7 },
          { from: 5, to: 5 },
        ]) {
          expect(await of(randomUniform(device, dtype, [size], options))).toEqual(
            await of(device.rand(dtype, [size], options)),
          );
        }
      }
    },
    60_000,
  );

  test('whatever the seed and the bounds', { tags: 'random' }, async () => {
    const bound = fc.float({ min: -1e6, max: 1e6, noNaN: true });
    await fc.assert(
      fc.asyncProperty(
        fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
        bound,
        bound,
        fc.integer({ min: 0, max: 600 }),
        async (seed, one, other, size) => {
          const options = { seed, from: Math.min(one, other), to: Math.max(one, other) };
          expect(await of(randomUniform(device, f32, [size], options))).toEqual(
            await of(device.rand(f32, [size], options)),
          );
          const words = philox(seed, size);
          expect(await of(randomUniform(device, f64, [size], { seed }))).toEqual(
            words.map((word) => Number(word) / 2 ** 32),
          );
          expect(await of(randomIntegers(device, u32, [size], { seed, to: 2n ** 32n }))).toEqual(
            words.map(Number),
          );
        },
      ),
      { numRuns: 15 },
    );
  });

  someOf(1, test)(REALS)(
    'normal ones are close to those of device.randn: $name',
    async (dtype) => {
      const size = 4001;
      for (const [mean, deviation] of [
        [0, 1],
        [10, 0.5],
      ] as const) {
        const options = { seed: 42, mean, deviation };
        const [given, other] = (await Promise.all([
          of(randomNormal(device, dtype, [size], options)),
          of(device.randn(dtype, [size], options)),
        ])) as [number[], number[]];
        const rounding = { f16: 2 ** -10, bf16: 2 ** -7, f32: 2 ** -22, f64: 0 }[dtype.name];
        for (const [i, value] of given.entries()) {
          const from =
            Math.abs(value - other[i]!) / deviation - (rounding * Math.abs(value)) / deviation;
          expect(from).toBeLessThan(1e-3);
          // The error is larger near the mean, where a sine or cosine is small.
          if (Math.abs(other[i]! - mean) > 0.1 * deviation) expect(from).toBeLessThan(2e-5);
        }
      }
    },
    60_000,
  );

  test('normal ones follow Box and Muller, and have a normal distribution', async () => {
    const size = 10_000;
    const words = philox(7n, size).map(Number);
    const expected = range(size).map((i) => {
      const [u, v] = [words[i - (i % 2)]!, words[i - (i % 2) + 1]!];
      const radius = Math.sqrt(-2 * Math.log(((u >>> 8) + 1) / 2 ** 24));
      const angle = 2 * Math.PI * ((v >>> 8) / 2 ** 24);
      return radius * (i % 2 === 0 ? Math.cos(angle) : Math.sin(angle));
    });
    const doubles = (await of(randomNormal(device, f64, [size], { seed: 7 }))) as number[];
    const floats = (await of(randomNormal(device, f32, [size], { seed: 7 }))) as number[];
    for (const [i, value] of expected.entries()) {
      expect(Math.abs(doubles[i]! - value)).toBeLessThan(1e-14 * Math.max(1, Math.abs(value)) * 4);
      expect(Math.abs(floats[i]! - value)).toBeLessThan(5e-6);
    }
    const mean = doubles.reduce((a, b) => a + b, 0) / size;
    expect(Math.abs(mean)).toBeLessThan(4 / Math.sqrt(size));
    expect(Math.abs(doubles.reduce((a, b) => a + (b - mean) ** 2, 0) / size - 1)).toBeLessThan(
      4 * Math.sqrt(2 / size),
    );
  }, 60_000);

  const bounds: readonly [DType, bigint, bigint][] = [
    [i8, -128n, 128n],
    [i8, -3n, 4n],
    [u8, 0n, 256n],
    [u8, 250n, 253n],
    [i16, -1000n, 1000n],
    [i32, -(2n ** 31n), 2n ** 31n],
    [i32, 5n, 6n],
    [u32, 0n, 2n ** 32n],
    [u32, 4294967290n, 2n ** 32n],
    [i64, -(2n ** 63n), -(2n ** 63n) + 9n],
    [i64, -5n, 2n ** 32n - 5n],
    [u64, 2n ** 64n - 17n, 2n ** 64n],
    [u64, 0n, 10n],
  ];
  test.each(bounds)(
    'whole numbers of $name',
    async (dtype, from, to) => {
      const size = 2000;
      const given = await of(
        randomIntegers(device, dtype as typeof i64, [size], { seed: 3, from, to }),
      );
      expect(given.map(BigInt)).toEqual(
        philox(3n, size).map((word) => from + ((word * (to - from)) >> 32n)),
      );
      if (to - from <= 10n) expect(new Set(given).size).toBe(Number(to - from));
    },
    60_000,
  );

  test('of any shape, on a `Device` and on its `core`', async () => {
    using square = await randomUniform(device, f32, [30, 40], { seed: 9 });
    expect(square.shape).toEqual([30, 40]);
    expect(Array.from(await square.read())).toEqual(
      await of(randomUniform(device.core, f32, [1200], { seed: 9 })),
    );
    for (const shape of [[0], [3, 0]])
      expect((await randomNormal(device, f16, shape)).shape).toEqual(shape);
    expect((await of(randomUniform(device, f64, []))).length).toBe(1);
    // Run again it gives the same.
    const op = randomIntegers(device, i32, [50], { to: 1000, seed: 0 });
    expect(await of(op)).toEqual(await of(op));
  }, 60_000);

  test.each<[string, () => DeviceOp<AnyTensor>]>([
    ['device.rand', () => device.rand(f32, [16]) as never],
    ['device.randn', () => device.randn(f64, [16]) as never],
    ['randomUniform', () => randomUniform(device, f64, [16]) as never],
    ['randomNormal', () => randomNormal(device, f32, [16]) as never],
    ['randomIntegers', () => randomIntegers(device, u32, [16], { to: 2 ** 32 }) as never],
  ])('of %s without a seed differ from draw to draw, and from run to run', async (_, draw) => {
    const op = draw();
    const rows = await zip(
      draw().andThen((x) => x.read()),
      draw().andThen((x) => x.read()),
      op.andThen((x) => x.read()),
      op.andThen((x) => x.read()),
    );
    expect(new Set(rows.map((row) => Array.from(row as ArrayLike<number>).join(' '))).size).toBe(4);
  });

  test('without a seed are the same at each launch of one graph only', async () => {
    const capture = async (): Promise<string[]> => {
      await using graph = await device.rand(f32, [16]).capture();
      const once = async (): Promise<string> => (await (await graph.replay()).read()).join(' ');
      return [await once(), await once()];
    };
    const [one, other] = [await capture(), await capture()];
    expect(one[0]).toBe(one[1]);
    expect(other[0]).toBe(other[1]);
    expect(one[0]).not.toBe(other[0]);
  });

  test('wrong arguments are refused at the call', async () => {
    const message = async (call: () => unknown): Promise<string> => {
      const error = await failure(call);
      expect(error).toBeInstanceOf(CudaArgumentError);
      return error.message;
    };
    expect(await message(() => randomUniform({} as never, f32, [3]))).toContain(
      'device: expected a Device',
    );
    expect(await message(() => randomUniform(device, i32 as never, [3]))).toContain(
      'randomIntegers(…)',
    );
    expect(await message(() => randomNormal(device, f8e4m3 as never, [3]))).toContain(
      'Convert them',
    );
    expect(await message(() => randomUniform(device, f32, [-1]))).toContain('shape');
    expect(await message(() => randomUniform(device, f32, [1], { from: 2 }))).toContain(
      'options.to: expected at least options.from, 2',
    );
    expect(await message(() => randomUniform(device, f32, [1], { to: Infinity }))).toContain(
      'options.to',
    );
    expect(await message(() => randomUniform(device, f32, [1], { seed: 0.5 }))).toContain(
      'options.seed',
    );
    expect(await message(() => randomNormal(device, f32, [1], { from: 1 } as never))).toContain(
      "no option 'from'",
    );
    expect(await message(() => randomNormal(device, f32, [1], { deviation: NaN }))).toContain(
      'options.deviation',
    );
    expect(
      await message(() => randomNormal(device, f32, [1], { deviation: Symbol('x') as never })),
    ).toContain('options.deviation');
    expect(await message(() => randomNormal(device, f32, [1], { deviation: -1 }))).toContain(
      'options.deviation: expected a number of at least 0, got -1',
    );
    expect(await message(() => randomIntegers(device, f32 as never, [1], { to: 3 }))).toContain(
      'dtype',
    );
    expect(await message(() => randomIntegers(device, bool as never, [1], { to: 3 }))).toContain(
      'dtype',
    );
    expect(await message(() => randomIntegers(device, i32, [1], {} as never))).toContain(
      'options.to: expected a whole number',
    );
    expect(await message(() => randomIntegers(device, i32, [1], undefined as never))).toContain(
      'options.to: expected a whole number',
    );
    expect(await message(() => randomIntegers(device, i32, [1], { to: 0 }))).toContain(
      'options.to: expected above options.from, 0',
    );
    expect(await message(() => randomIntegers(device, i8, [1], { to: 129 }))).toContain(
      'options.to: expected from -128 to 128, for i8',
    );
    expect(await message(() => randomIntegers(device, i64, [1], { to: 2 ** 33 }))).toContain(
      '2^32',
    );
    expect(await message(() => randomIntegers(device, i64, [1], { to: 2 ** 60 }))).toContain(
      '2n ** 60n',
    );
  });
});
