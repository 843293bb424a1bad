/**
 * NVTX ranges of the JavaScript thread for profilers, which are pushed while a user of them exists.
 * There is one set for all devices, since there is one thread.
 */
import { openNvtx } from '../driver/libcuda/nvtx.js';
import type { Nvtx } from '../driver/libcuda/nvtx.js';

let users = 0;
let opened: Nvtx | undefined | null = null;

/** The ranges, where they are in use and a profiler is attached. */
export function ranges(): Nvtx | undefined {
  return users === 0 ? undefined : (opened ?? undefined);
}

/** Begins to push ranges, until {@link dropRanges}. */
export function wantRanges(): void {
  users++;
  if (opened !== null) return;
  try {
    opened = openNvtx();
  } catch (error) {
    opened = undefined;
    const reason = error instanceof Error ? error.message : String(error);
    process.emitWarning(`no NVTX ranges: ${reason}`, { type: 'CudaWarning', code: 'CUDA_NVTX' });
  }
}

export function dropRanges(): void {
  users--;
}
