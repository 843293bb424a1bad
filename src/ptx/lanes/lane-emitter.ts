// Instructions for the threads of a unit. Rules of the scalar back end run once on values that are
// uniform or step evenly, and thread by thread on the others; vector rules are written for one
// group and run for each.

import type { Liveness } from '../analysis/liveness.js';
import type { Arg, Inst, Register } from '../analysis/program.js';
import type { Surroundings } from '../emit/surroundings.js';
import { isHalf } from '../rules/half.js';
import type { Rule, Rules } from '../rules/rule.js';
import { UNCOVERED_MNEMONICS } from '../rules/uncovered.js';
import { NoSuchInstruction } from '../wasm/opcodes.js';
import { isKnown } from './pattern.js';
import type { LanePlan } from './plan.js';
import { UNIFORM, isPure, steps } from './spread.js';
import { VectorEmitter, isWide } from './vector-emitter.js';

/** A vector rule; false if it does not take this form and has written nothing. */
export type LaneRule = (e: LaneEmitter) => boolean;

type ByMnemonic = Pick<ReadonlyMap<string, LaneRule>, 'get'>;

export interface LaneRules {
  /** Written for the current group. */
  group: ByMnemonic;
  /**
   * Written for all groups of the unit; those of halves are separate from others with the same
   * mnemonic.
   */
  unit: ByMnemonic;
  halves: ByMnemonic;
}

/** The types of vector rules; they take no smaller floats and no packed integers. */
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

export abstract class LaneEmitter extends VectorEmitter {
  private readonly rules: Rules;
  private readonly laneRules: LaneRules;
  /** Instructions weighted by loop depth: for all threads at once, and one by one. */
  readonly effort = { lanes: 0, threads: 0 };
  weight = 1;

  constructor(
    around: Surroundings,
    groups: number,
    plan: LanePlan,
    liveness: Liveness,
    rules: Rules,
    laneRules: LaneRules,
  ) {
    super(around, groups, plan, liveness);
    this.rules = rules;
    this.laneRules = laneRules;
  }

  /** `predicate`: the instruction's own, unless it runs under another one. */
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
      this.writeBits = this.wholeUnit ? this.bitsOf(predicate) : undefined;
      this.emitBare(inst, rule);
      this.writeBits = undefined;
    } else if (predicate) {
      // Locals that are allocated inside the condition would have no value after it: registers get
      // theirs before.
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
   * Whether an instruction can be written for one group apart from the others; for a load, if its
   * place has been checked.
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
   * Writes instructions that {@link goesByGroup | go by group}, all of them for one group after the
   * other: fewer registers hold the values between them.
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

  /** The rule that writes the current instruction for all groups, if there is one. */
  private unitRule(): LaneRule | undefined {
    const { unit, halves } = this.laneRules;
    return (this.types().some(isHalf) ? halves : unit).get(this.inst.mnemonic);
  }

  /** False if there is no vector rule for the instruction. */
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

  /**
   * Runs the scalar rule once for all threads; the result goes to varying registers by its step.
   */
  private emitOnce(inst: Inst, rule: Rule, apart: readonly number[] | undefined): void {
    const { code } = this;
    const targets =
      apart === undefined ? [] : inst.defs.filter((register) => this.isVarying(register));
    // A fault is the first running thread's.
    const known = this.unchecked?.get(inst);
    const memory = !known && !this.wholeUnit && !isPure(inst) && !inst.modifiers.includes('param');
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
    // Of values that differ where it has no effect, the first thread's is used.
    const differing = [...new Set(inst.uses)].filter((register) => this.isVarying(register));
    for (const register of differing) {
      const local = this.temp(register.type.wasm);
      const shape = { i32: 'i32x4', i64: 'i64x2', f32: 'f32x4', f64: 'f64x2' } as const;
      code
        .get(this.laneLocal(register)[0]!)
        .lane(`${shape[register.type.wasm]}.extract_lane`, 0)
        .set(local);
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
      this.correctWrap(inst, apart && temporaries[0]);
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
   * threads after that point have to be right, so the first thread's value counts as less than
   * zero: the threads before it have no valid address.
   */
  private correctWrap(inst: Inst, target: number | undefined): void {
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

  /** Writes the current instruction thread by thread, even if there are vector rules for it. */
  emitThreads(): void {
    this.emitEach(this.inst, this.rules.get(this.inst.mnemonic)!);
  }

  /** Some instruction reads the register. */
  abstract isUsed(register: Register): boolean;

  /** The access to shared memory is known to be within a variable. */
  abstract isWithin(address: Register, offset: number, size: number): boolean;

  /**
   * Runs the scalar rule thread by thread; an instruction with effects only for threads that
   * execute it.
   */
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
   * Writes code for each thread by itself, with its registers in scalar locals; they are passed
   * through memory.
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
    // Registers with uneven steps have separate names in the threads' code.
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
    for (const register of kept) this.storeAll(register, room, places.get(register)!);
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
    const load = (register: Register): void => {
      this.pushCell(register, room, lane);
      code.memory(`${register.type.wasm}.load`, places.get(register));
      if (register.type.kind === 'predicate') code.i32(1).op('i32.and');
      code.set(scalars.get(register)!);
    };
    for (const register of reads) if (!isStepping(register)) load(register);
    stepping.forEach((register, index) => {
      const stride = this.plan.spread(register).stride!;
      code.get(firsts[index]!).get(lane).i32(stride).op('i32.mul');
      if (isWide(register)) code.op('i64.extend_i32_s').op('i64.add');
      else code.op('i32.add');
      code.set(scalars.get(register)!);
    });
    // Results that an instruction does not write keep their values.
    for (const register of writes) if (!reads.includes(register)) load(register);
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
      this.pushCell(register, room, lane);
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

  /** Stores a register's values of all threads. */
  private storeAll(register: Register, room: number, place: number): void {
    const { code } = this;
    this.eachGroup((group) => {
      for (const half of isWide(register) ? [0, 1] : [0]) {
        code.get(room);
        this.pushPart(register, half);
        code.memory('v128.store', place + 16 * (isWide(register) ? 2 * group + half : group));
      }
    });
  }

  /**
   * Pushes the address of a thread's value, without the offset at which the register's values
   * begin.
   */
  private pushCell(register: Register, room: number, lane: number): void {
    this.code
      .get(room)
      .get(lane)
      .i32(isWide(register) ? 3 : 2)
      .op('i32.shl')
      .op('i32.add');
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
