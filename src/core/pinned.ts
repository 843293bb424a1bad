/**
 * Page-locked host memory: JavaScript and the device's copy engines use the same bytes.
 *
 * It is a SharedArrayBuffer that is registered with the driver. Its views stay valid as long as
 * JavaScript can reach them, also after `close()`, which ends only the page lock.
 */
import { ACCESS_WHOLE, ACCESS_WRITE } from '../runtime/commands.js';
import { CudaDisposedError } from '../ground/errors.js';
import { checkInteger, invalid, show } from '../ground/arguments.js';
import type { CoreDevice } from './device.js';
import { BIT_ARRAYS, HOST_ARRAYS, partsOf } from '../ground/dtype.js';
import type { BitArray, DType, DTypeName, HostArray } from '../ground/dtype.js';
import { isNarrow } from '../ground/narrow-floats.js';
import { Resource } from './resource.js';
import { allocateHost } from '../runtime/host-allocation.js';
import { PINNED_SLACK_BYTES } from '../runtime/layout.js';
import { CudaError } from '../ground/errors.js';
import { checkDType } from '../ground/arguments.js';
import { checkLength } from './allocation-length.js';

/** @internal */
export class PinnedMemory extends Resource {
  readonly device: CoreDevice;
  readonly address: number;
  /** The memory is kept here, and by the thread that registered it, until it is unregistered. */
  readonly buffer: SharedArrayBuffer;
  /** The difference of {@link address} and the address that the device uses. */
  readonly deviceOffset: number;
  readonly kind = 'pinned';
  readonly made = true;
  readonly bytes: number;

  constructor(
    device: CoreDevice,
    handle: number,
    address: number,
    deviceOffset: number,
    buffer: SharedArrayBuffer,
    bytes: number,
  ) {
    super(handle);
    this.device = device;
    this.address = address;
    this.deviceOffset = deviceOffset;
    this.buffer = buffer;
    this.bytes = bytes;
  }

  async dispose(): Promise<void> {
    if (this.disposed) return;
    this.disposed = true;
    this.device.ledger.give(this);
    const { runtime } = this.device;
    if (runtime.lost !== undefined) return;
    await this.settled();
    runtime.handles.drop(this.handle);
    await this.device.shared.freeGate.free(async () => {
      await runtime.call('unregisterPinned', this.address);
      runtime.pinned.delete(this.address);
    });
  }
}

const leaks = new FinalizationRegistry<PinnedMemory>(collected);

function collected(memory: PinnedMemory): void {
  if (
    memory.disposed ||
    memory.device.isClosed ||
    memory.freeAfterGraphs(() => {
      collected(memory);
    })
  )
    return;
  memory.device.leaked('a PinnedBuffer');
  memory.dispose().catch(() => undefined);
}

/**
 * `length` elements of page-locked host memory. Made by {@link CoreDevice.pinned}.
 * cuMemHostRegister
 *
 * @example
 * ```ts
 * await using pinned = await device.pinned(f32, 2);
 * pinned.view().set([1, 2]);
 * using x = device.alloc(f32, 2);
 * await x.write(device.stream, pinned); // copied by the device, without staging
 * console.log(await x.read(device.stream)); // Float32Array(2) [ 1, 2 ]
 * ```
 */
export class PinnedBuffer<D extends DTypeName = DTypeName> implements AsyncDisposable {
  readonly dtype: DType<D>;
  /** Elements. */
  readonly length: number;
  /** Byte offset from the first page. */
  readonly byteOffset: number;
  /** @internal */
  readonly memory: PinnedMemory;
  private readonly start: number;
  private readonly owner: PinnedBuffer | undefined;

  /** @internal */
  constructor(
    memory: PinnedMemory,
    dtype: DType<D>,
    start: number,
    byteOffset: number,
    length: number,
    owner: PinnedBuffer | undefined,
  ) {
    this.memory = memory;
    this.dtype = dtype;
    this.start = start;
    this.byteOffset = byteOffset;
    this.length = length;
    this.owner = owner;
    if (owner === undefined) leaks.register(this, memory, memory);
  }

  /** The device that the memory was made from. */
  get device(): CoreDevice {
    return this.memory.device;
  }

  /** Bytes: {@link length} times the bytes of the dtype. */
  get byteLength(): number {
    return this.length * this.dtype.bytes;
  }

  /** Whether the page lock was ended, by {@link close} of the buffer that owns it. */
  get isClosed(): boolean {
    return this.memory.disposed;
  }

  /** The SharedArrayBuffer that holds the bytes, from {@link bufferOffset} on. */
  get buffer(): SharedArrayBuffer {
    return this.memory.buffer;
  }

  /** The offset of this buffer's bytes in {@link buffer}. */
  get bufferOffset(): number {
    return this.start + this.byteOffset;
  }

