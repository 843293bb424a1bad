// Resolves the names of a function body and flattens it: scopes disappear, calls are bound to their
// parameters, and functions that must not be real ones are inlined.

import { isScalarType, scalarType } from '../scalar-types.js';
import type { ScalarType } from '../scalar-types.js';
import { BRANCH, UNKNOWN } from '../isa/traits.js';
import type { InstructionTraits, Traits } from '../isa/traits.js';
import { formComplaint, operandComplaint } from '../rules/forms.js';
import { valueComplaint } from '../rules/values.js';
import type {
  Instruction,
  Operand,
  Prototype,
  PtxFunction,
  PtxModule,
  Statement,
  Variable,
} from '../syntax/ast.js';
import { INLINING } from './call-graph.js';
import type { FunctionTraits } from './call-graph.js';
import { alignUp, sharedVariable, undefinedSymbol, variableLayout } from './data-layout.js';
import { assignRoles, NO_REGISTERS, usesCarry, writesFirstOperand } from './operand-roles.js';
import { functionsIn, sameShape } from './pointed-functions.js';
import { isLabel } from './program.js';
import type {
  Arg,
  CallValue,
  Inst,
  Label,
  LoweredFunction,
  Register,
  SharedVariable,
  Symbol,
} from './program.js';
import { Scope } from './scopes.js';
import { isSpecialRegister, RESERVED_SHARED, specialBits } from './special-registers.js';
import { isOwnSharedAddress } from './unnamed-shared.js';
import { namedParameters } from './vector-parameters.js';

const MOST_INSTRUCTIONS = 400_000;
/**
 * Loops times registers of a function: where a loop is left early, all of them meet. V8 ends the
 * process beyond some 2^25, for which it takes gigabytes before.
 */
const MOST_MERGED = 1.2e7;
/** Bytes per thread and function that alloca can give. */
export const ALLOCA_BYTES = 4096;
/** Calls within calls that are inlined. */
const DEEPEST_INLINING = 200;
const NOWHERE: readonly Label[] = [];
const NO_ARGS: readonly Arg[] = [];
/** The modifiers of instructions on halves of 128-bit registers. */
const B64 = ['b64'];
const S64 = ['s64'];

export interface LoweringContext {
  module: PtxModule;
  /** The table of instructions. */
  instructions: Traits;
  functions: Map<string, PtxFunction>;
  traits: Map<PtxFunction, FunctionTraits>;
  /** Functions that wait and that calls through pointers may lead to. */
  waiting: readonly PtxFunction[];
  symbols: Map<string, Symbol>;
  /** Functions of the outside world that may be called, such as vprintf. */
  hostFunctions: ReadonlySet<string>;
  /** Bytes to leave free behind each variable of a frame. */
  gap: number;
  /** What the registers of reserved shared memory are addresses in. */
  reservedShared: SharedVariable;
  /** What addresses of shared memory count from where no variable is in it. */
  unnamedShared: SharedVariable | undefined;
  /** Functions whose bodies have been gone through, inlined ones too. */
  lowered: Set<PtxFunction>;
}

export function entryParameters(
  fn: PtxFunction,
): { variable: Variable; offset: number; size: number; align: number; aggregate: boolean }[] {
  let end = 0;
  return fn.params.map((variable) => {
    const { size, align, aggregate } = variableLayout(variable);
    const offset = alignUp(end, align);
    end = offset + size;
    return { variable, offset, size, align, aggregate };
  });
}

export function lowerFunction(fn: PtxFunction, context: LoweringContext): LoweredFunction {
  return new Lowering(fn, context, true).run();
}

/** Finds the errors in a function that no kernel needs. */
export function checkFunction(fn: PtxFunction, context: LoweringContext): void {
  new Lowering(fn, context, false).run();
}

/** Branches to what stands before them. */
function backEdges({ code }: LoweredFunction): number {
  const before = new Set<Label>();
  let found = 0;
  for (let at = 0; at < code.length; at++) {
    const entry = code[at]!;
    if (isLabel(entry)) before.add(entry);
    else for (const target of entry.targets) if (before.has(target)) found++;
  }
  return found;
}

interface LoweredCall {
  source: Instruction;
  target: PtxFunction | string | { address: Register; prototype: Prototype };
  argValues: CallValue[];
  resultValues: CallValue[];
  predicate: Inst['predicate'];
}

/** A name and nothing else, as of labels and functions. */
const isBare = ({ added, selector }: Operand & { kind: 'name' }): boolean =>
  added === undefined && selector === undefined;

const takesUnified = ({ mnemonic, modifiers }: Instruction): boolean =>
  ['ld', 'ldu', 'atom'].includes(mnemonic) &&
  !modifiers.some((word) => /^(?:shared|local|param)/.test(word));

class Lowering {
  private readonly context: LoweringContext;
  private readonly out: LoweredFunction;
  /** Functions are put in where they are called, those of them that have to. */
  private readonly inlines: boolean;
  private readonly resolvedSymbols = new Map<Variable, Symbol>();
  private readonly wideRegisters = new Map<Register, Register[]>();
  private readonly halves128 = new Set<Register>();
  /** A 128-bit register has been met since the last instruction. */
  private halved = false;
  private instructions = 0;
  private alloca: { top: Register; symbol: Symbol } | undefined = undefined;
  private carry: Register | undefined = undefined;
  private inlining = 0;
  /** What stands outside functions and is each thread's own. */
  private readonly outermost: Scope;

  constructor(fn: PtxFunction, context: LoweringContext, inlines: boolean) {
    this.context = context;
    this.inlines = inlines;
    this.out = {
      source: fn,
      code: [],
      registers: [],
      frameBytes: 0,
      frameAlign: 16,
      frameVariables: [],
      shared: new Set(),
      calls: new Set(),
      indirectCalls: false,
      params: [],
      results: [],
      maxCallResults: 0,
    };
    this.outermost = this.newScope();
  }

