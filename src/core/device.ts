/** Devices: the source of memory, streams and modules. */
import { EventEmitter } from 'node:events';
import { clearTimeout, setTimeout } from 'node:timers';

import { CudaDisposedError, CudaError } from '../ground/errors.js';
import { dropRanges, wantRanges } from '../runtime/ranges.js';
import type { Runtime } from '../runtime/runtime.js';
import { checkDType, checkInteger, checkOptions, invalid } from '../ground/arguments.js';
import { DeviceBuffer } from './buffer.js';
import { DeviceBuffer2D, imageLayout } from './buffer-2d.js';
import type { Size2D } from './buffer-2d.js';
import type { DType, DTypeName } from '../ground/dtype.js';
import { Event } from './event.js';
import type { EventOptions } from './event.js';
import { Graph } from './graph.js';
import { listDevices } from './list-devices.js';
import type { DeviceInfo } from './list-devices.js';
import { createArray } from './array.js';
import type { ArraySize, DeviceArray } from './array.js';
import { allocateByCall } from './make-room.js';
import { createManaged } from './managed.js';
import type { ManagedBuffer } from './managed.js';
import type { Allocation } from './memory.js';
import { MemoryLedger } from './memory-ledger.js';
import { Module } from './module.js';
import { load, loadNow } from './module-loading.js';
import { checkText, shareImage } from './module-image.js';
import { checkModuleOptions } from './module-options.js';
import type { ModuleOptions } from './module-options.js';
import { isBytes } from '../ground/other-realms.js';
import { openShared } from './open-devices.js';
import type { SharedDevice } from './open-devices.js';
import { AllocationOrigins } from './allocation-origins.js';
import { DeviceObjects } from './device-objects.js';
import { freeEverything } from './device-closing.js';
import { reportLeaks } from './leak-report.js';
import { checkLength } from './allocation-length.js';
import { allocateInOrder } from './stream-ordered-allocation.js';
import type { AllocOptions, PlainAllocOptions } from './stream-ordered-allocation.js';
import { createPlain } from './plain.js';
import type { WaitOptions } from './pending.js';
import { canAccessPeer, disablePeerAccess, enablePeerAccess } from './peer-access.js';
import { recordPlaces } from './operation-places.js';
import { createPinned } from './pinned.js';
import type { PinnedBuffer } from './pinned.js';
import { MemoryPool, createPool } from './pool.js';
import type { PoolOptions } from './pool.js';
import { propertiesOf } from './properties.js';
import type { DeviceProperties } from './properties.js';
import { RecycledMemory } from './recycled-memory.js';
import { ReadsUnderway } from './staging.js';
import type { Staging } from './staging.js';
import { statsOf } from './stats.js';
import type { DeviceStats } from './stats.js';
import { Stream } from './stream.js';
import type { StreamOptions } from './stream-options.js';
import { createSurface, createTexture } from './texture.js';
import type { Surface, Texture, TextureOptions, TextureSource } from './texture.js';
import { checkOpenOptions } from './open-options.js';
import type { DeviceName, OpenOptions } from './open-options.js';
import { type LimitName, limitNumber } from './device-limits.js';
import { reportUnclaimed } from './device-events.js';
import type { DeviceEvents } from './device-events.js';

/**
 * An open device. Made by {@link CoreDevice.open}.
 *
 * @example
 * ```ts
 * await using other = await CoreDevice.open('cpu');
 * using x = other.alloc(f32, 2);
 * x.fill(other.stream, 3);
 * console.log(await x.read(other.stream)); // Float32Array(2) [ 3, 3 ]
 * ```
 */
