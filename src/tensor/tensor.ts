/**
 * Tensors: device memory with a dtype and a shape, and views of it. Views are made on the host,
 * without work on the device; everything that reads or writes the memory is an operation.
 */
import type {
  BitArray,
  DType,
  DTypeName,
  CoreDevice,
  DeviceBuffer,
  HostArray,
  PinnedBuffer,
  ReadOptions,
  Scalar,
  WriteSource,
} from '../core/index.js';
import { checkDType, checkOptions, invalid } from '../ground/arguments.js';
import type { BytesOf, ComplexName, KernelDTypeName, PartOf } from '../ground/dtype.js';
import { fillPattern } from '../core/fill-pattern.js';
import { readTarget } from '../core/host-codec.js';
import type { Allocation } from '../core/memory.js';
import { MEMORY, OWN, OWNER, OWNS } from '../core/holder.js';
import { DeviceOp, nodeOf } from '../ops/device-op.js';
import { Applied, Collected, Made } from '../ops/collect.js';
import { Later, after, whenKnown } from '../ops/node.js';
import type { Submitted } from '../ops/node.js';
import type { Run } from '../ops/run.js';
import { coreOf } from '../ops/scheduling.js';
import type { AnyDevice } from '../ops/scheduling.js';
import { checkContiguous, checkWritable, closedError } from './access-checks.js';
import * as axes from './axes.js';
import * as broadcasting from './broadcasting.js';
import { copyAcross } from './device-copies.js';
import * as dtypeViews from './dtype-views.js';
import type { DLTensor } from './dlpack.js';
import { checkConversion, copyElements, fillElements } from './element-copies.js';
import { denseBuffer, layoutIn } from './elements.js';
import type { Elements } from './elements.js';
import { exportTensor, importTensor } from './exchange.js';
import type { TakeOverOptions } from './exchange.js';
import { claimOf, Partitioned } from './partitioned.js';
import { contiguous, isContiguous } from './layout.js';
import type { Layout } from './layout.js';
import { readElements, writeElements } from './host-copies.js';
import { overlapsItself } from './overlapping.js';
import * as reshaping from './reshaping.js';
import { numel, showShape } from './shape.js';
import type {
  BroadcastTo,
  Checked,
  Dims,
  Index,
  Known,
  Permuted,
  Reinterpreted,
  Reshaped,
  Shape,
  Sliced,
  Squeezed,
  Tiled,
  Transposed,
  Unsqueezed,
} from './shape-types.js';
import * as slicing from './slicing.js';
import { jsonOf, textOf } from './tensor-text.js';
import type { TensorJson } from './tensor-text.js';
import type { OrOp } from '../ops/given.js';

/** A tensor of any dtype and shape. */
export type AnyTensor = Tensor<DTypeName, Shape>;

/** A tensor of any shape, of a dtype that kernels compute with. */
export type KernelTensor = Tensor<KernelDTypeName, Shape>;

/**
 * Elements of `dtype` in device memory, in the order that `shape` and strides give them:
 * `Tensor<'f32', [2, 3]>` where the extents are literal. Operations such as `zeros` make
 * tensors; {@link close} gives the memory back, after all work that uses it.
 *
 * @example
 * ```ts
 * using x = await device.tensor(f32, [1, 2, 3, 4, 5, 6], [2, 3]);
 * const column = x.slice([null, null], 1);
 * console.log((await column.read()).join(' ')); // 2 5
 * using flipped = await x.transpose().contiguous();
 * console.log(flipped.shape, (await flipped.read()).join(' ')); // [ 3, 2 ] 1 4 2 5 3 6
 * ```
 */
export class Tensor<
  D extends DTypeName = DTypeName,
  S extends Shape = Shape,
