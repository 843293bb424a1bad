// The instructions that order wgmma. A product is computed when all four warps of its group have
// arrived at it (`emit/warp-group-arrivals.ts`), so that nothing is in flight.

import { GROUP_EVENT, IN_FLIGHT } from '../check.js';
import { emitGroupCheck } from '../emit/check.js';
import type { Emitter } from '../emit/emitter.js';

export function orderGroup(e: Emitter): void {
  if (e.has('commit_group')) emitGroupCheck(e, IN_FLIGHT.product, GROUP_EVENT.committed);
  else if (e.has('wait_group')) {
    const groups = e.arg(0);
    if (groups.kind !== 'integer') throw e.semantic('expected a number of groups', groups.at);
    emitGroupCheck(e, IN_FLIGHT.product, Number(groups.value));
  } else if (!e.has('fence')) throw e.unsupported();
}