export class CoreDevice extends EventEmitter<DeviceEvents> implements AsyncDisposable {
  /** `cuda` for an NVIDIA GPU, `cpu` for the embedded device. */
  readonly kind: 'cuda' | 'cpu';
  /** Number of the device among those of its kind. */
  readonly ordinal: number;
  /** e.g. `NVIDIA H200` */
  readonly name: string;
  /** The properties, read when the device was opened. cuDeviceGetAttribute */
  readonly properties: Readonly<DeviceProperties>;
  /** The stream that is used where none is passed, for allocations. It has no other privilege. */
  readonly stream: Stream;
  /** @internal */
  readonly runtime: Runtime;
  /** @internal */
  readonly staging: Staging;
  /** @internal */
  readonly reads: ReadsUnderway = new ReadsUnderway();
  /** @internal */
  readonly shared: SharedDevice;
  /** The memory that its objects hold. @internal */
  readonly ledger: MemoryLedger = new MemoryLedger(this);
  /** What was made from it and is not closed. @internal */
  readonly objects: DeviceObjects = new DeviceObjects(this.ledger);
  /** Set once {@link close} was called. @internal */
  closing = false;
  /** Whether runs that began before it was closed may still queue: see {@link underway}. */
  private draining = false;
  private readonly runsUnderway = new Set<Promise<unknown>>();
  private closed = false;
  private ending: Promise<void> | undefined = undefined;
  /** @internal */
  recycledMemory: RecycledMemory | undefined = undefined;
  private defaultPool: MemoryPool | undefined = undefined;
  private warned = false;
  /** Whether the device was opened with `nvtx`. */
  private readonly ranged: boolean;
  /** Call stacks of allocations, on a checked device only. @internal */
  readonly origins: AllocationOrigins = new AllocationOrigins();

  private constructor(shared: SharedDevice, nvtx: boolean) {
    super();
    this.shared = shared;
    this.runtime = shared.runtime;
    this.staging = shared.staging;
    const { config, info } = this.runtime;
    this.kind = config.provider === 'cpu' ? 'cpu' : 'cuda';
    this.ordinal = config.ordinal;
    this.name = info.name;
    this.properties = propertiesOf(info);
    this.stream = new Stream(this, { label: 'default' });
    this.objects.streams.add(this.stream);
    shared.devices.add(this);
    this.ranged = nvtx;
    if (nvtx) wantRanges();
    if (this.isChecked) recordPlaces();
  }

  /** Lists the NVIDIA GPUs, then the CPU device. cuDeviceGetCount, cuDeviceGetName */
  static list(): Promise<DeviceInfo[]> {
    return listDevices();
  }

  /**
   * Opens a device. `best`, the default, is the first NVIDIA GPU, or the CPU device where there is
   * no driver or no GPU; a driver that fails is an error. The environment variable
   * ASYNC_CUDA_DEVICE replaces the default.
   *
   * @throws CudaError with code ERR_CUDA_NO_DRIVER (the message lists every path that was tried) or
   *   ERR_CUDA_NO_DEVICE
   */
  static async open(
    name?: DeviceName | (string & {}),
    options: OpenOptions = {},
  ): Promise<CoreDevice> {
    const { nvtx, inline, check } = checkOpenOptions(options);
    return new CoreDevice(await openShared(name, inline, { ...options, check }), nvtx);
  }

  /**
   * The lowest and the highest priority of a stream: lower numbers come first.
   * cuCtxGetStreamPriorityRange
   */
  get streamPriorities(): { least: number; greatest: number } {
    const { leastPriority, greatestPriority } = this.runtime.info;
    return { least: leastPriority, greatest: greatestPriority };
  }

  /** The fault by which the device was lost. */
  get lost(): CudaError | undefined {
    return this.runtime.lost;
  }

  /** Whether {@link close} has ended the device. */
  get isClosed(): boolean {
    return this.closed;
  }

  /** Free and total memory of the device in bytes, at a moment after the call. cuMemGetInfo */
  memoryInfo(): Promise<{ free: number; total: number }> {
    this.check();
    return this.runtime.call('memoryInfo');
  }

  /**
   * Counts of the work that was queued from this `Device`, of open objects, and of their memory:
   * numbers at the moment of the call, except the pools', which the driver gives.
   * cuMemPoolGetAttribute
   */
  async stats(): Promise<DeviceStats> {
    this.check();
    const owned = [...this.objects.owned];
    const modules = owned.filter((object) => object instanceof Module);
    const live = {
      modules: modules.length,
      kernels: modules.reduce((sum, { kernelCount }) => sum + kernelCount, 0),
      graphs: owned.filter((object) => object instanceof Graph).length,
    };
    return statsOf({
      streams: [...this.objects.streams],
      before: this.objects.streamCounts,
      ledger: this.ledger,
      live,
      pools: this.openPools(),
    });
  }

