// A kernel as a function that runs a range of a block's threads in units of one to eight groups of
// four. It keeps the contract of the scalar back end: the same thread states, mailboxes and
// entries, another layout of the frames.
//
// A turn runs the threads of a unit that stand at the same entry, to the next cut of each. Blocks
// run in the order of the layout; threads that part wait in a mask at the block they go to. Fuel is
// looked at between turns only, so that what happens does not depend on it.

import { successors, threadSlice } from '../analysis/blocks.js';
import type { Block } from '../analysis/blocks.js';
import { alignUp } from '../analysis/data-layout.js';
import { instructionsOf } from '../analysis/liveness.js';
import type { Liveness } from '../analysis/liveness.js';
import type { Arg, Inst, LoweredFunction, Register } from '../analysis/program.js';
import { firstBlock } from '../analysis/regions.js';
import type { Region, Shape } from '../analysis/regions.js';
import { CTX, STATUS } from '../context.js';
import { emitBarrierArrival, emitWarpArrival, emitWarpResult } from '../emit/arrivals.js';
import type { Surroundings } from '../emit/surroundings.js';
import { STATE, bytesBeforeFrames, bytesWithLocals } from '../emit/frame-layout.js';
import type { FrameLayout } from '../emit/frame-layout.js';
import { matricesBase, pushMailbox, statesBase } from '../emit/scratch-places.js';
import type { Rules } from '../rules/rule.js';
import type { SchedulerNeeds } from '../runtime/scheduler.js';
import { writesZerosAtOnce } from '../runtime/engine.js';
import type { LocalType } from '../scalar-types.js';
import { Code } from '../wasm/code.js';
import { LaneEmitter, isWide } from './lane-emitter.js';
import type { LaneRules } from './lane-emitter.js';
import {
  UNIT,
  emitBeginTurn,
  emitEndPass,
  emitEndTurn,
  emitEndWholeTurn,
  emitInterrupt,
  emitTakeUp,
} from './block-passes.js';
import type { PassLocals } from './block-passes.js';
import type { LanePlan } from './plan.js';
import { steps } from './spread.js';
import { checksFirst } from './check-hoisting-order.js';
import type { ChecksFirst } from './check-hoisting-order.js';
import { findRanges } from './ranges.js';
import type { Ranges } from './ranges.js';
import { withForgotten } from './dead-local-clearing.js';
import { findGuard, testAlike, whenAll } from './guards.js';
import type { Guard } from './guards.js';
import { planAgreed } from './uniform-predicates.js';
import { handsOver, placeAfter, planHandovers } from './side-exits.js';
import type { Handover } from './side-exits.js';
import { hoistChecks } from './hoisted-checks.js';
import type { HoistedChecks } from './hoisted-checks.js';
import { access, testPlace } from './places.js';
import type { Access } from './places.js';
import { registersOfGridSize } from './side-by-side.js';
import { isPure } from './spread.js';
import { shortSide } from './short-branches.js';
import type { ShortSide } from './short-branches.js';
import { checkSteady, findSteadyLoop, workOf } from './versioned-loops.js';
import type { SteadyLoop, SteadyPlace } from './versioned-loops.js';
import { checkSteadyUnits, findSteadyUnits } from './versioned-kernels.js';
import { straightOrder } from './straight-turns.js';
import { planSpills } from './spills.js';
import type { Spills } from './spills.js';
import { LINE, findTouches } from './prefetching.js';
import { emitTogether, goesTogether, meansAll, pushTogether } from './warp.js';
import { checkRun, findUncheckedRun } from './unchecked-accesses.js';
import type { UncheckedRun } from './unchecked-accesses.js';

/** Vectors that are loaded before a result is written down. */
const LOADS_AHEAD = 10;

/**
 * Vectors that are cleared at the beginning of a turn, of code that does not begin with code for a
 * whole unit: with more of them engines are worse off than without. Of 110 vectors an engine that
 * writes them at once made a scan 1.7 times as slow, a transpose 1.5 times, when those cleared them
 * there.
 */
const MOST_FORGOTTEN = writesZerosAtOnce ? 12 : 128;
/** And those of registers that are restored at an entry. */
const MOST_RESTORED = writesZerosAtOnce ? 12 : Infinity;

export interface LaneKernel {
  lowered: LoweredFunction;
  blocks: readonly Block[];
  shape: Shape;
  liveness: Liveness;
  remade: ReadonlyMap<number, Inst>;
  /** The scalar back end's layout: what stands before the frames is the same. */
  layout: FrameLayout;
  barriers: SchedulerNeeds['barriers'];
  paramBytes: number;
}

/**
 * Times that a unit goes round a loop through memory in one turn. Units that keep step find their
 * neighbours' cache lines where they are: with 64 blocks of 256 threads over 64 MB, 8 times gave
 * 2.85 ms and 6 times 2.95, and on another machine 3.4 and 3.2, where 4 times gave 3.7 and 16 times
 * 3.9. Places that are powers of two apart share a first-level cache's few lines, of which a unit's
 * part takes two for each time.
 */
export const BURST = 8;
/**
 * Turns of a loop at a time that go without checks: as many as are looked ahead, at first and at
 * last.
 */
const STEADY_TURNS = [16, 3] as const;
/**
 * Bytes that a thread moves at a time in a loop for whose sake blocks run side by side: a histogram
 * of bytes is 3 % slower then.
 */
const SMALLEST_STRIDING = 4;
/** Fewer units of a block are not worth the look ahead at all of them. */
const LEAST_STEADY_UNITS = 3;
/**
 * Instructions that are written group by group: processors look so far ahead that the groups'
 * chains of them overlap.
 */
const LONGEST_GROUPED = 32;
/**
 * Instructions of a known number of turns, times groups, that are written one turn behind the
 * other.
 */
const MOST_UNROLLED = 400;
/**
 * Bytes that the blocks of a grid go through together which caches do not hold: with 8 MB touching
 * rows ahead took a transpose 1.25 times as long, from 26 MB on 0.7 times.
 */
const FAR = 18 * 2 ** 20;
/** A table's entry of rows that are touched two at a time. */
const ROWS = { places: 0, steps: 16, count: 32, bytes: 40 } as const;
/**
 * A block that has more of them has many threads, and with them other work than going to memory.
 */
const MOST_TOUCHED_ROWS = 32;
/**
 * Bytes from row to row that are worth it: rows nearer to each other are found near, or by looking
 * ahead along them.
 */
const LEAST_BETWEEN_ROWS = 1024;
/** Instructions of a loop that is worth a second copy. */
const LONGEST_TWICE = 500;

/** Whether an operand is, or has in it, a special register. */
function isRead(arg: Arg, name: string): boolean {
  switch (arg.kind) {
    case 'special':
      return arg.name === name;
    case 'vector':
      return arg.elements.some((element) => isRead(element, name));
    case 'pair':
      return isRead(arg.first, name) || isRead(arg.second, name);
    case 'not':
      return isRead(arg.operand, name);
    default:
      return false;
  }
}

/**
 * Before anything else is loaded, a store has the instruction's result, or what is computed from
 * it: that writes it down.
 */
function isStoredNext(insts: readonly Inst[], index: number): boolean {
  const known = new Set(insts[index]!.defs);
  for (const inst of insts.slice(index + 1)) {
    if (inst.mnemonic === 'ld') return false;
    if (!inst.uses.some((register) => known.has(register))) continue;
    if (inst.mnemonic === 'st') return true;
    if (isPure(inst)) for (const register of inst.defs) known.add(register);
  }
  return false;
}

export class LaneKernelEmitter extends LaneEmitter {
  readonly ctx = 0;
  private readonly from: number;
  private readonly to: number;
  readonly thread: number;
  private readonly kernel: LaneKernel;
  private readonly threadSlice: number;
  /** Bytes of spilled registers per unit. */
  readonly unitBytes: number;
  private readonly spills: Spills;
  private readonly slots = new Map<number, number>();
  private readonly entries: number[] = [];
  /**
   * Blocks that end in a cut at which nobody ever has to wait, and what comes after them: no
   * entries.
   */
  private readonly passing = new Set<number>();
  /** Of the entries, those at which threads can be suspended. */
  private readonly live: readonly number[];
  private readonly entryOf = new Map<number, number>();
  private readonly tids: [number, number, number] = [-1, -1, -1];
  private readonly waiting = new Map<number, readonly number[]>();
  /** Blocks at which threads may wait by now, of the code that has been written. */
  private readonly awaited = new Set<number>();
  /**
   * Loops that all of their threads leave for the same block: it, and masks of the threads that
   * have come in.
   */
  private readonly leaving = new Map<Region, { to: number; entered: readonly number[] }>();
  private readonly following = new Map<number, number>();
  private readonly blockLabels = new Map<number, object>();
  private readonly loopLabels = new Map<Region, object>();
  private turnLabel = {};
  /** Blocks are one row: a thread's number is its index. */
  private readonly oneRow: boolean;
  /** Past what a turn of a block that runs by itself leaves behind. */
  private endedLabel = {};
  private readonly unitLabel = {};
  /** Where in the code the loops over units begin. */
  private readonly unitStarts: number[] = [];
  /** Where the general code is come to, at both of which no instruction's locals hold anything. */
  private readonly generalStarts: number[] = [];
  /** Of a kernel that keeps no state: blocks that the call still runs after this one. */
  private further = -1;
  private entryNumber = -1;
  /**
   * Where code for a whole unit hands over to the general code, by block; none where there is only
   * one code.
   */
  private readonly handovers: ReadonlyMap<number, Handover>;
  /**
   * Checks in code for a whole unit that serve other blocks, too, and the places that those have
   * checked so far.
   */
  private checksAhead: HoistedChecks | undefined = undefined;
  private handed: ReadonlySet<Register> | undefined = undefined;
  private readonly hoistedPlaces = new Map<Inst, { local: number; offset: number }>();
  /** The masks of the general code, while code for a whole unit is written. */
  private generalActive: readonly number[] = [];
  /** Past the code for a whole unit. */
  private readonly generalLabel = {};
  /** Where code for a whole unit hands over to it. */
  private readonly handedLabel = {};
  /** Vectors that have been loaded since a result was last written down. */
  private loadsAhead = 0;
  private slice = -1;
  private fuel = -1;
  private states: readonly number[] = [];
  private todo: readonly number[] = [];
  private used: Set<Register> | undefined = undefined;
  private ranges: Ranges | undefined = undefined;
  /** The loop whose code without masks is being written, and what comes past it. */
  private unparted: { region: Region; end: object } | undefined = undefined;
  private ofGridSize: ReadonlySet<number> | undefined = undefined;
  private stridesByGrid = false;
  /** The function runs the whole block by itself, and has these. */
  private readonly passes: PassLocals | undefined = undefined;
  /** Bytes of masks of a unit that is suspended while it is parted. */
  private readonly partedBytes: number = 0;
  /** Where they are in the frame: behind its words and registers. */
  private readonly partedAt: number;

  /** The function takes the context and the fuel, and runs a block to its end. */
  get alone(): boolean {
    return this.passes !== undefined;
  }

  /**
   * Blocks go through memory with the whole grid's stride, and may do so side by side. Known once
   * the code is written.
   */
  get strides(): boolean {
    return this.alone && this.runsOn && this.stridesByGrid;
  }

  /**
   * A call may go on to further blocks: none waits for another, or leaves anything in scratch that
   * the next one sees.
   */
  get runsOn(): boolean {
    const { layout, shape, blocks } = this.kernel;
    return (
      layout.localBytes === 0 &&
      (!layout.stateful ||
        (this.alone &&
          this.plan.independent &&
          shape.order.every((index) => {
            const { ending } = blocks[index]!;
            return ending.kind !== 'cut' || ending.cut !== 'sleep';
          })))
    );
  }

