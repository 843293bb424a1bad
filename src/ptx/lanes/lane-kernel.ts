// Writes a kernel as a function that runs a range of a block's threads in units of one to eight
// groups of four. It keeps the contract of the scalar back end: the same thread states, mailboxes
// and entries, but another layout of the frames.
//
// A turn runs the threads of a unit that are at the same entry, each to its next cut. Blocks run in
// layout order; threads that diverge wait in a mask at the block to which they branch. Fuel is only
// tested between turns, so that the results do not depend on it.

import { threadSlice } from '../analysis/blocks.js';
import type { Block } from '../analysis/blocks.js';
import { instructionsOf } from '../analysis/liveness.js';
import type { Liveness } from '../analysis/liveness.js';
import type { Inst, LoweredFunction, Register } from '../analysis/program.js';
import type { Region, Shape } from '../analysis/regions.js';
import { STATUS } from '../context.js';
import { bytesBeforeFrames, bytesWithLocals } from '../emit/frame-layout.js';
import type { FrameLayout } from '../emit/frame-layout.js';
import { matricesBase, pushMailbox } from '../emit/scratch-places.js';
import type { Surroundings } from '../emit/surroundings.js';
import type { Rules } from '../rules/rule.js';
import type { SchedulerNeeds } from '../runtime/scheduler.js';
import type { PassLocals } from './block-passes.js';
import type { CodePlan } from './code-plan.js';
import { planFrames, runsAlone } from './frame-plan.js';
import type { FramePlan } from './frame-plan.js';
import { LaneEmitter } from './lane-emitter.js';
import type { LaneRules } from './lane-emitter.js';
import { planCode } from './pass-table.js';
import type { PassName, Passes } from './pass-table.js';
import type { LanePlan } from './plan.js';
import { findRanges } from './ranges.js';
import type { Ranges } from './ranges.js';

export interface LaneKernel {
  lowered: LoweredFunction;
  blocks: readonly Block[];
  shape: Shape;
  liveness: Liveness;
  remade: ReadonlyMap<number, Inst>;
  /** The scalar back end's layout: what comes before the frames is the same. */
  layout: FrameLayout;
  barriers: SchedulerNeeds['barriers'];
  paramBytes: number;
}

export class LaneKernelEmitter extends LaneEmitter {
  readonly ctx = 0;
  readonly from: number;

  readonly to: number;
  readonly thread: number;

  readonly kernel: LaneKernel;
  readonly threadSlice: number;

  readonly frames: FramePlan;
  readonly codePlan: CodePlan;
  private readonly passOptions: Passes;
  readonly tids: [number, number, number] = [-1, -1, -1];

  readonly waiting = new Map<number, readonly number[]>();

  /** Blocks at which threads may wait, in the code written so far. */
  readonly awaited = new Set<number>();

  readonly following = new Map<number, number>();

  readonly blockLabels = new Map<number, object>();
  readonly loopLabels = new Map<Region, object>();

  turnLabel = {};

  /** Blocks are one row: a thread's number is its index. */
  readonly oneRow: boolean;

  /** After the state that a turn of a block that runs by itself leaves. */
  endedLabel = {};
  readonly unitLabel = {};

  /** Where the loops over units begin in the code. */
  readonly unitStarts: number[] = [];

  /** Where the general code begins: no local of an instruction has a value there. */
  readonly generalStarts: number[] = [];

  /** In a kernel without state: the blocks that the call still runs after this one. */
  further = -1;
  entryNumber = -1;

  handed: ReadonlySet<Register> | undefined = undefined;

  readonly hoistedPlaces = new Map<Inst, { local: number; offset: number }>();

  /** The masks of the general code, while code for whole units is written. */
  generalActive: readonly number[] = [];

  /** After the code for whole units. */
  readonly generalLabel = {};

  /** Where code for whole units hands over. */
  readonly handedLabel = {};

  /** Vectors that have been loaded since the last anchor. */
  loadsAhead = 0;
  slice = -1;

  fuel = -1;
  states: readonly number[] = [];

  todo: readonly number[] = [];
  used: Set<Register> | undefined = undefined;

  ranges: Ranges | undefined = undefined;

  /** Present if the function runs the whole block by itself. */
  readonly passes: PassLocals | undefined = undefined;

  /** The function takes the context and the fuel, and runs a block to its end. */
  get alone(): boolean {
    return this.passes !== undefined;
  }

  /**
   * Blocks go through memory with the whole grid's stride, and may run side by side. Known once the
   * code is written.
   */
  get strides(): boolean {
    return this.alone && this.runsOn && this.codePlan.strides;
  }

  /**
   * A call may run further blocks: none waits for another, or leaves anything in scratch that the
   * next one reads.
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
    passes: Passes,
  ) {
    super(around, groups, plan, kernel.liveness, rules, laneRules);
    this.kernel = kernel;
    this.passOptions = passes;
    const { shape, blocks, layout } = kernel;
    this.threadSlice = threadSlice(blocks);
    const alone = layout.stateful && this.runs('block loop') && runsAlone(this, plan, kernel);
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
    this.oneRow = oneRow && this.runs('one row');
    if (this.oneRow) this.tids[0] = this.base;
    this.active = this.masks();
    this.frames = planFrames(this, plan, kernel, alone);
    shape.order.forEach((block, index) => {
      this.following.set(block, shape.order[index + 1] ?? -1);
    });
    this.codePlan = planCode(this);
  }

  /** Whether a pass is switched on. */
  runs(name: PassName): boolean {
    return (this.passOptions as Partial<Record<PassName, boolean>>)[name] !== false;
  }

  /**
   * Within `ask`, questions about registers are answered for the version for whole units, or for
   * the general one.
   */
  inVersion(whole: boolean, ask: () => void): void {
    const { wholeUnit } = this;
    this.wholeUnit = whole;
    ask();
    this.wholeUnit = wholeUnit;
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
    if (!this.runs('value ranges')) return false;
    const { blocks, shape, liveness } = this.kernel;
    this.ranges ??= findRanges(blocks, shape.order, liveness);
    return this.ranges.within(address, offset, size);
  }

  masks(): readonly number[] {
    return Array.from({ length: this.groups }, () => this.newLocal('v128'));
  }

  /** Masks of the threads that wait at a block. */
  waitMasks(block: number): readonly number[] {
    let locals = this.waiting.get(block);
    if (locals === undefined) this.waiting.set(block, (locals = this.masks()));
    return locals;
  }

  sharesCell(register: Register): boolean {
    return this.plan.together && !this.isVarying(register);
  }

  /** A kernel with matrices has no lanes: the frames begin where the matrices would. */
  framesBase(): number {
    return matricesBase(this, this.kernel.layout);
  }

  localsBase(): number {
    const frames = this.framesBase();
    return this.hoist('locals', 'i32', (code) => {
      code
        .get(frames)
        .get(this.contextField('threads'))
        .i32(this.width - 1)
        .op('i32.add')
        .i32(Math.log2(this.width))
        .op('i32.shr_u')
        .i32(this.frames.unitBytes)
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

  pushExchange(): void {
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
      bytesBeforeFrames(layout, threads) + Math.ceil(threads / this.width) * this.frames.unitBytes;
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
}
