/**
 * The device of the root: its methods make operations, which run when they are awaited.
 * {@link Device.core} is the eager API.
 */
import { CoreDevice, recordTrace } from '../core/index.js';
import type {
  DType,
  DTypeName,
  KernelDTypeName,
  DeviceEvents,
  DeviceInfo,
  DeviceName,
  DeviceProperties,
  DeviceStats,
  HostArray,
  MemoryPool,
  ModuleOptions,
  OpenOptions,
  PinnedBuffer,
  Pending,
  Scalar,
  Stream,
  StreamOptions,
  TraceOptions,
  TraceRecording,
  WaitOptions,
} from '../core/index.js';
import {
  operation,
  policyOf,
  poolOf,
  setPolicy,
  setPool,
  value,
  withContext,
} from '../ops/index.js';
import type { DeviceOp, OpContext, SchedulingPolicy } from '../ops/index.js';
import * as make from '../tensor/index.js';
import type {
  ArangeOptions,
  DLTensor,
  Dims,
  EyeOptions,
  HostList,
  RandOptions,
  RandnOptions,
  RealName,
  Shape,
  TakeOverOptions,
  Tensor,
  TensorOptions,
} from '../tensor/index.js';
import type { CompiledModule, DeviceCompileOptions } from './compiled-module.js';
import { OpModule } from './module.js';

/**
 * A GPU, or the embedded CPU device. Made by {@link Device.open}.
 *
 * @example
 * ```ts
 * await using other = await Device.open('cpu');
 * console.log(await other.ones(f32, [3]).andThen((x) => x.read())); // Float32Array(3) [ 1, 1, 1 ]
 * ```
 */
export class Device implements AsyncDisposable {
  /** The same device with the eager API, which takes the stream: `async-cuda/core`. */
  readonly core: CoreDevice;

  private constructor(core: CoreDevice) {
    this.core = core;
  }

  /** Lists the GPUs, and the CPU device. */
  static list(): Promise<DeviceInfo[]> {
    return CoreDevice.list();
  }

  /**
   * Opens a device: `cuda:0`, `cpu:0` and so on. Without a name it is the first GPU, or the CPU
   * device where there is no driver or no GPU; the environment variable ASYNC_CUDA_DEVICE replaces
   * that default.
   *
   * @throws CudaError with code ERR_CUDA_NO_DRIVER or ERR_CUDA_NO_DEVICE
   */
  static async open(name?: DeviceName | (string & {}), options?: OpenOptions): Promise<Device> {
    return new Device(await CoreDevice.open(name, options));
  }

  /** The lazy API of a device that is open already. */
  static of(core: CoreDevice): Device {
    return new Device(core);
  }

  /** The vendor's name of the device. */
  get name(): string {
    return this.core.name;
  }

  /** `cuda` or `cpu`. */
  get kind(): CoreDevice['kind'] {
    return this.core.kind;
  }

  /** Its number among the devices of its kind. */
  get ordinal(): number {
    return this.core.ordinal;
  }

  /** The properties of the device. */
  get properties(): DeviceProperties {
    return this.core.properties;
  }

  /** Whether {@link close} was called. */
  get isClosed(): boolean {
    return this.core.isClosed;
  }

  /**
   * The policy that chooses the stream of operations that are passed none. Default:
   * `NextIdle` over four streams.
   */
  get policy(): SchedulingPolicy {
    return policyOf(this.core);
  }

  set policy(policy: SchedulingPolicy | undefined) {
    setPolicy(this.core, policy);
  }

  /** The pool that operations allocate from; undefined for the device's own. */
  get pool(): MemoryPool | undefined {
    return poolOf(this.core);
  }

  set pool(pool: MemoryPool | undefined) {
    setPool(this.core, pool);
  }

  // Tensors

  /** A tensor of uninitialised memory. cuMemAllocAsync */
  uninitialized<D extends DTypeName, const S extends Shape>(
    dtype: DType<D>,
    shape: S,
    options?: TensorOptions,
  ): DeviceOp<Tensor<D, Dims<S>>> {
    return make.uninitialized(this.core, dtype, shape, options);
  }

