// The interface by which the rules of instructions write code: operands in and out of WebAssembly
// locals, constants hoisted before the thread loop, run-time functions, and errors with the
// position of the current instruction.

import type { Block } from '../analysis/blocks.js';
import type { Arg, Inst, Register, Symbol } from '../analysis/program.js';
import { CTX } from '../context.js';
import { isScalarType, scalarType } from '../scalar-types.js';
import type { LocalType, ScalarType, WasmType } from '../scalar-types.js';
import { Code } from '../wasm/code.js';
import type { Opcode } from '../wasm/opcodes.js';
import type { FunctionTypes } from '../wasm/validation.js';
import type { Copies } from './copies.js';
import { pushFloat, pushInteger } from './literals.js';
import type { Surroundings } from './surroundings.js';

/**
 * How a value may differ from the register that holds it: `exact` for arithmetic, `wide` for ld, st
 * and cvt.
 */
export type Fit = 'exact' | 'wide';

/** The types among an instruction's modifiers; instructions of one form share the array. */
const typesOfForm = new WeakMap<readonly string[], readonly ScalarType[]>();

export abstract class Emitter {
  readonly code: Code;
  /** Code that runs once for each call, before the rest. */
  readonly prologue: Code;
  readonly around: Surroundings;
  readonly localTypes: LocalType[] = [];
  paramCount = 0;
  inst!: Inst;
  /** The open labels, innermost last; a branch's depth is its distance from the end. */
  readonly labels: object[] = [];
  private readonly hoisted = new Map<string, number>();
  readonly registerLocals = new Map<number, number>();
  private readonly freeLocals = new Map<LocalType, number[]>();
  private temporaries: number[] = [];

  constructor(around: Surroundings) {
    this.around = around;
    const { module } = around.linker;
    const types: FunctionTypes = {
      local: (index) =>
        index < this.paramCount ? this.paramType(index) : this.localTypes[index - this.paramCount],
      global: (index) => module.globalType(index),
      function: (index) => module.signature(index),
      results: () => this.resultTypes,
    };
    this.code = new Code(types);
    this.prologue = new Code(types);
  }

  protected paramType(_index: number): LocalType {
    return 'i32';
  }

  /** The results of the function; those of a kernel are its status. */
  protected get resultTypes(): readonly LocalType[] {
    return ['i32'];
  }

  /** The local with the address of the context block. */
  abstract readonly ctx: number;
  /** The local with the linear thread index. */
  abstract readonly thread: number;
  /** True for registers that are used inside one block only. */
  protected abstract isBlockLocal(register: Register): boolean;
  protected abstract emitInst(inst: Inst): void;
  /** Leaves the function after a fault has been recorded. */
  abstract leaveFaulted(): void;
  /** Leaves the function because a called function faulted or exited. */
  abstract unwind(): void;
  /** Some threads of the kernel wait at the cluster's barrier. */
  abstract get waitsForCluster(): boolean;
  /** Pushes the address of the frame of the thread, or of the call. */
  abstract pushFrame(): void;
  /** Pushes tid.x, .y or .z. */
  abstract pushThreadIndex(axis: 0 | 1 | 2): void;
  /** Pushes the address at which the next call's frame may start. */
  abstract pushStack(): void;
  /** Pushes the end of the block's .local memory, which begins with its scratch. */
  abstract pushLocalEnd(): void;
  /** Present in code compiled with `check`: which loads are only copies. */
  get copies(): Copies | undefined {
    return undefined;
  }
  /** Bytes of the kernel's parameters; unknown in a function that several kernels call. */
  abstract get paramBytes(): number | undefined;

  // Errors.

  get text(): string {
    const { source } = this.inst;
    return this.around.source.text.slice(source.start, source.end);
  }

  semantic(message: string, at = this.inst.source.start): Error {
    return this.around.source.error('semantic', message, at, this.text);
  }

  unsupported(what?: string): Error {
    const name = [this.inst.mnemonic, ...this.inst.modifiers].join('.');
    const message =
      what === undefined
        ? `instruction '${name}' is not covered yet`
        : `instruction '${name}': ${what} not covered yet`;
    return this.around.source.error('unsupported', message, this.inst.source.start, this.text);
  }

  get line(): number {
    return this.inst.source.line;
  }

  /** Pushes the line that a fault here is reported with. */
  pushLine(): void {
    this.code.i32(this.line);
  }

  // Modifiers.

  has(modifier: string): boolean {
    return this.inst.modifiers.includes(modifier);
  }