  run(): LoweredFunction {
    const { out } = this;
    const fn = out.source;
    this.context.lowered.add(fn);
    this.body(this.context.module.perThread, this.outermost, undefined);
    const scope = this.newScope(this.outermost);
    if (fn.entry) {
      for (const { variable, offset, size } of entryParameters(fn))
        scope.symbols.set(variable.name, { kind: 'entryParam', offset, size });
    } else {
      for (const variable of fn.returns) out.results.push(this.formal(variable, scope));
      for (const variable of fn.params) out.params.push(this.formal(variable, scope));
    }
    const end: Label = { name: '(end)', block: -1 };
    this.body(fn.body ?? [], scope, undefined);
    out.code.push(end);
    if (backEdges(out) * out.registers.length > MOST_MERGED) throw this.tooLarge();
    return out;
  }

  private traitsOf(mnemonic: string): InstructionTraits {
    return this.context.instructions.get(mnemonic) ?? UNKNOWN;
  }

  private tooLarge(): Error {
    const { source } = this.out;
    return this.context.module.source.error(
      'unsupported',
      `'${source.name}' is too large once its functions are inlined`,
      source.at,
    );
  }

  private newScope(parent?: Scope): Scope {
    return new Scope((name, type) => this.newRegister(name, type), parent);
  }

  private newRegister(name: string, type: ScalarType): Register {
    const register = { id: this.out.registers.length, name, type };
    this.out.registers.push(register);
    return register;
  }

  /** The register that carries a parameter or result of a real function. */
  private formal(variable: Variable, scope: Scope): Register {
    const { aggregate } = variableLayout(variable);
    if (aggregate) {
      const pointer = this.newRegister(variable.name, scalarType('b32'));
      scope.symbols.set(variable.name, { kind: 'incoming', pointer });
      return pointer;
    }
    const register = this.newRegister(variable.name, scalarType(variable.type));
    this.alias(scope, variable, register);
    return register;
  }

  private alias(scope: Scope, variable: Variable, register: Register): void {
    if (variable.space === 'reg') scope.bind(variable.name, register);
    else scope.symbols.set(variable.name, { kind: 'paramRegister', register });
  }

  private frame(name: string, size: number, align: number): number {
    const aligned = Math.max(align, 1);
    const offset = alignUp(this.out.frameBytes, aligned);
    this.out.frameAlign = Math.max(this.out.frameAlign, aligned);
    this.out.frameBytes = offset + size + this.context.gap;
    this.out.frameVariables.push({ name, offset, size });
    if (this.out.frameBytes > 2 ** 20) {
      throw this.context.module.source.error(
        'unsupported',
        `'${this.out.source.name}' uses more than 1 MiB of local memory per thread`,
        this.out.source.at,
      );
    }
    return offset;
  }

  private body(statements: readonly Statement[], scope: Scope, returnTo: Label | undefined): void {
    // Labels are visible before they stand, and only within their function: collect them per scope
    // first.
    for (let index = 0; index < statements.length; index++) {
      const statement = statements[index]!;
      if (statement.kind === 'label') {
        if (scope.labels.has(statement.name)) {
          throw this.context.module.source.error(
            'semantic',
            `label '${statement.name}' is defined twice`,
            statement.at,
          );
        }
        scope.labels.set(statement.name, { name: statement.name, block: -1 });
      } else if (statement.kind === 'targets') scope.targets.set(statement.name, statement.labels);
      else if (statement.kind === 'prototype')
        scope.prototypes.set(statement.name, statement.prototype);
    }
    for (let index = 0; index < statements.length; index++) {
      const statement = statements[index]!;
      switch (statement.kind) {
        case 'label':
          this.out.code.push(scope.labels.get(statement.name)!);
          break;
        case 'block':
          this.body(statement.statements, this.newScope(scope), returnTo);
          break;
        case 'registers': {
          const type = scalarType(statement.type);
          for (const { name, count, at } of statement.names) {
            if (type.bits > 64 && type.kind !== 'bits')
              throw this.context.module.source.error(
                'semantic',
                `.${type.name} is no type of registers`,
                at,
              );
            if (statement.vector === 1) scope.declare(name, type, count);
            else
              for (const part of 'xyzw'.slice(0, statement.vector))
                scope.declare(name, type, count, `.${part}`);
          }
          break;
        }
        case 'variable':
          this.local(statement, scope);
          break;
        case 'instruction':
          this.instruction(statement, scope, returnTo);
          break;
      }
    }
  }

  private local(variable: Variable, scope: Scope): void {
    const { size, align, aggregate } = variableLayout(variable);
    const { source } = this.context.module;
    let symbol = this.resolvedSymbols.get(variable);
    if (!symbol) {
      if (variable.space === 'shared')
        symbol = { kind: 'shared', variable: sharedVariable(variable) };
      else if (variable.space === 'local')
        symbol = { kind: 'frame', offset: this.frame(variable.name, size, align) };
      else if (variable.space === 'param') {
        symbol = aggregate
          ? { kind: 'frame', offset: this.frame(variable.name, size, align) }
          : {
              kind: 'paramRegister',
              register: this.newRegister(variable.name, scalarType(variable.type)),
            };
      } else if (variable.placedAs !== undefined) {
        symbol = this.context.symbols.get(variable.placedAs)!;
      } else {
        throw source.error(
          'unsupported',
          `.${variable.space} variables inside a function are not covered yet`,
          variable.at,
        );
      }
      // A shared variable of an inlined function is one variable, however often it is inlined.
      if (variable.space === 'shared') this.resolvedSymbols.set(variable, symbol);
    }
    scope.symbols.set(variable.name, symbol);
  }

