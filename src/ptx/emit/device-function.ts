// A device function that is not inlined: a recursive one, one that is called through a pointer, or
// a large one without loops. It runs to its end without suspension.

import type { Block } from '../analysis/blocks.js';
import { alignUp } from '../analysis/data-layout.js';
import type { Liveness } from '../analysis/liveness.js';
import type { LoweredFunction, Register } from '../analysis/program.js';
import type { Shape } from '../analysis/regions.js';
import { CTX, FAULT } from '../context.js';
import type { Rules } from '../rules/rule.js';
import type { Signature } from '../wasm/signature.js';
import type { LocalType } from '../scalar-types.js';
import { Bytes } from '../wasm/bytes.js';
import { emitFrameCheck } from './check.js';
import { callSignature, isAggregate } from './calling.js';
import { ControlFlowEmitter } from './control-flow.js';
import type { Surroundings } from './surroundings.js';

/**
 * A call needs at least this much room, so that the end of the stack limits the depth of recursion.
 */
export const LEAST_FRAME = 640;

export class DeviceFunctionEmitter extends ControlFlowEmitter {
  readonly ctx = 0;
  readonly thread = 1;
  private readonly stack = 2;
  readonly paramBytes = undefined;
  readonly signature: Signature;
  private readonly lowered: LoweredFunction;
  private readonly frameBytes: number;

  constructor(
    lowered: LoweredFunction,
    blocks: readonly Block[],
    shape: Shape,
    liveness: Liveness,
    rules: Rules,
    around: Surroundings,
  ) {
    super(around, blocks, shape, liveness, rules);
    this.lowered = lowered;
    this.signature = callSignature(lowered.source);
    this.paramCount = this.signature.params.length;
    this.frameBytes = Math.max(alignUp(lowered.frameBytes, 16), LEAST_FRAME);
  }

  protected override paramType(index: number): LocalType {
    return this.signature.params[index]!;
  }

  protected override get resultTypes(): readonly LocalType[] {
    return this.signature.results;
  }

  protected override get results(): readonly Register[] {
    return this.lowered.results;
  }

  pushFrame(): void {
    this.code.get(this.stack);
  }

  pushStack(): void {
    this.code.get(this.stack).i32(this.frameBytes).op('i32.add');
  }

  pushLocalEnd(): void {
    this.code.op('global.get').u32(this.around.linker.globalIndex('stackEnd'));
  }

  pushThreadIndex(axis: 0 | 1 | 2): void {
    this.code.get(
      this.hoist(`tid:${axis}`, 'i32', (code) => {
        code.get(this.thread);
        const size = (index: number): void => {
          code.get(this.ctx).memory('i32.load', CTX.blockDim + 4 * index);
        };
        if (axis > 0) {
          size(0);
          code.op('i32.div_u');
        }
        if (axis > 1) {
          size(1);
          code.op('i32.div_u');
        } else {
          size(axis);
          code.op('i32.rem_u');
        }
      }),
    );
  }

  /** A caller that unwinds ignores the results. */
  private pushDummyResults(): void {
    for (const type of this.signature.results) {
      if (type === 'i64') this.code.i64(0);
      else this.code.i32(0);
    }
  }

  // Functions that arrive at the cluster's barrier are inlined.
  readonly waitsForCluster = false;

  leaveFaulted(): void {
    this.pushDummyResults();
    this.code.op('return');
  }

  unwind(): void {
    this.leaveFaulted();
  }

  protected leave(block: Block): void {
    const { code } = this;
    const { ending } = block;
    switch (ending.kind) {
      case 'return': {
        const { returns } = this.lowered.source;
        returns.forEach((variable, index) => {
          if (isAggregate(variable)) return;
          const register = this.lowered.results[index]!;
          code.get(this.registerLocal(register));
          this.convertBits(register.type.wasm, register.type.bits === 64 ? 'i64' : 'i32');
        });
        code.op('return');
        return;
      }
      case 'exit':
        code.i32(1).op('global.set').u32(this.around.linker.globalIndex('unwind'));
        this.leaveFaulted();
        return;
      case 'trap':
        code.get(this.ctx).get(this.thread).i32(ending.inst.source.line);
        this.call(`fault_${ending.inst.mnemonic}`);
        this.leaveFaulted();
        return;
      default:
        if ('inst' in ending && ending.kind === 'cut' && ending.cut === 'sleep')
          throw this.unsupported('waiting in a recursive function is');
        throw this.unsupported('waiting in a function that is called through a pointer is');
    }
  }

  protected backEdge(header: number, again: () => void): void {
    this.pushFuel(1);
    again();
    this.runAway();
  }

  /**
   * A function cannot be suspended: after 2^32 back edges, or 2^30 calls, in one turn of its block
   * it counts as endless. Zero is on the stack then.
   */
  private pushFuel(cost: 1 | 4): void {
    const fuel = this.around.linker.globalIndex('callFuel');
    this.code
      .op('global.get')
      .u32(fuel)
      .i32(cost)
      .op('i32.sub')
      .op('global.set')
      .u32(fuel)
      .op('global.get')
      .u32(fuel)
      .i32(2)
      .op('i32.shr_u');
  }

  private runAway(): void {
    this.code
      .get(this.ctx)
      .i32(FAULT.runaway)
      .get(this.thread)
      .i32(this.lowered.source.line)
      .i64(0);
    this.call('fault');
    this.leaveFaulted();
  }

  emit(): { locals: readonly LocalType[]; code: Uint8Array } {
    const { code, lowered } = this;
    // Parameters arrive as bits; those of float registers are moved, the others are named in place.
    const aggregates = lowered.source.returns.filter(isAggregate).length;
    let at = 3;
    lowered.source.returns.forEach((variable, index) => {
      if (isAggregate(variable)) this.bindRegister(lowered.results[index]!, at++);
    });
    lowered.params.forEach((register, index) => {
      const from = this.signature.params[3 + aggregates + index]!;
      if (from === register.type.wasm) {
        this.bindRegister(register, at++);
        return;
      }
      code.get(at++);
      this.convertBits(from, register.type.wasm);
      code.set(this.registerLocal(register));
    });
    // Recursion ends at the end of the stack, but a function that calls itself twice would take too
    // long to get there.
    this.pushFuel(4);
    code.op('i32.eqz');
    this.when(() => {
      this.runAway();
    });
    // The caller aligns to 16 bytes.
    if (lowered.frameAlign > 16)
      code
        .get(this.stack)
        .i32(lowered.frameAlign - 1)
        .op('i32.add')
        .i32(-lowered.frameAlign)
        .op('i32.and')
        .set(this.stack);
    // The stack has to have room for this frame.
    code
      .get(this.stack)
      .i32(this.frameBytes)
      .op('i32.add')
      .op('global.get')
      .u32(this.around.linker.globalIndex('stackEnd'))
      .op('i32.gt_u');
    this.when(() => {
      code.get(this.ctx).i32(FAULT.stackOverflow).get(this.thread).i32(lowered.source.line).i64(0);
      this.call('fault');
      this.leaveFaulted();
    });
    if (this.around.check) emitFrameCheck(this, lowered);
    this.emitFlow();
    code.op('unreachable').op('end');
    return {
      locals: this.localTypes,
      code: new Bytes().append(this.prologue.finish()).append(code.finish()).finish(),
    };
  }
}
