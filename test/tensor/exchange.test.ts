/** Tensors exported and imported by DLPack: the owner of the memory, and when it is freed. */
import { f16, f32, i32 } from 'async-cuda/core';
import type { CoreDevice, DeviceBuffer } from 'async-cuda/core';
import { setDefaultDevice, zip } from 'async-cuda/ops';
import { DLDeviceType, Tensor, arange, callKernel, prepare, zeros } from 'async-cuda/tensor';
import type { DLTensor } from 'async-cuda/tensor';
import { beforeAll, describe, expect, test, vi } from 'vitest';

import { collectGarbage } from '../core/garbage.js';
import { ELEMENTWISE } from '../core/kernels/elementwise.js';
import {
  Gate,
  failure,
  onCpu,
  onDevice,
  openTestDevice,
  stillPending,
  turns,
} from '../core/test-device.js';
import { WAITING } from '../core/kernels/waiting.js';

const own = onCpu ? DLDeviceType.kDLExtDev : DLDeviceType.kDLCUDA;

/** Expects that the deleter is called, and not again. */
async function once(calls: readonly string[]): Promise<void> {
  await vi.waitFor(
    () => {
      expect(calls).toEqual(['deleted']);
    },
    { timeout: 5000 },
  );
  await turns(3);
  expect(calls).toEqual(['deleted']);
}

/** Foreign memory: it is allocated without a tensor, and its address is known. */
async function foreign(
  device: CoreDevice,
  values: readonly number[],
): Promise<{
  buffer: DeviceBuffer<'i32'>;
  address: bigint;
  calls: string[];
  describe: (more?: Partial<DLTensor>) => DLTensor;
}> {
  const buffer = await device.allocPlain(i32, values.length);
  await buffer.write(device.stream, Int32Array.from(values));
  const address = BigInt((buffer.memory as unknown as { address: number }).address);
  const calls: string[] = [];
  const describe = (more: Partial<DLTensor> = {}): DLTensor => ({
    device: { type: own, id: 0 },
    data: address,
    dtype: { code: 0, bits: 32, lanes: 1 },
    shape: [values.length],
    strides: null,
    byteOffset: 0,
    deleter: () => {
      calls.push('deleted');
    },
    ...more,
  });
  return { buffer, address, calls, describe };
}

