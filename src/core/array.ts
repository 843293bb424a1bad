/**
 * Arrays: texels that the device keeps in an order of its own, addressed by coordinates. Textures
 * read them with filtering in up to three dimensions, surfaces write them, and copies move data in
 * and out. On the host they are dense, channels innermost, then x, y and z.
 */
import {
  ACCESS_READ,
  ACCESS_SHIFT,
  ACCESS_WHOLE,
  ACCESS_WRITE,
  COPY_DEVICE_TO_DEVICE,
  COPY_FROM_ARRAY,
  COPY_TO_ARRAY,
  OP,
} from '../runtime/commands.js';
import { CudaDisposedError } from '../ground/errors.js';
import {
  checkBoolean,
  checkDType,
  checkInteger,
  checkOptions,
  invalid,
} from '../ground/arguments.js';
import { DeviceBox } from './box.js';
import type { MemoryKind } from './channels.js';
import type { CoreDevice } from './device.js';
import type { DType, DTypeName, HostArray } from '../ground/dtype.js';
import { encoderFor, readTarget } from './host-codec.js';
import { Allocation } from './memory.js';
import { Pending } from './pending.js';
import type { Stream } from './stream.js';
import { texelFormat } from './texel-format.js';
import { putBox, readRegion, writeRegion } from './transfer.js';
import type { BoxEnd, Region } from './transfer.js';

/** Flags of cuArray3DCreate. */
const CUDA_ARRAY3D_LAYERED = 1;
const CUDA_ARRAY3D_SURFACE_LDST = 2;
const CUDA_ARRAY3D_CUBEMAP = 4;

/** Size and kind of an array. */
export interface ArraySize {
  /** Texels of a row. */
  width: number;
  /** Rows. Left out, the array has one dimension. */
  height?: number;
  /** Slices; layers of a layered array; 6 for a cube. Left out, the array has none. */
  depth?: number;
  /** Elements of a texel: 1 (default), 2 or 4. */
  channels?: number;
  /** Whether `depth` counts layers, between which there is no filtering. Default false. */
  layered?: boolean;
  /** Whether the layers are faces of cubes: square, six for each cube. Default false. */
  cube?: boolean;
  /** Kernels may write it through a surface. Default false. */
  surface?: boolean;
}

/** The memory of an array, which is freed by a call, not in stream order. */
class ArrayMemory extends Allocation {
  readonly array: number;

  constructor(device: CoreDevice, array: number, bytes: number, describe: () => string) {
    super(device, device.stream, device.runtime.handles.adopt(array), bytes, undefined, describe);
    this.array = array;
  }

  override get kind(): MemoryKind {
    return 'array';
  }

  override dispose(): void {
    this.free().catch(() => undefined);
  }

  async free(): Promise<void> {
    if (this.disposed) return;
    this.disposed = true;
    this.device.ledger.give(this);
    const { runtime, shared } = this.device;
    if (runtime.lost !== undefined) return;
    await this.settled();
    runtime.handles.drop(this.handle);
    await shared.freeGate.free(() => runtime.call('destroyArray', this.array));
  }
}

/**
 * An array of texels. Made by {@link CoreDevice.allocArray}. cuArray3DCreate
 *
 * @example
 * ```ts
 * await using array = await device.allocArray(f32, { width: 2, height: 2 });
 * array.write(device.stream, Float32Array.of(1, 2, 3, 4));
 * console.log(await array.read(device.stream)); // Float32Array(4) [ 1, 2, 3, 4 ]
 * ```
 */
export class DeviceArray<D extends DTypeName = DTypeName> implements AsyncDisposable {
  readonly dtype: DType<D>;
  /** Texels of a row. */
  readonly width: number;
  /** Rows; 1 in one dimension. */
  readonly height: number;
  /** Slices or layers; 1 where there are none. */
  readonly depth: number;
  /** Elements of a texel. */
  readonly channels: number;
  /** Whether kernels may write it through a surface. */
  readonly surface: boolean;
  /** @internal */
  readonly memory: ArrayMemory;

