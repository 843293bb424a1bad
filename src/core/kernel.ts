/**
 * Kernels and their launch: the shortest way from a JavaScript call to a command in the ring, with
 * a check of every argument.
 */

import {
  ACCESS_WRITE,
  LINE_ACCESS_SHIFT,
  LINE_MAX_WORD,
  LINE_WORD_SHIFT,
  OP,
} from '../runtime/commands.js';
import { CudaArgumentError, CudaDisposedError } from '../ground/errors.js';
import { checkInteger, checkOptions, invalid } from '../ground/arguments.js';
import { DeviceBuffer } from './buffer.js';
import { DeviceBuffer2D } from './buffer-2d.js';
import {
  WAYS,
  WAY_F32,
  WAY_I32,
  WAY_MASK,
  WAY_POINTER,
  WAY_SHIFT,
  usualWay,
} from './argument-ways.js';
import type { CoreDevice } from './device.js';
import { ForeignMemory, memoryFor } from './foreign-memory.js';
import { GraphCondition } from './graph-condition.js';
import { launchCode } from './launch-code.js';
import { ManagedBuffer } from './managed.js';
import type { Module } from './module.js';
import { Pending } from './pending.js';
import type { Resource } from './resource.js';
import type { Runtime } from '../runtime/runtime.js';
import { passesFor } from './signature.js';
import type { ParamLayout } from './signature.js';
import { Stream } from './stream.js';
import { TensorMap } from './tensor-map.js';
import { TexelObject } from './texture.js';
import { type KernelAttributes, checkAttributes } from './kernel-attributes.js';
import { KeptLaunch } from './kept-launch.js';
import { type KernelArgument, type KernelMemory, putArgument } from './launch-arguments.js';
import { type PointerParam, checkMaps, opOf, putGrid, putWide, wordsOf } from './launch-records.js';
import {
  type LaunchOptions,
  type LaunchShape,
  NO_SHAPE,
  dimension,
  extent,
  LAUNCH_OPTIONS,
  TWO32,
} from './launch-shape.js';

/**
 * Launches of a kernel after which code is generated for it. With fewer launches generating the
 * code costs more than it saves.
 */
const SPECIAL_AFTER = 500;

/**
 * A kernel of a loaded module. Made by {@link Module.kernel}.
 *
 * @example
 * ```ts
 * await using module = await device.loadModule(`.version 7.0
 * .target sm_70
 * .address_size 64
 * .visible .entry seven(.param .u64 y) {
 *   .reg .b64 %y; ld.param.u64 %y, [y]; st.global.u32 [%y], 7; ret;
 * }`);
 * using y = device.alloc(u32, 1);
 * module.kernel('seven', [output(u32)]).launch(device.stream, { grid: 1, block: 1 }, y);
 * console.log(await y.read(device.stream)); // Uint32Array(1) [ 7 ]
 * ```
 */
export class Kernel {
  readonly name: string;
  readonly module: Module;
  /** The attributes, read when the module was loaded. cuFuncGetAttribute */
  readonly attributes: Readonly<KernelAttributes>;
  /** @internal */
  readonly func: number;
  private readonly device: CoreDevice;
  /** @internal */
  readonly layout: readonly ParamLayout[];
  /** @internal */
  readonly pointers: readonly PointerParam[];
  /** @internal */
  readonly maps: readonly PointerParam[];
  /** @internal */
  readonly paramWords: number;
  /** The end of the last parameter. The driver needs it exactly. @internal */
  readonly paramBytes: number;
  /** @internal */
  readonly runtime: Runtime;
  /** @internal */
  readonly handle: number;
  /** Whether some word of the parameters is written in parts, or not at all. */
  private readonly clears: boolean;
  /** Options whose names have been checked. A usual launch passes the same object again. */
  private checkedOptions: LaunchOptions | undefined = undefined;
  private readonly memories: (Resource | undefined)[];
  /**
   * The code that writes each argument of the usual type, and its word: way | word << WAY_SHIFT.
   */
  private readonly ways: readonly number[];
  /**
   * The shapes of the last usual launch, and of the last launch of another kind, whose limits were
   * checked.
   */
  private shape: LaunchShape = NO_SHAPE;
  private wideShape: LaunchShape = NO_SHAPE;
  /** One-dimensional launches so far, until code is generated for them. */
  private launches = 0;
  /**
   * Whether arguments that overlap are refused here. Callers that have the strides of the arguments
   * check that themselves. @internal
   */
  checksOverlap = true;

