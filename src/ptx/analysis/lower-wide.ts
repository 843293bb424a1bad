// Instructions that become several: instructions on halves of 128-bit registers and on vectors of
// registers, addresses in shared memory without names, and the stack of alloca.

import { isScalarType, scalarType } from '../scalar-types.js';
import type { Instruction, Operand } from '../syntax/ast.js';
import { OperandLowering } from './lower-operands.js';
import { ALLOCA_BYTES, NOWHERE } from './lowering-state.js';
import { assignRoles, writesFirstOperand } from './operand-roles.js';
import type { Arg, Inst, Register, Symbol } from './program.js';
import type { Scope } from './scopes.js';
import { isOwnSharedAddress } from './unnamed-shared.js';

/** The modifiers of instructions on halves of 128-bit registers. */
export const B64 = ['b64'];

export const S64 = ['s64'];

export abstract class WideLowering extends OperandLowering {
  protected alloca: { top: Register; symbol: Symbol } | undefined = undefined;

  /**
   * A 128-bit register where an instruction has fewer bits: its low half is read or written, and a
   * result is extended to all bits by the type's sign, or with zeros. False if the instruction uses
   * all 128 bits.
   */
  protected narrowed(inst: Inst): boolean {
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
   * Shared memory without names: addresses count from the beginning of the block's shared memory,
   * but those that `cvta` takes or makes are absolute. True if the instruction was lowered here.
   */
  protected countedFromShared(inst: Inst): boolean {
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

  protected sharedBegin(type: readonly string[], source: Instruction): Arg {
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

  /**
   * `mov.b128` of four words or of a number becomes two moves; what they read and write cannot
   * overlap.
   */
  protected movedByHalves(inst: Inst): boolean {
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
    // One side is a whole register: ptxas moves nothing between parts.
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
   * `mov.v2` and `mov.v4`, which ptxas accepts: a move for each element, through temporary
   * registers, since source and destination may overlap.
   */
  protected moveVector(source: Instruction, scope: Scope, predicate: Inst['predicate']): void {
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
    // Registers are compared by width alone, literals by type.
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

  /** How many bytes of the function's alloca stack are in use, and the stack's address. */
  protected allocaStack(source: Instruction): Arg[] {
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
}
