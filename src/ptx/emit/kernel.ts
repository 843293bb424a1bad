// Writes a kernel as a function that runs a range of a block's threads, one after the other, each
// to its next cut. Registers that are live at a cut are written to the thread's frame; constants of
// the block are computed once for each call.

import { threadSlice } from '../analysis/blocks.js';
import type { Block } from '../analysis/blocks.js';
import type { Inst, LoweredFunction, Register } from '../analysis/program.js';
import { CTX, STATUS } from '../context.js';
import { alignUp } from '../analysis/data-layout.js';
import { planFrameTraffic } from '../analysis/frame-traffic.js';
import type { FrameTraffic } from '../analysis/frame-traffic.js';
import { rematerialisable } from '../analysis/rematerialise.js';
import type { Rules } from '../rules/rule.js';
import type { Liveness } from '../analysis/liveness.js';
import type { Shape } from '../analysis/regions.js';
import type { SchedulerNeeds } from '../runtime/scheduler.js';
import { ControlFlowEmitter } from './control-flow.js';
import type { Surroundings } from './surroundings.js';
import { emitArrivalCheck } from './check.js';
import { CALL_STACK_BYTES, STATE } from './frame-layout.js';
import type { FrameLayout } from './frame-layout.js';
import type { EntryPlace } from './waiting.js';
import { matricesBase, pushMailbox, statesBase } from './scratch-places.js';
import {
  emitBarrierArrival,
  emitWarpArrival,
  emitWarpResult,
  isPlainBarrier,
  waitsForCluster,
} from './arrivals.js';
import { signatureOf } from '../signatures.js';
import { matrixRoom } from './matrix-arrivals.js';
import type { LocalType } from '../scalar-types.js';
import { Bytes } from '../wasm/bytes.js';
import type { Code } from '../wasm/code.js';

/**
 * For a kernel that is several functions: the entries of all of them. For one of these functions:
 * what all have in common, and its blocks.
 */
type Divided =
  | { readonly entries: readonly number[] }
  | { readonly whole: KernelEmitter; readonly members: ReadonlySet<number> };

export class KernelEmitter extends ControlFlowEmitter {
  readonly ctx = 0;
  private readonly from: number;
  private readonly to: number;
  readonly thread: number;
  readonly layout: FrameLayout;
  readonly paramBytes: number;
  readonly barriers: SchedulerNeeds['barriers'];
  private readonly slots: Map<number, number>;
  private readonly traffic: FrameTraffic;
  readonly remade: ReadonlyMap<number, Inst>;
  private readonly threadLabel = {};
  private readonly nextLabel = {};
  private readonly suspendLabel = {};
  private readonly indexLocals: [number, number, number] = [-1, -1, -1];
  private frameLocal = -1;
  private localAddress = -1;
  private slice = -1;
  private fuel = -1;
  private granted = -1;
  private allowance = -1;
  private readonly threadSlice: number;
  /** For one of several functions, its own blocks. */
  private readonly members: ReadonlySet<number> | undefined;

  readonly lowered: LoweredFunction;

