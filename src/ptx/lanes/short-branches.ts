// Branches around a few instructions, as in `if (laneid == 0) sums[warp] = sum`: code for whole
// units does not hand over if its threads diverge at such a branch. The instructions run there as
// if each had the branch's predicate.

import type { Block } from '../analysis/blocks.js';
import type { Inst, Register } from '../analysis/program.js';
import type { CodePlan } from './code-plan.js';
import type { LaneEmitter } from './lane-emitter.js';
import type { LaneKernelEmitter } from './lane-kernel.js';
import type { LanePlan } from './plan.js';
import { isPure, steps } from './spread.js';

/** A block that some threads run on their way to the block where all of them continue. */
export interface ShortSide {
  block: Block;
  /** The block where they reconverge. */
  join: number;
  /** The block runs for the threads for which the branch's predicate is false. */
  negated: boolean;
}

/** The most instructions that are worth a copy. */
const LONGEST = 12;

/**
 * The side of the branch at the end of a block that can run under its predicate. `order` is that of
 * the layout.
 */
function shortSide(
  e: LaneEmitter,
  plan: LanePlan,
  blocks: readonly Block[],
  { index, ending }: Block,
  order: readonly number[],
): ShortSide | undefined {
  if (ending.kind !== 'branch' || !plan.parts(index)) return undefined;
  const { register, negated } = ending.inst.predicate!;
  for (const [side, join] of [
    [ending.yes, ending.no],
    [ending.no, ending.yes],
  ] as const) {
    const block = blocks[side]!;
    if (block.ending.kind !== 'jump' || block.ending.to !== join) continue;
    // Control only goes forward.
    if (order.indexOf(index) >= order.indexOf(side) || order.indexOf(side) >= order.indexOf(join))
      continue;
    if (
      block.insts.length > LONGEST ||
      !block.insts.every((inst) => runsUnder(e, plan, inst, register))
    )
      continue;
    return { block, join, negated: negated === (side === ending.yes) };
  }
  return undefined;
}

/**
 * Whether an instruction may run for the threads for which a predicate holds, and for them only.
 */
function runsUnder(e: LaneEmitter, plan: LanePlan, inst: Inst, predicate: Register): boolean {
  const { mnemonic, defs } = inst;
  if (inst.predicate || defs.includes(predicate)) return false;
  if (isPure(inst)) return defs.every((register) => e.isVarying(register) || e.isOwn(register));
  // What the unit does once would be done by the first thread, which may not be one of them.
  return (
    (mnemonic === 'ld' || mnemonic === 'st') &&
    steps(plan.result(inst), e.width) === undefined &&
    defs.every((register) => e.isVarying(register))
  );
}

/** A pass: branches around a few instructions in the version for whole units. */
export function runShortSides({ whole }: CodePlan, k: LaneKernelEmitter): void {
  if (!whole) return;
  const { blocks, shape } = k.kernel;
  k.inVersion(true, () => {
    for (const { block, steps, ending } of whole.blocks.values()) {
      const side = shortSide(k, k.plan, blocks, block, shape.order);
      if (!side) continue;
      ending.side = side;
      // If the block's comparison is its last instruction, only the branch is left of the block.
      const { register } = (block.ending as Block['ending'] & { kind: 'branch' }).inst.predicate!;
      const last = steps.find(({ inst }) => inst === block.insts.at(-1));
      if (last?.uniform && last.inst.defs[0] === register && k.isBlockLocal(register))
        last.uniform.side = side;
    }
  });
}
