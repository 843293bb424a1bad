/**
 * NVIDIA's libraries (NPP, cuBLAS, cuDNN, …) on a device. The runtime thread calls their functions
 * in stream order, with device memory that is tracked as a kernel's arguments are.
 */
import { ACCESS_READ, ACCESS_SHIFT, ACCESS_WRITE, OP } from '../runtime/commands.js';
import { CudaArgumentError, CudaDisposedError, CudaError } from '../ground/errors.js';
import { MAX_RECORD_WORDS, putInt64 } from '../runtime/ring-writer.js';
import type { Runtime } from '../runtime/runtime.js';
import { layoutOf, leavesOf } from '../runtime/library-call.js';
import type {
  ArgumentLayout,
  ArgumentType,
  LibraryFunction,
  LibraryRow,
  LibraryStatuses,
  LibraryStep,
  ReturnedType,
  ScalarType,
  StepArgument,
} from '../runtime/library-call.js';
import { checkInteger, invalid } from '../ground/arguments.js';
import { DeviceBuffer } from './buffer.js';
import { DeviceBuffer2D } from './buffer-2d.js';
import type { CoreDevice } from './device.js';
import { ManagedBuffer } from './managed.js';
import { Pending } from './pending.js';
import type { Resource } from './resource.js';
import type { Stream } from './stream.js';
import { captureError } from './capture-error.js';

export type {
  ArgumentType,
  HostType,
  LibraryStatus,
  LibraryRow,
  LibraryStatuses,
  PointersType,
  ReturnedType,
  ScalarType,
  StructType,
} from '../runtime/library-call.js';

/** The signature of a function. */
export interface FunctionRow {
  readonly args: readonly ArgumentType[];
  /**
   * What the function returns. Default `status`. A function that returns something else is called
   * by {@link NativeLibrary.ask}.
   */
  readonly returns?: ReturnedType;
  /** The most kernels, copies and fills that a call queues. Default 2. */
  readonly launches?: number;
  /**
   * The reason why a call cannot be recorded in a graph, such as 'it allocates memory'; undefined
   * where it can.
   */
  readonly notCaptured?: string;
}

/** A library file, and its functions. */
export interface LibraryFile {
  /** How the file is found: a row of `libraries.ts`. */
  readonly library: LibraryRow;
  /** The path of the file where it is known. No other place is searched then. */
  readonly path?: string;
  readonly functions: Readonly<Record<string, FunctionRow>>;
}

/** A library, which may consist of several files. */
export interface LibraryDeclaration extends LibraryStatuses {
  readonly files: readonly LibraryFile[];
  /**
   * Whether a CPU device may open the library, too: for tests, whose library records its calls. A
   * call is made when the stream's earlier work has ended. Addresses are the device's own: a
   * library reaches the memory only if it knows where that begins in the process.
   */
  readonly anyDevice?: boolean;
}

/** Memory of the device from a byte of a buffer on. */
export interface MemoryPlace {
  readonly buffer: LibraryMemory;
  /** Bytes from the beginning of the buffer. Default 0. */
  readonly byteOffset?: number;
}

/** Memory that a call uses without being passed it. */
export interface MemoryUse {
  readonly buffer: LibraryMemory;
  readonly access: 'in' | 'out' | 'inout';
}

export type LibraryMemory = DeviceBuffer | DeviceBuffer2D | ManagedBuffer;
/** The value of a single number or address: `null` is the null pointer. */
export type LibraryScalar = number | bigint | LibraryMemory | MemoryPlace | null;
/**
 * The value of an argument. For a structure it is the list of its fields' values in order, without
 * its stream; for bytes of the host an array of that size; for an array of addresses the list of
 * its elements.
 */
export type LibraryArgument = LibraryScalar | readonly LibraryScalar[] | ArrayBufferView;

/**
 * The most launches that a call may queue: with more, a stream would come near the number at which
 * the driver blocks.
 */
export const MOST_LAUNCHES = 64;
const DEFAULT_LAUNCHES = 2;
/**
 * The access of a call to device memory, by the type of the argument. Other types are not memory.
 */
export const ACCESSES: Readonly<
  Record<'in' | 'out' | 'inout', number> & Partial<Record<ScalarType, number>>
> = { in: ACCESS_READ, out: ACCESS_WRITE, inout: ACCESS_READ | ACCESS_WRITE };

interface Known {
  readonly func: LibraryFunction;
  readonly layout: ArgumentLayout;
  readonly notCaptured: string | undefined;
  /** The function's number in commands; undefined before its first call. */
  number: number | undefined;
}

