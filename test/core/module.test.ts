/** Modules: loading, kernels and variables, and the errors of wrong ones. */
import { f32, i32 } from 'async-cuda/core';
import { expect, test } from 'vitest';

import { ELEMENTWISE } from './kernels/elementwise.js';
import { MODULE_MEMORY } from './kernels/module-memory.js';
import { WAITING } from './kernels/waiting.js';
import { failure, onDeviceInEachMode, stillPending } from './test-device.js';

onDeviceInEachMode('Module', (host) => {
  test('names its kernels', async () => {
    await using module = await host.device.loadModule(ELEMENTWISE);
    expect([...module.kernelNames].sort()).toEqual(['absorb', 'add1', 'nothing', 'saxpy']);
  });

  test('loads from the bytes of PTX, with and without a zero at the end', async () => {
    for (const text of [ELEMENTWISE, `${ELEMENTWISE}\0`]) {
      await using module = await host.device.loadModule(new TextEncoder().encode(text));
      expect(module.kernelNames).toContain('saxpy');
    }
  });

  test('an unknown kernel is an error that names the kernels of the module', async () => {
    const module = await host.load(ELEMENTWISE);
    const error = await failure(() => module.kernel('sxpy'));
    expect(error.code).toBe('ERR_CUDA_NOT_FOUND');
    expect(error.message).toContain("no kernel 'sxpy'");
    expect(error.message).toContain('saxpy');
    expect(error.message).toContain('extern "C"');
  });

  test('PTX with a syntax error is a compile error with the log', async () => {
    const wrong = ELEMENTWISE.replace('add.s32 	%r7, %r6, 1;', 'add.s32 	%r7, %r6 1;');
    const error = await failure(() => host.device.loadModule(wrong));
    expect(error).toMatchObject({ name: 'CudaCompileError', code: 'ERR_CUDA_COMPILE' });
    const line = wrong.split('\n').findIndex((text) => text.includes('%r6 1;')) + 1;
    // ptxas writes `line 28`, the CPU device `ptx:28:20`.
    expect(error.log).toMatch(new RegExp(`\\b${line}\\b`));
  });

  test('an unknown instruction is a compile error that names it', async () => {
    const error = await failure(() =>
      host.device.loadModule(ELEMENTWISE.replace('fma.rn.f32', 'fmax.rn.f32')),
    );
    expect(error.code).toBe('ERR_CUDA_COMPILE');
    expect(error.log).toContain('fmax');
  });

  test('an undefined register is a compile error that names it', async () => {
    const error = await failure(() =>
      host.device.loadModule(
        ELEMENTWISE.replace('mad.lo.s32 	%r8, %r6, 31, %r7;', 'mad.lo.s32 	%r8, %r6, 31, %q7;'),
      ),
    );
    expect(error.code).toBe('ERR_CUDA_COMPILE');
    expect(error.log).toContain('%q7');
  });

  test.each(['', 'not PTX at all', '.version 7.0\n.target sm_70\n.visible .entry cut('])(
    'the image %j is a compile error',
    async (image) => {
      expect(await failure(() => host.device.loadModule(image))).toMatchObject({
        code: 'ERR_CUDA_COMPILE',
      });
    },
  );

  test('after a failed load the device goes on', async () => {
    await failure(() => host.device.loadModule('nothing'));
    await using module = await host.device.loadModule(ELEMENTWISE);
    await module.kernel('nothing').launch(host.stream, { grid: 1, block: 1 });
  });

  test.each([12, null, undefined, {}, new Uint16Array(4)])(
    'refuses the image %s',
    async (image) => {
      expect(await failure(() => host.device.loadModule(image as never))).toMatchObject({
        argument: 'image',
      });
    },
  );

  test('takes the options of the compiler, and refuses others', async () => {
    await using module = await host.device.loadModule(ELEMENTWISE, {
      optimizationLevel: 2,
      maxRegisters: 32,
      lineInfo: true,
    });
    expect(module.kernelNames.length).toBe(4);
    expect(
      await failure(() => host.device.loadModule(ELEMENTWISE, { optimisationLevel: 2 } as object)),
    ).toMatchObject({ code: 'ERR_CUDA_INVALID_ARGUMENT' });
  });

  test.each(['kernels.ptx', './build/kernels.cubin', '/home/ada/a.fatbin'])(
    'the name %s is refused, with what to pass instead',
    async (name) => {
      const error = await failure(() => host.device.loadModule(name));
      expect(error).toMatchObject({ argument: 'image' });
      expect(error.message).toContain('readFile');
    },
  );

  test('CUDA C++ is refused, with how to make PTX of it', async () => {
    const error = await failure(() =>
      host.device.loadModule('extern "C" __global__ void f(float* x) {\n  x[0] = 1;\n}'),
    );
    expect(error).toMatchObject({ argument: 'image' });
    expect(error.message).toContain('nvcc --ptx');
  });

  test.each([
    { maxRegisters: 0 },
    { optimizationLevel: 5 },
    { debug: 1 },
    { lineInfo: 'yes' },
    { prints: null },
  ])('refuses the option %j', async (options) => {
    const error = await failure(() => host.device.loadModule(ELEMENTWISE, options as object));
    expect(error.argument).toBe(`options.${Object.keys(options)[0]}`);
  });

  test('is shown with its kernels', async () => {
    const module = await host.load(MODULE_MEMORY);
    expect(String(module)).toBe('Module(weigh)');
  });

  test('a kernel uses the variables of its module', async () => {
    await using module = await host.device.loadModule(MODULE_MEMORY);
    using out = host.device.alloc(f32, 4);
    const weigh = module.kernel('weigh');
    weigh.launch(host.stream, { grid: 1, block: 4 }, out);
    expect([...(await out.read(host.stream))]).toEqual([40, 80, 120, 160]);
    weigh.launch(host.stream, { grid: 1, block: 4 }, out);
    expect([...(await out.read(host.stream))]).toEqual([41, 82, 123, 164]);
  });

  test('a __device__ variable is read and written as bytes', async () => {
    await using module = await host.device.loadModule(MODULE_MEMORY);
    const counter = await module.global('counter');
    expect(counter.byteLength).toBe(4);
    expect([...(await counter.read(host.stream))]).toEqual([40, 0, 0, 0]);
    counter.write(host.stream, Uint8Array.of(2, 0, 0, 0));
    using out = host.device.alloc(f32, 4);
    module.kernel('weigh').launch(host.stream, { grid: 1, block: 4 }, out);
    expect([...(await out.read(host.stream))]).toEqual([2, 4, 6, 8]);
  });

  test('a __constant__ variable is read and written as bytes', async () => {
    await using module = await host.device.loadModule(MODULE_MEMORY);
    const weights = (await module.global('weights')).reinterpret(f32);
    expect([...(await weights.read(host.stream))]).toEqual([1, 2, 3, 4]);
    weights.write(host.stream, Float32Array.of(0.5, 1, 0, -1));
    using out = host.device.alloc(f32, 4);
    module.kernel('weigh').launch(host.stream, { grid: 1, block: 4 }, out);
    expect([...(await out.read(host.stream))]).toEqual([20, 40, 0, -40]);
  });

  test('two loads of the same image have variables of their own', async () => {
    await using first = await host.device.loadModule(MODULE_MEMORY);
    await using second = await host.device.loadModule(MODULE_MEMORY);
    await (await first.global('counter')).fill(host.stream, 0);
    expect([...(await (await second.global('counter')).read(host.stream))]).toEqual([40, 0, 0, 0]);
  });

  test('an unknown variable is an error', async () => {
    await using module = await host.device.loadModule(MODULE_MEMORY);
    expect(await failure(() => module.global('countre'))).toMatchObject({
      code: 'ERR_CUDA_NOT_FOUND',
    });
  });

  test('close waits for the kernels that are queued', async () => {
    const module = await host.device.loadModule(ELEMENTWISE);
    using stream = host.device.createStream();
    using buffer = host.device.alloc(i32, 1, { stream });
    buffer.fill(stream, 0);
    let goOn!: () => void;
    void stream.call(() => new Promise<void>((resolve) => (goOn = resolve)));
    module.kernel('add1').launch(stream, { grid: 1, block: 1 }, buffer, 1);
    const closed = module.close();
    expect(await stillPending(closed)).toBe(true);
    goOn();
    await closed;
    expect((await buffer.read(stream))[0]).toBe(1);
  });

  test('refuses everything after it was closed', async () => {
    const module = await host.device.loadModule(MODULE_MEMORY);
    const weigh = module.kernel('weigh');
    const counter = await module.global('counter');
    await module.close();
    await module.close();
    using out = host.device.alloc(f32, 4);
    for (const call of [
      () => module.kernel('weigh'),
      () => module.global('counter'),
      () => weigh.launch(host.stream, { grid: 1, block: 4 }, out),
      () => counter.read(host.stream),
    ]) {
      expect(await failure(call)).toMatchObject({ code: 'ERR_CUDA_DISPOSED' });
    }
  });

  test('many loads and unloads leave no memory allocated', async () => {
    for (let i = 0; i < 30; i++) {
      await using module = await host.device.loadModule(ELEMENTWISE);
      await module.kernel('nothing').launch(host.stream, { grid: 1, block: 1 });
    }
  });

  test('modules load at the same time', async () => {
    const modules = await Promise.all(
      [ELEMENTWISE, MODULE_MEMORY, WAITING].map((ptx) => host.device.loadModule(ptx)),
    );
    expect(modules.map((module) => module.kernelNames.length)).toEqual([4, 1, 3]);
    await Promise.all(modules.map((module) => module.close()));
  });
});
