/** Every dtype of the table: created, copied, viewed, read, saved and loaded. */
import { DTYPES } from 'async-cuda/core';
import type { DTypeName, CoreDevice } from 'async-cuda/core';
import {
  DLDeviceType,
  Tensor,
  fromDLPack,
  full,
  layouts,
  loadNpy,
  loadSafetensors,
  ones,
  saveNpy,
  saveSafetensors,
  tensor,
  toDLPack,
  uninitialized,
  zeros,
} from 'async-cuda/tensor';
import type { AnyTensor } from 'async-cuda/tensor';
import { describe, expect, test } from 'vitest';

import { DTYPE_FACTS, DTYPE_NAMES, isWide } from '../../src/ground/dtype.js';
import { countOf, fillOf, inArray, valuesOf, zeroOf } from '../core/dtype-values.js';
import { onPairs } from '../core/device-pair.js';
import { failure, onDevice, range } from '../core/test-device.js';

type Value = number | bigint;

/** A tensor whose shape is not known to the type checker. */
type Loose = Omit<AnyTensor, 'slice'> & { slice(...indices: unknown[]): AnyTensor };

/** The elements in the order of the view, as the host array contains them. */
function picked(values: ArrayLike<Value>, parts: number, view: AnyTensor): Value[] {
  return [...layouts.elements(view.layout as never)].flatMap((at) =>
    range(parts).map((part) => values[at * parts + part]!),
  );
}

const one = (name: DTypeName): unknown =>
  DTYPE_FACTS[name].part !== null ? [1, 0] : isWide(name) ? 1n : 1;

/** `count` elements, repeating those of the table. */
function manyOf(name: DTypeName, count: number): { length: number; slice(): never } {
  const values = valuesOf(name);
  const parts = values.length / countOf(name);
  const array = new (values.constructor as Uint8ArrayConstructor)(count * parts);
  for (let i = 0; i < array.length; i++) array[i] = values[i % values.length] as never;
  return array as never;
}

