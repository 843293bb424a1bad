/**
 * Calls of NVIDIA's libraries (NPP, cuBLAS, cuDNN, …) as plain data: the types of a function's
 * arguments, the places of the arguments in a list of 32-bit words, and the meanings of the
 * statuses that it returns.
 *
 * The words are sent to the thread that makes the call. Numbers of 64 bits and addresses take two
 * of them, low half first. Bytes that the host passes by pointer are stored in the words, too.
 */

/**
 * Types of numbers, and of addresses of device memory by what the function does with the memory.
 */
export type ScalarType =
  'i32' | 'u32' | 'f32' | 'i64' | 'u64' | 'f64' | 'in' | 'out' | 'inout' | 'object' | 'stream';

/** A structure that is passed by value: its fields by name, in order. */
export interface StructType {
  readonly struct: Readonly<Record<string, ScalarType>>;
}

/**
 * A pointer to `host` bytes of host memory, which the function reads or writes before it returns.
 */
export interface HostType {
  readonly host: number;
}

/** A pointer to an array in host memory, which holds `count` addresses of device memory. */
export interface PointersType {
  readonly pointers: 'in' | 'out' | 'inout';
  readonly count: number;
}

/** A number or address that is the same in every call, and takes no words. */
export interface ConstantType {
  readonly constant: number;
}

/**
 * The type of an argument. `in`, `out` and `inout` are addresses of device memory, by what the
 * function does with the memory; `object` is a handle that the library returned; `stream` is the
 * stream that the call is queued on, which is filled in when it is queued.
 */
export type ArgumentType = ScalarType | StructType | HostType | PointersType;
/** The type of an argument of a step, for commands of several calls. */
export type StepArgument = ArgumentType | ConstantType;

/** One number of an argument, and the index of its first word. */
export interface ArgumentLeaf {
  readonly type: ScalarType;
  readonly word: number;
}

/**
 * What a function returns: a status, which may be a failure; a number; or the address of `host`
 * bytes of host memory.
 */
export type ReturnedType = 'status' | 'u64' | HostType;

/** The places of a function's arguments. */
export interface ArgumentLayout {
  readonly words: number;
  /** The first word of each argument. */
  readonly starts: readonly number[];
  /** The first words of the arguments that become the stream's handle. */
  readonly streams: readonly number[];
}

const WIDE: ReadonlySet<ScalarType> = new Set([
  'i64',
  'u64',
  'f64',
  'in',
  'out',
  'inout',
  'object',
  'stream',
]);

export function wordsOfScalar(type: ScalarType): number {
  return WIDE.has(type) ? 2 : 1;
}

/**
 * The numbers of an argument whose words begin at `start`. Bytes of the host and constants have
 * none.
 */
export function leavesOf(type: StepArgument, start: number): ArgumentLeaf[] {
  if (typeof type === 'string') return [{ type, word: start }];
  if ('host' in type || 'constant' in type) return [];
  if ('pointers' in type)
    return Array.from({ length: type.count }, (_, i) => ({
      type: type.pointers,
      word: start + 2 * i,
    }));
  let word = start;
  return Object.values(type.struct).map((field) => {
    const leaf = { type: field, word };
    word += wordsOfScalar(field);
    return leaf;
  });
}

/** The number of words of an argument. */
export function wordsOf(type: StepArgument): number {
  if (typeof type !== 'string' && 'host' in type) return Math.ceil(type.host / 4);
  return leavesOf(type, 0).reduce((sum, leaf) => sum + wordsOfScalar(leaf.type), 0);
}

export function layoutOf(types: readonly StepArgument[]): ArgumentLayout {
  const starts: number[] = [];
  const streams: number[] = [];
  let words = 0;
  for (const type of types) {
    starts.push(words);
    for (const leaf of leavesOf(type, words)) if (leaf.type === 'stream') streams.push(leaf.word);
    words += wordsOf(type);
  }
  return { words, starts, streams };
}

/** The meaning of a status. */
export interface LibraryStatus {
  /** The library's own name for the status. */
  readonly name: string;
  /** A further sentence. */
  readonly text?: string;
  /**
   * A failure that has an error class of its own: too little memory, or a function that this device
   * or version does not support.
   */
  readonly means?: 'memory' | 'unsupported';
  /** Whether the call has had its effect all the same. */
  readonly harmless?: true;
}

/** The statuses of a library. */
export interface LibraryStatuses {
  /** The library's name in messages, with its version. */
  readonly name: string;
  /** The rows by the status's number. Zero is success; a status without a row is a failure. */
  readonly statuses: Readonly<Record<number, LibraryStatus>>;
}

/** A function of a loaded library. */
export interface LibraryFunction {
  readonly name: string;
  readonly returns: ReturnedType;
  /** The address of its code in this process. */
  readonly address: number;
  readonly args: readonly StepArgument[];
  /** Largest number of kernels, copies and fills that a call queues. */
  readonly launches: number;
  /**
   * The calls of a function that consists of several, in order; `args` are the arguments of all of
   * them.
   */
  readonly steps?: readonly LibraryStep[];
  /** Where the library's messages during the call are written: the memory of a `LibraryLog`. */
  readonly said?: SharedArrayBuffer;
}

/** One of the calls that a command consists of. */
export interface LibraryStep {
  readonly name: string;
  readonly address: number;
  readonly args: readonly StepArgument[];
  /**
   * With 'true', a return value of false is a failure; with 'status', a status that the library's
   * table does not call harmless.
   */
  readonly returns: 'true' | 'status' | 'nothing';
  /** Whether the call is omitted where its arguments equal those of the previous execution. */
  readonly kept?: boolean;
  /** Whether all kept steps after it have to be made again once it is made. */
  readonly forgets?: boolean;
}

/** A function of a library returned a status that is a failure. */
export class LibraryCallError extends Error {
  override readonly name = 'LibraryCallError';
  readonly library: string;
  readonly call: string;
  readonly status: number;
  /** The library's own name for the status. */
  readonly statusName: string;
  readonly means: LibraryStatus['means'];

  constructor(
    { name: library, statuses }: LibraryStatuses,
    call: string,
    status: number,
    message?: string,
  ) {
    const row = statuses[status];
    const statusName = row?.name ?? `status ${status}`;
    const text = message ?? row?.text;
    super(
      `${call} of ${library} returned ` +
        `${statusName}${row === undefined || message !== undefined ? '' : ` (${status})`}` +
        (text === undefined || text === '' ? '' : `: ${text}`),
    );
    this.library = library;
    this.call = call;
    this.status = status;
    this.statusName = statusName;
    this.means = row?.means;
  }
}

export function isFailure({ statuses }: LibraryStatuses, status: number): boolean {
  return status !== 0 && statuses[status]?.harmless !== true;
}

/** @throws LibraryCallError where the status is a failure */
export function checkStatus(library: LibraryStatuses, call: string, status: number): void {
  if (isFailure(library, status)) throw new LibraryCallError(library, call, status);
}
