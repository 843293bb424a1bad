/** Modules: PTX, cubin or fatbin, loaded on the device off the JavaScript thread. */
import { ACCESS_READ } from '../runtime/commands.js';
import { CudaDisposedError, CudaError } from '../ground/errors.js';
import { errorFromFailure } from '../runtime/error-of-failure.js';
import type { FailedKernel, LoadedKernel } from '../runtime/load-module.js';
import { checkText, invalid } from '../ground/arguments.js';
import { DeviceBuffer } from './buffer.js';
import type { CoreDevice } from './device.js';
import { u8 } from '../ground/dtype.js';
import { Kernel } from './kernel.js';
import { Allocation } from './memory.js';
import { Resource } from './resource.js';
import type { Use } from './resource.js';
import {
  layoutFromDeclaration,
  layoutFromDriver,
  layoutFromPtx,
  layoutOfSource,
} from './signature.js';
import type { ParamDeclaration } from './parameter-declarations.js';
import type { ParamLayout, SourceParameters } from './signature.js';
import { printed } from './print-watch.js';
import type { Stream } from './stream.js';
import type { KernelAttributes } from './kernel-attributes.js';

/** Memory that belongs to a module, and is freed with it. */
class ModuleMemory extends Allocation {
  override get pooled(): boolean {
    return false;
  }

  override get aligned(): boolean {
    return false;
  }

  override dispose(): void {
    this.disposed = true;
  }
}

/**
 * A loaded module. Made by {@link CoreDevice.loadModule}.
 *
 * @example
 * ```ts
 * await using module = await device.loadModule(`.version 7.0
 * .target sm_70
 * .address_size 64
 * .visible .entry seven(.param .u64 y) {
 *   .reg .b64 %y; ld.param.u64 %y, [y]; st.global.u32 [%y], 7; ret;
 * }`);
 * console.log(module.kernelNames); // [ 'seven' ]
 * ```
 */
export class Module implements AsyncDisposable {
  readonly device: CoreDevice;
  private readonly library: number;
  private readonly loaded: ReadonlyMap<string, LoadedKernel>;
  /** Kernels that need something this device does not have. The others can be used. */
  private readonly failed: ReadonlyMap<string, FailedKernel>;
  private readonly handles = new Map<string, number>();
  private readonly globals = new Map<string, ModuleMemory>();
  /** The uses of its kernels by streams: the module is not unloaded before they end. */
  private readonly uses = new Resource(0);
  /** The use of the stream that launched last. */
  private lastUse: Use | undefined = undefined;
  private readonly prints: boolean;
  /**
   * Whether some kernel waits for the grids that it depends on; undefined where the module is
   * machine code. @internal
   */
  readonly waits: boolean | undefined;
  private closed = false;

  /** @internal */
  constructor(
    device: CoreDevice,
    library: number,
    kernels: readonly LoadedKernel[],
    failed: readonly FailedKernel[],
    { prints, waits }: { readonly prints: boolean; readonly waits: boolean | undefined },
  ) {
    this.device = device;
    this.library = library;
    this.prints = prints;
    this.waits = waits;
    this.failed = new Map(failed.map((kernel) => [kernel.name, kernel]));
    this.loaded = new Map(kernels.map((kernel) => [kernel.name, kernel]));
    device.objects.own(this);
    device.shared.modules.add(this);
  }

  /** Names of the module's kernels. */
  get kernelNames(): readonly string[] {
    return [...this.loaded.keys()];
  }

  /** Whether {@link close} was called. */
  get isClosed(): boolean {
    return this.closed;
  }

  /**
   * A kernel by its name. The module states its parameters (PTX with their types, machine code with
   * their sizes); `signature` declares dtypes and access, which are then checked.
   *
   * @throws CudaError with code ERR_CUDA_NOT_FOUND where there is no such kernel
   */
  kernel(name: string, signature?: readonly ParamDeclaration[]): Kernel {
    return this.kernelOfSource(name, signature, { pointers: new Map(), words: new Map() });
  }