onDevice('DLPack', (host) => {
  const device = (): CoreDevice => host.device;
  beforeAll(async () => {
    setDefaultDevice(device());
    await prepare(device(), i32, f32, f16);
  });

  test('foreign memory is used in place, with strides and offset, and freed once', async () => {
    const { buffer, calls, describe } = await foreign(device(), [0, 1, 2, 3, 4, 5, 6, 7]);
    const x = await Tensor.fromDLPack(
      device(),
      describe({ shape: [2, 3], strides: [1, 2], byteOffset: 8 }),
      { label: 'theirs' },
    );
    expect([x.dtype, x.shape, x.strides, x.isView, x.label]).toEqual([
      i32,
      [2, 3],
      [1, 2],
      false,
      'theirs',
    ]);
    expect([...((await x.read()) as Int32Array)]).toEqual([2, 4, 6, 3, 5, 7]);
    await (x as Tensor<'i32', [2, 3]>).slice(0).fill(-1);
    const view = (x as Tensor<'i32', [2, 3]>).transpose();
    expect([...(await view.read())]).toEqual([-1, 3, -1, 5, -1, 7]);
    x.close();
    x.close();
    await once(calls);
    expect((await failure(() => view.read())).code).toBe('ERR_CUDA_DISPOSED');
    expect([...(await buffer.read(device().stream))]).toEqual([0, 1, -1, 3, -1, 5, -1, 7]);
    buffer.close();
  });

  test('foreign memory is freed when all work that uses it is over, not before', async () => {
    const { buffer, calls, describe } = await foreign(device(), Array<number>(64).fill(3));
    const module = await host.load(WAITING);
    const gate = await Gate.of(module);
    using word = device().alloc(i32, 1);
    const stream = device().createStream();
    const x = (await Tensor.fromDLPack(device(), describe())) as Tensor<'i32', [number]>;
    const held = module.kernel('hold').launch(stream, { grid: 1, block: 1 }, word);
    const filled = x.fill(9).runOn(stream);
    x.close();
    expect(await stillPending(filled)).toBe(true);
    expect(calls).toEqual([]);
    await gate.open();
    await Promise.all([held, filled]);
    await once(calls);
    expect((await buffer.read(device().stream))[63]).toBe(9);
    buffer.close();
    stream.close();
  });

  test('kernels, copies and graphs take foreign memory as any tensor', async () => {
    const { buffer, calls, describe } = await foreign(device(), Array<number>(64).fill(1));
    const add1 = (await host.load(ELEMENTWISE)).kernel('add1');
    const x = (await Tensor.fromDLPack(device(), describe())) as Tensor<'i32', [number]>;
    const graph = await callKernel(add1, { grid: 1, block: 64 }, x, 64).first().capture();
    await graph.replay();
    await graph.replay();
    using copy = await x.convert(f32);
    expect((await copy.read())[5]).toBe(3);
    await graph.close();
    expect(calls).toEqual([]);
    x.close();
    await once(calls);
    buffer.close();
  });

  test('memory without a deleter is referenced for as long as it is used', async () => {
    const { buffer, calls, describe } = await foreign(device(), [1, 2]);
    const { deleter: _, ...lent } = describe();
    for (let i = 0; i < 2; i++) {
      using x = await Tensor.fromDLPack(device(), { ...lent, owner: {} });
      expect([...((await x.read()) as Int32Array)]).toEqual([1, 2]);
    }
    expect(calls).toEqual([]);
    buffer.close();
  });

  test('read-only memory is not written', async () => {
    const { buffer, describe } = await foreign(device(), [1, 2]);
    using x = (await Tensor.fromDLPack(device(), describe({ readOnly: true }))) as Tensor<
      'i32',
      [number]
    >;
    expect((await failure(() => x.fill(0))).message).toContain('must not be written');
    expect(
      (
        await failure(() => {
          x.buffer.fill(device().stream, 0);
        })
      ).message,
    ).toContain('must not be written');
    expect((await failure(() => x.buffer.fill(device().stream, 0))).message).toContain(
      'must not be written',
    );
    const again = await x.toDLPack();
    expect(again.readOnly).toBe(true);
    again.deleter!();
    expect([...(await x.read())]).toEqual([1, 2]);
    buffer.close();
  });

  test('an exported tensor is kept until its deleter is called', async () => {
    const x = await arange(device(), i32, 6);
    const view = x.reshape([2, 3]).transpose();
    const descriptor = await view.fill(4).andThen((filled) => filled.toDLPack());
    expect(descriptor).toMatchObject({
      device: { type: own, id: 0 },
      dtype: { code: 0, bits: 32, lanes: 1 },
      shape: [3, 2],
      strides: [1, 3],
      byteOffset: 0,
    });
    const { handle } = x.buffer.memory;
    const address = (): number => device().runtime.shared.values[handle]!;
    x.close();
    expect((await failure(() => x.read())).code).toBe('ERR_CUDA_DISPOSED');
    // Closed, and still allocated: the importer reads it at its address.
    const { deleter: _, ...seen } = descriptor;
    const back = await Tensor.fromDLPack(device(), { ...seen, owner: {} });
    expect([...((await back.read()) as Int32Array)]).toEqual(Array(6).fill(4));
    back.close();
    await device().finished();
    expect(BigInt(address())).toBe(descriptor.data);
    descriptor.deleter!();
    expect(
      (
        await failure(() => {
          descriptor.deleter!();
        })
      ).message,
    ).toContain('deleter: called twice');
    await device().finished();
    expect(address()).toBe(0);
  });

  test('uses of a tensor and of its reimported descriptor are ordered', async () => {
    const x = await zeros(device(), i32, [64]);
    const y = (await Tensor.fromDLPack(device(), await x.toDLPack())) as Tensor<'i32', [number]>;
    const [one, other] = [device().createStream(), device().createStream()];
    const add1 = (await host.load(ELEMENTWISE)).kernel('add1');
    for (let i = 0; i < 20; i++) {
      callKernel(add1, { grid: 1, block: 64 }, x, 64).runOn(one);
      callKernel(add1, { grid: 1, block: 64 }, y, 64).runOn(other);
    }
    expect((await x.read())[0]).toBe(40);
    const graph = await zip(
      callKernel(add1, { grid: 1, block: 64 }, x, 64),
      callKernel(add1, { grid: 1, block: 64 }, y, 64).on(other),
    ).capture(one);
    await graph.replay();
    expect((await y.read())[63]).toBe(42);
    await graph.close();
    x.close();
    expect((await y.read())[0]).toBe(42);
    y.close();
    one.close();
    other.close();
  });

  test('two tensors of the same foreign memory overlap where they share bytes', async () => {
    const { buffer, address, describe } = await foreign(device(), [0, 1, 2, 3, 4, 5, 6, 7]);
    const take = async (from: number, length: number, step = 1): Promise<Tensor<'i32', [number]>> =>
      (await Tensor.fromDLPack(
        device(),
        describe({
          data: address + BigInt(from * 4),
          shape: [length],
          strides: [step],
          deleter: () => undefined,
        }),
      )) as Tensor<'i32', [number]>;
    const [low, middle, high, even, odd] = [
      await take(0, 4),
      await take(2, 4),
      await take(4, 4),
      await take(0, 4, 2),
      await take(1, 4, 2),
    ];
    for (const [target, source] of [
      [low, middle],
      [middle, low],
      [middle, high],
      [low, even],
      [even, high],
    ] as const) {
      expect((await failure(() => target.copyFrom(source))).message).toBe(
        'source: overlaps the target. Copy it with dup() first.',
      );
    }
    expect(
      (await failure(() => low.buffer.copyFrom(device().stream, middle.buffer))).message,
    ).toContain('source: overlaps this buffer');
    await high.copyFrom(low);
    await odd.copyFrom(even);
    expect([...(await buffer.read(device().stream))]).toEqual([0, 0, 2, 2, 0, 0, 2, 2]);
    // A tensor of ours, imported again.
    const ours = await arange(device(), i32, 6);
    const back = (await Tensor.fromDLPack(device(), await ours.slice([2, 6]).toDLPack())) as Tensor<
      'i32',
      [number]
    >;
    expect((await failure(() => back.copyFrom(ours.slice([0, 4])))).message).toContain(
      'overlaps the target',
    );
    await back.slice([2, 4]).copyFrom(ours.slice([0, 2]));
    expect([...(await ours.read())]).toEqual([0, 1, 2, 3, 0, 1]);
    for (const each of [low, middle, high, even, odd, back, ours]) each.close();
    buffer.close();
  });

  test('a descriptor is imported once; a refused one stays its owner’s', async () => {
    const { buffer, calls, describe } = await foreign(device(), [1, 2]);
    const wrong = describe({ data: 64n });
    expect((await failure(() => Tensor.fromDLPack(device(), wrong))).message).toContain(
      'address: expected an address of the driver',
    );
    expect((await failure(() => Tensor.fromDLPack(device(), wrong))).message).toContain(
      'address: expected an address of the driver',
    );
    const descriptor = describe();
    const x = await Tensor.fromDLPack(device(), descriptor);
    expect((await failure(() => Tensor.fromDLPack(device(), descriptor))).message).toContain(
      'can be taken over once',
    );
    expect(calls).toEqual([]);
    x.close();
    await once(calls);
    buffer.close();
  });

  test('memory of another device, of the host, or too little of it is refused', async () => {
    const { buffer, describe } = await foreign(device(), [1, 2]);
    const refused = async (more: Partial<DLTensor>): Promise<string> =>
      (await failure(() => Tensor.fromDLPack(device(), describe(more)))).message;
    expect(await refused({ device: { type: own, id: 7 } })).toContain(
      'descriptor.device: expected',
    );
    expect(await refused({ device: { type: DLDeviceType.kDLCPU, id: 0 } })).toContain(
      'make a typed array of it',
    );
    expect(await refused({ shape: [2 ** 30] })).toMatch(
      /address: expected \d+ bytes of one allocation/,
    );
    buffer.close();
  });

  test('a tensor without elements is exported and imported', async () => {
    using x = await zeros(device(), f16, [0, 3]);
    using y = await Tensor.fromDLPack(device(), await x.toDLPack());
    expect([y.shape, y.dtype, ((await y.read()) as Float32Array).length]).toEqual([[0, 3], f16, 0]);
  });

  test('export works on a thread that blocks, and not in a graph', async () => {
    using x = await arange(device(), i32, 3);
    const descriptor = x
      .fill(2)
      .andThen((filled) => filled.toDLPack())
      .sync();
    expect(descriptor.shape).toEqual([3]);
    descriptor.deleter!();
    expect((await failure(() => x.toDLPack().capture())).message).toContain(
      'hand over graph.output',
    );
  });

  test('a deleter that throws is reported to the device', async () => {
    const { buffer, describe } = await foreign(device(), [1]);
    const x = await Tensor.fromDLPack(
      device(),
      describe({
        deleter: () => {
          throw new Error('of theirs');
        },
      }),
    );
    x.close();
    await vi.waitFor(() => {
      expect(host.errors).toHaveLength(1);
    });
    expect(host.errors.splice(0).map(({ message }) => message)).toEqual([
      expect.stringContaining('of theirs'),
    ]);
    buffer.close();
  });
});