  /** The first of the given modifiers that the instruction has. */
  oneOf<T extends string>(...modifiers: T[]): T | undefined {
    return modifiers.find((modifier) => this.inst.modifiers.includes(modifier));
  }

  /** Type modifiers in order; `add.s32` has one, `cvt.f32.s32` two. */
  types(): readonly ScalarType[] {
    const { modifiers } = this.inst;
    let types = typesOfForm.get(modifiers);
    if (!types)
      typesOfForm.set(modifiers, (types = modifiers.filter(isScalarType).map(scalarType)));
    return types;
  }

  /** The instruction's only or last type. */
  type(): ScalarType {
    const type = this.types().at(-1);
    // The types of newer targets, such as f32x2, are modifiers to this compiler.
    if (!type)
      throw this.inst.modifiers.length
        ? this.unsupported()
        : this.semantic(`'${this.inst.mnemonic}' needs a type`);
    return type;
  }

  /** Rejects modifiers that the rule does not take. */
  allow(...modifiers: string[]): void {
    for (const modifier of this.inst.modifiers) {
      if (!modifiers.includes(modifier) && !isScalarType(modifier))
        throw this.unsupported(`modifier '.${modifier}' is`);
    }
  }

  arg(index: number): Arg {
    const arg = this.inst.args[index];
    if (!arg) throw this.semantic(`'${this.inst.mnemonic}' needs ${index + 1} operands or more`);
    return arg;
  }

  argCount(least: number, most = least): void {
    const count = this.inst.args.length;
    if (count < least || count > most) {
      throw this.semantic(
        `'${this.inst.mnemonic}' takes ${least === most ? least : `${least} to ${most}`} ` +
          `operands, found ${count}`,
      );
    }
  }

  // Locals.

  newLocal(type: LocalType): number {
    return this.paramCount + this.localTypes.push(type) - 1;
  }

  /** A local for the rest of this instruction. */
  temp(type: LocalType): number {
    const local = this.takeLocal(type);
    this.temporaries.push(local);
    return local;
  }

  protected takeLocal(type: LocalType): number {
    return this.freeLocals.get(type)?.pop() ?? this.newLocal(type);
  }

  /** Free locals for instructions. */
  free(type: LocalType): readonly number[] {
    return this.freeLocals.get(type) ?? [];
  }

  protected giveLocal(local: number): void {
    const type = this.localTypes[local - this.paramCount]!;
    const list = this.freeLocals.get(type);
    if (list) list.push(local);
    else this.freeLocals.set(type, [local]);
  }

  endInstruction(): void {
    for (const local of this.temporaries) this.giveLocal(local);
    this.temporaries = [];
  }

  /**
   * The number of temporaries that the instruction has so far; those after such a mark can be
   * released before its end.
   */
  protected markTemporaries(): number {
    return this.temporaries.length;
  }

  protected releaseTemporaries(mark: number): void {
    for (const local of this.temporaries.splice(mark)) this.giveLocal(local);
  }

  /** Releases the local of a register that is not read again. */
  releaseRegister(register: Register): void {
    const local = this.registerLocals.get(register.id);
    if (local === undefined || !this.isBlockLocal(register)) return;
    this.registerLocals.delete(register.id);
    this.giveLocal(local);
  }

  bindRegister(register: Register, local: number): void {
    this.registerLocals.set(register.id, local);
  }

  registerLocal(register: Register): number {
    let local = this.registerLocals.get(register.id);
    if (local === undefined) {
      local = this.isBlockLocal(register)
        ? this.takeLocal(register.type.wasm)
        : this.newLocal(register.type.wasm);
      this.registerLocals.set(register.id, local);
    }
    return local;
  }

  // Constants of the whole call.

  /** A local that is computed once in the prologue. */
  hoist(key: string, type: LocalType, compute: (code: Code) => void): number {
    let local = this.hoisted.get(key);
    if (local === undefined) {
      local = this.newLocal(type);
      this.hoisted.set(key, local);
      compute(this.prologue);
      this.prologue.set(local);
    }
    return local;
  }

  contextField(field: keyof typeof CTX): number {
    return this.hoist(`ctx:${field}`, 'i32', (code) => {
      code.get(this.ctx).memory('i32.load', CTX[field]);
    });
  }

  contextWord(offset: number): number {
    return this.hoist(`ctx+${offset}`, 'i32', (code) => {
      code.get(this.ctx).memory('i32.load', offset);
    });
  }

  // Run-time functions.

  call(name: string): this {
    this.code.op('call').u32(this.around.linker.functionIndex(name));
    return this;
  }

