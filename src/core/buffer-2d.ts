/**
 * Pitched two-dimensional buffers: images of `height` rows of `width` pixels of `channels`
 * elements. Each row begins at a multiple of the pitch. On the host they are dense, rows first,
 * channels innermost (HWC).
 */
import {
  ACCESS_READ,
  ACCESS_SHIFT,
  ACCESS_WHOLE,
  ACCESS_WRITE,
  COPY_DEVICE_TO_DEVICE,
  OP,
} from '../runtime/commands.js';
import { CudaArgumentError, CudaDisposedError, CudaOutOfMemoryError } from '../ground/errors.js';
import { putInt64 } from '../runtime/ring-writer.js';
import { checkDType, checkInteger, checkOptions, invalid } from '../ground/arguments.js';
import { DeviceBox, copyBox } from './box.js';
import type { CoreDevice } from './device.js';
import type { DType, DTypeName, HostArray, Scalar } from '../ground/dtype.js';
import { fillPattern } from './fill-pattern.js';
import { encoderFor, readTarget } from './host-codec.js';
import { leaks } from './memory.js';
import type { Allocation } from './memory.js';
import { putMemset, putWords } from './memset.js';
import { Pending } from './pending.js';
import type { Stream } from './stream.js';
import { readRegion, writeRegion } from './transfer.js';
import type { Region } from './transfer.js';

/**
 * Rows begin at multiples of this many bytes, as those of cuMemAllocPitch do: loads of whole rows
 * are aligned for every dtype.
 */
export const PITCH_ALIGN = 512;

/** The shape of an image: `height × width × channels` elements. */
export interface Size2D {
  /** Pixels of a row. */
  width: number;
  /** Rows. */
  height: number;
  /** Elements of a pixel. Default 1. */
  channels?: number;
}

/**
 * A pitched image in device memory. Made by {@link CoreDevice.alloc2D}.
 *
 * @example
 * ```ts
 * using image = device.alloc2D(u8, { width: 3, height: 2 });
 * image.fill(device.stream, 1);
 * image.crop({ x: 1, y: 0, width: 1, height: 2 }).fill(device.stream, 9);
 * console.log((await image.read(device.stream)).join(' ')); // 1 9 1 1 9 1
 * ```
 */
export class DeviceBuffer2D<D extends DTypeName = DTypeName> implements Disposable {
  readonly dtype: DType<D>;
  /** Pixels of a row. */
  readonly width: number;
  /** Rows. */
  readonly height: number;
  /** Elements of a pixel. */
  readonly channels: number;
  /** Bytes from one row to the next. */
  readonly pitch: number;
  /** Byte offset of the first pixel within the allocation. */
  readonly byteOffset: number;
  /** @internal */
  readonly memory: Allocation;
  private title: string | undefined = undefined;
  private readonly owner: DeviceBuffer2D<D> | undefined;

  /** @internal */
  constructor(
    memory: Allocation,
    dtype: DType<D>,
    size: Required<Size2D>,
    pitch: number,
    byteOffset: number,
    owner: DeviceBuffer2D<D> | undefined,
  ) {
    this.memory = memory;
    this.dtype = dtype;
    this.width = size.width;
    this.height = size.height;
    this.channels = size.channels;
    this.pitch = pitch;
    this.byteOffset = byteOffset;
    this.owner = owner;
    if (owner === undefined) leaks.register(this, memory, memory);
  }

  /** The device that the memory was made from. */
  get device(): CoreDevice {
    return this.memory.device;
  }

  /** Elements, without the padding of rows. */
  get length(): number {
    return this.width * this.height * this.channels;
  }

  /** Bytes of one row, without its padding. */
  get lineBytes(): number {
    return this.width * this.channels * this.dtype.bytes;
  }

  /** Bytes from the first to the last element. */
  get byteLength(): number {
    return this.height === 0 ? 0 : (this.height - 1) * this.pitch + this.lineBytes;
  }

  /** The label given at allocation, which errors show. */
  get label(): string | undefined {
    return this.memory.label;
  }

  /** Whether the memory was freed, by {@link close} of the image that owns it. */
  get isClosed(): boolean {
    return this.memory.disposed;
  }

  /**
   * Resolves once the memory is allocated.
   *
   * @throws CudaOutOfMemoryError where there is not enough memory
   */
  async allocated(): Promise<this> {
    this.device.runtime.expect(this.memory.root);
    await this.memory.stream.passed(this.memory.mark);
    const failure = this.device.runtime.failureOf(this.memory.root);
    if (failure !== undefined) throw failure;
    return this;
  }

