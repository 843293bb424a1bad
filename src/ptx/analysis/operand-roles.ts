// Which operands an instruction writes. PTX writes its first operand, with few exceptions: those are the rows here.

import type { Arg, Inst, Register } from './program.js';

const WRITES_NOTHING = new Set(['st', 'red', 'bra', 'brx', 'membar', 'fence', 'ret', 'exit', 'trap', 'brkpt', 'nanosleep',
  'prefetch', 'prefetchu', 'call', 'sust', 'sured', 'cp', 'discard', 'applypriority', 'pmevent', 'setmaxnreg',
  'griddepcontrol', 'stmatrix', 'stackrestore', 'tensormap', 'wgmma', 'st_async', 'multimem_st']);

export function writesFirstOperand(mnemonic: string, modifiers: readonly string[]): boolean {
  if (WRITES_NOTHING.has(mnemonic)) return false;
  if (mnemonic === 'bar' || mnemonic === 'barrier') return modifiers.includes('red');
  if (mnemonic === 'mbarrier') return !['init', 'inval', 'expect_tx', 'complete_tx'].includes(modifiers[0] ?? '');
  if (mnemonic === 'wmma') return modifiers[0] !== 'store';
  return true;
}

const READS_CARRY = new Set(['addc', 'subc', 'madc']);

/** True for parts of carry chains, which keep a flag from one instruction to the next. */
export const usesCarry = (mnemonic: string, modifiers: readonly string[]): boolean => modifiers.includes('cc') || READS_CARRY.has(mnemonic);

/** Registers that an operand reads, or names for writing. */
export function registersIn(arg: Arg, out: Register[]): void {
  switch (arg.kind) {
    case 'register': out.push(arg.register); return;
    case 'address':
      if (arg.base) out.push(arg.base);
      else if (arg.symbol?.kind === 'incoming') out.push(arg.symbol.pointer);
      arg.extra.forEach(extra => registersIn(extra, out));
      return;
    case 'symbol':
      if (arg.symbol.kind === 'incoming') out.push(arg.symbol.pointer);
      else if (arg.symbol.kind === 'paramRegister') out.push(arg.symbol.register);
      return;
    case 'vector': arg.elements.forEach(element => registersIn(element, out)); return;
    case 'pair': registersIn(arg.first, out); registersIn(arg.second, out); return;
    case 'not': case 'negated': case 'selected': registersIn(arg.operand, out); return;
  }
}

/** Fills in what an instruction reads and writes. */
export function assignRoles(inst: Inst): void {
  const defs: Register[] = [];
  const uses: Register[] = [];
  collectRoles(inst, defs, uses);
  // Arrays that grow are given room for many: a large kernel's instructions are kept, and most have one or two of either.
  inst.defs = defs.slice();
  inst.uses = uses.slice();
}

function collectRoles(inst: Inst, defs: Register[], uses: Register[]): void {
  const writes = writesFirstOperand(inst.mnemonic, inst.modifiers);
  inst.args.forEach((arg, index) => registersIn(arg, index === 0 && writes ? defs : uses));
  // ld and st of call-parameter scalars read and write a register, not memory.
  if (inst.mnemonic === 'ld' || inst.mnemonic === 'st') {
    const address = inst.args[inst.mnemonic === 'ld' ? 1 : 0];
    if (address?.kind === 'address' && address.symbol?.kind === 'paramRegister') {
      (inst.mnemonic === 'ld' ? uses : defs).push(address.symbol.register);
    }
  }
  // alloca and stackrestore move the top of their stack, which the lowering has put before the last operand.
  if (inst.mnemonic === 'alloca' || inst.mnemonic === 'stackrestore') registersIn(inst.args.at(-2)!, defs);
  if (inst.carry) {
    if (inst.modifiers.includes('cc')) defs.push(inst.carry);
    if (READS_CARRY.has(inst.mnemonic)) uses.push(inst.carry);
  }
  // What a predicated instruction leaves alone stays live.
  if (inst.predicate) uses.push(inst.predicate.register, ...defs);
}