  private label(scope: Scope, name: string, at: number): Label {
    const label = scope.label(name);
    if (!label) throw this.context.module.source.error('semantic', `undefined label '${name}'`, at);
    return label;
  }

  private predicate(instruction: Instruction, scope: Scope): Inst['predicate'] {
    if (!instruction.predicate) return undefined;
    const { register: name, negated } = instruction.predicate;
    const register = scope.register(name);
    if (!register) throw this.fail(instruction, `undefined register '${name}'`, instruction.start);
    if (register.type.kind !== 'predicate')
      throw this.fail(instruction, `'${name}' is not a predicate`, instruction.start);
    return { register, negated };
  }

  private fail(instruction: Instruction, message: string, at: number): Error {
    const { source } = this.context.module;
    return source.error(
      'semantic',
      message,
      at,
      source.text.slice(instruction.start, instruction.end),
    );
  }

  private push(inst: Inst): void {
    if (++this.instructions > MOST_INSTRUCTIONS) {
      throw this.tooLarge();
    }
    this.out.code.push(inst);
  }

  private branch(source: Instruction, target: Label, predicate: Inst['predicate']): void {
    this.push({
      mnemonic: 'bra',
      traits: BRANCH,
      modifiers: [],
      args: [],
      predicate,
      source,
      defs: [],
      uses: predicate ? [predicate.register] : [],
      targets: [target],
      call: undefined,
    });
  }

  private instruction(source: Instruction, scope: Scope, returnTo: Label | undefined): void {
    const { mnemonic, modifiers } = source;
    const predicate = this.predicate(source, scope);
    if (mnemonic === 'mov' && modifiers.some((word) => word === 'v2' || word === 'v4')) {
      this.moveVector(source, scope, predicate);
      return;
    }
    const { source: text, targetOptions } = this.context.module;
    const traits = this.traitsOf(mnemonic);
    const complaint = formComplaint(traits, mnemonic, modifiers, source.operands.length);
    if (complaint) {
      throw text.error(
        complaint.code,
        complaint.message,
        source.start,
        text.text.slice(source.start, source.end),
      );
    }
    if (targetOptions.has('map_f64_to_f32') && modifiers.includes('f64')) {
      throw text.error(
        'unsupported',
        'f64 under map_f64_to_f32 is f32 in half of its memory: not covered. Write .f32, or ' +
          '.target sm_13',
        source.start,
        text.text.slice(source.start, source.end),
      );
    }
    if (mnemonic === 'bra') {
      const [target, more] = source.operands;
      if (target?.kind !== 'name' || !isBare(target))
        throw this.fail(source, 'expected a label', target?.at ?? source.start);
      if (more) throw this.fail(source, "'bra' takes one operand", more.at);
      this.branch(source, this.label(scope, target.name, target.at), predicate);
      return;
    }
    if (mnemonic === 'ret' && returnTo) {
      this.branch(source, returnTo, predicate);
      return;
    }
    if (mnemonic === 'call') {
      this.call(source, scope, predicate);
      return;
    }
    const inst: Inst = {
      mnemonic,
      traits,
      modifiers,
      args: NO_ARGS,
      predicate,
      source,
      defs: NO_REGISTERS,
      uses: NO_REGISTERS,
      targets: NOWHERE,
      call: undefined,
    };
    if (mnemonic === 'brx') {
      const [index, list, more] = source.operands;
      const names = list?.kind === 'name' && isBare(list) ? scope.targetList(list.name) : undefined;
      if (!index || !names?.length || more)
        throw this.fail(source, 'expected a register and a list of branch targets', source.start);
      inst.args = [this.operand(index, scope, source)];
      inst.targets = names.map((name) => this.label(scope, name, source.start));
    } else {
      inst.args = this.operands(source, scope);
      const wrong =
        operandComplaint(
          traits,
          mnemonic,
          modifiers,
          inst.args,
          writesFirstOperand(traits, modifiers),
        ) ?? valueComplaint(mnemonic, modifiers, inst.args);
      if (wrong) throw this.fail(source, wrong.message, wrong.at ?? source.start);
    }
    if (this.halved) {
      this.halved = false;
      if (this.narrowed(inst)) return;
    }
    if (mnemonic === 'mov' && this.movedByHalves(inst)) return;
    if (this.context.unnamedShared && this.countedFromShared(inst)) return;
    if (traits.operands.movesStack) inst.args = [...inst.args, ...this.allocaStack(source)];
    if (usesCarry(traits, modifiers))
      inst.carry = this.carry ??= this.newRegister('(carry)', scalarType('b32'));
    assignRoles(inst);
    this.push(inst);
  }

  private pushPlain(
    mnemonic: string,
    modifiers: readonly string[],
    args: Arg[],
    { predicate, source }: Inst,
  ): void {
    const inst: Inst = {
      mnemonic,
      traits: this.traitsOf(mnemonic),
      modifiers,
      args,
      predicate,
      source,
      defs: NO_REGISTERS,
      uses: NO_REGISTERS,
      targets: NOWHERE,
      call: undefined,
    };
    assignRoles(inst);
    this.push(inst);
  }

