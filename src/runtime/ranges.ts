/**
 * The ranges that profilers show of the JS thread: on while somebody wants them. One set for all
 * devices, as the thread is one.
 */
import { openNvtx } from '../driver/libcuda/nvtx.js';
import type { Nvtx } from '../driver/libcuda/nvtx.js';

let users = 0;
let opened: Nvtx | undefined | null = null;

/** The ranges, where somebody wants them and there is who shows them. */
export function ranges(): Nvtx | undefined {
  return users === 0 ? undefined : (opened ?? undefined);
}

/** From here on there are ranges. To be ended by {@link dropRanges}. */
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
