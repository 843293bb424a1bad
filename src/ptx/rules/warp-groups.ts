// The instructions that order wgmma. A product is computed when its warp has arrived
// (`emit/warp-group-arrivals.ts`), so that nothing is in flight.

import type { Emitter } from '../emit/emitter.js';

export function orderGroup(e: Emitter): void {
  if (e.has('mma_async')) throw e.unsupported();
}
