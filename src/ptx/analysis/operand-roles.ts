// Which operands an instruction writes. PTX writes its first operand, with few exceptions: those
// are the rows here.

import type { Arg, Inst, Register } from './program.js';

const WRITES_NOTHING = new Set([
  'st',
  'red',
  'bra',
  'brx',
  'membar',
  'fence',
  'ret',
  'exit',
  'trap',
  'brkpt',
  'nanosleep',
  'prefetch',
  'prefetchu',
  'call',
  'sust',
  'sured',
  'cp',
  'discard',
  'applypriority',
  'pmevent',
  'setmaxnreg',
  'griddepcontrol',
  'stmatrix',
  'stackrestore',
  'tensormap',
  'wgmma',
  'st_async',
  'multimem_st',
]);

export function writesFirstOperand(mnemonic: string, modifiers: readonly string[]): boolean {
  if (WRITES_NOTHING.has(mnemonic)) return false;
  if (mnemonic === 'bar' || mnemonic === 'barrier') return modifiers.includes('red');
  if (mnemonic === 'mbarrier')
    return !['init', 'inval', 'expect_tx', 'complete_tx'].includes(modifiers[0] ?? '');
  if (mnemonic === 'wmma') return modifiers[0] !== 'store';
  return true;
}

const READS_CARRY = new Set(['addc', 'subc', 'madc']);

/** True for parts of carry chains, which keep a flag from one instruction to the next. */
export const usesCarry = (mnemonic: string, modifiers: readonly string[]): boolean =>
  modifiers.includes('cc') || READS_CARRY.has(mnemonic);

/**
 * Registers in the order in which they are met. An array that grows is given room for many, and
 * most instructions of a large kernel have one or two registers: they are collected in one such
 * list and kept in arrays of their number.
 */
class Met {
  private readonly registers: Register[] = [];
  private count = 0;

  push(register: Register): void {
    this.registers[this.count++] = register;
  }

  /** What has been met since the last call. */
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

/** Registers that an operand reads, or names for writing. */
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

/** Fills in what an instruction reads and writes. */
export function assignRoles(inst: Inst): void {
  const writes = writesFirstOperand(inst.mnemonic, inst.modifiers);
  for (let index = 0; index < inst.args.length; index++)
    registersIn(inst.args[index]!, index === 0 && writes ? written : read);
  collectFurther(inst);
  inst.defs = written.take();
  // What a predicated instruction leaves alone stays live.
  if (inst.predicate) {
    read.push(inst.predicate.register);
    read.pushAll(inst.defs);
  }
  inst.uses = read.take();
}

/** What an instruction reads and writes beside its operands. */
function collectFurther(inst: Inst): void {
  // ld and st of call-parameter scalars read and write a register, not memory.
  if (inst.mnemonic === 'ld' || inst.mnemonic === 'st') {
    const address = inst.args[inst.mnemonic === 'ld' ? 1 : 0];
    if (address?.kind === 'address' && address.symbol?.kind === 'paramRegister') {
      (inst.mnemonic === 'ld' ? read : written).push(address.symbol.register);
    }
  }
  // alloca and stackrestore move the top of their stack, which the lowering has put before the last
  // operand.
  if (inst.mnemonic === 'alloca' || inst.mnemonic === 'stackrestore')
    registersIn(inst.args.at(-2)!, written);
  if (inst.carry) {
    if (inst.modifiers.includes('cc')) written.push(inst.carry);
    if (READS_CARRY.has(inst.mnemonic)) read.push(inst.carry);
  }
}
