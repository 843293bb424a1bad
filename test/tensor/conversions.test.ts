/** Conversions between the dtypes of tensors. */
import { DTYPES, f32, f64, i32, i64, u8 } from 'async-cuda/core';
import type { DTypeName, CoreDevice, f16 } from 'async-cuda/core';
import { setDefaultDevice, zip } from 'async-cuda/ops';
import { tensor } from 'async-cuda/tensor';
import { beforeAll, expect, test } from 'vitest';

import { onDevice, range } from '../core/test-device.js';

onDevice('Conversions of tensors', (host) => {
  const device = (): CoreDevice => host.device;
  beforeAll(() => {
    setDefaultDevice(host.device);
  });

  test('conversions give the elements that the host computes', async () => {
    const values = [
      0,
      1,
      -1,
      0.5,
      1.5,
      2.5,
      447,
      448,
      449,
      464,
      465,
      57344,
      61439,
      61440,
      65504,
      65519,
      65520,
      1e10,
      3e38,
      NaN,
      Infinity,
      -Infinity,
      1e-40,
      2 ** -9,
      2 ** -10,
      2 ** -10 * 1.0001,
      2 ** -16,
      2 ** -17,
      ...range(500).map((i) => Math.sin(i) * 2 ** ((i % 60) - 30)),
    ];
    const source = Float32Array.from(values);
    using x = await tensor(device(), f32, source);
    for (const to of [DTYPES.f16, DTYPES.bf16, DTYPES.f8e4m3, DTYPES.f8e5m2, f64]) {
      using wanted = await tensor(
        device(),
        to as typeof f16,
        (to === f64 ? Float64Array.from(source) : source) as Float32Array,
      );
      const [mine, hosts] = await zip(
        x.convert(to as typeof f16).andThen((y) => y.read()),
        wanted.read(),
      );
      expect([...mine], to.name).toEqual([...hosts]);
    }
  });

  test('floats truncate and clamp to integers, integers wrap, non-zeros are true', async () => {
    using x = await tensor(
      device(),
      f64,
      Float64Array.of(1.9, -1.9, 300, -300, 1e20, -1e20, NaN, 0),
    );
    const read = async (name: DTypeName): Promise<unknown[]> => [
      ...((await x.convert(DTYPES[name]).andThen((y) => y.read())) as Iterable<unknown>),
    ];
    expect(await read('u8')).toEqual([1, 0, 255, 0, 255, 0, 0, 0]);
    expect(await read('i8')).toEqual([1, -1, 127, -128, 127, -128, 0, 0]);
    expect(await read('i32')).toEqual([1, -1, 300, -300, 2 ** 31 - 1, -(2 ** 31), 0, 0]);
    expect(await read('i64')).toEqual([1n, -1n, 300n, -300n, 2n ** 63n - 1n, -(2n ** 63n), 0n, 0n]);
    expect(await read('u64')).toEqual([1n, 0n, 300n, 0n, 2n ** 64n - 1n, 0n, 0n, 0n]);
    expect(await read('bool')).toEqual([1, 1, 1, 1, 1, 1, 1, 0]);
    using y = await tensor(device(), i32, Int32Array.of(257, -1, 65536));
    expect([...(await y.convert(u8).andThen((z) => z.read()))]).toEqual([1, 255, 0]);
    using big = await tensor(
      device(),
      i64,
      BigInt64Array.of(2n ** 53n + 1n, -(2n ** 40n) - 1n, 0x1010000000001n),
    );
    expect([...(await big.convert(f32).andThen((z) => z.read()))]).toEqual([
      2 ** 53,
      Math.fround(-(2 ** 40) - 1),
      Math.fround(0x1010000000001),
    ]);
    expect([...(await big.convert(DTYPES.bf16).andThen((z) => z.read()))][2]).toBe(
      2 ** 48 + 2 ** 41,
    );
  });

  test('every dtype converts to every other for small whole numbers', async () => {
    const real = Object.values(DTYPES).filter(({ kind }) => kind !== 'complex');
    for (const from of real) {
      const one = from.name.endsWith('64') && from.kind !== 'float' ? [0n, 1n, 1n] : [0, 1, 1];
      using x = await tensor(device(), from, one as number[]);
      for (const to of real as (typeof DTYPES.f32)[]) {
        const values = await x.convert(to).andThen((y) => y.read());
        expect(
          [...(values as Iterable<number | bigint>)].map(Number),
          `${from.name} to ${to.name}`,
        ).toEqual([0, 1, 1]);
      }
    }
  }, 120_000);
});
