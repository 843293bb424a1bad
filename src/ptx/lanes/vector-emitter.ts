// Values of a unit's threads: one to eight groups of four adjacent threads. A varying register is a
// v128 for each group (32 bits, or a mask for a predicate) or two (64 bits: threads 0 and 1, then 2
// and 3). A register whose values are uniform or step evenly is a scalar: the first thread's. Rules
// of the scalar back end run once on such scalars, and thread by thread on the others; vector rules
// are written for one group and run for each.

import type { Block } from '../analysis/blocks.js';
import type { Liveness } from '../analysis/liveness.js';
import type { Arg, Inst, Register } from '../analysis/program.js';
import { Emitter } from '../emit/emitter.js';
import { SCRATCH } from '../emit/frame-layout.js';
import type { Surroundings } from '../emit/surroundings.js';
import type { LocalType, ScalarType } from '../scalar-types.js';
import type { Code } from '../wasm/code.js';
import { isKnown } from './pattern.js';
import type { LanePlan } from './plan.js';
import { argSpread, steps } from './spread.js';
import type { Agreed } from './uniform-predicates.js';

export const isWide = (register: Register): boolean => register.type.bits === 64;

export abstract class VectorEmitter extends Emitter {
  readonly plan: LanePlan;
  readonly liveness: Liveness;
  private readonly laneLocals = new Map<number, number[]>();
  /** Groups of four in a unit. */
  readonly groups: number;
  /** The group for which code is being written. */
  group = 0;
  /** The only group, for instructions that are written group by group; else -1. */
  onlyGroup = -1;
  /** Masks of the threads that run the current block, one for each group. */
  active: readonly number[] = [];
  /** The first thread's index in the block. */
  base = -1;
  /**
   * The local that is true while all threads of a unit exist, if that is known: then all run that
   * do not wait elsewhere.
   */
  whole = -1;
  /** The current code only runs if all threads of the unit do. */
  wholeUnit = false;
  /**
   * Registers that are used in one block only, but keep their locals: code for whole units hands
   * them over to the general code.
   */
  readonly carried = new Set<number>();
  agreed: Agreed | undefined = undefined;
  /** One of the uniform predicates, while code is written in which threads do not agree on it. */
  disagreed: Register | undefined = undefined;
  /**
   * The local with the index in the unit of the thread for which scalar code is being written; -1
   * for all at once.
   */
  lane = -1;
  block: Block | undefined = undefined;
  /** The current instruction's predicate, as masks; empty without one. */
  predicateMask: readonly number[] = [];
  /** With a predicate: the active threads for which it holds. */
  writeMask: readonly number[] = [];
  /** The same as bits, if they are known at compile time. */
  writeBits: number | undefined = undefined;
  /** Uniform values as vectors, for the groups after the first. */
  private splats = new Map<string, number>();
  private splatLocals: number[] = [];
  /** The most bytes that registers of one instruction take when its threads run one by one. */
  exchangeBytes = 0;
  /** Places of accesses that have been checked before. */
  unchecked: ReadonlyMap<Inst, { local: number; offset: number }> | undefined = undefined;

  constructor(around: Surroundings, groups: number, plan: LanePlan, liveness: Liveness) {
    super(around);
    this.groups = groups;
    this.plan = plan;
    this.liveness = liveness;
  }

  /** Pushes the address of the memory for registers of threads that run one by one. */
  abstract pushExchange(): void;

  /** Pushes the address of this many bytes that nothing else uses during the instruction. */
  pushRoom(bytes: number): void {
    this.exchangeBytes = Math.max(this.exchangeBytes, bytes);
    this.pushExchange();
  }

  isBlockLocal(register: Register): boolean {
    return this.liveness.isLocal(register) && !this.carried.has(register.id);
  }

  /**
   * Like hoist, for an expensive value: it is passed through memory. Engines compute a value again
   * wherever it is needed if it depends only on constants and arguments.
   */
  keep(key: string, type: LocalType, compute: (code: Code) => void): number {
    return this.hoist(key, type, (prologue) => {
      const scratch = this.contextField('scratch');
      prologue.get(scratch);
      compute(prologue);
      prologue
        .memory(`${type}.store`, SCRATCH.kept)
        .get(scratch)
        .memory(`${type}.load`, SCRATCH.kept);
    });
  }

  isVarying(register: Register): boolean {
    const { stride, pattern } = this.plan.spread(register);
    return stride === undefined && !pattern && !this.agrees(register);
  }

  /** Code for whole units has the predicate as a scalar. */
  agrees(register: Register): boolean {
    return this.wholeUnit && register !== this.disagreed && this.agreed?.has(register) === true;
  }