> implements Disposable {
  readonly dtype: DType<D>;
  /** Where the elements lie in {@link buffer}. */
  readonly layout: Layout<S>;
  /** The memory. Views share it. */
  readonly buffer: DeviceBuffer<D>;
  /**
   * Whether {@link close} gives the memory back. A view's does not, unless a step of an operation
   * gave the view without its owner.
   */
  private owns: boolean;
  /** `owned`: a view that owns the memory, alone or with others; `closed`: it was closed. */
  private share: 'none' | 'owned' | 'closed' = 'none';

  /** @internal */
  constructor(buffer: DeviceBuffer<D>, layout: Layout<S>, owns: boolean) {
    this.dtype = buffer.dtype;
    this.buffer = buffer;
    this.layout = layout;
    this.owns = owns;
  }

  /**
   * Makes a tensor of memory that exists. The memory stays its owner's.
   *
   * @throws CudaArgumentError for an invalid buffer, shape or layout, a shape of more elements than
   *   the buffer has, and a layout that reaches beyond the buffer
   */
  static of<D extends DTypeName, const S extends Shape>(
    buffer: DeviceBuffer<D>,
    shape: S | Layout<S>,
  ): Tensor<D, Dims<S>> {
    return new Tensor(buffer, layoutIn(buffer, shape), false);
  }

  /**
   * Makes a tensor of another library's memory on the device, by its DLPack descriptor. Nothing is
   * copied. When the tensor is closed, and all work that uses it has ended, the descriptor's
   * `deleter` is called, once; until then its `owner` is kept alive. Views keep the tensor from
   * being collected. Earlier work on the memory has to have ended, or the streams that use the
   * tensor have to wait for it; a descriptor of {@link toDLPack} is given after the end of all
   * work. cuPointerGetAttribute
   *
   * @throws CudaArgumentError, which names the field, as a rejection: for a descriptor that cannot
   *   be used or was taken over before, and memory of another device. It then stays its owner's
   */
  static async fromDLPack(
    device: CoreDevice,
    descriptor: DLTensor,
    options?: TakeOverOptions,
  ): Promise<Tensor<DTypeName, number[]>> {
    const { buffer, layout } = await importTensor(device, descriptor, options);
    return new Tensor<DTypeName, number[]>(buffer, layout, true);
  }

  /** The device that the memory was made from. */
  get device(): CoreDevice {
    return this.buffer.device;
  }

  /** Extents, outermost axis first. */
  get shape(): Readonly<S> {
    return this.layout.shape;
  }

  /** Elements from one index of an axis to the next. */
  get strides(): readonly number[] {
    return this.layout.strides;
  }

  /** Number of axes. */
  get rank(): number {
    return this.layout.shape.length;
  }

  /** Number of elements. */
  get size(): number {
    return numel(this.layout.shape);
  }

  /** Bytes of the elements, without gaps between them. */
  get byteLength(): number {
    return this.size * this.dtype.bytes;
  }

  /** Whether the elements lie in row-major order without gaps. */
  get isContiguous(): boolean {
    return isContiguous(this.layout);
  }

  /** Whether another tensor owns the memory. */
  get isView(): boolean {
    return !this.owns;
  }

  /** Whether {@link close} was called, of the tensor or of the one that owns the memory. */
  get isClosed(): boolean {
    return this.buffer.isClosed || this.share === 'closed';
  }

  /** The label given at allocation, which errors show. */
  get label(): string | undefined {
    return this.buffer.label;
  }

  // Views

  /**
   * Gives the view of a part, as between Python's brackets: `x.slice(2, [0, 10], [null, null, -1])`
   * is `x[2, 0:10, ::-1]`. A number drops its axis; axes at the end may be left out.
   *
   * @throws CudaArgumentError for a number outside its axis, and more indices than axes
   */
  slice<const I extends readonly Index[]>(
    ...indices: I & Checked<Sliced<S, I>>
  ): Tensor<D, Known<Sliced<S, I>>>;
  slice(...indices: readonly Index[]): never {
    return this.view(slicing.slice(this.layout as Layout, indices as never)) as never;
  }

  /**
   * Gives the view of the elements, in the same order, with another shape. One extent may be -1: it
   * follows from the number of elements.
   *
   * @throws CudaArgumentError for another number of elements, and where the elements would have to
   *   be copied: make a `contiguous()` copy first
   */
  reshape<const T extends Shape>(
    shape: T & Checked<Reshaped<S, T>>,
  ): Tensor<D, Known<Reshaped<S, T>>>;
  reshape(shape: Shape): never {
    return this.view(reshaping.reshape(this.layout as Layout, shape as never)) as never;
  }

  /** Gives the view with the axes in another order: `permute([2, 0, 1])`. */
  permute<const A extends Shape>(
    order: A & Checked<Permuted<S, A>>,
  ): Tensor<D, Known<Permuted<S, A>>>;
  permute(order: Shape): never {
    return this.view(axes.permute(this.layout as Layout, order as never)) as never;
  }

  /** Gives the view with two axes exchanged, by default the last two. */
  transpose(): Tensor<D, Known<Transposed<S, -2, -1>>>;
  transpose<const A extends number, const B extends number = -1>(
    a: A & Checked<Transposed<S, A, B>>,
    b?: B & Checked<Transposed<S, A, B>>,
  ): Tensor<D, Known<Transposed<S, A, B>>>;
  transpose(a?: number, b?: number): never {
    return this.view(axes.transpose(this.layout as Layout, a as never, b as never)) as never;
  }

  /** Gives the view without all axes of extent 1, or without the one that is named. */
  squeeze(): Tensor<D, Known<Squeezed<S, undefined>>>;
  squeeze<const A extends number>(
    axis: A & Checked<Squeezed<S, A>>,
  ): Tensor<D, Known<Squeezed<S, A>>>;
  squeeze(axis?: number): never {
    return this.view(axes.squeeze(this.layout as Layout, axis as never)) as never;
  }

  /** Gives the view with one more axis of extent 1, which is axis `axis` of the view. */
  unsqueeze<const A extends number>(
    axis: A & Checked<Unsqueezed<S, A>>,
  ): Tensor<D, Known<Unsqueezed<S, A>>>;
  unsqueeze(axis: number): never {
    return this.view(axes.unsqueeze(this.layout as Layout, axis as never)) as never;
  }

  /**
   * Gives the view that repeats the elements along axes of extent 1, and along new axes in front,
   * as NumPy broadcasts. Nothing is copied. Such a view can only be read.
   *
   * @throws CudaArgumentError where the shape does not broadcast to `shape`
   */
  broadcastTo<const T extends Shape>(
    shape: T & Checked<BroadcastTo<S, T>>,
  ): Tensor<D, Known<BroadcastTo<S, T>>>;
  broadcastTo(shape: Shape): never {
    return this.view(broadcasting.broadcastTo(this.layout as Layout, shape as never)) as never;
  }

  /**
   * Gives the view of the same bytes as elements of another dtype. Where the sizes of elements
   * differ, the extent of the last axis changes.
   *
   * @throws CudaArgumentError where the bytes of new elements would not be adjacent and aligned
   */
  reinterpret<E extends DTypeName>(
    dtype: DType<E> & Checked<Reinterpreted<S, BytesOf<D>, BytesOf<E>>>,
  ): Tensor<E, Known<Reinterpreted<S, BytesOf<D>, BytesOf<E>>>>;
  reinterpret(dtype: DType): never {
    checkDType(dtype);
    this.checkAlive();
    return this.viewOf(dtypeViews.reinterpreted(this as AnyTensor, dtype)) as never;
  }

  /**
   * Gives the view of the real parts of complex numbers: floats with strides that are twice as
   * large.
   *
   * @throws CudaArgumentError for a dtype that is not complex
   */
  real(this: Tensor<ComplexName, S>): Tensor<PartOf<D>, S>;
  real(): never {
    this.checkAlive();
    return this.viewOf(dtypeViews.complexParts(this as AnyTensor, 0, 'real')) as never;
  }

  /** Gives the view of the imaginary parts of complex numbers, as {@link real} does of the real. */
  imag(this: Tensor<ComplexName, S>): Tensor<PartOf<D>, S>;
  imag(): never {
    this.checkAlive();
    return this.viewOf(dtypeViews.complexParts(this as AnyTensor, 1, 'imag')) as never;
  }

  private viewOf<E extends DTypeName>({ buffer, layout }: Elements<E>): Tensor<E, Shape> {
    return new Tensor(buffer, layout, false);
  }

  /** A view of the same memory with another layout. @internal */
  view<T extends Shape>(layout: Layout<T>): Tensor<D, T> {
    this.checkAlive();
    return new Tensor(this.buffer, layout, false);
  }

  // Operations

  /**
   * Reads the elements in row-major order into the dtype's host array. The next step of the chain
   * runs when the array has been read, and gets it. cuMemcpyDtoHAsync
   *
   * With `into`, each run of the operation writes that array instead of a new one, which saves work
   * of the garbage collector. The array must not be used before the run has ended.
   *
   * @throws CudaArgumentError for an `into` of another type or length; CudaError with code
   *   ERR_CUDA_SOURCE_DETACHED, as a rejection, where it was detached meanwhile
   */
  read(options: ReadOptions<D> = {}): DeviceOp<HostArray<D>> {
    checkOptions('options', options, ['into']);
    const { into } = options;
    if (into !== undefined)
      readTarget(this.dtype, this.size, into, { fix: 'Read part of the tensor with slice(…).' });
    return new DeviceOp(
      new Made<HostArray<D>>(
        this.device,
        `${this.name}.read(${into === undefined ? '' : '…'})`,
        (run) => this.readIn(run, into),
        [this],
      ),
    );
  }

  /**
   * Reads the element of a tensor that has one; of a complex dtype the pair of its parts.
   * cuMemcpyDtoHAsync
   *
   * @throws CudaArgumentError for another number of elements
   */
  item(): DeviceOp<Scalar<D>> {
    if (this.size !== 1)
      throw invalid('tensor', 'one element', this.shape, 'Take one with slice(…).');
    return new DeviceOp(
      new Made<Scalar<D>>(
        this.device,
        `${this.name}.item()`,
        (run) => {
          const values = this.readIn(run);
          const only = (known: HostArray<D>): Scalar<D> =>
            (this.dtype.kind === 'complex' ? [known[0], known[1]] : known[0]) as Scalar<D>;
          if (!(values instanceof Later)) return only(values);
          // Neither the array nor the element holds device memory.
          return values.queued
            ? new Later(values.promise.then(only), true, 'nothing')
            : run.goOn(values, only);
        },
        [this],
      ),
    );
  }

  /**
   * Reads a contiguous tensor into page-locked memory of as many elements. A graph does so at each
   * launch. cuMemcpyDtoHAsync
   */
  readTo(target: PinnedBuffer<D>): DeviceOp<this> {
    return this.queued('readTo(…)', (run) => {
      this.flat('readTo').read(run.stream, target);
    });
  }

  /**
   * Writes all elements, in row-major order, from a host array of the dtype, its bytes or
   * page-locked memory. A large array must not be changed until the operation has ended. A graph
   * writes an array as it was at the recording; it reads page-locked memory at each launch.
   * cuMemcpyHtoDAsync
   */
  write(source: WriteSource<D>): DeviceOp<this> {
    return this.queued('write(…)', (run) => {
      this.checkWritable('write');
      return writeElements(run, this, source);
    });
  }

  /**
   * Reads the raw words of a contiguous tensor, as {@link read} does the elements: a Uint16Array
   * for f16 and bf16, a Uint8Array for f8. cuMemcpyDtoHAsync
   */
  readBits(): DeviceOp<BitArray<D>> {
    return new DeviceOp(
      new Made<BitArray<D>>(
        this.device,
        `${this.name}.readBits()`,
        (run) => {
          run.checkNotRecording('tensor.readBits()', 'read after graph.replay()');
          if (run.mode === 'block') return this.flat('readBits').readBitsBlocking(run.stream);
          return new Later(this.flat('readBits').readBits(run.stream).then(), true, 'nothing');
        },
        [this],
      ),
    );
  }

  /** Writes the raw words of a contiguous tensor. cuMemcpyHtoDAsync */
  writeBits(source: BitArray<D>): DeviceOp<this> {
    return this.queued('writeBits(…)', (run) => {
      this.checkWritable('writeBits');
      run.checkNotRecording('tensor.writeBits()', 'write before the capture, or record write(…)');
      if (run.mode === 'block') {
        this.flat('writeBits').writeBitsBlocking(run.stream, source);
        return;
      }
      const pending = this.flat('writeBits').writeBits(run.stream, source);
      if (pending.gives) run.dependOn(pending.then());
    });
  }

  /** Sets every element. cuMemsetD8Async and its kin */
  fill(value: Scalar<D>): DeviceOp<this> {
    fillPattern(this.dtype, value);
    return this.queued('fill(…)', (run) => {
      this.checkWritable('fill');
      return fillElements(run, this, value);
    });
  }

  /**
   * Copies the elements of another tensor, converted to this one's dtype. The source has the same
   * shape, or one that broadcasts to it. cuMemcpyDtoDAsync, or a kernel
   *
   * @throws CudaArgumentError, when run, for shapes that do not broadcast, tensors that share
   *   memory, tensors of two devices
   */
  copyFrom<E extends DTypeName>(source: OrOp<Tensor<E>>): DeviceOp<this> {
    const inputs = new Collected([nodeOf(source)], 'copyFrom') as never;
    return new DeviceOp(
      new Applied<this>(
        inputs,
        this.device,
        `${this.name}.copyFrom(…)`,
        (run, [from]) => {
          this.checkWritable('copyFrom');
          return after(run, copyElements(run, checkedSource(from), this), this);
        },
        [this],
      ),
    );
  }

  /** Makes a contiguous copy. */
  dup(): DeviceOp<Tensor<D, S>> {
    return this.made('dup()', this.dtype);
  }

  /** Gives the tensor itself if it is contiguous, else a contiguous copy. */
  contiguous(): DeviceOp<Tensor<D, S>> {
    return this.isContiguous
      ? new DeviceOp(new Made<Tensor<D, S>>(this.device, 'contiguous()', () => this))
      : this.dup();
  }

  /**
   * Makes a contiguous copy in another dtype. Floats round to nearest even; floats become integers
   * towards zero, clamped to the range, NaN as 0.
   *
   * @throws CudaArgumentError for a conversion from or to complex numbers
   */
  convert<E extends DTypeName>(dtype: DType<E>): DeviceOp<Tensor<E, S>> {
    checkDType(dtype);
    checkConversion('dtype', this.dtype, dtype);
    return this.made(`convert(${dtype.name})`, dtype);
  }

  /**
   * Gives the tensor's DLPack descriptor, when all work with its memory has ended. Nothing is
   * copied. The consumer calls the descriptor's `deleter` once, when it no longer needs the memory.
   * Until then the memory is kept, even if the tensor is closed; the device has to stay open.
   */
  toDLPack(): DeviceOp<DLTensor> {
    return new DeviceOp(
      new Made<DLTensor>(this.device, `${this.name}.toDLPack()`, (run) => exportTensor(run, this), [
        this,
      ]),
    );
  }

  /**
   * Makes a copy on another device. The operation ends when the copy has ended, and fails if the
   * copy does. The copy runs on a stream of the other device's policy, after the work of both
   * devices with the memory; later work of either device with it runs after the copy. The next step
   * of the chain still runs on this device: use the copy in another operation. On the same device
   * it is {@link dup}. cuMemcpyPeerAsync; between a GPU and a CPU device through the host
   *
   * @throws CudaArgumentError for a `device` that is none; when run, CudaError with code
   *   ERR_CUDA_CAPTURE in a graph
   */
  to(device: AnyDevice): DeviceOp<Tensor<D, S>> {
    const target = coreOf(device);
    if (target.runtime === this.device.runtime) return this.dup();
    return new DeviceOp(
      new Made<Tensor<D, S>>(
        this.device,
        `${this.name}.to(${target.kind}:${target.ordinal})`,
        (run) => {
          run.checkNotRecording('a copy to another device', 'copy before the capture');
          this.checkAlive();
          if (this.isContiguous) return copiedTo(run, this, target);
          return whenKnown(run, nodeOf(this.dup()).submit(run), (dense) =>
            copiedTo(run, dense, target),
          );
        },
        [this],
      ),
    );
  }

  /**
   * Cuts the tensor into tiles, one for each block of a kernel that writes them; the grid of its
   * launch follows from the partition. Until `unpartition()` the tensor cannot be written in
   * another way.
   *
   * @throws CudaArgumentError where elements of the tensor are in another partition, or two indices
   *   name one element
   */
  partition<const T extends Shape>(tile: T & Checked<Tiled<S, T>>): Partitioned<D, S> {
    this.checkAlive();
    return new Partitioned<D, S>(this, tile);
  }

  /**
   * Does the same as {@link partition}, but gives `undefined` where that would throw for elements.
   */
  tryPartition<const T extends Shape>(
    tile: T & Checked<Tiled<S, T>>,
  ): Partitioned<D, S> | undefined {
    this.checkAlive();
    return claimOf(this) === undefined && !overlapsItself(this.layout)
      ? new Partitioned<D, S>(this, tile)
      : undefined;
  }

  // Lifetime

  /**
   * Gives the memory back, after all work that uses it, without waiting. A view does not, unless an
   * operation gave it without its owner: then it owns the memory, and of several such views the
   * last one that is closed gives it back. cuMemFreeAsync
   */
  close(): void {
    if (!this.owns || this.isClosed) return;
    const { memory } = this.buffer;
    // The graph that writes the memory at each launch closes it.
    if (memory.keptByGraph) return;
    if (this.share === 'owned') {
      this.share = 'closed';
      if (!memory.closeShare()) return;
    }
    this.buffer[OWNER].closeMemory();
  }

  /** {@link close}, for `using`. */
  [Symbol.dispose](): void {
    this.close();
  }

  toString(): string {
    return textOf(this);
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return this.toString();
  }

  /**
   * Gives what `JSON.stringify` writes: dtype, shape, device and label. The elements are not part
   * of it: `read()` gives them.
   */
  toJSON(): TensorJson {
    return jsonOf(this);
  }

  // For runs of operations

  /** @internal */
  get [MEMORY](): Allocation {
    return this.buffer.memory;
  }

  /** @internal */
  get [OWNS](): boolean {
    return this.owns && this.share === 'none';
  }

  /** @internal */
  get [OWNER](): DeviceBuffer {
    return this.buffer[OWNER];
  }

  /** @internal */
  [OWN](): boolean {
    this.owns = true;
    if (this.share !== 'none') return false;
    this.share = 'owned';
    return true;
  }

  // For launches and copies

  /** The tensor's name in the names of operations. */
  private get name(): string {
    return this.label === undefined
      ? `${this.dtype.name}${showShape(this.layout.shape)}`
      : `'${this.label}'`;
  }

  /** The elements of a contiguous tensor as a buffer. @internal */
  dense(): DeviceBuffer<D> {
    this.checkAlive();
    return denseBuffer(this);
  }

  /** @internal */
  checkAlive(): void {
    if (this.isClosed || this.buffer.memory.endedByStep) throw closedError(this);
    this.buffer.checkAlive();
  }

  /** @internal */
  checkWritable(what: string): void {
    this.checkAlive();
    checkWritable(this, what);
  }

  private flat(what: string): DeviceBuffer<D> {
    checkContiguous(this, what);
    return this.dense();
  }

  private queued(name: string, queue: (run: Run) => unknown): DeviceOp<this> {
    return new DeviceOp(
      new Made<this>(this.device, `${this.name}.${name}`, (run) => after(run, queue(run), this), [
        this,
      ]),
    );
  }

  private made<E extends DTypeName>(name: string, dtype: DType<E>): DeviceOp<Tensor<E, S>> {
    return new DeviceOp(
      new Made<Tensor<E, S>>(
        this.device,
        `${this.name}.${name}`,
        (run) => {
          this.checkAlive();
          const target = new Tensor<E, S>(
            run.alloc(dtype, this.size),
            contiguous(this.shape),
            true,
          );
          return after(run, copyElements(run, this, target), target);
        },
        [this],
      ),
    );
  }

  private readIn(run: Run, into?: HostArray<D>): Submitted<HostArray<D>> {
    this.checkAlive();
    run.checkNotRecording(
      'tensor.read()',
      'read after graph.replay(), or readTo(…) page-locked memory',
    );
    return readElements(run, this, into);
  }
}

function checkedSource(source: unknown): AnyTensor {
  if (!(source instanceof Tensor)) throw invalid('source', 'a Tensor', source);
  source.checkAlive();
  return source as AnyTensor;
}

/** A copy of a contiguous tensor on another device. */
function copiedTo<D extends DTypeName, S extends Shape>(
  run: Run,
  from: Tensor<D, S>,
  device: CoreDevice,
): Tensor<D, S> {
  return new Tensor<D, S>(copyAcross(run, from.dense(), device), contiguous(from.shape), true);
}
