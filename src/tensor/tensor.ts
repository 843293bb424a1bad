/**
 * Tensors: device memory with a dtype and a shape, and views of it. Views are made on the host and
 * cost nothing; whatever touches the memory is an operation.
 */
import { CudaArgumentError, CudaDisposedError, DeviceBuffer, PinnedBuffer } from '../core/index.js';
import type {
  BitArray,
  DType,
  DTypeName,
  CoreDevice,
  HostArray,
  ReadOptions,
  Scalar,
  WriteSource,
} from '../core/index.js';
import { checkDType, checkOptions, invalid } from '../ground/arguments.js';
import { DTYPES, DTYPE_FACTS, insteadOfComplex } from '../ground/dtype.js';
import type { BytesOf, ComplexName, KernelDTypeName, PartOf } from '../ground/dtype.js';
import { queueOutsideCapture } from '../core/capture.js';
import { fillPattern } from '../core/fill-pattern.js';
import { readTarget } from '../core/host-codec.js';
import { bytesBetween } from '../core/memory.js';
import type { Allocation } from '../core/memory.js';
import { MEMORY, OWN, OWNER, OWNS, AFTER_ITS_STEP } from '../core/holder.js';
import { Operation } from '../core/operation.js';
import { DeviceOp, nodeOf } from '../ops/device-op.js';
import { Applied, Collected, Made } from '../ops/collect.js';
import { Later, after, whenKnown } from '../ops/node.js';
import type { Submitted } from '../ops/node.js';
import { poolOf } from '../ops/pools.js';
import type { Run } from '../ops/run.js';
import { coreOf, policyOf } from '../ops/scheduling.js';
import type { AnyDevice } from '../ops/scheduling.js';
import * as axes from './axes.js';
import * as broadcasting from './broadcasting.js';
import { coalesce, coalesceTogether } from './coalescing.js';
import type { DLTensor } from './dlpack.js';
import { handOver, takeOver } from './exchange.js';
import type { TakeOverOptions } from './exchange.js';
import { claimOf, Partitioned } from './partitioned.js';
import { contiguous, isContiguous, layoutOf, span, strided } from './layout.js';
import type { Layout } from './layout.js';
import { copies, withKernels } from './loaded-kernels.js';
import { overlaps, overlapsItself } from './overlapping.js';
import * as reinterpreting from './reinterpreting.js';
import * as reshaping from './reshaping.js';
import { numel, sameShape, showShape } from './shape.js';
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
import type { OrOp } from '../ops/given.js';

/** Elements that one launch of a copy takes: the kernel counts them in 32 bits. */
const MOST_ELEMENTS = 2 ** 31;
const BLOCK = 256;

/** `T` with any dtype and shape. */
export type AnyTensor = Tensor<DTypeName, Shape>;

/** `T` with any shape, of a dtype that kernels compute with. */
export type KernelTensor = Tensor<KernelDTypeName, Shape>;

/** A tensor in JSON: see {@link Tensor.toJSON}. */
export interface TensorJson {
  readonly type: 'Tensor';
  readonly dtype: DTypeName;
  readonly shape: readonly number[];
  /** Kind and ordinal: `cuda:0`. */
  readonly device: string;
  readonly label?: string;
}

/**
 * `shape` elements of `dtype` in device memory: `Tensor<'f32', [2, 3]>` where the extents are known
 * to the type checker. Made by operations such as {@link zeros}; {@link close} gives the memory
 * back, behind everything that uses it.
 */
export class Tensor<
  D extends DTypeName = DTypeName,
  S extends Shape = Shape,