  private async openPools(): Promise<MemoryPool[]> {
    if (!this.shared.pools) return [];
    return [await this.pool(), ...this.objects.createdPools].filter((pool) => !pool.isClosed);
  }

  /** A limit of the device, in bytes or as a count. cuCtxGetLimit */
  limit(name: LimitName): Promise<number> {
    this.check();
    return this.runtime.call('getLimit', limitNumber(name));
  }

  /** Sets a limit of the device, in bytes or as a count. The driver may round up. cuCtxSetLimit */
  setLimit(name: LimitName, value: number): Promise<void> {
    this.check();
    checkInteger('value', value, 0, Number.MAX_SAFE_INTEGER);
    return this.runtime.call('setLimit', limitNumber(name), value);
  }

  /** Makes a stream. The creation is queued, without a round trip. cuStreamCreateWithPriority */
  createStream(options: StreamOptions = {}): Stream {
    this.check();
    const stream = new Stream(this, options);
    this.objects.streams.add(stream);
    return stream;
  }

  /** Makes an event. cuEventCreate */
  createEvent(options: EventOptions = {}): Event {
    return new Event(this, options);
  }

  /**
   * Allocates `length` elements, uninitialised, in stream order. Returns at once. Where there is
   * not enough memory, work that uses the buffer rejects with that error, and so does
   * `buffer.allocated()`. cuMemAllocAsync
   */
  alloc<D extends DTypeName>(
    dtype: DType<D>,
    length: number,
    options: AllocOptions = {},
  ): DeviceBuffer<D> {
    this.check();
    checkDType(dtype);
    checkLength('device.alloc', dtype, length);
    const memory = allocateInOrder(
      this,
      length * dtype.bytes,
      options,
      () => `alloc ${dtype.name}[${length}]`,
    );
    return new DeviceBuffer(memory, dtype, 0, length, undefined);
  }

  /** {@link alloc} of memory that the run of an operation owns. @internal */
  allocScoped<D extends DTypeName>(
    dtype: DType<D>,
    length: number,
    options: AllocOptions,
  ): DeviceBuffer<D> {
    const buffer = this.alloc(dtype, length, options);
    buffer.memory.scoped = true;
    return buffer;
  }

  /**
   * Allocates `length` elements, uninitialised, of memory that comes from no pool. {@link alloc} is
   * faster, and enough for kernels and copies. This method is for uses that refuse memory of a
   * pool: {@link Stream.writeValue} and {@link Stream.waitValue}, libraries that need memory of
   * cuMemAlloc, handles for other processes (cuIpcGetMemHandle).
   *
   * `close()` of the buffer returns at once, as for any other. Its memory is freed when all work
   * that uses it has ended, by a call that waits for all work of the device and lets nothing else
   * start meanwhile: make such buffers once, not in a loop. While a stream waits for a value the
   * free is put off. cuMemAlloc, cuMemFree
   *
   * @throws CudaOutOfMemoryError where there is not enough memory
   */
  async allocPlain<D extends DTypeName>(
    dtype: DType<D>,
    length: number,
    options: PlainAllocOptions = {},
  ): Promise<DeviceBuffer<D>> {
    this.check();
    return createPlain(this, dtype, length, options);
  }

  /**
   * Allocates an image of `height` rows of `width` pixels of `channels` elements, each row at a
   * multiple of 512 bytes. In all else it is like {@link alloc}. cuMemAllocAsync
   */
  alloc2D<D extends DTypeName>(
    dtype: DType<D>,
    size: Size2D,
    options: AllocOptions = {},
  ): DeviceBuffer2D<D> {
    this.check();
    const { rows, pitch, line } = imageLayout(dtype, size);
    const { width, height, channels } = rows;
    const memory = allocateInOrder(
      this,
      line === 0 ? 0 : pitch * height,
      options,
      () => `alloc2D ${dtype.name} ${height}×${width}×${channels}`,
    );
    return new DeviceBuffer2D(memory, dtype, rows, pitch, 0, undefined);
  }

