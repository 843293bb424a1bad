/** `async-cuda/inference`: one interface for whichever library is installed. */
import { f32 } from 'async-cuda/core';
import { loadEngine } from 'async-cuda/inference';
import { tensor } from 'async-cuda/tensor';
import { afterEach, describe, expect, test, vi } from 'vitest';

import { failure, onCpu, openTestDevice, testDevice } from '../core/test-device.js';
import { addModel } from '../onnxruntime/onnx-model.js';

afterEach(() => {
  vi.unstubAllEnvs();
});

describe(`loadEngine (${testDevice})`, () => {
  test.each(['auto', 'onnxruntime'] as const)('%s gives an engine that runs', async (engine) => {
    const device = await openTestDevice();
    await using loaded = await loadEngine(device, addModel('f32', [3]), { engine });
    if (onCpu || engine === 'onnxruntime') expect(loaded.kind).toBe('onnxruntime');
    expect(loaded.inputs.map(({ name, dtype, shape }) => [name, dtype, ...shape])).toEqual([
      ['a', 'f32', 3],
      ['b', 'f32', 3],
    ]);
    using a = await tensor(device, f32, [1, 2, 3]);
    const { c } = await loaded.infer({ a, b: a });
    expect([...((await c!.read()) as Float32Array)]).toEqual([2, 4, 6]);
    c!.close();
    await using context = await loaded.createContext();
    const again = await context.infer({ a, b: a }).andThen(({ c: sum }) => sum!.read());
    expect([...(again as Float32Array)]).toEqual([2, 4, 6]);
    await context.close();
    await loaded.close();
    await device.close();
  });

  test('options are looked at', async () => {
    const device = await openTestDevice();
    for (const [options, says] of [
      [{ engine: 'trt' }, /options\.engine: expected 'auto', 'tensorrt', 'onnxruntime', got 'trt'/],
      [{ engines: 'auto' }, /Did you mean 'engine'/],
      [{ contexts: 0 }, /options\.contexts/],
      [{ onnxruntime: { threads: 0 } }, /^options\.onnxruntime\.threads: expected/],
      [{ onnxruntime: { thread: 1 } }, /^options\.onnxruntime: .* Did you mean 'threads'/],
      [{ onnxruntime: 4 }, /^options\.onnxruntime: expected an object of options, got 4/],
    ] as const) {
      expect(await failure(() => loadEngine(device, addModel(), options as never))).toMatchObject({
        code: 'ERR_CUDA_INVALID_ARGUMENT',
        message: expect.stringMatching(says) as string,
      });
    }
    expect(
      (await failure(() => loadEngine(device, addModel(), { signal: AbortSignal.abort() }))).name,
    ).toBe('AbortError');
    await device.close();
  });

  test.runIf(onCpu)('where no library is found the error has how to install each', async () => {
    const device = await openTestDevice();
    vi.stubEnv('ASYNC_CUDA_ONNXRUNTIME', '/nowhere/libonnxruntime.so.1');
    const error = await failure(() => loadEngine(device, addModel()));
    expect(error.code).toBe('ERR_CUDA_NO_LIBRARY');
    expect(error.message).toMatch(
      /TensorRT: .* CPU device\. ONNX Runtime: .*install onnxruntime-node.*ASYNC_CUDA_ONNXRUNTIME/s,
    );
    expect(error.message).toContain('/nowhere/libonnxruntime.so.1');
    await device.close();
  });
});
