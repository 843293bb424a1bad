/**
 * Large pages under page-locked memory. A device copies from memory of 4 KiB pages a percent slower than from that which
 * cuMemHostAlloc gives, which lies in large ones (H200, measured).
 */
import type { Koffi } from './koffi.js';

/** On Linux, on every architecture that Node has there. */
const MADV_HUGEPAGE = 14;
const HUGE_PAGE = 2 << 20;

type Advise = (address: number, bytes: number, advice: number) => number;

let advise: Advise | undefined | null = null;

function open(koffi: Koffi): Advise | undefined {
  if (process.platform !== 'linux') return undefined;
  try {
    return koffi.load('libc.so.6').func('int madvise(uintptr_t address, size_t bytes, int advice)') as Advise;
  } catch {
    return undefined;
  }
}

/**
 * Asks for large pages where the range holds whole ones that nobody has touched yet. What the system makes of it is its
 * own affair: without them everything works as well.
 */
export function adviseHugePages(koffi: Koffi, address: number, bytes: number): void {
  const begin = Math.ceil(address / HUGE_PAGE) * HUGE_PAGE;
  const end = Math.floor((address + bytes) / HUGE_PAGE) * HUGE_PAGE;
  if (end <= begin) return;
  if (advise === null) advise = open(koffi);
  advise?.(begin, end - begin, MADV_HUGEPAGE);
}