  constructor(
    around: Surroundings,
    groups: number,
    plan: LanePlan,
    rules: Rules,
    laneRules: LaneRules,
    kernel: LaneKernel,
    oneRow: boolean,
  ) {
    super(around, groups, plan, kernel.liveness, rules, laneRules);
    this.kernel = kernel;
    const { shape, blocks, layout, liveness } = kernel;
    this.threadSlice = threadSlice(blocks);
    const alone = layout.stateful && runsAlone(this, plan, kernel);
    const scheduled = layout.stateful && !alone;
    this.paramCount = scheduled ? 3 : 2;
    this.from = scheduled ? 1 : this.newLocal('i32');
    this.to = scheduled ? 2 : this.newLocal('i32');
    if (alone) {
      const local = (): number => this.newLocal('i32');
      this.passes = {
        frame: local(),
        next: local(),
        gone: local(),
        release: local(),
        ready: local(),
        left: local(),
      };
    }
    if (!scheduled) this.whole = this.newLocal('i32');
    this.thread = this.newLocal('i32');
    this.base = this.newLocal('i32');
    this.oneRow = oneRow;
    if (oneRow) this.tids[0] = this.base;
    this.active = this.masks();
    if (layout.stateful) {
      for (const header of shape.loopHeaders) this.addEntry(header);
      for (const index of shape.order) {
        const { ending } = blocks[index]!;
        if (ending.kind !== 'cut') continue;
        this.addEntry(ending.to);
        if (passesThrough(this, plan, index, ending)) this.passing.add(index);
      }
    }
    const passed = new Set(
      [...this.passing].map((index) => (blocks[index]!.ending as { to: number }).to),
    );
    this.live = this.entries.filter((entry) => !passed.has(entry) || shape.loopHeaders.has(entry));
    // Threads that are always suspended together share the cell of what is equal; others have cells
    // of their own.
    const spilled = new Set<Register>();
    for (const entry of this.live)
      for (const register of liveness.liveIn(entry))
        if (!kernel.remade.has(register.id)) spilled.add(register);
    if (alone)
      for (const header of shape.loopHeaders)
        for (const register of this.keptWaiting(header))
          if (!kernel.remade.has(register.id)) spilled.add(register);
    if (alone) {
      const masks = shape.order.map((block) =>
        shape.loopHeaders.has(block) && !plan.convergent(block)
          ? 1 + plan.waitingOut(shape.regionOf(block)).length
          : 0,
      );
      this.partedBytes = 16 * groups * Math.max(0, ...masks);
    }
    let end = alone ? UNIT.bytes : 0;
    // The widest cells first, so that each is aligned.
    for (const register of [...spilled].sort((a, b) => this.cellBytes(b) - this.cellBytes(a))) {
      this.slots.set(register.id, end);
      end += this.cellBytes(register);
    }
    // Seldom come to: what units read and write in each turn lies in few cache lines.
    this.partedAt = alignUp(end, 16);
    this.unitBytes = this.partedAt + this.partedBytes;
    this.spills = planSpills(
      blocks,
      shape.order,
      this.live,
      liveness,
      (register) => this.slots.has(register.id),
      (inst) => goesTogether(this, inst),
      plan.together ? loopsIn(shape.root) : [],
      (block, register) => plan.together && plan.keeps(block, register),
      (header) => (alone && shape.loopHeaders.has(header) ? this.keptWaiting(header) : []),
    );
    shape.order.forEach((block, index) => {
      this.following.set(block, shape.order[index + 1] ?? -1);
    });
    this.handovers = this.findHandovers();
  }

  isUsed(register: Register): boolean {
    this.used ??= new Set(
      this.kernel.shape.order.flatMap((index) =>
        instructionsOf(this.kernel.blocks[index]!).flatMap((inst) => inst.uses),
      ),
    );
    return this.used.has(register);
  }

  isWithin(address: Register, offset: number, size: number): boolean {
    const { blocks, shape, liveness } = this.kernel;
    this.ranges ??= findRanges(blocks, shape.order, liveness);
    return this.ranges.within(address, offset, size);
  }

  private findHandovers(): ReadonlyMap<number, Handover> {
    const {
      plan,
      liveness,
      kernel: {
        blocks,
        shape: { order },
      },
    } = this;
    if (!handsOver(this, plan, blocks, order)) return new Map();
    this.agreed = planAgreed(this, plan, blocks, order, liveness, this.live);
    this.checksAhead = hoistChecks(this, blocks, order, this.entries);
    const found = planHandovers(
      this,
      plan,
      blocks,
      order,
      this.agreed,
      this.checksAhead,
      this.entries.length + 1,
      (register) => this.isBlockLocal(register),
    );
    for (const { carried } of found.values())
      for (const register of carried) this.carried.add(register.id);
    return found;
  }

  private cellBytes(register: Register): number {
    const bytes = isWide(register) ? 8 : 4;
    return this.sharesCell(register) ? bytes : this.width * bytes;
  }

  private masks(): readonly number[] {
    return Array.from({ length: this.groups }, () => this.newLocal('v128'));
  }

  private sharesCell(register: Register): boolean {
    return this.plan.together && !this.isVarying(register);
  }

  private addEntry(block: number): void {
    if (this.entryOf.has(block)) return;
    this.entries.push(block);
    this.entryOf.set(block, this.entries.length);
  }

  // ---- places

  /** A kernel with matrices has no lanes: the frames begin where they would. */
  private framesBase(): number {
    return matricesBase(this, this.kernel.layout);
  }

  private localsBase(): number {
    const frames = this.framesBase();
    return this.hoist('locals', 'i32', (code) => {
      code
        .get(frames)
        .get(this.contextField('threads'))
        .i32(this.width - 1)
        .op('i32.add')
        .i32(Math.log2(this.width))
        .op('i32.shr_u')
        .i32(this.unitBytes)
        .op('i32.mul')
        .op('i32.add');
      const { localAlign } = this.kernel.layout;
      if (localAlign > 16)
        code
          .i32(localAlign - 1)
          .op('i32.add')
          .i32(-localAlign)
          .op('i32.and');
    });
  }

  protected pushExchange(): void {
    const locals = this.localsBase();
    this.code.get(
      this.keep('exchange', 'i32', (code) => {
        code
          .get(locals)
          .get(this.contextField('threads'))
          .i32(this.kernel.layout.localBytes)
          .op('i32.mul')
          .op('i32.add');
      }),
    );
  }

  /** Bytes of scratch for a block. */
  scratchBytes(threads: number): number {
    const { layout } = this.kernel;
    const before =
      bytesBeforeFrames(layout, threads) + Math.ceil(threads / this.width) * this.unitBytes;
    return bytesWithLocals(layout, before, threads) + this.exchangeBytes;
  }

  get waitsForCluster(): boolean {
    return this.kernel.layout.cluster;
  }

  pushFrame(): void {
    this.code
      .get(this.localsBase())
      .get(this.thread)
      .i32(this.kernel.layout.localBytes)
      .op('i32.mul')
      .op('i32.add');
  }

  pushStack(): void {
    throw this.unsupported('a call in lanes is');
  }

  pushMatrixResults(): void {
    throw this.unsupported('a product of matrices in lanes is');
  }

  pushLocalEnd(): void {
    const locals = this.localsBase();
    this.code.get(
      this.hoist('local end', 'i32', (code) => {
        code
          .get(locals)
          .get(this.contextField('threads'))
          .i32(this.kernel.layout.localBytes)
          .op('i32.mul')
          .op('i32.add');
      }),
    );
  }

  get paramBytes(): number {
    return this.kernel.paramBytes;
  }

  pushThreadIndex(axis: 0 | 1 | 2): void {
    if (this.oneRow && axis > 0) {
      this.code.i32(0);
      return;
    }
    if (this.tids[axis] < 0) this.tids[axis] = this.newLocal('i32');
    this.code.get(this.tids[axis]);
    if (axis === 0 && this.lane >= 0) this.code.get(this.lane).op('i32.add');
  }

  pushMailbox(): void {
    pushMailbox(this, this.kernel.layout);
  }

  leaveFaulted(): void {
    this.code.i32(STATUS.fault).op('return');
  }

  unwind(): void {
    this.leaveFaulted();
  }

  private pushStatesAddress(): void {
    this.code.get(statesBase(this)).get(this.base).i32(2).op('i32.shl').op('i32.add');
  }

  // ---- suspending and resuming

  /** Writes a state for the active threads. */
  private setState(state: number): void {
    const { code, states, active } = this;
    if (this.passes) {
      code.i32(state).set(this.passes.next);
      return;
    }
    const at = this.newLocal('i32');
    this.pushStatesAddress();
    code.set(at);
    states.forEach((local, group) => {
      code
        .get(at)
        .i32(state)
        .op('i32x4.splat')
        .get(local)
        .get(active[group]!)
        .op('v128.bitselect')
        .tee(local)
        .memory('v128.store', 16 * group);
    });
  }

  private frame(): number {
    if (this.passes) return this.passes.frame;
    const frame = this.newLocal('i32');
    this.code
      .get(this.framesBase())
      .get(this.base)
      .i32(Math.log2(this.width))
      .op('i32.shr_u')
      .i32(this.unitBytes)
      .op('i32.mul')
      .op('i32.add')
      .set(frame);
    return frame;
  }

  private save(state: number, target: number): void {
    this.setState(state);
    this.saveRegisters(this.spills.saved(target));
  }

  private saveRegisters(saved: readonly Register[]): void {
    const { code, plan } = this;
    if (!saved.length) return;
    const frame = this.frame();
    for (const register of saved) {
      const slot = this.slots.get(register.id)!;
      const { wasm } = register.type;
      if (this.sharesCell(register)) {
        code.get(frame).get(this.registerLocal(register)).memory(`${wasm}.store`, slot);
        continue;
      }
      this.eachGroup((group) => {
        for (const half of isWide(register) ? [0, 1] : [0]) {
          const offset = slot + 16 * (isWide(register) ? 2 * group + half : group);
          code.get(frame);
          this.pushCell(register, half);
          if (!plan.together) {
            code.get(frame).memory('v128.load', offset);
            this.pushMaskHalf(this.active[group]!, isWide(register) ? half : -1);
            code.op('v128.bitselect');
          }
          code.memory('v128.store', offset);
        }
      });
    }
  }

  /**
   * Registers that threads need that wait behind a loop, which those that go round in it may not.
   */
  private keptWaiting(header: number): Register[] {
    const {
      plan,
      liveness,
      kernel: { shape },
    } = this;
    return plan.convergent(header)
      ? []
      : [
          ...new Set(
            plan.waitingOut(shape.regionOf(header)).flatMap((block) => liveness.liveIn(block)),
          ),
        ];
  }

  /** The unit is suspended at the end of a loop that some of its threads have left. */
  private saveMasks(region: Region): void {
    const { code } = this;
    const frame = this.frame();
    this.saveRegisters(this.spills.waiting(region.header));
    [this.active, ...this.plan.waitingOut(region).map((block) => this.waitMasks(block))].forEach(
      (masks, index) => {
        masks.forEach((local, group) => {
          code
            .get(frame)
            .get(local)
            .memory('v128.store', this.partedAt + 16 * (this.groups * index + group));
        });
        this.clearMasks(masks);
      },
    );
    code.get(frame).i32(1).memory('i32.store', UNIT.parted);
  }

  private restoreMasks(region: Region): void {
    const {
      code,
      kernel: { remade },
    } = this;
    const frame = this.frame();
    const needed = this.spills.needed(region.header);
    const kept = this.keptWaiting(region.header).filter((register) => !needed.includes(register));
    // Locals given out inside the condition would hold nothing after it.
    for (const register of kept) {
      if (this.isVarying(register)) this.laneLocal(register);
      else this.registerLocal(register);
    }
    code.get(frame).memory('i32.load', UNIT.parted);
    this.when(() => {
      code.get(frame).i32(0).memory('i32.store', UNIT.parted);
      [this.active, ...this.plan.waitingOut(region).map((block) => this.waitMasks(block))].forEach(
        (masks, index) => {
          masks.forEach((local, group) => {
            code
              .get(frame)
              .memory('v128.load', this.partedAt + 16 * (this.groups * index + group))
              .set(local);
          });
        },
      );
      this.restoreEntry(
        region.header,
        kept,
        [],
        remade,
        (register) => this.slots.has(register.id),
        (registers) => {
          for (const register of registers) this.load(register, frame, { lane: -1 });
        },
        () => undefined,
      );
    });
  }

  /** Pushes the group's values of any register, made anew. */
  private pushCell(register: Register, half: number): void {
    const { code } = this;
    const { stride } = this.plan.spread(register);
    if (this.isVarying(register) || (stride === undefined && register.type.kind === 'predicate')) {
      this.pushPart(register, half);
      return;
    }
    code.get(this.registerLocal(register));
    if (register.type.kind === 'predicate') code.i32(-1).op('i32.mul');
    this.splat(register.type);
    const apart = steps(this.plan.spread(register), this.width)!;
    if (isWide(register)) this.addSteps(apart, half);
    else this.addSteps32(apart);
  }

  private restore(entry: number): void {
    if (!this.live.includes(entry)) {
      this.code.op('unreachable');
      return;
    }
    const { blocks, remade, shape } = this.kernel;
    this.block = undefined;
    // A unit that was suspended while it was parted does not come to code for a whole unit.
    if (
      this.passes &&
      !this.everyone &&
      shape.loopHeaders.has(entry) &&
      !this.plan.convergent(entry)
    )
      this.restoreMasks(shape.regionOf(entry));
    this.restoreEntry(
      entry,
      this.spills.needed(entry),
      blocks,
      remade,
      (register) => this.slots.has(register.id),
      (registers) => {
        const frame = this.frame();
        const first = { lane: -1 };
        for (const register of registers) this.load(register, frame, first);
      },
      (inst) => {
        this.forEachThread(false, [], inst.defs, () => {
          emitWarpResult(this, inst);
        });
      },
    );
  }

