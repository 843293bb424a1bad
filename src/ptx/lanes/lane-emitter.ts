// Values of four threads at once. A register whose values differ freely is one v128 (32 bits, or a mask for a
// predicate) or two (64 bits: threads 0 and 1, then 2 and 3). One whose values are equal or step evenly is a scalar:
// the first thread's. Rules of the scalar back end run on such scalars as they are, and thread by thread on the rest.

import type { Arg, Inst, Register } from '../analysis/program.js';
import type { Block } from '../analysis/blocks.js';
import type { Liveness } from '../analysis/liveness.js';
import { Emitter } from '../emit/emitter.js';
import type { Surroundings } from '../emit/emitter.js';
import type { Rule, Rules } from '../rules/rule.js';
import { UNCOVERED_MNEMONICS } from '../rules/uncovered.js';
import { NoSuchInstruction } from '../wasm/opcodes.js';
import type { ScalarType } from '../scalar-types.js';
import type { LanePlan } from './plan.js';
import { argSpread, isPure } from './spread.js';

/** A vector rule; false when it does not take this form, having written nothing. */
export type LaneRule = (e: LaneEmitter) => boolean;
export type LaneRules = ReadonlyMap<string, LaneRule>;

export const isWide = (register: Register): boolean => register.type.bits === 64;

/** Types that vector rules know; of halves and packed values they know nothing. */
const VECTOR_TYPES: ReadonlySet<string> = new Set([
  'pred', 'b8', 'b16', 'b32', 'b64', 'u8', 'u16', 'u32', 'u64', 's8', 's16', 's32', 's64', 'f32', 'f64',
]);

export abstract class LaneEmitter extends Emitter {
  protected readonly plan: LanePlan;
  protected readonly liveness: Liveness;
  private readonly rules: Rules;
  private readonly laneRules: LaneRules;
  private readonly laneLocals = new Map<number, number[]>();
  /** Mask of the threads that run the current block. */
  active = -1;
  /** The first thread's index in the block. */
  base = -1;
  /** Which thread of the group scalar code is being written for; -1 for all at once. */
  protected lane = -1;
  protected block: Block | undefined;
  /** The current instruction's predicate, as a mask; -1 without one. */
  private predicateMask = -1;
  /** With a predicate: the active threads for which it holds. */
  private writeMask = -1;
  /** Instructions weighed by loop depth: four threads at once, and one by one. */
  readonly effort = { lanes: 0, threads: 0 };
  protected weight = 1;
  /** Places of accesses that have been checked beforehand. */
  unchecked: ReadonlyMap<Inst, { local: number; offset: number }> | undefined;

  constructor(around: Surroundings, plan: LanePlan, liveness: Liveness, rules: Rules, laneRules: LaneRules) {
    super(around);
    this.plan = plan;
    this.liveness = liveness;
    this.rules = rules;
    this.laneRules = laneRules;
  }

  protected isBlockLocal(register: Register): boolean {
    return this.liveness.isLocal(register);
  }

  isVarying(register: Register): boolean {
    return this.plan.spread(register).stride === undefined;
  }

  stride(arg: Arg): number | undefined {
    return argSpread(arg, register => this.plan.spread(register))?.stride;
  }

  // ---- registers

  /** The v128 locals of a varying register. */
  laneLocal(register: Register): number[] {
    let locals = this.laneLocals.get(register.id);
    if (!locals) {
      const take = (): number => this.isBlockLocal(register) ? this.takeLocal('v128') : this.newLocal('v128');
      locals = isWide(register) ? [take(), take()] : [take()];
      this.laneLocals.set(register.id, locals);
    }
    return locals;
  }

  protected override releaseRegister(register: Register): void {
    super.releaseRegister(register);
    const locals = this.laneLocals.get(register.id);
    if (!locals || !this.isBlockLocal(register)) return;
    this.laneLocals.delete(register.id);
    locals.forEach(local => { this.giveLocal(local); });
  }

  // ---- vectors on the stack

  splat(type: ScalarType): void {
    const shape = { i32: 'i32x4', i64: 'i64x2', f32: 'f32x4', f64: 'f64x2' }[type.wasm];
    this.code.op(`${shape}.splat`);
  }

  /** Pushes four 32-bit values, or a mask for a predicate. */
  pushLanes(arg: Arg, type: ScalarType): void {
    const { code } = this;
    if (arg.kind === 'not') {
      this.pushLanes(arg.operand, type);
      code.op('v128.not');
      return;
    }
    if (arg.kind === 'register' && this.isVarying(arg.register)) {
      this.checkFit(arg.register, type, 'exact', arg.at);
      code.get(this.laneLocal(arg.register)[0]!);
      return;
    }
    this.push(arg, type);
    if (type.kind === 'predicate') code.i32(-1).op('i32.mul');
    this.splat(type);
    const stride = this.stride(arg) ?? 0;
    if (stride) code.v128([0, stride, 2 * stride, 3 * stride]).op('i32x4.add');
  }

