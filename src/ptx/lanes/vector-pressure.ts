// How many vectors a kernel needs at once: varying values, for each group of four.

import { successors } from '../analysis/blocks.js';
import type { Block } from '../analysis/blocks.js';
import { instructionsOf } from '../analysis/liveness.js';
import type { Liveness } from '../analysis/liveness.js';
import type { Register } from '../analysis/program.js';

/** Predicates do not count: most decide a branch and are not used again. */
export function vectorPressure(
  blocks: readonly Block[],
  order: readonly number[],
  liveness: Liveness,
  isVarying: (register: Register) => boolean,
): number {
  let most = 0;
  for (const index of order) {
    const block = blocks[index]!;
    const live = new Set<Register>();
    let count = 0;
    const vectors = ({ type }: Register): number =>
      type.kind === 'predicate' ? 0 : type.bits === 64 ? 2 : 1;
    const add = (register: Register): void => {
      if (live.has(register) || !isVarying(register)) return;
      live.add(register);
      count += vectors(register);
    };
    for (const to of successors(block)) liveness.liveIn(to).forEach(add);
    most = Math.max(most, count);
    for (const inst of [...instructionsOf(block)].reverse()) {
      for (const register of inst.defs) if (live.delete(register)) count -= vectors(register);
      inst.uses.forEach(add);
      most = Math.max(most, count);
    }
  }
  return most;
}