> implements Disposable {
  readonly dtype: DType<D>;
  /** Where the elements lie in {@link buffer}. */
  readonly layout: Layout<S>;
  /** The memory, of which a view is a part. */
  readonly buffer: DeviceBuffer<D>;
  /**
   * Whether this tensor closes the memory: a view does not, unless a step of an operation has given
   * it on and not its owner.
   */
  private owns: boolean;
  /** Whether it is a view that owns the memory, alone or with others; `closed`: no longer. */
  private share: 'none' | 'owned' | 'closed' = 'none';

  /** @internal */
  constructor(buffer: DeviceBuffer<D>, layout: Layout<S>, owns: boolean) {
    this.dtype = buffer.dtype;
    this.buffer = buffer;
    this.layout = layout;
    this.owns = owns;
  }

  /**
   * A tensor of memory that is there already, which stays its owner's.
   *
   * @throws CudaArgumentError for what is no buffer, shape or layout, where the shape has more
   *   elements than the buffer, and where the layout reaches outside of it
   */
  static of<D extends DTypeName, const S extends Shape>(
    buffer: DeviceBuffer<D>,
    shape: S | Layout<S>,
  ): Tensor<D, Dims<S>> {
    if (!(buffer instanceof DeviceBuffer)) throw invalid('buffer', 'a DeviceBuffer', buffer);
    if (typeof (shape as unknown) !== 'object' || shape === null)
      throw invalid('shape', 'a list of extents, or a layout of shape, strides and offset', shape);
    const given = shape as Layout<S>;
    const layout = Array.isArray(shape)
      ? contiguous(shape as S)
      : strided(given.shape as S, given.strides, given.offset);
    const { end } = span(layout);
    if (end > buffer.length)
      throw invalid('shape', `at most the ${buffer.length} elements of the buffer`, layout.shape);
    return new Tensor(buffer, layout, false);
  }

  /**
   * A tensor in memory of somebody else on the device, as DLPack describes it: nothing is copied.
   * It is taken over: when the tensor is closed, and all work that uses it is over, the
   * descriptor's `deleter` is called, once; until then its `owner` is kept. Views keep the tensor
   * from being collected. Work on the memory before has to be over, or waited for on the streams
   * that use the tensor; descriptors of {@link toDLPack} are over.
   *
   * Rejects with CudaArgumentError that names the field for what this library cannot use, memory
   * that is not the device's, and a descriptor that has been taken over before; the memory then
   * stays its owner's. cuPointerGetAttribute
   */
  static async fromDLPack(
    device: CoreDevice,
    descriptor: DLTensor,
    options?: TakeOverOptions,
  ): Promise<Tensor<DTypeName, number[]>> {
    const { buffer, layout } = await takeOver(device, descriptor, options);
    return new Tensor<DTypeName, number[]>(buffer, layout, true);
  }

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

  /** Bytes of the elements, without what lies between them. */
  get byteLength(): number {
    return this.size * this.dtype.bytes;
  }

  /** Whether the elements lie in row-major order without gaps. */
  get isContiguous(): boolean {
    return isContiguous(this.layout);
  }

  /** Whether another tensor has the memory. */
  get isView(): boolean {
    return !this.owns;
  }

  get isClosed(): boolean {
    return this.buffer.isClosed || this.share === 'closed';
  }

  get label(): string | undefined {
    return this.buffer.label;
  }

  // Views

  /**
   * A part, as between Python's brackets: `x.slice(2, [0, 10], [null, null, -1])` is `x[2, 0:10,
   * ::-1]`. A number takes its axis away; axes at the end may be left out.
   */
  slice<const I extends readonly Index[]>(
    ...indices: I & Checked<Sliced<S, I>>
  ): Tensor<D, Known<Sliced<S, I>>>;
  slice(...indices: readonly Index[]): never {
    return this.view(slicing.slice(this.layout as Layout, indices as never)) as never;
  }

  /**
   * The elements in the same order in another shape; -1 stands for what is left.
   *
   * @throws CudaArgumentError for another number of elements, or where the elements would have to
   *   be copied: then `contiguous()` comes first
   */
  reshape<const T extends Shape>(
    shape: T & Checked<Reshaped<S, T>>,
  ): Tensor<D, Known<Reshaped<S, T>>>;
  reshape(shape: Shape): never {
    return this.view(reshaping.reshape(this.layout as Layout, shape as never)) as never;
  }

  /** The axes in another order: `permute([2, 0, 1])`. */
  permute<const A extends Shape>(
    order: A & Checked<Permuted<S, A>>,
  ): Tensor<D, Known<Permuted<S, A>>>;
  permute(order: Shape): never {
    return this.view(axes.permute(this.layout as Layout, order as never)) as never;
  }

  /** Two axes exchanged; the last two where none are named. */
  transpose(): Tensor<D, Known<Transposed<S, -2, -1>>>;
  transpose<const A extends number, const B extends number = -1>(
    a: A & Checked<Transposed<S, A, B>>,
    b?: B & Checked<Transposed<S, A, B>>,
  ): Tensor<D, Known<Transposed<S, A, B>>>;
  transpose(a?: number, b?: number): never {
    return this.view(axes.transpose(this.layout as Layout, a as never, b as never)) as never;
  }

  /** Without its axes of extent 1, or without the one that is named. */
  squeeze(): Tensor<D, Known<Squeezed<S, undefined>>>;
  squeeze<const A extends number>(
    axis: A & Checked<Squeezed<S, A>>,
  ): Tensor<D, Known<Squeezed<S, A>>>;
  squeeze(axis?: number): never {
    return this.view(axes.squeeze(this.layout as Layout, axis as never)) as never;
  }

  /** With one more axis of extent 1. */
  unsqueeze<const A extends number>(
    axis: A & Checked<Unsqueezed<S, A>>,
  ): Tensor<D, Known<Unsqueezed<S, A>>>;
  unsqueeze(axis: number): never {
    return this.view(axes.unsqueeze(this.layout as Layout, axis as never)) as never;
  }

  /**
   * Repeated along axes of extent 1, and along new ones in front, without a copy: as NumPy
   * broadcasts. Such a view is only read.
   */
  broadcastTo<const T extends Shape>(
    shape: T & Checked<BroadcastTo<S, T>>,
  ): Tensor<D, Known<BroadcastTo<S, T>>>;
  broadcastTo(shape: Shape): never {
    return this.view(broadcasting.broadcastTo(this.layout as Layout, shape as never)) as never;
  }

  /** The same bytes as elements of another dtype; the last axis holds the difference in size. */
  reinterpret<E extends DTypeName>(
    dtype: DType<E> & Checked<Reinterpreted<S, BytesOf<D>, BytesOf<E>>>,
  ): Tensor<E, Known<Reinterpreted<S, BytesOf<D>, BytesOf<E>>>>;
  reinterpret(dtype: DType): never {
    checkDType(dtype);
    this.checkAlive();
    const { buffer } = this;
    // The types of the overload above are checked there.
    const change = reinterpreting.reinterpret as (layout: Layout, from: DType, to: DType) => Layout;
    const layout = change(this.layout, this.dtype, dtype);
    // Whole elements of the new dtype only.
    const bytes = buffer.byteLength - (buffer.byteLength % dtype.bytes);
    return new Tensor(
      buffer.slice(0, bytes / this.dtype.bytes).reinterpret(dtype),
      layout,
      false,
    ) as never;
  }

  /**
   * The real parts of complex numbers, as a view of floats whose steps are twice as long: nothing is
   * copied.
   */
  real(this: Tensor<ComplexName, S>): Tensor<PartOf<D>, S>;
  real(): never {
    return this.partAt(0, 'real') as never;
  }

  /** The imaginary parts of complex numbers; otherwise as {@link real}. */
  imag(this: Tensor<ComplexName, S>): Tensor<PartOf<D>, S>;
  imag(): never {
    return this.partAt(1, 'imag') as never;
  }

  private partAt(at: 0 | 1, method: string): AnyTensor {
    this.checkAlive();
    const { part } = DTYPE_FACTS[this.dtype.name];
    if (part === null) throw invalid('tensor', `a complex dtype, for ${method}()`, this.dtype.name);
    const { buffer } = this;
    const { shape, strides, offset } = this.layout as Layout;
    return new Tensor(
      buffer.reinterpret(DTYPES[part]),
      layoutOf(
        shape,
        strides.map((stride) => stride * 2),
        offset * 2 + at,
      ),
      false,
    );
  }

  /** The same memory in another layout, which owns none of it. @internal */
  view<T extends Shape>(layout: Layout<T>): Tensor<D, T> {
    this.checkAlive();
    return new Tensor(this.buffer, layout, false);
  }

  // Operations

  /**
   * Copies to the host: the elements in row-major order, in the dtype's host array. Ends a segment:
   * what comes next in the chain has the array. cuMemcpyDtoHAsync
   *
   * `into` is written instead of a new array, each time the operation runs, and is to be left alone
   * until it has: for programs that read so much that the garbage collector has much to do.
   *
   * @throws CudaArgumentError for an `into` of another type or length. Rejects with
   *   ERR_CUDA_SOURCE_DETACHED where it was detached meanwhile
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

  /** The single element of a tensor that has one; of a complex dtype the pair of its parts. */
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
          // Neither the elements nor what is made of them hold memory.
          return values.queued
            ? new Later(values.promise.then(only), true, 'nothing')
            : run.goOn(values, only);
        },
        [this],
      ),
    );
  }

  /**
   * Copies into page-locked memory of as many elements, which a graph does at each launch.
   * cuMemcpyDtoHAsync
   */
  readTo(target: PinnedBuffer<D>): DeviceOp<this> {
    return this.queued('readTo(…)', (run) => {
      this.flat('readTo').read(run.stream, target);
    });
  }

  /**
   * Copies from the host, in row-major order: a host array of the dtype, its bytes or page-locked
   * memory. A large array must be left alone until the operation is over. In a graph an array is
   * part of the graph, as it was when it was recorded; page-locked memory is read at each launch.
   * cuMemcpyHtoDAsync
   */
  write(source: WriteSource<D>): DeviceOp<this> {
    return this.queued('write(…)', (run) => {
      this.checkWritable('write');
      return this.intoDense(run, (dense) => {
        writeDense(run, dense, source);
      });
    });
  }

  /**
   * As {@link read}, the raw words: Uint16Array of f16 and bf16, Uint8Array of f8. Of a contiguous
   * tensor. cuMemcpyDtoHAsync
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

  /** As {@link write}, of raw words. Of a contiguous tensor. cuMemcpyHtoDAsync */
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

  /** Sets every element. cuMemsetD8Async and kin */
  fill(value: Scalar<D>): DeviceOp<this> {
    fillPattern(this.dtype, value);
    return this.queued('fill(…)', (run) => {
      this.checkWritable('fill');
      if (this.size === 0) return;
      if (this.isContiguous) this.dense().fill(run.stream, value);
      else {
        const one = run.alloc(this.dtype, 1);
        one.fill(run.stream, value);
        return copyElements(
          run,
          Tensor.of(
            one,
            layoutOf(
              [...this.shape],
              this.shape.map(() => 0),
              0,
            ),
          ),
          this,
        );
      }
    });
  }

  /**
   * Copies from a tensor of the same shape, with conversion of the dtype, or from one that
   * broadcasts to it.
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

  /** A copy of its own, contiguous. */
  dup(): DeviceOp<Tensor<D, S>> {
    return this.made('dup()', this.dtype);
  }

  /** The tensor itself where its elements lie in row-major order without gaps, else a copy. */
  contiguous(): DeviceOp<Tensor<D, S>> {
    return this.isContiguous
      ? new DeviceOp(new Made<Tensor<D, S>>(this.device, 'contiguous()', () => this))
      : this.dup();
  }

  /**
   * A contiguous copy in another dtype. Floats round to nearest even; floats to integers go towards
   * zero, clamped, NaN to 0.
   */
  convert<E extends DTypeName>(dtype: DType<E>): DeviceOp<Tensor<E, S>> {
    checkDType(dtype);
    checkConversion('dtype', this.dtype, dtype);
    return this.made(`convert(${dtype.name})`, dtype);
  }

  /**
   * The tensor as DLPack describes it, strides and all, once the device has come to the end of all
   * work with its memory: for whoever takes it over, and calls the descriptor's `deleter` once when
   * it is needed no longer. Until then the memory is kept, even where the tensor is closed; the
   * device has to stay open. Nothing is copied.
   */
  toDLPack(): DeviceOp<DLTensor> {
    return new DeviceOp(
      new Made<DLTensor>(this.device, `${this.name}.toDLPack()`, (run) => handOver(run, this), [
        this,
      ]),
    );
  }

  /**
   * A copy on another device, which is part of this operation: it is over when the copy is, and
   * fails as the copy does. The copy runs on a stream of the other device's policy, behind the work
   * of both devices that it conflicts with, and what either of them does next with the memory is
   * behind the copy. What comes next in the chain still runs on this device: go on with the copy in
   * an operation of its own. On one device it is {@link dup}. cuMemcpyPeerAsync; between a GPU and
   * a CPU device through the host
   *
   * @throws when run: CudaArgumentError where `device` is none; CudaError with code
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
          if (this.isContiguous) return copyAcross(run, this, target);
          return whenKnown(run, nodeOf(this.dup()).submit(run), (dense) =>
            copyAcross(run, dense, target),
          );
        },
        [this],
      ),
    );
  }

  /**
   * Cut into tiles, which a kernel's blocks write one each; the grid of its launch follows from it.
   * The tensor is not written in another way until `unpartition()`.
   *
   * @throws CudaArgumentError where elements of it are in a partition already, or lie in the same
   *   place
   */
  partition<const T extends Shape>(tile: T & Checked<Tiled<S, T>>): Partitioned<D, S> {
    this.checkAlive();
    return new Partitioned<D, S>(this, tile);
  }

  /** As {@link partition}; undefined where elements of it are in a partition already. */
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
   * Gives the memory back, behind everything that uses it; never waits. A view gives back nothing,
   * unless an operation gave it without its owner: then it owns the memory; of several such views
   * the last one that is closed gives it back. cuMemFreeAsync
   */
  close(): void {
    if (!this.owns || this.isClosed) return;
    const { memory } = this.buffer;
    // A graph writes it at each launch, and closes it itself.
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
    const { layout, device } = this;
    const strides = this.isContiguous ? '' : `, strides ${showShape(layout.strides)}`;
    return (
      `Tensor<${this.dtype.name}, ` +
      `${showShape(layout.shape)}>${this.label === undefined ? '' : ` '${this.label}'`} on ` +
      `${device.kind}:${device.ordinal}${strides}${this.owns ? '' : ', a view'}${this.isClosed ? ', closed' : ''}`
    );
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return this.toString();
  }

  /**
   * What `JSON.stringify` writes of it: what it is and where it lies, without its elements, which
   * `read()` gives.
   */
  toJSON(): TensorJson {
    const { dtype, shape, device, label } = this;
    return {
      type: 'Tensor',
      dtype: dtype.name,
      shape: [...shape],
      device: `${device.kind}:${device.ordinal}`,
      ...(label === undefined ? {} : { label }),
    };
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

  /** What it is called in operations. */
  private get name(): string {
    return this.label === undefined
      ? `${this.dtype.name}${showShape(this.layout.shape)}`
      : `'${this.label}'`;
  }

  /** The elements as a buffer. Only of what is contiguous. @internal */
  dense(): DeviceBuffer<D> {
    this.checkAlive();
    const { offset } = this.layout;
    // Where nothing lies may be behind the end.
    return this.size === 0
      ? this.buffer.slice(0, 0)
      : this.buffer.slice(offset, offset + this.size);
  }

  /** @internal */
  checkAlive(): void {
    const { endedByStep } = this.buffer.memory;
    if (this.isClosed || endedByStep) {
      throw new CudaDisposedError(
        `${this.toString()}: used after it was closed. ${
          endedByStep
            ? AFTER_ITS_STEP
            : 'Make another; where `using` closed it, await what uses it in that block: return ' +
              'await … of an operation.'
        }`,
      );
    }
    this.buffer.checkAlive();
  }

  /** @internal */
  checkWritable(what: string): void {
    this.checkAlive();
    if (this.buffer.memory.isReadOnly) {
      throw new CudaArgumentError(
        'tensor',
        `${what}: ${this.toString()} must not be written, as its owner has said. Copy it ` +
          'with dup() first.',
      );
    }
    if (overlapsItself(this.layout)) {
      throw new CudaArgumentError(
        'tensor',
        `${what}: elements of ${this.toString()} lie in the same place, as of a broadcast ` +
          'view. Write to the tensor that it is a view of.',
      );
    }
    const claim = claimOf(this);
    if (claim !== undefined)
      throw new CudaArgumentError(
        'tensor',
        `${what}: ${this.toString()} is being written by tiles: ${claim.toString()}. Call ` +
          'its unpartition() first.',
      );
  }

  private flat(what: string): DeviceBuffer<D> {
    if (this.isContiguous) return this.dense();
    throw new CudaArgumentError(
      'tensor',
      `${what}: expected a contiguous tensor, got strides ${showShape(this.strides)}. Make ` +
        'it contiguous() first.',
    );
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
    if (this.isContiguous) return readDense(run, this.dense(), into);
    const copy = run.alloc(this.dtype, this.size);
    const done = copyElements(run, this, Tensor.of(copy, [...this.shape]));
    return whenKnown(run, done, () => readDense(run, copy, into));
  }

  /**
   * Writes to the elements by way of memory without gaps: its own, or a copy that is spread out
   * behind it.
   */
  private intoDense(run: Run, write: (dense: DeviceBuffer<D>) => void): Submitted<unknown> {
    if (this.isContiguous) {
      write(this.dense());
      return undefined;
    }
    const copy = run.alloc(this.dtype, this.size);
    write(copy);
    return copyElements(run, Tensor.of(copy, [...this.shape]), this);
  }
}

