/**
 * Calls of NVIDIA's libraries (NPP, cuBLAS, cuDNN, …) as plain data: what a function takes, where
 * each of its arguments stands in a list of 32-bit words, and what the statuses that it returns
 * mean.
 *
 * The words are what travels to the thread that makes the call. Numbers of 64 bits and addresses
 * take two of them, low half first; the bytes of what the host passes by pointer stand in the words
 * too.
 */

/** Numbers, and addresses of device memory by what the function does with it. */
export type ScalarType =
  'i32' | 'u32' | 'f32' | 'i64' | 'u64' | 'f64' | 'in' | 'out' | 'inout' | 'object' | 'stream';

/** A structure that is passed by value: its fields in order, each by its name. */
export interface StructType {
  readonly struct: Readonly<Record<string, ScalarType>>;
}

/**
 * A pointer to so many bytes of the host, which the function reads, or writes, before it returns.
 */
export interface HostType {
  readonly host: number;
}

/** A pointer to an array of the host, which holds so many addresses of device memory. */
export interface PointersType {
  readonly pointers: 'in' | 'out' | 'inout';
  readonly count: number;
}

/** The same number or address at every call, which takes no words. */
export interface ConstantType {
  readonly constant: number;
}

/**
 * An argument. `in`, `out` and `inout` are addresses of device memory, by what the function does
 * with it; `object` is a handle that the library gave out; `stream` is the stream that the call is
 * queued on, and is filled in there.
 */
export type ArgumentType = ScalarType | StructType | HostType | PointersType;
/** What a step of several calls takes. */
export type StepArgument = ArgumentType | ConstantType;

/** One number of an argument, and the first of its words. */
export interface ArgumentLeaf {
  readonly type: ScalarType;
  readonly word: number;
}

/**
 * What a function gives back: a status, which may say that it failed; a number; the address of so
 * many bytes of the host.
 */
export type ReturnedType = 'status' | 'u64' | HostType;

/** Where the arguments of a function stand. */
export interface ArgumentLayout {
  readonly words: number;
  /** For each argument the first of its words. */
  readonly starts: readonly number[];
  /** First words of what is to be the stream's handle. */
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

/** The numbers of an argument, from word `start` on; none for bytes of the host and constants. */
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

/** Words of an argument. */
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

/** What a status says. */
export interface LibraryStatus {
  /** The library's own name for it. */
  readonly name: string;
  /** One more sentence. */
  readonly text?: string;
  /**
   * A kind of failure that has an error of its own: too little memory, or what this device or
   * version cannot do.
   */
  readonly means?: 'memory' | 'unsupported';
  /** Whether the call has done what it was asked for all the same. */
  readonly harmless?: true;
}

/** A library as far as its calls' failures are concerned. */
export interface LibraryStatuses {
  /** What people call it, with its version. */
  readonly name: string;
  /** By the status's number. Zero is success; what is not listed is a failure. */
  readonly statuses: Readonly<Record<number, LibraryStatus>>;
}

/** A function of a loaded library. */
export interface LibraryFunction {
  readonly name: string;
  readonly returns: ReturnedType;
  /** Of its code in this process. */
  readonly address: number;
  readonly args: readonly StepArgument[];
  /** Kernels, copies and fills that a call may queue at most. */
  readonly launches: number;
  /** Where it is several calls, one after the other; the arguments are all of theirs. */
  readonly steps?: readonly LibraryStep[];
  /** What the library says meanwhile is written to: memory of a `SaidText`. */
  readonly said?: SharedArrayBuffer;
}

/** One of the calls that a command consists of. */
export interface LibraryStep {
  readonly name: string;
  readonly address: number;
  readonly args: readonly StepArgument[];
  /** Whether false is a failure. */
  readonly returns: 'true' | 'nothing';
  /** Whether it is left out where its arguments are those of the last time. */
  readonly kept?: boolean;
  /** Whether all kept steps behind it have to be made anew once it is made. */
  readonly forgets?: boolean;
}

/** A function of a library that returned a status that is a failure. */
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
    said?: string,
  ) {
    const row = statuses[status];
    const statusName = row?.name ?? `status ${status}`;
    const text = said ?? row?.text;
    super(
      `${call} of ${library} returned ` +
        `${statusName}${row === undefined || said !== undefined ? '' : ` (${status})`}${text === undefined || text === '' ? '' : `: ${text}`}`,
    );
    this.library = library;
    this.call = call;
    this.status = status;
    this.statusName = statusName;
    this.means = row?.means;
  }
}

/** @throws LibraryCallError where the status is a failure */
export function checkStatus(library: LibraryStatuses, call: string, status: number): void {
  if (status !== 0 && library.statuses[status]?.harmless !== true)
    throw new LibraryCallError(library, call, status);
}