  /** @internal */
  constructor(
    module: Module,
    name: string,
    func: number,
    handle: number,
    layout: readonly ParamLayout[],
    attributes: KernelAttributes,
  ) {
    this.module = module;
    this.device = module.device;
    this.runtime = module.device.runtime;
    this.name = name;
    this.func = func;
    this.handle = handle;
    this.layout = layout;
    this.pointers = layout
      .filter((param) => param.kind === 'pointer' || param.kind === 'map')
      .map((param) => ({
        ...param,
        lineBits: (param.access << LINE_ACCESS_SHIFT) | ((param.offset >> 2) << LINE_WORD_SHIFT),
      }));
    this.maps = this.pointers.filter(({ kind }) => kind === 'map');
    this.memories = this.pointers.map(() => undefined);
    this.ways = layout.map((param) => usualWay(param) | ((param.offset >> 2) << WAY_SHIFT));
    const last = layout[layout.length - 1];
    this.paramBytes = last === undefined ? 0 : last.offset + last.size;
    this.paramWords = Math.ceil(this.paramBytes / 4);
    this.clears =
      layout.some((param) => param.size < 4 || ['struct', 'word', 'map'].includes(param.kind)) ||
      layout.reduce((sum, param) => sum + param.size, 0) !== this.paramWords * 4;
    this.attributes = attributes;
  }

  /** The number of parameters. */
  get parameterCount(): number {
    return this.layout.length;
  }

  /**
   * Queues the kernel, after what `stream` has queued and, on the device, after work of other
   * streams that uses the same memory. Buffers whose access is not declared count as read and
   * written. cuLaunchKernel, cuLaunchKernelEx
   *
   * @throws CudaArgumentError for a wrong number, type or size of arguments, or a launch beyond the
   *   device's limits; CudaDisposedError for a closed module, stream or buffer. Rejects with
   *   ERR_CUDA_UNDEFINED_CONTENTS where an earlier failure left one of the buffers undefined
   */
  launch(stream: Stream, options: LaunchOptions, ...args: readonly KernelArgument[]): Pending {
    // Unusual cases are functions of their own, so that V8 compiles the usual one as one piece.
    const { layout, pointers, memories, paramWords } = this;
    if (
      args.length !== layout.length ||
      !(stream instanceof Stream) ||
      stream.runtime !== this.runtime
    )
      throw this.wrongCall(stream, args);
    if (stream.isUnusable || this.module.isClosed) this.checkOpen(stream);
    if (options !== this.checkedOptions || options === undefined) {
      checkNames(options);
      this.checkedOptions = options;
    }
    const { grid, block, sharedBytes } = options;
    let { shape } = this;
    if (
      grid !== shape.grid ||
      block !== shape.block ||
      sharedBytes !== shape.givenBytes ||
      options.cooperative !== undefined ||
      options.cluster !== undefined ||
      options.programmatic !== undefined ||
      options.priority !== undefined
    )
      shape = this.shapeOf(options);

    let references = 0;
    for (let i = 0; i < pointers.length; i++) {
      const param = pointers[i]!;
      const memory = this.memoryOf(stream, param, args[param.index]);
      memories[i] = memory;
      if (memory === undefined) continue;
      references++;
      stream.order(memory, param.access);
    }
    if (references > 1) this.checkOverlap(args);

    const root = stream.nextRoot();
    const { ring } = stream.runtime;
    let params: number;
    if (shape.line) {
      const body = stream.begin(OP.launchLine, 9 + references + paramWords, root);
      const { memory } = ring;
      memory[body] = this.handle;
      memory[body + 1] = shape.gridX;
      memory[body + 2] = shape.blockX;
      memory[body + 3] = shape.sharedBytes;
      memory[body + 4] = references | (this.paramBytes << 16);
      params = body + 5;
      for (let i = 0; i < pointers.length; i++) {
        const resource = memories[i];
        if (resource === undefined) continue;
        memory[params++] = resource.handle | pointers[i]!.lineBits;
      }
    } else params = this.beginOther(stream, options, shape, references, root, args);
    const { memory, floats } = ring;
    if (this.clears) for (let i = 0; i < paramWords; i++) memory[params + i] = 0;
    const { ways } = this;
    for (let i = 0; i < ways.length; i++) {
      const arg = args[i]!;
      const way = ways[i]!;
      const at = params + (way >> WAY_SHIFT);
      switch (way & WAY_MASK) {
        case WAY_POINTER:
          if (typeof arg === 'object' && arg !== null) {
            // `memoryOf` found it to be memory. The decoder adds the address to the offset.
            const offset = (arg as KernelMemory).byteOffset;
            memory[at] = offset | 0;
            // The offset that makes a texture object of its memory's address may be negative.
            memory[at + 1] = offset >= 0 && offset < TWO32 ? 0 : Math.floor(offset / TWO32);
            continue;
          }
          break;
        case WAY_F32:
          if (typeof arg === 'number') {
            floats[at] = arg;
            continue;
          }
          break;
        case WAY_I32:
          if (
            typeof arg === 'number' &&
            arg === (arg | 0) &&
            (arg >= 0 || layout[i]!.exact !== 'u32')
          ) {
            memory[at] = arg;
            continue;
          }
          break;
        default:
      }
      putArgument(memory, params, layout[i]!, arg, this.name);
    }
    if (shape.line && ++this.launches === SPECIAL_AFTER) this.specialise();
    const mark = stream.commitLaunch();
    for (let i = 0; i < pointers.length; i++) {
      const resource = memories[i];
      if (resource === undefined) continue;
      stream.used(resource, pointers[i]!.access, mark);
      memories[i] = undefined;
    }
    this.module.used(stream, mark);
    return new Pending(stream, root, mark);
  }

