/**
 * Makes calls of NVIDIA's libraries: it takes the arguments as words (see `library-call.ts`) and
 * passes them by C's calling convention. It also loads the libraries and finds their functions, on
 * whichever thread may wait for that.
 */
import type {
  LibraryFunction,
  LibraryStatuses,
  LibraryStep,
  ScalarType,
  StepArgument,
} from './library-call.js';
import {
  LibraryCallError,
  checkStatus,
  isFailure,
  layoutOf,
  leavesOf,
  wordsOf,
} from './library-call.js';
import { firstLine, loadKoffi } from './koffi.js';
import type { Koffi, KoffiLibrary } from './koffi.js';
import type { LibraryRow } from './libraries.js';
import { NativeMemory } from './native-memory.js';
import { openLibrary } from './open-library.js';
import { LibraryLog } from './library-log.js';

type Value = number | bigint | Record<string, number | bigint>;
type Read = (memory: Int32Array, at: number) => Value;
type Type = string | ReturnType<Koffi['struct']>;

interface Call {
  readonly address: bigint;
  readonly prototype: ReturnType<Koffi['proto']>;
  readonly reads: readonly Read[];
  /**
   * Bytes of the host: their place among the arguments' words, and the offset in the native memory
   * that they are copied to.
   */
  readonly hosts: readonly { readonly word: number; readonly words: number; readonly at: number }[];
  readonly hostBytes: number;
}

/** A step of a command of several calls. */
interface PreparedStep {
  readonly step: LibraryStep;
  readonly call: Call;
  /** The index of its first word among the words of all steps. */
  readonly first: number;
  readonly words: number;
  /** The words of the previous execution, where the step is kept. */
  readonly last: Int32Array;
  known: boolean;
}

interface Program {
  readonly steps: readonly PreparedStep[];
  readonly said: LibraryLog | undefined;
}

/** The C type of each scalar type. */
const C_TYPES: Readonly<Record<ScalarType, string>> = {
  i32: 'int32_t',
  u32: 'uint32_t',
  f32: 'float',
  i64: 'int64_t',
  u64: 'uint64_t',
  f64: 'double',
  in: 'uintptr_t',
  out: 'uintptr_t',
  inout: 'uintptr_t',
  object: 'uintptr_t',
  stream: 'uintptr_t',
};
/** The C type that a step returns. */
const RETURNED: Readonly<Record<LibraryStep['returns'], string>> = {
  true: 'bool',
  status: 'int',
  nothing: 'void',
};
const TWO_32 = 4294967296;
/** Alignment of data that the host passes by pointer. */
const ALIGNMENT = 16;

/** Libraries stay loaded, because their functions are called by address. */
const loaded: KoffiLibrary[] = [];

export interface FoundFunctions {
  /** The library's file; a bare name where the loader's own search found it. */
  readonly path: string;
  /** The addresses in the order of the names; 0 for functions that the library does not have. */
  readonly addresses: readonly number[];
}

/**
 * Loads a library, and finds the addresses of its functions.
 *
 * @param file the library's file, if it is given; no other path is tried then
 * @throws {LibraryNotFoundError} where the library is not found
 */
export function findFunctions(
  koffiPath: string | undefined,
  row: LibraryRow,
  file: string | undefined,
  names: readonly string[],
): FoundFunctions {
  const koffi = loadKoffi(koffiPath);
  const { library, path } = openLibrary(koffi, row, { path: file });
  loaded.push(library);
  const addresses = names.map((name) => {
    try {
      return Number(koffi.address(library.symbol(name)));
    } catch (error) {
      if (!firstLine(error).startsWith('Cannot find symbol')) throw error;
      return 0;
    }
  });
  return { path, addresses };
}

/** Makes one thread's calls. */
export class LibraryCaller {
  private readonly koffi: Koffi;
  private readonly calls = new WeakMap<LibraryFunction, Call>();
  private readonly programs = new WeakMap<LibraryFunction, Program>();
  /** Prototypes by their text: koffi never frees one. */
  private readonly prototypes = new Map<string, ReturnType<Koffi['proto']>>();
  private hosts: NativeMemory | undefined = undefined;

  constructor(koffiPath: string | undefined) {
    this.koffi = loadKoffi(koffiPath);
    // Loads the process itself: in a thread that has loaded no library koffi 3.3.4 has no memory
    // for calls, and crashes at the first.
    this.koffi.load(null);
  }