  /**
   * Makes page-locked host memory of `length` elements, initialised to zero: a SharedArrayBuffer
   * from and to which the device copies at full speed. cuMemHostRegister
   *
   * @throws CudaOutOfMemoryError where there is not enough memory; CudaError with code
   *   ERR_CUDA_UNSUPPORTED where the platform does not register host memory
   */
  async pinned<D extends DTypeName>(dtype: DType<D>, length: number): Promise<PinnedBuffer<D>> {
    this.check();
    return createPinned(this, dtype, length);
  }

  /**
   * Makes managed memory of `length` elements, which kernels and JavaScript access at one address.
   * cuMemAllocManaged
   *
   * @throws CudaOutOfMemoryError where there is not enough memory
   */
  async managed<D extends DTypeName>(dtype: DType<D>, length: number): Promise<ManagedBuffer<D>> {
    this.check();
    return createManaged(this, dtype, length);
  }

  /**
   * Makes an array of texels: memory in an order of the device's own, for textures with filtering
   * in two or three dimensions, layers, cubes and surfaces. cuArray3DCreate
   *
   * @throws CudaArgumentError for a dtype that texels cannot have, or sizes that do not fit
   *   together; CudaOutOfMemoryError
   */
  async allocArray<D extends DTypeName>(dtype: DType<D>, size: ArraySize): Promise<DeviceArray<D>> {
    this.check();
    return createArray(this, dtype, size);
  }

  /**
   * Makes a texture, through which kernels read an array, an image or a buffer by coordinates. It
   * is passed to them as a 64-bit argument (`cudaTextureObject_t`). Such kernels count as users of
   * the memory. cuTexObjectCreate
   *
   * @throws CudaArgumentError for options that do not fit together
   */
  async createTexture<D extends DTypeName>(
    source: TextureSource<D>,
    options: TextureOptions = {},
  ): Promise<Texture<D>> {
    this.check();
    return createTexture(this, source, options);
  }

  /**
   * Makes a surface, through which kernels read and write an array that was made with `surface:
   * true`. cuSurfObjectCreate
   */
  async createSurface<D extends DTypeName>(array: DeviceArray<D>): Promise<Surface<D>> {
    this.check();
    return createSurface(this, array);
  }

  /** The pool of allocations that name no pool. cuDeviceGetDefaultMemPool */
  async pool(): Promise<MemoryPool> {
    this.check();
    this.defaultPool ??= new MemoryPool(
      this,
      await this.runtime.call('defaultPool', this.runtime.info.device),
      true,
    );
    return this.defaultPool;
  }

  /**
   * Makes a pool, for {@link AllocOptions.pool}. cuMemPoolCreate
   *
   * @throws CudaError with code ERR_CUDA_UNSUPPORTED where the platform has no pools
   */
  async createPool(options: PoolOptions = {}): Promise<MemoryPool> {
    this.check();
    return createPool(this, options);
  }

  /**
   * Whether kernels of this device can get access to memory of another device.
   * cuDeviceCanAccessPeer
   */
  canAccessPeer(other: CoreDevice): Promise<boolean> {
    this.check();
    checkPeer(other);
    return canAccessPeer(this.shared, other.shared);
  }

  /**
   * Lets kernels of this device use buffers of another one, as arguments that are tracked like its
   * own. Copies between devices need no such access. Access goes one way: `other` gets none to this
   * device. cuCtxEnablePeerAccess, and cuMemPoolSetAccess for each pool of `other`
   *
   * @throws CudaError with code ERR_CUDA_UNSUPPORTED where {@link canAccessPeer} is false
   */
  async enablePeerAccess(other: CoreDevice): Promise<void> {
    this.check();
    checkPeer(other);
    await enablePeerAccess(this.shared, other.shared);
  }

  /**
   * Ends {@link enablePeerAccess}, for every Device that is open on the two, once the work that is
   * queued on this one has ended. cuCtxDisablePeerAccess
   */
  async disablePeerAccess(other: CoreDevice): Promise<void> {
    this.check();
    checkPeer(other);
    await disablePeerAccess(this.shared, other.shared);
  }