  /** Pushes two of four 64-bit values: half 0 is threads 0 and 1. */
  pushHalf(arg: Arg, type: ScalarType, half: number): void {
    const { code } = this;
    if (arg.kind === 'register' && this.isVarying(arg.register)) {
      this.checkFit(arg.register, type, 'exact', arg.at);
      code.get(this.laneLocal(arg.register)[half]!);
      return;
    }
    this.push(arg, type);
    this.splat(type);
    this.addSteps(this.stride(arg) ?? 0, half);
  }

  /** Adds a half's steps to the two equal i64 on the stack. */
  addSteps(stride: number, half: number): void {
    if (!stride) return;
    const first = 2 * half * stride;
    const second = first + stride;
    this.code.v128([first | 0, first < 0 ? -1 : 0, second | 0, second < 0 ? -1 : 0]).op('i64x2.add');
  }

  /** Pops a vector into a varying register, leaving threads that must not see it alone. */
  popLanes(arg: Arg, half = 0): void {
    const { code } = this;
    if (arg.kind === 'sink') {
      code.op('drop');
      return;
    }
    if (arg.kind !== 'register') throw this.semantic('expected a register to write', arg.at);
    const local = this.laneLocal(arg.register)[half]!;
    const mask = this.maskFor(arg.register);
    if (mask >= 0) {
      code.get(local);
      this.pushMaskHalf(mask, isWide(arg.register) ? half : -1);
      code.op('v128.bitselect');
    }
    code.set(local);
  }

  /** A mask of 32-bit lanes, or one half of it widened to 64-bit lanes. */
  pushMaskHalf(mask: number, half: number): void {
    this.code.get(mask);
    if (half >= 0) this.code.get(mask).shuffle(half ? [2, 2, 3, 3] : [0, 0, 1, 1]);
  }

  /** Mask under which the current instruction may write a register; -1 for none. */
  private maskFor(register: Register): number {
    if (this.block && this.plan.keeps(this.block.index, register)) return this.guardMask();
    return this.predicateMask;
  }

  /** Mask of the threads that execute the current instruction. */
  guardMask(): number {
    return this.predicateMask < 0 ? this.active : this.writeMask;
  }

  // ---- instructions

  protected emitInst(inst: Inst): void {
    this.inst = inst;
    const { code } = this;
    const rule = this.rules.get(inst.mnemonic);
    if (!rule) throw UNCOVERED_MNEMONICS.has(inst.mnemonic) ? this.unsupported() : this.semantic(`'${inst.mnemonic}' is no instruction of PTX`);
    this.predicateMask = -1;
    this.writeMask = -1;
    const { predicate } = inst;
    if (predicate && this.isVarying(predicate.register)) {
      this.predicateMask = this.temp('v128');
      code.get(this.laneLocal(predicate.register)[0]!);
      if (predicate.negated) code.op('v128.not');
      code.set(this.predicateMask);
      this.writeMask = this.temp('v128');
      code.get(this.active).get(this.predicateMask).op('v128.and').set(this.writeMask);
      this.emitBare(inst, rule);
    } else if (predicate) {
      // Locals given out inside the condition would hold nothing after it: registers get theirs first.
      for (const register of inst.defs) {
        if (this.isVarying(register)) this.laneLocal(register);
        else this.registerLocal(register);
      }
      code.get(this.registerLocal(predicate.register));
      if (predicate.negated) code.op('i32.eqz');
      this.when(() => { this.emitBare(inst, rule); });
    } else {
      this.emitBare(inst, rule);
    }
    this.predicateMask = -1;
    this.writeMask = -1;
    this.endInstruction();
  }

  private emitBare(inst: Inst, rule: Rule): void {
    const varying = inst.defs.some(register => this.isVarying(register));
    const result = this.plan.result(inst).stride;
    if (result !== undefined && (inst.defs.length > 0 || result === 0)) {
      this.effort.lanes += this.weight;
      this.emitOnce(inst, rule, varying ? result : undefined);
      return;
    }
    const laneRule = this.laneRules.get(inst.mnemonic);
    const mark = this.code.length;
    if (laneRule && this.types().every(({ name }) => VECTOR_TYPES.has(name)) && laneRule(this)) {
      this.effort.lanes += this.weight;
      return;
    }
    if (this.code.length !== mark) throw new Error(`the vector rule of '${inst.mnemonic}' gave up half way`);
    this.effort.threads += this.weight;
    this.emitEach(inst, rule);
  }

