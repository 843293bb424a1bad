/**
 * What compiled kernels call outside WebAssembly: printf, malloc and free, and the message of a failed assertion.
 */
import { CUlimit } from '../../attributes.js';
import type { CpuContext } from '../context.js';
import { Arena } from '../memory/arena.js';
import type { Range } from '../memory/arena.js';
import { deviceText, printf } from './device-text.js';

/** The memory of `malloc` in kernels, one for each context, as large as CU_LIMIT_MALLOC_HEAP_SIZE says. */
export class KernelHeap {
  private readonly arena: Arena;
  private readonly taken = new Map<number, Range>();

  constructor(address: number, bytes: number) {
    this.arena = new Arena(address, bytes);
  }

  /** 0 where the heap is used up. */
  take(bytes: number): number {
    const range = this.arena.take(bytes);
    if (range === undefined) return 0;
    this.taken.set(range.address, range);
    return range.address;
  }

  giveBack(address: number): void {
    const range = this.taken.get(address);
    if (range === undefined) return;
    this.taken.delete(address);
    this.arena.giveBack(range);
  }
}

/** The functions of `names`, ready to be imported. */
export function hostFunctions(call: string, context: CpuContext, names: readonly string[]): Record<string, (...args: never[]) => unknown> {
  const { memory } = context.memory;
  const all: Record<string, (...args: never[]) => unknown> = {
    host_vprintf(format: number, args: number): number {
      const { text, conversions } = printf(memory, format, args);
      context.print(text);
      return conversions;
    },
    host_malloc(bytes: bigint): bigint {
      return bytes <= 0n || bytes > 0xffffffffn ? 0n : BigInt(context.heap!.take(Number(bytes)));
    },
    host_free(address: bigint): void {
      if (address !== 0n) context.heap!.giveBack(Number(address));
    },
    host_assert(message: number, file: number, line: number, name: number): void {
      const said = `${deviceText(memory, file)}:${line}: ${deviceText(memory, name)}: Assertion \`${deviceText(memory, message)}\` failed.`;
      context.failedAssertion = said;
      context.print(`${said}\n`);
    },
  };
  // As on a GPU, the heap is made when a module that uses it is loaded, and its size is fixed from then on.
  if (names.includes('host_malloc') && context.heap === undefined) {
    const bytes = context.limits.get(CUlimit.CU_LIMIT_MALLOC_HEAP_SIZE)!;
    const range = context.memory.reserve(bytes) ?? context.outOfMemory(call, bytes);
    context.heap = new KernelHeap(range.address, range.bytes);
  }
  return Object.fromEntries(names.map((name) => [name, all[name]!]));
}
