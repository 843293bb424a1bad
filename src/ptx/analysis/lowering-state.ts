// The state of the lowering of a function: its registers, scopes and frame, and the instructions so
// far.

import { BRANCH, UNKNOWN } from '../isa/traits.js';
import type { InstructionTraits, Traits } from '../isa/traits.js';
import type { ScalarType } from '../scalar-types.js';
import type { Instruction, PtxFunction, PtxModule, Variable } from '../syntax/ast.js';
import type { FunctionTraits } from './call-graph.js';
import { alignUp } from './data-layout.js';
import { assignRoles, NO_REGISTERS } from './operand-roles.js';
import type {
  Arg,
  Inst,
  Label,
  LoweredFunction,
  Register,
  SharedVariable,
  Symbol,
} from './program.js';
import { Scope } from './scopes.js';

export const MOST_INSTRUCTIONS = 400_000;
/** The bytes of alloca for each thread and function. */
export const ALLOCA_BYTES = 4096;

export const NOWHERE: readonly Label[] = [];
export interface LoweringContext {
  module: PtxModule;
  /** The table of instructions. */
  instructions: Traits;
  functions: Map<string, PtxFunction>;
  traits: Map<PtxFunction, FunctionTraits>;
  /** Functions that wait and that calls through pointers may reach. */
  waiting: readonly PtxFunction[];
  symbols: Map<string, Symbol>;
  /** Host functions that may be called, such as vprintf. */
  hostFunctions: ReadonlySet<string>;
  /** Bytes to leave free after each variable of a frame. */
  gap: number;
  /** The variable that contains the addresses of the registers of reserved shared memory. */
  reservedShared: SharedVariable;
  /** The variable from which addresses of shared memory count in a module that has no named one. */
  unnamedShared: SharedVariable | undefined;
  /** Functions whose bodies have been lowered, including inlined ones. */
  lowered: Set<PtxFunction>;
}

export abstract class LoweringState {
  protected readonly context: LoweringContext;
  protected readonly out: LoweredFunction;
  protected instructions = 0;

  constructor(fn: PtxFunction, context: LoweringContext) {
    this.context = context;
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
  }

  protected traitsOf(mnemonic: string): InstructionTraits {
    return this.context.instructions.get(mnemonic) ?? UNKNOWN;
  }

  protected tooLarge(): Error {
    const { source } = this.out;
    return this.context.module.source.error(
      'unsupported',
      `'${source.name}' is too large once its functions are inlined`,
      source.at,
    );
  }

  protected newScope(parent?: Scope): Scope {
    return new Scope((name, type) => this.newRegister(name, type), parent);
  }

  protected newRegister(name: string, type: ScalarType): Register {
    const register = { id: this.out.registers.length, name, type };
    this.out.registers.push(register);
    return register;
  }

  protected alias(scope: Scope, variable: Variable, register: Register): void {
    if (variable.space === 'reg') scope.bind(variable.name, register);
    else scope.symbols.set(variable.name, { kind: 'paramRegister', register });
  }

  protected frame(name: string, size: number, align: number): number {
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

  protected label(scope: Scope, name: string, at: number): Label {
    const label = scope.label(name);
    if (!label) throw this.context.module.source.error('semantic', `undefined label '${name}'`, at);
    return label;
  }

  protected predicate(instruction: Instruction, scope: Scope): Inst['predicate'] {
    if (!instruction.predicate) return undefined;
    const { register: name, negated } = instruction.predicate;
    const register = scope.register(name);
    if (!register) throw this.fail(instruction, `undefined register '${name}'`, instruction.start);
    if (register.type.kind !== 'predicate')
      throw this.fail(instruction, `'${name}' is not a predicate`, instruction.start);
    return { register, negated };
  }

  protected fail(instruction: Instruction, message: string, at: number): Error {
    const { source } = this.context.module;
    return source.error(
      'semantic',
      message,
      at,
      source.text.slice(instruction.start, instruction.end),
    );
  }

  protected push(inst: Inst): void {
    if (++this.instructions > MOST_INSTRUCTIONS) {
      throw this.tooLarge();
    }
    this.out.code.push(inst);
  }

  protected branch(source: Instruction, target: Label, predicate: Inst['predicate']): void {
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

  protected pushPlain(
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

  /** An instruction that the compiler inserts. */
  protected made(
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
}
