/** Devices: the source of memory, streams and modules. */
import { EventEmitter } from 'node:events';
import { clearTimeout, setTimeout } from 'node:timers';

import type { CheckMemory, CheckOptions, CheckReport } from '../ground/check-report.js';
import { ACCESS_WRITE, OP } from '../runtime/commands.js';
import { CudaDisposedError, CudaError, CudaOutOfMemoryError } from '../ground/errors.js';
import { allocateHost } from '../runtime/host-allocation.js';
import type { KnownOfModule } from '../runtime/load-module.js';
import { dropRanges, wantRanges } from '../runtime/ranges.js';
import { putInt64 } from '../runtime/ring-writer.js';
import type { Runtime } from '../runtime/runtime.js';
import { PINNED_SLACK_BYTES } from '../runtime/layout.js';
import { AdoptedMemory } from './adopted-memory.js';
import {
  checkDType,
  checkInteger,
  checkLabel,
  checkOptions,
  invalid,
  show,
} from '../ground/arguments.js';
import { DeviceBuffer } from './buffer.js';
import { DeviceBuffer2D, PITCH_ALIGN } from './buffer-2d.js';
import type { Size2D } from './buffer-2d.js';
import type { DType, DTypeName } from '../ground/dtype.js';
import { Event } from './event.js';
import type { EventOptions } from './event.js';
import { Graph } from './graph.js';
import { listDevices } from './list-devices.js';
import type { DeviceInfo } from './list-devices.js';
import { DeviceArray, createArray } from './array.js';
import type { ArraySize } from './array.js';
import { callersOf, stackHere } from './call-stack.js';
import { allocateByCall } from './make-room.js';
import { ManagedBuffer, ManagedMemory } from './managed.js';
import { Allocation } from './memory.js';
import { MemoryLedger } from './memory-ledger.js';
import { Module } from './module.js';
import { NodeMemory } from './node-memory.js';
import { checkText, shareImage } from './module-image.js';
import { checkModuleOptions, jitOptions } from './module-options.js';
import type { ModuleOptions } from './module-options.js';
import { isBytes } from '../ground/other-realms.js';
import { openShared } from './open-devices.js';
import type { SharedDevice } from './open-devices.js';
import type { WaitOptions } from './pending.js';
import { canAccessPeer, disablePeerAccess, enablePeerAccess, grantPeers } from './peer-access.js';
import { placeOfOperation, recordPlaces } from './operation-places.js';
import { PinnedBuffer, PinnedMemory } from './pinned.js';
import { PlainMemory } from './plain.js';
import { MemoryPool, checkedThreshold } from './pool.js';
import type { PoolOptions } from './pool.js';
import { propertiesOf } from './properties.js';
import type { DeviceProperties } from './properties.js';
import { RecycledMemory } from './recycled-memory.js';
import { ReadsUnderway } from './staging.js';
import type { Staging } from './staging.js';
import { StreamCounts, statsOf } from './stats.js';
import type { DeviceStats } from './stats.js';
import { Stream } from './stream.js';
import type { StreamOptions } from './stream.js';
import { createSurface, createTexture } from './texture.js';
import type { Surface, Texture, TextureOptions, TextureSource } from './texture.js';
import { captureError } from './capture-error.js';
import { checkOpenOptions } from './open-options.js';
import type { DeviceName, OpenOptions } from './open-options.js';
import { type LimitName, limitNumber } from './device-limits.js';
import type { DeviceEvents } from './device-events.js';

/** Options of {@link CoreDevice.alloc} and {@link CoreDevice.alloc2D}. */
export interface AllocOptions {
  /**
   * The stream on which the memory is allocated and freed, in its order. Default `device.stream`.
   */
  stream?: Stream;
  /** The pool of the memory. Default: the device's own. */
  pool?: MemoryPool;
  /** The label that errors show. */
  label?: string;
}

/** Options of {@link CoreDevice.allocPlain}. */
export type PlainAllocOptions = Pick<AllocOptions, 'label'>;

/** The most allocations whose place in the program is recorded. */
const MOST_ORIGINS = 65536;

interface Closable {
  close(): Promise<void>;
}

