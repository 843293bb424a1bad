/** Runtime: makes engines from plans. */
import { checkOptions, invalid } from '../ground/arguments.js';
import type { CoreDevice } from '../core/index.js';
import { coreOf } from '../ops/scheduling.js';
import type { AnyDevice } from '../ops/index.js';
import { TensorRTEngine } from './tensorrt-engine.js';
import { openTensorRT } from './library.js';
import type { OpenTensorRT, OpenTensorRTOptions } from './library.js';
import { NativeHandle } from './native-handle.js';
import { onDevice } from './threads.js';
import { CudaError } from '../core/index.js';
import { isBytes } from '../ground/other-realms.js';

export interface RuntimeOptions extends OpenTensorRTOptions {
  /** Whether a CPU device is accepted, whose memory TensorRT cannot reach: for a stand-in. */
  readonly anyDevice?: boolean;
}

export interface DeserializeOptions {
  /**
   * Whether code of the host may be loaded from the plan, as version-compatible plans contain it:
   * for trusted plans only.
   */
  readonly hostCode?: boolean;
  /** Runs at once of `engine.infer`, each with a context's memory. Default 2. */
  readonly contexts?: number;
}

/**
 * Makes engines from plans on one device. IRuntime
 *
 * @example
 * ```ts no-run
 * import { readFile } from 'node:fs/promises';
 * await using runtime = await Runtime.create(device);
 * await using engine = await runtime.deserialize(await readFile('model.plan'));
 * process.stdout.write(`${engine.name}, ${engine.layers} layers, ${runtime.description}\n`);
 * ```
 */
export class Runtime extends NativeHandle {
  readonly device: CoreDevice;
  /** The library and its version. */
  readonly description: string;
  /** @internal */
  readonly library: OpenTensorRT;
  private open = 0;
  private closing = false;

  private constructor(library: OpenTensorRT, number: number, device: CoreDevice) {
    super(library.thread, number, `a runtime of ${library.title}`);
    this.library = library;
    this.description = library.title;
    this.device = device;
  }

  /**
   * Creates a runtime, on a thread of TensorRT's. createInferRuntime
   *
   * @throws CudaError with code ERR_CUDA_NO_LIBRARY, or ERR_CUDA_UNSUPPORTED on a CPU device and
   * for an unsupported version
   */
  static async create(device: AnyDevice, options: RuntimeOptions = {}): Promise<Runtime> {
    checkOptions('options', options, ['flavor', 'files', 'anyDevice']);
    const core = coreOf(device);
    core.check();
    if (core.kind === 'cpu' && options.anyDevice !== true) {
      throw new CudaError(
        'ERR_CUDA_UNSUPPORTED',
        `TensorRT runs engines on NVIDIA GPUs only, and ${core.name} is a CPU device. Open ` +
          `one: Device.open('cuda'); or use ONNX Runtime: async-cuda/onnxruntime.`,
      );
    }
    const library = await openTensorRT('run', { flavor: options.flavor, files: options.files });
    await onDevice(library.thread, core);
    return new Runtime(library, await library.thread.call('createRuntime', library.session), core);
  }

  /**
   * Makes an engine from a plan. deserializeCudaEngine
   *
   * @throws CudaLibraryError with TensorRT's messages for a plan that is damaged, of another
   * version or of another GPU
   */
  async deserialize(plan: Uint8Array, options: DeserializeOptions = {}): Promise<TensorRTEngine> {
    if (!isBytes(plan)) throw invalid('plan', "a Uint8Array of an engine's plan", plan);
    checkOptions('options', options, ['hostCode', 'contexts']);
    const self = this.handle;
    this.open++;
    try {
      await onDevice(this.thread, this.device);
      const described = await this.thread.call(
        'deserialize',
        self,
        plan,
        options.hostCode === true,
      );
      return new TensorRTEngine(this, described, options.contexts ?? 2, () => this.left());
    } catch (error) {
      await this.left();
      throw error;
    }
  }

  /** Destroys it, once its engines are closed. */
  override async close(): Promise<void> {
    this.closing = true;
    if (this.open === 0) await super.close();
  }

  private async left(): Promise<void> {
    this.open--;
    if (this.open === 0 && this.closing) await super.close();
  }
}