  constructor(
    lowered: LoweredFunction,
    blocks: readonly Block[],
    shape: Shape,
    liveness: Liveness,
    rules: Rules,
    around: Surroundings,
    callsFunctions: boolean,
    divided?: Divided,
  ) {
    super(around, blocks, shape, liveness, rules);
    this.threadSlice = threadSlice(blocks);
    this.paramBytes = signatureOf(lowered.source).paramBytes;
    this.lowered = lowered;
    const cuts = shape.order
      .map((index) => blocks[index]!)
      .filter((block) => block.ending.kind === 'cut');
    // Warps can only take turns in another order if the scheduler calls them one by one.
    const stateful = shape.hasLoops || cuts.length > 0 || around.ordered || divided !== undefined;
    // With state, it is a function (ctx, from, to) that the scheduler calls. Without, it is the
    // exported (ctx, fuel) itself.
    this.paramCount = stateful ? 3 : 2;
    this.from = stateful ? 1 : this.newLocal('i32');
    this.to = stateful ? 2 : this.newLocal('i32');
    this.thread = this.newLocal('i32');
    if (divided && 'whole' in divided) {
      const { whole } = divided;
      this.members = divided.members;
      for (const entry of whole.entries) this.addEntry(entry);
      ({
        threadSlice: this.threadSlice,
        barriers: this.barriers,
        remade: this.remade,
        slots: this.slots,
        traffic: this.traffic,
        layout: this.layout,
      } = whole);
      return;
    }
    this.members = undefined;
    this.slots = new Map();
    for (const entry of divided?.entries ?? []) this.addEntry(entry);
    if (stateful) {
      for (const header of shape.loopHeaders) this.addEntry(header);
      for (const target of shape.irregularTargets) this.addEntry(target);
      for (const block of cuts) if (block.ending.kind === 'cut') this.addEntry(block.ending.to);
    }
    const usesBarriers = cuts.some(
      ({ ending }) => ending.kind === 'cut' && ending.cut === 'barrier',
    );
    const onlyPlain =
      cuts.every(
        ({ ending }) =>
          ending.kind !== 'cut' || ending.cut !== 'barrier' || isPlainBarrier(ending.inst),
      ) &&
      !blocks.some((block) =>
        block.insts.some((inst) => inst.mnemonic === 'bar' || inst.mnemonic === 'barrier'),
      );
    this.barriers = !usesBarriers ? 'none' : onlyPlain ? 'plain' : 'general';
    this.remade = rematerialisable(blocks, lowered.registers);
    // Wider cells come first, so that every cell is aligned.
    const spilled = new Set<Register>();
    for (const entry of this.entries)
      for (const register of liveness.liveIn(entry))
        if (!this.remade.has(register.id)) spilled.add(register);
    let end = 0;
    for (const wide of [true, false]) {
      for (const register of spilled) {
        if ((register.type.bits === 64) !== wide) continue;
        this.slots.set(register.id, end);
        end += wide ? 8 : 4;
      }
    }
    this.traffic = planFrameTraffic(
      blocks,
      shape,
      this.entries,
      liveness,
      this.slots,
      divided !== undefined,
    );
    const rooms = cuts.map(({ ending }) =>
      ending.kind === 'cut' ? matrixRoom(ending.inst) : { operands: 0, results: 0 },
    );
    const matrixOperandBytes = alignUp(Math.max(0, ...rooms.map(({ operands }) => operands)), 16);
    this.layout = {
      stateful,
      cluster: cuts.some(({ ending }) => ending.kind === 'cut' && waitsForCluster(ending.inst)),
      mail:
        this.barriers === 'general' ||
        cuts.some(({ ending }) => ending.kind === 'cut' && ending.cut === 'warp'),
      matrixBytes:
        matrixOperandBytes + alignUp(Math.max(0, ...rooms.map(({ results }) => results)), 16),
      matrixOperandBytes,
      frameBytes: alignUp(end, 8),
      localBytes: alignUp(lowered.frameBytes, lowered.frameAlign),
      localAlign: lowered.frameAlign,
      callStack: callsFunctions,
    };
  }

  /** For each entry, the wait before it, or the first line of its loop. */
  get entryPlaces(): EntryPlace[] {
    return this.entries.map((entry) => {
      const cut = this.blocks.find(
        ({ ending }) => ending.kind === 'cut' && ending.to === entry,
      )?.ending;
      if (cut?.kind === 'cut') {
        const {
          mnemonic,
          modifiers,
          source: { line },
        } = cut.inst;
        return { line, instruction: [mnemonic, ...modifiers].join('.') };
      }
      const { insts, ending } = this.blocks[entry]!;
      return {
        line: insts[0]?.source.line ?? ('inst' in ending ? ending.inst.source.line : 0),
        instruction: undefined,
      };
    });
  }

  // Places.

  private framesBase(): number {
    const matrices = matricesBase(this, this.layout);
    const { matrixBytes } = this.layout;
    return this.hoist('frames', 'i32', (code) => {
      code.get(matrices);
      if (matrixBytes) {
        code
          .get(this.contextField('threads'))
          .i32(31)
          .op('i32.add')
          .i32(5)
          .op('i32.shr_u')
          .i32(matrixBytes)
          .op('i32.mul')
          .op('i32.add');
      }
    });
  }

  /**
   * Pushes the address of the results in this warp's area for matrices; operands come before it.
   */
  pushMatrixResults(): void {
    const base = matricesBase(this, this.layout);
    const { matrixBytes, matrixOperandBytes } = this.layout;
    this.code
      .get(base)
      .get(this.thread)
      .i32(5)
      .op('i32.shr_u')
      .i32(matrixBytes)
      .op('i32.mul')
      .op('i32.add')
      .i32(matrixOperandBytes)
      .op('i32.add');
  }

  private localsBase(): number {
    const frames = this.framesBase();
    return this.hoist('locals', 'i32', (code) => {
      code
        .get(frames)
        .get(this.contextField('threads'))
        .i32(this.layout.frameBytes)
        .op('i32.mul')
        .op('i32.add');
      code
        .i32(this.layout.localAlign - 1)
        .op('i32.add')
        .i32(-this.layout.localAlign)
        .op('i32.and');
    });
  }