  /**
   * Loads a register. Where threads have cells of their own, those whose value does not fit the
   * first one's step are left for another turn.
   */
  private load(register: Register, frame: number, first: { lane: number }): void {
    const { code } = this;
    const slot = this.slots.get(register.id)!;
    const { wasm } = register.type;
    const wide = isWide(register);
    if (this.sharesCell(register)) {
      code.get(frame).memory(`${wasm}.load`, slot).set(this.registerLocal(register));
      return;
    }
    if (this.isVarying(register)) {
      this.laneLocal(register).forEach((local, part) => {
        code
          .get(frame)
          .memory('v128.load', slot + 16 * part)
          .set(local);
      });
      return;
    }
    if (first.lane < 0) {
      first.lane = this.newLocal('i32');
      this.pushBits(this.active);
      code.op('i32.ctz').set(first.lane);
    }
    const { stride } = this.plan.spread(register);
    const local = this.registerLocal(register);
    code
      .get(frame)
      .get(first.lane)
      .i32(wide ? 3 : 2)
      .op('i32.shl')
      .op('i32.add')
      .memory(`${wasm}.load`, slot);
    if (stride === undefined) {
      this.pushStepOf(register, first.lane);
      if (wide) code.op('i64.extend_i32_s');
      code.op(`${wasm}.sub`);
    } else if (stride) {
      code.get(first.lane).i32(stride).op('i32.mul');
      if (wide) code.op('i64.extend_i32_s');
      code.op(`${wasm}.sub`);
    }
    if (register.type.kind === 'predicate') code.i32(1).op('i32.and');
    code.set(local);
    const shape = wide ? 'i64x2' : 'i32x4';
    this.eachGroup((group) => {
      for (const half of wide ? [0, 1] : [0]) {
        this.pushCell(register, half);
        code
          .get(frame)
          .memory('v128.load', slot + 16 * (wide ? 2 * group + half : group))
          .op(`${shape}.eq`);
      }
      if (wide) code.shuffle([0, 2, 4, 6]);
      const active = this.active[group]!;
      code.get(active).op('v128.and').set(active);
    });
  }

  /** Pushes what a thread's value has more than the first one's, where the steps are uneven. */
  private pushStepOf(register: Register, lane: number): void {
    const { code } = this;
    const apart = steps(this.plan.spread(register), this.width)!;
    this.scoped(() => {
      const room = this.temp('i32');
      this.pushRoom(4 * this.width);
      code.set(room);
      this.eachGroup((group) => {
        code
          .get(room)
          .v128(apart.slice(4 * group, 4 * group + 4) as [number, number, number, number])
          .memory('v128.store', 16 * group);
      });
      code.get(room).get(lane).i32(2).op('i32.shl').op('i32.add').memory('i32.load');
    });
  }

  // ---- control flow

  private clearActive(): void {
    this.clearMasks(this.active);
  }

  private waitMasks(block: number): readonly number[] {
    let locals = this.waiting.get(block);
    if (locals === undefined) this.waiting.set(block, (locals = this.masks()));
    return locals;
  }

  /** Adds threads to those that wait at a block. */
  private wait(block: number, threads: readonly number[]): void {
    const { code } = this;
    this.awaited.add(block);
    this.waitMasks(block).forEach((local, group) => {
      code.get(local).get(threads[group]!).op('v128.or').set(local);
    });
  }

  private innerEntries(region: Region): number[] {
    return this.live.filter((block) => region.members.has(block) && block !== region.header);
  }

  /** Blocks at which control can come in from outside the flow, with the numbers that say so. */
  private arrivals(region: Region): Map<number, number> {
    const found = new Map(
      this.innerEntries(region).map((block) => [this.entryOf.get(block)!, block]),
    );
    if (this.everyone) return found;
    for (const [block, { numbers }] of this.handovers) {
      if (!region.members.has(block) || block === region.header) continue;
      for (const number of numbers.values()) found.set(number, block);
    }
    return found;
  }

  /** Whether control can come to the block from outside the flow. */
  private isEntered(block: number): boolean {
    return this.live.includes(block) || (!this.everyone && this.handovers.has(block));
  }

  private emitRegion(region: Region): void {
    const {
      code,
      kernel: { blocks },
    } = this;
    const inner = this.arrivals(region);
    const { items } = region;
    const isLoop = region.header >= 0;
    /**
     * Turns that begin at the loop's header come in from before it: those that go round have
     * nothing to restore.
     */
    const restoredAhead =
      isLoop && this.everyone && inner.size === 0 && this.live.includes(region.header);
    const end = {};
    /** Where a loop's threads come together that wait to go round again. */
    const tail = {};
    this.openLabel('block', end);
    if (isLoop) {
      // Threads that a turn resumes inside are let through.
      code.get(this.entryNumber).op('i32.eqz');
      this.when(() => {
        this.arriveAt(region.header, end);
      });
      this.awaited.delete(region.header);
      if (!this.handovers.size) this.emitUnparted(region, end);
      else if (this.everyone && this.streams(region)) this.shortenTurn(blocks[region.header]!);
      const to = this.onlyExit(region);
      if (to !== undefined) {
        const entered = this.masks();
        this.active.forEach((local, group) => {
          code.get(local).set(entered[group]!);
        });
        this.leaving.set(region, { to, entered });
      }
      this.awaited.delete(region.header);
      if (restoredAhead) this.restoreWhole(region.header);
      const steady =
        restoredAhead && region.members.size === 1
          ? this.steadyTurns(blocks[region.header]!)
          : undefined;
      const label = {};
      this.loopLabels.set(region, label);
      this.openLabel('loop', label);
      this.openLabel('block', tail);
      steady?.();
    }
    const after: object[] = [];
    for (let index = items.length - 1; index > 0; index--) {
      const label = {};
      after[index] = label;
      this.blockLabels.set(firstBlock(items[index]!), label);
      this.openLabel('block', label);
    }
    const bottom = {};
    if (inner.size) {
      this.openLabel('block', bottom);
      const numbers = Math.max(...inner.keys()) + 1;
      code.get(this.entryNumber).op('br_table').u32(numbers);
      for (let number = 0; number < numbers; number++) {
        const block = inner.get(number);
        const index =
          block === undefined
            ? 0
            : items.findIndex((item) =>
                typeof item === 'number' ? item === block : item.members.has(block),
              );
        code.u32(this.depthOf(index > 0 ? after[index]! : bottom));
      }
      code.u32(this.depthOf(bottom));
      this.closeLabel();
    }
    items.forEach((item, index) => {
      if (index > 0) this.closeLabel();
      if (typeof item !== 'number') {
        this.weight *= 8;
        this.emitRegion(item);
        this.weight /= 8;
        return;
      }
      const next = after[index + 1] ?? (isLoop ? tail : end);
      if (this.isEntered(item)) {
        if (this.everyone) {
          if (item !== region.header || !restoredAhead) this.restoreWhole(item);
        } else {
          if (item !== region.header) {
            code.get(this.entryNumber).op('i32.eqz');
            this.when(() => {
              this.arriveAt(item, next);
            });
          }
          if (!this.handovers.has(item)) code.i32(0).set(this.entryNumber);
        }
      } else if (item !== region.header) {
        this.arriveAt(item, next);
      }
      this.emitBlock(blocks[item]!);
    });
    if (isLoop) {
      this.closeLabel();
      if (!this.everyone && this.plan.waitsAt(region.header)) this.repeat(region);
      this.closeLabel();
      this.loopLabels.delete(region);
      const left = this.leaving.get(region);
      if (left) {
        this.leaving.delete(region);
        this.active.forEach((local, group) => {
          code.get(left.entered[group]!).set(local);
        });
        this.send(this.lastBlock(region), left.to);
      }
    }
    this.closeLabel();
  }

  /** In code for a whole unit: what a turn needs that begins at the block. */
  private restoreWhole(block: number): void {
    const { code } = this;
    if (this.startsWhole()) {
      code.get(this.entryNumber);
      this.when(() => {
        this.restore(block);
      });
    }
    code.i32(0).set(this.entryNumber);
  }

  private straightOrder(): number[] | undefined {
    const { blocks } = this.kernel;
    // The first entry comes last, so that its blocks come first.
    return straightOrder(blocks, [...this.live, 0], (block) => this.endsTurn(block));
  }

  /** Whether threads that come to the end of the block always wait there. */
  private endsTurn({ ending }: Block): boolean {
    return ending.kind === 'cut' && !goesTogether(this, ending.inst);
  }

  /** Blocks of a turn that never goes round, in an order in which control only goes ahead. */
  private emitStraight(order: readonly number[]): void {
    const {
      code,
      kernel: { blocks },
    } = this;
    const following = new Map(this.following);
    order.forEach((block, index) => {
      this.following.set(block, order[index + 1] ?? -1);
    });
    const labels = order.map(() => ({}));
    for (let index = order.length - 1; index >= 0; index--) {
      this.blockLabels.set(order[index]!, labels[index]!);
      this.openLabel('block', labels[index]!);
    }
    const label = (block: number): number =>
      this.depthOf(
        this.live.includes(block) || block === 0 ? this.blockLabels.get(block)! : this.turnLabel,
      );
    code.get(this.entryNumber).op('br_table').u32(this.entries.length);
    for (const block of [0, ...this.entries]) code.u32(label(block));
    const reached = new Set(
      order.flatMap((block) => (this.endsTurn(blocks[block]!) ? [] : successors(blocks[block]!))),
    );
    for (const block of order) {
      this.closeLabel();
      if (this.live.includes(block)) {
        const restore = (): void => {
          this.restore(block);
        };
        if (reached.has(block)) {
          code.get(this.entryNumber);
          this.when(restore);
        } else {
          restore();
        }
        code.i32(0).set(this.entryNumber);
      }
      this.emitBlock(blocks[block]!);
    }
    for (const [block, next] of following) this.following.set(block, next);
  }

  /**
   * A loop of one block, for as long as all threads of the unit go round in it: no masks are
   * needed.
   */
  private emitUnparted(region: Region, end: object): void {
    const {
      code,
      kernel: { blocks },
    } = this;
    const block = blocks[region.header]!;
    const guard = this.guardOf(block);
    if (region.members.size > 1 || !guard || block.insts.length > LONGEST_TWICE) return;
    const parted = {};
    const label = {};
    this.openLabel('block', parted);
    this.pushAll(this.active);
    code.op('i32.eqz');
    this.branchTo(parted, 'br_if');
    if (this.live.includes(region.header)) code.i32(0).set(this.entryNumber);
    if (isStreaming(this, block)) this.shortenTurn(block);
    this.loopLabels.set(region, label);
    this.openLabel('loop', label);
    const { lanes, threads } = this.effort;
    this.everyone = true;
    this.unparted = { region, end };
    const early = checksFirst(this, block);
    this.emitBlock(early?.block ?? block, early && { run: early.run, otherwise: parted });
    this.unparted = undefined;
    this.everyone = false;
    Object.assign(this.effort, { lanes, threads });
    this.closeLabel();
    this.loopLabels.delete(region);
    this.takeWaiting(region.header);
    this.closeLabel();
  }

  /**
   * Turns of a loop of one block in code for a whole unit that need no checks, if there are such:
   * written before the loop, gives what is to be written where it begins. Threads that have had as
   * many turns as they may are suspended.
   */
  private steadyTurns(block: Block): (() => void) | undefined {
    const { code, slice } = this;
    const { index } = block;
    this.block = block;
    const loop = findSteadyLoop(this, block, this.checksAhead?.of);
    if (!loop) return undefined;
    const ahead = this.newLocal('i32');
    code.i32(STEADY_TURNS[0]).set(ahead);
    return () => {
      const [past, fewer] = [{}, {}];
      const {
        effort: { lanes, threads },
        loadsAhead,
      } = this;
      const turns = this.newLocal('i32');
      this.openLabel('block', past);
      this.conditionally(() => {
        code
          .get(slice)
          .get(ahead)
          .get(slice)
          .get(ahead)
          .op('i32.lt_s')
          .op('select')
          .tee(turns)
          .i32(STEADY_TURNS[1])
          .op('i32.lt_s');
        this.branchTo(past, 'br_if');
        this.openLabel('block', fewer);
        this.emitSteadyTurns(block, loop, turns, fewer, {
          past: () => {
            code.get(slice).get(turns).op('i32.sub').tee(slice);
            this.branchTo(past, 'br_if');
          },
        });
        this.setState(this.entryOf.get(index)!);
        this.branchTo(this.turnLabel);
        this.closeLabel();
        code
          .i32(0)
          .i32(STEADY_TURNS[1])
          .get(ahead)
          .i32(STEADY_TURNS[1])
          .op('i32.eq')
          .op('select')
          .set(ahead);
      });
      this.closeLabel();
      Object.assign(this.effort, { lanes, threads });
      this.loadsAhead = loadsAhead;
    };
  }