  /**
   * A 128-bit register where an instruction has fewer: its low half is read, or written; a result
   * is extended to all of it by the type's sign, or with zeros. False where all 128 are meant.
   */
  private narrowed(inst: Inst): boolean {
    const { mnemonic, traits, modifiers, args, source } = inst;
    const type = modifiers.find(isScalarType);
    if (!traits.operands.widerRegisters || type === undefined || scalarType(type).bits > 64)
      return false;
    const extended: [Arg, Arg][] = [];
    const low = (arg: Arg, operand: Operand | undefined, written: boolean): Arg => {
      if (arg.kind !== 'vector') return arg;
      if (operand?.kind === 'vector')
        return {
          ...arg,
          elements: arg.elements.map((element, index) =>
            low(element, operand.elements[index], written),
          ),
        };
      const [half, other] = arg.elements;
      if (!this.isHalf(half) || !other) return arg;
      if (written) extended.push([half, other]);
      return half;
    };
    const written = writesFirstOperand(traits, modifiers) ? 0 : -1;
    const narrow = args.map((arg, index) => low(arg, source.operands[index], index === written));
    this.pushPlain(mnemonic, modifiers, narrow, inst);
    for (const [half, other] of extended) {
      if (type.startsWith('s'))
        this.pushPlain(
          'shr',
          S64,
          [other, half, { kind: 'integer', value: 63n, at: half.at }],
          inst,
        );
      else this.pushPlain('mov', B64, [other, { kind: 'integer', value: 0n, at: half.at }], inst);
    }
    return true;
  }

  /**
   * Shared memory without names: its addresses count from where the block's begins, those that
   * `cvta` makes of them, or makes them of, are true ones. True where the instruction is put in
   * here.
   */
  private countedFromShared(inst: Inst): boolean {
    const { mnemonic, modifiers, args, source } = inst;
    if (
      mnemonic === 'cvta' &&
      (modifiers.includes('shared') || modifiers.includes('shared::cta'))
    ) {
      const [target, from] = args;
      const type = modifiers.filter(isScalarType);
      if (target?.kind !== 'register' || !from) return false;
      const begin = this.sharedBegin(type, source);
      if (modifiers.includes('to')) {
        const result: Arg = {
          kind: 'register',
          register: this.newRegister('(shared)', scalarType(type[0]!)),
          at: source.start,
        };
        this.made(source, 'cvta', modifiers, [result, from]);
        this.pushPlain('sub', type, [target, result, begin], inst);
      } else {
        const place: Arg = {
          kind: 'register',
          register: this.newRegister('(shared)', scalarType(type[0]!)),
          at: source.start,
        };
        this.made(source, 'add', type, [place, from, begin]);
        this.pushPlain('cvta', modifiers, [target, place], inst);
      }
      return true;
    }
    inst.args = args.map((arg, index) => {
      if (arg.kind !== 'address' || !arg.base || !isOwnSharedAddress(inst, index)) return arg;
      const type = [arg.base.type.bits === 32 ? 'u32' : 'u64'];
      const base = this.newRegister('(shared)', scalarType(type[0]!));
      const begin = this.sharedBegin(type, source);
      this.made(source, 'add', type, [
        { kind: 'register', register: base, at: arg.at },
        { kind: 'register', register: arg.base, at: arg.at },
        begin,
      ]);
      return { ...arg, base };
    });
    return false;
  }

  private sharedBegin(type: readonly string[], source: Instruction): Arg {
    const variable = this.context.unnamedShared!;
    this.out.shared.add(variable);
    const begin: Arg = {
      kind: 'register',
      register: this.newRegister('(shared memory)', scalarType(type[0]!)),
      at: source.start,
    };
    this.made(source, 'mov', type, [
      begin,
      { kind: 'symbol', symbol: { kind: 'shared', variable }, offset: 0, at: source.start },
    ]);
    return begin;
  }

  private isHalf(arg: Arg | undefined): arg is Arg & { kind: 'register' } {
    return arg?.kind === 'register' && this.halves128.has(arg.register);
  }

  /**
   * `mov.b128` of four words or of a number, which is two moves; what they read and write cannot
   * overlap.
   */
  private movedByHalves(inst: Inst): boolean {
    const [target, from] = inst.args;
    if (!inst.modifiers.includes('b128') || !target || !from || target.kind !== 'vector')
      return false;
    const parts = (arg: Arg): [Arg, Arg] | undefined => {
      if (arg.kind === 'integer') return [arg, { ...arg, value: 0n }];
      if (arg.kind !== 'vector') return undefined;
      const { elements, at } = arg;
      if (elements.length === 4)
        return [
          { kind: 'vector', elements: elements.slice(0, 2), at },
          { kind: 'vector', elements: elements.slice(2), at },
        ];
      return elements.length === 2 ? [elements[0]!, elements[1]!] : undefined;
    };
    const [to, source] = [parts(target), parts(from)];
    // One side is a whole register: between parts, ptxas moves nothing.
    const whole =
      this.isHalf(target.elements[0]) || (from.kind === 'vector' && this.isHalf(from.elements[0]));
    if (
      !to ||
      !source ||
      !whole ||
      (from.kind === 'vector' && target.elements.length === from.elements.length)
    )
      return false;
    to.forEach((half, index) => {
      if (half.kind !== 'vector' || half.elements.some(({ kind }) => kind !== 'sink'))
        this.pushPlain('mov', B64, [half, source[index]!], inst);
    });
    return true;
  }

  /**
   * `mov.v2` and `mov.v4`, which ptxas takes: a move for each element, by way of others, since the
   * two may overlap.
   */
  private moveVector(source: Instruction, scope: Scope, predicate: Inst['predicate']): void {
    const modifiers = source.modifiers.filter((word) => word !== 'v2' && word !== 'v4');
    const type = modifiers.find(isScalarType);
    const [target, from, more] = this.operands(source, scope);
    if (more) throw this.fail(source, "'mov' takes 2 operands", more.at);
    const width = source.modifiers.includes('v4') ? 4 : 2;
    if (
      modifiers.length !== 1 ||
      type === undefined ||
      target?.kind !== 'vector' ||
      from?.kind !== 'vector' ||
      target.elements.length !== width ||
      from.elements.length !== width
    ) {
      throw this.fail(source, `'mov' takes two vectors of ${width} here`, source.start);
    }
    const between = from.elements.map((): Arg => ({
      kind: 'register',
      register: this.newRegister('(element)', scalarType(type)),
      at: source.start,
    }));
    // Registers are compared by their width alone, literals by the type.
    const untyped = [`b${scalarType(type).bits}`];
    const moves = [
      ...from.elements.map((element, index) => [between[index]!, element]),
      ...target.elements.map((element, index) => [element, between[index]!]),
    ];
    for (const args of moves) {
      if (args[0]!.kind === 'sink') continue;
      const inst: Inst = {
        mnemonic: 'mov',
        traits: this.traitsOf('mov'),
        modifiers: args[1]!.kind === 'register' ? untyped : modifiers,
        args,
        predicate,
        source,
        defs: [],
        uses: [],
        targets: NOWHERE,
        call: undefined,
      };
      assignRoles(inst);
      this.push(inst);
    }
  }

