// Loops of one block whose threads go through memory side by side, to another place in each turn.
// Units that keep step find the cache lines of adjacent units in the cache: their turns are short.

import type { Block } from '../analysis/blocks.js';
import type { Register } from '../analysis/program.js';
import { loopsIn } from '../analysis/regions.js';
import type { Region } from '../analysis/regions.js';
import type { CodePlan } from './code-plan.js';
import type { LaneEmitter } from './lane-emitter.js';
import type { LaneKernelEmitter } from './lane-kernel.js';
import { access } from './places.js';
import { registersOfGridSize } from './side-by-side.js';

/**
 * How often a unit goes round a loop through memory in one turn. With 64 blocks of 256 threads over
 * 64 MB, 8 times gave 2.85 ms and 6 times 2.95, and on another machine 3.4 and 3.2, where 4 times
 * gave 3.7 and 16 times 3.9. Places at distances of powers of two share a first-level cache's few
 * lines, of which a unit's part takes two for each time.
 */
export const BURST = 8;

/**
 * The bytes that a thread moves at a time in a loop for which blocks run side by side: a histogram
 * of bytes is 3 % slower with them.
 */
const SMALLEST_STRIDING = 4;

/** A pass: the turns of such loops of whole units are short. */
export function shortenTurns(code: CodePlan, k: LaneKernelEmitter): void {
  if (!code.whole) return;
  k.inVersion(true, () => {
    const { blocks, shape } = k.kernel;
    code.shortLoops = new Set(
      loopsIn(shape.root)
        .filter((region) => isStreamingLoop(k, blocks, region))
        .map(({ header }) => header),
    );
  });
}

/** A pass: blocks whose short turns have the stride of the grid may run side by side. */
export function runSideBySide(code: CodePlan, k: LaneKernelEmitter): void {
  if (!code.shortLoops.size) return;
  const { blocks, shape } = k.kernel;
  const ofGridSize = registersOfGridSize(blocks, shape.order);
  k.inVersion(true, () => {
    code.strides = [...code.shortLoops].some((header) =>
      streamedAddresses(k, blocks[header]!, SMALLEST_STRIDING).some(({ id }) => ofGridSize.has(id)),
    );
  });
}

/** Whether some threads leave such a loop before others. */
function isStreamingLoop(
  k: LaneKernelEmitter,
  blocks: readonly Block[],
  { header, members }: Region,
): boolean {
  return (
    members.size === 1 && k.plan.parts(header) && streamedAddresses(k, blocks[header]!).length > 0
  );
}

/** The registers with the addresses of such accesses, of at least this many bytes. */
function streamedAddresses(e: LaneEmitter, block: Block, smallest = 1): Register[] {
  const moved = new Set(block.insts.flatMap((inst) => inst.defs));
  return block.insts.flatMap((inst) => {
    if (inst.mnemonic !== 'ld' && inst.mnemonic !== 'st') return [];
    e.inst = inst;
    const found = access(
      e,
      inst.args[inst.mnemonic === 'st' ? 0 : 1],
      inst.args[inst.mnemonic === 'st' ? 1 : 0],
    );
    return found !== undefined &&
      !found.shared &&
      found.stride === found.size &&
      found.size >= smallest &&
      moved.has(found.address.base!)
      ? [found.address.base!]
      : [];
  });
}