interface Reference {
  readonly resource: Resource;
  readonly access: number;
  readonly word: number;
}

/** The arguments of one call, as the command encodes them. */
interface Encoded {
  readonly words: Int32Array;
  readonly references: readonly Reference[];
}

/**
 * A library of native code on a device, opened by {@link NativeLibrary.open}. Its functions are
 * called in stream order, with memory that is tracked as a kernel's arguments are.
 *
 * @example
 * ```ts no-run
 * const row = { name: 'libexample', base: 'example', versions: ['1'], windows: [] };
 * const library = await NativeLibrary.open(device, {
 *   name: 'libexample 1.0',
 *   statuses: { 1: { name: 'EXAMPLE_NO_MEMORY', means: 'memory' } },
 *   files: [
 *     {
 *       library: { ...row, from: 'package', environment: ['EXAMPLE_PATH'] },
 *       functions: { scale: { args: ['inout', 'f32', 'stream'] } },
 *     },
 *   ],
 * });
 * using x = device.alloc(f32, 4);
 * await library.call(device.stream, 'scale', [x, 2, null]);
 * ```
 */
export class NativeLibrary {
  readonly device: CoreDevice;
  /** The name with the version, as in errors. */
  readonly name: string;
  /** The paths of its files, in the order of the declaration. */
  readonly paths: string[] = [];
  private readonly statuses: LibraryStatuses;
  private readonly functions = new Map<string, Known>();
  private readonly runtime: Runtime;

  private constructor(device: CoreDevice, { name, statuses }: LibraryDeclaration) {
    this.device = device;
    this.runtime = device.runtime;
    this.name = name;
    this.statuses = { name, statuses };
  }

  /**
   * Loads the files, on the second worker, and looks up the functions. A function that the
   * installed version lacks is an error when it is called.
   *
   * @throws CudaError with code ERR_CUDA_UNSUPPORTED on a CPU device, ERR_CUDA_NO_LIBRARY where a
   *   file is not found or does not load; the message lists every path that was tried, and how to
   *   install the library
   */
  static async open(device: CoreDevice, declaration: LibraryDeclaration): Promise<NativeLibrary> {
    device.check();
    if (device.kind === 'cpu' && declaration.anyDevice !== true) {
      throw new CudaError(
        'ERR_CUDA_UNSUPPORTED',
        `${declaration.name} works on NVIDIA GPUs only, and ${device.name} is a CPU device. ` +
          `Open one: Device.open('cuda').`,
      );
    }
    const library = new NativeLibrary(device, declaration);
    const { runtime } = device;
    for (const { library: row, path: file, functions } of declaration.files) {
      const rows = Object.entries(functions);
      const { path, addresses } = await runtime.call(
        'findFunctions',
        runtime.config.koffiPath,
        row,
        file,
        rows.map(([name]) => name),
      );
      library.paths.push(path);
      rows.forEach(
        ([name, { args, returns = 'status', launches = DEFAULT_LAUNCHES, notCaptured }], i) => {
          checkInteger(`${name}.launches`, launches, 0, MOST_LAUNCHES);
          const address = addresses[i]!;
          if (address === 0) return;
          library.functions.set(name, {
            func: { name, address, args, launches, returns },
            layout: layoutOf(args),
            notCaptured,
            number: undefined,
          });
        },
      );
    }
    return library;
  }

  /** The meanings of the statuses, for {@link NativeSteps}. */
  get statusRows(): LibraryStatuses['statuses'] {
    return this.statuses.statuses;
  }

  /**
   * A call of a function as a step of {@link NativeSteps}.
   *
   * @param args types of arguments; constants among them are the same in every call
   * @param options `title`: the call in errors, by default the function's name; `kept`: whether the
   *   call is omitted where its arguments equal those of the previous one
   * @throws CudaError with code ERR_CUDA_UNSUPPORTED for a function that the installed version
   *   lacks
   */
  step(
    name: string,
    args: readonly StepArgument[],
    options: { title?: string; kept?: boolean } = {},
  ): LibraryStep {
    const { title = name, kept = false } = options;
    const { address } = this.known(name).func;
    return { name: title, address, args, returns: 'status', kept };
  }

  /** Whether the library has the function. */
  has(name: string): boolean {
    return this.functions.has(name);
  }