  /** How much of the function's alloca stack is in use, and the stack's address. */
  private allocaStack(source: Instruction): Arg[] {
    this.alloca ??= {
      top: this.newRegister('(alloca)', scalarType('b32')),
      symbol: { kind: 'frame', offset: this.frame('alloca', ALLOCA_BYTES, 16) },
    };
    const { top, symbol } = this.alloca;
    return [
      { kind: 'register', register: top, at: source.start },
      { kind: 'symbol', symbol, offset: 0, at: source.start },
    ];
  }

  private operands(source: Instruction, scope: Scope): Arg[] {
    const { operands } = source;
    const [first] = operands;
    if (
      first?.kind === 'name' &&
      first.added !== undefined &&
      writesFirstOperand(this.traitsOf(source.mnemonic), source.modifiers)
    ) {
      throw this.fail(
        source,
        `'${first.name}' is written: a result is a register, and nothing is added to it`,
        first.at,
      );
    }
    // An array that grows would be given room for more.
    const args = new Array<Arg>(operands.length);
    for (let index = 0; index < args.length; index++)
      args[index] = this.operand(operands[index]!, scope, source);
    return args;
  }

  private operand(operand: Operand, scope: Scope, source: Instruction): Arg {
    const { at } = operand;
    switch (operand.kind) {
      case 'integer':
      case 'float':
        return operand;
      case 'vector':
        return {
          kind: 'vector',
          elements: operand.elements.map((part) => this.operand(part, scope, source)),
          at,
        };
      case 'list':
        throw this.fail(source, 'unexpected list', at);
      case 'pair':
        return {
          kind: 'pair',
          first: this.operand(operand.first, scope, source),
          second: this.operand(operand.second, scope, source),
          at,
        };
      case 'negated':
        return { kind: 'negated', operand: this.operand(operand.operand, scope, source), at };
      case 'not':
        return { kind: 'not', operand: this.operand(operand.operand, scope, source), at };
      case 'address': {
        if (operand.extra.length && !this.traitsOf(source.mnemonic).operands.coordinates)
          throw this.fail(
            source,
            `'${source.mnemonic}' takes one address in brackets`,
            operand.extra[0]!.at,
          );
        if (operand.unified && !takesUnified(source))
          throw this.fail(source, "'.unified' is of global addresses in ld, ldu and atom", at);
        const extra = operand.extra.map((part) => this.operand(part, scope, source));
        if (operand.base === undefined)
          return {
            kind: 'address',
            base: undefined,
            symbol: undefined,
            offset: operand.offset,
            extra,
            at,
          };
        const base = scope.register(operand.base);
        if (base)
          return { kind: 'address', base, symbol: undefined, offset: operand.offset, extra, at };
        return {
          kind: 'address',
          base: undefined,
          symbol: this.symbol(operand.base, scope, source, at),
          offset: operand.offset,
          extra,
          at,
        };
      }
      case 'name':
        return this.name(operand, scope, source);
    }
  }

  private name(operand: Operand & { kind: 'name' }, scope: Scope, source: Instruction): Arg {
    const { at } = operand;
    if (operand.name === '_') return { kind: 'sink', at };
    const full =
      operand.selector === undefined ? operand.name : `${operand.name}.${operand.selector}`;
    const register = scope.register(full);
    if (register) {
      if (operand.added !== undefined)
        return this.sum({ kind: 'register', register, at }, register.type, operand.added, source);
      return register.type.bits > 64
        ? this.halves(register, at)
        : { kind: 'register', register, at };
    }
    if (isSpecialRegister(full)) {
      const special: Arg = { kind: 'special', name: full.slice(1), at };
      const bits = specialBits(special.name);
      return operand.added === undefined
        ? special
        : this.sum(special, scalarType(bits === 1 ? 'pred' : `u${bits}`), operand.added, source);
    }
    if (full === RESERVED_SHARED.size)
      return { kind: 'integer', value: BigInt(RESERVED_SHARED.bytes + operand.offset), at };
    const reserved = RESERVED_SHARED.addresses.get(full);
    if (reserved !== undefined) {
      const variable = this.context.reservedShared;
      this.out.shared.add(variable);
      return {
        kind: 'symbol',
        symbol: { kind: 'shared', variable },
        offset: reserved + operand.offset,
        at,
      };
    }
    if (operand.selector !== undefined) {
      const whole = scope.register(operand.name);
      if (whole)
        return {
          kind: 'selected',
          operand: { kind: 'register', register: whole, at },
          selector: operand.selector,
          at,
        };
      throw this.fail(source, `undefined register '${full}'`, at);
    }
    const parts = this.vector(operand.name, scope, at);
    if (parts && operand.added !== undefined)
      throw this.fail(source, `nothing is added to a vector: '${operand.name}' stands alone`, at);
    if (parts) return parts;
    if (operand.name.startsWith('%'))
      throw this.fail(source, `undefined register '${operand.name}'`, at);
    const symbol = this.symbol(operand.name, scope, source, at);
    if (
      operand.added !== undefined &&
      (symbol.kind === 'paramRegister' || symbol.kind === 'function')
    ) {
      throw this.fail(
        source,
        `nothing is added to '${operand.name}', which is ` +
          `${symbol.kind === 'function' ? 'a function' : 'the parameter of a call'}`,
        at,
      );
    }
    if (symbol.kind === 'paramRegister') return { kind: 'register', register: symbol.register, at };
    return { kind: 'symbol', symbol, offset: operand.offset, at };
  }