  /**
   * So many turns of a loop, and then its registers written down; to `checked` before the first
   * where they need checks. `past` may leave before the registers are written. `count`: how many
   * turns, where that is known here.
   */
  private emitSteadyTurns(
    block: Block,
    loop: SteadyLoop,
    turns: number,
    checked: object,
    { past = () => undefined, count = Infinity }: { past?: () => void; count?: number } = {},
  ): void {
    const { code } = this;
    const { index } = block;
    const again = {};
    this.block = block;
    const places = checkSteady(
      this,
      loop,
      turns,
      (inst) => {
        this.emitInst(inst);
      },
      () => {
        code.op('i32.eqz');
        this.branchTo(checked, 'br_if');
      },
    );
    this.endInstruction();
    if (count * this.groups * workOf(this, loop).length <= MOST_UNROLLED)
      for (let turn = 0; turn < count; turn++) this.emitSteadyTurn(loop, places);
    else {
      const left = this.newLocal('i32');
      code.get(turns).set(left);
      this.openLabel('loop', again);
      this.emitSteadyTurn(loop, places);
      code.get(left).i32(1).op('i32.sub').tee(left);
      this.branchTo(again, 'br_if');
      this.closeLabel();
    }
    past();
    this.saveRegisters(this.spills.early(index));
    this.saveRegisters(this.spills.saved(index));
  }

  private emitSteadyTurn(loop: SteadyLoop, places: readonly SteadyPlace[]): void {
    const { code } = this;
    this.emitWork(workOf(this, loop), places, new Set());
    for (const { local, delta } of places)
      if (delta !== undefined) code.get(local).get(delta).op('i32.add').set(local);
  }

  /**
   * Instructions whose accesses have been checked. `kept`: registers that are read once more behind
   * them.
   */
  private emitWork(
    work: readonly Inst[],
    places: readonly Pick<SteadyPlace, 'range' | 'local'>[],
    kept: ReadonlySet<Register>,
  ): void {
    const last = new Map<Register, number>();
    work.forEach((inst, index) => {
      for (const register of [...inst.uses, ...inst.defs])
        if (this.isBlockLocal(register) && !kept.has(register)) last.set(register, index);
    });
    const release = (index: number): void => {
      for (const [register, at] of last) if (at === index) this.releaseRegister(register);
    };
    const known = new Map(this.hoistedPlaces);
    for (const {
      range: { start, accesses },
      local,
    } of places)
      for (const { inst, offset } of accesses) known.set(inst, { local, offset: offset - start });
    this.unchecked = known;
    this.emitGrouped(
      work,
      0,
      work.length,
      () => true,
      (inst) => {
        this.emitInst(inst);
      },
      release,
    );
    this.unchecked = undefined;
  }

  /** Threads that wait at a loop's header become the active ones. */
  private takeWaiting(header: number): void {
    if (!this.awaited.has(header)) return;
    const waiting = this.waitMasks(header);
    this.active.forEach((local, group) => {
      this.code.get(local).get(waiting[group]!).op('v128.or').set(local);
    });
    this.clearMasks(waiting);
  }

  /** The unit goes round a few times only before it is the next one's turn, if there is another. */
  private shortenTurn(block: Block): void {
    const {
      code,
      slice,
      fuel,
      kernel: { blocks, shape },
    } = this;
    this.ofGridSize ??= registersOfGridSize(blocks, shape.order);
    this.stridesByGrid ||= streamedAddresses(this, block, SMALLEST_STRIDING).some(({ id }) =>
      this.ofGridSize!.has(id),
    );
    code
      .get(slice)
      .i32(BURST)
      .op('i32.gt_s')
      .get(this.contextField('threads'))
      .i32(this.width)
      .op('i32.gt_u')
      .op('i32.and');
    this.when(() => {
      // Fuel is reckoned from what is left of the slice.
      code.get(fuel).get(slice).op('i32.add').i32(BURST).op('i32.sub').set(fuel);
      code.i32(BURST).set(slice);
    });
  }

  /**
   * Control comes to a block: waiting threads join in, and without any thread it is passed over.
   */
  private arriveAt(block: number, past: object): void {
    if (this.everyone) return;
    const { code, plan } = this;
    if (this.awaited.has(block)) {
      const waiting = this.waitMasks(block);
      this.active.forEach((local, group) => {
        code.get(local).get(waiting[group]!).op('v128.or').set(local);
      });
      this.clearMasks(waiting);
    }
    const order = this.kernel.shape.order;
    const before = order[order.indexOf(block) - 1];
    if (before === undefined || (plan.convergent(before) && !plan.parts(before))) return;
    this.pushAny(this.active);
    code.op('i32.eqz');
    // With nobody waiting anywhere, nobody is left.
    this.branchTo(plan.convergent(block) ? this.turnLabel : past, 'br_if');
  }

  /** The end of a loop at whose header threads wait. */
  private repeat(region: Region): void {
    const { code } = this;
    this.takeWaiting(region.header);
    this.pushAny(this.active);
    this.when(() => {
      this.backEdge(region.header, region);
      const left = this.leaving.get(region);
      if (this.passes && left) this.waitAfter(left);
      if (this.passes) {
        this.saveMasks(region);
        this.branchTo(this.turnLabel);
      } else {
        for (const { entered } of this.leaving.values())
          this.active.forEach((local, group) => {
            code.get(entered[group]!).get(local).op('v128.andnot').set(entered[group]!);
          });
        this.clearActive();
      }
    });
  }

  /**
   * The block to which every thread that leaves a loop goes, if nothing else ends its stay there
   * and some stay longer than others.
   */
  private onlyExit(region: Region): number | undefined {
    const {
      kernel: { blocks },
      plan,
    } = this;
    if (this.everyone || plan.convergent(region.header)) return undefined;
    // A unit that is suspended whole takes along who waits where, which must be known by then.
    if (this.passes && region.items.some((item) => typeof item !== 'number')) return undefined;
    const exits = new Set<number>();
    for (const member of region.members) {
      const { ending } = blocks[member]!;
      if (ending.kind === 'cut' || ending.kind === 'return' || ending.kind === 'exit')
        return undefined;
      for (const to of successors(blocks[member]!)) if (!region.members.has(to)) exits.add(to);
    }
    const [to, ...others] = exits;
    return others.length || to === undefined || (this.passes && plan.leaves(to)) ? undefined : to;
  }

  /** The block of a region that stands last. */
  private lastBlock(region: Region): number {
    const item = region.items.at(-1)!;
    return typeof item === 'number' ? item : this.lastBlock(item);
  }

  /** Threads that go to a block are known to, once a loop that they leave has ended. */
  private leavesFor(from: number, to: number): boolean {
    for (const [region, exit] of this.leaving)
      if (exit.to === to && region.members.has(from) && !region.members.has(to)) return true;
    return false;
  }

  /** Threads that have left a loop wait for those that are suspended in it. */
  private waitAfter({ to, entered }: { to: number; entered: readonly number[] }): void {
    const { code } = this;
    const left = this.temps(this.groups);
    this.active.forEach((local, group) => {
      code.get(entered[group]!).get(local).op('v128.andnot').set(left[group]!);
    });
    this.wait(to, left);
  }

  /**
   * Takes a back edge with the active threads while the turn lasts; past that they are suspended.
   */
  private backEdge(header: number, region: Region): void {
    const { code } = this;
    code.get(this.slice).i32(1).op('i32.sub').tee(this.slice).i32(0).op('i32.gt_s');
    this.branchTo(this.loopLabels.get(region)!, 'br_if');
    this.save(this.entryOf.get(header)!, header);
  }

  private guardOf(block: Block): Guard | undefined {
    const { index, ending } = block;
    return this.plan.parts(index) && 'inst' in ending
      ? findGuard(this, block, this.isBlockLocal(ending.inst.predicate!.register))
      : undefined;
  }

  /** `early`: the run whose checks are all made before it, and where to go if one fails. */
  private emitBlock(block: Block, early?: { run: UncheckedRun; otherwise: object }): void {
    this.block = block;
    const agreeing = this.everyone && !this.unparted;
    const first = agreeing ? checksFirst(this, block, this.checksAhead?.of) : undefined;
    const { insts } = first?.block ?? block;
    const lastUse = new Map<number, number>();
    insts.forEach((inst, index) => {
      for (const register of inst.uses)
        if (this.isBlockLocal(register)) lastUse.set(register.id, index);
      for (const register of inst.defs)
        if (this.isBlockLocal(register)) lastUse.set(register.id, index);
    });
    const { ending } = block;
    if ('inst' in ending) for (const register of ending.inst.uses) lastUse.delete(register.id);
    const release = (index: number, keep?: ReadonlySet<Register>): void => {
      for (const register of [...insts[index]!.uses, ...insts[index]!.defs]) {
        if (lastUse.get(register.id) === index && !keep?.has(register))
          this.releaseRegister(register);
      }
    };
    const emit = (from: number, to: number, keep?: ReadonlySet<Register>): void => {
      this.emitGrouped(
        insts,
        from,
        to,
        (inst) =>
          !(agreeing && this.agreed?.comparison(inst)) && !this.checksAhead?.after.has(inst),
        (inst, index) => {
          const comparison = agreeing ? this.agreed?.comparison(inst) : undefined;
          if (comparison) this.emitAgreement(block, comparison);
          else this.emitInst(inst);
          if (this.unchecked) this.anchor(insts, index);
          if (agreeing) this.checkBefore(block, inst, first);
        },
        (index) => {
          release(index, keep);
        },
      );
    };
    const guard = agreeing ? undefined : this.guardOf(block);
    // A guard's comparison waits for the branch.
    const count = insts.length - (guard ? 1 : 0);
    const run = first?.run ?? early?.run;
    const known =
      agreeing && insts.some((inst) => this.hoistedPlaces.has(inst))
        ? this.hoistedPlaces
        : undefined;
    if (run) {
      emit(0, run.from);
      const rest = (otherwise: object): void => {
        const places = checkRun(this, run, () => {
          this.code.op('i32.eqz');
          this.branchTo(otherwise, 'br_if');
        });
        this.unchecked = known ? new Map([...known, ...places]) : places;
        emit(run.from, count);
        this.unchecked = undefined;
      };
      if (early) rest(early.otherwise);
      else
        this.emitUnless(rest, () => {
          this.handOver(block, 0);
        });
    } else if (agreeing) {
      this.unchecked = known;
      emit(0, count);
      this.unchecked = undefined;
    } else {
      this.emitGeneral(block, guard, count, emit);
    }
    this.saveRegisters(this.spills.early(block.index));
    if (guard) this.emitGuard(block, guard);
    else this.emitEnding(block);
    this.endInstruction();
    if ('inst' in ending) for (const register of ending.inst.uses) this.releaseRegister(register);
  }

  /**
   * Writes instructions: group by group those around accesses whose places have been checked, where
   * that `may` be, and else by `one`. Engines keep loads and stores in their order, and have values
   * of one group in registers where those of all would go through memory; without any of them they
   * choose the order themselves. `release` is called behind each.
   */
  private emitGrouped(
    insts: readonly Inst[],
    from: number,
    to: number,
    may: (inst: Inst) => boolean,
    one: (inst: Inst, index: number) => void,
    release: (index: number) => void,
  ): void {
    for (let index = from; index < to;) {
      let end = index;
      let accesses = 0;
      while (
        this.unchecked &&
        end < to &&
        end - index < LONGEST_GROUPED &&
        may(insts[end]!) &&
        this.goesByGroup(insts[end]!)
      )
        accesses += this.unchecked.has(insts[end++]!) ? 1 : 0;
      const grouped = accesses > 0 && end - index > 1;
      if (grouped) this.emitByGroup(insts.slice(index, end));
      for (end = Math.max(end, index + 1); index < end; index++) {
        if (!grouped) one(insts[index]!, index);
        release(index);
      }
    }
  }

  /**
   * Behind what computes a register: the check that all accesses through it in other blocks have in
   * common.
   */
  private checkBefore(block: Block, inst: Inst, first: ChecksFirst | undefined): void {
    const ranges = this.checksAhead?.after.get(inst)?.map(({ range }) => range);
    if (!ranges) return;
    const places = checkRun(this, { ranges, stores: false }, () => {
      this.code.op('i32.eqz');
      this.when(() => {
        this.handOver(block, placeAfter(first, block, inst));
      });
    });
    for (const [access, place] of places) this.hoistedPlaces.set(access, place);
  }

  /**
   * Engines put off arithmetic until something with an effect needs it, and loads come in order: a
   * long run would load everything first, into registers that it does not have. Writing a result
   * down now and then keeps the two in step.
   */
  private anchor(insts: readonly Inst[], index: number): void {
    const inst = insts[index]!;
    const [register] = inst.defs;
    if (inst.mnemonic === 'ld') {
      this.loadsAhead += register && this.isVarying(register) ? this.groups : 1;
      return;
    }
    if (!register || !isPure(inst) || !this.isVarying(register) || this.loadsAhead < LOADS_AHEAD)
      return;
    this.loadsAhead = 0;
    if (isStoredNext(insts, index)) return;
    const { code } = this;
    const locals = this.laneLocal(register);
    const room = this.temp('i32');
    this.pushRoom(16 * locals.length);
    code.set(room);
    locals.forEach((local, index) => {
      code
        .get(room)
        .get(local)
        .memory('v128.store', 16 * index);
    });
    this.endInstruction();
  }

