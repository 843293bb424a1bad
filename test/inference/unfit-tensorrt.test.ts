/**
 * GPUs that TensorRT for RTX does not support: a device with the properties of one. Nothing runs on
 * it.
 */
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { CoreDevice } from 'async-cuda/core';
import { isTensorRTAvailable, loadTensorRTEngine as loadWithTensorRT } from 'async-cuda/tensorrt';
import { loadEngine } from 'async-cuda/inference';
import { afterEach, describe, expect, test, vi } from 'vitest';

import { failure, openTestDevice } from '../core/test-device.js';
import { addModel } from '../onnxruntime/onnx-model.js';

const folder = fileURLToPath(
  new URL('../../node_modules/.cache/tensorrt-rtx/tensorrt_rtx_libs', import.meta.url),
);

describe.skipIf(!existsSync(folder))('TensorRT for RTX on a GPU that it has no code for', () => {
  afterEach(() => {
    vi.unstubAllEnvs();
  });
  const unfit = (device: CoreDevice): CoreDevice =>
    Object.create(device, {
      kind: { value: 'cuda' },
      name: { value: 'NVIDIA H200' },
      properties: { value: { ...device.properties, computeCapability: [9, 0] } },
    }) as CoreDevice;

  test('is refused before anything is built', async () => {
    vi.stubEnv('ASYNC_CUDA_TENSORRT', '/nowhere');
    vi.stubEnv('ASYNC_CUDA_TENSORRT_RTX', folder);
    const device = await openTestDevice();
    const h200 = unfit(device);
    expect(await isTensorRTAvailable(h200)).toMatchObject({
      available: false,
      reason: expect.stringContaining('NVIDIA H200 has 9.0') as string,
    });
    for (const options of [{}, { flavor: 'rtx' }] as const) {
      expect(await failure(() => loadWithTensorRT(h200, addModel(), options))).toMatchObject({
        code: 'ERR_CUDA_UNSUPPORTED',
        message: expect.stringContaining('NVIDIA H200 has 9.0') as string,
      });
    }
    expect(await failure(() => loadEngine(h200, addModel(), { engine: 'tensorrt' }))).toMatchObject(
      { code: 'ERR_CUDA_UNSUPPORTED' },
    );
    await device.close();
  });

  test("'auto' goes on to ONNX Runtime", async () => {
    vi.stubEnv('ASYNC_CUDA_TENSORRT', '/nowhere');
    vi.stubEnv('ASYNC_CUDA_TENSORRT_RTX', folder);
    const device = await openTestDevice();
    await using engine = await loadEngine(unfit(device), addModel(), {
      onnxruntime: { providers: ['cpu'] },
    });
    expect(engine.kind).toBe('onnxruntime');
    await engine.close();
    await device.close();
  });
});
