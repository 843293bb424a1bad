// Registers that hold, in each thread of a unit, what follows from its place in the unit alone: the number of its lane and
// what is made of it and of literals, above all comparisons such as `lane < 4` in every scan. They are constants.

import type { Block } from '../analysis/blocks.js';
import { instructionsOf } from '../analysis/liveness.js';
import type { Arg, Inst, Register } from '../analysis/program.js';
import { isScalarType, scalarType } from '../scalar-types.js';

/** Values by lane, as signed words; 1 or 0 for predicates. */
export type LaneConstants = readonly number[];

const COMPARISONS: Record<string, (a: number, b: number) => boolean> = {
  eq: (a, b) => a === b, ne: (a, b) => a !== b, lt: (a, b) => a < b, le: (a, b) => a <= b, gt: (a, b) => a > b, ge: (a, b) => a >= b,
  lo: (a, b) => a < b, ls: (a, b) => a <= b, hi: (a, b) => a > b, hs: (a, b) => a >= b,
};
const ARITHMETIC: Record<string, (a: number, b: number) => number> = {
  add: (a, b) => a + b | 0, sub: (a, b) => a - b | 0, and: (a, b) => a & b, or: (a, b) => a | b, xor: (a, b) => a ^ b,
};

/** `isAligned(inst)`: an operand of the instruction is the unit's lane plus a multiple of as many as there are. */
export function laneConstants(blocks: readonly Block[], unset: readonly Register[], width: number, isAligned: (inst: Inst) => boolean): ReadonlyMap<number, LaneConstants> {
  const definitions = new Map<number, Inst | undefined>(unset.map(({ id }) => [id, undefined]));
  for (const block of blocks) {
    for (const inst of instructionsOf(block)) {
      for (const { id } of inst.defs) definitions.set(id, definitions.has(id) || inst.predicate || inst.defs.length > 1 || block.ending.kind === 'cut' && inst === block.ending.inst ? undefined : inst);
    }
  }
  const found = new Map<number, LaneConstants>();
  const lanes = Array.from({ length: width }, (_, lane) => lane);
  const valuesOf = (arg: Arg | undefined): LaneConstants | undefined => {
    if (arg?.kind === 'register') return found.get(arg.register.id);
    return arg?.kind === 'integer' ? lanes.map(() => Number(BigInt.asIntN(32, arg.value))) : undefined;
  };
  const evaluate = (inst: Inst): LaneConstants | undefined => {
    const { mnemonic, modifiers, args } = inst;
    const [a, b] = [valuesOf(args[1]), valuesOf(args[2])];
    const types = modifiers.filter(isScalarType).map(scalarType);
    const [type] = types;
    if (types.length !== 1 || type?.wasm !== 'i32' || type.bits !== 32 && type.kind !== 'predicate') return undefined;
    if (mnemonic === 'and' && isAligned(inst)) {
      // The multiple of the width has no bits in common with the mask.
      const mask = args[1]?.kind === 'integer' ? a : args[2]?.kind === 'integer' ? b : undefined;
      if (mask && mask[0]! >= 0 && mask[0]! < width) return lanes.map(lane => lane & mask[0]!);
    }
    if (mnemonic === 'mov' && modifiers.length === 1) {
      const source = args[1];
      return source?.kind === 'special' && source.name === 'laneid' && width === 32 ? lanes : source?.kind === 'register' ? a : undefined;
    }
    if (!a || !b || args.length !== 3) return undefined;
    const operation = ARITHMETIC[mnemonic];
    if (operation && modifiers.length === 1) return a.map((value, lane) => operation(value, b[lane]!));
    const comparison = COMPARISONS[modifiers[0] ?? ''];
    if (mnemonic !== 'setp' || !comparison || modifiers.length !== 2 || args[0]!.kind !== 'register') return undefined;
    const unsigned = type.kind !== 'signed' || /^(lo|ls|hi|hs)$/.test(modifiers[0]!);
    const [x, y] = [a, b].map(values => unsigned ? values.map(value => value >>> 0) : values) as [number[], number[]];
    return x.map((value, lane) => Number(comparison(value, y[lane]!)));
  };
  for (let grows = true; grows;) {
    grows = false;
    for (const [id, inst] of definitions) {
      if (!inst || found.has(id)) continue;
      const values = evaluate(inst);
      if (!values) continue;
      found.set(id, values);
      grows = true;
    }
  }
  return found;
}
