/**
 * Boxes: device memory as `depth` slices of `height` rows of `width` elements, for copies in three
 * dimensions. Consecutive rows are a pitch apart; consecutive slices are a number of rows apart. On
 * the host a box is dense, x innermost, slices outermost.
 */
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
import { checkInteger, checkOptions, invalid } from '../ground/arguments.js';
import type { DeviceBuffer } from './buffer.js';
import { copyThroughHost } from './copy-through-host.js';
import type { CoreDevice } from './device.js';
import type { DType, DTypeName, HostArray } from '../ground/dtype.js';
import { ForeignMemory, memoryFor } from './foreign-memory.js';
import { encoderFor, readTarget } from './host-codec.js';
import type { Allocation } from './memory.js';
import { Pending } from './pending.js';
import { PinnedBuffer } from './pinned.js';
import type { Stream } from './stream.js';
import { putBox, readRegion, writeRegion } from './transfer.js';
import type { BoxEnd, Region } from './transfer.js';

/** The largest pitch of cuMemcpy3DAsync: CU_DEVICE_ATTRIBUTE_MAX_PITCH of every device. */
const MAX_PITCH = 0x7fffffff;

/** The size of a box. */
export interface BoxSize {
  /** Elements of a row. */
  width: number;
  /** Rows of a slice. */
  height: number;
  /** Slices. */
  depth: number;
}

/** The size of a box, and its layout in a buffer. */
export interface BoxLayout extends BoxSize {
  /** Elements from one row to the next. Default: the width. */
  rowStride?: number;
  /** Rows from one slice to the next. Default: the height. */
  sliceStride?: number;
}

/** A part of a box. */
export interface BoxArea extends BoxSize {
  /** Elements from the beginning of a row. */
  x: number;
  /** Rows from the beginning of a slice. */
  y: number;
  /** Slices. */
  z: number;
}

/**
 * A view of device memory in three dimensions. It does not own the memory. Made by
 * {@link DeviceBuffer.box} and {@link DeviceBuffer2D.box}.
 *
 * @example
 * ```ts
 * using memory = device.alloc(u8, 8);
 * const box = memory.box({ width: 2, height: 2, depth: 2 });
 * box.write(device.stream, Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8));
 * const column = box.crop({ x: 1, y: 0, z: 0, width: 1, height: 2, depth: 2 });
 * console.log(await column.read(device.stream)); // Uint8Array(4) [ 2, 4, 6, 8 ]
 * ```
 */
export class DeviceBox<D extends DTypeName = DTypeName> {
  readonly dtype: DType<D>;
  /** Elements of a row. */
  readonly width: number;
  /** Rows of a slice. */
  readonly height: number;
  /** Slices. */
  readonly depth: number;
  /** Bytes from one row to the next. */
  readonly pitch: number;
  /** Rows from one slice to the next. */
  readonly sliceStride: number;
  /** Byte offset of the first element within the allocation. */
  readonly byteOffset: number;
  /** @internal */
  readonly memory: Allocation;
  /** The owner that the view keeps alive. */
  private readonly owner: object;

  /** @internal */
  constructor(
    memory: Allocation,
    dtype: DType<D>,
    size: BoxSize,
    pitch: number,
    sliceStride: number,
    byteOffset: number,
    owner: object,
  ) {
    this.memory = memory;
    this.dtype = dtype;
    this.width = size.width;
    this.height = size.height;
    this.depth = size.depth;
    this.pitch = pitch;
    this.sliceStride = sliceStride;
    this.byteOffset = byteOffset;
    this.owner = owner;
  }

  /** The device that the memory was made from. */
  get device(): CoreDevice {
    return this.memory.device;
  }

  /** Elements. */
  get length(): number {
    return this.width * this.height * this.depth;
  }

  /** Whether the memory was freed, by `close` of the buffer that owns it. */
  get isClosed(): boolean {
    return this.memory.disposed;
  }

  /**
   * Copies dense host data to the box: `width × height × depth` elements, x innermost. As with
   * {@link DeviceBuffer.write}, a plain array of more than 64 KiB must not change until the write
   * resolves. cuMemcpy3DAsync
   *
   * @throws CudaArgumentError for a wrong dtype or length
   */
  write(
    stream: Stream,
    source: HostArray<D> | ArrayBuffer | SharedArrayBuffer | PinnedBuffer<D>,
  ): Pending {
    this.check(stream);
    if (source instanceof PinnedBuffer) return this.copyHost(stream, source, true);
    const encoder = encoderFor(this.dtype, source, false, 'source');
    if (encoder.bytes !== this.length * this.dtype.bytes)
      throw invalid('source', this.count(), source);
    return writeRegion(stream, this.device.staging, this.region(), encoder, this.toString());
  }