  op(...names: Opcode[]): this {
    for (const name of names) this.code.op(name);
    return this;
  }

  // Structured control flow within an instruction.

  /** Writes code that runs if the i32 on the stack is not zero. */
  when(body: () => void): void {
    this.code.op('if').byte(0x40);
    this.labels.push({});
    body();
    this.labels.pop();
    this.code.op('end');
  }

  /** Writes code inside a block or loop that the rule has opened by itself. */
  nest(body: () => void): void {
    this.labels.push({});
    body();
    this.labels.pop();
  }

  branchTo(label: object, instruction: 'br' | 'br_if' = 'br'): void {
    this.code.op(instruction).u32(this.depthOf(label));
  }

  depthOf(label: object): number {
    const index = this.labels.lastIndexOf(label);
    if (index < 0) throw new Error('branch to a label that is not open');
    return this.labels.length - 1 - index;
  }

  openLabel(kind: 'block' | 'loop', label: object): void {
    this.code.op(kind).byte(0x40);
    this.labels.push(label);
  }

  closeLabel(): void {
    this.labels.pop();
    this.code.op('end');
  }

  /**
   * What has to be in registers where a thread begins (entry 0), or continues at the entry with
   * that number.
   */
  enterAt(
    number: number,
    entries: readonly number[],
    begin: () => void,
    restore: (entry: number) => void,
  ): void {
    const { code } = this;
    const go = {};
    const begins = {};
    const stubs = entries.map(() => ({}));
    this.openLabel('block', go);
    for (const stub of [...stubs].reverse()) this.openLabel('block', stub);
    this.openLabel('block', begins);
    code.get(number).op('br_table').u32(entries.length);
    for (const label of [begins, ...stubs]) code.u32(this.depthOf(label));
    this.closeLabel();
    begin();
    this.branchTo(go);
    for (const entry of entries) {
      this.closeLabel();
      restore(entry);
      this.branchTo(go);
    }
    this.closeLabel();
  }

  /**
   * Restores what is live at an entry: registers that were saved (`load`), those that their
   * defining instruction computes again, and the results of the warp operation before it
   * (`result`).
   */
  restoreEntry(
    entry: number,
    live: readonly Register[],
    blocks: readonly Block[],
    remade: ReadonlyMap<number, Inst>,
    isSaved: (register: Register) => boolean,
    load: (registers: readonly Register[]) => void,
    result: (inst: Inst) => void,
  ): void {
    const cut = blocks.find(
      (block) => block.ending.kind === 'cut' && block.ending.to === entry,
    )?.ending;
    const waited = cut?.kind === 'cut' && cut.cut !== 'sleep' ? cut.inst : undefined;
    const loaded = live.filter((register) => isSaved(register) && !waited?.defs.includes(register));
    if (loaded.length) load(loaded);
    const made = new Set<number>();
    const make = (register: Register): void => {
      const inst = remade.get(register.id);
      if (!inst || made.has(register.id)) return;
      made.add(register.id);
      inst.uses.forEach(make);
      this.emitInst(inst);
    };
    live.forEach(make);
    if (!waited?.defs.length) return;
    this.inst = waited;
    result(waited);
    this.endInstruction();
  }

  // Operands.

  protected checkFit(register: Register, type: ScalarType, fit: Fit, at: number): void {
    const own = register.type;
    if (own.kind === 'predicate' || type.kind === 'predicate') {
      if (own.kind === type.kind) return;
      throw this.semantic(
        `'${register.name}' is .${own.name}, the instruction needs .${type.name}`,
        at,
      );
    }
    const size =
      fit === 'exact'
        ? own.bits === Math.max(type.bits, 16) || own.bits === type.bits
        : own.bits >= type.bits;
    // Untyped bits fit everything, and floats fit floats of their own format: two halves are not a
    // single.
    const kinds =
      own.kind === 'bits' ||
      type.kind === 'bits' ||
      ((own.kind === 'float') === (type.kind === 'float') &&
        (own.kind !== 'float' || (own.bits === type.bits && own.wasm === type.wasm)));
    if (!size || !kinds) {
      throw this.semantic(
        `'${register.name}' is .${own.name}, the instruction needs .${type.name}`,
        at,
      );
    }
  }

