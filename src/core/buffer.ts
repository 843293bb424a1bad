/** Device buffers: typed, one-dimensional device memory, and views of parts of it. */
import {
  ACCESS_READ,
  ACCESS_SHIFT,
  ACCESS_WHOLE,
  ACCESS_WRITE,
  COPY_DEVICE_TO_DEVICE,
  COPY_DEVICE_TO_HOST,
  COPY_HOST_TO_DEVICE,
  COPY_PEER,
  OP,
} from '../runtime/commands.js';
import { CudaArgumentError, CudaDisposedError } from '../ground/errors.js';
import { putInt64 } from '../runtime/ring-writer.js';
import { checkDType, checkInteger, checkOptions, invalid } from '../ground/arguments.js';
import { boxOf } from './box.js';
import type { BoxLayout, DeviceBox } from './box.js';
import { copyThroughHost } from './copy-through-host.js';
import type { CoreDevice } from './device.js';
import { HOST_ARRAYS } from '../ground/dtype.js';
import type { BitArray, DType, DTypeName, HostArray, Scalar } from '../ground/dtype.js';
import { checkArray, elementsOf, encoderFor, readTarget } from './host-codec.js';
import type { Encoder } from './host-codec.js';
import { fillPattern } from './fill-pattern.js';
import { ForeignMemory, memoryFor } from './foreign-memory.js';
import { AFTER_ITS_STEP, MEMORY, OWN, OWNER, OWNS } from './holder.js';
import { bytesBetween, leaks } from './memory.js';
import type { Allocation } from './memory.js';
import { putMemset, putWords } from './memset.js';
import { Pending } from './pending.js';
import { PinnedBuffer } from './pinned.js';
import { readRegion, writeRegion } from './transfer.js';
import type { Region } from './transfer.js';
import type { Stream } from './stream.js';
import { checkChunkOptions } from './buffer-options.js';
import type { ChunkOptions, ReadBitsOptions, ReadOptions, WriteSource } from './buffer-options.js';
import { readRegionBlocking, writeRegionBlocking } from './blocking-transfer.js';

/**
 * `length` elements of device memory. Made by {@link CoreDevice.alloc} and
 * {@link CoreDevice.allocPlain}; {@link DeviceBuffer.slice} makes views.
 *
 * The stream on which work is queued orders it. Uses are tracked as well: work queued on another
 * stream waits, on the device, for the work it conflicts with.
 *
 * @example
 * ```ts
 * using x = device.alloc(f32, 4, { label: 'x' });
 * x.write(device.stream, Float32Array.of(1, 2, 3, 4));
 * x.slice(2).fill(device.stream, 0); // a view of the last two elements
 * console.log(await x.read(device.stream)); // Float32Array(4) [ 1, 2, 0, 0 ]
 * ```
 */
export class DeviceBuffer<D extends DTypeName = DTypeName> implements Disposable {
  readonly dtype: DType<D>;
  /** Elements. */
  readonly length: number;
  /** Byte offset within the allocation. */
  readonly byteOffset: number;
  /** @internal */
  readonly memory: Allocation;
  private title: string | undefined = undefined;
  /** The owner that a view keeps alive; undefined for the buffer that owns its memory. */
  private readonly owner: object | undefined;
  /** Whether this is a view that owns the memory, alone or with others: see {@link OWN}. */
  private share: 'none' | 'owned' | 'closed' = 'none';

  /** @internal */
  constructor(
    memory: Allocation,
    dtype: DType<D>,
    byteOffset: number,
    length: number,
    owner: object | undefined,
  ) {
    this.memory = memory;
    this.dtype = dtype;
    this.byteOffset = byteOffset;
    this.length = length;
    this.owner = owner;
    // A run closes the memory that it allocates. Such memory is registered when the caller gets it.
    if (owner === undefined && !memory.scoped) leaks.register(this, memory, memory);
  }

  /** The device that the memory was made from. */
  get device(): CoreDevice {
    return this.memory.device;
  }

  /** Bytes: {@link length} times the bytes of the dtype. */
  get byteLength(): number {
    return this.length * this.dtype.bytes;
  }

  /** The label given at allocation, which errors show. */
  get label(): string | undefined {
    return this.memory.label;
  }

  /** Whether this is a view of part of another buffer. */
  get isView(): boolean {
    return this.owner !== undefined && this.share === 'none';
  }

