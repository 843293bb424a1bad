// Finds registers that are cheaper to compute again than to keep in a thread's frame: those with
// one definition that depends only on constants of the launch and of the thread.

import type { Block } from './blocks.js';
import { eachInstruction } from './liveness.js';
import type { Inst, Register } from './program.js';

const LONGEST_CHAIN = 3;
/** Cheap and pure instructions that may be in a chain. */
const PURE = new Set(['mov', 'cvta', 'ld', 'cvt']);
const VOLATILE_SPECIALS = /^(clock|globaltimer)/;

function isSource(inst: Inst): boolean {
  if (inst.predicate || inst.defs.length !== 1 || inst.args.length !== 2) return false;
  if (!PURE.has(inst.mnemonic)) return false;
  const source = inst.args[1]!;
  if (inst.mnemonic === 'ld')
    return (
      source.kind === 'address' &&
      source.symbol?.kind === 'entryParam' &&
      inst.modifiers[0] === 'param'
    );
  if (inst.args[0]!.kind !== 'register') return false;
  switch (source.kind) {
    case 'integer':
    case 'float':
    case 'register':
      return true;
    case 'special':
      return !VOLATILE_SPECIALS.test(source.name);
    case 'symbol':
      return source.symbol.kind !== 'paramRegister' && source.symbol.kind !== 'incoming';
    default:
      return false;
  }
}

export function rematerialisable(
  blocks: readonly Block[],
  registers: readonly Register[],
): Map<number, Inst> {
  const definitions = new Uint8Array(registers.length);
  const candidates = new Map<number, Inst>();
  const note = (inst: Inst): void => {
    const { defs } = inst;
    for (let at = 0; at < defs.length; at++) {
      const { id } = defs[at]!;
      if (definitions[id]! < 2) definitions[id]!++;
      if (isSource(inst)) candidates.set(id, inst);
    }
  };
  for (const block of blocks) eachInstruction(block, note);
  const depths = new Map<number, number>();
  const depth = (id: number): number => {
    const known = depths.get(id);
    if (known !== undefined) return known;
    depths.set(id, Infinity);
    const inst = candidates.get(id);
    let deepest = inst && definitions[id] === 1 ? 1 : Infinity;
    if (inst && deepest === 1)
      for (const used of inst.uses) deepest = Math.max(deepest, depth(used.id) + 1);
    depths.set(id, deepest);
    return deepest;
  };
  const chosen = new Map<number, Inst>();
  for (const [id, inst] of candidates) if (depth(id) <= LONGEST_CHAIN) chosen.set(id, inst);
  return chosen;
}