  /**
   * Pushes an operand as a value of a type: narrow integers are extended by their sign, floats are
   * floats.
   */
  push(arg: Arg, type: ScalarType, fit: Fit = 'exact'): void {
    switch (arg.kind) {
      case 'register':
        this.pushRegister(arg.register, type, fit, arg.at);
        return;
      case 'integer':
        if (type.kind === 'float') throw this.semantic(`an integer is no .${type.name}`, arg.at);
        pushInteger(this.code, arg.value, type);
        return;
      case 'float':
        // Bits take literals of their own width; floats take both.
        if (type.kind !== 'float' && (type.kind !== 'bits' || type.bits !== arg.width))
          throw this.semantic(`a float of ${arg.width} bits is no .${type.name}`, arg.at);
        if (type.kind === 'float' && type.bits === 16)
          throw this.semantic('half-precision instructions take no literals', arg.at);
        pushFloat(this.code, arg, type);
        return;
      case 'special':
        this.around.pushSpecialRegister(this, arg.name, type);
        return;
      case 'symbol':
        if (type.kind === 'float' || type.kind === 'predicate')
          throw this.semantic(`an address is no .${type.name}`, arg.at);
        if (arg.offset === 0 && !this.inst.traits.operands.takesNames)
          throw this.semantic(
            `'${this.inst.mnemonic}' takes no variable; move its address to a register first`,
            arg.at,
          );
        this.pushSymbol(arg.symbol, arg.offset, type.wasm, arg.at);
        return;
      case 'not':
        if (type.kind !== 'predicate')
          throw this.semantic('only a predicate can be negated', arg.at);
        this.push(arg.operand, type, fit);
        this.code.op('i32.eqz');
        return;
      case 'vector':
        if (!this.inst.traits.operands.packsVectors)
          throw this.semantic(`'${this.inst.mnemonic}' takes no vector here`, arg.at);
        this.pushPacked(arg.elements, type, arg.at);
        return;
      default:
        throw this.semantic('unexpected operand', arg.at);
    }
  }

  /** Pushes the offset of the dynamic part in the block's shared memory. */
  pushDynamicStart(): void {
    const { dynamicStart, linker } = this.around;
    if (dynamicStart !== undefined) this.code.i32(dynamicStart);
    else this.code.op('global.get').u32(linker.globalIndex('dynamicStart'));
  }

  private pushRegister(register: Register, type: ScalarType, fit: Fit, at: number): void {
    this.checkFit(register, type, fit, at);
    const { code } = this;
    const own = register.type;
    code.get(this.registerLocal(register));
    if (own.kind === 'predicate') return;
    this.convertBits(own.wasm, type.wasm);
    if (type.wasm !== 'i32' || type.kind === 'float') {
      if (type.bits < own.bits && type.wasm === 'i32') this.narrow(type);
      return;
    }
    if (type.bits < 32) {
      if (type.kind === 'signed') code.op(type.bits === 8 ? 'i32.extend8_s' : 'i32.extend16_s');
      else if (own.bits > type.bits) this.narrow(type);
    }
  }

  /** Makes the i32 on the stack the canonical form of a narrow type. */
  narrow(type: ScalarType): void {
    if (type.bits < 32 && type.wasm === 'i32' && type.kind !== 'predicate')
      this.code.i32(type.bits === 8 ? 0xff : 0xffff).op('i32.and');
  }

  /** Reinterprets the value on the stack: 64 to 32 bits truncates, 32 to 64 extends with zeros. */
  convertBits(from: WasmType, to: WasmType): void {
    const { code } = this;
    if (from === to) return;
    if (from === 'f32') code.op('i32.reinterpret_f32');
    if (from === 'f64') code.op('i64.reinterpret_f64');
    const wide = from === 'i64' || from === 'f64';
    const wantWide = to === 'i64' || to === 'f64';
    if (wide && !wantWide) code.op('i32.wrap_i64');
    if (!wide && wantWide) code.op('i64.extend_i32_u');
    if (to === 'f32') code.op('f32.reinterpret_i32');
    if (to === 'f64') code.op('f64.reinterpret_i64');
  }

  /** Pushes the flat address of a symbol. */
  pushSymbol(symbol: Symbol, offset: number, type: WasmType, at: number): void {
    const { code } = this;
    if (symbol.kind === 'function') {
      if (type !== 'i64') throw this.semantic('the address of a function needs 64 bits', at);
      code.i64(this.around.functionAddress(symbol.target));
      return;
    }
    switch (symbol.kind) {
      case 'data':
        code.op('global.get').u32(this.around.linker.globalIndex('dataBase'));
        offset += symbol.offset;
        break;
      case 'shared':
        code.get(this.contextField('shared'));
        if (!symbol.variable.dynamic) offset += this.around.sharedOffset(symbol.variable);
        else if (this.around.dynamicStart !== undefined) offset += this.around.dynamicStart;
        else {
          this.pushDynamicStart();
          code.op('i32.add');
        }
        break;
      case 'frame':
        this.pushFrame();
        offset += symbol.offset;
        break;
      case 'entryParam':
        code.get(this.contextField('params'));
        offset += symbol.offset;
        break;
      case 'incoming':
        code.get(this.registerLocal(symbol.pointer));
        break;
      case 'paramRegister':
        throw this.unsupported('the address of a scalar call parameter is');
    }
    if (offset) code.i32(offset).op('i32.add');
    if (type === 'i64') code.op('i64.extend_i32_u');
    else if (type !== 'i32') throw this.semantic('an address is not a float', at);
  }