  /**
   * Does the same as {@link kernel}. Where no signature is declared, the source's parameters apply.
   * @internal
   */
  kernelOfSource(
    name: string,
    signature: readonly ParamDeclaration[] | undefined,
    source: SourceParameters,
  ): Kernel {
    this.check();
    checkText('name', name);
    const failed = this.failed.get(name);
    if (failed !== undefined) throw errorFromFailure(failed.failure, `module.kernel('${name}')`);
    const loaded = this.loaded.get(name);
    if (loaded === undefined) {
      throw new CudaError(
        'ERR_CUDA_NOT_FOUND',
        `module: there is no kernel '${name}'. It has ` +
          `${this.kernelNames.length === 0 ? 'none' : this.kernelNames.join(', ')}. ` +
          'Kernels in CUDA C++ need extern "C" to keep their names.',
      );
    }
    if (signature !== undefined && !Array.isArray(signature))
      throw invalid('signature', 'an array of dtypes and input(…), output(…), inout(…)', signature);
    const own: ParamLayout[] | undefined =
      loaded.signature !== undefined
        ? layoutFromPtx(loaded.signature, loaded.params)
        : loaded.params === undefined
          ? undefined
          : layoutFromDriver(loaded.params);
    if (own === undefined && signature === undefined) {
      throw new CudaError(
        'ERR_CUDA_UNSUPPORTED',
        `module.kernel('${name}'): the module is machine code, and a driver before CUDA 12.4 ` +
          `does not list its kernels' parameters. ` +
          `Declare all of them, in order: module.kernel('${name}', [inout(f32), f32, …]), ` +
          'structures as struct(bytes, alignment); or load PTX, or update the driver.',
      );
    }
    const layout =
      signature === undefined
        ? layoutOfSource(own!, source)
        : layoutFromDeclaration(name, signature as readonly ParamDeclaration[], own);
    let handle = this.handles.get(name);
    if (handle === undefined) {
      handle = this.device.runtime.handles.adopt(loaded.function);
      this.handles.set(name, handle);
      this.device.runtime.kernelNames.set(handle, name);
    }
    const attributes: KernelAttributes = loaded.attributes;
    return new Kernel(this, name, loaded.function, handle, layout, attributes);
  }

  /**
   * A `__device__` or `__constant__` variable, as its bytes; `reinterpret(dtype)` gives its
   * elements. Work on the buffer is tracked; kernels that use the variable by its name are not.
   * cuLibraryGetGlobal
   *
   * @throws CudaError with code ERR_CUDA_NOT_FOUND where there is no such variable
   */
  async global(name: string): Promise<DeviceBuffer<'u8'>> {
    this.check();
    checkText('name', name);
    if (name === '') throw invalid('name', 'the name of a variable', name);
    let memory = this.globals.get(name);
    if (memory === undefined) {
      const { runtime } = this.device;
      const { dptr, bytes } = await runtime.call('getGlobal', this.library, name);
      memory = new ModuleMemory(
        this.device,
        this.device.stream,
        runtime.handles.adopt(dptr),
        bytes,
        name,
        () => `global '${name}'`,
      );
      this.globals.set(name, memory);
    }
    // The buffer is a view: it frees nothing, and keeps its module alive.
    return new DeviceBuffer(memory, u8, 0, memory.bytes, this);
  }

  /** The number of kernels that have a handle. @internal */
  get kernelCount(): number {
    return this.handles.size;
  }

  /** Unloads the module once its kernels have ended. cuLibraryUnload */
  async close(): Promise<void> {
    if (this.closed) return;
    this.closed = true;
    this.device.objects.disown(this);
    this.device.shared.modules.delete(this);
    for (const memory of this.globals.values()) memory.dispose();
    const { runtime } = this.device;
    if (runtime.lost !== undefined) return;
    await Promise.all([
      this.uses.settled(),
      ...[...this.globals.values()].map((memory) => memory.settled()),
    ]);
    for (const handle of this.handles.values()) {
      runtime.kernelNames.delete(handle);
      runtime.handles.drop(handle);
    }
    for (const memory of this.globals.values()) runtime.handles.drop(memory.handle);
    await runtime.call('unloadLibrary', this.library);
  }

  /** Calls {@link close}, for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  toString(): string {
    return `Module(${this.kernelNames.join(', ')})${this.closed ? ', closed' : ''}`;
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return this.toString();
  }

  /** @internal */
  used(stream: Stream, mark: number): void {
    const { lastUse } = this;
    if (lastUse?.stream === stream) {
      lastUse.mark = mark;
      return;
    }
    this.uses.used(stream, ACCESS_READ, mark);
    const { captureScope } = stream;
    captureScope?.parts.add(this);
    // For a module that prints, and within a capture, `lastUse` stays undefined, so that each
    // launch takes this path.
    if (this.prints) printed(stream);
    else if (captureScope === undefined)
      this.lastUse = this.uses.readers.find((reader) => reader.stream === stream);
  }

  /**
   * Called at the beginning of a capture, whose launches are recorded apart from earlier ones.
   * @internal
   */
  resetLastUse(): void {
    this.lastUse = undefined;
  }

  /** A graph with its kernels was launched. @internal */
  launched(stream: Stream, mark: number): void {
    this.uses.used(stream, ACCESS_READ, mark);
  }

  private check(): void {
    if (this.closed)
      throw new CudaDisposedError(
        'module: used after it was closed. Load it again with device.loadModule().',
      );
    this.device.check();
  }
}
