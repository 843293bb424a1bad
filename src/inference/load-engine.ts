/**
 * Loads a model as an engine of the library that is available: TensorRT where it supports the GPU,
 * ONNX Runtime otherwise.
 */
import { readFile } from 'node:fs/promises';

import { CudaArgumentError, CudaError } from '../core/index.js';
import type { CoreDevice } from '../core/index.js';
import { checkInteger, checkOptions, checkSignal, invalid } from '../ground/arguments.js';
import { modelPath } from '../onnxruntime/model-bytes.js';
import { isBytes, isUrl } from '../ground/other-realms.js';
import type { Engine } from '../engine/engine.js';
import { loadOnnxEngine as loadWithOnnxRuntime } from '../onnxruntime/index.js';
import type { ModelSource, OnnxRuntimeOptions } from '../onnxruntime/index.js';
import { coreOf } from '../ops/scheduling.js';
import type { AnyDevice } from '../ops/index.js';
import { isTensorRTAvailable, loadTensorRTEngine as loadWithTensorRT } from '../tensorrt/index.js';
import type { LoadTensorRTEngineOptions as TensorRTOptions } from '../tensorrt/index.js';

/**
 * The library that runs the model. `auto` is TensorRT where it is installed and supports the GPU,
 * else ONNX Runtime.
 */
export type EngineKind = 'auto' | Engine['kind'];

/** Options of {@link loadEngine}. */
export interface LoadEngineOptions {
  /** Default: `auto`. */
  readonly engine?: EngineKind;
  /** Number of runs of {@link Engine.infer} at once. Default: the library's. */
  readonly contexts?: number;
  /** Cancels loading. */
  readonly signal?: AbortSignal | undefined;
  /** Options of TensorRT only: ranges of dynamic extents, precision, the cache. */
  readonly tensorrt?: Omit<TensorRTOptions, 'contexts' | 'signal'>;
  /** Options of ONNX Runtime only: providers, threads, the optimisation of the graph. */
  readonly onnxruntime?: Omit<OnnxRuntimeOptions, 'contexts' | 'signal'>;
}

const KINDS: readonly EngineKind[] = ['auto', 'tensorrt', 'onnxruntime'];

/**
 * Loads an ONNX model for a device. `engine.kind` is the library that runs it; inputs, outputs and
 * runs are the same for both.
 *
 * With `auto`, a model that TensorRT does not support (`ERR_CUDA_UNSUPPORTED`), or for which it
 * needs ranges in `tensorrt.shapes`, is loaded with ONNX Runtime, and a process warning of the type
 * `CUDA_FALLBACK` gives the reason; every other failure rejects. ONNX Runtime is used without a
 * warning on a GPU that the only installed TensorRT, that for RTX, does not support.
 *
 * @param model a path, a `file:` URL, or the bytes
 * @returns a promise of the engine. It rejects with CudaError, code `ERR_CUDA_NO_LIBRARY`, where
 *   neither library is found; the message says how to get each
 *
 * @example
 * ```ts no-run
 * await using engine = await loadEngine(device, 'classifier.onnx');
 * using image = await device.zeros(f32, [1, 3, 224, 224]);
 * const { logits } = await engine.infer({ image });
 * console.log(logits!.shape.join(' x ')); // 1 x 1000
 * logits!.close();
 * ```
 */
