/** The arguments and the declared signatures of kernels. */
import { runInNewContext } from 'node:vm';

import {
  bf16,
  bool,
  f16,
  f32,
  f64,
  f8e4m3,
  f8e5m2,
  i32,
  i64,
  inout,
  input,
  output,
  struct,
  u16,
  u32,
  u64,
  u8,
} from 'async-cuda/core';
import { describe, expect, test } from 'vitest';

import { ELEMENTWISE } from './kernels/elementwise.js';
import { PARAMETERS } from './kernels/parameters.js';
import { failure, onDeviceInEachMode, openTestDevice, range } from './test-device.js';

const ONE = { grid: 1, block: 1 } as const;

onDeviceInEachMode('Kernel parameters', (host) => {
  async function integers(...args: (number | bigint | boolean)[]): Promise<bigint[]> {
    using out = host.device.alloc(i64, 8);
    const kernel = (await host.load(PARAMETERS)).kernel('integers');
    kernel.launch(host.stream, ONE, out, ...args);
    return [...(await out.read(host.stream))];
  }

  test('a launch without a stream is refused for that, not for its argument count', async () => {
    const add1 = (await host.load(ELEMENTWISE)).kernel('add1');
    using buffer = host.device.alloc(i32, 4);
    const error = await failure(() =>
      (add1.launch as (...args: unknown[]) => unknown).call(add1, { grid: 1, block: 4 }, buffer, 4),
    );
    expect(error).toMatchObject({ argument: 'stream' });
    expect(error.message).toContain('kernel.launch(stream,');
  });

  test('integers of every size arrive', async () => {
    expect(
      await integers(
        200,
        -100,
        60_000,
        -30_000,
        4_000_000_000,
        -2_000_000_000,
        2 ** 53 - 1,
        -(2 ** 53 - 1),
      ),
    ).toEqual([
      200n,
      -100n,
      60_000n,
      -30_000n,
      4_000_000_000n,
      -2_000_000_000n,
      9007199254740991n,
      -9007199254740991n,
    ]);
  });

  test('negative numbers arrive where PTX has one type for long long and pointers', async () => {
    expect((await integers(0, 0, 0, 0, 0, 0, -5, 0))[6]).toBe(-5n);
    expect((await integers(0, 0, 0, 0, 0, 0, -(2 ** 53 - 1), 0))[6]).toBe(-9007199254740991n);
    expect(await failure(() => integers(0, 0, 0, 0, 0, 0, -5.5, 0))).toMatchObject({
      argument: 'args[7]',
    });
  });

  test('64-bit integers arrive as bigints', async () => {
    const values = await integers(0, 0, 0, 0, 0, 0, 2n ** 64n - 1n, -(2n ** 63n));
    expect(BigInt.asUintN(64, values[6]!)).toBe(2n ** 64n - 1n);
    expect(values[7]).toBe(-(2n ** 63n));
  });

  test('booleans arrive as 0 and 1', async () => {
    expect((await integers(true, false, true, false, true, false, 0n, true)).map(Number)).toEqual([
      1, 0, 1, 0, 1, 0, 0, 1,
    ]);
  });

  test('floats arrive, rounded to their type', async () => {
    using out = host.device.alloc(f64, 2);
    const kernel = (await host.load(PARAMETERS)).kernel('floats');
    kernel.launch(host.stream, ONE, out, 0.1, 0.1);
    expect([...(await out.read(host.stream))]).toEqual([Math.fround(0.1), 0.1]);
    kernel.launch(host.stream, ONE, out, -Infinity, Number.MIN_VALUE);
    expect([...(await out.read(host.stream))]).toEqual([-Infinity, Number.MIN_VALUE]);
    kernel.launch(host.stream, ONE, out, NaN, -0);
    const [nan, zero] = await out.read(host.stream);
    expect(nan).toBeNaN();
    expect(Object.is(zero, -0)).toBe(true);
  });

  test('narrow types arrive as declared', async () => {
    using out = host.device.alloc(u16, 5);
    const kernel = (await host.load(PARAMETERS)).kernel('words', [
      output(u16),
      f16,
      bf16,
      f8e4m3,
      f8e5m2,
      bool,
    ]);
    kernel.launch(host.stream, ONE, out, 1.5, -2, 1.125, -1.25, true);
    expect([...(await out.read(host.stream))]).toEqual([0x3e00, 0xc000, 0x39, 0xbd, 1]);
  });

  test.each([
    [bool, Uint8Array.of(1, 0, 1)],
    [f8e4m3, Float32Array.of(448, -0, 1.125)],
    [f8e5m2, Float32Array.of(57344, -Infinity, 2 ** -16)],
  ] as const)('a buffer of $name is an element type like any other', async (dtype, values) => {
    using from = host.device.alloc(dtype as typeof f8e4m3, values.length);
    using to = host.device.alloc(dtype as typeof f8e4m3, values.length);
    using other = host.device.alloc(u8, values.length);
    from.write(host.stream, values as Float32Array);
    const kernel = (await host.load(PARAMETERS)).kernel('bytes', [output(dtype), input(dtype)]);
    kernel.launch(host.stream, { grid: 1, block: values.length }, to as never, from as never);
    expect(await to.read(host.stream)).toEqual(values);
    const error = await failure(() =>
      kernel.launch(host.stream, ONE, other as never, from as never),
    );
    expect(error).toMatchObject({ code: 'ERR_CUDA_INVALID_ARGUMENT', argument: 'args[0]' });
  });

  test('a word of unknown type has to be declared', async () => {
    using out = host.device.alloc(u16, 5);
    const kernel = (await host.load(PARAMETERS)).kernel('words');
    const error = await failure(() => kernel.launch(host.stream, ONE, out, 1, 2, 3, 4, 5));
    expect(error).toMatchObject({ code: 'ERR_CUDA_INVALID_ARGUMENT', argument: 'args[1]' });
    expect(error.message).toContain("module.kernel('words', [");
  });

  function structure(): DataView<ArrayBuffer> {
    const bytes = new DataView(new ArrayBuffer(24));
    bytes.setInt32(0, -7, true);
    bytes.setFloat64(8, Math.E, true);
    bytes.setFloat32(16, 0.25, true);
    return bytes;
  }

  test('a structure arrives, and so do the arguments after it', async () => {
    using out = host.device.alloc(f64, 4);
    const kernel = (await host.load(PARAMETERS)).kernel('structure');
    const elsewhere = runInNewContext('new ArrayBuffer(24)') as ArrayBuffer;
    new Uint8Array(elsewhere).set(new Uint8Array(structure().buffer));
    for (const bytes of [
      structure(),
      structure().buffer,
      new Uint8Array(structure().buffer),
      elsewhere,
    ]) {
      out.fill(host.stream, 0);
      kernel.launch(host.stream, ONE, out, bytes, 99);
      expect([...(await out.read(host.stream))]).toEqual([-7, Math.E, 0.25, 99]);
    }
  });

  test('a structure of the wrong size is refused', async () => {
    using out = host.device.alloc(f64, 4);
    const kernel = (await host.load(PARAMETERS)).kernel('structure', [
      output(f64),
      struct(24),
      u32,
    ]);
    const error = await failure(() =>
      kernel.launch(host.stream, ONE, out, new ArrayBuffer(20), 99),
    );
    expect(error).toMatchObject({ argument: 'args[1]' });
    expect(error.message).toContain('24 bytes');
    expect(await failure(() => kernel.launch(host.stream, ONE, out, 5, 99))).toMatchObject({
      argument: 'args[1]',
    });
  });

  test('null is the null pointer, a buffer is not', async () => {
    using out = host.device.alloc(i32, 1);
    using other = host.device.alloc(i32, 1);
    const kernel = (await host.load(PARAMETERS)).kernel('is_null');
    kernel.launch(host.stream, ONE, out, null);
    expect((await out.read(host.stream))[0]).toBe(1);
    kernel.launch(host.stream, ONE, out, other);
    expect((await out.read(host.stream))[0]).toBe(0);
  });

  test('a 64-bit word that can be a pointer takes a number', async () => {
    using out = host.device.alloc(i32, 1);
    const kernel = (await host.load(PARAMETERS)).kernel('is_null');
    kernel.launch(host.stream, ONE, out, 0);
    expect((await out.read(host.stream))[0]).toBe(1);
    kernel.launch(host.stream, ONE, out, 2n ** 40n);
    expect((await out.read(host.stream))[0]).toBe(0);
  });

  test('a signed 64-bit word, which can be a pointer, takes numbers and memory', async () => {
    using out = host.device.alloc(i32, 2);
    using source = host.device.alloc(i32, 2);
    source.write(host.stream, Int32Array.of(7, 9));
    const copy = (
      await host.load(`.version 7.0
.target sm_52
.address_size 64
.visible .entry copy(.param .s64 copy_param_0, .param .s64 copy_param_1, .param .s64 copy_param_2)
{
  .reg .b32 %r<2>; .reg .b64 %rd<4>;
  ld.param.s64 %rd0, [copy_param_0];
  ld.param.s64 %rd1, [copy_param_1];
  ld.param.s64 %rd2, [copy_param_2];
  add.s64 %rd1, %rd1, %rd2;
  ld.global.u32 %r0, [%rd1];
  st.global.u32 [%rd0], %r0;
  ret;
}`)
    ).kernel('copy');
    copy.launch(host.stream, ONE, out, source, 4);
    copy.launch(host.stream, ONE, out.slice(1, 2), source.slice(1, 2), -4n);
    expect([...(await out.read(host.stream))]).toEqual([9, 7]);
  });

  test.each([
    { dtype: i32, wrong: [2 ** 31, -(2 ** 31) - 1] },
    { dtype: u32, wrong: [-1, 2 ** 32] },
    { dtype: bool, wrong: [2, -1] },
    { dtype: i64, wrong: [2n ** 63n, 2 ** 53] },
    { dtype: u64, wrong: [-1n, -1] },
  ])(
    'a declared $dtype.name takes the numbers of its type, not those of its word',
    async ({ dtype, wrong }) => {
      const scalar = dtype.bytes === 1 ? 'u8' : dtype.bytes === 4 ? 'u32' : 'u64';
      const module = await host.load(`.version 7.0
.target sm_52
.address_size 64
.visible .entry take(.param .u64 take_param_0, .param .${scalar} take_param_1)
{
  ret;
}`);
      using out = host.device.alloc(i32, 1);
      const take = module.kernel('take', [inout(i32), dtype]);
      for (const value of wrong)
        expect(await failure(() => take.launch(host.stream, ONE, out, value))).toMatchObject({
          code: 'ERR_CUDA_INVALID_ARGUMENT',
          argument: 'args[1]',
        });
      for (let i = 0; i < 100; i++) take.launch(host.stream, ONE, out, 1);
      for (const value of wrong)
        expect(await failure(() => take.launch(host.stream, ONE, out, value))).toMatchObject({
          argument: 'args[1]',
        });
      await host.device.finished();
    },
  );

  test('a slice arrives as a pointer to its first element', async () => {
    using out = host.device.alloc(i32, 4);
    out.fill(host.stream, 1);
    (await host.load(ELEMENTWISE))
      .kernel('add1')
      .launch(host.stream, { grid: 1, block: 32 }, out.slice(1, 3), 2);
    expect([...(await out.read(host.stream))]).toEqual([1, 2, 2, 1]);
  });

  describe('refuses', () => {
    test.each([
      [1, 256],
      [1, -129],
      [1, 1.5],
      [2, 256],
      [3, 65_536],
      [4, 65_536],
      [5, 2 ** 32],
      [6, 2 ** 32],
      [6, 0.5],
      [7, 2 ** 53],
      [7, 2n ** 64n],
      [8, -(2n ** 63n) - 1n],
      [5, 1n],
      [5, '1'],
      [5, undefined],
      [5, null],
      [6, NaN],
    ])('for parameter %i the value %s', async (index, value) => {
      using out = host.device.alloc(i64, 8);
      const kernel = (await host.load(PARAMETERS)).kernel('integers');
      const args: unknown[] = [out, 0, 0, 0, 0, 0, 0, 0, 0];
      args[index] = value;
      expect(
        await failure(() => kernel.launch(host.stream, ONE, ...(args as never[]))),
      ).toMatchObject({
        code: 'ERR_CUDA_INVALID_ARGUMENT',
        argument: `args[${index}]`,
      });
    });

    test('a refused launch leaves the stream and the buffers as they were', async () => {
      using out = host.device.alloc(i64, 8);
      out.fill(host.stream, 3n);
      const kernel = (await host.load(PARAMETERS)).kernel('integers');
      await failure(() => kernel.launch(host.stream, ONE, out, 0, 0, 0, 0, 0, 0, 0, 'x' as never));
      await failure(() => kernel.launch(host.stream, ONE, out, 'x' as never, 0, 0, 0, 0, 0, 0, 0));
      expect([...(await out.read(host.stream))]).toEqual(Array(8).fill(3n));
      kernel.launch(host.stream, ONE, out, 1, 1, 1, 1, 1, 1, 1, 1);
      expect([...(await out.read(host.stream))]).toEqual(Array(8).fill(1n));
    });

    test('too few and too many arguments, with the parameters', async () => {
      using buffer = host.device.alloc(f32, 4);
      const kernel = (await host.load(ELEMENTWISE)).kernel('saxpy');
      const error = await failure(() => kernel.launch(host.stream, ONE, buffer, 1, buffer));
      expect(error).toMatchObject({ argument: 'args' });
      expect(error.message).toContain("'saxpy' takes 4 arguments, got 3");
      expect(error.message).toContain('f32');
      expect(
        await failure(() => kernel.launch(host.stream, ONE, buffer, 1, buffer, 4, 5)),
      ).toMatchObject({ argument: 'args' });
    });

    test('a typed array in place of a buffer, with the remedy', async () => {
      const kernel = (await host.load(ELEMENTWISE)).kernel('add1');
      const error = await failure(() => kernel.launch(host.stream, ONE, new Int32Array(4), 4));
      expect(error).toMatchObject({ argument: 'args[0]' });
      expect(error.message).toContain('device buffer first');
    });

    test('a buffer in place of a number', async () => {
      using buffer = host.device.alloc(i32, 4);
      const kernel = (await host.load(ELEMENTWISE)).kernel('add1');
      expect(await failure(() => kernel.launch(host.stream, ONE, buffer, buffer))).toMatchObject({
        argument: 'args[1]',
      });
    });

    test('a closed buffer', async () => {
      const buffer = host.device.alloc(i32, 4, { label: 'gone' });
      buffer.close();
      const kernel = (await host.load(ELEMENTWISE)).kernel('add1');
      const error = await failure(() => kernel.launch(host.stream, ONE, buffer, 4));
      expect(error.code).toBe('ERR_CUDA_DISPOSED');
      expect(error.message).toContain('args[0]');
      expect(error.message).toContain("'gone'");
    });

    test('a buffer of another device, with how to copy it', async () => {
      const other = await openTestDevice({ thread: host.mode }, 'cpu:4');
      using buffer = other.alloc(i32, 4);
      const kernel = (await host.load(ELEMENTWISE)).kernel('add1');
      expect((await failure(() => kernel.launch(host.stream, ONE, buffer, 4))).message).toContain(
        'copyFrom',
      );
      using own = host.device.alloc(i32, 4);
      expect(await failure(() => kernel.launch(other.stream, ONE, own, 4))).toMatchObject({
        argument: 'stream',
      });
      await other.close();
    });

    test('a value that is not a stream', async () => {
      const kernel = (await host.load(ELEMENTWISE)).kernel('nothing');
      for (const stream of [undefined, null, {}, host.device]) {
        expect(await failure(() => kernel.launch(stream as never, ONE))).toMatchObject({
          argument: 'stream',
        });
      }
    });
  });
});