  /**
   * Code that may leave for a label at its beginning, to go on with what leaves for good. That one
   * is emitted first, when no register of the block has been given up yet, and stands behind, where
   * it is in nobody's way.
   */
  private emitUnless(body: (otherwise: object) => void, leave: () => void): void {
    const { code } = this;
    const [done, otherwise] = [{}, {}];
    this.openLabel('block', done);
    const start = code.length;
    this.conditionally(leave);
    const leaving = code.cut(start);
    this.openLabel('block', otherwise);
    body(otherwise);
    this.branchTo(done);
    this.closeLabel();
    code.append(leaving);
    this.closeLabel();
  }

  /** A block's instructions, which control may enter where code for a whole unit hands over. */
  private emitGeneral(
    block: Block,
    guard: Guard | undefined,
    count: number,
    emit: (from: number, to: number, keep?: ReadonlySet<Register>) => void,
  ): void {
    const { code } = this;
    const run = findUncheckedRun(this, block);
    const write = (from: number, to: number): void => {
      if (!run || run.from < from || run.from >= to) {
        emit(from, to);
        return;
      }
      emit(from, run.from);
      this.emitBothWays(block, run, to, guard, (keep) => {
        emit(run.from, to, keep);
      });
    };
    const numbers = [...(this.handovers.get(block.index)?.numbers ?? [])];
    const upTo = (to: number): void => {
      const [place, number] = numbers.pop() ?? [0];
      if (number !== undefined && place > 0) {
        const label = {};
        this.openLabel('block', label);
        code.get(this.entryNumber).i32(number).op('i32.eq');
        this.branchTo(label, 'br_if');
        upTo(place);
        this.closeLabel();
      }
      write(place, to);
    };
    upTo(count);
    if (this.handovers.has(block.index)) code.i32(0).set(this.entryNumber);
  }

  /** Leaves code for a whole unit: the general code goes on before an instruction of the block. */
  private handOver(block: Block, place: number): void {
    const { code } = this;
    for (const local of this.generalActive) code.v128([-1, -1, -1, -1]).set(local);
    const known = new Set(this.knownAt(block, place));
    this.forget([...this.handedRegisters()].filter((register) => !known.has(register)));
    for (const register of known) {
      if (!this.agreed?.has(register) || this.isBlockLocal(register)) continue;
      for (const local of this.laneLocal(register))
        code.i32(0).get(this.registerLocal(register)).op('i32.sub').op('i32x4.splat').set(local);
    }
    code.i32(this.handovers.get(block.index)!.numbers.get(place)!).set(this.entryNumber);
    this.branchTo(this.handedLabel);
  }

  /**
   * A comparison in code for a whole unit, on which the threads agree or the general code goes on.
   */
  private emitAgreement(block: Block, comparison: Guard): void {
    const { code } = this;
    const [target] = comparison.inst.defs;
    const outcome = this.newLocal('i32');
    const { ending } = block;
    // Of a comparison that stands last the branch is all that is left of the block.
    const side =
      comparison.inst === block.insts.at(-1) &&
      ending.kind === 'branch' &&
      ending.inst.predicate!.register === target &&
      this.isBlockLocal(target)
        ? this.sideOf(block)
        : undefined;
    this.eitherAlike(
      comparison,
      outcome,
      () => undefined,
      () => {
        if (!side) {
          this.handOver(block, block.insts.indexOf(comparison.inst));
          return;
        }
        this.disagreed = target;
        this.emitInst(comparison.inst);
        this.emitSide(block, side, target!);
        this.disagreed = undefined;
        this.releaseRegister(target!);
        this.jump(block.index, side.join, false);
      },
    );
    this.endInstruction();
    code.get(outcome).set(this.registerLocal(target!));
  }

  /** Code for a unit whose threads compare alike, and for one whose threads do not. */
  private eitherAlike(
    guard: Guard,
    outcome: number,
    alike: () => void,
    otherwise: () => void,
  ): void {
    const [done, differs] = [{}, {}];
    this.openLabel('block', done);
    this.openLabel('block', differs);
    testAlike(this, guard, outcome, () => {
      this.branchTo(differs, 'br_if');
    });
    this.endInstruction();
    this.conditionally(alike);
    this.branchTo(done);
    this.closeLabel();
    this.conditionally(otherwise);
    this.closeLabel();
  }

  /**
   * A branch in code for a whole unit: where the threads do not agree, the general code takes it.
   */
  private emitAgreed(block: Block): void {
    const { code } = this;
    const { inst, yes, no } = block.ending as Block['ending'] & { kind: 'branch' };
    const { register, negated } = inst.predicate!;
    const side = this.sideOf(block);
    if (!this.isVarying(register)) {
      // They differ by what they are.
      if (side) {
        this.emitSide(block, side, register);
        this.jump(block.index, side.join, false);
      } else {
        this.handOver(block, block.insts.length);
      }
      return;
    }
    const outcome = this.newLocal('i32');
    this.pushNarrowed(this.laneLocal(register));
    code
      .tee(outcome)
      .i32(this.width === 32 ? -1 : (1 << this.width) - 1)
      .op('i32.eq');
    const [all, none] = negated ? [no, yes] : [yes, no];
    this.when(() => {
      this.jump(block.index, all, false);
    });
    code.get(outcome);
    this.when(() => {
      if (side) {
        this.emitSide(block, side, register);
        this.jump(block.index, side.join, false);
      } else {
        this.handOver(block, block.insts.length);
      }
    });
    this.jump(block.index, none);
  }

  private sideOf(block: Block): ShortSide | undefined {
    const { blocks, shape } = this.kernel;
    return shortSide(this, this.plan, blocks, block, shape.order);
  }

  /** In code for a whole unit: a block for the threads for which the branch before it says so. */
  private emitSide(from: Block, { block, negated }: ShortSide, register: Register): void {
    const lastUse = new Map<Register, number>();
    block.insts.forEach((inst, index) => {
      for (const used of [...inst.uses, ...inst.defs])
        if (this.isBlockLocal(used)) lastUse.set(used, index);
    });
    this.block = block;
    // A store of some threads is not one of all.
    const { unchecked } = this;
    this.unchecked = undefined;
    block.insts.forEach((inst, index) => {
      const own = isPure(inst) && inst.defs.every((defined) => this.isOwn(defined));
      this.emitInst(inst, own ? undefined : { register, negated });
      for (const [used, last] of lastUse) if (last === index) this.releaseRegister(used);
    });
    this.unchecked = unchecked;
    this.saveRegisters(this.spills.early(block.index));
    this.block = from;
  }

  /** A branch on which the threads agree nearly always. */
  private emitGuard(block: Block, guard: Guard): void {
    const { code } = this;
    const ending = block.ending as Block['ending'] & { kind: 'branch' };
    const { register, negated } = ending.inst.predicate!;
    this.laneLocal(register);
    const { unparted } = this;
    if (unparted) {
      whenAll(this, guard, negated !== (ending.no === block.index), () => {
        this.backEdge(block.index, unparted.region);
        this.branchTo(this.turnLabel);
      });
    }
    const outcome = this.newLocal('i32');
    const send = (to: number): void => {
      this.send(block.index, to);
      if (unparted && to !== block.index) this.branchTo(unparted.end);
    };
    this.eitherAlike(
      guard,
      outcome,
      () => {
        code.get(outcome);
        if (negated) code.op('i32.eqz');
        code.op('if').byte(0x40);
        this.nest(() => {
          send(ending.yes);
        });
        code.op('else');
        this.nest(() => {
          send(ending.no);
        });
        code.op('end');
      },
      () => {
        this.emitInst(guard.inst);
        this.inst = ending.inst;
        this.part(block.index, register, negated, ending.yes, ending.no);
      },
    );
  }

  /**
   * The run without checks if it can be, else with them. Registers alive around it have their
   * locals before.
   */
  private emitBothWays(
    block: Block,
    run: UncheckedRun,
    end: number,
    guard: Guard | undefined,
    emit: (keep: ReadonlySet<Register>) => void,
  ): void {
    const { code } = this;
    const inside = new Set(block.insts.slice(run.from, end).flatMap((inst) => inst.defs));
    const outside = new Set<Register>();
    const ending = [
      ...('inst' in block.ending ? block.ending.inst.uses : []),
      ...(guard?.inst.uses ?? []),
      ...block.insts.slice(end).flatMap((inst) => inst.uses),
    ];
    for (const inst of block.insts.slice(run.from, end)) {
      for (const register of [...inst.uses, ...inst.defs])
        if (!this.isBlockLocal(register) || !inside.has(register)) outside.add(register);
    }
    for (const register of block.insts.slice(0, run.from).flatMap((inst) => inst.defs))
      if (inside.has(register)) outside.add(register);
    for (const register of ending) outside.add(register);
    for (const register of outside) {
      if (this.isVarying(register)) this.laneLocal(register);
      else this.registerLocal(register);
    }
    let tests = 0;
    const places = checkRun(this, run, () => {
      if (tests++) code.op('i32.and');
    });
    code.op('if').byte(0x40);
    this.unchecked = places;
    const { lanes, threads } = this.effort;
    this.nest(() => {
      emit(outside);
    });
    this.unchecked = undefined;
    Object.assign(this.effort, { lanes, threads });
    code.op('else');
    this.nest(() => {
      emit(outside);
    });
    code.op('end');
    for (const register of outside) if (!ending.includes(register)) this.releaseRegister(register);
  }

  private emitEnding(block: Block): void {
    const { code, plan } = this;
    const { ending, index } = block;
    if ('inst' in ending) this.inst = ending.inst;
    const soft = !this.everyone && (!plan.convergent(index) || plan.parts(index));
    switch (ending.kind) {
      case 'jump':
        if (soft) this.send(index, ending.to);
        else this.jump(index, ending.to);
        return;
      case 'branch': {
        const { register, negated } = ending.inst.predicate!;
        const { yes, no } = ending;
        if (yes === no) {
          if (soft) this.send(index, yes);
          else this.jump(index, yes);
        } else if (this.everyone && !this.isUniform(register)) {
          this.emitAgreed(block);
        } else if (plan.parts(index) && !this.everyone) {
          this.part(index, register, negated, yes, no);
        } else {
          code.get(this.registerLocal(register));
          if (negated) code.op('i32.eqz');
          if (soft) {
            code.op('if').byte(0x40);
            this.nest(() => {
              this.send(index, yes);
              code.op('else');
              this.send(index, no);
            });
            code.op('end');
          } else {
            this.when(() => {
              this.jump(index, yes, false);
            });
            this.jump(index, no);
          }
        }
        return;
      }
      case 'return':
      case 'exit':
        this.exit(soft);
        if (!soft) {
          this.endTurn(STATE.exited);
          return;
        }
        break;
      case 'trap':
        code.get(this.ctx).get(this.base);
        this.pushBits(this.active);
        code.op('i32.ctz').op('i32.add').i32(ending.inst.source.line);
        this.call(`fault_${ending.inst.mnemonic}`);
        this.leaveFaulted();
        return;
      case 'cut': {
        const { inst } = ending;
        if (!goesTogether(this, inst)) {
          const state = this.suspend(ending, index);
          if (!soft) {
            this.endTurn(state);
            return;
          }
          break;
        }
        for (const register of inst.defs) {
          if (this.isVarying(register)) this.laneLocal(register);
          else this.registerLocal(register);
        }
        if (this.passing.has(index)) {
          emitTogether(this, inst);
          if (soft) this.send(index, ending.to);
          else this.jump(index, ending.to);
          return;
        }
        pushTogether(this, inst);
        code.op('if').byte(0x40);
        this.nest(() => {
          emitTogether(this, inst);
          if (soft) this.send(index, ending.to);
          else this.jump(index, ending.to);
        });
        this.endInstruction();
        code.op('else');
        this.nest(() => {
          this.suspend(ending, index);
          if (soft) this.clearActive();
          else this.branchTo(this.turnLabel);
        });
        code.op('end');
        return;
      }
      case 'switch':
        throw this.unsupported();
    }
    if (soft) this.clearActive();
    else this.branchTo(this.turnLabel);
  }

  /** A turn is over whose threads all are in a state now. */
  private endTurn(state: number): void {
    const { passes } = this;
    if (!passes || !this.everyone) {
      this.branchTo(this.turnLabel);
      return;
    }
    emitEndWholeTurn(this.code, passes, state);
    this.branchTo(this.endedLabel);
  }

  /** The active threads wait at a cut. Their state is returned. */
  private suspend(ending: Block['ending'] & { kind: 'cut' }, index: number): number {
    const { inst } = ending;
    const entry = this.entryOf.get(ending.to)!;
    if (ending.cut === 'sleep') {
      this.emitInst(inst);
      this.save(entry, ending.to);
      return entry;
    }
    this.inst = inst;
    if (ending.cut === 'warp')
      this.forEachThread(true, inst.uses, [], () => {
        emitWarpArrival(this, inst, index);
      });
    else if (this.kernel.barriers === 'general')
      this.forEachThread(true, inst.uses, [], () => {
        emitBarrierArrival(this, inst);
      });
    const state = (ending.cut === 'warp' ? STATE.warp : STATE.barrier) | entry;
    this.save(state, ending.to);
    return state;
  }