  /**
   * The elements. Reading them while the device writes gives old or new values, as with any shared
   * memory: await the copy first. For dtypes without a host array of their own (f16, bf16, f8)
   * there is {@link bits}. The bytes stay when the buffer is closed or its device is lost.
   */
  view(): HostArray<D> {
    if (isNarrow(this.dtype.name)) {
      throw invalid(
        'view',
        `a dtype with an array of its own`,
        this.dtype.name,
        'Use bits() for the raw words.',
      );
    }
    const constructor = HOST_ARRAYS[this.dtype.name] as new (
      buffer: SharedArrayBuffer,
      offset: number,
      length: number,
    ) => unknown;
    return new constructor(
      this.memory.buffer,
      this.bufferOffset,
      this.length * partsOf(this.dtype),
    ) as HostArray<D>;
  }

  /** The raw words. */
  bits(): BitArray<D> {
    const constructor = BIT_ARRAYS[this.dtype.name] as new (
      buffer: SharedArrayBuffer,
      offset: number,
      length: number,
    ) => unknown;
    return new constructor(
      this.memory.buffer,
      this.bufferOffset,
      this.length * partsOf(this.dtype),
    ) as BitArray<D>;
  }

  /**
   * A view of elements `from` (inclusive) to `to` (exclusive). Negative numbers count from the end.
   */
  slice(from = 0, to = this.length): PinnedBuffer<D> {
    this.checkAlive();
    checkInteger('from', from, -this.length, this.length, 'elements');
    checkInteger('to', to, -this.length, this.length, 'elements');
    const first = from < 0 ? this.length + from : from;
    const last = Math.max(first, to < 0 ? this.length + to : to);
    return new PinnedBuffer(
      this.memory,
      this.dtype,
      this.start,
      this.byteOffset + first * this.dtype.bytes,
      last - first,
      this.owner ?? this,
    );
  }

  /**
   * Ends the page lock once every copy has ended. While a stream waits for a value the call is put
   * off, and `close` does not wait for it. On a view it does nothing. cuMemHostUnregister
   */
  async close(): Promise<void> {
    if (this.owner !== undefined || this.memory.disposed) return;
    leaks.unregister(this.memory);
    await this.memory.dispose();
  }

  /** Calls {@link close}, for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** @internal */
  checkAlive(): void {
    if (this.memory.disposed) {
      throw new CudaDisposedError(
        'pinned buffer: used after it was closed. Make another with await ' +
          'device.pinned(dtype, length).',
      );
    }
    this.device.check();
  }

  /**
   * Checks a copy between this buffer and device memory: the same device, dtype and length. `count`
   * is the length in words, for errors. @internal
   */
  checkCopy(
    argument: string,
    other: { device: CoreDevice; dtype: DType<D>; length: number },
    count: string,
    fix: string,
  ): void {
    this.checkAlive();
    if (this.device.runtime !== other.device.runtime)
      throw invalid(argument, `a pinned buffer of ${other.device.title}`, show(this));
    if (this.dtype.name !== other.dtype.name)
      throw invalid(argument, `dtype ${other.dtype.name}`, this.dtype.name);
    if (this.length !== other.length) throw invalid(argument, count, this.length, fix);
  }

  /** The access of a command that writes the whole view. @internal */
  wholeAccess(): number {
    const whole =
      this.owner === undefined ||
      (this.byteOffset === 0 && this.byteLength === this.owner.byteLength);
    return whole ? ACCESS_WRITE | ACCESS_WHOLE : ACCESS_WRITE;
  }

  toString(): string {
    return `PinnedBuffer<${this.dtype.name}>[${this.length}]${this.isClosed ? ', closed' : ''}`;
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return this.toString();
  }
}

/** Makes page-locked host memory: {@link CoreDevice.pinned}. @internal */
export async function createPinned<D extends DTypeName>(
  device: CoreDevice,
  dtype: DType<D>,
  length: number,
): Promise<PinnedBuffer<D>> {
  checkDType(dtype);
  checkLength('device.pinned', dtype, length);
  if (!device.runtime.info.registered) {
    throw new CudaError(
      'ERR_CUDA_UNSUPPORTED',
      'device.pinned: this platform registers no host memory (cuMemHostRegister), as some ' +
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
  const { byteOffset, address, deviceAddress } = await device.runtime.call(
    'registerPinned',
    buffer,
    bytes,
  );
  device.runtime.pinned.set(address, buffer);
  const memory = new PinnedMemory(
    device,
    device.runtime.handles.adopt(address),
    address,
    deviceAddress - address,
    buffer,
    bytes,
  );
  device.ledger.take(memory);
  return new PinnedBuffer(memory, dtype, byteOffset, 0, length, undefined);
}