  /** A tensor whose elements are 0. */
  zeros<D extends DTypeName, const S extends Shape>(
    dtype: DType<D>,
    shape: S,
    options?: TensorOptions,
  ): DeviceOp<Tensor<D, Dims<S>>> {
    return make.zeros(this.core, dtype, shape, options);
  }

  /** A tensor whose elements are 1. */
  ones<D extends DTypeName, const S extends Shape>(
    dtype: DType<D>,
    shape: S,
    options?: TensorOptions,
  ): DeviceOp<Tensor<D, Dims<S>>> {
    return make.ones(this.core, dtype, shape, options);
  }

  /** A tensor whose elements are all `element`. */
  full<D extends DTypeName, const S extends Shape>(
    dtype: DType<D>,
    shape: S,
    element: Scalar<D>,
    options?: TensorOptions,
  ): DeviceOp<Tensor<D, Dims<S>>> {
    return make.full(this.core, dtype, shape, element, options);
  }

  /** A tensor of start, start + step, … */
  arange<D extends KernelDTypeName, const N extends number>(
    dtype: DType<D>,
    length: N,
    options?: ArangeOptions,
  ): DeviceOp<Tensor<D, [N]>> {
    return make.arange(this.core, dtype, length, options);
  }

  /** A tensor of numbers at equal distances, both ends included. */
  linspace<D extends RealName, const N extends number>(
    dtype: DType<D>,
    from: number,
    to: number,
    length: N,
    options?: TensorOptions,
  ): DeviceOp<Tensor<D, [N]>> {
    return make.linspace(this.core, dtype, from, to, length, options);
  }

  /** A matrix with 1 on a diagonal, 0 elsewhere. */
  eye<D extends KernelDTypeName, const R extends number, const C extends number = R>(
    dtype: DType<D>,
    rows: R,
    columns?: C,
    options?: EyeOptions,
  ): DeviceOp<Tensor<D, [R, C]>> {
    return make.eye(this.core, dtype, rows, columns, options);
  }

  /**
   * A tensor of uniform random numbers: the same for the same seed, others in each run without one.
   */
  rand<D extends RealName, const S extends Shape>(
    dtype: DType<D>,
    shape: S,
    options?: RandOptions,
  ): DeviceOp<Tensor<D, Dims<S>>> {
    return make.rand(this.core, dtype, shape, options);
  }

  /**
   * A tensor of normal random numbers: the same for the same seed, others in each run without one.
   */
  randn<D extends RealName, const S extends Shape>(
    dtype: DType<D>,
    shape: S,
    options?: RandnOptions,
  ): DeviceOp<Tensor<D, Dims<S>>> {
    return make.randn(this.core, dtype, shape, options);
  }

  /**
   * A tensor with the elements of a host array, in row-major order; one axis where no shape is
   * given. Elements of a plain list are checked; an ArrayBuffer has the elements' bytes.
   */
  tensor<D extends DTypeName>(
    dtype: DType<D>,
    source: HostArray<D> | HostList<D> | ArrayBuffer | SharedArrayBuffer,
  ): DeviceOp<Tensor<D, [number]>>;
  tensor<D extends DTypeName, const S extends Shape>(
    dtype: DType<D>,
    source: HostArray<D> | HostList<D> | ArrayBuffer | SharedArrayBuffer,
    shape: S,
    options?: TensorOptions,
  ): DeviceOp<Tensor<D, Dims<S>>>;
  tensor<D extends DTypeName>(
    dtype: DType<D>,
    source: HostArray<D>,
    shape?: Shape,
    options?: TensorOptions,
  ): DeviceOp<Tensor<D, number[]>> {
    return shape === undefined
      ? make.tensor(this.core, dtype, source)
      : make.tensor(this.core, dtype, source, shape, options);
  }

