// In kernels that are too large for a version for whole units, a loop of one block is written a
// second time without masks: it runs for as long as all threads of the unit stay in the loop.

import { checkFirst } from './check-hoisting-order.js';
import type { CodePlan } from './code-plan.js';
import { guardOf } from './guards.js';
import type { LaneKernelEmitter } from './lane-kernel.js';
import { plainBlock } from './plain-code.js';
import { findUncheckedRun } from './unchecked-accesses.js';

/** The most instructions of a loop that is worth a second copy. */
const LONGEST = 500;

/** A pass: loops that a comparison of a stepping value ends, in kernels of one version. */
export function addUnmaskedLoops({ general, whole }: CodePlan, k: LaneKernelEmitter): void {
  if (whole) return;
  for (const loop of general.loops.values()) {
    const block = k.kernel.blocks[loop.region.header]!;
    const guard = guardOf(k, block);
    if (loop.region.members.size > 1 || !guard || block.insts.length > LONGEST) continue;
    const code = plainBlock(block);
    code.ending.guard = guard;
    loop.unmasked = code;
    k.inVersion(true, () => {
      if (k.runs('checks first')) checkFirst(code, k);
      const run = code.run || !k.runs('unchecked runs') ? undefined : findUncheckedRun(k, block);
      if (run) code.run = { ...run, twice: true };
    });
  }
}
