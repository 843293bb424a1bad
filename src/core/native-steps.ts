/**
 * Several calls of a native library that belong together, as one command of a stream: the settings
 * of an object, and its run. The functions are given by address, as those of C++ objects are, and
 * take constants among their arguments. Memory of the device is tracked as a kernel's arguments
 * are.
 */
import { ACCESS_SHIFT, ACCESS_WHOLE, ACCESS_WRITE, OP } from '../runtime/commands.js';
import { CudaDisposedError } from '../ground/errors.js';
import { layoutOf, leavesOf } from '../runtime/library-call.js';
import type { LibraryStatuses, LibraryStep } from '../runtime/library-call.js';
import { MAX_RECORD_WORDS, putInt64 } from '../runtime/ring-writer.js';
import type { Runtime } from '../runtime/runtime.js';
import { checkInteger, invalid } from '../ground/arguments.js';
import type { CoreDevice } from './device.js';
import { ACCESSES, MOST_LAUNCHES } from './native-library.js';
import type { LibraryMemory } from './native-library.js';
import type { Resource } from './resource.js';
import type { Stream } from './stream.js';

export type { LibraryStep, StepArgument } from '../runtime/library-call.js';

export interface StepsDeclaration {
  /** The name in errors: 'enqueueV3 of mobilenet'. */
  readonly name: string;
  /** The library, with its version. */
  readonly library: string;
  readonly steps: readonly LibraryStep[];
  /** Kernels, copies and fills that the calls may queue. Numbers above 64 count as 64. */
  readonly launches: number;
  /** Memory to which the library's messages are written; they become part of the error. */
  readonly said?: SharedArrayBuffer;
  /** The meanings of statuses, for steps that return one. */
  readonly statuses?: LibraryStatuses['statuses'];
}

const NO_FLAGS: readonly boolean[] = [];
const NO_OFFSETS: readonly number[] = [];

interface Place {
  readonly access: number;
  readonly word: number;
}

/**
 * Several calls of a native library as one command. They are registered with the device's thread
 * once.
 *
 * @example
 * ```ts no-run
 * const address = 0x7f00_0000_1000; // where a library has the function, in this process
 * const steps = new NativeSteps(device, {
 *   name: 'scale of libexample',
 *   library: 'libexample 1.0',
 *   steps: [{ name: 'scale', address, args: ['inout', 'f32', 'stream'], returns: 'true' }],
 *   launches: 1,
 * });
 * using x = device.alloc(f32, 4);
 * steps.queue(device.stream, [x], x);
 * steps.close();
 * ```
 */
export class NativeSteps {
  readonly device: CoreDevice;
  /**
   * The words of all arguments that are not memory, step after step. A program changes them before
   * {@link queue}, which copies them to the command.
   */
  readonly words: Int32Array;
  /** For each step and each of its arguments the index of its first word in {@link words}. */
  readonly starts: readonly (readonly number[])[];
  private readonly runtime: Runtime;
  private readonly number: number;
  private readonly title: { toString(): string };
  private readonly places: readonly Place[];
  /**
   * Words of the arguments. The words of memory that is used without being an argument come after
   * them.
   */
  private readonly length: number;

  constructor(
    device: CoreDevice,
    { name, library, steps, launches, said, statuses }: StepsDeclaration,
  ) {
    checkInteger('launches', launches, 0, Number.MAX_SAFE_INTEGER);
    const args = steps.flatMap((step) => step.args);
    const layout = layoutOf(args);
    this.device = device;
    this.runtime = device.runtime;
    this.length = layout.words;
    this.words = new Int32Array(layout.words + 2);
    this.places = args
      .flatMap((type, i) => leavesOf(type, layout.starts[i]!))
      .flatMap(({ type, word }) => {
        const access = ACCESSES[type];
        return access === undefined ? [] : [{ access, word }];
      });
    const starts: number[][] = [];
    let next = 0;
    for (const step of steps) starts.push(step.args.map(() => layout.starts[next++]!));
    this.starts = starts;
    this.title = { toString: () => name };
    const func = {
      name,
      address: 0,
      args,
      launches: Math.min(launches, MOST_LAUNCHES),
      returns: 'status' as const,
      steps,
      ...(said === undefined ? {} : { said }),
    };
    this.number = this.runtime.addLibrary(
      { name: library, statuses: { ...statuses, 0: { name: 'false' } } },
      [func],
    );
    const most = 6 + (this.places.length + 1) * 2 + this.words.length;
    if (most > MAX_RECORD_WORDS)
      throw invalid('steps', `calls with at most ${MAX_RECORD_WORDS} words of arguments`, most);
  }