  /**
   * Queues a call after what `stream` has queued and, on the device, after work of other streams
   * that uses the same memory. The runtime thread resolves the addresses of memory. Rejects with a
   * {@link CudaLibraryError} where the function returns a failure; the memory that it would have
   * written is undefined then.
   *
   * @param uses memory that the call uses besides its arguments, by addresses that are stored in
   *   memory of the device
   * @throws CudaArgumentError for arguments that the function does not take; CudaError with code
   *   ERR_CUDA_UNSUPPORTED for a function that the installed version lacks, ERR_CUDA_CAPTURE for
   *   one that cannot be recorded
   */
  call(
    stream: Stream,
    name: string,
    args: readonly LibraryArgument[],
    uses: readonly MemoryUse[] = [],
  ): Pending {
    stream.check();
    if (stream.runtime !== this.runtime)
      throw invalid('stream', `a stream of ${this.device.title}`, stream);
    const known = this.known(name);
    if (known.func.returns !== 'status')
      throw new CudaArgumentError('name', `name: ${name} returns no status: call it with ask(…).`);
    if (known.notCaptured !== undefined && stream.captureScope !== undefined) {
      throw captureError(
        `${name} of ${this.name}`,
        `${known.notCaptured}. Call it before the capture, or after the graph's launch`,
      );
    }
    const { words, references } = this.encode(known, args, uses);
    const length = 6 + references.length * 2 + words.length;
    if (length > MAX_RECORD_WORDS)
      throw new CudaArgumentError(
        'args',
        `args of ${name}: ${words.length * 4} bytes are more than a call can pass.`,
      );
    known.number ??= this.runtime.addLibrary(this.statuses, [known.func]);
    for (const { resource, access } of references) stream.order(resource, access);
    const root = stream.nextRoot();
    this.runtime.name(root, { toString: () => `${name} of ${this.name}` });
    let at = stream.begin(OP.libraryCall, length, root);
    const { memory } = this.runtime.ring;
    memory[at++] = known.number;
    memory[at++] = references.length | (words.length << 16);
    for (const { resource, access, word } of references) {
      memory[at++] = resource.handle | (access << ACCESS_SHIFT);
      memory[at++] = word;
    }
    for (let i = 0; i < words.length; i++) memory[at + i] = words[i]!;
    const mark = stream.commit();
    for (const { resource, access } of references) stream.used(resource, access, mark);
    return new Pending(stream, root, mark);
  }

  /**
   * Makes a call that is not in stream order, on the second worker: for plans, workspaces, sizes.
   * It takes no memory of the device. Returns the function's result, a status of success included,
   * and the contents of each argument of host bytes after the call.
   */
  async ask(
    name: string,
    args: readonly LibraryArgument[],
  ): Promise<{ value: number | Uint8Array; hosts: Uint8Array[] }> {
    const known = this.known(name);
    const { words, references } = this.encode(known, args, []);
    if (references.length > 0)
      throw new CudaArgumentError(
        'args',
        `args of ${name}: device memory is allowed in calls in stream order only: use call(…).`,
      );
    const { runtime } = this;
    const { words: after, value } = await runtime.call(
      'callLibrary',
      runtime.config.koffiPath,
      this.statuses,
      known.func,
      words,
    );
    const bytes = new Uint8Array(after.buffer, after.byteOffset, after.byteLength);
    const hosts = known.func.args.flatMap((type, i) => {
      if (typeof type === 'string' || !('host' in type)) return [];
      const start = known.layout.starts[i]! * 4;
      return [bytes.slice(start, start + type.host)];
    });
    return { value, hosts };
  }

  toString(): string {
    return `${this.name} on ${this.device.name}`;
  }

  private known(name: string): Known {
    const known = this.functions.get(name);
    if (known !== undefined) return known;
    throw new CudaError(
      'ERR_CUDA_UNSUPPORTED',
      `${this.name} has no function ${name}: install another version.`,
    );
  }

