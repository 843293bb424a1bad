/**
 * Complex numbers: interleaved pairs on the host, views of their parts, and the functions that
 * refuse them.
 */
import { complex128, complex64, f32, f64, graphIf, input, output, u32 } from 'async-cuda/core';
import type { CoreDevice } from 'async-cuda/core';
import { kernel, struct } from 'async-cuda/kernels';
import { add, exp, gather, matmul, sort, sum, transpose, where } from 'async-cuda/library';
import {
  arange,
  eye,
  full,
  linspace,
  ones,
  prepare,
  rand,
  readNpy,
  tensor,
  zeros,
} from 'async-cuda/tensor';
import { describe, expect, expectTypeOf, test } from 'vitest';

import { failure, onDevice } from '../core/test-device.js';

const PAIRS = [
  [1, -2],
  [3.5, 0],
  [-0, Infinity],
  [4, 5],
  [6, 7],
  [8, 9],
] as const;

onDevice('Complex numbers', (host) => {
  const device = (): CoreDevice => host.device;

  describe.each([
    ['complex64', complex64, f32, Float32Array],
    ['complex128', complex128, f64, Float64Array],
  ] as const)('%s', (name, dtype, part, Host) => {
    const interleaved = (): Float32Array | Float64Array => Host.from(PAIRS.flat());
    const made = (): ReturnType<typeof tensor<'complex64', [2, 3]>> =>
      tensor(device(), dtype as typeof complex64, PAIRS, [2, 3]);

    test('are pairs on the host, with the real part first', async () => {
      using x = await made();
      expect(await x.read()).toEqual(interleaved());
      expect(await x.slice(1, 2).item()).toEqual([8, 9]);
      const into = new Host(12);
      await x.read({ into: into as never });
      expect(into).toEqual(interleaved());
    });

    test('have views of their parts, through which they are written', async () => {
      using x = await made();
      const [re, im] = [x.real(), x.imag()];
      expect([re.dtype.name, im.dtype.name]).toEqual([part.name, part.name]);
      expect([re.shape, re.strides, re.layout.offset]).toEqual([[2, 3], [6, 2], 0]);
      expect([im.strides, im.layout.offset]).toEqual([[6, 2], 1]);
      expect(re.buffer.memory).toBe(x.buffer.memory);
      expect([...(await re.read())]).toEqual(PAIRS.map(([real]) => real));
      expect([...(await im.read())]).toEqual(PAIRS.map(([, imaginary]) => imaginary));
      await im.fill(0.5);
      expect([...(await x.read())]).toEqual(PAIRS.flatMap(([real]) => [real, 0.5]));
      const column = x.transpose().slice(1);
      expect([...(await column.real().read())]).toEqual([3.5, 6]);
      const last = x.slice([null, null, -1], 2).imag();
      expect([...(await last.read())]).toEqual([0.5, 0.5]);
    });

    test('are the same bytes as twice as many floats', async () => {
      using x = await made();
      const floats = x.reinterpret(part as typeof f32);
      expect(floats.shape).toEqual([2, 6]);
      expect([...(await floats.read())]).toEqual(PAIRS.flat());
      const back = floats.reinterpret(dtype as typeof complex64);
      expect(back.layout).toEqual(x.layout);
    });

    test('are filled with a pair', async () => {
      using unit = await ones(device(), dtype, [2]);
      expect([...(await unit.read())]).toEqual([1, 0, 1, 0]);
      using same = await full(device(), dtype, [3], [2, 2]);
      expect([...(await same.read())]).toEqual([2, 2, 2, 2, 2, 2]);
    });

    test('values that are not pairs are refused', async () => {
      for (const value of [1, [1], [1, 2, 3], ['1', 2], 1n]) {
        const error = await failure(() => full(device(), dtype, [1], value as never));
        expect(error.message).toContain(`a pair [real, imaginary] of numbers for dtype ${name}`);
      }
      const listed = await failure(() => tensor(device(), dtype, [[1, 2], 3] as never));
      expect(listed.message).toContain(`source[1]: expected a pair [real, imaginary]`);
      const odd = await failure(() => tensor(device(), dtype, new Host(3) as never));
      expect(odd.message).toContain('real and imaginary parts in turn');
    });

    test('arithmetic with them is refused, with what to write instead', async () => {
      using x = await made();
      using indices = await zeros(device(), f32, [1]);
      const parts = `x.real() and x.imag() are tensors of ${part.name}`;
      const given = x as never;
      for (const call of [
        () => add(given, given),
        () => exp(given),
        () => sum(given),
        () => sort(given),
        () => matmul(given, given),
        () => transpose(given),
        () => gather(given, indices as never),
        () => where(given, given, given),
        () => x.convert(part),
        () => kernel('none', { y: input(dtype) } as never, (() => undefined) as never),
      ]) {
        const error = await failure(async () => await (call() as unknown));
        expect(error.name).toBe('CudaArgumentError');
        expect(error.message).toContain(name);
        expect(error.message).toContain(parts);
      }
      using reals = await zeros(device(), part, [2, 3]);
      const converted = await failure(() => reals.copyFrom(x as never).then());
      expect(converted.message).toContain(parts);
      expect((await failure(() => x.copyFrom(reals as never).then())).message).toContain(parts);
    });

    test('sequences, random numbers and scalars of them are refused', async () => {
      for (const call of [
        () => arange(device(), dtype as never, 3),
        () => linspace(device(), dtype as never, 0, 1, 3),
        () => eye(device(), dtype as never, 3),
        () => rand(device(), dtype as never, [3]),
        () => struct({ z: dtype } as never),
      ]) {
        const error = await failure(call);
        expect(error.name).toBe('CudaArgumentError');
        expect(error.message).toContain(name);
      }
      await prepare(device(), dtype);
      const texels = await failure(() => device().allocArray(dtype, { width: 4 }));
      expect(texels.message).toContain(name);
    });

    test('kernels of a module take them by pointers, and by value as bytes', async () => {
      const word = part.bytes * 8;
      const module = await device().loadModule(`.version 7.0
.target sm_70
.address_size 64
.visible .entry conjugate(.param .u64 out, .param .u64 in, .param .u32 n) {
  .reg .u64 %a<4>; .reg .u32 %i, %n; .reg .pred %p; .reg .f${word} %re, %im;
  mov.u32 %i, %tid.x; ld.param.u32 %n, [n]; setp.ge.u32 %p, %i, %n; @%p ret;
  ld.param.u64 %a0, [out]; ld.param.u64 %a1, [in];
  mul.wide.u32 %a2, %i, ${dtype.bytes}; add.u64 %a0, %a0, %a2; add.u64 %a1, %a1, %a2;
  ld.global.v2.f${word} {%re, %im}, [%a1]; neg.f${word} %im, %im;
  st.global.v2.f${word} [%a0], {%re, %im};
  ret;
}`);
      const conjugate = module.kernel('conjugate', [output(dtype), input(dtype), u32]);
      using x = await made();
      using y = await zeros(device(), dtype as typeof complex64, [2, 3]);
      conjugate.launch(
        device().stream,
        { grid: 1, block: 32 },
        y.dense() as never,
        x.dense() as never,
        6,
      );
      expect([...(await y.read())]).toEqual(
        PAIRS.flatMap(([real, imaginary]) => [real, -imaginary]),
      );
      const error = await failure(() => module.kernel('conjugate', [dtype] as never));
      expect(error.message).toContain(`struct(${dtype.bytes}, ${part.bytes})`);
    });
  });

  test('conditions refuse them', async () => {
    using flag = await zeros(device(), complex64, [1]);
    const error = await failure(() => graphIf(device().stream, flag.dense() as never, () => {}));
    expect(error.message).toMatch(/whole numbers or bool|capture/);
  });
});

