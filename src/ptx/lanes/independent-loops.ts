// Loops whose threads come to their end, or run forever, whatever other threads do: no branch in
// them depends on memory that others may write. Threads that have left such a loop may wait for the
// rest of their unit even while it is suspended; in other loops the rest may be waiting for them.

import type { Block } from '../analysis/blocks.js';
import { instructionsOf } from '../analysis/liveness.js';
import type { Inst } from '../analysis/program.js';
import type { Region } from '../analysis/regions.js';
import { isPure } from './spread.js';

const CLOCKS = /^(clock|globaltimer)/;

/**
 * Other threads may determine the instruction's result, even if they do not determine its operands.
 */
function isInformed(inst: Inst): boolean {
  if (inst.mnemonic === 'ld' || inst.mnemonic === 'ldu')
    return !inst.modifiers.some((word) => word === 'param' || word === 'const' || word === 'nc');
  return !isPure(inst) || inst.args.some((arg) => arg.kind === 'special' && CLOCKS.test(arg.name));
}

export function isIndependentLoop(blocks: readonly Block[], { members }: Region): boolean {
  const inside = [...members].map((index) => blocks[index]!);
  const informed = new Set<number>();
  for (let grows = true; grows;) {
    grows = false;
    for (const block of inside) {
      for (const inst of instructionsOf(block)) {
        if (!isInformed(inst) && !inst.uses.some(({ id }) => informed.has(id))) continue;
        for (const { id } of inst.defs) {
          if (informed.has(id)) continue;
          informed.add(id);
          grows = true;
        }
      }
    }
  }
  return inside.every((block) =>
    [...instructionsOf(block)].every(
      ({ predicate }) => !predicate || !informed.has(predicate.register.id),
    ),
  );
}
