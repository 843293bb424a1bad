/**
 * Managed memory: one address for kernels and host; the driver moves the memory between them.
 *
 * JavaScript may access it only while no queued work uses it; `view()` checks that. Views end when
 * the buffer is closed. Where the buffer is collected instead, the views keep its memory.
 */
import { ACCESS_READ, OP, ACCESS_SHIFT } from '../runtime/commands.js';
import { CudaDisposedError, CudaError } from '../ground/errors.js';
import { putInt64 } from '../runtime/ring-writer.js';
import { invalid } from '../ground/arguments.js';
import type { MemoryKind } from './channels.js';
import type { CoreDevice } from './device.js';
import { BIT_ARRAYS, HOST_ARRAYS, partsOf } from '../ground/dtype.js';
import type { BitArray, DType, DTypeName, HostArray } from '../ground/dtype.js';
import { isNarrow } from '../ground/narrow-floats.js';
import { isArrayBuffer, isSharedArrayBuffer } from '../ground/other-realms.js';
import { Pending } from './pending.js';
import { PlainMemory } from './plain.js';
import type { Stream } from './stream.js';
import { checkDType } from '../ground/arguments.js';
import { checkLength } from './allocation-length.js';

/** @internal */
export class ManagedMemory extends PlainMemory {
  /** The bytes for JavaScript, where they are known beforehand. */
  private readonly given: Uint8Array | undefined;
  /**
   * The buffer of every view, and of nothing else. It is made at the first use, and detached before
   * the memory is freed.
   */
  private mapped: Uint8Array | undefined = undefined;
  /** The same buffer after the buffer object was collected: the views alone keep it. */
  private left: WeakRef<ArrayBufferLike> | undefined = undefined;

  constructor(
    device: CoreDevice,
    address: number,
    bytes: number,
    given: Uint8Array | undefined,
    describe: () => string,
  ) {
    super(device, address, bytes, undefined, describe);
    this.given = given;
  }

  /** The bytes, for a view of them. */
  viewedBytes(): Uint8Array {
    this.mapped ??=
      this.bytes === 0
        ? new Uint8Array(0)
        : unshared(this.given ?? this.device.hostView(this.address, this.bytes));
    return this.mapped;
  }

  /**
   * The buffer object was collected, so it cannot be closed any more. The memory stays as long as
   * there is a view.
   */
  collected(): void {
    if (this.mapped === undefined) {
      this.leak();
      return;
    }
    const { buffer } = this.mapped;
    this.mapped = undefined;
    this.left = new WeakRef(buffer);
    viewed.register(buffer, this);
  }

  /** Frees the memory of a buffer that was not closed. */
  leak(): void {
    if (
      this.disposed ||
      this.device.isClosed ||
      this.freeAfterGraphs(() => {
        this.leak();
      })
    )
      return;
    this.device.leaked(this.toString());
    this.dispose();
  }

  override get kind(): MemoryKind {
    return 'managed';
  }

  override async release(): Promise<void> {
    const buffer = this.mapped?.buffer ?? this.left?.deref();
    this.mapped = undefined;
    // Shared memory of the CPU device stays mapped after the free of an allocation in it.
    if (isArrayBuffer(buffer) && !detach(buffer)) unmapped.register(buffer, this);
    else await super.release();
  }
}

/**
 * The same bytes as a SharedArrayBuffer of their own, which exists as long as its views: parts of
 * views refer to their buffer, not to the view. The CPU device's memory is one buffer, which other
 * objects keep alive.
 */
function unshared(bytes: Uint8Array): Uint8Array {
  return isSharedArrayBuffer(bytes.buffer)
    ? new Uint8Array(structuredClone(bytes.buffer), bytes.byteOffset, bytes.length)
    : bytes;
}

/** The last view of a collected buffer has been collected, too. */
const viewed = new FinalizationRegistry<ManagedMemory>((memory) => memory.leak());

/** Frees memory that JavaScript could still access, once it no longer can. */
const unmapped = new FinalizationRegistry<ManagedMemory>((memory) => {
  if (!memory.device.isClosed) memory.release().catch(() => undefined);
});

/** Detaches every view of `buffer`; returns whether this version of Node can (from 22 on). */
function detach(buffer: ArrayBuffer): boolean {
  const { transfer } = buffer as { transfer?: () => ArrayBuffer };
  if (transfer === undefined) return false;
  try {
    transfer.call(buffer);
    return true;
  } catch {
    return false;
  }
}

const leaks = new FinalizationRegistry<ManagedMemory>((memory) => memory.collected());

/**
 * `length` elements of managed memory. Made by {@link CoreDevice.managed}. cuMemAllocManaged
 *
 * @example
 * ```ts
 * await using shared = await device.managed(f32, 2);
 * shared.view().set([1, 2]);
 * await shared.prefetch(device.stream);
 * console.log(shared.view()[1]); // 2
 * ```
 */