  /** @internal */
  constructor(memory: ArrayMemory, dtype: DType<D>, size: Required<ArraySize>) {
    this.memory = memory;
    this.dtype = dtype;
    this.width = size.width;
    this.height = Math.max(1, size.height);
    this.depth = Math.max(1, size.depth);
    this.channels = size.channels;
    this.surface = size.surface;
    memory.device.objects.own(this);
  }

  /** The device that the memory was made from. */
  get device(): CoreDevice {
    return this.memory.device;
  }

  /** Elements. */
  get length(): number {
    return this.width * this.height * this.depth * this.channels;
  }

  /** Whether {@link close} was called. */
  get isClosed(): boolean {
    return this.memory.disposed;
  }

  /**
   * Copies dense host data to the whole array. As with {@link DeviceBuffer.write}, a source of more
   * than 64 KiB must not change until the write resolves. cuMemcpy3DAsync
   *
   * @throws CudaArgumentError for a wrong dtype or length
   */
  write(stream: Stream, source: HostArray<D> | ArrayBuffer | SharedArrayBuffer): Pending {
    this.check(stream);
    const encoder = encoderFor(this.dtype, source, false, 'source');
    if (encoder.bytes !== this.length * this.dtype.bytes)
      throw invalid('source', `${this.length} elements`, source);
    return writeRegion(stream, this.device.staging, this.region(), encoder, this.toString());
  }

  /** Copies the whole array to dense host data: the dtype's host array. cuMemcpy3DAsync */
  read(stream: Stream, options: { into?: HostArray<D> | undefined } = {}): Pending<HostArray<D>> {
    this.check(stream);
    checkOptions('options', options, ['into']);
    const { target, decoder } = readTarget(this.dtype, this.length, options.into);
    return readRegion(
      stream,
      this.device.staging,
      this.region(),
      decoder,
      this.toString(),
      () => target as HostArray<D>,
    );
  }

  /**
   * Copies the whole array from a box of `width × channels` elements by `height` by `depth` on the
   * same device. cuMemcpy3DAsync
   */
  copyFrom(stream: Stream, source: DeviceBox<D>): Pending {
    this.check(stream);
    this.checkBox('source', source);
    return this.copy(stream, source, true);
  }

  /** Copies the whole array to a box of that size. cuMemcpy3DAsync */
  copyTo(stream: Stream, target: DeviceBox<D>): Pending {
    this.check(stream);
    this.checkBox('target', target);
    return this.copy(stream, target, false);
  }

  /**
   * Frees the array, once all work on it has ended. While a stream waits for a value the call is
   * put off, and `close` does not wait for it. cuArrayDestroy
   */
  async close(): Promise<void> {
    if (this.memory.disposed) return;
    this.device.objects.disown(this);
    await this.memory.free();
  }

  /** Calls {@link close}, for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  toString(): string {
    return (
      `DeviceArray<${this.dtype.name} ` +
      `${this.depth}×${this.height}×${this.width}×${this.channels}> on ` +
      `${this.device.title}${this.isClosed ? ', closed' : ''}`
    );
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return this.toString();
  }

  /** @internal */
  checkAlive(): void {
    if (this.memory.disposed)
      throw new CudaDisposedError(
        `${this.toString()}: used after it was closed. Make another with await ` +
          'device.allocArray().',
      );
    this.device.check();
  }

  private copy(stream: Stream, box: DeviceBox<D>, toArray: boolean): Pending {
    const root = stream.nextRoot();
    const access = toArray ? ACCESS_WRITE | ACCESS_WHOLE : ACCESS_READ;
    const boxAccess = toArray ? ACCESS_READ : box.wholeAccess();
    stream.order(this.memory, access);
    stream.order(box.memory, boxAccess);
    const line = this.lineBytes;
    const here: BoxEnd = {
      handle: this.memory.handle | (access << ACCESS_SHIFT),
      offset: 0,
      pitch: line,
      rows: this.height,
    };
    const there = box.end(box.memory.handle, boxAccess);
    const body = stream.begin(OP.copy3D, 18, root);
    const kind = COPY_DEVICE_TO_DEVICE | (toArray ? COPY_TO_ARRAY : COPY_FROM_ARRAY);
    putBox(
      stream.runtime.ring.memory,
      body,
      toArray ? here : there,
      toArray ? there : here,
      line,
      this.height,
      this.depth,
      kind,
    );
    const mark = stream.commit();
    stream.used(this.memory, access, mark);
    stream.used(box.memory, boxAccess, mark);
    return new Pending(stream, root, mark);
  }