/** Copies what is contiguous to new memory of another device, on a stream of that one. */
function copyAcross<D extends DTypeName, S extends Shape>(
  run: Run,
  from: Tensor<D, S>,
  device: CoreDevice,
): Tensor<D, S> {
  const stream = policyOf(device).nextStream();
  const pool = poolOf(device);
  const source = from.dense();
  const blocks = run.mode === 'block';
  if (blocks) {
    // Only where nothing is left to wait for on the one device can this thread block until the
    // other is done.
    source.memory.orderEnd(run.stream);
    run.block();
  }
  const target = run.own(
    device.allocScoped(from.dtype, from.size, pool === undefined ? { stream } : { stream, pool }),
  );
  if (!blocks) run.dependOn(target.copyFrom(stream, source).finished());
  else if (device.kind !== from.device.kind)
    target.writeBlocking(stream, source.readBlocking(run.stream));
  else {
    const operation = new Operation(stream);
    operation.take();
    try {
      target.copyFrom(stream, source);
    } finally {
      operation.letGo();
    }
    operation.block(stream);
  }
  return new Tensor<D, S>(target, contiguous(from.shape), true);
}

function readDense<D extends DTypeName>(
  run: Run,
  buffer: DeviceBuffer<D>,
  into: HostArray<D> | undefined,
): Submitted<HostArray<D>> {
  if (run.mode === 'block') return buffer.readBlocking(run.stream, into);
  return new Later(buffer.read(run.stream, { into }).then(), true, 'nothing');
}