  /**
   * Makes a call that belongs to no stream. Returns its result, and the words as they are
   * afterwards. @throws LibraryCallError where the status is a failure
   */
  ask(
    statuses: LibraryStatuses,
    func: LibraryFunction,
    words: Int32Array,
  ): { words: Int32Array; value: number | Uint8Array } {
    const value = this.call(func, words, 0);
    if (func.returns === 'status') checkStatus(statuses, func.name, value);
    if (typeof func.returns === 'string') return { words, value };
    return {
      words,
      value: Uint8Array.from(
        this.koffi.decode(BigInt(value), 'uint8_t', func.returns.host) as number[],
      ),
    };
  }

  /** Makes a call in stream order. @throws LibraryCallError where the status is a failure */
  run(statuses: LibraryStatuses, func: LibraryFunction, memory: Int32Array, at: number): void {
    if (func.steps === undefined) checkStatus(statuses, func.name, this.call(func, memory, at));
    else this.runSteps(statuses, func, func.steps, memory, at);
  }

  private runSteps(
    statuses: LibraryStatuses,
    func: LibraryFunction,
    steps: readonly LibraryStep[],
    memory: Int32Array,
    at: number,
  ): void {
    let program = this.programs.get(func);
    if (program === undefined) {
      program = this.prepareSteps(steps, func.said);
      this.programs.set(func, program);
    }
    const { said } = program;
    said?.open();
    let forgotten = false;
    try {
      for (const prepared of program.steps) {
        const { step, call, first, words, last } = prepared;
        if (forgotten) prepared.known = false;
        if (prepared.known && same(last, memory, at + first, words)) continue;
        const given = this.make(call, memory, at + first);
        prepared.known = false;
        const failure = failureOf(statuses, step, given, said);
        if (failure !== undefined) {
          // Which of the other kept steps still hold is not known.
          for (const each of program.steps) each.known = false;
          throw failure;
        }
        if (step.forgets === true) forgotten = true;
        if (step.kept !== true) continue;
        for (let i = 0; i < words; i++) last[i] = memory[at + first + i]!;
        prepared.known = true;
      }
    } finally {
      said?.close();
    }
  }

  private prepareSteps(
    steps: readonly LibraryStep[],
    said: SharedArrayBuffer | undefined,
  ): Program {
    let first = 0;
    return {
      said: said === undefined ? undefined : new LibraryLog(said),
      steps: steps.map((step) => {
        const { words } = layoutOf(step.args);
        const prepared = {
          step,
          call: this.prepare(step, RETURNED[step.returns]),
          first,
          words,
          last: new Int32Array(words),
          known: false,
        };
        first += words;
        return prepared;
      }),
    };
  }

  /**
   * Calls a function with the arguments in `memory` from word `at` on. Returns its status or its
   * other result. Bytes that it writes to the host's data are copied back to the words.
   */
  call(func: LibraryFunction, memory: Int32Array, at: number): number {
    let call = this.calls.get(func);
    if (call === undefined) {
      call = this.prepare(func, func.returns === 'status' ? 'int' : 'uint64_t');
      this.calls.set(func, call);
    }
    return Number(this.make(call, memory, at));
  }

  private make(call: Call, memory: Int32Array, at: number): number | bigint | boolean | undefined {
    const { hosts } = call;
    if (hosts.length !== 0) {
      if (this.hosts === undefined || this.hosts.bytes.length < call.hostBytes)
        this.hosts = new NativeMemory(this.koffi, Math.max(256, call.hostBytes));
      const { i32 } = this.hosts;
      for (const host of hosts)
        for (let i = 0; i < host.words; i++) i32[(host.at >> 2) + i] = memory[at + host.word + i]!;
    }
    const values = call.reads.map((read) => read(memory, at));
    const given = this.koffi.call(call.address, call.prototype, ...values) as
      number | bigint | boolean | undefined;
    for (const host of hosts)
      for (let i = 0; i < host.words; i++)
        memory[at + host.word + i] = this.hosts!.i32[(host.at >> 2) + i]!;
    return given;
  }

