// Determines which registers an instruction reads and writes. Its row has whether the first operand
// is a result (`isa/traits.ts`).

import type { InstructionTraits } from '../isa/traits.js';
import type { Arg, Inst, Register } from './program.js';

export function writesFirstOperand(
  { operands: { writesFirst } }: InstructionTraits,
  modifiers: readonly string[],
): boolean {
  return typeof writesFirst === 'boolean' ? writesFirst : writesFirst(modifiers);
}

/** True for instructions of carry chains, which keep a flag from one instruction to the next. */
export const usesCarry = ({ operands }: InstructionTraits, modifiers: readonly string[]): boolean =>
  operands.readsCarry === true || modifiers.includes('cc');

/**
 * Registers in the order in which they are added. They are collected in one shared list and copied
 * to arrays of their number: a growing array reserves room for many, and most instructions of a
 * large kernel have one or two registers.
 */
class Met {
  private readonly registers: Register[] = [];
  private count = 0;

  push(register: Register): void {
    this.registers[this.count++] = register;
  }

  /** The registers that were added since the last call. */
  take(): readonly Register[] {
    if (this.count === 0) return NO_REGISTERS;
    const list = this.registers.slice(0, this.count);
    this.count = 0;
    return list;
  }

  pushAll(registers: readonly Register[]): void {
    for (const register of registers) this.push(register);
  }
}

export const NO_REGISTERS: readonly Register[] = [];
const written = new Met();
const read = new Met();

/** Registers that an operand reads, or names as results. */
function registersIn(arg: Arg, out: Met): void {
  switch (arg.kind) {
    case 'register':
      out.push(arg.register);
      return;
    case 'address':
      if (arg.base) out.push(arg.base);
      else if (arg.symbol?.kind === 'incoming') out.push(arg.symbol.pointer);
      if (arg.extra.length) arg.extra.forEach((extra) => registersIn(extra, out));
      return;
    case 'symbol':
      if (arg.symbol.kind === 'incoming') out.push(arg.symbol.pointer);
      else if (arg.symbol.kind === 'paramRegister') out.push(arg.symbol.register);
      return;
    case 'vector':
      arg.elements.forEach((element) => registersIn(element, out));
      return;
    case 'pair':
      registersIn(arg.first, out);
      registersIn(arg.second, out);
      return;
    case 'not':
    case 'negated':
    case 'selected':
      registersIn(arg.operand, out);
      return;
  }
}

/** Determines what an instruction reads and writes. */
export function assignRoles(inst: Inst): void {
  const writes = writesFirstOperand(inst.traits, inst.modifiers);
  for (let index = 0; index < inst.args.length; index++)
    registersIn(inst.args[index]!, index === 0 && writes ? written : read);
  if (writes && inst.traits.operands.readsFirst) registersIn(inst.args[0]!, read);
  collectFurther(inst);
  inst.defs = written.take();
  // A predicated instruction may leave its results unchanged: they stay live.
  if (inst.predicate) {
    read.push(inst.predicate.register);
    read.pushAll(inst.defs);
  }
  inst.uses = read.take();
}

/** What an instruction reads and writes besides its operands. */
function collectFurther(inst: Inst): void {
  const { parameter, movesStack, readsCarry } = inst.traits.operands;
  // ld and st of call-parameter scalars read and write a register, not memory.
  if (parameter !== undefined) {
    const address = inst.args[parameter === 'reads' ? 1 : 0];
    if (address?.kind === 'address' && address.symbol?.kind === 'paramRegister')
      (parameter === 'reads' ? read : written).push(address.symbol.register);
  }
  // The lowering has inserted the top of the stack of alloca before the last operand.
  if (movesStack === 'writes') registersIn(inst.args.at(-2)!, written);
  if (inst.carry) {
    if (inst.modifiers.includes('cc')) written.push(inst.carry);
    if (readsCarry) read.push(inst.carry);
  }
}
