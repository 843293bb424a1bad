/** The memory that a process holds in the C library's allocator after a garbage collection. */
import koffi from 'koffi';

import { collectGarbage } from './garbage.js';
import { residentMemory } from './resident-memory.js';

/** Fields of glibc's mallinfo2: bytes, and counts. */
interface AllocatorInfo {
  /** Bytes in blocks that were allocated from heaps. */
  readonly uordblks: number | bigint;
  /** Bytes in blocks with a mapping of their own. */
  readonly hblkhd: number | bigint;
}

let ask: (() => AllocatorInfo) | null | undefined;

function allocator(): (() => AllocatorInfo) | null {
  if (ask !== undefined) return ask;
  try {
    const names = [
      'arena',
      'ordblks',
      'smblks',
      'hblks',
      'hblkhd',
      'usmblks',
      'fsmblks',
      'uordblks',
      'fordblks',
      'keepcost',
    ];
    const info = koffi.struct(Object.fromEntries(names.map((name) => [name, 'size_t'])));
    ask = koffi.load('libc.so.6').func('mallinfo2', info, []) as () => AllocatorInfo;
  } catch {
    // The system is another one, or glibc is older than 2.33.
    ask = null;
  }
  return ask;
}

/** Whether {@link allocatedMemory} is the allocator's own count. */
export function allocatorTells(): boolean {
  return allocator() !== null;
}

/**
 * Bytes that were allocated and not freed: exactly what libraries keep. The resident memory also
 * contains what the allocator keeps for later allocations, which varies by tens of MiB. Without
 * mallinfo2 (glibc before 2.33, other systems) the resident memory is returned.
 */
export async function allocatedMemory(): Promise<number> {
  const tell = allocator();
  if (tell === null) return residentMemory();
  await collectGarbage();
  const { uordblks, hblkhd } = tell();
  return Number(uordblks) + Number(hblkhd);
}