/**
 * Writes from the host. Where it is recorded, from a copy on the device that the graph has. `over`
 * is called once an array is not looked at any more.
 */
export function writeDense<D extends DTypeName>(
  run: Run,
  buffer: DeviceBuffer<D>,
  source: WriteSource<D>,
  over: () => void = () => undefined,
): void {
  /** What copies piece by piece: the stream's later work waits for it on its own. */
  const inPieces = (copying: Promise<void>): void => {
    run.dependOn(copying);
    copying.then(over, over);
  };
  if (source instanceof PinnedBuffer) buffer.write(run.stream, source);
  else if (run.mode === 'block') {
    buffer.writeBlocking(run.stream, source);
    over();
  } else if (run.mode === 'queue') {
    const pending = buffer.write(run.stream, source);
    if (pending.gives) inPieces(pending.then());
    else over();
  } else {
    const copy = run.allocBeside(buffer.dtype, buffer.length);
    const stream = run.beside();
    inPieces(queueOutsideCapture(stream, () => copy.write(stream, source).then()));
    buffer.copyFrom(run.stream, copy);
  }
}

/** Complex numbers are copied as they are, and not converted yet. */
function checkConversion(argument: string, from: DType, to: DType): void {
  if (from.name === to.name) return;
  for (const dtype of [from, to])
    if (dtype.kind === 'complex')
      throw invalid(
        argument,
        `${dtype.name}, since complex numbers are not converted`,
        (dtype === from ? to : from).name,
        insteadOfComplex(dtype),
      );
}

