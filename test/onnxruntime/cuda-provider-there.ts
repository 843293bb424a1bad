/** Why tests of the CUDA provider are left out; undefined where they are not. */
import { findOnnxRuntime } from 'async-cuda/onnxruntime';

import { onCpu } from '../core/test-device.js';

export async function whyNoCudaProvider(): Promise<string | undefined> {
  if (onCpu) return 'the device is no GPU: set ASYNC_CUDA_TEST_DEVICE=cuda';
  try {
    const { providers, path } = await findOnnxRuntime({ cuda: true });
    return providers.includes('CUDAExecutionProvider')
      ? undefined
      : `${path} has no CUDA provider: pip install onnxruntime-gpu`;
  } catch (error) {
    return String(error);
  }
}