  /**
   * Queues the calls after what `stream` has queued, and after work of other streams that uses the
   * same memory. The operation fails with a {@link CudaLibraryError} where one of them returns
   * false, or a status that is a failure; the calls after it are not made then.
   *
   * @param memory one buffer for each argument that is memory of the device, in order
   * @param uses memory that all calls use besides, and write: commands that share it run one after
   *   the other, on any streams. Undefined where commands may overlap
   * @param whole for each of `memory` whether the calls write all of it, so that an earlier failure
   *   does not matter
   * @param offsets for each of `memory` the byte in it that the argument is the address of. Default
   *   0
   * @returns the operation's number: `new Pending(stream, root, stream.mark)` waits for its end,
   *   and most runs need no such object
   */
  queue(
    stream: Stream,
    memory: readonly LibraryMemory[],
    uses: LibraryMemory | undefined,
    whole: readonly boolean[] = NO_FLAGS,
    offsets: readonly number[] = NO_OFFSETS,
  ): number {
    stream.check();
    if (stream.runtime !== this.runtime)
      throw invalid('stream', `a stream of ${this.device.title}`, stream);
    const { words, places, length } = this;
    if (memory.length !== places.length)
      throw invalid('memory', `${places.length} buffers`, memory.length);
    for (let i = 0; i < places.length; i++)
      this.place(stream, memory[i]!, places[i]!.access, places[i]!.word, offsets[i] ?? 0);
    if (uses !== undefined) this.place(stream, uses, ACCESS_WRITE, length, 0);
    const count = uses === undefined ? places.length : places.length + 1;
    const root = stream.nextRoot();
    this.runtime.name(root, this.title);
    let at = stream.begin(OP.libraryCall, 6 + count * 2 + words.length, root);
    const ring = this.runtime.ring.memory;
    ring[at++] = this.number;
    ring[at++] = count | (words.length << 16);
    for (let i = 0; i < places.length; i++) {
      const { access, word } = places[i]!;
      ring[at++] =
        memory[i]!.memory.handle |
        ((whole[i] === true ? access | ACCESS_WHOLE : access) << ACCESS_SHIFT);
      ring[at++] = word;
    }
    if (uses !== undefined) {
      // It counts as written whole: it holds nothing that a failed run could leave undefined.
      ring[at++] = uses.memory.handle | ((ACCESS_WRITE | ACCESS_WHOLE) << ACCESS_SHIFT);
      ring[at++] = length;
    }
    for (let i = 0; i < words.length; i++) ring[at + i] = words[i]!;
    const mark = stream.commit();
    for (let i = 0; i < places.length; i++) stream.used(memory[i]!.memory, places[i]!.access, mark);
    if (uses !== undefined) stream.used(uses.memory, ACCESS_WRITE, mark);
    return root;
  }

  /**
   * Releases the calls, after those that were queued. {@link queue} must not be called any more.
   */
  close(): void {
    this.runtime.dropLibrary(this.number);
  }

  /** Writes the offset of the memory. The runtime thread adds the memory's address. */
  private place(
    stream: Stream,
    buffer: LibraryMemory,
    access: number,
    word: number,
    offset: number,
  ): void {
    const { memory }: { memory: Resource & { device: CoreDevice } } = buffer;
    if (memory.disposed)
      throw new CudaDisposedError(`${buffer.toString()}: used after it was closed.`);
    if (memory.device.runtime !== this.runtime)
      throw invalid(
        'memory',
        `memory of ${this.device.title}`,
        buffer,
        'Copy it first: a buffer of this device .copyFrom(stream, other).',
      );
    putInt64(this.words, word, buffer.byteOffset + offset);
    stream.order(memory, access);
  }
}