  /** The active threads are done: all that are left, or some of them. */
  private exit(some: boolean): void {
    const { code } = this;
    if (this.passes && !some) return;
    if (this.whole >= 0) code.i32(0).set(this.whole);
    if (this.passes) {
      code.get(this.passes.gone);
      this.pushBits(this.active);
      code.op('i32.or').set(this.passes.gone);
    } else if (this.kernel.layout.stateful) {
      this.setState(STATE.exited);
    }
  }

  /** True when control reaches `to` from the end of `from` by itself. */
  private fallsTo(from: number, to: number): boolean {
    const inner = [...this.loopLabels.keys()].at(-1);
    // Those that go round again stay as they are where the loop ends.
    if (inner?.header === to) return this.lastBlock(inner) === from;
    if (this.following.get(from) !== to) return false;
    for (const region of this.loopLabels.keys())
      if (region.header === to || !region.members.has(to)) return false;
    return true;
  }

  /** All active threads go to a block, which control reaches in the order of the layout. */
  private send(from: number, to: number): void {
    if (this.fallsTo(from, to)) return;
    if (this.leavesFor(from, to)) {
      this.clearActive();
      return;
    }
    if (this.plan.leaves(to)) this.exit(true);
    else this.wait(to, this.active);
    this.clearActive();
  }

  /** Threads take a branch each by its own predicate. */
  private part(from: number, register: Register, negated: boolean, yes: number, no: number): void {
    const { code } = this;
    if (this.isVarying(register)) this.laneLocal(register);
    const taken = this.temps(this.groups);
    const rest = this.temps(this.groups);
    this.eachGroup((group) => {
      const local = this.active[group]!;
      code.get(local);
      this.pushPart(register, 0);
      code.op('v128.and').set(taken[group]!).get(local);
      this.pushPart(register, 0);
      code.op('v128.andnot').set(rest[group]!);
    });
    const [yesMask, noMask] = negated ? [rest, taken] : [taken, rest];
    const become = (masks: readonly number[]): void => {
      this.active.forEach((local, group) => {
        code.get(masks[group]!).set(local);
      });
    };
    let stay: readonly number[] | undefined;
    for (const [to, mask] of [
      [yes, yesMask],
      [no, noMask],
    ] as const) {
      if (this.fallsTo(from, to)) {
        stay = mask;
      } else if (this.leavesFor(from, to)) {
        continue;
      } else if (this.plan.leaves(to)) {
        become(mask);
        this.exit(true);
      } else {
        this.wait(to, mask);
      }
    }
    if (stay) become(stay);
    else this.clearActive();
  }

  /** All threads that are left go to a block at once. */
  private jump(from: number, to: number, mayFallThrough = true): void {
    for (const region of this.loopLabels.keys()) {
      if (region.header !== to) continue;
      this.backEdge(to, region);
      this.branchTo(this.turnLabel);
      return;
    }
    if (mayFallThrough && this.fallsTo(from, to)) return;
    if (this.plan.leaves(to)) {
      this.exit(false);
      this.branchTo(this.turnLabel);
      return;
    }
    this.branchTo(this.blockLabels.get(to)!);
  }

  // ---- the whole function

  emit(): { locals: readonly LocalType[]; code: Uint8Array } {
    const {
      code,
      kernel: { layout },
    } = this;
    if (this.passes) {
      this.emitPasses(this.passes);
      return this.finished();
    }
    if (!layout.stateful) {
      this.emitStateless();
      return this.finished();
    }
    this.entryNumber = this.newLocal('i32');
    this.slice = this.newLocal('i32');
    this.fuel = this.newLocal('i32');
    this.states = this.masks();
    if (!this.plan.together) this.todo = this.masks();
    const done = {};
    this.openLabel('block', done);
    this.openLabel('loop', this.unitLabel);
    this.unitStarts.push(code.length);
    code.get(this.base).get(this.to).op('i32.ge_u');
    this.branchTo(done, 'br_if');
    code.get(this.base).set(this.thread);
    const existing = this.masks();
    this.findExisting(existing);
    const turns = {};
    const { together } = this.plan;
    const unitDone = {};
    this.openLabel('block', unitDone);
    const at = this.newLocal('i32');
    this.pushStatesAddress();
    code.set(at);
    const ready = together ? this.active : this.todo;
    this.states.forEach((local, group) => {
      code
        .get(at)
        .memory('v128.load', 16 * group)
        .tee(local)
        .v128([0, 0, 0, 0])
        .op('i32x4.ge_s')
        .get(existing[group]!)
        .op('v128.and')
        .set(ready[group]!);
    });
    if (together) {
      this.findEntry(at, unitDone);
    } else {
      this.openLabel('loop', turns);
      this.findEntry(at, unitDone);
      this.active.forEach((local, group) => {
        code
          .get(this.entryNumber)
          .op('i32x4.splat')
          .get(this.states[group]!)
          .op('i32x4.eq')
          .get(this.todo[group]!)
          .op('v128.and')
          .set(local);
      });
    }
    code.i32(this.threadSlice).set(this.slice);
    this.openLabel('block', this.turnLabel);
    this.emitTurn(() => {
      this.enterAt(
        this.entryNumber,
        this.entries,
        () => undefined,
        (entry) => {
          this.restore(entry);
        },
      );
      if (!together)
        this.todo.forEach((local, group) => {
          code.get(local).get(this.active[group]!).op('v128.andnot').set(local);
        });
    });
    this.closeLabel();
    code
      .get(this.fuel)
      .i32(this.threadSlice)
      .get(this.slice)
      .op('i32.sub')
      .op('i32.sub')
      .i32(1)
      .op('i32.sub')
      .set(this.fuel);
    if (!together) {
      this.branchTo(turns);
      this.closeLabel();
    }
    this.closeLabel();
    this.emitNextUnit();
    this.branchTo(this.unitLabel);
    this.closeLabel();
    this.closeLabel();
    this.storeFuel();
    code.i32(STATUS.done).op('end');
    return this.finished();
  }

  /**
   * A kernel without state: all units of a block, then the next block. Units for which the code for
   * a whole unit suffices go round a loop of their own, in which the general code, and what engines
   * keep in registers for its sake, has no part.
   */
  private emitStateless(): void {
    const {
      code,
      kernel: { shape },
    } = this;
    this.further = this.newLocal('i32');
    this.countIndices();
    const done = {};
    const generalTurn = this.turnLabel;
    const begin = (): void => {
      code.get(this.base).set(this.thread);
      if (this.entryNumber >= 0) code.i32(0).set(this.entryNumber);
      this.clearRegisters();
    };
    const next = (): void => {
      code.get(this.base).i32(this.width).op('i32.add').set(this.base);
      this.emitNextPlace();
    };
    this.openLabel('block', done);
    this.openLabel('loop', this.unitLabel);
    this.unitStarts.push(code.length);
    this.emitSteadyUnits();
    if (this.startsWhole()) {
      this.entryNumber = this.newLocal('i32');
      const [apart, whole] = [{}, {}];
      this.openLabel('block', generalTurn);
      this.openLabel('block', this.generalLabel);
      this.openLabel('block', this.handedLabel);
      this.openLabel('block', apart);
      this.openLabel('loop', whole);
      this.unitStarts.push(code.length);
      code
        .get(this.base)
        .i32(this.width)
        .op('i32.add')
        .get(this.contextField('threads'))
        .op('i32.gt_u');
      this.branchTo(apart, 'br_if');
      begin();
      this.turnLabel = {};
      this.openLabel('block', this.turnLabel);
      this.emitWhole();
      this.closeLabel();
      this.turnLabel = generalTurn;
      next();
      this.branchTo(whole);
      this.closeLabel();
      this.closeLabel();
      this.endBlock(done);
      this.forgetAllBut(new Set());
      begin();
      this.findMissing(this.active);
      this.branchTo(this.generalLabel);
      this.closeLabel();
      this.forgetAllBut(this.handedRegisters());
      this.closeLabel();
    } else {
      this.endBlock(done);
      this.forgetRegisters();
      begin();
      this.findExisting(this.active);
      this.openLabel('block', generalTurn);
    }
    this.emitRegion(shape.root);
    this.closeLabel();
    next();
    this.branchTo(this.unitLabel);
    this.closeLabel();
    this.closeLabel();
    code.i32(STATUS.done).op('end');
  }

  /**
   * All whole units of the block that are left, if nothing in them needs a check that cannot be
   * made for all of them here.
   */
  private emitSteadyUnits(): void {
    const { code, base, width } = this;
    const units = this.oneRow ? findSteadyUnits(this, this.plan, this.kernel.blocks) : undefined;
    if (!units) return;
    const { lanes, threads: each } = this.effort;
    const [none, again] = [{}, {}];
    const threads = this.newLocal('i32');
    const end = this.newLocal('i32');
    this.enterWhole();
    this.block = units.block;
    this.openLabel('block', none);
    code
      .get(this.contextField('threads'))
      .get(base)
      .op('i32.sub')
      .i32(-width)
      .op('i32.and')
      .tee(threads)
      .i32(LEAST_STEADY_UNITS * width)
      .op('i32.lt_s');
    this.branchTo(none, 'br_if');
    code.get(base).tee(this.thread).get(threads).op('i32.add').set(end);
    this.conditionally(() => {
      for (const inst of units.first) this.emitInst(inst);
      const places = checkSteadyUnits(this, units, threads, () => {
        code.op('i32.eqz');
        this.branchTo(none, 'br_if');
      });
      this.endInstruction();
      this.openLabel('loop', again);
      this.unitStarts.push(code.length);
      this.emitWork(units.work, places, new Set(units.first.flatMap(({ defs }) => defs)));
      for (const { local, step } of places)
        if (step) code.get(local).i32(step).op('i32.add').set(local);
      code.get(base).i32(width).op('i32.add').tee(base).get(end).op('i32.lt_u');
      this.branchTo(again, 'br_if');
      this.closeLabel();
    });
    for (const { defs } of units.first) for (const register of defs) this.releaseRegister(register);
    this.closeLabel();
    this.leaveWhole();
    Object.assign(this.effort, { lanes, threads: each });
  }

  /**
   * Each of several loops over units counts all of a thread's indices, whichever code reads them.
   */
  private countIndices(): void {
    if (this.oneRow) return;
    const { blocks, shape } = this.kernel;
    const insts = shape.order.flatMap((index) => instructionsOf(blocks[index]!));
    for (const axis of [0, 1, 2] as const)
      if (insts.some((inst) => inst.args.some((arg) => isRead(arg, `tid.${'xyz'[axis]!}`))))
        this.tids[axis] = this.newLocal('i32');
  }

  /** Where no unit of the block is left: on to the next one, or to where the call is done. */
  private endBlock(done: object): void {
    const { code } = this;
    code.get(this.base).get(this.to).op('i32.ge_u');
    this.when(() => {
      code.get(this.further).op('i32.eqz');
      this.branchTo(done, 'br_if');
      const block = this.contextWord(CTX.ctaid);
      code.get(this.ctx).get(block).i32(1).op('i32.add').tee(block).memory('i32.store', CTX.ctaid);
      code.get(this.further).i32(1).op('i32.sub').set(this.further);
      code.i32(0).set(this.base);
      for (const local of this.tids) if (local >= 0) code.i32(0).set(local);
      this.branchTo(this.unitLabel);
    });
  }

  private finished(): { locals: readonly LocalType[]; code: Uint8Array } {
    const all = new Code();
    all.append(this.prologueBytes()).append(this.forgetting(this.code.finish()));
    return { locals: this.localTypes, code: all.finish() };
  }

  private forgetting(code: Uint8Array): Uint8Array {
    return withForgotten(code, {
      units: this.unitStarts,
      general: this.generalStarts,
      ofInstructions: this.free('v128'),
      most: MOST_FORGOTTEN,
      localCount: this.paramCount + this.localTypes.length,
      isVector: (local) =>
        local >= this.paramCount && this.localTypes[local - this.paramCount] === 'v128',
    });
  }

  /** Which threads there are: the last unit of a block may lack some. */
  private findExisting(masks: readonly number[]): void {
    const { code, passes } = this;
    if (!this.startsWhole()) for (const local of masks) code.v128([-1, -1, -1, -1]).set(local);
    code
      .get(this.base)
      .i32(this.width)
      .op('i32.add')
      .get(this.contextField('threads'))
      .op('i32.le_u');
    if (passes) code.get(passes.gone).op('i32.eqz').op('i32.and');
    if (passes && this.partedBytes && this.startsWhole())
      code.get(passes.frame).memory('i32.load', UNIT.parted).op('i32.eqz').op('i32.and');
    // Code for a whole unit needs no masks, and sets them where it hands over.
    if (this.startsWhole()) {
      code.set(this.whole);
      return;
    }
    if (this.whole >= 0) code.tee(this.whole);
    code.op('i32.eqz');
    this.when(() => {
      this.findMissing(masks);
    });
  }