export async function loadEngine(
  device: AnyDevice,
  model: ModelSource,
  options: LoadEngineOptions = {},
): Promise<Engine> {
  const core = coreOf(device);
  checkOptions('options', options, ['engine', 'contexts', 'signal', 'tensorrt', 'onnxruntime']);
  const { engine = 'auto', contexts, signal, tensorrt, onnxruntime } = options;
  if (!KINDS.includes(engine))
    throw invalid('options.engine', KINDS.map((kind) => `'${kind}'`).join(', '), engine);
  if (contexts !== undefined) checkInteger('options.contexts', contexts, 1, 64, 'runs at once');
  checkSignal(signal);
  for (const [name, own] of Object.entries({ tensorrt, onnxruntime })) {
    if (own !== undefined && (typeof own !== 'object' || (own as unknown) === null))
      throw invalid(`options.${name}`, 'an object of options', own);
  }
  signal?.throwIfAborted();
  const shared = {
    ...(contexts === undefined ? {} : { contexts }),
    ...(signal === undefined ? {} : { signal }),
  };
  const byTensorRT = (): Promise<Engine> =>
    within('tensorrt', async () =>
      loadWithTensorRT(device, await bytesOf(model, signal), { ...tensorrt, ...shared }),
    );
  const byOnnxRuntime = (): Promise<Engine> =>
    within('onnxruntime', () => loadWithOnnxRuntime(device, model, { ...onnxruntime, ...shared }));

  if (engine === 'onnxruntime') return byOnnxRuntime();
  if (engine === 'tensorrt') return byTensorRT();
  const { available, reason } = await availability(core);
  if (available) {
    try {
      return await byTensorRT();
    } catch (error) {
      if (
        !(error instanceof CudaError) ||
        !(error.code === 'ERR_CUDA_UNSUPPORTED' || lacksRange(error, tensorrt?.shapes))
      )
        throw error;
      process.emitWarning(
        `TensorRT does not take the model, so ONNX Runtime runs it: ${error.message}`,
        { type: 'CUDA_FALLBACK' },
      );
    }
  }
  try {
    return await byOnnxRuntime();
  } catch (error) {
    if (available || !(error instanceof CudaError) || error.code !== 'ERR_CUDA_NO_LIBRARY')
      throw error;
    throw new CudaError(
      'ERR_CUDA_NO_LIBRARY',
      `no library that runs models was found. TensorRT: ${reason ?? 'not available.'} ONNX ` +
        `Runtime: ${error.message}`,
      { cause: error },
    );
  }
}

/**
 * A library's own options are one level deeper here, so an error's argument is renamed to what the
 * caller wrote.
 */
async function within(
  name: 'tensorrt' | 'onnxruntime',
  load: () => Promise<Engine>,
): Promise<Engine> {
  try {
    return await load();
  } catch (error) {
    if (!(error instanceof CudaArgumentError) || !/^options\b/.test(error.argument)) throw error;
    const here = (text: string): string => text.replace(/^options\b/, `options.${name}`);
    throw new CudaArgumentError(here(error.argument), here(error.message), { cause: error });
  }
}

/** Whether the failure is a missing range of dynamic extents, which ONNX Runtime does not need. */
function lacksRange(error: CudaError, given: TensorRTOptions['shapes'] = {}): boolean {
  const [, name] =
    (error instanceof CudaArgumentError &&
      /^options\.tensorrt\.shapes\.(.+)$/.exec(error.argument)) ||
    [];
  return (
    name !== undefined &&
    !Object.keys(given).some((each) => name === each || name.startsWith(`${each}.`))
  );
}

async function availability(device: CoreDevice): Promise<{ available: boolean; reason?: string }> {
  if (device.kind === 'cpu')
    return { available: false, reason: 'it runs on NVIDIA GPUs, and this is a CPU device.' };
  return isTensorRTAvailable(device);
}

/** Returns the model's bytes, which are what TensorRT parses. */
async function bytesOf(model: ModelSource, signal: AbortSignal | undefined): Promise<Uint8Array> {
  if (typeof model === 'string' || isUrl(model)) {
    return readFile(modelPath(model), { signal }).catch((cause: unknown) => {
      const { code } = cause as NodeJS.ErrnoException;
      if (code !== 'ENOENT' && code !== 'ENOTDIR') throw cause;
      throw new CudaError(
        'ERR_CUDA_NOT_FOUND',
        `model: there is no file ${String(model)} (${(cause as Error).message}).`,
        { cause },
      );
    });
  }
  return isBytes(model) ? model : new Uint8Array(model);
}
