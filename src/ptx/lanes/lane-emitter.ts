// Values of a unit's threads at once: one to eight groups of four neighbours. A register whose
// values differ freely is a v128 per group (32 bits, or a mask for a predicate) or two (64 bits:
// threads 0 and 1, then 2 and 3). One whose values are equal or step evenly is a scalar: the first
// thread's. Rules of the scalar back end run on such scalars as they are, and thread by thread on
// the rest; vector rules are written for one group and run for each.

import type { Block } from '../analysis/blocks.js';
import type { Liveness } from '../analysis/liveness.js';
import type { Arg, Inst, Register } from '../analysis/program.js';
import { Emitter } from '../emit/emitter.js';
import { SCRATCH } from '../emit/frame-layout.js';
import type { Surroundings } from '../emit/surroundings.js';
import { isHalf } from '../rules/half.js';
import type { Rule, Rules } from '../rules/rule.js';
import { UNCOVERED_MNEMONICS } from '../rules/uncovered.js';
import type { LocalType, ScalarType } from '../scalar-types.js';
import type { Code } from '../wasm/code.js';
import { NoSuchInstruction } from '../wasm/opcodes.js';
import type { JointCheck } from './joint-checks.js';
import { isKnown } from './pattern.js';
import type { LanePlan } from './plan.js';
import { UNIFORM, argSpread, isPure, steps } from './spread.js';
import type { Agreed } from './uniform-predicates.js';

/** A vector rule; false when it does not take this form, having written nothing. */
export type LaneRule = (e: LaneEmitter) => boolean;

export interface LaneRules {
  /** Written for the group at hand. */
  group: ReadonlyMap<string, LaneRule>;
  /**
   * Written for all groups of the unit; those of halves apart from those of what has the same
   * mnemonic.
   */
  unit: ReadonlyMap<string, LaneRule>;
  halves: ReadonlyMap<string, LaneRule>;
}

export const isWide = (register: Register): boolean => register.type.bits === 64;

/** Types that vector rules know; of smaller floats and packed integers they know nothing. */
const VECTOR_TYPES: ReadonlySet<string> = new Set([
  'pred',
  'b8',
  'b16',
  'b32',
  'b64',
  'u8',
  'u16',
  'u32',
  'u64',
  's8',
  's16',
  's32',
  's64',
  'f32',
  'f64',
  'f16',
  'bf16',
  'f16x2',
  'bf16x2',
]);

export abstract class LaneEmitter extends Emitter {
  readonly plan: LanePlan;
  readonly liveness: Liveness;
  private readonly rules: Rules;
  private readonly laneRules: LaneRules;
  private readonly laneLocals = new Map<number, number[]>();
  /** Groups of four in a unit. */
  readonly groups: number;
  /** The group that code is being written for. */
  group = 0;
  /** The only one, of instructions that are written group by group; else -1. */
  private onlyGroup = -1;
  /** Masks of the threads that run the current block, one per group. */
  active: readonly number[] = [];
  /** The first thread's index in the block. */
  base = -1;
  /**
   * Local that is true while all threads of a unit are there, where that is known: then all run
   * whatever none waits out.
   */
  whole = -1;
  /** Code is being written that only runs where all threads of the unit do. */
  everyone = false;
  /**
   * Registers that are used in one block only, and yet keep their locals: code for a whole unit
   * hands them over to the general code.
   */
  readonly carried = new Set<number>();
  agreed: Agreed | undefined = undefined;
  /** One of the agreed predicates while code is written on which threads do not agree about it. */
  disagreed: Register | undefined = undefined;
  /**
   * Local of the index in the unit of the thread that scalar code is being written for; -1 for all
   * at once.
   */
  lane = -1;
  block: Block | undefined = undefined;
  /** The current instruction's predicate, as masks; empty without one. */
  private predicateMask: readonly number[] = [];
  /** With a predicate: the active threads for which it holds. */
  private writeMask: readonly number[] = [];
  /** The same as bits, where they are known here. */
  writeBits: number | undefined = undefined;
  /** Equal values as vectors, for the groups after the first: by what they are. */
  private splats = new Map<string, number>();
  private splatLocals: number[] = [];
  /** Instructions weighed by loop depth: all threads at once, and one by one. */
  readonly effort = { lanes: 0, threads: 0 };
  weight = 1;
  /** Most bytes that registers of one instruction take when its threads run one by one. */
  exchangeBytes = 0;
  /** Places of accesses that have been checked beforehand. */
  unchecked: ReadonlyMap<Inst, { local: number; offset: number }> | undefined = undefined;
  /** By load. */
  readonly joint = new Map<Inst, JointCheck>();

