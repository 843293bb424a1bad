/**
 * A model as an engine of whichever library is there: TensorRT where it takes the GPU, ONNX Runtime
 * otherwise.
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
 * Which library runs the model; `auto`: TensorRT where it is and takes the GPU, else ONNX Runtime.
 */
export type EngineKind = 'auto' | Engine['kind'];

/** Options of {@link loadEngine}. */
export interface LoadEngineOptions {
  /** Default `auto`. */
  readonly engine?: EngineKind;
  /** Runs at once of {@link Engine.infer}. Default: the library's. */
  readonly contexts?: number;
  /** Gives up loading. */
  readonly signal?: AbortSignal | undefined;
  /** What only TensorRT is told: ranges of dynamic extents, precision, the cache. */
  readonly tensorrt?: Omit<TensorRTOptions, 'contexts' | 'signal'>;
  /** What only ONNX Runtime is told: providers, threads, the optimisation of the graph. */
  readonly onnxruntime?: Omit<OnnxRuntimeOptions, 'contexts' | 'signal'>;
}

const KINDS: readonly EngineKind[] = ['auto', 'tensorrt', 'onnxruntime'];

/**
 * Loads an ONNX model for a device. Which library it is run by says `engine.kind`; its inputs,
 * outputs and runs are the same.
 *
 * With `auto`, a model that TensorRT says it does not support (`ERR_CUDA_UNSUPPORTED`), or for
 * which it needs ranges in `tensorrt.shapes`, is loaded with ONNX Runtime, and a process warning of
 * the type `CUDA_FALLBACK` says why; every other failure is told. So is it, without a warning, on a
 * GPU that the only TensorRT there, that for RTX, does not take.
 *
 * @param model a path, a `file:` URL, or the bytes
 * @returns rejects with CudaError, code `ERR_CUDA_NO_LIBRARY`, where neither library is found: the
 *   message says how to get each
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
 * A library's own options are a level further down here: what is wrong with one is named as the
 * caller wrote it.
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

/** Whether it is for want of a range of dynamic extents, which ONNX Runtime does without. */
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

/** TensorRT parses bytes. */
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