onDevice('Tensors of every dtype', (host) => {
  const device = (): CoreDevice => host.device;

  describe.each(DTYPE_NAMES)('%s', (name) => {
    const dtype = DTYPES[name];
    const values = valuesOf(name) as unknown as ArrayLike<Value>;
    const count = countOf(name);
    const parts = values.length / count;
    const given = values as never;

    test('is read as it was created', async () => {
      using x = await tensor(device(), dtype, given);
      expect(x.shape).toEqual([count]);
      expect(x.byteLength).toBe(count * dtype.bytes);
      const read = (await x.read()) as unknown as ArrayLike<Value>;
      expect(read.constructor).toBe(values.constructor);
      expect(read).toEqual(values);
      expect(Array.from(read).every((value, i) => Object.is(value, values[i]))).toBe(true);
      using same = await uninitialized(device(), dtype, [count]);
      expect(await same.write(given).andThen((written) => written.read())).toEqual(values);
      expect(await same.writeBits(await x.readBits()).andThen((y) => y.read())).toEqual(values);
    });

    test('is created from a list of elements', async () => {
      const list = range(count).map((i) => {
        const each = Array.from(values).slice(i * parts, (i + 1) * parts);
        return parts === 1 ? each[0] : each;
      });
      using x = await tensor(device(), dtype, list as never, [1, count]);
      expect(await x.read()).toEqual(values);
    });

    test('is filled', async () => {
      const expected = (element: unknown): Value[] => range(6).flatMap(() => inArray(element));
      using nothing = await zeros(device(), dtype, [2, 3]);
      expect([...(await nothing.read())]).toEqual(expected(zeroOf(name)));
      using units = await ones(device(), dtype, [2, 3]);
      expect([...(await units.read())]).toEqual(expected(one(name)));
      using filled = await full(device(), dtype, [2, 3], fillOf(name) as never);
      expect([...(await filled.read())]).toEqual(expected(fillOf(name)));
      // Every other column, by way of a kernel.
      const columns = (nothing as unknown as Loose).slice([], [null, null, 2]);
      await columns.fill(fillOf(name) as never);
      expect([...(await nothing.read())]).toEqual(
        range(6).flatMap((i) => inArray(i % 3 === 1 ? zeroOf(name) : fillOf(name))),
      );
    });

    test('item reads one element', async () => {
      using filled = await full(device(), dtype, [1], fillOf(name) as never);
      expect(await filled.item()).toEqual(fillOf(name));
    });

    test('views are read and copied with their steps', async () => {
      const array = manyOf(name, 60);
      using x = await tensor(device(), dtype, array as never, [3, 4, 5]);
      const loose = x as unknown as Loose;
      const views = [
        x.permute([2, 0, 1]),
        loose.slice(1),
        loose.slice([null, null, -1], [1, 4, 2], [null, null, -2]),
        (x.reshape([5, 12]) as unknown as Loose).slice([1, 5], [3, 11, 3]),
        (loose.slice([0, 1]) as unknown as { broadcastTo(shape: number[]): unknown }).broadcastTo([
          2, 4, 5,
        ]),
        x.transpose(),
      ] as unknown as AnyTensor[];
      for (const view of views) {
        const expected = picked(array as never, parts, view);
        expect([...(await view.read())]).toEqual(expected);
        using copy = await view.contiguous();
        expect([...(await copy.read())]).toEqual(expected);
        using twin = await uninitialized(device(), dtype, [...view.shape]);
        await twin.copyFrom(view as never);
        expect(await twin.readBits()).toEqual(await copy.readBits());
      }
      // Written with steps; the elements between stay.
      using target = await zeros(device(), dtype, [3, 4, 5]);
      const rows = [
        [null, null, 2],
        [1, 4, 2],
      ];
      const odd = (target as unknown as Loose).slice(...rows);
      await odd.copyFrom(loose.slice(...rows) as never);
      const written = new Set(layouts.elements(odd.layout as never));
      expect([...(await target.read())]).toEqual(
        range(60).flatMap((i) =>
          range(parts).map((part) =>
            written.has(i)
              ? (array as never as Value[])[i * parts + part]
              : inArray(zeroOf(name))[0],
          ),
        ),
      );
    });

    test('page-locked and managed memory hold it', async () => {
      await using pinned = await device().pinned(dtype, count);
      pinned.bits().set((await device().alloc(dtype, count).readBits(device().stream)) as never);
      using x = await tensor(device(), dtype, given);
      await x.readTo(pinned as never);
      expect(pinned.bits()).toEqual(await x.readBits());
      if (DTYPE_FACTS[name].narrow === null) expect([...pinned.view()]).toEqual(Array.from(values));
      await using managed = await device().managed(dtype, count);
      expect(managed.bits().length).toBe(count * parts);
    });

    test('is read in chunks', async () => {
      using x = await tensor(device(), dtype, given);
      const read: Value[] = [];
      for await (const chunk of x.buffer.chunks(device().stream, { length: 3 }))
        read.push(...(chunk as unknown as Value[]));
      expect(read).toEqual(Array.from(values));
    });

    test('an image of two channels is filled and copied', async () => {
      using image = host.device.alloc2D(dtype, { width: 3, height: 2, channels: 2 });
      await image.fill(device().stream, fillOf(name) as never);
      expect([...(await image.read(device().stream))]).toEqual(
        range(12).flatMap(() => inArray(fillOf(name))),
      );
    });

    test('is saved to npy and loaded', async () => {
      using x = await tensor(device(), dtype, given);
      const bytes = await saveNpy(x);
      using y = await loadNpy(device(), bytes, { dtype });
      expect(y.dtype).toBe(dtype);
      expect(await y.readBits()).toEqual(await x.readBits());
    });

    test('is saved to safetensors and loaded, or refused without such a type', async () => {
      using x = await tensor(device(), dtype, given);
      if (DTYPE_FACTS[name].safetensors === null) {
        const error = await failure(() => saveSafetensors({ x }));
        expect(error.name).toBe('CudaArgumentError');
        expect(error.message).toContain(name);
        return;
      }
      const loaded = await loadSafetensors(device(), await saveSafetensors({ x }));
      const y = loaded.get('x')!;
      expect(y.dtype).toBe(dtype);
      expect(await y.readBits()).toEqual(await x.readBits());
      y.close();
    });

    test('is converted to its DLPack type and back', () => {
      const described = toDLPack({
        dtype,
        layout: layouts.contiguous([2, 3]),
        address: 4096n,
        device: { type: DLDeviceType.kDLCPU, id: 0 },
      });
      expect(described.dtype.bits).toBe(dtype.bytes * 8);
      expect(fromDLPack(described).dtype).toBe(dtype);
    });

    test('is exported and imported by DLPack', async () => {
      using x = await tensor(device(), dtype, given);
      using y = await Tensor.fromDLPack(device(), await x.toDLPack());
      expect(y.dtype).toBe(dtype);
      expect(await y.read()).toEqual(values);
    });
  });
});

onPairs('Tensors of every dtype on another device', (pair) => {
  test.each(DTYPE_NAMES)('%s', async (name) => {
    const array = manyOf(name, 12);
    using x = await tensor(pair.a, DTYPES[name], array as never, [3, 4]);
    using y = (await (x.transpose() as unknown as AnyTensor).to(pair.b)) as AnyTensor & Disposable;
    const parts = array.length / 12;
    expect([...(await y.read())]).toEqual(
      picked(array as never, parts, x.transpose() as unknown as AnyTensor),
    );
  });
});