  /** Two or four registers as one value: `mov.b32 %r, {%h1, %h2}`. */
  private pushPacked(elements: Arg[], type: ScalarType, at: number): void {
    const { code } = this;
    const bits = type.bits / elements.length;
    if (bits !== 8 && bits !== 16 && bits !== 32)
      throw this.semantic(`cannot pack ${elements.length} values into .${type.name}`, at);
    const part = scalarType(`b${bits}`);
    const wide = type.wasm === 'i64' || type.wasm === 'f64';
    elements.forEach((element, index) => {
      this.onlyBytes(element, bits);
      this.push(element, part);
      if (wide) code.op('i64.extend_i32_u');
      if (index) {
        if (wide)
          code
            .i64(bits * index)
            .op('i64.shl')
            .op('i64.or');
        else
          code
            .i32(bits * index)
            .op('i32.shl')
            .op('i32.or');
      }
    });
    this.convertBits(wide ? 'i64' : 'i32', type.wasm);
  }

  /** Bytes are packed from and unpacked into registers of bytes only. */
  private onlyBytes(element: Arg, bits: number): void {
    if (
      bits !== 8 ||
      element.kind === 'integer' ||
      (element.kind === 'register' && element.register.type.bits === 8)
    )
      return;
    throw this.semantic("'mov' of bytes takes registers of .b8", element.at);
  }

  /** Pops a value of a type into an operand. */
  pop(arg: Arg, type: ScalarType, fit: Fit = 'exact'): void {
    const { code } = this;
    if (arg.kind === 'sink') {
      code.op('drop');
      return;
    }
    if (arg.kind === 'vector') {
      if (!this.inst.traits.operands.packsVectors)
        throw this.semantic(`'${this.inst.mnemonic}' gives no vector here`, arg.at);
      this.popPacked(arg.elements, type, arg.at);
      return;
    }
    if (arg.kind !== 'register') throw this.semantic('expected a register to write', arg.at);
    const { register } = arg;
    const own = register.type;
    this.checkFit(register, type, fit, arg.at);
    if (own.kind !== 'predicate') {
      if (
        own.bits > type.bits &&
        type.wasm === 'i32' &&
        own.wasm === 'i64' &&
        type.kind === 'signed'
      )
        code.op('i64.extend_i32_s');
      else this.convertBits(type.wasm, own.wasm);
      // A signed narrow value stays sign-extended in a wider register, and is truncated to the
      // width of a 16-bit one.
      if (own.bits === 16 && type.kind === 'signed') code.i32(0xffff).op('i32.and');
    }
    code.set(this.registerLocal(register));
  }

  private popPacked(elements: Arg[], type: ScalarType, at: number): void {
    const { code } = this;
    const bits = type.bits / elements.length;
    if (bits !== 8 && bits !== 16 && bits !== 32)
      throw this.semantic(`cannot unpack .${type.name} into ${elements.length} values`, at);
    const part = scalarType(`b${bits}`);
    const wide = type.wasm === 'i64' || type.wasm === 'f64';
    this.convertBits(type.wasm, wide ? 'i64' : 'i32');
    const whole = this.temp(wide ? 'i64' : 'i32');
    code.set(whole);
    elements.forEach((element, index) => {
      if (element.kind === 'sink') return;
      code.get(whole);
      if (index && wide) code.i64(bits * index).op('i64.shr_u');
      else if (index) code.i32(bits * index).op('i32.shr_u');
      if (wide) code.op('i32.wrap_i64');
      this.narrow(part);
      this.onlyBytes(element, bits);
      this.pop(element, part);
    });
  }

  /** Pops a zero-extended i32 of a 16-bit result, truncating it to 16 bits first. */
  popNarrow(arg: Arg, type: ScalarType): void {
    this.narrow(type);
    this.pop(arg, type.kind === 'signed' ? scalarType(`u${type.bits}`) : type);
  }
}