  /** Which threads there are of a unit that lacks some. */
  private findMissing(masks: readonly number[]): void {
    const { code, passes } = this;
    this.eachGroup((group) => {
      code.get(this.base).op('i32x4.splat');
      this.addSteps32(Array.from({ length: this.width }, (_, lane) => lane));
      code.get(this.contextField('threads')).op('i32x4.splat').op('i32x4.lt_u');
      if (passes) {
        const [a, b, c, d] = [0, 1, 2, 3].map((lane) => 1 << (4 * group + lane)) as [
          number,
          number,
          number,
          number,
        ];
        code
          .get(passes.gone)
          .op('i32x4.splat')
          .v128([a, b, c, d])
          .op('v128.and')
          .v128([0, 0, 0, 0])
          .op('i32x4.eq')
          .op('v128.and');
      }
      code.set(masks[group]!);
    });
  }

  private enterEntry(): void {
    this.enterAt(
      this.entryNumber,
      this.entries,
      () => undefined,
      (entry) => {
        this.restore(entry);
      },
    );
  }

  /** The unit at hand, if there is one, and where it goes on. */
  private beginUnit(passes: PassLocals, passed: object, skipped: object): void {
    const { code } = this;
    this.unitStarts.push(code.length);
    code.get(this.base).get(this.to).op('i32.ge_u');
    this.branchTo(passed, 'br_if');
    code.get(this.base).set(this.thread);
    this.openLabel('block', skipped);
    emitBeginTurn(code, passes, this.entryNumber, (depth) =>
      code.op('br_if').u32(this.depthOf(skipped) + depth),
    );
    this.findExisting(this.active);
    code.i32(this.threadSlice).set(this.slice);
  }

  /**
   * Behind a turn's code: closes what it and the unit have opened, and goes on to the next unit's
   * place.
   */
  private endUnit(passes: PassLocals, opened = true): void {
    const { code } = this;
    this.closeLabel();
    emitEndTurn(code, passes);
    this.closeLabel();
    code
      .get(this.fuel)
      .i32(this.threadSlice + 1)
      .get(this.slice)
      .op('i32.sub')
      .op('i32.sub')
      .set(this.fuel);
    if (opened) this.closeLabel();
    this.emitNextFrame(passes);
  }

  /**
   * Units for which the code for a whole unit suffices go round a loop of their own, in which the
   * general code, and what engines keep in registers for its sake, has no part; the others leave it
   * for one turn. Of turns that never go round: a transpose in cache takes 5 % less time, a
   * softmax, whose turns have loops, took 3 % more.
   */
  private emitUnits(passes: PassLocals, passed: object): void {
    const {
      code,
      kernel: {
        shape: { root },
      },
    } = this;
    const [ended, turn] = [this.endedLabel, this.turnLabel];
    const [apart, whole, skipped] = [{}, {}, {}];
    for (const label of [ended, turn, this.generalLabel, this.handedLabel, apart])
      this.openLabel('block', label);
    this.openLabel('loop', whole);
    this.beginUnit(passes, passed, skipped);
    this.clearRegisters();
    code.get(this.whole).op('i32.eqz');
    this.branchTo(apart, 'br_if');
    [this.endedLabel, this.turnLabel] = [{}, {}];
    this.openLabel('block', this.endedLabel);
    this.openLabel('block', this.turnLabel);
    this.emitWhole();
    this.endUnit(passes);
    this.branchTo(whole);
    this.closeLabel();
    [this.endedLabel, this.turnLabel] = [ended, turn];
    this.closeLabel();
    this.forgetAllBut(new Set());
    this.findMissing(this.active);
    this.enterEntry();
    this.branchTo(this.generalLabel);
    this.closeLabel();
    this.forgetAllBut(this.handedRegisters());
    this.closeLabel();
    this.emitRegion(root);
    this.endUnit(passes, false);
  }

  /** The whole block, one pass over its units after the other. */
  private emitPasses(passes: PassLocals): void {
    const { code } = this;
    this.entryNumber = this.newLocal('i32');
    this.slice = this.newLocal('i32');
    this.fuel = 1;
    const pass = {};
    const passed = {};
    const skipped = {};
    const scratch = this.contextField('scratch');
    const frames = this.framesBase();
    this.touchAhead(passes);
    const streaming = this.startsWhole()
      ? loopsIn(this.kernel.shape.root).filter(
          (region) => this.live.includes(region.header) && this.streams(region),
        )
      : [];
    if (streaming.length) this.countIndices();
    this.openLabel('loop', pass);
    this.openLabel('block', passed);
    for (const { header } of streaming) this.emitSteadyPass(passes, header);
    this.openLabel('loop', this.unitLabel);
    if (this.startsWhole() && this.straightOrder()) {
      this.emitUnits(passes, passed);
    } else {
      this.beginUnit(passes, passed, skipped);
      this.openLabel('block', this.endedLabel);
      this.openLabel('block', this.turnLabel);
      this.emitTurn(() => {
        this.enterEntry();
      });
      this.endUnit(passes);
    }
    this.branchTo(this.unitLabel);
    this.closeLabel();
    this.closeLabel();
    emitEndPass(code, passes, scratch, frames);
    code.i32(0).set(this.base);
    for (const local of this.tids) if (local >= 0) code.i32(0).set(local);
    this.branchTo(pass);
    this.closeLabel();
    code.op('unreachable').op('end');
  }

  /**
   * A loop of one block that some threads leave before others, and that goes through memory: its
   * turns are short in code for a whole unit, so that units keep step.
   */
  private streams({ header, members }: Region): boolean {
    return (
      members.size === 1 &&
      this.plan.parts(header) &&
      isStreaming(this, this.kernel.blocks[header]!)
    );
  }

  /**
   * Units one after the other for as long as they are at the loop and its next turns need no
   * checks: all that there is to do for each is here, and nothing of what engines keep for the rest
   * of the code. From the first unit of which that is not so, all go the usual way.
   */
  private emitSteadyPass(passes: PassLocals, header: number): void {
    const {
      code,
      fuel,
      base,
      width,
      kernel: { blocks },
    } = this;
    const { lanes, threads } = this.effort;
    const none = {};
    const each = {};
    this.enterWhole();
    const loop = findSteadyLoop(this, blocks[header]!, this.checksAhead?.of);
    if (loop) {
      const turns = this.newLocal('i32');
      this.openLabel('block', none);
      code.get(this.contextField('threads')).i32(width).op('i32.le_u');
      this.branchTo(none, 'br_if');
      this.openLabel('loop', each);
      code.get(base).i32(width).op('i32.add').get(this.contextField('threads')).op('i32.gt_u');
      this.branchTo(none, 'br_if');
      // Its state, and that none of its threads has exited.
      code
        .get(passes.frame)
        .memory('i64.load', UNIT.state)
        .i64(this.entryOf.get(header)!)
        .op('i64.ne');
      this.branchTo(none, 'br_if');
      if (this.partedBytes) {
        code.get(passes.frame).memory('i32.load', UNIT.parted);
        this.branchTo(none, 'br_if');
      }
      code.get(base).set(this.thread);
      this.conditionally(() => {
        this.restore(header);
        code.i32(BURST).set(turns);
        this.emitSteadyTurns(blocks[header]!, loop, turns, none, { count: BURST });
      });
      code.i32(1).set(passes.left).i32(1).set(passes.ready);
      code
        .get(fuel)
        .i32(BURST + 1)
        .op('i32.sub')
        .set(fuel);
      this.emitNextFrame(passes);
      this.branchTo(each);
      this.closeLabel();
      this.closeLabel();
    }
    this.leaveWhole();
    Object.assign(this.effort, { lanes, threads });
  }

  /** Where a block begins: loads of lines that its rows will go to. */
  private touchAhead({ release, ready, left }: PassLocals): void {
    const {
      code,
      base,
      width,
      kernel: { blocks, shape },
    } = this;
    const touches = this.oneRow
      ? undefined
      : findTouches(this, blocks, shape.order, (block) => shape.regionOf(block).header >= 0);
    if (!touches) return;
    const { insts, ofRow, pairs, size } = touches;
    const { lanes, threads } = this.effort;
    const none = {};
    const [rows, row] = [
      this.contextWord(CTX.blockDim + 4),
      this.tids[1] >= 0 ? this.tids[1] : (this.tids[1] = this.newLocal('i32')),
    ];
    const registers = [...new Set(insts.flatMap(({ defs }) => defs))];
    this.block = undefined;
    this.enterWhole();
    this.openLabel('block', none);
    // A call that takes up what another has left has no need of it.
    code.get(base).get(release).op('i32.or').get(ready).op('i32.or').get(left).op('i32.or');
    this.branchTo(none, 'br_if');
    code
      .get(this.contextWord(CTX.blockDim))
      .i32(width)
      .op('i32.ne')
      .get(rows)
      .i32(MOST_TOUCHED_ROWS)
      .op('i32.gt_u')
      .op('i32.or');
    this.branchTo(none, 'br_if');
    code.get(rows).op('f64.convert_i32_u');
    for (const offset of [0, 4, 8])
      code
        .get(this.contextWord(CTX.gridDim + offset))
        .op('f64.convert_i32_u')
        .op('f64.mul');
    code.f64(FAR / (new Set(pairs.flat()).size * width * size)).op('f64.lt');
    this.branchTo(none, 'br_if');
    this.conditionally(() => {
      const push = ({ base: register, offset }: Access['address']): void => {
        code.get(this.registerLocal(register!));
        if (offset) code.i64(offset).op('i64.add');
      };
      for (const register of registers)
        this.bindRegister(register, this.newLocal(register.type.wasm));
      for (const inst of insts) this.emitInst(inst);
      const firsts = new Map(pairs.flat().map((access) => [access, this.newLocal('i64')]));
      for (const [{ address }, first] of firsts) {
        push(address);
        code.set(first);
      }
      code.i32(1).set(row);
      for (const inst of insts) if (ofRow.has(inst)) this.emitInst(inst);
      code.i32(0).set(row);
      const [table, at, count] = [this.newLocal('i32'), this.newLocal('i32'), this.newLocal('i32')];
      /** Of the last entry: its step, and the place behind its rows. */
      const sides = [0, 8].map((offset) => ({
        place: ROWS.places + offset,
        steps: ROWS.steps + offset,
        step: this.newLocal('i64'),
        last: this.newLocal('i64'),
        next: this.newLocal('i64'),
      }));
      this.pushRoom(ROWS.bytes * pairs.length);
      code.tee(table).i32(ROWS.bytes).op('i32.sub').set(at);
      pairs.forEach((pair, index) => {
        const done = {};
        this.openLabel('block', done);
        sides.forEach(({ step }, side) => {
          push(pair[side]!.address);
          code.get(firsts.get(pair[side]!)!).op('i64.sub').set(step);
        });
        if (index > 0) {
          // They may go on where the last ones end.
          sides.forEach(({ step, last, next }, side) => {
            code
              .get(step)
              .get(last)
              .op('i64.eq')
              .get(firsts.get(pair[side]!)!)
              .get(next)
              .op('i64.eq')
              .op('i32.and');
            if (side) code.op('i32.and');
          });
          this.when(() => {
            code
              .get(at)
              .get(count)
              .get(rows)
              .op('i32.add')
              .tee(count)
              .memory('i32.store', ROWS.count);
            for (const { step, next } of sides)
              code
                .get(next)
                .get(step)
                .get(rows)
                .op('i64.extend_i32_u')
                .op('i64.mul')
                .op('i64.add')
                .set(next);
            this.branchTo(done);
          });
        }
        code
          .get(at)
          .i32(ROWS.bytes)
          .op('i32.add')
          .tee(at)
          .get(rows)
          .tee(count)
          .memory('i32.store', ROWS.count);
        sides.forEach(({ place, steps, step, last, next }, side) => {
          const first = firsts.get(pair[side]!)!;
          code
            .get(at)
            .get(first)
            .memory('i64.store', place)
            .get(at)
            .get(step)
            .tee(last)
            .memory('i64.store', steps);
          code
            .get(first)
            .get(step)
            .get(rows)
            .op('i64.extend_i32_u')
            .op('i64.mul')
            .op('i64.add')
            .set(next);
        });
        this.closeLabel();
      });
      this.touchRows(table, at, Math.log2(size), Math.ceil((width * size) / LINE), none);
      for (const { id } of registers) this.registerLocals.delete(id);
    });
    this.endInstruction();
    this.closeLabel();
    this.leaveWhole();
    Object.assign(this.effort, { lanes, threads });
  }