  /**
   * The number of blocks of `blockSize` threads that one multiprocessor runs at once.
   * cuOccupancyMaxActiveBlocksPerMultiprocessor
   */
  maxActiveBlocks(blockSize: number, sharedBytes = 0): Promise<number> {
    this.checkAlive();
    checkInteger('blockSize', blockSize, 1, 1024, 'threads');
    checkInteger('sharedBytes', sharedBytes, 0, 0x7fffffff, 'bytes');
    return this.device.runtime.call('maxActiveBlocks', this.func, blockSize, sharedBytes);
  }

  /**
   * The block size with the best occupancy, and the fewest blocks that fill the device with it.
   * cuOccupancyMaxPotentialBlockSize
   */
  suggestBlockSize(
    options: { sharedBytes?: number; limit?: number } = {},
  ): Promise<{ minGridSize: number; blockSize: number }> {
    this.checkAlive();
    checkOptions('options', options, ['sharedBytes', 'limit']);
    const { sharedBytes = 0, limit = 0 } = options;
    checkInteger('options.sharedBytes', sharedBytes, 0, 0x7fffffff, 'bytes');
    checkInteger('options.limit', limit, 0, 0x7fffffff, 'threads');
    return this.device.runtime.call('maxPotentialBlockSize', this.func, sharedBytes, limit);
  }

  /**
   * Bytes of dynamic shared memory that are left to each of `blocks` blocks on one multiprocessor.
   * cuOccupancyAvailableDynamicSMemPerBlock
   */
  availableShared(blocks: number, blockSize: number): Promise<number> {
    this.checkAlive();
    checkInteger('blocks', blocks, 1, 0x7fffffff, 'blocks');
    checkInteger('blockSize', blockSize, 1, 1024, 'threads');
    return this.device.runtime.call('availableShared', this.func, blocks, blockSize);
  }

  /**
   * A launch with arguments that it was launched with before, for many more; undefined where these
   * have to be checked each time. @internal
   */
  keep(options: LaunchOptions, args: readonly KernelArgument[]): KeptLaunch | undefined {
    return KeptLaunch.of(this, this.shapeOf(options), options, args);
  }