export class ManagedBuffer<D extends DTypeName = DTypeName> implements AsyncDisposable {
  readonly dtype: DType<D>;
  /** Elements. */
  readonly length: number;
  /** Byte offset within the allocation: always 0. */
  readonly byteOffset = 0;
  /** @internal */
  readonly memory: ManagedMemory;

  /** @internal */
  constructor(memory: ManagedMemory, dtype: DType<D>, length: number) {
    this.memory = memory;
    this.dtype = dtype;
    this.length = length;
    leaks.register(this, memory, memory);
  }

  /** The device that the memory was made from. */
  get device(): CoreDevice {
    return this.memory.device;
  }

  /** Bytes: {@link length} times the bytes of the dtype. */
  get byteLength(): number {
    return this.length * this.dtype.bytes;
  }

  /** Whether {@link close} was called. */
  get isClosed(): boolean {
    return this.memory.disposed;
  }

  /**
   * The elements as a host array. It is valid until work that uses the buffer is queued, or the
   * buffer is closed.
   *
   * @throws CudaError while queued work uses the buffer: await it first
   */
  view(): HostArray<D> {
    if (isNarrow(this.dtype.name))
      throw invalid(
        'view',
        'a dtype with an array of its own',
        this.dtype.name,
        'Use bits() for the raw words.',
      );
    return this.viewAs(HOST_ARRAYS[this.dtype.name]) as HostArray<D>;
  }

  /** The raw words, as {@link view} gives the elements. */
  bits(): BitArray<D> {
    return this.viewAs(BIT_ARRAYS[this.dtype.name]) as BitArray<D>;
  }

  /** Moves the pages to the device, or back to the host, ahead of their use. cuMemPrefetchAsync */
  prefetch(stream: Stream, to: 'device' | 'host' = 'device'): Pending {
    this.checkAlive();
    this.device.checkStream('stream', stream);
    if (to !== 'device' && to !== 'host') throw invalid('to', "'device' or 'host'", to);
    const root = stream.nextRoot();
    if (this.length === 0) return new Pending(stream, root, stream.mark);
    stream.order(this.memory, ACCESS_READ);
    const body = stream.begin(OP.prefetch, 10, root);
    const { memory } = stream.runtime.ring;
    memory[body] = this.memory.handle | (ACCESS_READ << ACCESS_SHIFT);
    putInt64(memory, body + 1, 0);
    putInt64(memory, body + 3, this.byteLength);
    memory[body + 5] = to === 'host' ? -1 : this.device.runtime.info.device;
    const mark = stream.commit();
    stream.used(this.memory, ACCESS_READ, mark);
    return new Pending(stream, root, mark);
  }

  /**
   * Frees the memory once all work on it has ended; its views become empty. While a stream waits
   * for a value the free is put off, and `close` does not wait for it. cuMemFree
   */
  async close(): Promise<void> {
    if (this.memory.disposed) return;
    leaks.unregister(this.memory);
    await this.memory.free();
  }

  /** Calls {@link close}, for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  toString(): string {
    return `ManagedBuffer<${this.dtype.name}>[${this.length}]${this.isClosed ? ', closed' : ''}`;
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return this.toString();
  }

  /** @internal */
  checkAlive(): void {
    if (this.memory.disposed)
      throw new CudaDisposedError(
        'managed buffer: used after it was closed. Make another with await ' +
          'device.managed(dtype, length).',
      );
    this.device.check();
  }

  private viewAs(
    constructor: new (buffer: ArrayBufferLike, offset?: number, length?: number) => ArrayBufferView,
  ): ArrayBufferView {
    this.checkAlive();
    const { memory } = this;
    if (!memory.idle) {
      throw new CudaError(
        'ERR_CUDA_INVALID_ARGUMENT',
        'managed buffer: queued work uses it. Await that work, or stream.finished(), before ' +
          'accessing it.',
      );
    }
    const { buffer, byteOffset } = memory.viewedBytes();
    return new constructor(buffer, byteOffset, this.length * partsOf(this.dtype));
  }
}

/** Makes managed memory: {@link CoreDevice.managed}. @internal */
export async function createManaged<D extends DTypeName>(
  device: CoreDevice,
  dtype: DType<D>,
  length: number,
): Promise<ManagedBuffer<D>> {
  checkDType(dtype);
  checkLength('device.managed', dtype, length);
  const bytes = length * dtype.bytes;
  const named = (): string => `managed ${dtype.name}[${length}]`;
  const root = device.runtime.nextRoot();
  if (device.isChecked) device.origins.record({ root, handle: 0 }, named());
  const { address, view } =
    bytes === 0
      ? { address: 0, view: undefined }
      : await device.allocateByCall(() =>
          device.runtime.call('allocManaged', device.runtime.info.device, bytes, 1, root),
        );
  const memory = new ManagedMemory(device, address, bytes, view, named);
  memory.root = root;
  device.objects.allocated(memory);
  return new ManagedBuffer(memory, dtype, length);
}