  /** Nothing outside its block reads the register. */
  isOwn(register: Register): boolean {
    return this.liveness.isLocal(register);
  }

  /** The threads for which a predicate holds, as bits, if they are always the same. */
  bitsOf({ register, negated }: NonNullable<Inst['predicate']>): number | undefined {
    const bits = this.plan
      .constants(register)
      ?.reduce((sum, value, lane) => (value ? sum | (1 << lane) : sum), 0);
    return bits === undefined
      ? undefined
      : negated
        ? ~bits & (this.width === 32 ? -1 : (1 << this.width) - 1)
        : bits;
  }

  isUniform(register: Register): boolean {
    return this.plan.spread(register).stride === 0 || this.agrees(register);
  }

  stride(arg: Arg): number | undefined {
    return argSpread(arg, (register) => this.plan.spread(register))?.stride;
  }

  /** The difference of each thread's operand from the first one's, if it is known. */
  steps(arg: Arg): readonly number[] | undefined {
    const spread = argSpread(arg, (register) => this.plan.spread(register));
    return spread && steps(spread, this.width);
  }

  /** The value of an operand of 32 bits that is known at compile time. */
  literal(arg: Arg): number | undefined {
    if (arg.kind === 'integer') return Number(BigInt.asUintN(32, arg.value));
    return arg.kind === 'register' ? this.plan.literal(arg.register) : undefined;
  }

  /** Threads in a unit. */
  get width(): number {
    return 4 * this.groups;
  }

  /** Writes code for each group, or only for one while instructions are written group by group. */
  eachGroup(body: (group: number) => void): void {
    if (this.onlyGroup >= 0) {
      body(this.onlyGroup);
      return;
    }
    for (let group = 0; group < this.groups; group++) {
      this.group = group;
      body(group);
    }
    this.group = 0;
  }

  // Registers.

  /** The v128 locals of a varying register: group by group, the halves of wide ones adjacent. */
  laneLocal(register: Register): number[] {
    const constants = this.plan.constants(register);
    if (constants) return this.constantLocals(register, constants);
    let locals = this.laneLocals.get(register.id);
    if (!locals) {
      const take = (): number =>
        this.isBlockLocal(register) ? this.takeLocal('v128') : this.newLocal('v128');
      locals = Array.from({ length: isWide(register) ? 2 * this.groups : this.groups }, take);
      this.laneLocals.set(register.id, locals);
    }
    return locals;
  }

  private constantLocals({ type }: Register, values: readonly number[]): number[] {
    return Array.from({ length: this.groups }, (_, group) => {
      const [a, b, c, d] = values
        .slice(4 * group, 4 * group + 4)
        .map((value) => (type.kind === 'predicate' ? -value : value)) as [
        number,
        number,
        number,
        number,
      ];
      return this.hoist(`lanes ${a} ${b} ${c} ${d}`, 'v128', (code) => {
        code.v128([a, b, c, d]);
      });
    });
  }

  isConstant(register: Register): boolean {
    return this.plan.constants(register) !== undefined;
  }

  /** The value of a predicate that is always the same for all threads of the group. */
  knownTruth(arg: Arg): boolean | undefined {
    if (arg.kind === 'not') {
      const truth = this.knownTruth(arg.operand);
      return truth === undefined ? undefined : !truth;
    }
    const values =
      arg.kind === 'register'
        ? this.plan.constants(arg.register)?.slice(4 * this.group, 4 * this.group + 4)
        : undefined;
    return values?.every((value) => value === values[0]) ? values[0] === 1 : undefined;
  }

  /** The group's local, or one of its two. */
  laneOf(register: Register, half = 0): number {
    return this.laneLocal(register)[isWide(register) ? 2 * this.group + half : this.group]!;
  }

  override releaseRegister(register: Register): void {
    super.releaseRegister(register);
    const locals = this.laneLocals.get(register.id);
    if (!locals || !this.isBlockLocal(register)) return;
    this.laneLocals.delete(register.id);
    locals.forEach((local) => {
      this.giveLocal(local);
    });
  }

  override endInstruction(): void {
    super.endInstruction();
    for (const local of this.splatLocals) this.giveLocal(local);
    this.splatLocals = [];
    this.splats.clear();
  }

  override when(body: () => void): void {
    super.when(() => {
      this.conditionally(body);
    });
  }

  override nest(body: () => void): void {
    super.nest(() => {
      this.conditionally(body);
    });
  }

  /** Uniform vectors that are made inside do not exist after it. */
  conditionally(body: () => void): void {
    const before = this.splats;
    this.splats = new Map(before);
    body();
    this.splats = before;
  }

  // Vectors on the stack.

