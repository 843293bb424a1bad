/** What a process has of the C library's allocator once its garbage is gone. */
import koffi from 'koffi';

import { collectGarbage } from './garbage.js';
import { residentMemory } from './resident-memory.js';

/** Of glibc's mallinfo2, in bytes but for the counts. */
interface AllocatorInfo {
  /** In blocks that were allocated from heaps. */
  readonly uordblks: number | bigint;
  /** In blocks of their own. */
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
    // Another system, or glibc before 2.33.
    ask = null;
  }
  return ask;
}

/** Whether {@link allocatedMemory} is the allocator's word. */
export function allocatorTells(): boolean {
  return allocator() !== null;
}

/**
 * Bytes that were allocated and not freed: what libraries keep, to the byte. In what the process
 * holds in memory is also what the allocator has kept for later, which comes and goes, tens of MiB
 * at a time. Where the allocator does not tell (not glibc 2.33 or later) that is what there is.
 */
export async function allocatedMemory(): Promise<number> {
  const tell = allocator();
  if (tell === null) return residentMemory();
  await collectGarbage();
  const { uordblks, hblkhd } = tell();
  return Number(uordblks) + Number(hblkhd);
}