  private get lineBytes(): number {
    return this.width * this.channels * this.dtype.bytes;
  }

  private region(): Region {
    const line = this.lineBytes;
    return {
      resource: this.memory,
      offset: 0,
      line,
      rows: this.height,
      pitch: line,
      depth: this.depth,
      slicePitch: line * this.height,
      whole: true,
      array: true,
    };
  }

  private checkBox(argument: string, box: DeviceBox<D>): void {
    if (!(box instanceof DeviceBox))
      throw invalid(
        argument,
        'a DeviceBox',
        box,
        'Make one with buffer.box({ width, height, depth }) or image.box().',
      );
    box.checkAlive();
    if (box.device.runtime !== this.device.runtime)
      throw invalid(argument, `memory of ${this.device.title}`, box);
    const fits =
      box.dtype.name === this.dtype.name &&
      box.width === this.width * this.channels &&
      box.height === this.height &&
      box.depth === this.depth;
    if (!fits)
      throw invalid(
        argument,
        `${this.dtype.name}, ${this.depth} × ${this.height} × ${this.width * this.channels} ` +
          'elements',
        box,
      );
  }

  private check(stream: Stream): void {
    this.checkAlive();
    this.device.checkStream('stream', stream);
  }
}

/** @internal */
export async function createArray<D extends DTypeName>(
  device: CoreDevice,
  dtype: DType<D>,
  given: ArraySize,
): Promise<DeviceArray<D>> {
  checkDType(dtype);
  const format = texelFormat('dtype', dtype);
  if (given === undefined) throw invalid('size', 'an object with width', given);
  checkOptions('size', given, [
    'width',
    'height',
    'depth',
    'channels',
    'layered',
    'cube',
    'surface',
  ]);
  const {
    width,
    height = 0,
    depth = 0,
    channels = 1,
    layered = false,
    cube = false,
    surface = false,
  } = given;
  checkInteger('size.width', width, 1, 0x7fffffff, 'texels');
  checkInteger('size.height', height, given.height === undefined ? 0 : 1, 0x7fffffff, 'rows');
  checkInteger(
    'size.depth',
    depth,
    given.depth === undefined ? 0 : 1,
    0x7fffffff,
    layered ? 'layers' : 'slices',
  );
  if (channels !== 1 && channels !== 2 && channels !== 4)
    throw invalid('size.channels', '1, 2 or 4', channels);
  checkBoolean('size.layered', layered);
  checkBoolean('size.cube', cube);
  checkBoolean('size.surface', surface);
  if (depth > 0 && height === 0 && !layered)
    throw invalid(
      'size.height',
      'a number of rows where there is a depth',
      given.height,
      'Write layered: true for rows of layers.',
    );
  if (layered && depth === 0) throw invalid('size.depth', 'the number of layers', given.depth);
  if (cube && (width !== height || (layered ? depth % 6 !== 0 : depth !== 6))) {
    throw invalid('size', 'square faces, six of them (or a multiple of six where layered)', given);
  }
  const flags =
    (layered ? CUDA_ARRAY3D_LAYERED : 0) |
    (cube ? CUDA_ARRAY3D_CUBEMAP : 0) |
    (surface ? CUDA_ARRAY3D_SURFACE_LDST : 0);
  const array = await device.runtime.call('createArray', {
    Width: width,
    Height: height,
    Depth: depth,
    Format: format,
    NumChannels: channels,
    Flags: flags,
  });
  const bytes = width * Math.max(1, height) * Math.max(1, depth) * channels * dtype.bytes;
  const memory = new ArrayMemory(
    device,
    array,
    bytes,
    () => `allocArray ${dtype.name} ${depth}×${height}×${width}×${channels}`,
  );
  device.ledger.take(memory);
  return new DeviceArray(memory, dtype, { width, height, depth, channels, layered, cube, surface });
}
