/** Devices: which one a name opens, their properties, and how they are closed. */
import { CoreDevice, f32 } from 'async-cuda/core';
import { afterEach, describe, expect, test, vi } from 'vitest';

import { failure, onCpu, onDeviceInEachMode, openTestDevice, testDevice } from './test-device.js';

/** Whether the machine has a GPU, whichever device the suite runs on. */
const hasGpu = (await CoreDevice.list()).some(({ kind }) => kind === 'cuda');

describe('Device.list', () => {
  test('ends with the CPU device, which every machine has', async () => {
    const devices = await CoreDevice.list();
    expect(devices.at(-1)).toMatchObject({ kind: 'cpu', id: 'cpu:0' });
  });

  test('contains the device that the suite runs on', async () => {
    const devices = await CoreDevice.list();
    expect(devices.some((device) => device.kind === testDevice)).toBe(true);
  });

  test('gives the same properties of a device as the open device', async () => {
    const device = await openTestDevice();
    const listed = (await CoreDevice.list()).find((entry) => entry.id === `${testDevice}:0`)!;
    expect(listed.name).toBe(device.name);
    expect(listed.computeCapability).toEqual(device.properties.computeCapability);
    expect(listed.totalMemory).toBe(device.properties.totalMemory);
    await device.close();
  });
});