  private encode(
    { func, layout }: Known,
    args: readonly LibraryArgument[],
    uses: readonly MemoryUse[],
  ): Encoded {
    const types = func.args;
    const taken = types.filter((type) => type !== 'stream').length;
    if (args.length !== taken)
      throw new CudaArgumentError(
        'args',
        `args of ${func.name}: expected ${taken}, got ${args.length}.`,
      );
    // The address of memory that is used without being an argument goes after the arguments, where
    // the function reads nothing.
    const words = new Int32Array(layout.words + 2 * uses.length);
    const references: Reference[] = [];
    let next = 0;
    types.forEach((type, i) => {
      if (type === 'stream') return;
      const argument = `args[${next}] of ${func.name}`;
      const arg = args[next++]!;
      const start = layout.starts[i]!;
      if (typeof type !== 'string' && 'host' in type) {
        putBytes(words, start, type.host, argument, arg);
        return;
      }
      const leaves = leavesOf(type, start).filter((leaf) => leaf.type !== 'stream');
      const values = typeof type === 'string' ? [arg as LibraryScalar] : arg;
      if (!Array.isArray(values) || values.length !== leaves.length)
        throw invalid(argument, `a list of ${leaves.length} values`, arg);
      leaves.forEach((leaf, j) => {
        const value = (values as readonly LibraryScalar[])[j]!;
        const access = ACCESSES[leaf.type];
        if (access === undefined) putScalar(words, leaf.word, leaf.type, argument, value);
        else if (value !== null)
          references.push({
            resource: this.place(words, leaf.word, argument, value),
            access,
            word: leaf.word,
          });
      });
    });
    uses.forEach(({ buffer, access }, i) => {
      const word = layout.words + 2 * i;
      references.push({
        resource: this.place(words, word, `uses[${i}] of ${func.name}`, buffer),
        access: ACCESSES[access],
        word,
      });
    });
    return { words, references };
  }

  /** Writes the offset of the memory. The runtime thread adds the memory's address. */
  private place(words: Int32Array, word: number, argument: string, value: LibraryScalar): Resource {
    const { buffer, byteOffset = 0 } = isMemory(value)
      ? { buffer: value }
      : isPlace(value)
        ? value
        : { buffer: undefined };
    if (buffer === undefined) throw invalid(argument, 'a device buffer', value);
    const { memory } = buffer;
    if (memory.disposed)
      throw new CudaDisposedError(`${argument}: ${buffer.toString()}: used after it was closed.`);
    if (memory.device.runtime !== this.runtime) {
      throw invalid(
        argument,
        `memory of ${this.device.title}`,
        buffer,
        'Copy it first: a buffer of this device .copyFrom(stream, other).',
      );
    }
    const offset = buffer.byteOffset + byteOffset;
    putInt64(words, word, offset);
    return memory;
  }
}

export function isMemory(value: unknown): value is LibraryMemory {
  return (
    value instanceof DeviceBuffer ||
    value instanceof DeviceBuffer2D ||
    value instanceof ManagedBuffer
  );
}

function isPlace(value: unknown): value is MemoryPlace {
  return typeof value === 'object' && value !== null && 'buffer' in value && isMemory(value.buffer);
}

function putBytes(
  words: Int32Array,
  start: number,
  bytes: number,
  argument: string,
  arg: LibraryArgument,
): void {
  if (!ArrayBuffer.isView(arg) || arg.byteLength !== bytes)
    throw invalid(argument, `an array of ${bytes} bytes`, arg);
  new Uint8Array(words.buffer, start * 4, bytes).set(
    new Uint8Array(arg.buffer, arg.byteOffset, bytes),
  );
}

const bits = new ArrayBuffer(8);
const bitsI32 = new Int32Array(bits);
const bitsF32 = new Float32Array(bits);
const bitsF64 = new Float64Array(bits);
const bitsU64 = new BigUint64Array(bits);

/** The range of whole numbers of a type. */
const RANGES: Readonly<Partial<Record<ScalarType, readonly [bigint, bigint]>>> = {
  i32: [-(1n << 31n), (1n << 31n) - 1n],
  u32: [0n, (1n << 32n) - 1n],
  i64: [-(1n << 63n), (1n << 63n) - 1n],
  u64: [0n, (1n << 64n) - 1n],
  object: [0n, (1n << 53n) - 1n],
};

function putScalar(
  words: Int32Array,
  word: number,
  type: ScalarType,
  argument: string,
  value: LibraryScalar,
): void {
  const range = RANGES[type];
  if (range === undefined) {
    if (typeof value !== 'number') throw invalid(argument, 'a number', value);
    if (type === 'f32') bitsF32[0] = value;
    else bitsF64[0] = value;
  } else {
    const whole =
      typeof value === 'bigint' || (typeof value === 'number' && Number.isSafeInteger(value))
        ? BigInt(value)
        : undefined;
    if (whole === undefined || whole < range[0] || whole > range[1])
      throw invalid(argument, `a whole number from ${range[0]} to ${range[1]}`, value);
    bitsU64[0] = BigInt.asUintN(64, whole);
  }
  words[word] = bitsI32[0]!;
  if (type !== 'i32' && type !== 'u32' && type !== 'f32') words[word + 1] = bitsI32[1]!;
}