onDeviceInEachMode('Kernel signatures', (host) => {
  test('a declared signature is checked against the kernel', async () => {
    const module = await host.load(ELEMENTWISE);
    expect(module.kernel('saxpy', [inout(f32), f32, input(f32), u32]).parameterCount).toBe(4);
    expect(module.kernel('saxpy', [inout(f32), f32, input(f32), i32]).parameterCount).toBe(4);
  });

  test.each([
    ['too few parameters', [inout(f32), f32, input(f32)]],
    ['a scalar for a pointer of another size', [f32, f32, input(f32), u32]],
    ['a pointer for a scalar', [inout(f32), inout(f32), input(f32), u32]],
    ['an integer for a float', [inout(f32), i32, input(f32), u32]],
    ['a float for an integer', [inout(f32), f32, input(f32), f32]],
    ['the wrong width', [inout(f32), f64, input(f32), u32]],
    ['what is no declaration', [inout(f32), 'f32', input(f32), u32]],
    ['no array', { y: f32 }],
  ])('refuses %s', async (_, signature) => {
    const module = await host.load(ELEMENTWISE);
    const error = await failure(() => module.kernel('saxpy', signature as never));
    expect(error.code).toBe('ERR_CUDA_INVALID_ARGUMENT');
    expect(error.argument).toMatch(/^signature/);
  });

  test('a declared pointer takes buffers of its dtype only, with how to reinterpret', async () => {
    const saxpy = (await host.load(ELEMENTWISE)).kernel('saxpy', [
      inout(f32),
      f32,
      input(f32),
      u32,
    ]);
    using y = host.device.alloc(f32, 4);
    using x = host.device.alloc(i32, 4);
    const error = await failure(() => saxpy.launch(host.stream, ONE, y, 1, x, 4));
    expect(error).toMatchObject({ argument: 'args[2]' });
    expect(error.message).toContain('reinterpret');
    y.fill(host.stream, 1);
    x.fill(host.stream, 0x40000000);
    saxpy.launch(host.stream, { grid: 1, block: 4 }, y, 3, x.reinterpret(f32), 4);
    expect([...(await y.read(host.stream))]).toEqual([7, 7, 7, 7]);
  });

  test('a declared pointer takes no number', async () => {
    const saxpy = (await host.load(ELEMENTWISE)).kernel('saxpy', [
      inout(f32),
      f32,
      input(f32),
      u32,
    ]);
    using y = host.device.alloc(f32, 4);
    expect(await failure(() => saxpy.launch(host.stream, ONE, y, 1, 0, 4))).toMatchObject({
      argument: 'args[2]',
    });
  });

  test('an output that overlaps another argument is refused', async () => {
    const saxpy = (await host.load(ELEMENTWISE)).kernel('saxpy', [
      inout(f32),
      f32,
      input(f32),
      u32,
    ]);
    using y = host.device.alloc(f32, 8);
    const error = await failure(() =>
      saxpy.launch(host.stream, ONE, y.slice(0, 4), 1, y.slice(3, 7), 4),
    );
    expect(error.message).toContain('overlaps args[2]');
    expect(await failure(() => saxpy.launch(host.stream, ONE, y, 1, y, 8))).toMatchObject({
      argument: 'args[0]',
    });
  });

  test('parts of one buffer that do not overlap are taken', async () => {
    const saxpy = (await host.load(ELEMENTWISE)).kernel('saxpy', [
      inout(f32),
      f32,
      input(f32),
      u32,
    ]);
    using y = host.device.alloc(f32, 8);
    y.write(host.stream, Float32Array.from(range(8)));
    saxpy.launch(host.stream, { grid: 1, block: 4 }, y.slice(0, 4), 10, y.slice(4), 4);
    expect([...(await y.read(host.stream))]).toEqual([40, 51, 62, 73, 4, 5, 6, 7]);
  });

  test('inputs may overlap', async () => {
    const kernel = (await host.load(ELEMENTWISE)).kernel('saxpy', [
      input(f32),
      f32,
      input(f32),
      u32,
    ]);
    using y = host.device.alloc(f32, 8);
    y.fill(host.stream, 1);
    await kernel.launch(host.stream, { grid: 1, block: 8 }, y, 0, y, 8);
  });

  test('an undeclared kernel takes one buffer twice', async () => {
    const kernel = (await host.load(ELEMENTWISE)).kernel('saxpy');
    using y = host.device.alloc(f32, 3);
    y.write(host.stream, Float32Array.of(1, 2, 3));
    kernel.launch(host.stream, { grid: 1, block: 4 }, y, 2, y, 3);
    expect([...(await y.read(host.stream))]).toEqual([3, 6, 9]);
  });

  test('is shown with its name and parameters', async () => {
    expect(
      String((await host.load(ELEMENTWISE)).kernel('saxpy', [inout(f32), f32, input(f32), u32])),
    ).toBe('Kernel saxpy(f32*, f32, f32*, u32)');
  });
});