  /**
   * Copies a dense host image to this one: `height × width × channels` elements, rows first,
   * channels innermost. As with {@link DeviceBuffer.write}, a source of more than 64 KiB must not
   * change until the write resolves. cuMemcpy2DAsync
   *
   * @throws CudaArgumentError for a wrong dtype or length
   */
  write(stream: Stream, source: HostArray<D> | ArrayBuffer | SharedArrayBuffer): Pending {
    this.check(stream);
    const encoder = encoderFor(this.dtype, source, false, 'source');
    if (encoder.bytes !== this.length * this.dtype.bytes) {
      throw invalid(
        'source',
        `${this.height} × ${this.width} × ${this.channels} = ${this.length} elements`,
        source,
      );
    }
    return writeRegion(stream, this.device.staging, this.region(), encoder, this.name());
  }

  /**
   * Copies to a dense host image, the dtype's host array of `height × width × channels` elements.
   * cuMemcpy2DAsync
   */
  read(stream: Stream, options: { into?: HostArray<D> | undefined } = {}): Pending<HostArray<D>> {
    this.check(stream);
    checkOptions('options', options, ['into']);
    const { target, decoder } = readTarget(this.dtype, this.length, options.into);
    return readRegion(
      stream,
      this.device.staging,
      this.region(),
      decoder,
      this.name(),
      () => target as HostArray<D>,
    );
  }

  /**
   * Sets every element to `value`. The padding of rows does not change. cuMemsetD2D8Async,
   * cuMemsetD2D16Async, cuMemsetD2D32Async
   */
  fill(stream: Stream, value: Scalar<D>): Pending {
    this.check(stream);
    const pattern = fillPattern(this.dtype, value);
    const root = stream.nextRoot();
    if (this.length === 0) return new Pending(stream, root, stream.mark);
    stream.order(this.memory, ACCESS_WRITE);
    const { byteOffset: offset, height, memory, pitch } = this;
    let mark: number;
    if (pattern.words === undefined) {
      const { bits, value } = pattern;
      mark = putMemset(stream, root, memory, this.wholeAccess(), {
        offset,
        bits,
        value,
        width: this.lineBytes / (bits / 8),
        height,
        pitch,
      });
    } else {
      // There is no memset of 64 bits or more. One memset of 32 bits for each word of the element
      // writes the first row; copies double it.
      const elements = this.width * this.channels;
      mark = putWords(stream, root, memory, this.wholeAccess(), pattern.words, offset, elements);
      for (let rows = 1; rows < height; rows *= 2) {
        mark = this.copyRows(
          stream,
          root,
          ACCESS_WRITE,
          this,
          offset + rows * pitch,
          Math.min(rows, height - rows),
        );
      }
    }
    stream.used(memory, this.wholeAccess(), mark);
    return new Pending(stream, root, mark);
  }

  /**
   * Copies from another image of the same size and dtype, which may be on another device. The copy
   * is ordered as {@link DeviceBuffer.copyFrom}'s is. cuMemcpy2DAsync, cuMemcpy3DPeerAsync
   *
   * @param stream a stream of this image's device
   */
  copyFrom(stream: Stream, source: DeviceBuffer2D<D>): Pending {
    this.check(stream);
    if (!(source instanceof DeviceBuffer2D)) throw invalid('source', 'a DeviceBuffer2D', source);
    source.checkAlive();
    if (
      source.dtype.name !== this.dtype.name ||
      source.width !== this.width ||
      source.height !== this.height ||
      source.channels !== this.channels
    ) {
      throw invalid(
        'source',
        this.shape(),
        source.shape(),
        'Copy parts with crop({ x, y, width, height }).',
      );
    }
    if (
      source.memory === this.memory &&
      source.byteOffset < this.byteOffset + this.byteLength &&
      this.byteOffset < source.byteOffset + source.byteLength
    ) {
      throw new CudaArgumentError(
        'source',
        'source: may overlap this image. Copy through another one.',
      );
    }
    if (source.device.runtime !== this.device.runtime)
      return copyBox(stream, this.box(), source.box(), this.wholeAccess());
    const root = stream.nextRoot();
    if (this.length === 0) return new Pending(stream, root, stream.mark);
    stream.order(source.memory, ACCESS_READ);
    stream.order(this.memory, ACCESS_WRITE);
    const mark = this.copyRows(
      stream,
      root,
      this.wholeAccess(),
      source,
      this.byteOffset,
      this.height,
    );
    stream.used(source.memory, ACCESS_READ, mark);
    stream.used(this.memory, this.wholeAccess(), mark);
    return new Pending(stream, root, mark);
  }