  /**
   * Loads PTX (text or bytes), a cubin or a fatbin, off the JavaScript thread. Launches of other
   * modules go on meanwhile. cuLibraryLoadData, cuFuncLoad
   *
   * @throws CudaCompileError with the compiler's log
   */
  async loadModule(image: string | Uint8Array, options: ModuleOptions = {}): Promise<Module> {
    this.check();
    if (typeof image !== 'string' && !isBytes(image)) {
      throw invalid('image', 'PTX text, or the bytes of PTX, a cubin or a fatbin', image);
    }
    if (typeof image === 'string') checkText(image);
    checkModuleOptions(options);
    return load(this, image, options);
  }

  /**
   * Loads machine code with the PTX that it was made from, which has its kernels' parameters.
   * @internal
   */
  async loadMachineCode(cubin: Uint8Array, ptx: string): Promise<Module> {
    this.check();
    return load(this, cubin, {}, { made: await shareImage(ptx, this.staging.turns) });
  }

  /**
   * Loads PTX, or machine code, whose kernels' names are known, and whose parameters will be
   * declared: it is not parsed for them. @internal
   */
  async loadKnown(
    image: string | Uint8Array,
    kernels: readonly string[],
    options: ModuleOptions = {},
  ): Promise<Module> {
    this.check();
    return load(this, image, options, { kernels });
  }

  /** {@link loadKnown} on a thread that blocks until the module is loaded. @internal */
  loadKnownNow(
    image: string | Uint8Array,
    kernels: readonly string[],
    options: ModuleOptions = {},
  ): Module {
    this.check();
    return loadNow(this, image, kernels, options);
  }

  /**
   * Starts the thread that loads modules, if it has not started, because a module is about to be
   * loaded. @internal
   */
  expectModule(): void {
    if (!this.isUnusable) this.runtime.expectCall();
  }

  /**
   * The machine code that the driver's compiler makes from PTX, and the compiler's log.
   * cuLinkComplete @internal
   */
  machineCode(ptx: string): Promise<{ readonly cubin: Uint8Array; readonly infoLog: string }> {
    this.check();
    return this.runtime.call('link', ptx);
  }

  /** Waits, without blocking, for all work queued so far on every stream of this device. */
  async finished(options: WaitOptions = {}): Promise<void> {
    this.check();
    // Each wait is an async function of its own: on an inline device one of them may lose the
    // device, and the next call throws.
    await Promise.all([...this.objects.streams].map(async (stream) => stream.finished(options)));
  }

  /**
   * Ends everything that was made from this device, in order. Waits for work in flight (at most
   * `timeout` milliseconds, default 5000), and frees the memory. Work that still runs then rejects
   * with ERR_CUDA_DEVICE_CLOSED.
   */
  async close(options: { timeout?: number } = {}): Promise<void> {
    checkOptions('options', options, ['timeout']);
    const { timeout = 5000 } = options;
    if (typeof timeout !== 'number' || !(timeout >= 0 && timeout <= 0x7fffffff))
      throw invalid('options.timeout', 'milliseconds, from 0 to 2^31 - 1', timeout);
    this.ending ??= this.end(timeout);
    await this.ending;
  }

  private async end(timeout: number): Promise<void> {
    this.closing = true;
    const { runtime } = this;
    const begun = performance.now();
    await this.drain(timeout);
    const { check } = runtime.config;
    const reportsLeaks = check === true || (typeof check === 'object' && check.leaks !== false);
    if (runtime.lost === undefined && reportsLeaks) reportLeaks(this);
    const left = Math.max(0, timeout - (performance.now() - begun));
    const ended =
      runtime.lost !== undefined ||
      (await freeEverything(this, left)) ||
      runtime.lost !== undefined;
    this.closed = true;
    if (this.ranged) dropRanges();
    this.shared.devices.delete(this);
    await this.shared.release(
      new CudaError('ERR_CUDA_DEVICE_CLOSED', `${this.name} was closed while work was in flight.`),
      ended,
    );
  }

