/**
 * Requests pages of 2 MiB for memory that kernels read from end to end: with the usual pages of 4
 * KiB a processor spends a tenth to a third of saxpy's time on translating addresses. Linux
 * provides them on request, where it is set to `madvise`, as it often is.
 */
import { koffiPath, loadKoffi } from '../native/koffi.js';

const MADV_HUGEPAGE = 14;

export type AskForLargePages = (memory: Uint8Array) => void;

/**
 * Returns a function that requests large pages. Where the system has none, or no libc is available,
 * it has no effect. `path` is koffi's, which is loaded at the first request.
 */
export function largePages(path: string | undefined): AskForLargePages {
  let ask: AskForLargePages | undefined;
  return (memory) => {
    (ask ??= open(path))(memory);
  };
}

function open(path: string | undefined): AskForLargePages {
  if (process.platform !== 'linux') return () => undefined;
  try {
    const madvise = loadKoffi(path ?? koffiPath())
      .load('libc.so.6')
      .func('int madvise(void* address, size_t length, int advice)') as (
      address: Uint8Array,
      length: number,
      advice: number,
    ) => number;
    return (memory) => {
      madvise(memory, memory.byteLength, MADV_HUGEPAGE);
    };
  } catch {
    return () => undefined;
  }
}