  get waitsForCluster(): boolean {
    return this.layout.cluster;
  }

  pushFrame(): void {
    if (this.localAddress < 0) this.localAddress = this.newLocal('i32');
    this.code.get(this.localAddress);
  }

  pushStack(): void {
    const locals = this.localsBase();
    this.code.get(
      this.hoist('stack', 'i32', (code) => {
        const { linker } = this.around;
        const threads = this.contextField('threads');
        const end = linker.globalIndex('stackEnd');
        code
          .get(locals)
          .get(threads)
          .i32(this.layout.localBytes)
          .op('i32.mul')
          .op('i32.add')
          .i32(CALL_STACK_BYTES)
          .op('i32.add');
        code.op('global.set').u32(end).i32(0).op('global.set').u32(linker.globalIndex('callFuel'));
        code
          .i32(this.around.dynamicStart!)
          .op('global.set')
          .u32(linker.globalIndex('dynamicStart'));
        code.i32(this.paramBytes).op('global.set').u32(linker.globalIndex('paramBytes'));
        code.op('global.get').u32(end).i32(CALL_STACK_BYTES).op('i32.sub');
      }),
    );
  }

  pushLocalEnd(): void {
    const locals = this.localsBase();
    this.code.get(
      this.hoist('local end', 'i32', (code) => {
        code
          .get(locals)
          .get(this.contextField('threads'))
          .i32(this.layout.localBytes)
          .op('i32.mul')
          .op('i32.add');
        if (this.layout.callStack) code.i32(CALL_STACK_BYTES).op('i32.add');
      }),
    );
  }

  pushThreadIndex(axis: 0 | 1 | 2): void {
    if (this.indexLocals[axis] < 0) this.indexLocals[axis] = this.newLocal('i32');
    this.code.get(this.indexLocals[axis]);
  }

  /** Pushes the address of this thread's mailbox. */
  pushMailbox(): void {
    pushMailbox(this, this.layout);
  }

  leaveFaulted(): void {
    this.code.i32(STATUS.fault).op('return');
  }

  unwind(): void {
    const { code } = this;
    const unwind = this.around.linker.globalIndex('unwind');
    code.op('global.get').u32(unwind).i32(2).op('i32.eq');
    this.when(() => {
      this.leaveFaulted();
    });
    code.i32(0).op('global.set').u32(unwind);
    this.finishThread();
  }

  // The ends of a thread's code.

  protected leave(block: Block): void {
    const { code } = this;
    const { ending } = block;
    switch (ending.kind) {
      case 'return':
      case 'exit':
        this.finishThread();
        return;
      case 'trap':
        code.get(this.ctx).get(this.thread).i32(ending.inst.source.line);
        this.call(`fault_${ending.inst.mnemonic}`);
        this.leaveFaulted();
        return;
      case 'cut': {
        const entry = this.entryOf.get(ending.to)!;
        const { inst } = ending;
        if (ending.cut === 'sleep') {
          this.emitInst(inst);
          this.saveState(entry, ending.to);
        } else {
          if (this.around.check) emitArrivalCheck(this);
          if (ending.cut === 'warp') emitWarpArrival(this, inst, block.index);
          else if (this.barriers === 'general') emitBarrierArrival(this, inst);
          this.saveState(
            (ending.cut === 'warp' ? STATE.warp : STATE.barrier) | entry,
            ending.to,
            inst.defs,
          );
        }
        this.branchTo(this.nextLabel);
        return;
      }
      case 'part':
        this.saveState(this.entryOf.get(ending.to)!, ending.to);
        this.branchTo(this.nextLabel);
        return;
    }
  }

  /** Ends the thread: `exit`, `ret`, or an exit inside a called function. */
  finishThread(): void {
    if (this.layout.stateful) {
      this.pushStateAddress();
      this.code.i32(STATE.exited).memory('i32.store');
    }
    this.branchTo(this.nextLabel);
  }

  private pushStateAddress(): void {
    this.code.get(statesBase(this)).get(this.thread).i32(2).op('i32.shl').op('i32.add');
  }

  private frameAddress(): number {
    if (this.frameLocal < 0) this.frameLocal = this.newLocal('i32');
    const base = this.framesBase();
    this.code
      .get(base)
      .get(this.thread)
      .i32(this.layout.frameBytes)
      .op('i32.mul')
      .op('i32.add')
      .set(this.frameLocal);
    return this.frameLocal;
  }