  /** Whether the memory was freed, by {@link close} of the buffer that owns it. */
  get isClosed(): boolean {
    return this.memory.disposed || this.share === 'closed';
  }

  /**
   * Resolves once the memory is allocated. Using the buffer needs no such wait: a failed allocation
   * rejects all work that uses the buffer.
   *
   * @throws CudaOutOfMemoryError where there is not enough memory
   */
  async allocated(): Promise<this> {
    const { memory } = this;
    this.device.runtime.expect(memory.root);
    await memory.stream.passed(memory.mark);
    const failure = this.device.runtime.failureOf(memory.root);
    if (failure !== undefined) throw failure;
    return this;
  }

  /**
   * Copies host data to the buffer. An array of up to 64 KiB is copied at the call. A larger array
   * goes through staging piece by piece: it must not change until the write resolves, and the
   * stream's later work waits for it. `source.length` must be this buffer's; `buffer.slice(from,
   * to).write(…)` writes a part. cuMemcpyHtoDAsync
   *
   * @throws CudaArgumentError for a wrong dtype or length; CudaError with code ERR_CUDA_CAPTURE for
   *   a plain array inside a capture. Rejects with ERR_CUDA_SOURCE_DETACHED where the array was
   *   detached or resized meanwhile
   */
  write(stream: Stream, source: WriteSource<D>): Pending {
    this.check(stream);
    if (source instanceof PinnedBuffer) return this.copyHost(stream, source, true);
    return this.writeArray(stream, source, false);
  }

  /**
   * Does the same as {@link write}, with raw words: Uint16Array for f16 and bf16, Uint8Array for
   * f8. cuMemcpyHtoDAsync
   */
  writeBits(stream: Stream, source: BitArray<D>): Pending {
    this.check(stream);
    return this.writeArray(stream, source, true);
  }

  /** Copies to page-locked memory of the same dtype and length. cuMemcpyDtoHAsync */
  read(stream: Stream, target: PinnedBuffer<D>): Pending;
  /**
   * Copies to the host: the dtype's host array, of the buffer's length. cuMemcpyDtoHAsync
   *
   * @throws CudaArgumentError for an `into` of another type or length. Rejects with
   *   ERR_CUDA_UNDEFINED_CONTENTS where an earlier failure left the contents undefined, with
   *   ERR_CUDA_SOURCE_DETACHED where `into` was detached meanwhile
   */
  read(stream: Stream, options?: ReadOptions<D>): Pending<HostArray<D>>;
  read(
    stream: Stream,
    target: PinnedBuffer<D> | ReadOptions<D> = {},
  ): Pending | Pending<HostArray<D>> {
    this.check(stream);
    if (target instanceof PinnedBuffer) return this.copyHost(stream, target, false);
    checkOptions('options', target, ['into']);
    return this.readArray<HostArray<D>>(stream, target.into, false);
  }

  /** Does the same as {@link read}, with raw words. cuMemcpyDtoHAsync */
  readBits(stream: Stream, options: ReadBitsOptions<D> = {}): Pending<BitArray<D>> {
    this.check(stream);
    checkOptions('options', options, ['into']);
    return this.readArray<BitArray<D>>(stream, options.into, true);
  }

  /**
   * Sets every element to `value`. cuMemsetD8Async, cuMemsetD16Async, cuMemsetD32Async
   *
   * @throws CudaArgumentError for a value that the dtype cannot hold
   */
  fill(stream: Stream, value: Scalar<D>): Pending {
    this.check(stream);
    const pattern = fillPattern(this.dtype, value);
    const root = stream.nextRoot();
    if (this.length === 0) return new Pending(stream, root, stream.mark);
    const { byteOffset: offset, length, memory } = this;
    stream.order(memory, ACCESS_WRITE);
    let mark: number;
    if (pattern.words === undefined) {
      const { bits, value } = pattern;
      mark = putMemset(stream, root, memory, this.wholeAccess(), {
        offset,
        bits,
        value,
        width: this.byteLength / (bits / 8),
        height: 0,
        pitch: 0,
      });
    } else {
      // There is no memset of 64 bits or more. One memset of 32 bits for each word of the element
      // writes it at the element's stride.
      mark = putWords(stream, root, memory, this.wholeAccess(), pattern.words, offset, length);
    }
    stream.used(memory, this.wholeAccess(), mark);
    return new Pending(stream, root, mark);
  }