  private prepare(
    { address, args }: Pick<LibraryFunction, 'address' | 'args'>,
    returned: string,
  ): Call {
    const { starts } = layoutOf(args);
    const hosts: Call['hosts'][number][] = [];
    let hostBytes = 0;
    const types: Type[] = [];
    const reads = args.map((type, i): Read => {
      const word = starts[i]!;
      types.push(this.typeOf(type));
      if (typeof type === 'string') return readerOf(type, word);
      if ('struct' in type) return structReader(type.struct, word);
      if ('constant' in type) return () => type.constant;
      const host = { word, words: wordsOf(type), at: hostBytes };
      hosts.push(host);
      hostBytes += Math.ceil((host.words * 4) / ALIGNMENT) * ALIGNMENT;
      return () => this.hosts!.address + host.at;
    });
    return {
      address: BigInt(address),
      prototype: this.prototypeOf(returned, types),
      reads,
      hosts,
      hostBytes,
    };
  }

  private prototypeOf(returned: string, types: readonly Type[]): ReturnType<Koffi['proto']> {
    if (!types.every((type) => typeof type === 'string'))
      return this.koffi.proto(returned, [...types]);
    const text = `${returned}(${types.join()})`;
    let prototype = this.prototypes.get(text);
    if (prototype === undefined)
      this.prototypes.set(text, (prototype = this.koffi.proto(returned, [...types])));
    return prototype;
  }

  private typeOf(type: StepArgument): Type {
    if (typeof type === 'string') return C_TYPES[type];
    if (!('struct' in type)) return 'uintptr_t';
    return this.koffi.struct(
      Object.fromEntries(
        Object.entries(type.struct).map(([name, field]) => [name, C_TYPES[field]]),
      ),
    );
  }
}

/** The error of a step that returned a failure. */
function failureOf(
  statuses: LibraryStatuses,
  { name, returns }: LibraryStep,
  given: number | bigint | boolean | undefined,
  said: LibraryLog | undefined,
): LibraryCallError | undefined {
  if (returns === 'true')
    return given === true ? undefined : new LibraryCallError(statuses, name, 0, said?.text ?? '');
  if (returns === 'nothing' || !isFailure(statuses, Number(given))) return undefined;
  return new LibraryCallError(statuses, name, Number(given));
}

function same(last: Int32Array, memory: Int32Array, at: number, words: number): boolean {
  for (let i = 0; i < words; i++) if (last[i] !== memory[at + i]) return false;
  return true;
}

function structReader(fields: Readonly<Record<string, ScalarType>>, word: number): Read {
  const leaves = leavesOf({ struct: fields }, word);
  const names = Object.keys(fields);
  const reads = leaves.map((leaf) => readerOf(leaf.type, leaf.word));
  return (memory, at) => {
    const value: Record<string, number | bigint> = {};
    for (let i = 0; i < names.length; i++)
      value[names[i]!] = reads[i]!(memory, at) as number | bigint;
    return value;
  };
}

const bits = new ArrayBuffer(8);
const bitsI32 = new Int32Array(bits);
const bitsF32 = new Float32Array(bits);
const bitsF64 = new Float64Array(bits);
const bitsI64 = new BigInt64Array(bits);
const bitsU64 = new BigUint64Array(bits);

const READERS: Readonly<Record<ScalarType, (memory: Int32Array, at: number) => number | bigint>> = {
  i32: (memory, at) => memory[at]!,
  u32: (memory, at) => memory[at]! >>> 0,
  f32: (memory, at) => {
    bitsI32[0] = memory[at]!;
    return bitsF32[0]!;
  },
  f64: (memory, at) => wide(memory, at, bitsF64)[0]!,
  i64: (memory, at) => wide(memory, at, bitsI64)[0]!,
  u64: (memory, at) => wide(memory, at, bitsU64)[0]!,
  in: address,
  out: address,
  inout: address,
  object: address,
  stream: address,
};

function readerOf(type: ScalarType, word: number): Read {
  const read = READERS[type];
  return (memory, at) => read(memory, at + word);
}

/**
 * An address of a GPU's memory or of a process has no more bits than a number represents exactly.
 */
function address(memory: Int32Array, at: number): number {
  return (memory[at]! >>> 0) + (memory[at + 1]! >>> 0) * TWO_32;
}

function wide<T>(memory: Int32Array, at: number, view: T): T {
  bitsI32[0] = memory[at]!;
  bitsI32[1] = memory[at + 1]!;
  return view;
}