  private saveState(state: number, target: number, arriving: readonly Register[] = []): void {
    const { code } = this;
    this.pushStateAddress();
    code.i32(state).memory('i32.store');
    const saved = this.liveness
      .liveIn(target)
      .filter((register) => this.traffic.writes(target, register) && !arriving.includes(register));
    if (!saved.length) return;
    const frame = this.frameAddress();
    for (const register of saved) {
      code
        .get(frame)
        .get(this.registerLocal(register))
        .memory(`${register.type.wasm}.store`, this.slots.get(register.id));
    }
  }

  private restore(entry: number): void {
    const { code, slots } = this;
    if (this.members?.has(entry) === false) {
      this.branchTo(this.nextLabel);
      return;
    }
    const needed = this.liveness
      .liveIn(entry)
      .filter((register) => !slots.has(register.id) || this.traffic.reads(entry, register));
    this.restoreEntry(
      entry,
      needed,
      this.blocks,
      this.remade,
      (register) => slots.has(register.id),
      (registers) => {
        const frame = this.frameAddress();
        for (const register of registers)
          code
            .get(frame)
            .memory(`${register.type.wasm}.load`, slots.get(register.id))
            .set(this.registerLocal(register));
      },
      (inst) => {
        emitWarpResult(this, inst);
      },
    );
  }

  protected backEdge(header: number, again: () => void): void {
    const { code } = this;
    code.get(this.slice).i32(1).op('i32.sub').tee(this.slice);
    again();
    this.saveState(this.entryOf.get(header)!, header);
    this.branchTo(this.suspendLabel);
  }

  // The whole function.

  /**
   * Returns the locals and the code of `(ctx, from, to) → status`, or of the kernel itself if it
   * keeps no state.
   */
  emit(): { locals: readonly LocalType[]; code: Uint8Array } {
    const { code, layout } = this;
    if (layout.stateful) {
      this.slice = this.newLocal('i32');
      this.fuel = this.newLocal('i32');
      this.granted = this.newLocal('i32');
      this.allowance = this.newLocal('i32');
    }
    const done = {};
    this.openLabel('block', done);
    this.openLabel('loop', this.threadLabel);
    code.get(this.thread).get(this.to).op('i32.ge_u');
    this.branchTo(done, 'br_if');
    this.openLabel('block', this.nextLabel);
    if (layout.stateful) this.openLabel('block', this.suspendLabel);
    if (layout.stateful) {
      this.pushStateAddress();
      code.memory('i32.load').tee(this.entryNumber).i32(0).op('i32.lt_s');
      this.branchTo(this.nextLabel, 'br_if');
      // granted = slice = min(allowance, fuel)
      code
        .get(this.allowance)
        .get(this.fuel)
        .get(this.allowance)
        .get(this.fuel)
        .op('i32.lt_s')
        .op('select')
        .tee(this.granted)
        .set(this.slice);
    }
    // What every thread computes first is known only after its code has been written.
    const start = code.length;
    if (layout.stateful)
      this.enterAt(
        this.entryNumber,
        this.entries,
        () => {
          this.begin();
        },
        (entry) => {
          this.restore(entry);
        },
      );
    else this.clearRegisters();
    this.emitFlow();
    // A block at the end of the layout that does not leave would fall through to this place.
    code.op('unreachable');
    code.insert(start, () => {
      this.emitThreadStart(code);
    });
    if (layout.stateful) {
      this.closeLabel();
      this.emitSuspended();
    }
    this.closeLabel();
    this.emitNextThread();
    this.closeLabel();
    this.closeLabel();
    if (layout.stateful) this.emitStoreFuel(0);
    code.i32(STATUS.done).op('end');

    const whole = new Bytes().append(this.prologueBytes()).append(code.finish());
    return { locals: this.localTypes, code: whole.finish() };
  }

  private begin(): void {
    if (this.members?.has(0) === false) this.branchTo(this.nextLabel);
    else this.clearRegisters();
  }

  /** Registers that some path reads before it writes them start at zero in every thread. */
  private clearRegisters(): void {
    const { code } = this;
    for (const register of this.liveness.liveIn(0)) {
      const { wasm } = register.type;
      if (wasm === 'i64') code.i64(0);
      else if (wasm === 'f32') code.f32(0);
      else if (wasm === 'f64') code.f64(0);
      else code.i32(0);
      code.set(this.registerLocal(register));
    }
  }

