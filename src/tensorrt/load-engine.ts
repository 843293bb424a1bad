/** Makes an engine that runs from a model in the ONNX format, in one call. */
import { createHash } from 'node:crypto';
import { join } from 'node:path';

import { checkOptions, checkPath, invalid } from '../ground/arguments.js';
import { CudaError } from '../core/index.js';
import type { CoreDevice } from '../core/index.js';
import { DiskCache, cacheFolder, planEntry } from '../core/thread-ending.js';
import { isBytes } from '../ground/other-realms.js';
import type { AnyDevice } from '../ops/index.js';
import { coreOf } from '../ops/scheduling.js';
import { Builder } from './builder.js';
import { DEFAULT_BATCH, rangesOf } from './default-ranges.js';
import type { LoadTensorRTEngineOptions, TensorRTFlavor, TensorRTInfo } from './engine-options.js';
import { openTensorRT } from './library.js';
import type { OpenTensorRTOptions } from './library.js';
import { OnnxParser } from './onnx-parser.js';
import { whyNotRtx } from './rtx-gpus.js';
import { Runtime } from './runtime.js';
import type { TensorRTEngine } from './tensorrt-engine.js';

/** The libraries that build, the preferred one first. */
const BUILDERS: readonly TensorRTFlavor[] = ['tensorrt', 'rtx'];
const OPTIONS = [
  'shapes',
  'precision',
  'stronglyTyped',
  'workspace',
  'optimizationLevel',
  'flavor',
  'contexts',
  'cache',
  'progress',
  'signal',
] as const;

/**
 * Returns whether TensorRT is installed to build for the device, and the reason where it is not.
 * Never rejects. TensorRT for RTX is not available for a GPU that it has no code for: an H100, an
 * H200.
 *
 * @param device the device; where it is left out, only the library is checked
 *
 * @example
 * ```ts
 * await using cpu = await Device.open('cpu');
 * const { available, reason } = await isTensorRTAvailable(cpu);
 * console.log(available, reason?.includes('NVIDIA GPUs only')); // false true
 * ```
 */
export async function isTensorRTAvailable(device?: AnyDevice): Promise<TensorRTInfo> {
  const reasons: string[] = [];
  try {
    if (device !== undefined && coreOf(device).kind === 'cpu')
      return {
        available: false,
        reason:
          `TensorRT runs engines on NVIDIA GPUs only, and ${coreOf(device).name} is a CPU ` +
          'device.',
      };
    for (const flavor of BUILDERS) {
      const unfit = device === undefined ? undefined : whyUnfit(coreOf(device), flavor);
      if (unfit !== undefined) {
        reasons.push(unfit);
        continue;
      }
      try {
        const { version } = await openTensorRT('run', { flavor });
        return { available: true, flavor, version };
      } catch (error) {
        reasons.push((error as Error).message);
      }
    }
  } catch (error) {
    reasons.push((error as Error).message);
  }
  return { available: false, reason: reasons.join(' ') };
}

/**
 * Parses, builds and loads a model, or reads its plan from the cache on disk, whose key is the
 * model's hash, TensorRT's version, the GPU and the options.
 *
 * An input with only a dynamic first extent, a batch, needs no range in `shapes`: it is from 1 to
 * 32, tuned for 8.
 *
 * @param model an ONNX file's bytes
 * @throws CudaError with code ERR_CUDA_UNSUPPORTED, before anything is built, for a GPU that
 * TensorRT for RTX does not support; OnnxParserError, CudaLibraryError with TensorRT's messages,
 * CudaError with code ERR_CUDA_NO_LIBRARY, the signal's reason
 *
 * @example
 * ```ts no-run
 * import { readFile } from 'node:fs/promises';
 * await using engine = await loadTensorRTEngine(device, await readFile('model.onnx'), {
 *   shapes: { image: { min: [1, 3, 224, 224], opt: [8, 3, 224, 224], max: [32, 3, 224, 224] } },
 * });
 * using image = await device.zeros(f32, [8, 3, 224, 224]);
 * const { scores } = await engine.infer({ image });
 * scores?.close();
 * ```
 */
