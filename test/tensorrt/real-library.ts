/** TensorRT for RTX, where it is installed: it builds engines without a GPU. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const cache = fileURLToPath(
  new URL('../../node_modules/.cache/tensorrt-rtx/tensorrt_rtx_libs', import.meta.url),
);
const { ASYNC_CUDA_TENSORRT_RTX: named, ASYNC_CUDA_TEST_TENSORRT: wanted } = process.env;

/** Its folder. */
const folder = named ?? (existsSync(cache) ? cache : undefined);

export const whyNoRtx: string | undefined =
  folder !== undefined
    ? undefined
    : 'SKIPPED: TensorRT for RTX is not here: node scripts/install-tensorrt-rtx.mjs';
if (whyNoRtx !== undefined && wanted === 'required') throw new Error(whyNoRtx);

export const rtx = {
  flavor: 'rtx' as const,
  files:
    folder === undefined
      ? {}
      : {
          library: join(folder, 'libtensorrt_rtx.so.1'),
          parser: join(folder, 'libtensorrt_onnxparser_rtx.so.1'),
        },
};