  /**
   * What ptxas makes of `%r1+4`: a register with the sum, which has the width of the register that
   * is named.
   */
  private sum(
    from: Arg & { kind: 'register' | 'special' },
    type: ScalarType,
    constant: bigint,
    source: Instruction,
  ): Arg {
    const { at } = from;
    if (type.kind === 'float' || type.kind === 'predicate' || type.bits > 64) {
      throw this.fail(
        source,
        `a constant is added to integers of 64 bits or less, not to .${type.name}`,
        at,
      );
    }
    const width = [`u${Math.max(type.bits, 16)}`];
    let addend: Arg = from;
    if (from.kind === 'special' || type.bits === 8) {
      addend = {
        kind: 'register',
        register: this.newRegister('(addend)', scalarType(width[0]!)),
        at,
      };
      this.made(
        source,
        from.kind === 'special' ? 'mov' : 'cvt',
        from.kind === 'special' ? width : [...width, 'u8'],
        [addend, from],
      );
    }
    const result: Arg = {
      kind: 'register',
      register: this.newRegister('(sum)', scalarType(`b${Math.max(type.bits, 16)}`)),
      at,
    };
    this.made(source, 'add', width, [result, addend, { kind: 'integer', value: constant, at }]);
    return result;
  }

  /** A register that was declared as a vector, or a special register of several components. */
  private vector(name: string, scope: Scope, at: number): Arg | undefined {
    if (isSpecialRegister(`${name}.x`))
      return {
        kind: 'vector',
        elements: [...'xyzw'].map((part) => ({
          kind: 'special',
          name: `${name.slice(1)}.${part}`,
          at,
        })),
        at,
      };
    const elements: Arg[] = [];
    for (const part of 'xyzw') {
      const register = scope.register(`${name}.${part}`);
      if (!register) break;
      elements.push({ kind: 'register', register, at });
    }
    return elements.length ? { kind: 'vector', elements, at } : undefined;
  }

  /** A 128-bit register is two of 64 bits wherever it stands, the low one first. */
  private halves(register: Register, at: number): Arg {
    this.halved = true;
    let parts = this.wideRegisters.get(register);
    if (!parts) {
      parts = ['low', 'high'].map((half) =>
        this.newRegister(`${register.name}.${half}`, scalarType('b64')),
      );
      this.wideRegisters.set(register, parts);
      for (const part of parts) this.halves128.add(part);
    }
    return {
      kind: 'vector',
      elements: parts.map((part) => ({ kind: 'register', register: part, at })),
      at,
    };
  }

  private symbol(name: string, scope: Scope, source: Instruction, at: number): Symbol {
    const symbol = scope.symbol(name) ?? this.context.symbols.get(name);
    if (symbol) {
      if (symbol.kind === 'shared') this.out.shared.add(symbol.variable);
      return symbol;
    }
    const target = this.context.functions.get(name);
    if (target?.body) return { kind: 'function', target };
    throw this.fail(source, undefinedSymbol(name, this.context.module), at);
  }

  private call(source: Instruction, scope: Scope, predicate: Inst['predicate']): void {
    const { context, out } = this;
    const operands = [...source.operands];
    const results =
      operands[0]?.kind === 'list' ? (operands.shift() as Operand & { kind: 'list' }).elements : [];
    const callee = operands.shift();
    if (callee?.kind !== 'name' || !isBare(callee))
      throw this.fail(source, 'expected a function', callee?.at ?? source.start);
    const args =
      operands[0]?.kind === 'list' ? (operands.shift() as Operand & { kind: 'list' }).elements : [];
    const bind = ({ params, returns }: Prototype): [CallValue[], CallValue[]] => {
      const values: [CallValue[], CallValue[]] = [
        this.callValues(args, params, scope, source),
        this.callValues(results, returns, scope, source),
      ];
      this.matchArguments(source, [...returns, ...params], [...values[1], ...values[0]]);
      return values;
    };

    const pointer = scope.register(callee.name);
    let target: PtxFunction | string | { address: Register; prototype: Prototype };
    let argValues: CallValue[];
    let resultValues: CallValue[];
    if (pointer) {
      const list = operands.shift();
      const prototype =
        list?.kind === 'name' && isBare(list)
          ? this.prototypeOf(list.name, scope, source)
          : undefined;
      if (!prototype)
        throw this.fail(
          source,
          'an indirect call needs a .callprototype, .calltargets or a table of functions',
          source.start,
        );
      [argValues, resultValues] = bind(prototype);
      target = { address: pointer, prototype };
      out.indirectCalls = true;
      const waiting = this.inlines ? context.waiting.filter((fn) => sameShape(prototype, fn)) : [];
      if (waiting.length) {
        this.callOneOf(waiting, { source, target, argValues, resultValues, predicate });
        return;
      }
    } else {
      const fn = context.functions.get(callee.name);
      if (!fn) throw this.fail(source, `undefined function '${callee.name}'`, callee.at);
      if (fn.entry)
        throw this.fail(source, `'${callee.name}' is a kernel, not a function`, callee.at);
      const [takes, gives] = [
        namedParameters(fn.params).length,
        namedParameters(fn.returns).length,
      ];
      if (takes !== args.length || gives !== results.length) {
        throw this.fail(
          source,
          `'${callee.name}' takes ${takes} parameters and returns ${gives}, the call has ` +
            `${args.length} and ${results.length}`,
          callee.at,
        );
      }
      [argValues, resultValues] = bind(fn);
      if (fn.body) {
        const traits = context.traits.get(fn)!;
        if (traits.inlined && this.inlines) {
          this.inline(fn, source, argValues, resultValues, predicate);
          return;
        }
        if (traits.waits && this.inlines) {
          throw context.module.source.error(
            'unsupported',
            `'${fn.name}' is recursive and waits for other threads: not covered yet`,
            callee.at,
            context.module.source.text.slice(source.start, source.end),
          );
        }
        out.calls.add(fn);
        target = fn;
      } else if (context.hostFunctions.has(callee.name)) {
        target = callee.name;
      } else {
        // What CUDA's headers call for `kernel<<<…>>>`, streams and events in a kernel.
        if (!callee.name.startsWith('__cudaCDP2'))
          throw this.fail(source, undefinedSymbol(callee.name, context.module), callee.at);
        throw context.module.source.error(
          'unsupported',
          `function '${callee.name}' is of CUDA's device runtime: kernels that launch ` +
            'kernels (dynamic parallelism) are not covered. Launch them from the host',
          callee.at,
          context.module.source.text.slice(source.start, source.end),
        );
      }
    }
    this.pushCall({ source, target, argValues, resultValues, predicate });
    if (target === '__assertfail')
      this.push({
        mnemonic: 'exit',
        traits: BRANCH,
        modifiers: [],
        args: [],
        predicate,
        source,
        defs: [],
        uses: [],
        targets: NOWHERE,
        call: undefined,
      });
  }