  /**
   * Loads of so many lines of all rows in a table, `last` its last entry. By the same few
   * instructions for all of them, one row after the other: that is how processors find out that
   * there is a step, and go ahead.
   */
  private touchRows(table: number, last: number, log2: number, lines: number, none: object): void {
    const { code } = this;
    const [each, skipped, again, left] = [{}, {}, {}, this.newLocal('i32')];
    const sides = [0, 8].map((offset) => ({
      place: ROWS.places + offset,
      steps: ROWS.steps + offset,
      first: this.newLocal('i64'),
      step: this.newLocal('i64'),
      at: this.newLocal('i32'),
      by: this.newLocal('i32'),
    }));
    this.openLabel('loop', each);
    code.get(table).get(last).op('i32.gt_u');
    this.branchTo(none, 'br_if');
    this.openLabel('block', skipped);
    code.get(table).memory('i32.load', ROWS.count).set(left);
    for (const { place, steps, first, step, at, by } of sides) {
      code
        .get(table)
        .memory('i64.load', steps)
        .tee(step)
        .i64(LEAST_BETWEEN_ROWS - 1)
        .op('i64.add')
        .i64(2 * LEAST_BETWEEN_ROWS - 1)
        .op('i64.lt_u');
      this.branchTo(skipped, 'br_if');
      // Steps of 32 bits do not wrap around: the rows lie between the first and the last.
      code
        .get(step)
        .i64(2n ** 31n)
        .op('i64.add')
        .i64(2n ** 32n)
        .op('i64.ge_u');
      this.branchTo(skipped, 'br_if');
      for (const end of [false, true]) {
        if (end)
          code
            .get(first)
            .get(left)
            .i32(1)
            .op('i32.sub')
            .op('i64.extend_i32_u')
            .get(step)
            .op('i64.mul')
            .op('i64.add');
        else code.get(table).memory('i64.load', place).tee(first);
        testPlace(this, false, log2, true, this.width);
        code.op('i32.eqz');
        this.branchTo(skipped, 'br_if');
      }
      code.get(first).op('i32.wrap_i64').set(at).get(step).op('i32.wrap_i64').set(by);
    }
    this.openLabel('loop', again);
    for (const { at } of sides)
      for (let line = 0; line < lines; line++)
        code
          .get(at)
          .memory('i32.load8_u', LINE * line)
          .op('drop');
    for (const { at, by } of sides) code.get(at).get(by).op('i32.add').set(at);
    code.get(left).i32(1).op('i32.sub').tee(left);
    this.branchTo(again, 'br_if');
    this.closeLabel();
    this.closeLabel();
    code.get(table).i32(ROWS.bytes).op('i32.add').set(table);
    this.branchTo(each);
    this.closeLabel();
  }

  private emitNextFrame({ frame }: PassLocals): void {
    this.code.get(frame).i32(this.unitBytes).op('i32.add').set(frame);
    this.emitNextUnit();
  }

  /**
   * Whether a turn in which all threads of the unit are there begins with code for a whole unit.
   * One that is suspended while it is parted goes on parted.
   */
  private startsWhole(): boolean {
    return this.handovers.size > 0 && this.whole >= 0;
  }

  /**
   * A turn from where the entry's number says: by code for a whole unit as long as its threads stay
   * together. `restore` restores what is alive at the entry; code for a whole unit does so where it
   * enters.
   */
  private emitTurn(restore: () => void): void {
    const {
      code,
      kernel: {
        shape: { root },
      },
    } = this;
    const startsWhole = this.startsWhole();
    if (!startsWhole) this.forgetRegisters();
    this.clearRegisters();
    if (!this.handovers.size) {
      restore();
      this.emitRegion(root);
      return;
    }
    const apart = {};
    this.openLabel('block', this.generalLabel);
    this.openLabel('block', this.handedLabel);
    if (startsWhole) {
      this.openLabel('block', apart);
      code.get(this.whole);
    } else {
      restore();
      this.pushAll(this.active);
    }
    code.op('i32.eqz');
    this.branchTo(startsWhole ? apart : this.generalLabel, 'br_if');
    this.emitWhole();
    if (startsWhole) {
      this.closeLabel();
      this.forgetAllBut(new Set());
      this.findMissing(this.active);
      restore();
      this.branchTo(this.generalLabel);
    }
    this.closeLabel();
    this.forgetAllBut(this.handedRegisters());
    this.closeLabel();
    this.emitRegion(root);
  }

  private enterWhole(): void {
    this.generalActive = this.active;
    this.active = this.active.map(() =>
      this.hoist('everyone', 'v128', (prologue) => {
        prologue.v128([-1, -1, -1, -1]);
      }),
    );
    this.everyone = true;
  }

  private leaveWhole(): void {
    this.everyone = false;
    this.active = this.generalActive;
  }

  /** Code for a whole unit. */
  private emitWhole(): void {
    const { lanes, threads } = this.effort;
    this.enterWhole();
    const straight = this.startsWhole() ? this.straightOrder() : undefined;
    if (straight) this.emitStraight(straight);
    else this.emitRegion(this.kernel.shape.root);
    this.leaveWhole();
    this.branchTo(this.turnLabel);
    Object.assign(this.effort, { lanes, threads });
  }

  /** Finds where the first thread that is ready goes on; leaves where none is. */
  private findEntry(at: number, none: object): void {
    const { code } = this;
    const ready = this.plan.together ? this.active : this.todo;
    this.pushAll(ready);
    code.op('if').byte(0x40);
    code.get(at).memory('i32.load').set(this.entryNumber);
    code.op('else');
    this.nest(() => {
      this.pushBits(ready);
      const bits = this.newLocal('i32');
      code.tee(bits).op('i32.eqz');
      this.branchTo(none, 'br_if');
      code
        .get(at)
        .get(bits)
        .op('i32.ctz')
        .i32(2)
        .op('i32.shl')
        .op('i32.add')
        .memory('i32.load')
        .set(this.entryNumber);
    });
    code.op('end');
  }

  private storeFuel(): void {
    const {
      code,
      around: { linker },
    } = this;
    code
      .get(this.fuel)
      .op('global.set')
      .u32(linker.globalIndex('fuel'))
      .i32(0)
      .op('global.set')
      .u32(linker.globalIndex('carry'));
  }

  /** Registers that some path reads before it writes them start at zero. */
  private clearRegisters(): void {
    this.clear(this.liveness.liveIn(0));
  }

  /**
   * A turn knows nothing of the turn before: without being told, engines carry all registers from
   * one to the next, since for them any entry may come after any.
   */
  private forgetRegisters(): void {
    const waited = this.waited();
    if (waited.length * this.groups > MOST_FORGOTTEN) return;
    const restored = new Set(this.handedRegisters());
    for (const entry of this.live)
      this.spills.needed(entry).forEach((register) => restored.add(register));
    if (
      [...restored].filter((register) => this.isVarying(register)).length * this.groups >
      MOST_RESTORED
    )
      return;
    this.clear(restored);
    for (const block of waited) this.clearMasks(this.waitMasks(block));
  }

  /** Blocks at which threads wait. */
  private waited(): number[] {
    return this.kernel.shape.order.filter((block) => this.plan.waitsAt(block));
  }

  /** What the general code may need of those that hand over to it. */
  private handedRegisters(): ReadonlySet<Register> {
    return (this.handed ??= new Set(
      [...this.handovers]
        .flatMap(([block, { numbers }]) =>
          this.knownAt(this.kernel.blocks[block]!, Math.max(...numbers.keys())),
        )
        .filter((register) => !this.isBlockLocal(register)),
    ));
  }

  /** Registers that have a value before an instruction of a block. */
  private knownAt({ index, insts }: Block, place: number): Register[] {
    return [...this.liveness.liveIn(index), ...insts.slice(0, place).flatMap((inst) => inst.defs)];
  }

  /**
   * Where the general code is come to, which is seldom: of what went before, it knows nothing but
   * these registers. No thread waits.
   */
  private forgetAllBut(kept: ReadonlySet<Register>): void {
    this.generalStarts.push(this.code.length);
    this.forget(this.ownRegisters().filter((register) => !kept.has(register)));
    for (const block of this.waited()) this.clearMasks(this.waitMasks(block));
  }

  /** Registers whose locals are theirs throughout. */
  private ownRegisters(): Register[] {
    const { blocks, shape } = this.kernel;
    const defs = shape.order.flatMap((index) =>
      instructionsOf(blocks[index]!).flatMap((inst) => inst.defs),
    );
    return [...new Set(defs)].filter((register) => !this.isBlockLocal(register));
  }

  /** In the form that the general code has them in. */
  private forget(registers: readonly Register[]): void {
    const { everyone } = this;
    this.everyone = false;
    this.clear(registers);
    this.everyone = everyone;
  }

  private clear(registers: Iterable<Register>): void {
    const { code } = this;
    for (const register of registers) {
      if (this.isVarying(register)) {
        for (const local of this.laneLocal(register)) code.v128([0, 0, 0, 0]).set(local);
        continue;
      }
      const { wasm } = register.type;
      if (wasm === 'i64') code.i64(0);
      else if (wasm === 'f32') code.f32(0);
      else if (wasm === 'f64') code.f64(0);
      else code.i32(0);
      code.set(this.registerLocal(register));
    }
  }

  /** The next unit's place in its block. */
  private emitNextPlace(): void {
    const { code, tids } = this;
    if (this.oneRow || tids.every((local) => local < 0)) return;
    const x = tids[0] >= 0 ? tids[0] : (tids[0] = this.newLocal('i32'));
    code
      .get(x)
      .i32(this.width)
      .op('i32.add')
      .tee(x)
      .get(this.contextWord(CTX.blockDim))
      .op('i32.ge_u');
    this.when(() => {
      code.i32(0).set(x);
      const [, y, z] = tids;
      if (y < 0 && z < 0) return;
      const ty = y >= 0 ? y : (tids[1] = this.newLocal('i32'));
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

  private emitNextUnit(): void {
    const { code } = this;
    code.get(this.base).i32(this.width).op('i32.add').set(this.base);
    this.emitNextPlace();
    code.get(this.fuel).i32(0).op('i32.le_s');
    this.when(() => {
      if (this.passes) {
        emitInterrupt(
          code,
          this.passes,
          this.ctx,
          this.contextField('scratch'),
          this.framesBase(),
          this.unitBytes,
          this.width,
          this.base,
          () => this.call('lanes_tell'),
        );
        return;
      }
      code.get(this.base).op('global.set').u32(this.around.linker.globalIndex('cursor'));
      this.storeFuel();
      code.i32(STATUS.yielded).op('return');
    });
  }

  private prologueBytes(): Uint8Array {
    const { prologue } = this;
    if (this.passes) {
      const threads = this.contextField('threads');
      prologue.get(threads).set(this.to);
      emitTakeUp(
        prologue,
        this.passes,
        this.from,
        this.contextField('scratch'),
        this.framesBase(),
        this.unitBytes,
        this.width,
        threads,
        () => prologue.op('call').u32(this.around.linker.functionIndex('lanes_begin')),
      );
    } else if (this.kernel.layout.stateful) {
      prologue.op('global.get').u32(this.around.linker.globalIndex('fuel')).set(this.fuel);
    } else {
      prologue.i32(0).set(this.from).get(this.ctx).memory('i32.load', CTX.threads).set(this.to);
      prologue.get(this.ctx).memory('i32.load', CTX.further).set(this.further);
    }
    prologue.get(this.from).set(this.base);
    if (this.oneRow) return prologue.finish();
    const [x, y, z] = this.tids;
    if (x < 0 && y < 0 && z < 0) return prologue.finish();
    const width = (): void => {
      prologue.get(this.ctx).memory('i32.load', CTX.blockDim);
    };
    const height = (): void => {
      prologue.get(this.ctx).memory('i32.load', CTX.blockDim + 4);
    };
    // Most calls begin with the first thread, and everything would wait for three divisions.
    prologue.get(this.from).op('if').byte(0x40);
    if (x >= 0) {
      prologue.get(this.from);
      width();
      prologue.op('i32.rem_u').set(x);
    }
    for (const [local, operation] of [
      [y, 'i32.rem_u'],
      [z, 'i32.div_u'],
    ] as const) {
      if (local < 0) continue;
      prologue.get(this.from);
      width();
      prologue.op('i32.div_u');
      height();
      prologue.op(operation).set(local);
    }
    prologue.op('end');
    return prologue.finish();
  }
}

function loopsIn(region: Region): Region[] {
  const { header, items } = region;
  return [
    ...(header >= 0 ? [region] : []),
    ...items.flatMap((item) => (typeof item === 'number' ? [] : loopsIn(item))),
  ];
}

/** Whether a loop's threads go through memory side by side, to another place each time. */
function isStreaming(e: LaneEmitter, block: Block): boolean {
  return streamedAddresses(e, block).length > 0;
}

/** The registers that hold the addresses of such accesses, of so many bytes at least. */
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

/**
 * Whether a cut never makes its threads wait: a warp operation of all threads of a unit, which have
 * come to it together.
 */
function passesThrough(
  e: LaneEmitter,
  plan: LanePlan,
  block: number,
  { cut, inst }: Block['ending'] & { kind: 'cut' },
): boolean {
  return (
    cut === 'warp' &&
    plan.together &&
    plan.convergent(block) &&
    goesTogether(e, inst) &&
    meansAll(e, inst)
  );
}

/** Whether units wait at nothing but the barrier for all threads, and are suspended whole. */
function runsAlone(
  e: LaneEmitter,
  plan: LanePlan,
  { blocks, shape, barriers }: LaneKernel,
): boolean {
  return (
    plan.together &&
    barriers !== 'general' &&
    shape.order.every((index) => {
      const { ending } = blocks[index]!;
      return (
        ending.kind !== 'cut' || ending.cut !== 'warp' || passesThrough(e, plan, index, ending)
      );
    })
  );
}
