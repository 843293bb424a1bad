// The end of a basic block: branches, returns, and the cuts at which threads are suspended.

import type { Block } from '../../analysis/blocks.js';
import { emitBarrierArrival, emitWarpArrival } from '../../emit/arrivals.js';
import { STATE } from '../../emit/frame-layout.js';
import { emitEndWholeTurn } from '../block-passes.js';
import type { BlockCode } from '../code-plan.js';
import type { LaneKernelEmitter } from '../lane-kernel.js';
import { emitTogether, pushTogether } from '../warp.js';
import { emitAgreed } from './agreement.js';
import { clearActive, jumpTo, leaveKernel, partThreads, sendTo } from './divergence.js';
import { suspendBefore } from './frames.js';

type Branch = Block['ending'] & { kind: 'branch' };
type Cut = Block['ending'] & { kind: 'cut' };

export function emitEnding(k: LaneKernelEmitter, block: BlockCode): void {
  const { ending, index } = block.block;
  const { form, soft } = block.ending;
  if ('inst' in ending) k.inst = ending.inst;
  switch (form) {
    case 'jump':
      goTo(k, block, ending.kind === 'jump' ? ending.to : (ending as Branch).yes);
      return;
    case 'branch':
      emitBranch(k, block);
      return;
    case 'agree':
      emitAgreed(k, block);
      return;
    case 'part': {
      const { inst, yes, no } = ending as Branch;
      const { register, negated } = inst.predicate!;
      partThreads(k, index, register, negated, yes, no);
      return;
    }
    case 'leave':
      leaveKernel(k, soft);
      if (soft) clearActive(k);
      else endTurn(k, STATE.exited);
      return;
    case 'fault':
      emitFault(k, block.block.ending as Block['ending'] & { kind: 'trap' });
      return;
    case 'wait': {
      const state = suspendAtCut(k, ending as Cut, index);
      if (soft) clearActive(k);
      else endTurn(k, state);
      return;
    }
    case 'exchange':
      takeResults(k, ending as Cut);
      emitTogether(k, (ending as Cut).inst);
      goTo(k, block, (ending as Cut).to);
      return;
    case 'exchange or wait':
      emitExchange(k, block);
      return;
    case 'table':
      throw k.unsupported();
  }
}

/** All active threads continue at one block. */
function goTo(k: LaneKernelEmitter, { block, ending }: BlockCode, to: number): void {
  if (ending.soft) sendTo(k, block.index, to);
  else jumpTo(k, block.index, to);
}

/** A branch by a predicate that is uniform in the unit. */
function emitBranch(k: LaneKernelEmitter, { block, ending: { soft } }: BlockCode): void {
  const { code } = k;
  const { index } = block;
  const { inst, yes, no } = block.ending as Branch;
  const { register, negated } = inst.predicate!;
  code.get(k.registerLocal(register));
  if (negated) code.op('i32.eqz');
  if (!soft) {
    k.when(() => {
      jumpTo(k, index, yes, false);
    });
    jumpTo(k, index, no);
    return;
  }
  code.op('if').byte(0x40);
  k.nest(() => {
    sendTo(k, index, yes);
    code.op('else');
    sendTo(k, index, no);
  });
  code.op('end');
}

function emitFault(k: LaneKernelEmitter, { inst }: Block['ending'] & { kind: 'trap' }): void {
  k.code.get(k.ctx).get(k.base);
  k.pushBits(k.active);
  k.code.op('i32.ctz').op('i32.add').i32(inst.source.line);
  k.call(`fault_${inst.mnemonic}`);
  k.leaveFaulted();
}

/** Registers that are written within a condition get their locals before it. */
function takeResults(k: LaneKernelEmitter, { inst }: Cut): void {
  for (const register of inst.defs) {
    if (k.isVarying(register)) k.laneLocal(register);
    else k.registerLocal(register);
  }
}

/** A warp operation: at once if all of its threads have reached it, else they wait. */
function emitExchange(k: LaneKernelEmitter, block: BlockCode): void {
  const { code } = k;
  const ending = block.block.ending as Cut;
  takeResults(k, ending);
  pushTogether(k, ending.inst);
  code.op('if').byte(0x40);
  k.nest(() => {
    emitTogether(k, ending.inst);
    goTo(k, block, ending.to);
  });
  k.endInstruction();
  code.op('else');
  k.nest(() => {
    suspendAtCut(k, ending, block.block.index);
    if (block.ending.soft) clearActive(k);
    else k.branchTo(k.turnLabel);
  });
  code.op('end');
}

/** Ends a turn all of whose threads have one state now. */
function endTurn(k: LaneKernelEmitter, state: number): void {
  const { passes } = k;
  if (!passes || !k.wholeUnit) {
    k.branchTo(k.turnLabel);
    return;
  }
  emitEndWholeTurn(k.code, passes, state);
  k.branchTo(k.endedLabel);
}

/** The active threads wait at a cut. Returns their state. */
function suspendAtCut(k: LaneKernelEmitter, ending: Cut, index: number): number {
  const { inst } = ending;
  const entry = k.frames.entryOf.get(ending.to)!;
  if (ending.cut === 'sleep') {
    k.emitInst(inst);
    suspendBefore(k, entry, ending.to);
    return entry;
  }
  k.inst = inst;
  if (ending.cut === 'warp')
    k.forEachThread(true, inst.uses, [], () => {
      emitWarpArrival(k, inst, index);
    });
  else if (k.kernel.barriers === 'general')
    k.forEachThread(true, inst.uses, [], () => {
      emitBarrierArrival(k, inst);
    });
  const state = (ending.cut === 'warp' ? STATE.warp : STATE.barrier) | entry;
  suspendBefore(k, state, ending.to);
  return state;
}