  constructor(
    around: Surroundings,
    groups: number,
    plan: LanePlan,
    liveness: Liveness,
    rules: Rules,
    laneRules: LaneRules,
  ) {
    super(around);
    this.groups = groups;
    this.plan = plan;
    this.liveness = liveness;
    this.rules = rules;
    this.laneRules = laneRules;
  }

  /** Pushes the address of the room for registers of threads that run one by one. */
  abstract pushExchange(): void;

  /** Pushes the address of as many bytes that nothing else uses during the instruction. */
  pushRoom(bytes: number): void {
    this.exchangeBytes = Math.max(this.exchangeBytes, bytes);
    this.pushExchange();
  }

  isBlockLocal(register: Register): boolean {
    return this.liveness.isLocal(register) && !this.carried.has(register.id);
  }

  /**
   * As hoist, for what takes more than a moment: it goes through memory. What engines see computed
   * of constants and arguments they compute again wherever it is needed.
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

  /** The check that the current instruction has in common with others of its block. */
  jointCheck(): JointCheck | undefined {
    return this.block && this.joint.get(this.inst);
  }

  isVarying(register: Register): boolean {
    const { stride, pattern } = this.plan.spread(register);
    return stride === undefined && !pattern && !this.agrees(register);
  }

  /** Code for a whole unit has the predicate as a scalar. */
  private agrees(register: Register): boolean {
    return this.everyone && register !== this.disagreed && this.agreed?.has(register) === true;
  }

  /** Nothing outside its block reads the register. */
  isOwn(register: Register): boolean {
    return this.liveness.isLocal(register);
  }

