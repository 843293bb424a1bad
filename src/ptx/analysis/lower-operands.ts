// Lowers operands of instructions: names become registers, symbols and addresses.

import { scalarType } from '../scalar-types.js';
import type { ScalarType } from '../scalar-types.js';
import type { Instruction, Operand } from '../syntax/ast.js';
import { undefinedSymbol } from './data-layout.js';
import { LoweringState } from './lowering-state.js';
import { writesFirstOperand } from './operand-roles.js';
import type { Arg, Register, Symbol } from './program.js';
import type { Scope } from './scopes.js';
import { isSpecialRegister, RESERVED_SHARED, specialBits } from './special-registers.js';

/** A name and nothing else, as for labels and functions. */
export const isBare = ({ added, selector }: Operand & { kind: 'name' }): boolean =>
  added === undefined && selector === undefined;

export const takesUnified = ({ mnemonic, modifiers }: Instruction): boolean =>
  ['ld', 'ldu', 'atom'].includes(mnemonic) &&
  !modifiers.some((word) => /^(?:shared|local|param)/.test(word));

export abstract class OperandLowering extends LoweringState {
  protected readonly wideRegisters = new Map<Register, Register[]>();
  protected readonly halves128 = new Set<Register>();
  /** The current instruction has a 128-bit register. */
  protected halved = false;

  protected operands(source: Instruction, scope: Scope): Arg[] {
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
    // An array that grows would reserve room for more.
    const args = new Array<Arg>(operands.length);
    for (let index = 0; index < args.length; index++)
      args[index] = this.operand(operands[index]!, scope, source);
    return args;
  }

  protected operand(operand: Operand, scope: Scope, source: Instruction): Arg {
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

  protected name(operand: Operand & { kind: 'name' }, scope: Scope, source: Instruction): Arg {
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
      throw this.fail(source, `'${operand.name}' is a vector: nothing can be added to it`, at);
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

  /** `%r1+4` becomes a register with the sum, with the width of the named register, as in ptxas. */
  protected sum(
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
  protected vector(name: string, scope: Scope, at: number): Arg | undefined {
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

  /** A 128-bit register is two of 64 bits wherever it occurs, the low one first. */
  protected halves(register: Register, at: number): Arg {
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

  protected symbol(name: string, scope: Scope, source: Instruction, at: number): Symbol {
    const symbol = scope.symbol(name) ?? this.context.symbols.get(name);
    if (symbol) {
      if (symbol.kind === 'shared') this.out.shared.add(symbol.variable);
      return symbol;
    }
    const target = this.context.functions.get(name);
    if (target?.body) return { kind: 'function', target };
    throw this.fail(source, undefinedSymbol(name, this.context.module), at);
  }

  protected isHalf(arg: Arg | undefined): arg is Arg & { kind: 'register' } {
    return arg?.kind === 'register' && this.halves128.has(arg.register);
  }
}