test('npy files of the other byte order are swapped part by part', () => {
  const header = `{'descr': '>c8', 'fortran_order': False, 'shape': (1,), }`.padEnd(117) + '\n';
  const file = new Uint8Array(10 + header.length + 8);
  file.set([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1, 0]);
  const view = new DataView(file.buffer);
  view.setUint16(8, header.length, true);
  file.set(new TextEncoder().encode(header), 10);
  view.setFloat32(10 + header.length, 1.5);
  view.setFloat32(14 + header.length, -2);
  const { dtype, bytes } = readNpy(file);
  expect(dtype).toBe(complex64);
  expect([...new Float32Array(bytes.slice().buffer)]).toEqual([1.5, -2]);
});

test('types exclude them where functions refuse them', () => {
  // Never called: the type checker reads it.
  const types = async (device: CoreDevice): Promise<void> => {
    const x = await zeros(device, complex64, [2, 3]);
    expectTypeOf(await x.read()).toEqualTypeOf<Float32Array>();
    expectTypeOf(await x.item()).toEqualTypeOf<readonly [real: number, imaginary: number]>();
    expectTypeOf(x.real().dtype.name).toEqualTypeOf<'f32'>();
    expectTypeOf((await zeros(device, complex128, [1])).imag().dtype.name).toEqualTypeOf<'f64'>();
    const floats = await zeros(device, f32, [2, 3]);
    // @ts-expect-error -- floats have no parts
    floats.real();
    // @ts-expect-error -- arithmetic does not take complex numbers
    add(x, x);
    // @ts-expect-error -- functions do not take them
    exp(x);
    // @ts-expect-error -- reductions do not take them
    sum(x);
    // @ts-expect-error -- complex numbers have no order
    sort(x);
    // @ts-expect-error -- products of matrices do not take them
    matmul(x, x);
    // @ts-expect-error -- sequences do not have them
    arange(device, complex64, 3);
    // @ts-expect-error -- random numbers are real
    rand(device, complex64, [3]);
    // @ts-expect-error -- kernels in TypeScript do not take tensors of them
    kernel('none', { a: input(complex64) }, () => undefined);
    // @ts-expect-error -- kernels in TypeScript do not take them as scalars
    kernel('none', { a: complex64 }, () => undefined);
    // @ts-expect-error -- structures do not have such fields
    struct({ a: complex64 });
    // @ts-expect-error -- an element is a pair
    full(device, complex64, [1], 1);
    full(device, complex64, [1], [1, 0]);
    tensor(device, complex64, [
      [1, 2],
      [3, 4],
    ]);
    // @ts-expect-error -- elements of a list are pairs as well
    tensor(device, complex64, [1, 2]);
  };
  expect(types).toBeTypeOf('function');
});
