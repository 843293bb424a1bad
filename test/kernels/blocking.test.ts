/**
 * Kernels that a blocked thread needs first: which of them it can load itself. The compiler is
 * loaded by import().
 */
import { CudaCompileError, Device, f32, i32, inout, kernel } from 'async-cuda';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';

import { failure, onDevice } from '../core/test-device.js';

const double = kernel('double', { y: inout(f32) }, ({ y }, gpu) => {
  y[gpu.globalId.x] = y[gpu.globalId.x]! * 2;
});
const triple = kernel('triple', { y: inout(f32) }, ({ y }, gpu) => {
  y[gpu.globalId.x] = y[gpu.globalId.x]! * 3;
});
const wrong = kernel('wrong', { y: inout(i32) }, ({ y }) => {
  y[0] = Math.sin(1);
});

onDevice('A thread that blocks', (host) => {
  let device: Device;
  beforeAll(() => {
    device = Device.of(host.device);
    // Otherwise kernels that an earlier run left on disk would not be compiled.
    vi.stubEnv('ASYNC_CUDA_CACHE_DISABLE', '1');
  });
  afterAll(() => {
    vi.unstubAllEnvs();
  });

  test('loads the kernels of tensors: conversion, strided copies, random numbers', () => {
    using x = device.arange(f32, 6).sync();
    using even = x.reshape([3, 2]).slice([null, null], [0, 1]).dup().sync();
    using whole = even.convert(i32).sync();
    expect([...whole.read().sync()]).toEqual([0, 2, 4]);
    using noise = device.rand(f32, [100], { seed: 1 }).sync();
    expect(
      noise
        .read()
        .sync()
        .every((value) => value >= 0 && value < 1),
    ).toBe(true);
  });

  test('compiles with a loaded compiler, and gives the remedy without one', async () => {
    using y = await device.ones(f32, [4]);
    // This is the first compilation of these tests, and sources cannot be loaded by require().
    if (host.mode === 'worker')
      expect((await failure(() => double({ y }).sync())).message).toBe(
        "kernel 'double': not loaded yet, and a thread that blocks cannot load it: await " +
          'double.prepare(device) before.',
      );
    await double.prepare(device);
    double({ y }).sync();
    triple({ y }).sync();
    expect([...y.read().sync()]).toEqual([6, 6, 6, 6]);
  });

  test('throws the fault of a body, with its place', async () => {
    using y = await device.zeros(i32, [4]);
    // The code that finds places in files is loaded with the first awaited error of any kernel.
    expect(await failure(() => wrong({ y }))).toBeInstanceOf(CudaCompileError);
    const error = await failure(() => wrong({ y }).sync());
    expect(error).toBeInstanceOf(CudaCompileError);
    expect(error.message).toContain('gpu.i32(');
    expect(error.message).toMatch(/blocking\.test\.ts:\d+:\d+/);
  });
});