  /**
   * Copies from another buffer of the same dtype and length, which may be on another device. The
   * copy is ordered on `stream`, and after work of other streams, of both devices, that it
   * conflicts with. On one device it is cuMemcpyDtoDAsync. Between two devices of a kind it is
   * cuMemcpyPeerAsync, in a capture cuMemcpyDtoDAsync. Between a GPU and a CPU device it goes
   * through the host, on the source's `device.stream` and then on `stream`.
   *
   * @param stream a stream of this buffer's device
   * @throws CudaArgumentError for another dtype or length, or where the two overlap; CudaError
   *   (ERR_CUDA_CAPTURE) in a capture, where the source is on another GPU that this one has no peer
   *   access to
   */
  copyFrom(stream: Stream, source: DeviceBuffer<D>): Pending {
    this.check(stream);
    if (!(source instanceof DeviceBuffer)) throw invalid('source', 'a DeviceBuffer', source);
    source.checkAlive();
    if (source.dtype.name !== this.dtype.name)
      throw invalid('source', `dtype ${this.dtype.name}`, source.dtype.name);
    if (source.length !== this.length) {
      throw invalid(
        'source',
        `${this.length} elements`,
        source.length,
        'Copy parts with slice(from, to).',
      );
    }
    if (this.length === 0) return new Pending(stream, stream.nextRoot(), stream.mark);
    const from = memoryFor(source.memory, this.device.shared);
    if (from === undefined) return copyThroughHost(stream, this, source);
    if (from instanceof ForeignMemory) from.checkSource(stream, 'source');
    const between = bytesBetween(this.memory, source.memory);
    if (
      between !== undefined &&
      Math.abs(between + source.byteOffset - this.byteOffset) < this.byteLength
    ) {
      throw new CudaArgumentError(
        'source',
        'source: overlaps this buffer. Copy through a third one.',
      );
    }
    const root = stream.nextRoot();
    stream.order(from, ACCESS_READ);
    stream.order(this.memory, ACCESS_WRITE);
    const body = stream.begin(OP.copy, 13, root);
    const { memory } = stream.runtime.ring;
    memory[body] = this.memory.handle | (this.wholeAccess() << ACCESS_SHIFT);
    putInt64(memory, body + 1, this.byteOffset);
    memory[body + 3] = from.handle | (ACCESS_READ << ACCESS_SHIFT);
    putInt64(memory, body + 4, source.byteOffset);
    putInt64(memory, body + 6, this.byteLength);
    memory[body + 8] = from === source.memory ? COPY_DEVICE_TO_DEVICE : COPY_PEER;
    const mark = stream.commit();
    stream.used(from, ACCESS_READ, mark);
    stream.used(this.memory, this.wholeAccess(), mark);
    return new Pending(stream, root, mark);
  }

  /**
   * The same as `target.copyFrom(stream, this)`.
   *
   * @param stream a stream of the target's device
   */
  copyTo(stream: Stream, target: DeviceBuffer<D>): Pending {
    if (!(target instanceof DeviceBuffer)) throw invalid('target', 'a DeviceBuffer', target);
    return target.copyFrom(stream, this);
  }

  /**
   * The buffer's elements, from the first one on, as a box of slices of rows, for copies in three
   * dimensions.
   *
   * @throws CudaArgumentError where the box ends after the buffer
   */
  box(layout: BoxLayout): DeviceBox<D> {
    this.checkAlive();
    return boxOf(this, layout, this.owner ?? this);
  }

  /**
   * A view of elements `from` (inclusive) to `to` (exclusive). Negative numbers count from the end,
   * as for arrays.
   */
  slice(from = 0, to = this.length): DeviceBuffer<D> {
    this.checkAlive();
    checkInteger('from', from, -this.length, this.length, 'elements');
    checkInteger('to', to, -this.length, this.length, 'elements');
    const first = from < 0 ? this.length + from : from;
    const last = Math.max(first, to < 0 ? this.length + to : to);
    return new DeviceBuffer(
      this.memory,
      this.dtype,
      this.byteOffset + first * this.dtype.bytes,
      last - first,
      this.owner ?? this,
    );
  }