  /** Whether the kernel may write to the memory of this argument. @internal */
  writes(index: number): boolean {
    const param = this.layout[index];
    return param?.kind === 'pointer' && (param.access & ACCESS_WRITE) !== 0;
  }

  toString(): string {
    const parameters = this.layout.map(({ kind, dtype, pointee, scalar, size }) =>
      kind === 'pointer' ? `${dtype ?? pointee ?? ''}*` : (scalar ?? `${size} bytes`),
    );
    return `Kernel ${this.name}(${parameters.join(', ')})`;
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return this.toString();
  }

  /** Replaces {@link launch} by code for this kernel's parameters. */
  private specialise(): void {
    const { layout, pointers, ways, paramWords, paramBytes, clears } = this;
    const params = layout.map((param, i) => ({
      layout: param,
      way: WAYS[ways[i]! & WAY_MASK]!,
      lineBits: pointers.find(({ index }) => index === param.index)?.lineBits ?? 0,
    }));
    // eslint-disable-next-line @typescript-eslint/unbound-method
    const { launch } = Kernel.prototype;
    const own = launchCode({ params, paramWords, paramBytes, clears }, launch, putArgument);
    if (own !== undefined) this.launch = own;
  }

  private checkAlive(): void {
    if (this.module.isClosed)
      throw new CudaDisposedError(`kernel '${this.name}': its module was closed. Load it again.`);
    this.device.check();
  }

  /** The shape of a launch that differs from the launch before it. */
  private shapeOf(options: LaunchOptions): LaunchShape {
    const { grid, block, sharedBytes: givenBytes, sharedBytes = 0 } = options;
    const gridX = typeof grid === 'number' ? grid : dimension('grid', grid, 0);
    const gridY = typeof grid === 'number' ? 1 : dimension('grid', grid, 1);
    const gridZ = typeof grid === 'number' ? 1 : dimension('grid', grid, 2);
    const blockX = typeof block === 'number' ? block : dimension('block', block, 0);
    const blockY = typeof block === 'number' ? 1 : dimension('block', block, 1);
    const blockZ = typeof block === 'number' ? 1 : dimension('block', block, 2);
    const extended =
      options.cooperative !== undefined ||
      options.cluster !== undefined ||
      options.programmatic !== undefined ||
      options.priority !== undefined ||
      this.maps.length > 0;
    if (extended) checkAttributes(options, this.name, this.module.waits);
    const usual = typeof grid === 'number' && typeof block === 'number' && !extended;
    const last = this.wideShape;
    if (
      !usual &&
      extended === last.extended &&
      gridX === last.gridX &&
      gridY === last.gridY &&
      gridZ === last.gridZ &&
      blockX === last.blockX &&
      blockY === last.blockY &&
      blockZ === last.blockZ &&
      sharedBytes === last.sharedBytes
    )
      return last;
    this.checkLimits(gridX, gridY, gridZ, blockX, blockY, blockZ, sharedBytes);
    const simple = !extended && this.paramWords <= LINE_MAX_WORD;
    const shape: LaunchShape = {
      grid: usual ? grid : NaN,
      block: usual ? block : NaN,
      givenBytes,
      gridX,
      gridY,
      gridZ,
      blockX,
      blockY,
      blockZ,
      sharedBytes,
      extended,
      simple,
      line: simple && gridY === 1 && gridZ === 1 && blockY === 1 && blockZ === 1,
    };
    if (usual) this.shape = shape;
    else this.wideShape = shape;
    return shape;
  }

  /** Begins a launch that OP.launchLine cannot encode. Returns the place of its parameters. */
  private beginOther(
    stream: Stream,
    options: LaunchOptions,
    shape: LaunchShape,
    references: number,
    root: number,
    args: readonly KernelArgument[],
  ): number {
    const { memories } = this;
    checkMaps(this.maps, args);
    const body = stream.begin(opOf(shape), wordsOf(this, shape, references), root);
    const { memory } = this.runtime.ring;
    return shape.simple
      ? putGrid(memory, body, this, shape, references, memories)
      : putWide(memory, body, this, shape, references, memories, options);
  }