  splat(type: ScalarType): void {
    const shapes = { i32: 'i32x4', i64: 'i64x2', f32: 'f32x4', f64: 'f64x2' } as const;
    this.code.op(`${shapes[type.wasm]}.splat`);
  }

  /**
   * Pushes the first value of a uniform or stepping operand in every lane; it is made once for all
   * groups.
   */
  private pushSplat(arg: Arg, type: ScalarType): void {
    const { code } = this;
    const make = (): void => {
      this.push(arg, type);
      if (type.kind === 'predicate') code.i32(-1).op('i32.mul');
      this.splat(type);
    };
    if (
      this.groups === 1 ||
      (arg.kind !== 'register' && arg.kind !== 'integer' && arg.kind !== 'float')
    ) {
      make();
      return;
    }
    const what =
      arg.kind === 'register'
        ? `r${arg.register.id}`
        : arg.kind === 'integer'
          ? `i${arg.value}`
          : `f${arg.width}:${arg.bits}`;
    const key = `${what} ${type.name}`;
    const known = this.splats.get(key);
    if (known !== undefined) {
      code.get(known);
      return;
    }
    make();
    const local = this.takeLocal('v128');
    this.splats.set(key, local);
    this.splatLocals.push(local);
    code.tee(local);
  }

  /** Adds the group's steps to the four equal i32 on the stack. */
  addSteps32(steps: readonly number[]): void {
    const lanes = steps.slice(4 * this.group, 4 * this.group + 4).map((step) => step | 0) as [
      number,
      number,
      number,
      number,
    ];
    if (lanes.every((step) => step === 0)) return;
    this.pushConstant(lanes);
    this.code.op('i32x4.add');
  }

  pushConstant(lanes: readonly [number, number, number, number]): void {
    this.code.get(
      this.hoist(`lanes ${lanes.join(' ')}`, 'v128', (code) => {
        code.v128(lanes);
      }),
    );
  }

  /** Adds the steps of half a group to the two equal i64 on the stack. */
  addSteps(steps: readonly number[], half: number): void {
    const lanes = steps
      .slice(4 * this.group + 2 * half, 4 * this.group + 2 * half + 2)
      .flatMap((step) => [step | 0, Math.floor(step / 2 ** 32) | 0]);
    if (lanes.every((word) => word === 0)) return;
    this.pushConstant(lanes as [number, number, number, number]);
    this.code.op('i64x2.add');
  }

  /** Pushes the group's four 32-bit values, or its mask for a predicate. */
  pushLanes(arg: Arg, type: ScalarType): void {
    const { code } = this;
    if (arg.kind === 'not') {
      this.pushLanes(arg.operand, type);
      code.op('v128.not');
      return;
    }
    if (arg.kind === 'register' && this.isVarying(arg.register)) {
      this.checkFit(arg.register, type, 'exact', arg.at);
      code.get(this.laneOf(arg.register));
      return;
    }
    const values = arg.kind === 'register' ? this.plan.spread(arg.register).pattern : undefined;
    if (arg.kind === 'register' && values && isKnown(values) && this.stride(arg) !== 0) {
      this.checkFit(arg.register, type, 'exact', arg.at);
      const lanes = values.offsets.slice(4 * this.group, 4 * this.group + 4);
      this.pushConstant(
        lanes.map((value) => (type.kind === 'predicate' ? -value : value | 0)) as [
          number,
          number,
          number,
          number,
        ],
      );
      return;
    }
    this.pushSplat(arg, type);
    this.addSteps32(this.steps(arg) ?? []);
  }

  /** Pushes two of the group's four 64-bit values: half 0 is threads 0 and 1. */
  pushHalf(arg: Arg, type: ScalarType, half: number): void {
    const { code } = this;
    if (arg.kind === 'register' && this.isVarying(arg.register)) {
      this.checkFit(arg.register, type, 'exact', arg.at);
      code.get(this.laneOf(arg.register, half));
      return;
    }
    this.pushSplat(arg, type);
    this.addSteps(this.steps(arg) ?? [], half);
  }

  /** Pushes a register's values in the group, or in half of it if they are wide. */
  pushPart(register: Register, half: number): void {
    const arg: Arg = { kind: 'register', register, at: 0 };
    if (isWide(register)) this.pushHalf(arg, register.type, half);
    else this.pushLanes(arg, register.type);
  }