  /** Copies to page-locked memory of `width × height × depth` elements. cuMemcpy3DAsync */
  read(stream: Stream, target: PinnedBuffer<D>): Pending;
  /**
   * Copies to dense host data, the dtype's host array of `width × height × depth` elements, x
   * innermost. cuMemcpy3DAsync
   */
  read(stream: Stream, options?: { into?: HostArray<D> | undefined }): Pending<HostArray<D>>;
  read(
    stream: Stream,
    target: PinnedBuffer<D> | { into?: HostArray<D> | undefined } = {},
  ): Pending | Pending<HostArray<D>> {
    this.check(stream);
    if (target instanceof PinnedBuffer) return this.copyHost(stream, target, false);
    checkOptions('options', target, ['into']);
    const { target: array, decoder } = readTarget(this.dtype, this.length, target.into, {
      count: this.count(),
    });
    return readRegion(
      stream,
      this.device.staging,
      this.region(),
      decoder,
      this.toString(),
      () => array as HostArray<D>,
    );
  }

  /**
   * Copies from another box of the same size and dtype, which may have another layout and be on
   * another device. The copy is ordered as {@link DeviceBuffer.copyFrom}'s is. cuMemcpy3DAsync,
   * cuMemcpy3DPeerAsync
   *
   * @param stream a stream of this box's device
   * @throws CudaArgumentError for another size or dtype, or where the two may overlap; CudaError
   *   (ERR_CUDA_CAPTURE) as {@link DeviceBuffer.copyFrom}
   */
  copyFrom(stream: Stream, source: DeviceBox<D>): Pending {
    this.check(stream);
    if (!(source instanceof DeviceBox))
      throw invalid(
        'source',
        'a DeviceBox',
        source,
        'Make one with buffer.box({ width, height, depth }).',
      );
    source.checkAlive();
    if (
      source.dtype.name !== this.dtype.name ||
      source.width !== this.width ||
      source.height !== this.height ||
      source.depth !== this.depth
    ) {
      throw invalid(
        'source',
        this.shape(),
        source.shape(),
        'Copy parts with crop({ x, y, z, width, height, depth }).',
      );
    }
    return copyBox(stream, this, source);
  }

  /** A view of a part, with the same pitch and slice stride. */
  crop(area: BoxArea): DeviceBox<D> {
    this.checkAlive();
    if (area === undefined)
      throw invalid('area', 'an object with x, y, z, width, height and depth', area);
    checkOptions('area', area, ['x', 'y', 'z', 'width', 'height', 'depth']);
    const { x, y, z, width, height, depth } = area;
    checkInteger('area.x', x, 0, this.width, 'elements');
    checkInteger('area.y', y, 0, this.height, 'rows');
    checkInteger('area.z', z, 0, this.depth, 'slices');
    checkInteger('area.width', width, 0, this.width - x, 'elements');
    checkInteger('area.height', height, 0, this.height - y, 'rows');
    checkInteger('area.depth', depth, 0, this.depth - z, 'slices');
    const offset = this.byteOffset + (z * this.sliceStride + y) * this.pitch + x * this.dtype.bytes;
    return new DeviceBox(
      this.memory,
      this.dtype,
      { width, height, depth },
      this.pitch,
      this.sliceStride,
      offset,
      this.owner,
    );
  }

  toString(): string {
    return `DeviceBox<${this.shape()}> on ${this.device.title}${this.isClosed ? ', closed' : ''}`;
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return this.toString();
  }

  // Used by the rest of core:

  /** Bytes from the first to the last element. @internal */
  get extent(): number {
    if (this.length === 0) return 0;
    return (
      ((this.depth - 1) * this.sliceStride + this.height - 1) * this.pitch +
      this.width * this.dtype.bytes
    );
  }

  /** @internal */
  region(): Region {
    return {
      resource: this.memory,
      offset: this.byteOffset,
      line: this.width * this.dtype.bytes,
      rows: this.height,
      pitch: this.pitch,
      depth: this.depth,
      slicePitch: this.pitch * this.sliceStride,
      whole: this.isWhole,
    };
  }

  /** The access of a command that writes the whole box. @internal */
  wholeAccess(): number {
    return this.isWhole ? ACCESS_WRITE | ACCESS_WHOLE : ACCESS_WRITE;
  }

  /** @internal */
  end(handle: number, access: number): BoxEnd {
    return {
      handle: handle | (access << ACCESS_SHIFT),
      offset: this.byteOffset,
      pitch: this.pitch,
      rows: this.sliceStride,
    };
  }

