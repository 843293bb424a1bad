// Whether a kernel counts on warps that run in step. Code of before Volta stores to shared memory
// and reads what other lanes have stored there with nothing between the two that threads wait at;
// what it gives then depends on the order in which threads run. On a GPU, and where a warp's
// threads run side by side, all have stored before any reads.

import type { Block } from './blocks.js';
import { successors } from './blocks.js';
import type { Inst } from './program.js';

/** A volatile access is one behind which the others have their turn as it is. */
const isPlain = ({ modifiers }: Inst): boolean =>
  modifiers.some((word) => word === 'shared' || word === 'shared::cta') &&
  !modifiers.includes('volatile');

/**
 * Whether some way through the code leads from a store to shared memory to a load from there
 * without a barrier or an operation of the warp.
 */
export function countsOnWarpSteps(blocks: readonly Block[]): boolean {
  /** Blocks that begin behind such a store. */
  const behind = new Set<number>();
  const queue = blocks.map((_, index) => index);
  for (let index = queue.pop(); index !== undefined; index = queue.pop()) {
    const block = blocks[index]!;
    let stored = behind.has(index);
    for (const inst of block.insts) {
      if (inst.mnemonic === 'st' && isPlain(inst)) stored = true;
      else if (stored && inst.mnemonic === 'ld' && isPlain(inst)) return true;
    }
    const { ending } = block;
    if (!stored || (ending.kind === 'cut' && ending.cut !== 'sleep')) continue;
    for (const next of successors(block)) {
      if (behind.has(next)) continue;
      behind.add(next);
      queue.push(next);
    }
  }
  return false;
}