  /**
   * Waits for runs that have not queued all of their work, for example because a kernel is being
   * compiled.
   */
  private async drain(timeout: number): Promise<void> {
    const { runsUnderway, runtime } = this;
    if (runsUnderway.size === 0 || runtime.lost !== undefined) return;
    this.draining = true;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const expired = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, timeout);
    });
    const over = async (): Promise<void> => {
      // A run may wait for another one that it has started.
      while (runsUnderway.size > 0) await Promise.allSettled(runsUnderway);
    };
    await Promise.race([over(), expired]);
    clearTimeout(timer);
    this.draining = false;
  }

  /** Calls {@link close}, for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  override toString(): string {
    return (
      'Device ' +
      `${this.title}${this.closed ? ', closed' : this.lost === undefined ? '' : ', lost'}`
    );
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return this.toString();
  }

  // Used by the rest of core:

  /** Registers a run that has not queued all of its work: closing waits for it. @internal */
  underway(run: Promise<unknown>): void {
    const { runsUnderway } = this;
    runsUnderway.add(run);
    const over = (): void => {
      runsUnderway.delete(run);
    };
    run.then(over, over);
  }

  /** Whether it is closed, and waits for no run any more. @internal */
  get isOver(): boolean {
    return this.closing && !this.draining;
  }

  /** The device's name in errors: several devices may have one name. @internal */
  get title(): string {
    return `${this.kind}:${this.ordinal} ${this.name}`;
  }

  /** @internal */
  get isUnusable(): boolean {
    return this.closing || this.runtime.lost !== undefined;
  }

  /** @internal */
  check(): void {
    if (this.closing && !this.draining)
      throw new CudaDisposedError(
        `${this.name}: used after it was closed. Open it again with Device.open().`,
      );
    const { lost } = this.runtime;
    if (lost !== undefined) throw lost;
  }

  /**
   * Checks that an argument is a usable stream of this device. `fix` is the advice in the error.
   * @internal
   */
  checkStream(argument: string, stream: Stream, fix = ''): void {
    if (!(stream instanceof Stream) || stream.runtime !== this.runtime)
      throw invalid(argument, `a stream of ${this.title}`, stream, fix);
    stream.check();
  }

  /** Whether it checks the work of kernels. @internal */
  get isChecked(): boolean {
    const { check } = this.runtime.config;
    return check !== false && check !== undefined;
  }

  /** A stream was closed. @internal */
  removeStream(stream: Stream): void {
    this.objects.removeStream(stream);
    if (stream.mark > 0) this.shared.streamEnded();
  }

  /** Reports a failure that was not awaited. @internal */
  unclaimed(error: unknown): void {
    if (!this.closed && this.runtime.lost === undefined) reportUnclaimed(this, error);
  }

  /**
   * Warns that an object was collected without being closed. Objects of a closed device are closed
   * with it. @internal
   */
  leaked(what: string): void {
    if (this.warned || this.closing) return;
    this.warned = true;
    process.emitWarning(
      `${what} was garbage-collected without being closed; it is freed now. Declare it with ` +
        `'using', or call close(). Further leaks are not reported.`,
      {
        type: 'CudaWarning',
        code: 'CUDA_LEAK',
      },
    );
  }

  /** Memory that the driver allocated, as a typed array. @internal */
  hostView(address: number, bytes: number): Uint8Array {
    const { driver } = this.runtime;
    if (driver === undefined)
      throw new CudaError('ERR_CUDA_INTERNAL', 'there is no driver on this thread');
    return driver.hostView(address, bytes);
  }

  /** @internal */
  allocateByCall<T>(call: () => Promise<T>): Promise<T> {
    return allocateByCall(this.runtime, this.shared.devices, call);
  }

  /** The same memory as a new allocation, for {@link RecycledMemory}. @internal */
  allocAgain(known: Allocation, stream: Stream, describe: () => string): Allocation {
    this.check();
    stream.check();
    const memory = known.again(stream, describe);
    this.objects.allocated(memory);
    return memory;
  }

  /**
   * The source of memory that is allocated and closed repeatedly; undefined on a checked device,
   * where each allocation is another one. @internal
   */
  get recycled(): RecycledMemory | undefined {
    if (this.isChecked) return undefined;
    return (this.recycledMemory ??= new RecycledMemory(this));
  }

  /** Frees unused recycled memory, before any allocation that waits for memory. @internal */
  makeRoomOfRecycled(): void {
    if (!this.closing) this.recycledMemory?.makeRoom();
  }
}

function checkPeer(other: unknown): asserts other is CoreDevice {
  if (!(other instanceof CoreDevice)) throw invalid('other', 'a Device', other);
  other.check();
}
