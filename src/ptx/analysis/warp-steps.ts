// Whether a kernel depends on warps that run in step. Code from before Volta stores to shared
// memory and reads what other lanes have stored there, without a barrier between the two; its
// result depends on the order in which threads run. On a GPU, and in vector lanes, all threads of a
// warp have stored before any of them reads.

import type { Block } from './blocks.js';
import { successors } from './blocks.js';
import type { Inst } from './program.js';

/** After a volatile access the other threads get their turn anyway. */
const isPlain = ({ modifiers }: Inst): boolean =>
  modifiers.some((word) => word === 'shared' || word === 'shared::cta') &&
  !modifiers.includes('volatile');

/**
 * Whether a path through the code leads from a store to shared memory to a load from there without
 * a barrier or a warp operation.
 */
export function countsOnWarpSteps(blocks: readonly Block[]): boolean {
  /** Blocks that begin after such a store. */
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