  /**
   * A view of the same bytes as elements of another dtype.
   *
   * @throws CudaArgumentError where the buffer's bytes, or its offset, are not a multiple of the
   *   dtype's
   */
  reinterpret<E extends DTypeName>(dtype: DType<E>): DeviceBuffer<E> {
    this.checkAlive();
    checkDType(dtype);
    if (this.byteLength % dtype.bytes !== 0 || this.byteOffset % dtype.bytes !== 0) {
      throw invalid(
        'dtype',
        `a dtype whose size divides ${this.byteLength} bytes at offset ${this.byteOffset}`,
        dtype.name,
      );
    }
    return new DeviceBuffer(
      this.memory,
      dtype,
      this.byteOffset,
      this.byteLength / dtype.bytes,
      this.owner ?? this,
    );
  }

  /**
   * Reads the buffer in pieces of {@link ChunkOptions.length} elements; the last one may be
   * shorter. The next piece is copied while the loop's body uses the present one. Each piece is
   * read in stream order, one iteration ahead: it does not show work that is queued later. The loop
   * may be left at any time. cuMemcpyDtoHAsync
   *
   * @throws CudaArgumentError for a wrong option or stream. The loop rejects as {@link read} does,
   *   and with the signal's reason
   */
  chunks(
    stream: Stream,
    options: ChunkOptions = {},
  ): AsyncGenerator<HostArray<D>, void, undefined> {
    this.check(stream);
    checkChunkOptions(options);
    const { length = Math.max(1, Math.floor((1 << 20) / this.dtype.bytes)), signal } = options;
    checkInteger('options.length', length, 1, Number.MAX_SAFE_INTEGER, 'elements');
    return this.pieces(stream, length, signal);
  }

  /**
   * The buffer's contents as a Web stream of the dtype's host arrays, like {@link chunks}. The
   * first piece is queued at the first read. Cancelling ends the wait, not the copy that runs.
   */
  readable(stream: Stream, options: ChunkOptions = {}): ReadableStream<HostArray<D>> {
    checkChunkOptions(options);
    const cancelled = new AbortController();
    const { signal } = options;
    // AbortSignal.any() refuses signals of other implementations.
    const follow = (): void => {
      cancelled.abort(signal?.reason);
    };
    if (signal?.aborted === true) follow();
    else signal?.addEventListener('abort', follow, { once: true });
    const over = (): void => {
      signal?.removeEventListener('abort', follow);
    };
    const chunks = this.chunks(stream, { ...options, signal: cancelled.signal });
    return new ReadableStream<HostArray<D>>(
      {
        async pull(controller) {
          const { done, value } = await chunks.next().catch((error: unknown) => {
            over();
            throw error;
          });
          if (done !== true) controller.enqueue(value);
          else {
            over();
            controller.close();
          }
        },
        async cancel(reason) {
          over();
          cancelled.abort(reason);
          await chunks.return();
        },
      },
      // The chunks read one piece ahead themselves.
      { highWaterMark: 0 },
    );
  }

  /**
   * A Web stream that fills the buffer from its start with the chunks that are written. The next
   * chunk is taken when the one before has arrived. More elements than the buffer has are an error;
   * fewer leave the rest unchanged. Aborting ends the wait, not the copy that runs.
   */
  writable(stream: Stream): WritableStream<HostArray<D>> {
    this.check(stream);
    let at = 0;
    const write = async (
      chunk: HostArray<D>,
      controller: WritableStreamDefaultController,
    ): Promise<void> => {
      if (!ArrayBuffer.isView(chunk))
        throw invalid('chunk', `a ${HOST_ARRAYS[this.dtype.name].name}`, chunk);
      checkArray(this.dtype, chunk, false, 'chunk');
      const count = elementsOf(this.dtype, chunk, false);
      if (!Number.isInteger(count))
        throw invalid('chunk', `whole elements of ${this.dtype.name}`, chunk);
      if (at + count > this.length) {
        throw invalid(
          'chunk',
          `at most ${this.length - at} more elements`,
          chunk,
          'Make the buffer as long as what is written.',
        );
      }
      const target = this.slice(at, at + count);
      at += count;
      // The standard and Node have `signal`; the types of Node 20 lack it.
      const { signal } = controller as WritableStreamDefaultController & {
        readonly signal: AbortSignal;
      };
      await target.write(stream, chunk).finished({ signal });
    };
    return new WritableStream<HostArray<D>>({ write });
  }