function checkedSource(source: unknown): AnyTensor {
  if (!(source instanceof Tensor)) throw invalid('source', 'a Tensor', source);
  source.checkAlive();
  return source as AnyTensor;
}

/**
 * Copies element by element, converting; as one piece where both have no gaps and the dtype is the
 * same.
 */
export function copyElements(run: Run, given: AnyTensor, target: AnyTensor): Submitted<void> {
  const source = sameShape(given.shape, target.shape)
    ? given
    : (given.broadcastTo(target.shape as never) as unknown as AnyTensor);
  if (source.device.runtime !== target.device.runtime) {
    throw new CudaArgumentError(
      'source',
      `source: it is on ${source.device.kind}:${source.device.ordinal}, and the target on ` +
        `${target.device.kind}:${target.device.ordinal}. Copy it with to(device) first.`,
    );
  }
  checkConversion('source', target.dtype, source.dtype);
  if (target.size === 0) return undefined;
  if (shareElements(source, target)) {
    throw new CudaArgumentError('source', 'source: overlaps the target. Copy it with dup() first.');
  }
  if (source.dtype.name === target.dtype.name && source.isContiguous && target.isContiguous) {
    target.dense().copyFrom(run.stream, source.dense());
    return undefined;
  }
  const [to, from] = coalesceTogether([target.layout, source.layout], { anyOrder: true }) as [
    Layout,
    Layout,
  ];
  const rank = Math.max(1, to.shape.length);
  return withKernels(run, copies(source.dtype.name, target.dtype.name, rank), ({ copy }) => {
    launchCopies(from, to, (fromPart, toPart, count) => {
      const [inputs, outputs] = [wholeOf(source, fromPart), wholeOf(target, toPart)];
      const steps =
        to.shape.length === 0
          ? [[1, 0n, 0n]]
          : toPart.shape.map((extent, axis) => [
              extent,
              BigInt(fromPart.strides[axis]! * source.dtype.bytes),
              BigInt(toPart.strides[axis]! * target.dtype.bytes),
            ]);
      copy!.launch(
        run.stream,
        { grid: Math.ceil(count / BLOCK), block: BLOCK },
        inputs,
        outputs,
        count,
        ...steps.flat(),
      );
    });
  });
}