  private emitThreadStart(code: Code): void {
    if (this.localAddress >= 0) {
      const base = this.localsBase();
      code
        .get(base)
        .get(this.thread)
        .i32(this.layout.localBytes)
        .op('i32.mul')
        .op('i32.add')
        .set(this.localAddress);
    }
  }

  private emitSuspended(): void {
    const { code } = this;
    code.get(this.fuel).get(this.granted).op('i32.sub').set(this.fuel);
    code.get(this.allowance).get(this.granted).op('i32.sub').tee(this.allowance);
    this.when(() => {
      // Out of fuel in the middle of a slice: the next call continues with the same thread.
      code.get(this.thread).op('global.set').u32(this.around.linker.globalIndex('cursor'));
      this.emitStoreFuel(this.allowance);
      code.i32(STATUS.yielded).op('return');
    });
    code.i32(0).set(this.granted).i32(0).set(this.slice);
  }

  private emitStoreFuel(carry: number): void {
    const { code } = this;
    code.get(this.fuel).op('global.set').u32(this.around.linker.globalIndex('fuel'));
    if (carry) code.get(carry);
    else code.i32(0);
    code.op('global.set').u32(this.around.linker.globalIndex('carry'));
  }

  private emitNextThread(): void {
    const {
      code,
      indexLocals: [x, y, z],
    } = this;
    code.get(this.thread).i32(1).op('i32.add').set(this.thread);
    if (x >= 0 || y >= 0 || z >= 0) {
      const tx = x >= 0 ? x : (this.indexLocals[0] = this.newLocal('i32'));
      code.get(tx).i32(1).op('i32.add').tee(tx).get(this.contextWord(CTX.blockDim)).op('i32.eq');
      this.when(() => {
        code.i32(0).set(tx);
        if (y < 0 && z < 0) return;
        const ty = y >= 0 ? y : (this.indexLocals[1] = this.newLocal('i32'));
        code
          .get(ty)
          .i32(1)
          .op('i32.add')
          .tee(ty)
          .get(this.contextWord(CTX.blockDim + 4))
          .op('i32.eq');
        this.when(() => {
          code.i32(0).set(ty);
          if (z >= 0) code.get(z).i32(1).op('i32.add').set(z);
        });
      });
    }
    if (this.layout.stateful) {
      // A thread that was skipped has used none of the grant.
      code
        .get(this.fuel)
        .get(this.granted)
        .get(this.slice)
        .op('i32.sub')
        .op('i32.sub')
        .get(this.granted)
        .i32(0)
        .op('i32.ne')
        .op('i32.sub')
        .set(this.fuel);
      code.i32(0).tee(this.granted).set(this.slice);
      code.i32(this.threadSlice).set(this.allowance);
      code.get(this.fuel).i32(0).op('i32.le_s');
      this.when(() => {
        code.get(this.thread).op('global.set').u32(this.around.linker.globalIndex('cursor'));
        this.emitStoreFuel(0);
        code.i32(STATUS.yielded).op('return');
      });
    }
    this.branchTo(this.threadLabel);
  }

  private prologueBytes(): Uint8Array {
    const { prologue } = this;
    if (this.layout.stateful) {
      prologue.op('global.get').u32(this.around.linker.globalIndex('fuel')).set(this.fuel);
      prologue
        .op('global.get')
        .u32(this.around.linker.globalIndex('carry'))
        .tee(this.allowance)
        .op('i32.eqz')
        .op('if')
        .byte(0x40);
      prologue.i32(this.threadSlice).set(this.allowance).op('end');
    } else {
      // The kernel itself: its second parameter is fuel, which it does not need.
      prologue.i32(0).set(this.from);
      prologue.get(this.ctx).memory('i32.load', CTX.threads).set(this.to);
    }
    prologue.get(this.from).set(this.thread);
    const [x, y, z] = this.indexLocals;
    const nx = CTX.blockDim;
    if (x >= 0) prologue.get(this.from).get(this.ctx).memory('i32.load', nx).op('i32.rem_u').set(x);
    if (y >= 0) {
      prologue
        .get(this.from)
        .get(this.ctx)
        .memory('i32.load', nx)
        .op('i32.div_u')
        .get(this.ctx)
        .memory('i32.load', nx + 4)
        .op('i32.rem_u')
        .set(y);
    }
    if (z >= 0) {
      prologue
        .get(this.from)
        .get(this.ctx)
        .memory('i32.load', nx)
        .op('i32.div_u')
        .get(this.ctx)
        .memory('i32.load', nx + 4)
        .op('i32.div_u')
        .set(z);
    }
    return prologue.finish();
  }
}