describe('Device.open', () => {
  afterEach(() => {
    vi.unstubAllEnvs();
  });

  test('opens the first device of a kind', async () => {
    const device = await CoreDevice.open(testDevice);
    expect(device.kind).toBe(testDevice);
    expect(device.ordinal).toBe(0);
    await device.close();
  });

  test('without a name opens the GPU where there is one, else the CPU device', async () => {
    vi.stubEnv('ASYNC_CUDA_DEVICE', undefined);
    const device = await CoreDevice.open();
    expect(device.kind).toBe(hasGpu ? 'cuda' : 'cpu');
    await device.close();
  });

  test("'best' opens what no name opens", async () => {
    vi.stubEnv('ASYNC_CUDA_DEVICE', undefined);
    const device = await CoreDevice.open('best');
    expect(device.kind).toBe(hasGpu ? 'cuda' : 'cpu');
    await device.close();
  });

  test('ASYNC_CUDA_DEVICE takes the place of the default', async () => {
    vi.stubEnv('ASYNC_CUDA_DEVICE', 'cpu:3');
    const device = await CoreDevice.open();
    expect(device.toString()).toContain('cpu:3');
    await device.close();
  });

  test('a name takes precedence over ASYNC_CUDA_DEVICE', async () => {
    vi.stubEnv('ASYNC_CUDA_DEVICE', 'cpu:3');
    const device = await CoreDevice.open('cpu:1');
    expect(device.ordinal).toBe(1);
    await device.close();
  });

  test('a bad ASYNC_CUDA_DEVICE is an error that names the variable', async () => {
    vi.stubEnv('ASYNC_CUDA_DEVICE', 'gpu');
    const error = await failure(() => CoreDevice.open());
    expect(error).toMatchObject({
      code: 'ERR_CUDA_INVALID_ARGUMENT',
      argument: 'ASYNC_CUDA_DEVICE',
    });
  });

  // Otherwise the device's thread would be the first to see it, where errors count as faults of the
  // library.
  test('a bad ASYNC_CUDA_CPU_LANES is an error that names the variable', async () => {
    vi.stubEnv('ASYNC_CUDA_CPU_LANES', 'some');
    const error = await failure(() => CoreDevice.open('cpu:5'));
    expect(error).toMatchObject({
      code: 'ERR_CUDA_INVALID_ARGUMENT',
      argument: 'ASYNC_CUDA_CPU_LANES',
    });
    expect(error.message).toBe("ASYNC_CUDA_CPU_LANES: expected many, all or none, got 'some'.");
  });

  test.each(['gpu', 'cuda:', 'cuda:-1', 'cpu:x', '', 'CUDA', 'best:0'])(
    'refuses the name %j',
    async (name) => {
      const error = await failure(() => CoreDevice.open(name as 'cpu'));
      expect(error).toMatchObject({ code: 'ERR_CUDA_INVALID_ARGUMENT', argument: 'name' });
    },
  );

  test('an ordinal beyond the last GPU is an error', async () => {
    const error = await failure(() => CoreDevice.open('cuda:99'));
    expect(error.code).toBe(hasGpu ? 'ERR_CUDA_NO_DEVICE' : 'ERR_CUDA_NO_DRIVER');
  });

  test.skipIf(hasGpu)(
    'without a driver, opening a GPU lists every path that was tried',
    async () => {
      const error = await failure(() => CoreDevice.open('cuda'));
      expect(error.code).toBe('ERR_CUDA_NO_DRIVER');
      expect(error.message).toContain('libcuda.so.1');
    },
  );

  test('refuses an option that does not exist and suggests the one that does', async () => {
    const error = await failure(() => openTestDevice({ threads: 'inline' } as object));
    expect(error.message).toContain("'threads'");
    expect(error.message).toContain("Did you mean 'thread'?");
  });

  test.each([
    { thread: 'outline' },
    { memoryBytes: 12 },
    { memoryBytes: 1.5e6 + 0.5 },
    { stallLimit: 0 },
    { stallLimit: '5' },
    { stallLimit: null },
  ])('refuses the option %j', async (options) => {
    expect(await failure(() => openTestDevice(options as object))).toMatchObject({
      code: 'ERR_CUDA_INVALID_ARGUMENT',
    });
  });

  test('opening again shares the runtime; one close leaves the other open', async () => {
    const first = await openTestDevice();
    const second = await openTestDevice();
    expect(second).not.toBe(first);
    // A buffer of one can be used on a stream of the other: there is one context.
    const buffer = first.alloc(f32, 4);
    await first.close();
    const own = second.alloc(f32, 4);
    own.fill(second.stream, 2);
    expect([...(await own.read(second.stream))]).toEqual([2, 2, 2, 2]);
    expect(buffer.isClosed).toBe(true);
    await second.close();
  });

  test('a buffer of one Device works on a stream of another that shares the runtime', async () => {
    const first = await openTestDevice();
    const second = await openTestDevice();
    const buffer = first.alloc(f32, 2);
    buffer.fill(second.stream, 7);
    expect([...(await buffer.read(first.stream))]).toEqual([7, 7]);
    await second.close();
    await first.close();
  });

  test('can be opened again after it was closed', async () => {
    for (let i = 0; i < 3; i++) {
      const device = await openTestDevice();
      const buffer = device.alloc(f32, 1);
      buffer.fill(device.stream, i);
      expect((await buffer.read(device.stream))[0]).toBe(i);
      await device.close();
    }
  });

  test('concurrent opens give devices that work', async () => {
    const devices = await Promise.all([openTestDevice(), openTestDevice(), openTestDevice()]);
    const values = await Promise.all(
      devices.map(async (device, i) => {
        const buffer = device.alloc(f32, 1);
        buffer.fill(device.stream, i);
        return (await buffer.read(device.stream))[0];
      }),
    );
    expect(values).toEqual([0, 1, 2]);
    await Promise.all(devices.map((device) => device.close()));
  });

  test('two CPU devices have separate memory, and data is copied between them', async () => {
    const [a, b] = await Promise.all([CoreDevice.open('cpu:0'), CoreDevice.open('cpu:1')]);
    const source = a.alloc(f32, 3);
    const target = b.alloc(f32, 3);
    source.write(a.stream, Float32Array.of(1, 2, 3));
    target.fill(b.stream, 9);
    await target.copyFrom(b.stream, source);
    expect([...(await target.read(b.stream))]).toEqual([1, 2, 3]);
    await a.close();
    await b.close();
  });
});

describe('Device.close', () => {
  test('await using closes the device', async () => {
    let kept: CoreDevice;
    {
      await using device = await openTestDevice();
      kept = device;
      expect(device.isClosed).toBe(false);
    }
    expect(kept.isClosed).toBe(true);
  });

  test('can be called twice', async () => {
    const device = await openTestDevice();
    await device.close();
    await expect(device.close()).resolves.toBeUndefined();
  });

  test('finishes the work in flight first', async () => {
    const device = await openTestDevice();
    const buffer = device.alloc(f32, 1 << 16);
    buffer.fill(device.stream, 5);
    const read = buffer.read(device.stream);
    const closed = device.close();
    expect((await read)[65535]).toBe(5);
    await closed;
  });

  test.each(['memoryInfo', 'finished', 'pool'] as const)(
    'afterwards %s() is an error with that reason',
    async (method) => {
      const device = await openTestDevice();
      await device.close();
      expect(await failure(() => device[method]())).toMatchObject({ code: 'ERR_CUDA_DISPOSED' });
    },
  );

  test('afterwards its streams and buffers are closed', async () => {
    const device = await openTestDevice();
    const stream = device.createStream();
    const buffer = device.alloc(f32, 1);
    await device.close();
    expect(stream.isClosed).toBe(true);
    expect(buffer.isClosed).toBe(true);
    expect((await failure(() => buffer.fill(stream, 1))).code).toBe('ERR_CUDA_DISPOSED');
    expect((await failure(() => device.alloc(f32, 1))).code).toBe('ERR_CUDA_DISPOSED');
  });

  test('refuses an unknown option', async () => {
    const device = await openTestDevice();
    expect(await failure(() => device.close({ timeot: 1 } as object))).toMatchObject({
      code: 'ERR_CUDA_INVALID_ARGUMENT',
    });
    await device.close();
  });
});

