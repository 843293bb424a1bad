/**
 * The functions outside WebAssembly that compiled kernels call: printf, malloc and free, conditions
 * of graphs, and the message of a failed assertion.
 */
import { CUlimit } from '../../attributes.js';
import { Quarantine } from '../check/quarantine.js';
import { setCondition } from '../streams/condition.js';
import { Arena } from '../memory/arena.js';
import type { Range } from '../memory/arena.js';
import { printf } from './device-text.js';
import type { KernelContext } from './kernel-context.js';

/** Unowned bytes after each block of a heap that is checked. */
const HEAP_GAP = 256;

/**
 * The memory of `malloc` in kernels, one for each context, of the size CU_LIMIT_MALLOC_HEAP_SIZE.
 */
export class KernelHeap {
  private readonly arena: Arena;
  private readonly taken = new Map<number, Range>();
  private readonly quarantine = new Quarantine();
  private readonly bytes: number;

  constructor(address: number, bytes: number) {
    this.arena = new Arena(address, bytes);
    this.bytes = bytes;
  }

  /** Allocates; 0 where the heap is used up. */
  take(bytes: number, gap: number): number {
    const range =
      this.arena.take(bytes + gap) ??
      (this.quarantine.empty((old) => this.arena.giveBack(old))
        ? this.arena.take(bytes + gap)
        : undefined);
    if (range === undefined) return 0;
    this.taken.set(range.address, range);
    return range.address;
  }

  /** Frees the block later, so that accesses after the free are found. */
  keep(address: number): void {
    const range = this.taken.get(address)!;
    this.taken.delete(address);
    this.quarantine.keep(range, this.bytes, (old) => this.arena.giveBack(old));
  }

  giveBack(address: number): void {
    const range = this.taken.get(address);
    if (range === undefined) return;
    this.taken.delete(address);
    this.arena.giveBack(range);
  }
}

/** Returns the functions of `names`, ready to be imported. */
export function hostFunctions(
  call: string,
  context: KernelContext,
  names: readonly string[],
): Record<string, (...args: never[]) => unknown> {
  const { memory } = context.memory;
  const all: Record<string, (...args: never[]) => unknown> = {
    host_vprintf(format: number, args: number): number {
      const { text, conversions } = printf(memory, format, args);
      context.print(text);
      return conversions;
    },
    host_malloc(bytes: bigint): bigint {
      if (bytes <= 0n || bytes > 0xffffffffn) return 0n;
      const { checker } = context;
      const address = context.heap!.take(Number(bytes), checker === undefined ? 0 : HEAP_GAP);
      if (address !== 0) checker?.heapTaken(address, Number(bytes));
      return BigInt(address);
    },
    host_free(address: bigint): void {
      if (address === 0n) return;
      const { checker } = context;
      if (checker === undefined) context.heap!.giveBack(Number(address));
      else if (checker.heapFreed(Number(address))) context.heap!.keep(Number(address));
    },
    host_set_conditional(handle: bigint, value: number): void {
      setCondition(memory, handle, value);
    },
    host_assert(
      message: number,
      file: number,
      line: number,
      name: number,
      ctx: number,
      thread: number,
    ): void {
      context.failedAssertions.add({ message, file, line, name, ctx, thread });
    },
  };
  // As on a GPU, the heap is created when a module that uses it is loaded, and its size is fixed
  // from then on.
  if (names.includes('host_malloc') && context.heap === undefined) {
    const bytes = context.limits.get(CUlimit.CU_LIMIT_MALLOC_HEAP_SIZE)!;
    const range = context.memory.reserve(bytes) ?? context.outOfMemory(call, bytes);
    context.heap = new KernelHeap(range.address, range.bytes);
  }
  return Object.fromEntries(names.map((name) => [name, all[name]!]));
}