  private copyHost(stream: Stream, host: PinnedBuffer<D>, toDevice: boolean): Pending {
    const argument = toDevice ? 'source' : 'target';
    host.checkCopy(argument, this, this.count(), 'Use slice(from, to) on a longer one.');
    const root = stream.nextRoot();
    if (this.length === 0) return new Pending(stream, root, stream.mark);
    const access = toDevice ? this.wholeAccess() : ACCESS_READ;
    const hostAccess = toDevice ? ACCESS_READ : host.wholeAccess();
    stream.order(this.memory, access);
    stream.order(host.memory, hostAccess);
    const line = this.width * this.dtype.bytes;
    const here = this.end(this.memory.handle, access);
    const there: BoxEnd = {
      handle: host.memory.handle | (hostAccess << ACCESS_SHIFT),
      offset: host.byteOffset,
      pitch: line,
      rows: this.height,
    };
    const body = stream.begin(OP.copy3D, 18, root);
    const kind = toDevice ? COPY_HOST_TO_DEVICE : COPY_DEVICE_TO_HOST;
    putBox(
      stream.runtime.ring.memory,
      body,
      toDevice ? here : there,
      toDevice ? there : here,
      line,
      this.height,
      this.depth,
      kind,
    );
    const mark = stream.commit();
    stream.used(this.memory, access, mark);
    stream.used(host.memory, hostAccess, mark);
    return new Pending(stream, root, mark);
  }

  /** Whether the box is the whole allocation. */
  private get isWhole(): boolean {
    return this.byteOffset === 0 && this.length * this.dtype.bytes === this.memory.bytes;
  }

  private shape(): string {
    return `${this.dtype.name} ${this.depth}×${this.height}×${this.width}`;
  }

  private count(): string {
    return `${this.depth} × ${this.height} × ${this.width} = ${this.length} elements`;
  }

  /** @internal */
  checkAlive(): void {
    if (this.memory.disposed)
      throw new CudaDisposedError(`${this.toString()}: used after its buffer was closed.`);
    this.device.check();
  }

  private check(stream: Stream): void {
    this.checkAlive();
    this.device.checkStream('stream', stream);
  }
}

/** A box that begins where the buffer begins. It keeps `owner` alive. @internal */
export function boxOf<D extends DTypeName>(
  buffer: DeviceBuffer<D>,
  layout: BoxLayout,
  owner: object,
): DeviceBox<D> {
  if (layout === undefined)
    throw invalid('layout', 'an object with width, height and depth', layout);
  checkOptions('layout', layout, ['width', 'height', 'depth', 'rowStride', 'sliceStride']);
  const { width, height, depth } = layout;
  const { dtype } = buffer;
  checkInteger('layout.width', width, 0, Math.floor(MAX_PITCH / dtype.bytes), 'elements');
  checkInteger('layout.height', height, 0, MAX_PITCH, 'rows');
  checkInteger('layout.depth', depth, 0, MAX_PITCH, 'slices');
  const { rowStride = width, sliceStride = height } = layout;
  checkInteger(
    'layout.rowStride',
    rowStride,
    width,
    Math.floor(MAX_PITCH / dtype.bytes),
    'elements',
  );
  checkInteger('layout.sliceStride', sliceStride, height, MAX_PITCH, 'rows');
  const box = new DeviceBox(
    buffer.memory,
    dtype,
    { width, height, depth },
    rowStride * dtype.bytes,
    sliceStride,
    buffer.byteOffset,
    owner,
  );
  if (box.extent > buffer.byteLength) {
    throw invalid(
      'layout',
      `a box that ends within the buffer's ${buffer.length} elements`,
      `one that ends after ${box.extent / dtype.bytes}`,
    );
  }
  return box;
}

/**
 * Copies between boxes of one size and dtype. The caller has checked everything but their devices
 * and their overlap. @internal
 */
export function copyBox(
  stream: Stream,
  target: DeviceBox,
  source: DeviceBox,
  access = target.wholeAccess(),
): Pending {
  if (target.length === 0) return new Pending(stream, stream.nextRoot(), stream.mark);
  const from = memoryFor(source.memory, target.device.shared);
  if (from === undefined) return copyThroughHost(stream, target, source);
  if (from instanceof ForeignMemory) from.checkSource(stream, 'source');
  if (
    target.memory === source.memory &&
    source.byteOffset < target.byteOffset + target.extent &&
    target.byteOffset < source.byteOffset + source.extent
  ) {
    throw new CudaArgumentError(
      'source',
      'source: may overlap this box. Copy through another buffer.',
    );
  }
  const root = stream.nextRoot();
  stream.order(from, ACCESS_READ);
  stream.order(target.memory, ACCESS_WRITE);
  const body = stream.begin(OP.copy3D, 18, root);
  putBox(
    stream.runtime.ring.memory,
    body,
    target.end(target.memory.handle, access),
    source.end(from.handle, ACCESS_READ),
    target.width * target.dtype.bytes,
    target.height,
    target.depth,
    from === source.memory ? COPY_DEVICE_TO_DEVICE : COPY_PEER,
  );
  const mark = stream.commit();
  stream.used(from, ACCESS_READ, mark);
  stream.used(target.memory, access, mark);
  return new Pending(stream, root, mark);
}
