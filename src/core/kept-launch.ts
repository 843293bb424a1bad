/**
 * A launch that is queued again and again with the same arguments. Its record is written once, and
 * each launch copies it. Only what may have changed is checked each time: whether the stream, the
 * module and the memory are still open.
 */
import { RECORD_BODY } from '../runtime/commands.js';
import { DeviceBuffer } from './buffer.js';
import type { Kernel } from './kernel.js';
import { putArgument } from './launch-arguments.js';
import type { KernelArgument } from './launch-arguments.js';
import { opOf, putGrid, putLine, putWide, wordsOf } from './launch-records.js';
import type { LaunchOptions, LaunchShape } from './launch-shape.js';
import { Pending } from './pending.js';
import type { Resource } from './resource.js';
import type { Stream } from './stream.js';
import { TensorMap } from './tensor-map.js';

export class KeptLaunch {
  private readonly kernel: Kernel;
  private readonly options: LaunchOptions;
  private readonly args: readonly KernelArgument[];
  private readonly op: number;
  /** The record without its beginning. */
  private readonly words: Int32Array;
  private readonly memories: readonly Resource[];
  private readonly accesses: readonly number[];

  /**
   * @param memories the memory of each pointer of the kernel
   */
  private constructor(
    kernel: Kernel,
    options: LaunchOptions,
    args: readonly KernelArgument[],
    shape: LaunchShape,
    memories: readonly (Resource | undefined)[],
  ) {
    this.kernel = kernel;
    this.options = options;
    this.args = args;
    this.op = opOf(shape);
    this.memories = memories.filter((memory) => memory !== undefined);
    this.accesses = kernel.pointers.flatMap(({ access }, i) =>
      memories[i] === undefined ? [] : [access],
    );
    const references = this.memories.length;
    const words = new Int32Array(wordsOf(kernel, shape, references) - RECORD_BODY);
    const params = shape.line
      ? putLine(words, 0, kernel, shape, references, memories)
      : shape.simple
        ? putGrid(words, 0, kernel, shape, references, memories)
        : putWide(words, 0, kernel, shape, references, memories, options);
    kernel.layout.forEach((param, i) => {
      putArgument(words, params, param, args[i]!, kernel.name);
    });
    this.words = words;
  }

  /**
   * The launch of a kernel with arguments that it was launched with before, which checked them;
   * undefined where an argument is checked at each launch (textures, managed memory, memory of
   * another device) or may change (bytes).
   */
  static of(
    kernel: Kernel,
    shape: LaunchShape,
    options: LaunchOptions,
    args: readonly KernelArgument[],
  ): KeptLaunch | undefined {
    const memories: (Resource | undefined)[] = [];
    for (const { index } of kernel.pointers) {
      const arg = args[index];
      if (arg instanceof DeviceBuffer || arg instanceof TensorMap) {
        if (arg.memory.device.runtime !== kernel.runtime || arg.memory.elsewhere) return undefined;
        memories.push(arg.memory);
      } else if (typeof arg === 'object' && arg !== null) return undefined;
      else memories.push(undefined);
    }
    if (kernel.layout.some(({ kind }) => kind === 'struct')) return undefined;
    return new KeptLaunch(kernel, options, args, shape, memories);
  }

  /** Queues it, as {@link Kernel.launch} does. */
  launch(stream: Stream): Pending {
    const { kernel, memories, accesses, words } = this;
    if (stream.runtime !== kernel.runtime || stream.isUnusable || kernel.module.isClosed)
      return this.refused(stream);
    for (let i = 0; i < memories.length; i++)
      if (memories[i]!.disposed) return this.refused(stream);
    for (let i = 0; i < memories.length; i++) stream.order(memories[i]!, accesses[i]!);
    const root = stream.nextRoot();
    const body = stream.begin(this.op, RECORD_BODY + words.length, root);
    const { memory } = stream.runtime.ring;
    for (let i = 0; i < words.length; i++) memory[body + i] = words[i]!;
    const mark = stream.commitLaunch();
    for (let i = 0; i < memories.length; i++) stream.used(memories[i]!, accesses[i]!, mark);
    kernel.module.used(stream, mark);
    return new Pending(stream, root, mark);
  }

  /** The launch that throws the error of what was closed. */
  private refused(stream: Stream): Pending {
    return this.kernel.launch(stream, this.options, ...this.args);
  }
}