  /**
   * Pops the group's vector into a varying register, and keeps the values of threads that may not
   * change.
   */
  popLanes(arg: Arg, half = 0): void {
    const { code } = this;
    if (arg.kind === 'sink') {
      code.op('drop');
      return;
    }
    if (arg.kind !== 'register') throw this.semantic('expected a register to write', arg.at);
    const local = this.laneOf(arg.register, half);
    const masks = this.masksFor(arg.register);
    if (masks) {
      code.get(local);
      this.pushMaskHalf(masks[this.group]!, isWide(arg.register) ? half : -1);
      code.op('v128.bitselect');
    }
    code.set(local);
  }

  /** A mask of 32-bit lanes, or one half of it widened to 64-bit lanes. */
  pushMaskHalf(mask: number, half: number): void {
    this.code.get(mask);
    if (half >= 0) this.code.get(mask).shuffle(half ? [2, 2, 3, 3] : [0, 0, 1, 1]);
  }

  /**
   * Masks under which the current instruction may write a register; undefined if it may write
   * everywhere.
   */
  masksFor(register: Register): readonly number[] | undefined {
    if (this.block && !this.wholeUnit && this.plan.keeps(this.block.index, register))
      return this.guardMasks();
    return this.predicateMask.length ? this.predicateMask : undefined;
  }

  /**
   * The group's mask of the threads whose value the current instruction may change, unless all may.
   */
  mergeMask(register: Register): number | undefined {
    return this.masksFor(register)?.[this.group];
  }

  /** Some threads of the unit may not execute the current instruction. */
  get diverged(): boolean {
    return (
      this.predicateMask.length > 0 ||
      (!this.wholeUnit && this.block !== undefined && !this.plan.convergent(this.block.index))
    );
  }

  /** Masks of the threads that execute the current instruction. */
  guardMasks(): readonly number[] {
    return this.predicateMask.length ? this.writeMask : this.active;
  }

  /** Pushes one vector from one for each group, combined. */
  pushCombined(locals: readonly number[], operation: 'and' | 'or'): void {
    locals.forEach((local, index) => {
      this.code.get(local);
      if (index) this.code.op(`v128.${operation}`);
    });
  }

  /** Pushes whether some thread is in the masks. */
  pushAny(masks: readonly number[]): void {
    this.pushCombined(masks, 'or');
    this.code.op('v128.any_true');
  }

  /** Pushes whether all threads are in the masks. */
  pushAll(masks: readonly number[]): void {
    if (this.wholeUnit && masks === this.active) {
      this.code.i32(1);
      return;
    }
    this.pushCombined(masks, 'and');
    this.code.op('i32x4.all_true');
  }

  /** Pushes whether all threads of the unit execute the current instruction. */
  pushAllExecute(): void {
    if (this.predicateMask.length) this.pushAll(this.writeMask);
    else if (this.wholeUnit) this.code.i32(1);
    else if (this.runsWhole()) this.code.get(this.whole);
    else this.pushAll(this.active);
  }

  /** Whether all existing threads run the current block. */
  runsWhole(): boolean {
    return this.whole >= 0 && this.block !== undefined && this.plan.convergent(this.block.index);
  }

  /** Pushes the masks as bits, the first thread's lowest. */
  pushBits(masks: readonly number[]): void {
    const { code } = this;
    if (this.wholeUnit && masks === this.active) {
      code.i32(this.width === 32 ? -1 : (1 << this.width) - 1);
      return;
    }
    masks.forEach((local, group) => {
      code.get(local).op('i32x4.bitmask');
      if (group)
        code
          .i32(4 * group)
          .op('i32.shl')
          .op('i32.or');
    });
  }

  /** Pushes the masks as bits, the first thread's lowest, by narrowing them. */
  pushNarrowed(masks: readonly number[]): void {
    const { code } = this;
    for (let group = 0; group < masks.length; group += 4) {
      const [a, b, c, d] = masks.slice(group);
      code.get(a!);
      if (b === undefined) code.op('i32x4.bitmask');
      else if (c === undefined) code.get(b).op('i16x8.narrow_i32x4_s').op('i16x8.bitmask');
      else
        code
          .get(b)
          .op('i16x8.narrow_i32x4_s')
          .get(c)
          .get(d!)
          .op('i16x8.narrow_i32x4_s')
          .op('i8x16.narrow_i16x8_s')
          .op('i8x16.bitmask');
      if (group)
        code
          .i32(4 * group)
          .op('i32.shl')
          .op('i32.or');
    }
  }

  clearMasks(masks: readonly number[]): void {
    for (const local of masks) this.code.v128([0, 0, 0, 0]).set(local);
  }

  temps(count: number): number[] {
    return Array.from({ length: count }, () => this.temp('v128'));
  }

  /** Releases the temporaries of the code that is written inside. */
  scoped(body: () => void): void {
    const mark = this.markTemporaries();
    body();
    this.releaseTemporaries(mark);
  }
}