export async function loadTensorRTEngine(
  device: AnyDevice,
  model: Uint8Array,
  options: LoadTensorRTEngineOptions = {},
): Promise<TensorRTEngine> {
  const core = coreOf(device);
  if (!isBytes(model)) throw invalid('model', "a Uint8Array of an ONNX file's bytes", model);
  checkOptions('options', options, OPTIONS);
  options.signal?.throwIfAborted();
  const library: OpenTensorRTOptions = { flavor: options.flavor ?? (await flavorOf(core)) };
  // The check comes before minutes are spent on a plan that no runtime accepts.
  const unfit = whyUnfit(core, library.flavor!);
  if (unfit !== undefined) throw new CudaError('ERR_CUDA_UNSUPPORTED', unfit);
  const runtime = await Runtime.create(core, library);
  try {
    const { title } = await openTensorRT('run', library);
    const cache = cacheOf(options);
    const entry = cache === undefined ? undefined : entryOf(core, title, model, options);
    const kept = entry === undefined ? undefined : await cache!.read(entry);
    const contexts = options.contexts === undefined ? {} : { contexts: options.contexts };
    if (kept !== undefined) {
      // A plan that TensorRT does not accept any more is built anew.
      const engine = await runtime.deserialize(kept, contexts).catch(() => undefined);
      if (engine !== undefined) return engine;
    }
    const plan = await planOf(core, library, model, options);
    const engine = await runtime.deserialize(plan, contexts);
    if (entry !== undefined) await cache!.write(entry, plan);
    return engine;
  } finally {
    // The runtime stays open as long as its engine.
    await runtime.close();
  }
}

/** Returns why the library's engines do not run on the device's GPU. */
function whyUnfit(
  { kind, name, properties }: CoreDevice,
  flavor: TensorRTFlavor,
): string | undefined {
  return flavor === 'rtx' && kind === 'cuda'
    ? whyNotRtx(name, properties.computeCapability)
    : undefined;
}

async function flavorOf(device: CoreDevice): Promise<TensorRTFlavor> {
  const { flavor, reason } = await isTensorRTAvailable(device);
  if (flavor === undefined)
    throw new CudaError(
      device.kind === 'cpu' || (await isThere('rtx', device))
        ? 'ERR_CUDA_UNSUPPORTED'
        : 'ERR_CUDA_NO_LIBRARY',
      reason!,
    );
  return flavor;
}

/** Returns whether the library is installed, and does not support the device. */
async function isThere(flavor: TensorRTFlavor, device: CoreDevice): Promise<boolean> {
  return (
    whyUnfit(device, flavor) !== undefined &&
    openTensorRT('run', { flavor }).then(
      () => true,
      () => false,
    )
  );
}

async function planOf(
  device: CoreDevice,
  library: OpenTensorRTOptions,
  model: Uint8Array,
  {
    shapes = {},
    precision = [],
    stronglyTyped,
    workspace,
    optimizationLevel,
    progress,
    signal,
  }: LoadTensorRTEngineOptions,
): Promise<Uint8Array> {
  await using builder = await Builder.create({ ...library, device });
  await using network = await builder.createNetwork(
    stronglyTyped === undefined ? {} : { stronglyTyped },
  );
  await using parser = await OnnxParser.create(network);
  await parser.parse(model);
  await using config = await builder.createConfig({
    flags: precision,
    ...(workspace === undefined ? {} : { memoryPoolLimits: { workspace } }),
    ...(optimizationLevel === undefined ? {} : { optimizationLevel }),
  });
  await using profile = await builder.createOptimizationProfile();
  const { inputs } = await network.tensors();
  const ranges = rangesOf(inputs, shapes);
  for (const [name, range] of ranges) await profile.setShape(name, range);
  if (ranges.size > 0) await config.addOptimizationProfile(profile);
  return await builder.build(network, config, { progress, signal });
}

/** The most bytes of all cached plans: the least recently used go first. */
const MOST_KEPT_BYTES = 2 ** 36;

/** Returns the cache of plans; undefined where none are cached. */
function cacheOf({ cache }: LoadTensorRTEngineOptions): DiskCache | undefined {
  if (cache === false) return undefined;
  if (cache !== undefined) checkPath('options.cache', cache);
  const folder = cache ?? cacheFolder();
  return folder === undefined
    ? undefined
    : new DiskCache(join(folder, 'tensorrt'), MOST_KEPT_BYTES);
}

/** Returns a plan's entry in the cache. */
function entryOf(
  device: CoreDevice,
  title: string,
  model: Uint8Array,
  { shapes, precision, stronglyTyped, workspace, optimizationLevel }: LoadTensorRTEngineOptions,
): string {
  const key = JSON.stringify([
    title,
    device.name,
    device.properties.computeCapability,
    shapes,
    DEFAULT_BATCH,
    precision,
    stronglyTyped,
    workspace,
    optimizationLevel,
  ]);
  return planEntry(createHash('sha256').update(key).update('\0').update(model).digest('hex'));
}
