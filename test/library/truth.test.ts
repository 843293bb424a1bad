/**
 * Bytes of bool other than 0 and 1, which files, raw writes, other libraries and CUDA C++ bring:
 * each of them is true, everywhere.
 */
import { Device, bool, f32, i32, input, kernel, output, u8 } from 'async-cuda';
import type { AnyTensor, DeviceOp, Tensor } from 'async-cuda';
import * as library from 'async-cuda/library';
import {
  saveNpy,
  saveSafetensors,
  loadNpy,
  loadSafetensors,
  readNpy,
  readSafetensors,
} from 'async-cuda/tensor';
import * as fc from '../fast-check.js';
import { beforeAll, describe, expect, test } from 'vitest';

import { onDevice } from '../core/test-device.js';

onDevice('Bytes of bool', (host) => {
  let device: Device;
  beforeAll(() => {
    device = Device.of(host.device);
  });

  /** A tensor of exactly these bytes. */
  const raw = (
    bytes: readonly number[],
    shape: number[] = [bytes.length],
  ): DeviceOp<Tensor<'bool', number[]>> =>
    device
      .tensor(u8, Uint8Array.from(bytes), shape)
      .map((tensor) => tensor.reinterpret(bool) as unknown as Tensor<'bool', number[]>);
  const read = async (op: DeviceOp<AnyTensor>): Promise<unknown[]> =>
    Array.from((await op.andThen((tensor) => tensor.read())) as ArrayLike<unknown>);
  const truth = (bytes: readonly number[]): number[] => bytes.map((byte) => Number(byte !== 0));

  const BYTES = fc.array(fc.constantFrom(0, 0, 0, 1, 2, 3, 128, 254, 255), {
    minLength: 1,
    maxLength: 40,
  });

  test('are read as 1, wherever they lie', { tags: 'random' }, async () => {
    await fc.assert(
      fc.asyncProperty(BYTES, async (bytes) => {
        expect(await read(raw(bytes))).toEqual(truth(bytes));
        using x = await raw(bytes);
        const into = new Uint8Array(bytes.length + 3).subarray(3);
        await x.read({ into });
        expect([...into]).toEqual(truth(bytes));
        expect([...(await x.readBits())]).toEqual(bytes);
        if (bytes.length > 1)
          expect(Array.from((await x.slice([1, null, 2]).read()) as ArrayLike<number>)).toEqual(
            truth(bytes).filter((_, i) => i % 2 === 1),
          );
      }),
      { numRuns: 20 },
    );
  });

  test('are read as 1 by transfers in pieces', async () => {
    const bytes = Uint8Array.from({ length: 3_000_001 }, (_, i) =>
      i % 1000 === 7 ? i % 256 : i & 1,
    );
    const expected = bytes.map((byte) => Number(byte !== 0));
    const buffer = host.device.alloc(u8, bytes.length);
    buffer.write(host.stream, bytes);
    const got = await buffer.reinterpret(bool).read(host.stream);
    expect(Buffer.compare(got, expected)).toBe(0);
    expect(Buffer.compare(buffer.reinterpret(bool).readBlocking(host.stream), expected)).toBe(0);
    buffer.close();
  });

  test('are written as 1 from arrays of the host, and as they are by writeBits', async () => {
    const bytes = Uint8Array.of(2, 255, 1, 0);
    using x = await device.tensor(bool, bytes);
    expect([...(await x.readBits())]).toEqual([1, 1, 1, 0]);
    await x.writeBits(bytes);
    expect([...(await x.readBits())]).toEqual([2, 255, 1, 0]);
  });

  test('are sorted with the others that are true', { tags: ['thorough', 'random'] }, async () => {
    // All have one shape, so that there are two kernels.
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.constantFrom(0, 0, 0, 1, 2, 128, 255), { minLength: 32, maxLength: 32 }),
        fc.boolean(),
        async (bytes, descending) => {
          const order = truth(bytes)
            .map((_, i) => i)
            .sort((a, b) => (truth(bytes)[a]! - truth(bytes)[b]!) * (descending ? -1 : 1) || a - b);
          expect(await read(raw(bytes).andThen((x) => library.argSort(x, { descending })))).toEqual(
            order,
          );
          expect(await read(raw(bytes).andThen((x) => library.sort(x, { descending })))).toEqual(
            order.map((i) => truth(bytes)[i]),
          );
        },
      ),
      { numRuns: 10 },
    );
  });

  test('are sorted likewise in long rows, and by topK', { tags: 'thorough' }, async () => {
    const bytes = Array.from({ length: 5000 }, (_, i) => (i * 7919) % 5);
    const order = truth(bytes)
      .map((_, i) => i)
      .sort((a, b) => truth(bytes)[a]! - truth(bytes)[b]! || a - b);
    expect(await read(raw(bytes).andThen((x) => library.argSort(x)))).toEqual(order);
    const { indices } = await raw(bytes).andThen((x) => library.topK(x, 5));
    expect([...(await indices.read())]).toEqual([1, 2, 3, 4, 6]);
  });

  describe('are true to', () => {
    const bytes = [0, 2, 255, 1, 0, 128];
    const other = [1, 0, 4, 8, 0, 0];
    test.each<
      [
        string,
        (x: Tensor<'bool', number[]>, y: Tensor<'bool', number[]>) => DeviceOp<AnyTensor>,
        unknown[],
      ]
    >([
      ['convert', (x) => x.convert(i32) as never, [0, 1, 1, 1, 0, 1]],
      ['convert to bool', (x) => x.convert(bool) as never, [0, 1, 1, 1, 0, 1]],
      ['sum', (x) => library.sum(x) as never, [4n]],
      ['cumsum', (x) => library.cumsum(x) as never, [0n, 1n, 2n, 3n, 3n, 4n]],
      ['all', (x) => library.all(x.slice([1, 4])) as never, [1]],
      ['any', (x) => library.any(x) as never, [1]],
      ['logicalNot', (x) => library.logicalNot(x) as never, [1, 0, 0, 0, 1, 0]],
      ['logicalAnd', (x, y) => library.logicalAnd(x, y) as never, [0, 0, 1, 1, 0, 0]],
      ['logicalXor', (x, y) => library.logicalXor(x, y) as never, [1, 1, 0, 0, 0, 1]],
      ['where', (x, y) => library.where(x, y, false) as never, [0, 0, 1, 1, 0, 0]],
      [
        'transpose',
        (x) => library.transpose(x.reshape([2, 3]) as never) as never,
        [0, 1, 1, 0, 1, 1],
      ],
    ])('%s', async (_, f, expected) => {
      using x = await raw(bytes);
      using y = await raw(other);
      expect(await read(f(x, y))).toEqual(expected);
    });

    test('kernels, and their comparisons of two', async () => {
      const same = kernel(
        'same',
        { out: output(f32), x: input(bool), y: input(bool) },
        ({ out, x, y }, gpu) => {
          const i = gpu.globalId.x;
          if (i < out.length) out[i] = x[i] === y[i] ? 1 : 0;
        },
      );
      using x = await raw(bytes);
      using y = await raw(other);
      expect([
        ...(await same({ out: device.zeros(f32, [6]), x, y }).andThen(({ out }) => out.read())),
      ]).toEqual([0, 0, 1, 1, 1, 0]);
    });

    test('files', async () => {
      using x = await raw(bytes);
      expect([...readNpy(await saveNpy(x)).bytes]).toEqual(truth(bytes));
      expect([...readSafetensors(await saveSafetensors({ x })).tensors.get('x')!.bytes]).toEqual(
        truth(bytes),
      );
      const npy = await saveNpy(x);
      npy.set(bytes, npy.length - bytes.length);
      expect([...(await loadNpy(device, npy).andThen((y) => y.readBits()))]).toEqual(truth(bytes));
      const file = await saveSafetensors({ x });
      file.set(bytes, file.length - bytes.length);
      const tensors = await loadSafetensors(device, file);
      expect([...(await tensors.get('x')!.readBits())]).toEqual(truth(bytes));
      tensors.get('x')!.close();
    });
  });
});
