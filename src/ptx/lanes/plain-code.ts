// The plan of a kernel's code before any pass: one version, with masks, in which each instruction
// is independent. `completeCode` adds what follows from the plan after the passes.

import type { Block } from '../analysis/blocks.js';
import type { Register } from '../analysis/program.js';
import type { BlockCode, CodePlan, EndingForm, Step, Version } from './code-plan.js';
import type { LaneKernelEmitter } from './lane-kernel.js';
import { goesTogether } from './warp.js';

export function plainCode(k: LaneKernelEmitter): CodePlan {
  return {
    general: plainVersion(k),
    whole: undefined,
    hoisted: new Set(),
    ownLoop: false,
    shortLoops: new Set(),
    prefetched: undefined,
    byGroup: false,
    strides: false,
  };
}

export function plainVersion({ kernel: { blocks, shape } }: LaneKernelEmitter): Version {
  return {
    blocks: new Map(shape.order.map((index) => [index, plainBlock(blocks[index]!)])),
    order: undefined,
  };
}

const plainBlock = (block: Block): BlockCode => ({
  block,
  steps: block.insts.map((inst) => ({
    inst,
    last: [],
    uniform: undefined,
    checks: undefined,
    anchor: undefined,
  })),
  run: undefined,
  entries: new Map(),
  spilled: [],
  ending: { soft: false, form: 'jump', side: undefined },
});

/** Completes the ends of blocks, spills, and the last uses of registers. */
export function completeCode({ general, whole }: CodePlan, k: LaneKernelEmitter): void {
  for (const version of whole ? [general, whole] : [general]) {
    k.inVersion(version === whole, () => {
      for (const code of version.blocks.values()) complete(k, code);
    });
  }
}

function complete(k: LaneKernelEmitter, code: BlockCode): void {
  const { block, steps, ending } = code;
  ending.soft = !k.wholeUnit && (!k.plan.convergent(block.index) || k.plan.parts(block.index));
  ending.form = formOf(k, block);
  code.spilled = k.frames.spills.early(block.index);
  findLastUses(k, block, steps);
}

function formOf(k: LaneKernelEmitter, { index, ending }: Block): EndingForm {
  switch (ending.kind) {
    case 'jump':
      return 'jump';
    case 'branch': {
      if (ending.yes === ending.no) return 'jump';
      const { register } = ending.inst.predicate!;
      if (k.wholeUnit) return k.isUniform(register) ? 'branch' : 'agree';
      return k.plan.parts(index) ? 'part' : 'branch';
    }
    case 'return':
    case 'exit':
      return 'leave';
    case 'trap':
      return 'fault';
    case 'cut':
      if (!goesTogether(k, ending.inst)) return 'wait';
      return k.frames.passing.has(index) ? 'exchange' : 'exchange or wait';
    case 'switch':
    case 'part':
      return 'table';
  }
}

/** The last uses of registers that the end of the block reads. */
function findLastUses(k: LaneKernelEmitter, { ending }: Block, steps: readonly Step[]): void {
  const last = new Map<Register, number>();
  steps.forEach(({ inst }, index) => {
    for (const register of [...inst.uses, ...inst.defs])
      if (k.isBlockLocal(register)) last.set(register, index);
  });
  if ('inst' in ending) for (const register of ending.inst.uses) last.delete(register);
  steps.forEach((step, index) => {
    step.last = [...step.inst.uses, ...step.inst.defs].filter(
      (register) => last.get(register) === index,
    );
  });
}