  /**
   * The image's rows as slices of `height` rows each, for copies in three dimensions; one slice
   * where no height is given. A row has `width × channels` elements.
   */
  box(layout: { height?: number } = {}): DeviceBox<D> {
    this.checkAlive();
    checkOptions('layout', layout, ['height']);
    const { height = this.height } = layout;
    checkInteger('layout.height', height, height === 0 ? 0 : 1, Math.max(1, this.height), 'rows');
    if (height > 0 && this.height % height !== 0)
      throw invalid('layout.height', `a divisor of ${this.height} rows`, height);
    return new DeviceBox(
      this.memory,
      this.dtype,
      { width: this.width * this.channels, height, depth: height === 0 ? 0 : this.height / height },
      this.pitch,
      height,
      this.byteOffset,
      this.owner ?? this,
    );
  }

  /** A view of a rectangle, in pixels, with the same pitch. It does not own the memory. */
  crop(area: { x: number; y: number; width: number; height: number }): DeviceBuffer2D<D> {
    this.checkAlive();
    if (area === undefined) throw invalid('area', 'an object with x, y, width and height', area);
    checkOptions('area', area, ['x', 'y', 'width', 'height']);
    checkInteger('area.x', area.x, 0, this.width, 'pixels');
    checkInteger('area.y', area.y, 0, this.height, 'pixels');
    checkInteger('area.width', area.width, 0, this.width - area.x, 'pixels');
    checkInteger('area.height', area.height, 0, this.height - area.y, 'pixels');
    const offset =
      this.byteOffset + area.y * this.pitch + area.x * this.channels * this.dtype.bytes;
    return new DeviceBuffer2D(
      this.memory,
      this.dtype,
      { width: area.width, height: area.height, channels: this.channels },
      this.pitch,
      offset,
      this.owner ?? this,
    );
  }

  /** Queues the free after all work that uses the image, and never waits. cuMemFreeAsync */
  close(): void {
    if (this.owner !== undefined || this.memory.disposed) return;
    leaks.unregister(this.memory);
    this.memory.dispose();
  }

  /** Calls {@link close}, for `using`. */
  [Symbol.dispose](): void {
    this.close();
  }

  toString(): string {
    return (
      `DeviceBuffer2D<${this.shape()}>${this.label === undefined ? '' : ` '${this.label}'`} on ` +
      `${this.device.title}${this.isClosed ? ', closed' : ''}`
    );
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return this.toString();
  }

  /**
   * Copies the first `rows` rows of `source` to `offset` bytes from the start of this image's
   * memory.
   */
  private copyRows(
    stream: Stream,
    root: number,
    access: number,
    source: DeviceBuffer2D,
    offset: number,
    rows: number,
  ): number {
    const body = stream.begin(OP.copy2D, 15, root);
    const { memory } = stream.runtime.ring;
    memory[body] = this.memory.handle | (access << ACCESS_SHIFT);
    putInt64(memory, body + 1, offset);
    memory[body + 3] = this.pitch;
    memory[body + 4] = source.memory.handle | (ACCESS_READ << ACCESS_SHIFT);
    putInt64(memory, body + 5, source.byteOffset);
    memory[body + 7] = source.pitch;
    memory[body + 8] = this.lineBytes;
    memory[body + 9] = rows;
    memory[body + 10] = COPY_DEVICE_TO_DEVICE;
    return stream.commit();
  }

  private shape(): string {
    return `${this.dtype.name} ${this.height}×${this.width}×${this.channels}`;
  }

  private name(): string {
    this.title ??= this.label === undefined ? `image ${this.shape()}` : `image '${this.label}'`;
    return this.title;
  }

  private checkAlive(): void {
    if (this.memory.disposed)
      throw new CudaDisposedError(
        `${this.toString()}: used after it was closed. Allocate another with device.alloc2D().`,
      );
    this.device.check();
  }

  private check(stream: Stream): void {
    this.checkAlive();
    this.device.checkStream('stream', stream);
  }

  private region(): Region {
    return {
      resource: this.memory,
      offset: this.byteOffset,
      line: this.lineBytes,
      rows: this.height,
      pitch: this.pitch,
      whole: this.isWhole,
    };
  }

  /** Whether the view is the whole image. The padding of the rows is not observable. */
  private get isWhole(): boolean {
    return (
      this.owner === undefined ||
      (this.width === this.owner.width && this.height === this.owner.height)
    );
  }

  /** The access of a command that writes the whole view. */
  private wholeAccess(): number {
    return this.isWhole ? ACCESS_WRITE | ACCESS_WHOLE : ACCESS_WRITE;
  }
}

/**
 * The rows of an image in elements, the bytes of a line, and those from line to line.
 *
 * @throws CudaArgumentError for sizes that no image has; CudaOutOfMemoryError for an image that is
 *   larger than any device
 * @internal
 */
export function imageLayout(
  dtype: DType,
  size: Size2D,
): { readonly rows: Required<Size2D>; readonly pitch: number; readonly line: number } {
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
  return { rows: { width, height, channels }, pitch, line };
}