/** Leaks that closing a device reports one by one as warnings of the process. */
const MOST_LEAK_WARNINGS = 5;

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
  /** Set once {@link close} was called. @internal */
  closing = false;
  /** Whether runs that began before it was closed may still queue: see {@link underway}. */
  private draining = false;
  private readonly runsUnderway = new Set<Promise<unknown>>();
  private closed = false;
  private ending: Promise<void> | undefined = undefined;
  private readonly streams = new Set<Stream>();
  private readonly allocations = new Set<Allocation>();
  private readonly owned = new Set<Closable>();
  /** Memory that is freed by calls that have not ended. */
  private readonly frees = new Set<Promise<void>>();
  private readonly pools = new Map<Allocation, MemoryPool>();
  private readonly createdPools = new Set<MemoryPool>();
  private recycledMemory: RecycledMemory | undefined = undefined;
  private defaultPool: MemoryPool | undefined = undefined;
  /** Counts of closed streams. */
  private readonly streamCounts = new StreamCounts();
  private warned = false;
  /** Whether the device was opened with `nvtx`. */
  private readonly ranged: boolean;
  /** Call stacks of allocations, by {@link originKey}; on a checked device only. */
  private readonly origins = new Map<string, { label: string; stack: string }>();

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
    this.streams.add(this.stream);
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
    const owned = [...this.owned];
    const modules = owned.filter((object) => object instanceof Module);
    const live = {
      modules: modules.length,
      kernels: modules.reduce((sum, { kernelCount }) => sum + kernelCount, 0),
      graphs: owned.filter((object) => object instanceof Graph).length,
    };
    return statsOf({
      streams: [...this.streams],
      before: this.streamCounts,
      ledger: this.ledger,
      live,
      pools: this.openPools(),
    });
  }

  private async openPools(): Promise<MemoryPool[]> {
    if (!this.shared.pools) return [];
    return [await this.pool(), ...this.createdPools].filter((pool) => !pool.isClosed);
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
    this.streams.add(stream);
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
    const memory = this.allocate(
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
    this.check();
    checkDType(dtype);
    checkLength('device.alloc', dtype, length);
    const memory = this.allocate(
      length * dtype.bytes,
      options,
      () => `alloc ${dtype.name}[${length}]`,
    );
    memory.scoped = true;
    return new DeviceBuffer(memory, dtype, 0, length, undefined);
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
    checkDType(dtype);
    checkLength('device.allocPlain', dtype, length);
    checkOptions('options', options, ['label']);
    const { label } = options;
    checkLabel('options.label', label);
    const bytes = length * dtype.bytes;
    const named = (): string =>
      `allocPlain ${dtype.name}[${length}]${label === undefined ? '' : ` '${label}'`}`;
    const root = this.runtime.nextRoot();
    if (this.checks !== undefined) this.recordOrigin({ root, handle: 0 }, named());
    const address =
      bytes === 0
        ? 0
        : await this.allocateByCall(() =>
            this.runtime.call('allocPlain', this.runtime.info.device, bytes, root),
          );
    const memory = new PlainMemory(this, address, bytes, label, named);
    memory.root = root;
    this.allocations.add(memory);
    this.ledger.take(memory);
    return new DeviceBuffer(memory, dtype, 0, length, undefined);
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
    checkDType(dtype);
    if (size === undefined) throw invalid('size', 'an object with width and height', size);
    checkOptions('size', size, ['width', 'height', 'channels']);
    const { width, height, channels = 1 } = size;
    checkInteger('size.width', width, 0, 0x7fffffff, 'pixels');
    checkInteger('size.height', height, 0, 0x7fffffff, 'rows');
    checkInteger('size.channels', channels, 1, 65536, 'elements');
    const line = width * channels * dtype.bytes;
    const pitch = Math.max(PITCH_ALIGN, Math.ceil(line / PITCH_ALIGN) * PITCH_ALIGN);
    if (pitch > 0x7fffffff) throw invalid('size', 'rows of at most 2 GiB', `${line} bytes`);
    if (pitch * height > Number.MAX_SAFE_INTEGER)
      throw new CudaOutOfMemoryError(
        `device.alloc2D: ${height} rows of ${pitch} bytes are more than any device has`,
      );
    const memory = this.allocate(
      line === 0 ? 0 : pitch * height,
      options,
      () => `alloc2D ${dtype.name} ${height}×${width}×${channels}`,
    );
    return new DeviceBuffer2D(memory, dtype, { width, height, channels }, pitch, 0, undefined);
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
    checkDType(dtype);
    checkLength('device.pinned', dtype, length);
    if (!this.runtime.info.registered) {
      throw new CudaError(
        'ERR_CUDA_UNSUPPORTED',
        'device.pinned: this platform does not register host memory (cuMemHostRegister); some ' +
          'virtual GPUs and WSL do not. Read and write plain arrays: they go through ' +
          'page-locked staging.',
      );
    }
    const bytes = Math.max(1, length * dtype.bytes);
    const buffer = allocateHost('device.pinned', bytes, 'Make several smaller ones.', () => {
      const shared = new SharedArrayBuffer(bytes + PINNED_SLACK_BYTES);
      // The buffer may have more bytes than a typed array can have.
      return new Uint8Array(shared).buffer;
    });
    const { byteOffset, address, deviceAddress } = await this.runtime.call(
      'registerPinned',
      buffer,
      bytes,
    );
    this.runtime.pinned.set(address, buffer);
    const memory = new PinnedMemory(
      this,
      this.runtime.handles.adopt(address),
      address,
      deviceAddress - address,
      buffer,
      bytes,
    );
    this.ledger.take(memory);
    return new PinnedBuffer(memory, dtype, byteOffset, 0, length, undefined);
  }

  /**
   * Makes managed memory of `length` elements, which kernels and JavaScript access at one address.
   * cuMemAllocManaged
   *
   * @throws CudaOutOfMemoryError where there is not enough memory
   */
  async managed<D extends DTypeName>(dtype: DType<D>, length: number): Promise<ManagedBuffer<D>> {
    this.check();
    checkDType(dtype);
    checkLength('device.managed', dtype, length);
    const bytes = length * dtype.bytes;
    const named = (): string => `managed ${dtype.name}[${length}]`;
    const root = this.runtime.nextRoot();
    if (this.checks !== undefined) this.recordOrigin({ root, handle: 0 }, named());
    const { address, view } =
      bytes === 0
        ? { address: 0, view: undefined }
        : await this.allocateByCall(() =>
            this.runtime.call('allocManaged', this.runtime.info.device, bytes, 1, root),
          );
    const memory = new ManagedMemory(this, address, bytes, view, named);
    memory.root = root;
    this.allocations.add(memory);
    this.ledger.take(memory);
    return new ManagedBuffer(memory, dtype, length);
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
    checkOptions('options', options, ['maxBytes', 'releaseThreshold']);
    const { maxBytes = 0, releaseThreshold = Infinity } = options;
    if (!this.shared.pools)
      throw new CudaError(
        'ERR_CUDA_UNSUPPORTED',
        `${this.name} has no memory pools here; allocate without one`,
      );
    checkInteger('options.maxBytes', maxBytes, 0, Number.MAX_SAFE_INTEGER, 'bytes');
    const threshold = checkedThreshold('options.releaseThreshold', releaseThreshold);
    const handle = await this.runtime.call(
      'createPool',
      this.runtime.info.device,
      maxBytes,
      threshold,
    );
    const pool = new MemoryPool(this, handle, false);
    this.createdPools.add(pool);
    await grantPeers(this.shared, handle);
    return pool;
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
    return this.load(image, options);
  }

  /**
   * Loads machine code with the PTX that it was made from, which has its kernels' parameters.
   * @internal
   */
  async loadMachineCode(cubin: Uint8Array, ptx: string): Promise<Module> {
    this.check();
    return this.load(cubin, {}, { made: await shareImage(ptx, this.staging.turns) });
  }

  /**
   * Loads PTX whose kernels' names are known, and whose parameters will be declared: it is not
   * parsed for them. @internal
   */
  async loadKnown(
    ptx: string,
    kernels: readonly string[],
    options: ModuleOptions = {},
  ): Promise<Module> {
    this.check();
    return this.load(ptx, options, { kernels });
  }

  /** {@link loadKnown} on a thread that blocks until the module is loaded. @internal */
  loadKnownNow(ptx: string, kernels: readonly string[], options: ModuleOptions = {}): Module {
    this.check();
    const loaded = this.runtime.callBlocking(
      'loadModule',
      ptx,
      jitOptions(options),
      this.properties.sharedMemoryPerBlockOptin,
      { kernels },
    );
    return new Module(
      this,
      loaded.library,
      loaded.kernels,
      loaded.failed,
      options.prints ?? loaded.prints,
    );
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
    await Promise.all([...this.streams].map(async (stream) => stream.finished(options)));
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

  private async load(
    image: string | Uint8Array,
    options: ModuleOptions,
    known?: KnownOfModule,
  ): Promise<Module> {
    const shared = await shareImage(image, this.staging.turns);
    const loaded = await this.runtime.call(
      'loadModule',
      shared,
      jitOptions(options),
      this.properties.sharedMemoryPerBlockOptin,
      known,
    );
    return new Module(
      this,
      loaded.library,
      loaded.kernels,
      loaded.failed,
      options.prints ?? loaded.prints,
    );
  }

  private async end(timeout: number): Promise<void> {
    this.closing = true;
    const { runtime } = this;
    const begun = performance.now();
    await this.drain(timeout);
    if (runtime.lost === undefined) this.reportLeaks();
    const left = Math.max(0, timeout - (performance.now() - begun));
    const ended =
      runtime.lost !== undefined || (await this.finish(left)) || runtime.lost !== undefined;
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
    return this.checks !== undefined;
  }

  private get checks(): CheckOptions | undefined {
    const { check } = this.runtime.config;
    return check === false ? undefined : check === true ? {} : check;
  }

  private recordOrigin(memory: OriginKey, label: string): void {
    this.origins.set(originKey(memory), {
      label,
      stack: placeOfOperation() ?? callersOf(stackHere()),
    });
    if (this.origins.size > MOST_ORIGINS) this.origins.delete(this.origins.keys().next().value!);
  }

  /** The description and the call stack of an allocation. @internal */
  origin(memory: OriginKey): { label: string; stack: string } | undefined {
    return (
      this.origins.get(originKey(memory)) ?? this.origins.get(originKey({ ...memory, handle: 0 }))
    );
  }

  /** Reports objects that were not closed, before they are. */
  private reportLeaks(): void {
    const { checks } = this;
    if (checks === undefined || checks.leaks === false) return;
    let warnings = 0;
    const warn = (what: string, memory: Omit<CheckMemory, 'space' | 'offset'>): void => {
      const message =
        `${what} was not closed before the ` +
        `device${memory.stack === undefined ? '' : `; it was made\n${memory.stack}`}`;
      const report: CheckReport = {
        kind: 'leak',
        message,
        count: 1,
        memory: { space: 'global', offset: 0, ...memory },
      };
      if (this.emit('check', report)) return;
      warnings++;
      if (warnings <= MOST_LEAK_WARNINGS)
        process.emitWarning(message, { type: 'CudaWarning', code: 'CUDA_LEAK' });
    };
    for (const allocation of this.allocations) {
      warn(allocation.toString(), {
        address: this.runtime.shared.values[allocation.handle]!,
        bytes: allocation.bytes,
        ...this.origin(allocation),
      });
    }
    for (const object of this.owned) {
      if (!(object instanceof DeviceArray)) continue;
      warn(object.toString(), {
        address: 0,
        bytes: object.length * object.dtype.bytes,
        label: object.toString(),
      });
    }
    if (warnings <= MOST_LEAK_WARNINGS) return;
    process.emitWarning(
      `${warnings - MOST_LEAK_WARNINGS} more were not closed before the device. ` +
        `device.on('check', …) reports each.`,
      { type: 'CudaWarning', code: 'CUDA_LEAK' },
    );
  }

  /** Handles and labels of the allocations. @internal */
  labels(): [number, string][] {
    return [...this.allocations].flatMap(({ handle, label }): [number, string][] =>
      label === undefined ? [] : [[handle, label]],
    );
  }

  /** @internal */
  get openStreams(): ReadonlySet<Stream> {
    return this.streams;
  }

  /** Driver handles of the streams whose work has been seen to end. @internal */
  idleStreams(): number[] {
    const { streams } = this.runtime.shared;
    const idle = [...this.streams].filter(
      (stream) => stream.capturing === undefined && stream.hasPassed(stream.mark),
    );
    return idle.map((stream) => streams[stream.slot.index]!).filter((handle) => handle !== 0);
  }

  /** Driver handles of the pools that were made here. @internal */
  poolHandles(): number[] {
    return [...this.createdPools].map(({ pool }) => pool);
  }

  /** Streams with frees whose end has not been seen. @internal */
  freeingStreams(): Stream[] {
    return [...this.streams].filter(
      (stream) => stream.capturing === undefined && !stream.hasPassed(stream.lastFree),
    );
  }

  /** Frees that are not work of a stream, and have not ended. @internal */
  callsThatFree(): Promise<void>[] {
    return [...this.frees];
  }

  /** @internal */
  removeStream(stream: Stream): void {
    this.streams.delete(stream);
    this.streamCounts.add(stream);
    if (stream.mark > 0) this.shared.streamEnded();
  }

  /** @internal */
  poolClosed(pool: MemoryPool): void {
    this.createdPools.delete(pool);
  }

  /** @internal */
  freed(allocation: Allocation): void {
    this.allocations.delete(allocation);
    // Adopted memory was never counted.
    if (allocation instanceof AdoptedMemory) return;
    this.ledger.give(allocation);
    const pool = this.pools.get(allocation);
    if (pool === undefined) return;
    this.pools.delete(allocation);
    pool.freed();
  }

  /** The memory is returned when the device is closed, if not before. @internal */
  adopted(memory: AdoptedMemory): void {
    this.allocations.add(memory);
  }

  /** Closing waits for `end`. @internal */
  freeing(end: Promise<void>): void {
    this.frees.add(end);
    end.catch(() => undefined).finally(() => this.frees.delete(end));
  }

  /** @internal */
  own(object: Closable): void {
    this.owned.add(object);
  }

  /** @internal */
  disown(object: Closable): void {
    this.owned.delete(object);
  }

  /** Reports a failure that was not awaited. @internal */
  unclaimed(error: unknown): void {
    if (this.closed || this.runtime.lost !== undefined) return;
    const shown =
      error instanceof CudaError
        ? error
        : new CudaError('ERR_CUDA_INTERNAL', show(error), { cause: error });
    if (this.listenerCount('error') > 0) this.emit('error', shown);
    else
      process.emitWarning(
        `${shown.message} (it was not awaited; listen with device.on('error', …))`,
        { type: 'CudaWarning', code: shown.code },
      );
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

  private allocateByCall<T>(call: () => Promise<T>): Promise<T> {
    return allocateByCall(this.runtime, this.shared.devices, call);
  }

  private allocate(bytes: number, options: AllocOptions, describe: () => string): Allocation {
    checkOptions('options', options, ['stream', 'pool', 'label']);
    const { stream = this.stream, pool, label } = options;
    checkLabel('options.label', label);
    this.checkStream('options.stream', stream);
    // On a stream that has not joined a capture, an allocation is not work that the graph would
    // lack: the memory stays.
    const { captureScope } = stream;
    if (captureScope?.isBody === true)
      throw captureError(
        'device.alloc in the body of a conditional node',
        'allocate before the node; its bodies cannot',
      );
    if (captureScope?.allocates === false) {
      throw captureError(
        'device.alloc',
        'allocate before the capture, and the graph keeps the addresses; or let nodes of the ' +
          "graph allocate, with stream.capture(…, { allocate: 'nodes' })",
      );
    }
    if (pool !== undefined) {
      if (!(pool instanceof MemoryPool) || pool.device.runtime !== this.runtime)
        throw invalid('options.pool', `a pool of ${this.title}`, pool);
      pool.check();
    }
    const handle = this.runtime.handles.take();
    const named = label === undefined ? describe : () => `${describe()} '${label}'`;
    const memory =
      captureScope === undefined
        ? new Allocation(this, stream, handle, bytes, label, named)
        : new NodeMemory(this, stream, handle, bytes, label, named);
    // A capture fails as a whole.
    const root = captureScope === undefined ? this.runtime.nextRoot() : captureScope.root;
    if (captureScope === undefined) this.runtime.name(root, memory);
    const body = stream.begin(OP.alloc, 8, root);
    const words = this.runtime.ring.memory;
    words[body] = handle;
    words[body + 1] = pool?.handle ?? 0;
    putInt64(words, body + 2, bytes);
    const mark = stream.commit();
    memory.root = root;
    memory.mark = mark;
    if (captureScope !== undefined) {
      stream.used(memory, ACCESS_WRITE, mark);
      return memory;
    }
    memory.used(stream, ACCESS_WRITE, mark);
    if (this.checks !== undefined) this.recordOrigin(memory, named());
    this.allocations.add(memory);
    this.ledger.take(memory);
    if (pool !== undefined) {
      pool.allocated();
      this.pools.set(memory, pool);
    }
    return memory;
  }

  /** The same memory as a new allocation, for {@link RecycledMemory}. @internal */
  allocAgain(known: Allocation, stream: Stream, describe: () => string): Allocation {
    this.check();
    stream.check();
    const memory = known.again(stream, describe);
    this.allocations.add(memory);
    this.ledger.take(memory);
    return memory;
  }

  /**
   * The source of memory that is allocated and closed repeatedly; undefined on a checked device,
   * where each allocation is another one. @internal
   */
  get recycled(): RecycledMemory | undefined {
    if (this.checks !== undefined) return undefined;
    return (this.recycledMemory ??= new RecycledMemory(this));
  }

  /** Frees unused recycled memory, before any allocation that waits for memory. @internal */
  makeRoomOfRecycled(): void {
    if (!this.closing) this.recycledMemory?.makeRoom();
  }

  /** Frees everything and waits for it. Returns whether all of it ended in time. */
  private async finish(timeout: number): Promise<boolean> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const expired = new Promise<false>((resolve) => {
      timer = setTimeout(() => resolve(false), timeout);
    });
    const done = async (): Promise<boolean> => {
      const { owned, allocations, streams, runtime } = this;
      // Graphs end before modules: they were made later.
      await Promise.all([...owned].reverse().map((object) => object.close()));
      this.recycledMemory?.release();
      for (const allocation of [...allocations]) allocation.dispose();
      const open = [...streams];
      const passed = open.map((stream) => stream.passed(stream.mark));
      for (const stream of open) stream.close();
      await Promise.all([...this.frees, ...passed]);
      // The host may see the end of work before the device has written it.
      await runtime.completion.until(() =>
        open.every(({ slot }) => runtime.completion.isWritten(slot)),
      );
      // The next Device that is opened may get the same staging memory.
      await this.reads.over();
      await Promise.all([...this.createdPools].map((pool) => pool.close()));
      // Streams of other devices may wait for events of this device.
      if (this.shared.last) {
        await this.shared.freeGate.drained();
        await runtime.completion.until(() => this.shared.loans.settled());
      }
      await runtime.completion.until(() => runtime.ring.flush() && runtime.ring.drained);
      return true;
    };
    try {
      return await Promise.race([done().catch(() => false), expired]);
    } finally {
      clearTimeout(timer);
    }
  }
}

/**
 * The operation and the handle of an allocation. An operation may make several allocations with a
 * handle each; a call that allocates has the handle 0.
 */
type OriginKey = Pick<CheckMemory, 'root' | 'handle'>;
const originKey = ({ root, handle }: OriginKey): string => `${root} ${handle}`;

function checkPeer(other: unknown): asserts other is CoreDevice {
  if (!(other instanceof CoreDevice)) throw invalid('other', 'a Device', other);
  other.check();
}

/** Checks a number of elements. A number of bytes that is not exact is more than any device has. */
function checkLength(what: string, dtype: DType, length: unknown): asserts length is number {
  checkInteger('length', length, 0, Number.MAX_VALUE, 'elements');
  const bytes = length * dtype.bytes;
  if (bytes > Number.MAX_SAFE_INTEGER)
    throw new CudaOutOfMemoryError(
      `${what}: ${length} elements of ${dtype.name}, ${bytes} bytes, are more than any device has`,
    );
}