  private pushCall({ source, target, argValues, resultValues, predicate }: LoweredCall): void {
    const defs: Register[] = [];
    const uses: Register[] = [];
    for (const value of argValues) {
      if (value.kind === 'register' || value.kind === 'pointer') uses.push(value.register);
    }
    for (const value of resultValues) {
      if (value.kind === 'register') defs.push(value.register);
      else if (value.kind === 'pointer') uses.push(value.register);
    }
    if (typeof target === 'object' && 'address' in target) uses.push(target.address);
    if (predicate) uses.push(predicate.register, ...defs);
    this.push({
      mnemonic: 'call',
      traits: this.traitsOf('call'),
      modifiers: source.modifiers,
      args: [],
      predicate,
      source,
      defs,
      uses,
      targets: NOWHERE,
      call: { callee: target, args: argValues, results: resultValues },
    });
  }

  /**
   * Functions that wait are put in here, each behind a comparison of its address; what is none of
   * them is called.
   */
  private callOneOf(
    waiting: readonly PtxFunction[],
    call: LoweredCall & { target: { address: Register } },
  ): void {
    const { source, target, argValues, resultValues, predicate } = call;
    const { context } = this;
    const at = source.start;
    const done: Label = { name: '(called)', block: -1 };
    if (predicate)
      this.branch(source, done, { register: predicate.register, negated: !predicate.negated });
    for (const fn of waiting) {
      if (!context.traits.get(fn)!.inlined) {
        throw context.module.source.error(
          'unsupported',
          `'${fn.name}' is recursive and waits for other threads: not covered yet`,
          at,
          context.module.source.text.slice(at, source.end),
        );
      }
      this.matchArguments(source, [...fn.returns, ...fn.params], [...resultValues, ...argValues]);
      const other: Label = { name: `(not ${fn.name})`, block: -1 };
      const address: Arg = {
        kind: 'register',
        register: this.newRegister('(function)', scalarType('u64')),
        at,
      };
      const equal = this.newRegister('(is it)', scalarType('pred'));
      this.made(
        source,
        'mov',
        ['u64'],
        [address, { kind: 'symbol', symbol: { kind: 'function', target: fn }, offset: 0, at }],
      );
      this.made(
        source,
        'setp',
        ['eq', 'u64'],
        [
          { kind: 'register', register: equal, at },
          { kind: 'register', register: target.address, at },
          address,
        ],
      );
      this.branch(source, other, { register: equal, negated: true });
      this.inline(fn, source, argValues, resultValues, undefined);
      this.branch(source, done, undefined);
      this.out.code.push(other);
    }
    this.pushCall({ ...call, predicate: undefined });
    this.out.code.push(done);
  }

  /** An instruction that nobody has written. */
  private made(
    source: Instruction,
    mnemonic: string,
    modifiers: readonly string[],
    args: Arg[],
  ): void {
    const inst: Inst = {
      mnemonic,
      traits: this.traitsOf(mnemonic),
      modifiers,
      args,
      predicate: undefined,
      source,
      defs: [],
      uses: [],
      targets: NOWHERE,
      call: undefined,
    };
    assignRoles(inst);
    this.push(inst);
  }

  /**
   * What a call through a pointer names behind its arguments: a prototype, a list of functions, or
   * a variable that holds their addresses.
   */
  private prototypeOf(name: string, scope: Scope, source: Instruction): Prototype | undefined {
    const { functions, module } = this.context;
    const known = scope.prototype(name);
    if (known) return known;
    const targets = scope.targetList(name) ?? functionsIn(name, module);
    for (const target of targets) {
      const fn = functions.get(target);
      if (!fn || fn.entry)
        throw this.fail(source, `'${target}' in '${name}' is no function`, source.start);
    }
    // All of them have the same parameters.
    return targets[0] === undefined ? undefined : functions.get(targets[0]);
  }

  /**
   * Aggregates are passed as the memory that they are in and have the parameter's size, scalars are
   * not and have its type.
   */
  private matchArguments(
    source: Instruction,
    variables: readonly Variable[],
    values: readonly CallValue[],
  ): void {
    variables.forEach((variable, index) => {
      const value = values[index];
      if (value && !this.takes(variable, value))
        throw this.fail(
          source,
          'parameter ' +
            `'${variable.elements === undefined ? variable.name : variable.name.split('.')[0]!}' ` +
            'does not take this argument',
          source.start,
        );
    });
  }

