/** Builder: makes networks, profiles and configurations, and an engine's plan from them. */
import { checkOptions, checkSignal, invalid } from '../ground/arguments.js';
import type { CoreDevice } from '../core/index.js';
import { coreOf } from '../ops/scheduling.js';
import type { AnyDevice } from '../ops/index.js';
import { BuilderConfig, settingsOf } from './builder-config.js';
import type { BuilderConfigOptions } from './builder-config.js';
import type { BuildProgress } from './engine-options.js';
import { forget, onProgress } from './notifications.js';
import { openTensorRT } from './library.js';
import type { OpenTensorRT, OpenTensorRTOptions } from './library.js';
import { NativeHandle } from './native-handle.js';
import { NetworkDefinition } from './network-definition.js';
import { OptimizationProfile } from './optimization-profile.js';
import { listener, onDevice } from './threads.js';

export interface BuilderOptions extends OpenTensorRTOptions {
  /**
   * The device that the engine is to run on. Default: TensorRT's, the first GPU; TensorRT for RTX
   * builds without a GPU.
   */
  readonly device?: AnyDevice;
}

export interface BuildOptions {
  /** Called as the build proceeds, from version 10 on. */
  readonly progress?: ((progress: BuildProgress) => void) | undefined;
  /**
   * Ends the build at its next step, from version 10 on; in earlier versions it ends only the wait.
   */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Makes networks, profiles and configurations, and builds plans from them.
 * {@link loadTensorRTEngine} does all of it in one call. IBuilder
 *
 * @example
 * ```ts no-run
 * await using builder = await Builder.create({ flavor: 'rtx' });
 * const network = await builder.createNetwork();
 * const parser = await OnnxParser.create(network);
 * await parser.parseFile('model.onnx');
 * const plan = await builder.build(network, await builder.createConfig());
 * await using engine = await (await Runtime.create(device)).deserialize(plan);
 * ```
 */
export class Builder extends NativeHandle {
  /** The library and its version, e.g. `TensorRT for RTX 1.7.1`. */
  readonly description: string;
  /** @internal */
  readonly library: OpenTensorRT;
  private readonly device: CoreDevice | undefined;

  private constructor(library: OpenTensorRT, number: number, device: CoreDevice | undefined) {
    super(library.thread, number, `a builder of ${library.title}`);
    this.library = library;
    this.description = library.title;
    this.device = device;
  }

  /**
   * Creates a builder, on a thread of TensorRT's. createInferBuilder
   *
   * @throws CudaError with code ERR_CUDA_NO_LIBRARY where the library is not found,
   * ERR_CUDA_UNSUPPORTED where its version is not supported, or it is the lean runtime
   */
  static async create(options: BuilderOptions = {}): Promise<Builder> {
    checkOptions('options', options, ['flavor', 'files', 'device']);
    const device = options.device === undefined ? undefined : coreOf(options.device);
    const library = await openTensorRT('build', { flavor: options.flavor, files: options.files });
    await onDevice(library.thread, device);
    return new Builder(
      library,
      await library.thread.call('createBuilder', library.session),
      device,
    );
  }

  /**
   * Creates an empty network. createNetworkV2
   *
   * @param options `stronglyTyped`: every layer computes in the types of the model. From version 11
   * on, and in TensorRT for RTX from 1.5 on, all networks are strongly typed
   */
  async createNetwork(
    options: { readonly stronglyTyped?: boolean } = {},
  ): Promise<NetworkDefinition> {
    checkOptions('options', options, ['stronglyTyped']);
    const { network, stronglyTyped } = await this.thread.call(
      'createNetwork',
      this.handle,
      options.stronglyTyped,
    );
    return new NetworkDefinition(this, network, stronglyTyped, this.library);
  }

  /**
   * Creates a profile, which takes effect once it is added to a configuration.
   * createOptimizationProfile
   */
  async createOptimizationProfile(): Promise<OptimizationProfile> {
    return new OptimizationProfile(this, await this.thread.call('createProfile', this.handle));
  }

  /**
   * Creates a configuration with the options; each is read back. createBuilderConfig
   *
   * @throws CudaArgumentError for a wrong option, CudaError for a flag that the version lacks
   */
  async createConfig(options: BuilderConfigOptions = {}): Promise<BuilderConfig> {
    return new BuilderConfig(
      this,
      await this.thread.call('createConfig', this.handle, settingsOf(options)),
    );
  }

  /** Returns whether the network can be built without a fallback. isNetworkSupported */
  isNetworkSupported(network: NetworkDefinition, config: BuilderConfig): Promise<boolean> {
    checkBuildable(network, config);
    return this.thread.call('isSupported', this.handle, network.handle, config.handle);
  }

  /**
   * Builds the network; returns the engine in its stored form, a plan. It may take minutes, none of
   * them on this thread or the device's. buildSerializedNetwork
   *
   * @throws the signal's reason; CudaOutOfMemoryError; CudaLibraryError with TensorRT's messages
   */
  async build(
    network: NetworkDefinition,
    config: BuilderConfig,
    options: BuildOptions = {},
  ): Promise<Uint8Array> {
    checkOptions('options', options, ['progress', 'signal']);
    const { progress, signal } = options;
    checkSignal(signal);
    if (progress !== undefined && typeof progress !== 'function')
      throw invalid('options.progress', 'a function', progress);
    checkBuildable(network, config);
    signal?.throwIfAborted();
    const [self, from, by] = [this.handle, network.handle, config.handle];
    await onDevice(this.thread, this.device);
    if (progress === undefined && signal === undefined)
      return this.thread.call('build', self, from, by, undefined);
    const cancel = new Int32Array(new SharedArrayBuffer(4));
    const id = onProgress((phase, step, steps) => progress?.({ phase, step, steps }));
    const abort = (): void => {
      Atomics.store(cancel, 0, 1);
    };
    signal?.addEventListener('abort', abort, { once: true });
    if (signal?.aborted === true) abort();
    try {
      const monitor = await listener().call('monitor', id, cancel.buffer);
      const built = this.thread.call('build', self, from, by, monitor);
      // A cancelled build continues until TensorRT calls its monitor.
      const release = (): void => {
        void listener().call('release', monitor);
      };
      built.then(release, release);
      return await (signal === undefined ? built : unlessAborted(built, signal));
    } finally {
      signal?.removeEventListener('abort', abort);
      forget(id);
    }
  }
}

function checkBuildable(network: unknown, config: unknown): void {
  if (!(network instanceof NetworkDefinition))
    throw invalid('network', 'a NetworkDefinition', network);
  if (!(config instanceof BuilderConfig)) throw invalid('config', 'a BuilderConfig', config);
}

/**
 * Returns the result of a build; rejects with the signal's reason as soon as it aborts: the thread
 * reaches the end of the build by itself.
 */
function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = (): void => {
      reject(signal.reason as Error);
    };
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort, { once: true });
    promise
      .then(resolve, (error: unknown) => {
        reject(signal.aborted ? (signal.reason as Error) : (error as Error));
      })
      .finally(() => {
        signal.removeEventListener('abort', abort);
      });
  });
}