describe('the end of the device', () => {
  test('frees imported tensors', async () => {
    const device = await openTestDevice();
    const { calls, describe } = await foreign(device, [1, 2]);
    await Tensor.fromDLPack(device, describe());
    await device.close();
    expect(calls).toEqual(['deleted']);
  });

  test('exported tensors can be freed after it', async () => {
    const device = await openTestDevice();
    const descriptor = await zeros(device, i32, [4]).andThen((x) => x.toDLPack());
    await device.close();
    expect(() => {
      descriptor.deleter!();
    }).not.toThrow();
  });

  test('an unreferenced tensor of foreign memory frees it, unless views exist', async () => {
    await using device = await openTestDevice();
    device.on('error', () => undefined);
    const { buffer, calls, describe } = await foreign(device, [1, 2, 3]);
    let view: Tensor<'i32', [number]> | undefined = (
      (await Tensor.fromDLPack(device, describe())) as Tensor<'i32', [number]>
    ).slice([0, 2]) as unknown as Tensor<'i32', [number]>;
    await collectGarbage();
    expect([calls, [...(await view.read())]]).toEqual([[], [1, 2]]);
    view = undefined;
    for (let i = 0; i < 50 && calls.length === 0; i++) await collectGarbage(1);
    expect(calls).toEqual(['deleted']);
    buffer.close();
  });

  test('an imported tensor outlives its descriptor; unused descriptors are freed', async () => {
    await using device = await openTestDevice();
    const collect = async (until: () => boolean): Promise<void> => {
      for (let i = 0; i < 50 && !until(); i++) await collectGarbage(1);
    };
    const address = (handle: number): number => device.runtime.shared.values[handle]!;
    const x = await arange(device, i32, 4);
    const y = await Tensor.fromDLPack(device, await x.toDLPack());
    x.close();
    let passes = 0;
    await collect(() => ++passes > 10);
    expect([...((await y.read()) as Int32Array)]).toEqual([0, 1, 2, 3]);
    const { handle } = x.buffer.memory;
    expect(address(handle)).not.toBe(0);
    y.close();
    await vi.waitFor(() => {
      expect(address(handle)).toBe(0);
    });

    const z = await arange(device, i32, 4);
    await z.toDLPack();
    z.close();
    await collect(() => address(z.buffer.memory.handle) === 0);
    expect(address(z.buffer.memory.handle)).toBe(0);
  });
});