  /** Memory of another device, where this device has access to it. */
  private foreignMemory(
    stream: Stream,
    param: ParamLayout,
    arg: KernelMemory | TensorMap,
  ): Resource {
    const argument = `args[${param.index}]`;
    const memory = memoryFor(arg.memory, this.device.shared);
    if (!(memory instanceof ForeignMemory)) {
      throw invalid(
        argument,
        `memory of ${this.device.title}`,
        arg,
        'Copy it first: a buffer of this device .copyFrom(stream, other).',
      );
    }
    memory.checkArgument(stream, argument);
    return memory;
  }

  private memoryOf(
    stream: Stream,
    param: ParamLayout,
    arg: KernelArgument | undefined,
  ): Resource | undefined {
    if (arg instanceof DeviceBuffer) {
      const { memory } = arg;
      if (
        !memory.disposed &&
        memory.device.runtime === this.runtime &&
        (param.dtype === undefined || arg.dtype.name === param.dtype) &&
        (param.pointee === undefined || arg.dtype.name === param.pointee)
      )
        return memory;
    }
    return this.memoryOfAny(stream, param, arg);
  }

  private memoryOfAny(
    stream: Stream,
    param: ParamLayout,
    arg: KernelArgument | undefined,
  ): Resource | undefined {
    if (
      (param.kind === 'map' && arg instanceof TensorMap) ||
      arg instanceof DeviceBuffer ||
      arg instanceof DeviceBuffer2D ||
      arg instanceof ManagedBuffer ||
      arg instanceof TexelObject
    ) {
      const { memory } = arg;
      if (arg instanceof TexelObject) arg.checkArgument(stream, `args[${param.index}]`, this.name);
      if (memory.disposed) {
        throw new CudaDisposedError(
          `args[${param.index}] of kernel '${this.name}': ${arg.toString()}: used after it ` +
            'was closed.',
        );
      }
      if (param.dtype !== undefined && arg.dtype.name !== param.dtype) {
        throw invalid(
          `args[${param.index}]`,
          `a buffer of ${param.dtype} for parameter ${param.index} of kernel '${this.name}'`,
          arg,
          'To pass the same bytes as another dtype use buffer.reinterpret(dtype).',
        );
      }
      if (
        param.pointee !== undefined &&
        !(arg instanceof TexelObject) &&
        !passesFor(arg.dtype, param.pointee)
      ) {
        const what =
          `memory of ${param.pointee}, which parameter ${param.index} of kernel '${this.name}' ` +
          'points to';
        throw invalid(
          `args[${param.index}]`,
          what,
          arg,
          'Convert it, or pass the same bytes by reinterpret(dtype).',
        );
      }
      return memory.device.runtime === this.device.runtime
        ? memory
        : this.foreignMemory(stream, param, arg);
    }
    if (arg === null) return undefined;
    if (arg instanceof GraphCondition && (param.dtype === undefined || param.dtype === 'u64')) {
      arg.checkArgument(stream, `args[${param.index}]`);
      return arg.resource;
    }
    if (
      param.dtype === undefined &&
      (typeof arg === 'bigint' ||
        typeof arg === 'number' ||
        (typeof arg === 'boolean' && param.scalar === 'i64'))
    )
      return undefined;
    throw invalid(
      `args[${param.index}]`,
      `a device buffer for parameter ${param.index} of kernel '${this.name}'`,
      arg,
      ArrayBuffer.isView(arg)
        ? 'Copy the array to a device buffer first: device.alloc(…), then buffer.write(stream, ' +
            'array).'
        : '',
    );
  }

  private checkOverlap(args: readonly KernelArgument[]): void {
    const { pointers, memories } = this;
    if (!this.checksOverlap) return;
    for (let i = 0; i < pointers.length; i++) {
      const param = pointers[i]!;
      if (!param.declared || (param.access & ACCESS_WRITE) === 0 || memories[i] === undefined)
        continue;
      for (let j = 0; j < pointers.length; j++) {
        if (j === i || memories[j] !== memories[i]) continue;
        const a = args[param.index] as KernelMemory;
        const b = args[pointers[j]!.index] as KernelMemory;
        const [startA, endA] = extent(a);
        const [startB, endB] = extent(b);
        if (startA < endB && startB < endA) {
          throw new CudaArgumentError(
            `args[${param.index}]`,
            `args[${param.index}] of kernel '${this.name}' is written and overlaps ` +
              `args[${pointers[j]!.index}]. Pass disjoint buffers, or leave the signature ` +
              'undeclared where the kernel allows for it.',
          );
        }
      }
    }
  }