  private takes(variable: Variable, value: CallValue): boolean {
    const { aggregate, size, element } = variableLayout(variable);
    switch (value.kind) {
      case 'frame':
        return (
          aggregate &&
          (variable.dimensions[0] === 0 ||
            this.out.frameVariables.find(({ offset }) => offset === value.offset)?.size === size)
        );
      case 'pointer':
        return aggregate;
      case 'constant':
        return !aggregate;
      case 'register': {
        const { type } = value.register;
        const wanted = scalarType(variable.type);
        // Elements of vectors are compared by their width, as in ptxas.
        const alike =
          variable.elements !== undefined ||
          type.kind === 'bits' ||
          wanted.kind === 'bits' ||
          (type.kind === 'float') === (wanted.kind === 'float');
        return !aggregate && Math.max(type.bits, 8) === element * 8 && alike;
      }
    }
  }

  /** What a call gives for parameters, or takes results in; of a vector each element. */
  private callValues(
    operands: readonly Operand[],
    variables: readonly Variable[],
    scope: Scope,
    source: Instruction,
  ): CallValue[] {
    const named = namedParameters(variables);
    return operands.flatMap((operand, index) => {
      const variable = named[index];
      const count = variable?.elements ?? 1;
      if (variable === undefined || count === 1)
        return [this.callValue(operand, scope, source, variable)];
      const arg = this.operand(operand, scope, source);
      const elements =
        arg.kind === 'sink'
          ? Array.from({ length: count }, () => arg)
          : arg.kind === 'vector'
            ? arg.elements
            : [];
      if (elements.length !== count)
        throw this.fail(
          source,
          `parameter '${variable.name.split('.')[0]!}' takes a register of ${count} elements`,
          operand.at,
        );
      return elements.map((element): CallValue => ({
        kind: 'register',
        register:
          element.kind === 'register'
            ? element.register
            : this.newRegister('_', scalarType(variable.type)),
      }));
    });
  }

  private callValue(
    operand: Operand,
    scope: Scope,
    source: Instruction,
    result?: Variable,
  ): CallValue {
    const arg = this.operand(operand, scope, source);
    if (arg.kind === 'register') return { kind: 'register', register: arg.register };
    if (arg.kind === 'symbol') {
      if (arg.symbol.kind === 'paramRegister')
        return { kind: 'register', register: arg.symbol.register };
      if (arg.symbol.kind === 'frame') return { kind: 'frame', offset: arg.symbol.offset };
      if (arg.symbol.kind === 'incoming') return { kind: 'pointer', register: arg.symbol.pointer };
    }
    if (arg.kind === 'sink')
      return {
        kind: 'register',
        register: this.newRegister('_', scalarType(result?.type ?? 'b64')),
      };
    return { kind: 'constant', arg };
  }

  private inline(
    fn: PtxFunction,
    source: Instruction,
    args: CallValue[],
    results: CallValue[],
    predicate: Inst['predicate'],
  ): void {
    const after: Label = { name: `(after ${fn.name})`, block: -1 };
    this.context.lowered.add(fn);
    // Empty functions that call each other twice are few in the text and more than any memory here.
    this.instructions += INLINING;
    if (this.instructions > MOST_INSTRUCTIONS || ++this.inlining > DEEPEST_INLINING) {
      throw this.tooLarge();
    }
    if (predicate)
      this.branch(source, after, { register: predicate.register, negated: !predicate.negated });
    const scope = this.newScope(this.outermost);
    /** Results that the function has as another type than the register that takes them. */
    const converted: { from: Register; to: Register }[] = [];
    const bind = (variable: Variable, value: CallValue, incoming: boolean): void => {
      const { aggregate } = variableLayout(variable);
      if (value.kind === 'frame') {
        scope.symbols.set(variable.name, { kind: 'frame', offset: value.offset });
      } else if (value.kind === 'pointer') {
        scope.symbols.set(variable.name, { kind: 'incoming', pointer: value.register });
      } else if (aggregate) {
        throw this.fail(
          source,
          `parameter '${variable.name}' of '${fn.name}' is an aggregate`,
          source.start,
        );
      } else if (value.kind === 'constant' || incoming) {
        // The callee may write its copy.
        const register = this.newRegister(variable.name, scalarType(variable.type));
        const from: Arg =
          value.kind === 'constant'
            ? value.arg
            : { kind: 'register', register: value.register, at: source.start };
        const move: Inst = {
          mnemonic: 'copy',
          traits: this.traitsOf('copy'),
          modifiers: [],
          args: [{ kind: 'register', register, at: source.start }, from],
          predicate: undefined,
          source,
          defs: [],
          uses: [],
          targets: [],
          call: undefined,
        };
        assignRoles(move);
        this.push(move);
        this.alias(scope, variable, register);
      } else if (
        variable.space === 'reg' &&
        value.register.type.name !== variable.type &&
        value.register.type.bits > 8
      ) {
        const from = this.newRegister(variable.name, scalarType(variable.type));
        converted.push({ from, to: value.register });
        this.alias(scope, variable, from);
      } else {
        this.alias(scope, variable, value.register);
      }
    };
    fn.params.forEach((variable, index) => bind(variable, args[index]!, true));
    fn.returns.forEach((variable, index) => bind(variable, results[index]!, false));
    const returned: Label = converted.length ? { name: `(end of ${fn.name})`, block: -1 } : after;
    this.body(fn.body!, this.newScope(scope), returned);
    this.inlining--;
    if (returned !== after) this.out.code.push(returned);
    for (const { from, to } of converted) {
      const args: Arg[] = [to, from].map((register) => ({
        kind: 'register',
        register,
        at: source.start,
      }));
      this.made(source, 'mov', [`b${to.type.bits}`], args);
    }
    this.out.code.push(after);
  }
}