/**
 * Whether two tensors have bytes in common, also where one memory was taken over under two names.
 * @internal
 */
export function shareElements(a: AnyTensor, b: AnyTensor): boolean {
  const between = bytesBetween(a.buffer.memory, b.buffer.memory);
  return (
    between !== undefined &&
    overlaps(
      coalesce(bytesOf(a, Math.max(0, -between))),
      coalesce(bytesOf(b, Math.max(0, between))),
    )
  );
}

/** The tensor's layout in bytes, of which the first is so many behind where its memory begins. */
function bytesOf({ buffer, layout, dtype }: AnyTensor, first: number): Layout {
  const inBytes = reinterpreting.inBytes(layout, dtype);
  return layoutOf(
    [...inBytes.shape],
    [...inBytes.strides],
    inBytes.offset + buffer.byteOffset + first,
  );
}

/** The buffer from the first element of a layout on; its steps may lead back to before that. */
function wholeOf({ buffer }: AnyTensor, { offset }: Layout): DeviceBuffer {
  return buffer.slice(offset, buffer.length);
}

/** Parts of at most {@link MOST_ELEMENTS}, cut along the outermost axis. */
function launchCopies(
  from: Layout,
  to: Layout,
  launch: (from: Layout, to: Layout, count: number) => void,
): void {
  const count = numel(to.shape);
  if (count < MOST_ELEMENTS) {
    launch(from, to, count);
    return;
  }
  const [extent = 1, ...inner] = to.shape;
  const each = numel(inner);
  const rows = Math.max(1, Math.floor((MOST_ELEMENTS - 1) / each));
  for (let row = 0; row < extent; row += rows) {
    const part = ({ strides, offset }: Layout): Layout =>
      layoutOf([Math.min(rows, extent - row), ...inner], [...strides], offset + row * strides[0]!);
    launchCopies(part(from), part(to), launch);
  }
}