  /**
   * Queues the free after all work that uses the buffer, and never waits. On a view it does
   * nothing. cuMemFreeAsync; for a buffer of {@link CoreDevice.allocPlain} cuMemFree
   */
  close(): void {
    if (this.memory.disposed || this.memory.keptByGraph || this.share === 'closed') return;
    if (this.owner !== undefined) {
      if (this.share === 'none') return;
      this.share = 'closed';
      if (!this.memory.closeShare()) return;
    }
    this.closeMemory();
  }

  /** Calls {@link close}, for `using`. */
  [Symbol.dispose](): void {
    this.close();
  }

  toString(): string {
    const label = this.label === undefined ? '' : ` '${this.label}'`;
    return (
      `DeviceBuffer<${this.dtype.name}>[${this.length}]${label} ` +
      `on ${this.device.title}${this.isClosed ? ', closed' : ''}`
    );
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return this.toString();
  }

  // Used by runs of operations:

  /** @internal */
  get [MEMORY](): Allocation {
    return this.memory;
  }

  /** @internal */
  get [OWNS](): boolean {
    return this.owner === undefined;
  }

  /** @internal */
  get [OWNER](): DeviceBuffer {
    return (this.owner ?? this) as DeviceBuffer;
  }

  /** @internal */
  [OWN](): boolean {
    if (this.share !== 'none') return false;
    this.share = 'owned';
    return true;
  }

  /** Frees the memory, also where this is a view of it. @internal */
  closeMemory(): void {
    if (this.memory.disposed) return;
    leaks.unregister(this.memory);
    this.memory.dispose();
  }

  /**
   * The caller owns the memory from here on: if it is collected without close(), it is freed with a
   * warning. @internal
   */
  watch(): void {
    const { memory } = this;
    memory.scoped = false;
    if (!memory.disposed) leaks.register(this, memory, memory);
  }

  /** A run owns the memory from here on and closes it. @internal */
  scope(): void {
    const { memory } = this;
    if (memory.disposed) return;
    leaks.unregister(memory);
    memory.scoped = true;
    memory.collectable = false;
  }

  // Used by the rest of core:

  /** @internal */
  checkAlive(): void {
    if (this.isClosed || this.memory.endedByStep) {
      throw new CudaDisposedError(
        `${this.toString()}: used after it was closed. ` +
          `${this.memory.endedByStep ? AFTER_ITS_STEP : 'Allocate another with device.alloc().'}`,
      );
    }
    this.device.check();
  }

  /** @internal */
  check(stream: Stream): void {
    this.checkAlive();
    this.device.checkStream(
      'stream',
      stream,
      'Pass device.stream or one of device.createStream().',
    );
  }

  /** The access of a command that writes the whole view. @internal */
  wholeAccess(): number {
    return this.byteOffset === 0 && this.byteLength === this.memory.bytes
      ? ACCESS_WRITE | ACCESS_WHOLE
      : ACCESS_WRITE;
  }

  /** @internal */
  region(): Region {
    return {
      resource: this.memory,
      offset: this.byteOffset,
      line: this.byteLength,
      rows: 1,
      pitch: this.byteLength,
      whole: this.byteLength === this.memory.bytes,
    };
  }

  /** Does the same as {@link write}, on a thread that blocks where staging is full. @internal */
  writeBlocking(stream: Stream, source: WriteSource<D>): void {
    this.check(stream);
    if (source instanceof PinnedBuffer) this.copyHost(stream, source, true);
    else this.writeArrayBlocking(stream, source, false);
  }

  /**
   * Does the same as {@link writeBits}, on a thread that blocks where staging is full. @internal
   */
  writeBitsBlocking(stream: Stream, source: BitArray<D>): void {
    this.check(stream);
    this.writeArrayBlocking(stream, source, true);
  }

  private writeArrayBlocking(stream: Stream, source: unknown, raw: boolean): void {
    const encoder = this.encoderOf(source, raw);
    if (this.length > 0)
      writeRegionBlocking(stream, this.device.staging, this.region(), encoder, this.name());
  }

  /** Does the same as {@link read}, on a thread that blocks until the copy has ended. @internal */
  readBlocking(stream: Stream, into?: HostArray<D>): HostArray<D> {
    return this.readArrayBlocking(stream, into, false) as HostArray<D>;
  }

