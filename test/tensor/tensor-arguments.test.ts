/** Arguments that functions of tensors refuse, and what the errors name. */
import { DTYPES, bool, f16, f32, f64, i32, i64, u64, u8 } from 'async-cuda/core';
import type { DTypeName, CoreDevice } from 'async-cuda/core';
import { setDefaultDevice, value } from 'async-cuda/ops';
import {
  Tensor,
  arange,
  callKernel,
  eye,
  full,
  loadNpy,
  loadSafetensors,
  ones,
  prepare,
  rand,
  randn,
  saveNpy,
  saveSafetensors,
  tensor,
  zeros,
} from 'async-cuda/tensor';
import { beforeAll, expect, test } from 'vitest';

import { ELEMENTWISE } from '../core/kernels/elementwise.js';
import { failure, onDevice, range } from '../core/test-device.js';

onDevice('Arguments of tensors', (host) => {
  const device = (): CoreDevice => host.device;
  beforeAll(() => {
    setDefaultDevice(host.device);
  });

  test('launches, loadKernels and lists refuse other values, with their names', async () => {
    const module = await host.load(ELEMENTWISE);
    const add1 = module.kernel('add1');
    using x = await ones(device(), i32, [4]);
    for (const options of [undefined, null, 5, x, arange(device(), i32, 4)]) {
      const error = await failure(() => callKernel(add1, options as never, x, 4));
      expect(error).toMatchObject({
        argument: 'options',
        message: expect.stringMatching(
          /^options: expected an object with grid and block, got .* Write launch\(/,
        ) as string,
      });
    }
    expect(await failure(() => prepare(device(), i32, 'f32' as never))).toMatchObject({
      argument: 'dtypes[1]',
      message: expect.stringContaining("got 'f32'") as string,
    });
    expect(
      await failure(() =>
        value(5 as never)
          .first()
          .run(),
      ),
    ).toMatchObject({
      message:
        "first: there is no value; the operation's value is not a list. Call it on an " +
        'operation whose value is a list: zip(a, b).first().',
    });
    expect(
      await failure(() =>
        value([] as never)
          .last()
          .run(),
      ),
    ).toMatchObject({
      message:
        "last: there is no value; the operation's value is an empty list. Call it on an " +
        'operation whose value is a list: zip(a, b).last().',
    });
  });

  test.each(['u8', 'i8', 'u16', 'i16', 'u32', 'i32', 'u64', 'i64'] as const)(
    'a sequence of %s stays within the dtype',
    async (name) => {
      const dtype = DTYPES[name];
      const bits = BigInt(dtype.bytes * 8);
      const [low, high] =
        dtype.kind === 'signed'
          ? [-(1n << (bits - 1n)), (1n << (bits - 1n)) - 1n]
          : [0n, (1n << bits) - 1n];
      const read = async (start: bigint, step: bigint, length: number): Promise<bigint[]> =>
        Array.from(
          (await arange(device(), dtype, length, { start, step }).andThen((x) =>
            x.read(),
          )) as ArrayLike<number | bigint>,
          BigInt,
        );
      expect(await read(high - 3n, 1n, 4)).toEqual([high - 3n, high - 2n, high - 1n, high]);
      expect(await read(low + 2n, -1n, 3)).toEqual([low + 2n, low + 1n, low]);
      expect(await read(low, high - low, 2)).toEqual([low, high]);
      expect(await read(high, low - high, 2)).toEqual([high, low]);
      expect(await read(high, high, 1)).toEqual([high]);
      expect(await read(high + 1n, 1n, 0)).toEqual([]);
      for (const [start, step, length, argument] of [
        [low - 1n, 1n, 2, 'start'],
        [high + 1n, -1n, 2, 'start'],
        [high - 2n, 1n, 4, 'step'],
        [low + 2n, -1n, 4, 'step'],
        [low, high - low + 1n, 2, 'step'],
      ] as const) {
        const error = await failure(() => arange(device(), dtype, length, { start, step }));
        expect(error).toMatchObject({
          code: 'ERR_CUDA_INVALID_ARGUMENT',
          argument: `options.${argument}`,
        });
      }
    },
  );

  test('values outside an integer dtype are refused by creation and fill', async () => {
    using x = await zeros(device(), u8, [2]);
    using wide = await zeros(device(), i64, [2]);
    for (const call of [
      () => full(device(), u8, [2], -1),
      () => full(device(), i32, [2], 2 ** 31),
      () => full(device(), u64, [2], -1n),
      () => full(device(), i64, [2], 2n ** 63n),
      () => full(device(), bool, [2], 2),
      () => full(device(), u8, [2], 0.5),
      () => x.fill(256),
      () => x.fill(-1),
      () => wide.fill(-(2n ** 63n) - 1n),
      () => wide.fill(1 as never),
      () => tensor(device(), u8, [256]),
      () => tensor(device(), i64, [2n ** 63n]),
      () => arange(device(), bool, 3),
      () => arange(device(), f16, 3, { start: '1' as never }),
    ])
      expect(call).toThrow(expect.objectContaining({ code: 'ERR_CUDA_INVALID_ARGUMENT' }));
  });

  test('a detached array is refused, and not taken as an empty one', () => {
    const gone = Int32Array.of(1, 2);
    structuredClone(gone, { transfer: [gone.buffer] });
    expect(() => tensor(device(), i32, gone)).toThrow(
      'source: expected an array that has its bytes',
    );
  });

  test('wrong arguments are refused at the call', () => {
    expect(() => zeros(device(), 'f32' as never, [1])).toThrow('without quotes');
    expect(() => zeros(device(), f32, [1.5])).toThrow('shape');
    for (const make of [zeros, ones, arange, eye, rand, randn] as ((
      ...given: unknown[]
    ) => unknown)[]) {
      for (const none of [undefined, null])
        expect(() => make(device(), none, 2)).toThrow(
          `dtype: expected one of ${Object.keys(DTYPES).join(', ')}, got ${none}.`,
        );
    }
    for (const call of [
      () => zeros(device(), f32, [2], null as never),
      () => arange(device(), f32, 2, null as never),
      () => eye(device(), f32, 2, 2, null as never),
      () => rand(device(), f32, [2], null as never),
      () => randn(device(), f32, [2], null as never),
    ]) {
      expect(call).toThrow(/^options: expected an object with label.*, got null/);
    }
    expect(() => randn(device(), f32, [2], { deviation: Symbol('x') as never })).toThrow(
      'options.deviation: expected a number of at least 0, got Symbol(x).',
    );
    expect(() => zeros(device(), f32, [2], { lable: 'x' } as never)).toThrow(
      "Did you mean 'label'",
    );
    expect(() => arange(device(), i32, 3, { step: 0.5 })).toThrow('whole number');
    expect(() => zeros(f32 as never, [4] as never, undefined as never)).toThrow(
      'device: expected a Device, got',
    );
    expect(() => arange(device(), i32, 0, 3 as never)).toThrow(
      'options: expected an object with start and step, got 3. Write arange(dtype, length, { ' +
        'start, step }).',
    );
    expect(() => tensor(device(), f32, [1, 2, 3], [2, 2])).toThrow('3 elements');
    expect(() => rand(device(), i32 as never, [1])).toThrow('f16, bf16, f32 or f64');
    expect(() => Tensor.of(device().alloc(f32, 3), [4])).toThrow('at most the 3 elements');
    expect(() =>
      Tensor.of(device().alloc(f32, 3), { shape: [3], strides: [-1], offset: 0 }),
    ).toThrow('offset: expected at least 2');
    expect(() => Tensor.of(device().alloc(f32, 3), 3 as never)).toThrow(
      'shape: expected a list of extents, or a layout',
    );
    expect(() => Tensor.of({} as never, [3])).toThrow('buffer: expected a DeviceBuffer');
    expect(() => arange(device(), u64, 3, { start: 2n ** 64n })).toThrow(
      'options.start: expected from 0 to 18446744073709551615, for u64, got 18446744073709551616n.',
    );
    for (const seed of [-1, 2n ** 64n, 0.5, 2 ** 60])
      expect(() => rand(device(), f32, [3], { seed })).toThrow(
        'options.seed: expected a whole number from 0 to 2^64 - 1',
      );
    expect(() => rand(device(), f32, [3], { to: 1e39 })).toThrow(
      'options.to: expected from -3.4028234663852886e+38 to 3.4028234663852886e+38, for f32',
    );
    expect(() => rand(device(), f16, [3], { from: -1e6 })).toThrow(
      'options.from: expected from -65504 to 65504, for f16',
    );
    expect(() => rand(device(), f32, [3], { from: -3e38, to: 3e38 })).toThrow(
      'options.to: expected at most 3.4028234663852886e+38 above options.from',
    );
    expect(() => rand(device(), f64, [3], { from: 2, to: 1 })).toThrow(
      'options.to: expected at least options.from, 2',
    );
  });

  test('elements of a plain list are checked: none is wrapped or truncated', async () => {
    const list = (dtype: (typeof DTYPES)[DTypeName], values: readonly unknown[]) => () =>
      tensor(device(), dtype as typeof f32, values as number[]);
    expect(list(u8, [1, 300])).toThrow(
      'source[1]: expected a whole number from 0 to 255, for u8, got 300',
    );
    expect(list(u8, [-1])).toThrow('source[0]');
    expect(list(i32, [1.5])).toThrow('source[0]');
    expect(list(i32, [2 ** 31])).toThrow('source[0]');
    expect(
      list(f32, [
        [1, 2],
        [3, 4],
      ]),
    ).toThrow('in one list, and the shape after it');
    expect(list(f32, ['1'])).toThrow("a number, for f32, got '1'");
    expect(list(f32, [1, undefined])).toThrow('source[1]');
    expect(list(f32, [1, , 3])).toThrow('source[1]');
    expect(list(f32, [1n])).toThrow('source[0]');
    expect(list(i64, [0.5])).toThrow('source[0]');
    expect(list(u64, [-1n])).toThrow('from 0 to 2^64 - 1');
    expect(list(i64, [1n << 63n])).toThrow('source[0]');
    expect(list(bool, [2])).toThrow('true, false, 0 or 1');
    expect(() => tensor(device(), f32, undefined as never)).toThrow('source');
    expect(() => tensor(device(), f32, 'abc' as never)).toThrow('source');

    using wide = await tensor(device(), i64, [1, -2, 3]);
    expect([...(await wide.read())]).toEqual([1n, -2n, 3n]);
    using flags = await tensor(device(), bool, [true, false]);
    expect([...(await flags.read())]).toEqual([1, 0]);
    using floats = await tensor(device(), f32, [NaN, Infinity, -0]);
    expect([...(await floats.read())]).toEqual([NaN, Infinity, -0]);
  });

  test('an option of another function is refused', () => {
    expect(() => zeros(device(), f32, [3], { seed: 1 } as never)).toThrow(
      "options: there is no option 'seed'. Options are label",
    );
    expect(() => rand(device(), f32, [3], { sed: 1 } as never)).toThrow("Did you mean 'seed'");
    expect(() => rand(device(), f32, [3], { mean: 1 } as never)).toThrow("no option 'mean'");
    expect(() => arange(device(), f32, 3, { diagonal: 1 } as never)).toThrow(
      "no option 'diagonal'",
    );
    expect(() => randn(device(), f32, [3], { deviation: -1 })).toThrow(
      'options.deviation: expected a number of at least 0, got -1',
    );
  });

  test('the lazy device is taken; values that are not files or tensors are named', async () => {
    const lazy = { core: device() };
    using x = await arange(lazy, f32, 6);
    const file = await saveNpy(x);
    using back = await loadNpy(lazy, file);
    expect([...((await back.read()) as Float32Array)]).toEqual(range(6));
    expect(() => loadNpy(lazy, 'x.npy' as never)).toThrow(
      "file: expected a Uint8Array, the bytes of the file, got 'x.npy'. Read them first: " +
        'await readFile(path).',
    );
    expect(() => loadSafetensors(lazy, 'x.safetensors' as never)).toThrow('await readFile(path)');
    expect(() => loadNpy({} as never, file)).toThrow('device: expected a Device');
    expect(() => saveNpy('x.npy' as never)).toThrow('tensor: expected a Tensor');
    expect(() => saveSafetensors({ x: 5 } as never)).toThrow(
      'tensors["x"]: expected a Tensor, got 5',
    );
    expect(() => saveSafetensors(x as never)).toThrow('Write saveSafetensors({ weights })');
  });
});
