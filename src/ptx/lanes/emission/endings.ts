// The end of a basic block: branches, returns, and the cuts at which threads are suspended.

import type { Block } from '../../analysis/blocks.js';
import { emitBarrierArrival, emitWarpArrival } from '../../emit/arrivals.js';
import { STATE } from '../../emit/frame-layout.js';
import { emitEndWholeTurn } from '../block-passes.js';
import type { LaneKernelEmitter } from '../lane-kernel.js';
import { emitTogether, goesTogether, pushTogether } from '../warp.js';
import { emitAgreed } from './agreement.js';
import { clearActive, jumpTo, leaveKernel, partThreads, sendTo } from './divergence.js';
import { suspendBefore } from './frames.js';

export function emitEnding(k: LaneKernelEmitter, block: Block): void {
  const { code, plan } = k;
  const { ending, index } = block;
  if ('inst' in ending) k.inst = ending.inst;
  const soft = !k.everyone && (!plan.convergent(index) || plan.parts(index));
  switch (ending.kind) {
    case 'jump':
      if (soft) sendTo(k, index, ending.to);
      else jumpTo(k, index, ending.to);
      return;
    case 'branch': {
      const { register, negated } = ending.inst.predicate!;
      const { yes, no } = ending;
      if (yes === no) {
        if (soft) sendTo(k, index, yes);
        else jumpTo(k, index, yes);
      } else if (k.everyone && !k.isUniform(register)) {
        emitAgreed(k, block);
      } else if (plan.parts(index) && !k.everyone) {
        partThreads(k, index, register, negated, yes, no);
      } else {
        code.get(k.registerLocal(register));
        if (negated) code.op('i32.eqz');
        if (soft) {
          code.op('if').byte(0x40);
          k.nest(() => {
            sendTo(k, index, yes);
            code.op('else');
            sendTo(k, index, no);
          });
          code.op('end');
        } else {
          k.when(() => {
            jumpTo(k, index, yes, false);
          });
          jumpTo(k, index, no);
        }
      }
      return;
    }
    case 'return':
    case 'exit':
      leaveKernel(k, soft);
      if (!soft) {
        endTurn(k, STATE.exited);
        return;
      }
      break;
    case 'trap':
      code.get(k.ctx).get(k.base);
      k.pushBits(k.active);
      code.op('i32.ctz').op('i32.add').i32(ending.inst.source.line);
      k.call(`fault_${ending.inst.mnemonic}`);
      k.leaveFaulted();
      return;
    case 'cut': {
      const { inst } = ending;
      if (!goesTogether(k, inst)) {
        const state = suspendAtCut(k, ending, index);
        if (!soft) {
          endTurn(k, state);
          return;
        }
        break;
      }
      for (const register of inst.defs) {
        if (k.isVarying(register)) k.laneLocal(register);
        else k.registerLocal(register);
      }
      if (k.frames.passing.has(index)) {
        emitTogether(k, inst);
        if (soft) sendTo(k, index, ending.to);
        else jumpTo(k, index, ending.to);
        return;
      }
      pushTogether(k, inst);
      code.op('if').byte(0x40);
      k.nest(() => {
        emitTogether(k, inst);
        if (soft) sendTo(k, index, ending.to);
        else jumpTo(k, index, ending.to);
      });
      k.endInstruction();
      code.op('else');
      k.nest(() => {
        suspendAtCut(k, ending, index);
        if (soft) clearActive(k);
        else k.branchTo(k.turnLabel);
      });
      code.op('end');
      return;
    }
    case 'switch':
      throw k.unsupported();
  }
  if (soft) clearActive(k);
  else k.branchTo(k.turnLabel);
}

/** A turn is over whose threads all are in a state now. */
export function endTurn(k: LaneKernelEmitter, state: number): void {
  const { passes } = k;
  if (!passes || !k.everyone) {
    k.branchTo(k.turnLabel);
    return;
  }
  emitEndWholeTurn(k.code, passes, state);
  k.branchTo(k.endedLabel);
}

/** The active threads wait at a cut. Their state is returned. */
export function suspendAtCut(
  k: LaneKernelEmitter,
  ending: Block['ending'] & { kind: 'cut' },
  index: number,
): number {
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
