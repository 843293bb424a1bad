/**
 * The condition of a conditional node: a word of device memory that kernels set with
 * cudaGraphSetConditional. A handle is the address of two words, the first of which marks it as
 * one, so that any other number has no effect.
 */
import { CUresult } from '../../../ground/result.js';
import { fail } from '../failure.js';
import type { Range } from '../memory/arena.js';
import type { Graph } from './graph.js';
import type { StreamContext } from './stream-context.js';

/** The text "cond". */
const MARK = 0x646e6f63;
const BYTES = 8;

export class Condition {
  readonly range: Range;
  /** The graph that its node has to be in. */
  readonly graph: Graph;
  private readonly context: StreamContext;
  private readonly first: number;
  private readonly assigns: boolean;
  /** Whether a node has it. At most one can. */
  taken = false;

  /** `assigns`: each launch begins with `first`. */
  constructor(call: string, graph: Graph, first: number, assigns: boolean) {
    // The range is not an allocation: no copy can name it.
    const { context } = graph;
    this.range =
      context.memory.reserve(BYTES) ??
      fail(call, CUresult.CUDA_ERROR_OUT_OF_MEMORY, 'no memory for a conditional handle');
    this.graph = graph;
    this.context = context;
    this.first = first;
    this.assigns = assigns;
    context.memory.words[this.word] = MARK;
    this.value = first;
  }

  get handle(): bigint {
    return BigInt(this.range.address);
  }

  get value(): number {
    return Atomics.load(this.context.memory.words, this.word + 1) >>> 0;
  }

  set value(value: number) {
    Atomics.store(this.context.memory.words, this.word + 1, value | 0);
  }

  launchBegins(): void {
    if (this.assigns) this.value = this.first;
  }

  private get word(): number {
    return this.range.address >>> 2;
  }
}

/** Implements cudaGraphSetConditional, on the thread that runs the kernel. */
export function setCondition(memory: WebAssembly.Memory, handle: bigint, value: number): void {
  if (
    handle < 0n ||
    (handle & 3n) !== 0n ||
    handle + BigInt(BYTES) > BigInt(memory.buffer.byteLength)
  )
    return;
  const words = new Int32Array(memory.buffer, Number(handle), BYTES / 4);
  if (words[0] === MARK) Atomics.store(words, 1, value);
}