onDeviceInEachMode('Device', (host) => {
  test('is shown with its name and kind', () => {
    const { device } = host;
    expect(device.kind).toBe(testDevice);
    expect(device.name).toMatch(onCpu ? /CPU/ : /NVIDIA/);
    expect(String(device)).toContain(device.name);
  });

  test('has properties in the units of their names', () => {
    const { properties } = host.device;
    expect(properties.warpSize).toBe(32);
    expect(properties.computeCapability[0]).toBeGreaterThanOrEqual(7);
    expect(properties.maxThreadsPerBlock).toBe(1024);
    expect(properties.maxBlock).toEqual([1024, 1024, 64]);
    expect(properties.maxGrid).toEqual([2147483647, 65535, 65535]);
    expect(properties.sharedMemoryPerBlock).toBeGreaterThanOrEqual(48 << 10);
    expect(properties.sharedMemoryPerBlockOptin).toBeGreaterThanOrEqual(
      properties.sharedMemoryPerBlock,
    );
    expect(properties.totalMemory).toBeGreaterThan(1 << 30);
    expect(properties.totalConstantMemory).toBe(65536);
    expect(properties.multiprocessorCount).toBeGreaterThanOrEqual(1);
    expect(properties.uuid).toMatch(/^GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
    expect(properties.driverVersion).toMatch(/^\d+\.\d+$/);
    expect(properties.memoryPools).toBe(true);
    expect(properties.managedMemory).toBe(true);
  });

  test('the free bytes of memoryInfo fall by what is allocated', async () => {
    const { device, stream } = host;
    const before = await device.memoryInfo();
    expect(before.total).toBe(device.properties.totalMemory);
    expect(before.free).toBeLessThanOrEqual(before.total);
    const pool = await device.pool();
    const used = (await pool.statistics()).used;
    using buffer = device.alloc(f32, 1 << 24);
    await buffer.fill(stream, 1);
    expect((await pool.statistics()).used - used).toBe(64 << 20);
  });

  test('limits can be read and set', async () => {
    const { device } = host;
    const old = await device.limit('stackSize');
    expect(old).toBeGreaterThan(0);
    await device.setLimit('stackSize', 4096);
    expect(await device.limit('stackSize')).toBe(4096);
    await device.setLimit('stackSize', old);
  });

  test('refuses a limit that does not exist', async () => {
    expect(await failure(() => host.device.limit('stack' as 'stackSize'))).toMatchObject({
      argument: 'name',
    });
  });

  test('refuses a limit that is not a whole number', async () => {
    expect(await failure(() => host.device.setLimit('stackSize', -1))).toMatchObject({
      argument: 'value',
    });
  });

  test('has a range of stream priorities that begins at 0 and goes down', () => {
    const { least, greatest } = host.device.streamPriorities;
    expect(least).toBe(0);
    expect(greatest).toBeLessThanOrEqual(0);
  });

  test('synchronize waits for every stream', async () => {
    const { device } = host;
    const streams = [device.createStream(), device.createStream()];
    const buffers = streams.map((stream) => device.alloc(f32, 1024, { stream }));
    const events = streams.map((stream, i) => {
      buffers[i]!.fill(stream, i);
      return stream.record();
    });
    await device.finished();
    expect(events.map((event) => event.reached)).toEqual([true, true]);
    for (const buffer of buffers) buffer.close();
    for (const stream of streams) stream.close();
  });

  test('refuses a dtype given by name, with how to import it', async () => {
    const error = await failure(() => host.device.alloc('f32' as never, 4));
    expect(error).toMatchObject({ code: 'ERR_CUDA_INVALID_ARGUMENT', argument: 'dtype' });
    expect(error.message).toContain("Import f32 from 'async-cuda/core'");
  });

  test.each([-1, 1.5, NaN, '4', Infinity])('refuses the length %j', async (length) => {
    expect(await failure(() => host.device.alloc(f32, length as number))).toMatchObject({
      argument: 'length',
    });
  });
});