  /**
   * A tensor in memory of another library, which a DLPack descriptor describes: see
   * {@link Tensor.fromDLPack}.
   */
  fromDLPack(descriptor: DLTensor, options?: TakeOverOptions): Promise<Tensor> {
    return make.Tensor.fromDLPack(this.core, descriptor, options);
  }

  // Operations

  /** An operation of this device whose value is `given`. */
  value<T>(given: T): DeviceOp<T> {
    const op = value(given);
    return withContext(() => op, this.core);
  }

  /**
   * The operation that the callback returns. The callback is called when it runs, and receives the
   * context with the stream.
   */
  withContext<T>(callback: (context: OpContext) => DeviceOp<T>): DeviceOp<T> {
    return withContext(callback, this.core);
  }

  /**
   * Work of level 3 as an operation. The callback is called when the operation runs, and queues on
   * `context.stream`.
   */
  operation<T>(queue: (context: OpContext) => T | Pending<T>): DeviceOp<T> {
    return operation(this.core, queue);
  }

  // Modules, streams, and the device itself

  /** Loads PTX, a cubin or a fatbin. Launches of its kernels are operations. cuLibraryLoadData */
  async loadModule(image: string | Uint8Array, options?: ModuleOptions): Promise<OpModule> {
    return new OpModule(await this.core.loadModule(image, options));
  }

  /**
   * Compiles CUDA C++ with NVIDIA's NVRTC for this device, off the JavaScript thread, and loads it.
   * Its kernels are properties: `const { scale } = await device.compile('extern "C" __global__ void
   * scale(…) { … }')`. Their parameters are typed from the text where it is a literal, and
   * `module['tile<float>']` exists for each of `nameExpressions`. A program that was compiled
   * before comes from disk.
   *
   * Throws and rejects as {@link loadModule} and `compile` of `async-cuda/nvrtc` do:
   * NvrtcCompileError, which shows the lines, where the source is wrong; CudaError with code
   * ERR_CUDA_NO_LIBRARY where there is no NVRTC. nvrtcCompileProgram
   */
  async compile<const Source extends string>(
    source: Source,
    options?: DeviceCompileOptions,
  ): Promise<CompiledModule<Source>> {
    const { compileModule } = await import('./compiled-module.js');
    return compileModule(this.core, source, options);
  }

  /**
   * Loads the kernels that tensors of these dtypes need, so that their first use does not wait for
   * that.
   */
  prepare(...dtypes: readonly DType[]): Promise<void> {
    return make.prepare(this.core, ...dtypes);
  }

  /** Allocates page-locked memory. cuMemHostRegister */
  pinned<D extends DTypeName>(dtype: DType<D>, length: number): Promise<PinnedBuffer<D>> {
    return this.core.pinned(dtype, length);
  }

  /**
   * Makes a stream, for `op.runOn(stream)`, `op.on(stream)` and `op.capture(stream)`.
   * cuStreamCreateWithPriority
   */
  createStream(options?: StreamOptions): Stream {
    return this.core.createStream(options);
  }

  /** Resolves when all work queued so far has ended. */
  finished(options?: WaitOptions): Promise<void> {
    return this.core.finished(options);
  }

  /** Records the work of the device as a trace for Perfetto, until `stop()` of the recording. */
  recordTrace(options?: TraceOptions): TraceRecording {
    return recordTrace(this.core, options);
  }

  /** Counts of the device: launches, copies, memory, open objects and queued work. */
  stats(): Promise<DeviceStats> {
    return this.core.stats();
  }

  /** Adds a listener for failures that are not awaited, or for the loss of the device. */
  on<E extends keyof DeviceEvents>(event: E, listener: (...args: DeviceEvents[E]) => void): this {
    this.core.on(event, listener as never);
    return this;
  }

  /** Waits for queued work and frees everything. */
  close(options?: { timeout?: number }): Promise<void> {
    return this.core.close(options);
  }

  /** Calls {@link close}, for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  toString(): string {
    return this.core.toString();
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return this.toString();
  }
}