  private checkLimits(
    gridX: number,
    gridY: number,
    gridZ: number,
    blockX: number,
    blockY: number,
    blockZ: number,
    sharedBytes: number,
  ): void {
    const limits = this.device.properties;
    if (typeof sharedBytes !== 'number')
      throw invalid('options.sharedBytes', 'a number of bytes', sharedBytes);
    const threads = blockX * blockY * blockZ;
    // The usual case makes one comparison each. Which limit is exceeded is found out afterwards.
    if (
      threads <= this.attributes.maxThreadsPerBlock &&
      blockX >= 1 &&
      blockY >= 1 &&
      blockZ >= 1 &&
      Number.isInteger(threads) &&
      gridX >= 1 &&
      gridY >= 1 &&
      gridZ >= 1 &&
      gridX <= limits.maxGrid[0] &&
      gridY <= limits.maxGrid[1] &&
      gridZ <= limits.maxGrid[2] &&
      Number.isInteger(gridX) &&
      Number.isInteger(gridY) &&
      Number.isInteger(gridZ) &&
      blockX <= limits.maxBlock[0] &&
      blockY <= limits.maxBlock[1] &&
      blockZ <= limits.maxBlock[2] &&
      sharedBytes >= 0 &&
      sharedBytes <= this.attributes.maxDynamicSharedBytes &&
      Number.isInteger(sharedBytes)
    )
      return;
    const axes = ['x', 'y', 'z'] as const;
    const sizes = { grid: [gridX, gridY, gridZ], block: [blockX, blockY, blockZ] };
    axes.forEach((axis, i) => {
      checkInteger(`options.grid (${axis})`, sizes.grid[i], 1, limits.maxGrid[i]!, 'blocks');
      checkInteger(`options.block (${axis})`, sizes.block[i], 1, limits.maxBlock[i]!, 'threads');
    });
    if (threads > this.attributes.maxThreadsPerBlock) {
      throw invalid(
        'options.block',
        `at most ${this.attributes.maxThreadsPerBlock} threads in a block of kernel '${this.name}'`,
        `${blockX}×${blockY}×${blockZ} = ${threads}`,
      );
    }
    checkInteger(
      'options.sharedBytes',
      sharedBytes,
      0,
      this.attributes.maxDynamicSharedBytes,
      'bytes of dynamic shared memory',
    );
  }

  private checkOpen(stream: Stream): void {
    stream.check();
    if (this.module.isClosed)
      throw new CudaDisposedError(`kernel '${this.name}': its module was closed. Load it again.`);
  }

  private wrongCall(stream: unknown, args: readonly KernelArgument[]): CudaArgumentError {
    // The stream was left out: every later argument has moved up by one.
    if (!(stream instanceof Stream) && args.length !== this.layout.length)
      return invalid(
        'stream',
        `a stream of ${this.device.title}`,
        stream,
        'Write kernel.launch(stream, { grid, block }, …arguments).',
      );
    if (args.length === this.layout.length)
      return invalid('stream', `a stream of ${this.device.title}`, stream);
    return new CudaArgumentError(
      'args',
      `args: kernel '${this.name}' takes ${this.layout.length} arguments, got ` +
        `${args.length}. It is ${this.toString()}.`,
    );
  }
}

function checkNames(options: LaunchOptions): void {
  if (typeof options !== 'object' || options === null)
    throw invalid(
      'options',
      'an object with grid and block',
      options,
      'Write { grid: 4, block: 256 }.',
    );
  for (const key in options) {
    if (!LAUNCH_OPTIONS.includes(key)) checkOptions('options', options, LAUNCH_OPTIONS);
  }
}