  /** The threads for which a predicate holds, as bits, if that is always the same. */
  private bitsOf({ register, negated }: NonNullable<Inst['predicate']>): number | undefined {
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

  /** What each thread's operand has more than the first one's, if that is known. */
  steps(arg: Arg): readonly number[] | undefined {
    const spread = argSpread(arg, (register) => this.plan.spread(register));
    return spread && steps(spread, this.width);
  }

  /** The value of an operand of 32 bits that is known here. */
  literal(arg: Arg): number | undefined {
    if (arg.kind === 'integer') return Number(BigInt.asUintN(32, arg.value));
    return arg.kind === 'register' ? this.plan.literal(arg.register) : undefined;
  }

  /** Threads in a unit. */
  get width(): number {
    return 4 * this.groups;
  }

  /** Writes code for each group; for one, while instructions are written group by group. */
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

  // ---- registers

  /** The v128 locals of a varying register: group by group, halves of wide ones side by side. */
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

  /** The truth of a predicate that is the same for all of the group's threads, always. */
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

  /** Equal values that are made inside are not there afterwards. */
  conditionally(body: () => void): void {
    const before = this.splats;
    this.splats = new Map(before);
    body();
    this.splats = before;
  }

  // ---- vectors on the stack

  splat(type: ScalarType): void {
    const shape = { i32: 'i32x4', i64: 'i64x2', f32: 'f32x4', f64: 'f64x2' }[type.wasm];
    this.code.op(`${shape}.splat`);
  }

  /** Pushes an equal or stepping operand's first value in every lane, made once for all groups. */
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

  private pushConstant(lanes: readonly [number, number, number, number]): void {
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

  /** Pushes a register's values in the group, or in half of it where they are wide. */
  pushPart(register: Register, half: number): void {
    const arg: Arg = { kind: 'register', register, at: 0 };
    if (isWide(register)) this.pushHalf(arg, register.type, half);
    else this.pushLanes(arg, register.type);
  }

  /**
   * Pops the group's vector into a varying register, leaving threads that must not see it alone.
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
   * Masks under which the current instruction may write a register; none where it may everywhere.
   */
  private masksFor(register: Register): readonly number[] | undefined {
    if (this.block && !this.everyone && this.plan.keeps(this.block.index, register))
      return this.guardMasks();
    return this.predicateMask.length ? this.predicateMask : undefined;
  }

  /**
   * The group's mask of the threads whose value the current instruction may change, unless all are.
   */
  mergeMask(register: Register): number | undefined {
    return this.masksFor(register)?.[this.group];
  }

  /** Some threads of the unit may well not execute the current instruction. */
  get parted(): boolean {
    return (
      this.predicateMask.length > 0 ||
      (!this.everyone && this.block !== undefined && !this.plan.convergent(this.block.index))
    );
  }

  /** Masks of the threads that execute the current instruction. */
  guardMasks(): readonly number[] {
    return this.predicateMask.length ? this.writeMask : this.active;
  }

  /** Pushes one vector out of one per group, combined. */
  pushCombined(locals: readonly number[], operation: 'and' | 'or'): void {
    locals.forEach((local, index) => {
      this.code.get(local);
      if (index) this.code.op(`v128.${operation}`);
    });
  }

  /** Pushes the truth of: some thread is in the masks. */
  pushAny(masks: readonly number[]): void {
    this.pushCombined(masks, 'or');
    this.code.op('v128.any_true');
  }

  /** Pushes the truth of: all threads are in the masks. */
  pushAll(masks: readonly number[]): void {
    if (this.everyone && masks === this.active) {
      this.code.i32(1);
      return;
    }
    this.pushCombined(masks, 'and');
    this.code.op('i32x4.all_true');
  }

  /** Pushes the truth of: all threads of the unit execute the current instruction. */
  pushEveryone(): void {
    if (this.predicateMask.length) this.pushAll(this.writeMask);
    else if (this.everyone) this.code.i32(1);
    else if (this.runsWhole()) this.code.get(this.whole);
    else this.pushAll(this.active);
  }

  /** Whether all threads that are there run the current block. */
  private runsWhole(): boolean {
    return this.whole >= 0 && this.block !== undefined && this.plan.convergent(this.block.index);
  }

  /** Pushes the masks as bits, the first thread's lowest. */
  pushBits(masks: readonly number[]): void {
    const { code } = this;
    if (this.everyone && masks === this.active) {
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

  /** Gives back the temporaries of the code that is written inside. */
  scoped(body: () => void): void {
    const mark = this.markTemporaries();
    body();
    this.releaseTemporaries(mark);
  }

  // ---- instructions

  /** `predicate`: the instruction's own, unless it runs under another's. */
  emitInst(inst: Inst, predicate = inst.predicate): void {
    this.inst = inst;
    const { code } = this;
    const rule = this.rules.get(inst.mnemonic);
    if (!rule)
      throw UNCOVERED_MNEMONICS.has(inst.mnemonic)
        ? this.unsupported()
        : this.semantic(`'${inst.mnemonic}' is no instruction of PTX`);
    this.predicateMask = [];
    this.writeMask = [];
    if (predicate && !this.isUniform(predicate.register)) {
      const holds = this.temps(this.groups);
      const runs = this.temps(this.groups);
      this.eachGroup((group) => {
        this.pushPart(predicate.register, 0);
        if (predicate.negated) code.op('v128.not');
        code.tee(holds[group]!).get(this.active[group]!).op('v128.and').set(runs[group]!);
      });
      this.predicateMask = holds;
      this.writeMask = runs;
      this.writeBits = this.everyone ? this.bitsOf(predicate) : undefined;
      this.emitBare(inst, rule);
      this.writeBits = undefined;
    } else if (predicate) {
      // Locals given out inside the condition would hold nothing after it: registers get theirs
      // first.
      for (const register of inst.defs) {
        if (this.isVarying(register)) this.laneLocal(register);
        else this.registerLocal(register);
      }
      code.get(this.registerLocal(predicate.register));
      if (predicate.negated) code.op('i32.eqz');
      this.when(() => {
        this.emitBare(inst, rule);
      });
    } else {
      this.emitBare(inst, rule);
    }
    this.predicateMask = [];
    this.writeMask = [];
    this.endInstruction();
  }

  private emitBare(inst: Inst, rule: Rule): void {
    const varying = inst.defs.some((register) => this.isVarying(register));
    const result =
      inst.defs.length && inst.defs.every((register) => this.agrees(register))
        ? UNIFORM
        : this.plan.result(inst);
    const apart = steps(result, this.width);
    if (apart && (inst.defs.length > 0 || result.stride === 0)) {
      this.effort.lanes += this.weight;
      this.emitOnce(inst, rule, varying ? apart : undefined);
      return;
    }
    const mark = this.code.length;
    if (this.types().every(({ name }) => VECTOR_TYPES.has(name)) && this.emitVectors(inst)) {
      this.effort.lanes += this.weight;
      return;
    }
    if (this.code.length !== mark)
      throw new Error(`the vector rule of '${inst.mnemonic}' gave up half way`);
    this.effort.threads += this.weight;
    this.emitEach(inst, rule);
  }

  /**
   * Whether an instruction can be written for one group apart from the others: of loads, where
   * their place has been checked.
   */
  goesByGroup(inst: Inst): boolean {
    if (inst.predicate || !inst.defs.every((register) => this.isVarying(register))) return false;
    this.inst = inst;
    if (!this.types().every(({ name }) => VECTOR_TYPES.has(name))) return false;
    if (inst.mnemonic === 'st') return this.unchecked?.has(inst) === true;
    if (!inst.defs.length || steps(this.plan.result(inst), this.width)) return false;
    if (inst.mnemonic === 'ld') return this.unchecked?.has(inst) === true;
    const rule = this.laneRules.group.get(inst.mnemonic);
    if (!isPure(inst) || !rule || this.unitRule()) return false;
    const start = this.code.length;
    let took = false;
    this.conditionally(() => {
      this.scoped(() => {
        took = rule(this);
      });
    });
    this.code.cut(start);
    return took;
  }

  /**
   * Instructions that {@link goesByGroup | go by group}, all of them for one group after the other:
   * what lies between them is in fewer registers.
   */
  emitByGroup(insts: readonly Inst[]): void {
    for (let group = 0; group < this.groups; group++) {
      this.group = this.onlyGroup = group;
      for (const inst of insts) {
        this.inst = inst;
        const rule = this.unitRule() ?? this.laneRules.group.get(inst.mnemonic)!;
        this.scoped(() => {
          if (!rule(this))
            throw new Error(`the vector rule of '${inst.mnemonic}' does not go by group`);
        });
      }
    }
    this.group = 0;
    this.onlyGroup = -1;
    this.endInstruction();
    this.effort.lanes += insts.length * this.weight;
  }

  /** What writes the current instruction for all groups, if something does. */
  private unitRule(): LaneRule | undefined {
    const { unit, halves } = this.laneRules;
    return (this.types().some(isHalf) ? halves : unit).get(this.inst.mnemonic);
  }

  /** False where there is no vector rule for the instruction. */
  private emitVectors(inst: Inst): boolean {
    if (this.unitRule()?.(this)) return true;
    const rule = this.laneRules.group.get(inst.mnemonic);
    if (!rule) return false;
    for (let group = 0; group < this.groups; group++) {
      this.group = group;
      let took = false;
      this.scoped(() => {
        took = rule(this);
      });
      this.group = 0;
      if (!took) return false;
    }
    return true;
  }

  /** The scalar rule, once for all threads; the result goes to varying registers by its step. */
  private emitOnce(inst: Inst, rule: Rule, apart: readonly number[] | undefined): void {
    const { code } = this;
    const targets =
      apart === undefined ? [] : inst.defs.filter((register) => this.isVarying(register));
    // A fault is the first running thread's.
    const known = this.unchecked?.get(inst);
    const memory = !known && !this.everyone && !isPure(inst) && !inst.modifiers.includes('param');
    const findFirst = (): void => {
      code.get(this.base);
      this.pushBits(this.active);
      code.op('i32.ctz').op('i32.add').set(this.thread);
    };
    if (memory && this.runsWhole()) {
      code.get(this.whole).op('i32.eqz');
      this.when(findFirst);
    } else if (memory) {
      findFirst();
    }
    // Of values that differ where it does not matter the first thread's will do.
    const differing = [...new Set(inst.uses)].filter((register) => this.isVarying(register));
    for (const register of differing) {
      const local = this.temp(register.type.wasm);
      const shape = { i32: 'i32x4', i64: 'i64x2', f32: 'f32x4', f64: 'f64x2' }[register.type.wasm];
      code.get(this.laneLocal(register)[0]!).lane(`${shape}.extract_lane`, 0).set(local);
      this.bindRegister(register, local);
    }
    const temporaries = targets.map((register) => {
      if (differing.includes(register)) return this.registerLocal(register);
      const local = this.temp(register.type.wasm);
      this.bindRegister(register, local);
      return local;
    });
    if (known) {
      const type = this.type();
      code.get(known.local).memory(`${type.wasm}.load`, known.offset);
      this.pop(inst.args[0]!, type, 'wide');
    } else {
      this.apply(rule, inst);
      this.mendWrap(inst, apart && temporaries[0]);
    }
    for (const register of [...differing, ...targets]) this.registerLocals.delete(register.id);
    targets.forEach((register, index) => {
      const arg: Arg = { kind: 'register', register, at: inst.source.start };
      const splat = this.temp('v128');
      code.get(temporaries[index]!);
      if (register.type.kind === 'predicate') code.i32(-1).op('i32.mul');
      this.splat(register.type);
      code.set(splat);
      const values = this.plan.result(inst).pattern;
      this.eachGroup((group) => {
        for (const half of isWide(register) ? [0, 1] : [0]) {
          if (register.type.kind === 'predicate' && values && isKnown(values)) {
            this.pushConstant(
              values.offsets.slice(4 * group, 4 * group + 4).map((value) => -value) as [
                number,
                number,
                number,
                number,
              ],
            );
            this.popLanes(arg);
            continue;
          }
          code.get(splat);
          if (isWide(register)) this.addSteps(apart!, half);
          else this.addSteps32(apart!);
          this.popLanes(arg, half);
        }
      });
    });
    if (memory) code.get(this.base).set(this.thread);
  }

  /**
   * Unsigned steps of 32 bits that are widened may pass 2^32 within the unit, as in `tid - 8`. The
   * threads past that are the ones to get right, by taking the first one's value as less than zero:
   * those before it have no good address.
   */
  private mendWrap(inst: Inst, target: number | undefined): void {
    const { code } = this;
    const [register] = inst.defs;
    const source = inst.args
      .slice(1, inst.mnemonic === 'mul' || inst.mnemonic === 'mad' ? 3 : 2)
      .find((arg) => arg.kind === 'register' && arg.register.type.bits === 32 && this.stride(arg));
    if (
      !register ||
      register.type.bits !== 64 ||
      source?.kind !== 'register' ||
      this.types().at(-1)?.kind === 'signed'
    )
      return;
    const step = this.stride(source)!;
    const local = target ?? this.registerLocal(register);
    if (step < 0) return;
    const whole =
      inst.args.length > 2
        ? inst.args.slice(1, 3).find((arg) => arg.kind === 'integer')
        : undefined;
    const factor = whole?.kind === 'integer' ? BigInt.asUintN(32, whole.value) : 1n;
    const first = this.registerLocal(source.register);
    code
      .get(first)
      .i32(step * (this.width - 1))
      .op('i32.add')
      .get(first)
      .op('i32.lt_u');
    this.when(() => {
      code
        .get(local)
        .i64(factor << 32n)
        .op('i64.sub')
        .set(local);
    });
  }

  /** The current instruction thread by thread, whatever vector rules there are. */
  emitThreads(): void {
    this.emitEach(this.inst, this.rules.get(this.inst.mnemonic)!);
  }

  /** Something reads the register. */
  abstract isUsed(register: Register): boolean;

  /** All that an access to shared memory touches is known to be within a variable. */
  abstract isWithin(address: Register, offset: number, size: number): boolean;

  /** The scalar rule, thread by thread; impure instructions only for threads that execute them. */
  private emitEach(inst: Inst, rule: Rule): void {
    const pure = isPure(inst);
    const { code } = this;
    const kept = pure
      ? inst.defs.filter((register) => this.isVarying(register) && this.masksFor(register))
      : [];
    // Results of threads that may not write go to a copy first.
    const before = kept.map((register) =>
      this.laneLocal(register).map((local) => {
        const copy = this.temp('v128');
        code.get(local).set(copy);
        return copy;
      }),
    );
    this.forEachThread(!pure, inst.uses, inst.defs, () => {
      this.apply(rule, inst);
    });
    kept.forEach((register, index) => {
      const masks = this.masksFor(register)!;
      const parts = isWide(register) ? 2 : 1;
      this.laneLocal(register).forEach((local, at) => {
        code.get(local).get(before[index]![at]!);
        this.pushMaskHalf(masks[Math.floor(at / parts)]!, parts === 2 ? at & 1 : -1);
        code.op('v128.bitselect').set(local);
      });
    });
  }

  /**
   * Code for each thread by itself, with its registers in scalar locals; they come and go through
   * memory.
   */
  forEachThread(
    guarded: boolean,
    uses: readonly Register[],
    defs: readonly Register[],
    body: () => void,
  ): void {
    const { code } = this;
    const reads = [...new Set(uses)].filter((register) => this.plan.spread(register).stride !== 0);
    const writes = [...new Set(defs)].filter((register) => this.isVarying(register));
    for (const register of writes) this.laneLocal(register);
    const scalars = new Map<Register, number>();
    for (const register of new Set([...reads, ...writes]))
      scalars.set(register, this.temp(register.type.wasm));
    const isStepping = (register: Register): boolean =>
      this.plan.spread(register).stride !== undefined;
    const stepping = reads.filter(isStepping);
    const firsts = stepping.map((register) => this.registerLocal(register));
    const kept = [...scalars.keys()].filter((register) => !isStepping(register));
    // Those whose steps are uneven are shown to the threads under names of their own.
    const patterned = kept.filter((register) => !this.isVarying(register));
    const scalarBefore = patterned.map((register) => this.registerLocal(register));
    const places = new Map<Register, number>();
    let bytes = 0;
    for (const register of kept) {
      places.set(register, bytes);
      bytes += (isWide(register) ? 32 : 16) * this.groups;
    }
    const room = this.temp('i32');
    const lane = this.temp('i32');
    const bits = guarded ? this.temp('i32') : -1;
    if (bytes) {
      this.pushRoom(bytes);
      code.set(room);
    }
    for (const register of kept) {
      this.eachGroup((group) => {
        for (const half of isWide(register) ? [0, 1] : [0]) {
          code.get(room);
          this.pushPart(register, half);
          code.memory(
            'v128.store',
            places.get(register)! + 16 * (isWide(register) ? 2 * group + half : group),
          );
        }
      });
    }
    const done = {};
    const again = {};
    this.openLabel('block', done);
    if (guarded) {
      this.pushBits(this.guardMasks());
      code.tee(bits).op('i32.eqz');
      this.branchTo(done, 'br_if');
    } else {
      code.i32(0).set(lane);
    }
    this.openLabel('loop', again);
    if (guarded) code.get(bits).op('i32.ctz').set(lane);
    code.get(this.base).get(lane).op('i32.add').set(this.thread);
    const pushPlace = (register: Register): void => {
      code
        .get(room)
        .get(lane)
        .i32(isWide(register) ? 3 : 2)
        .op('i32.shl')
        .op('i32.add');
    };
    for (const register of reads) {
      if (isStepping(register)) continue;
      pushPlace(register);
      code.memory(`${register.type.wasm}.load`, places.get(register));
      if (register.type.kind === 'predicate') code.i32(1).op('i32.and');
      code.set(scalars.get(register)!);
    }
    stepping.forEach((register, index) => {
      const stride = this.plan.spread(register).stride!;
      code.get(firsts[index]!).get(lane).i32(stride).op('i32.mul');
      if (isWide(register)) code.op('i64.extend_i32_s').op('i64.add');
      else code.op('i32.add');
      code.set(scalars.get(register)!);
    });
    // Results that an instruction leaves alone stay as they were.
    for (const register of writes) {
      if (reads.includes(register)) continue;
      pushPlace(register);
      code.memory(`${register.type.wasm}.load`, places.get(register));
      if (register.type.kind === 'predicate') code.i32(1).op('i32.and');
      code.set(scalars.get(register)!);
    }
    for (const [register, local] of scalars) this.bindRegister(register, local);
    this.lane = lane;
    body();
    this.lane = -1;
    for (const register of scalars.keys()) this.registerLocals.delete(register.id);
    stepping.forEach((register, index) => {
      this.bindRegister(register, firsts[index]!);
    });
    patterned.forEach((register, index) => {
      this.bindRegister(register, scalarBefore[index]!);
    });
    for (const register of writes) {
      pushPlace(register);
      if (register.type.kind === 'predicate')
        code
          .i32(0)
          .get(scalars.get(register)!)
          .op('i32.sub')
          .memory('i32.store', places.get(register));
      else
        code
          .get(scalars.get(register)!)
          .memory(`${register.type.wasm}.store`, places.get(register));
    }
    if (guarded) code.get(bits).get(bits).i32(1).op('i32.sub').op('i32.and').tee(bits);
    else code.get(lane).i32(1).op('i32.add').tee(lane).i32(this.width).op('i32.lt_u');
    this.branchTo(again, 'br_if');
    this.closeLabel();
    this.closeLabel();
    for (const register of writes) {
      this.laneLocal(register).forEach((local, index) => {
        code
          .get(room)
          .memory('v128.load', places.get(register)! + 16 * index)
          .set(local);
      });
    }
    code.get(this.base).set(this.thread);
  }

  private apply(rule: Rule, inst: Inst): void {
    try {
      rule(this, inst);
    } catch (error) {
      if (!(error instanceof NoSuchInstruction)) throw error;
      throw this.semantic(
        `'${inst.mnemonic}' does not take ${this.types()
          .map((type) => `.${type.name}`)
          .join(', ')}`,
      );
    }
  }
}