  /** The scalar rule, once for all four threads; the result goes to varying registers by its step. */
  private emitOnce(inst: Inst, rule: Rule, spread: number | undefined): void {
    const { code } = this;
    const targets = spread === undefined ? [] : inst.defs.filter(register => this.isVarying(register));
    // A fault is the first running thread's.
    const known = this.unchecked?.get(inst);
    const memory = !known && !isPure(inst) && !inst.modifiers.includes('param');
    if (memory) code.get(this.base).get(this.active).op('i32x4.bitmask').op('i32.ctz').op('i32.add').set(this.thread);
    const temporaries = targets.map(register => {
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
    }
    targets.forEach((register, index) => {
      this.registerLocals.delete(register.id);
      const arg: Arg = { kind: 'register', register, at: inst.source.start };
      for (const half of isWide(register) ? [0, 1] : [0]) {
        code.get(temporaries[index]!);
        if (register.type.kind === 'predicate') code.i32(-1).op('i32.mul');
        this.splat(register.type);
        if (isWide(register)) this.addSteps(spread!, half);
        else if (spread) code.v128([0, spread, 2 * spread, 3 * spread]).op('i32x4.add');
        this.popLanes(arg, half);
      }
    });
    if (memory) code.get(this.base).set(this.thread);
  }

  /** The scalar rule, thread by thread; impure instructions only for threads that execute them. */
  private emitEach(inst: Inst, rule: Rule): void {
    const pure = isPure(inst);
    const { code } = this;
    const kept = pure ? inst.defs.filter(register => this.maskFor(register) >= 0) : [];
    // Results of threads that may not write go to a copy first.
    const before = kept.map(register => this.laneLocal(register).map(local => {
      const copy = this.temp('v128');
      code.get(local).set(copy);
      return copy;
    }));
    this.forEachThread(!pure, inst.uses, inst.defs, () => { this.apply(rule, inst); });
    kept.forEach((register, index) => {
      const mask = this.maskFor(register);
      this.laneLocal(register).forEach((local, half) => {
        code.get(local).get(before[index]![half]!);
        this.pushMaskHalf(mask, isWide(register) ? half : -1);
        code.op('v128.bitselect').set(local);
      });
    });
  }

  /** Code for each thread by itself, with its registers in scalar locals. */
  forEachThread(guarded: boolean, uses: readonly Register[], defs: readonly Register[], body: () => void): void {
    const { code } = this;
    const reads = [...new Set(uses)].filter(register => this.plan.spread(register).stride !== 0);
    const writes = [...new Set(defs)].filter(register => this.isVarying(register));
    for (const register of writes) this.laneLocal(register);
    const scalars = new Map<Register, number>();
    for (const register of new Set([...reads, ...writes])) scalars.set(register, this.temp(register.type.wasm));
    const stepping = reads.filter(register => !this.isVarying(register));
    const firsts = stepping.map(register => this.registerLocal(register));
    let bits = -1;
    if (guarded) {
      const mask = this.guardMask();
      bits = this.temp('i32');
      code.get(mask).op('i32x4.bitmask').set(bits);
    }
    for (let lane = 0; lane < 4; lane++) {
      const one = (): void => {
        this.lane = lane;
        code.get(this.base).i32(lane).op('i32.add').set(this.thread);
        for (const register of reads) {
          if (!this.isVarying(register)) continue;
          this.extract(register, lane);
          code.set(scalars.get(register)!);
        }
        stepping.forEach((register, index) => {
          const step = this.plan.spread(register).stride! * lane;
          code.get(firsts[index]!);
          if (isWide(register)) code.i64(step).op('i64.add');
          else code.i32(step).op('i32.add');
          code.set(scalars.get(register)!);
        });
        for (const [register, local] of scalars) this.bindRegister(register, local);
        body();
        for (const register of scalars.keys()) this.registerLocals.delete(register.id);
        stepping.forEach((register, index) => { this.bindRegister(register, firsts[index]!); });
        for (const register of writes) this.insert(register, lane, scalars.get(register)!);
        this.lane = -1;
      };
      if (guarded) {
        code.get(bits).i32(1 << lane).op('i32.and');
        this.when(one);
      } else {
        one();
      }
    }
    code.get(this.base).set(this.thread);
  }

  /** Pushes one thread's value of a varying register. */
  private extract(register: Register, lane: number): void {
    const { code } = this;
    const locals = this.laneLocal(register);
    const { wasm } = register.type;
    if (isWide(register)) code.get(locals[lane >> 1]!).lane(`${wasm}x2.extract_lane`, lane & 1);
    else code.get(locals[0]!).lane(`${wasm}x4.extract_lane`, lane);
    if (register.type.kind === 'predicate') code.i32(1).op('i32.and');
  }

  private insert(register: Register, lane: number, local: number): void {
    const { code } = this;
    const locals = this.laneLocal(register);
    const target = locals[isWide(register) ? lane >> 1 : 0]!;
    const { wasm } = register.type;
    code.get(target);
    if (register.type.kind === 'predicate') code.i32(0).get(local).op('i32.sub');
    else code.get(local);
    if (isWide(register)) code.lane(`${wasm}x2.replace_lane`, lane & 1);
    else code.lane(`${wasm}x4.replace_lane`, lane);
    code.set(target);
  }

  private apply(rule: Rule, inst: Inst): void {
    try {
      rule(this, inst);
    } catch (error) {
      if (!(error instanceof NoSuchInstruction)) throw error;
      throw this.semantic(`'${inst.mnemonic}' does not take ${this.types().map(type => `.${type.name}`).join(', ')}`);
    }
  }
}