  /**
   * Does the same as {@link readBits}, on a thread that blocks until the copy has ended. @internal
   */
  readBitsBlocking(stream: Stream): BitArray<D> {
    return this.readArrayBlocking(stream, undefined, true) as BitArray<D>;
  }

  private readArrayBlocking(stream: Stream, into: unknown, raw: boolean): unknown {
    this.check(stream);
    const { target, decoder } = readTarget(this.dtype, this.length, into, { raw, fix: '' });
    if (this.length > 0)
      readRegionBlocking(stream, this.device.staging, this.region(), decoder, this.name());
    return target;
  }

  private encoderOf(source: unknown, raw: boolean): Encoder {
    const encoder = encoderFor(this.dtype, source, raw, 'source');
    if (encoder.bytes !== this.byteLength) {
      const count = encoder.bytes / this.dtype.bytes;
      throw invalid(
        'source',
        `${this.length} elements (${this.byteLength} bytes)`,
        source,
        count < this.length && Number.isInteger(count)
          ? `To write part of the buffer use buffer.slice(0, ${count}).write(…).`
          : '',
      );
    }
    return encoder;
  }

  private writeArray(stream: Stream, source: unknown, raw: boolean): Pending {
    return writeRegion(
      stream,
      this.device.staging,
      this.region(),
      this.encoderOf(source, raw),
      this.name(),
    );
  }

  private readArray<A>(stream: Stream, into: unknown, raw: boolean): Pending<A> {
    const { target, decoder } = readTarget(this.dtype, this.length, into, {
      raw,
      fix: 'Read part of the buffer with slice(from, to).',
    });
    return readRegion(
      stream,
      this.device.staging,
      this.region(),
      decoder,
      this.name(),
      () => target as A,
    );
  }

  private copyHost(stream: Stream, host: PinnedBuffer<D>, toDevice: boolean): Pending {
    const argument = toDevice ? 'source' : 'target';
    host.checkCopy(
      argument,
      this,
      `${this.length} elements`,
      'Use slice(from, to) on the longer one.',
    );
    const root = stream.nextRoot();
    if (this.length === 0) return new Pending(stream, root, stream.mark);
    const access = toDevice ? this.wholeAccess() : ACCESS_READ;
    const hostAccess = toDevice ? ACCESS_READ : host.wholeAccess();
    stream.order(this.memory, access);
    stream.order(host.memory, hostAccess);
    const body = stream.begin(OP.copy, 13, root);
    const { memory } = stream.runtime.ring;
    const device = this.memory.handle | (access << ACCESS_SHIFT);
    const pinned = host.memory.handle | (hostAccess << ACCESS_SHIFT);
    memory[body] = toDevice ? device : pinned;
    putInt64(memory, body + 1, toDevice ? this.byteOffset : host.byteOffset);
    memory[body + 3] = toDevice ? pinned : device;
    putInt64(memory, body + 4, toDevice ? host.byteOffset : this.byteOffset);
    putInt64(memory, body + 6, this.byteLength);
    memory[body + 8] = toDevice ? COPY_HOST_TO_DEVICE : COPY_DEVICE_TO_HOST;
    const mark = stream.commit();
    stream.used(this.memory, access, mark);
    stream.used(host.memory, hostAccess, mark);
    return new Pending(stream, root, mark);
  }

  private async *pieces(
    stream: Stream,
    length: number,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<HostArray<D>, void, undefined> {
    const read = (at: number): Pending<HostArray<D>> =>
      this.slice(at, Math.min(at + length, this.length)).read(stream);
    let next: Pending<HostArray<D>> | undefined;
    try {
      for (let at = 0; at < this.length; at += length) {
        const current = next ?? read(at);
        next = undefined;
        try {
          if (at + length < this.length) next = read(at + length);
        } catch {
          // The buffer may have been closed meanwhile. The present piece is yielded first; reading
          // the next one is tried again afterwards.
        }
        yield await current.finished({ signal });
      }
    } finally {
      // The loop was left: the piece that was read ahead, and its failure, are dropped.
      next?.catch(() => undefined);
    }
  }

  private name(): string {
    this.title ??=
      this.label === undefined
        ? `buffer ${this.dtype.name}[${this.length}]`
        : `buffer '${this.label}'`;
    return this.title;
  }
}
