// Values that a `selp` may throw away. Compilers load what a bound makes invalid, compute with it
// and choose afterwards: `selp` of a sum with what was never written, and of the sum without it. In
// code compiled with `check` such a load is not told as a use of its bytes; the `selp` tells
// whether it chose them. Within one basic block only, as long as a thread runs.

import type { Block } from '../analysis/blocks.js';
import { eachInstruction } from '../analysis/liveness.js';
import type { Arg, Inst, Register } from '../analysis/program.js';

/** Bytes of a load that an operand is made of. */
export interface LoadedPart {
  readonly load: Inst;
  /** A bit for each byte of the load. */
  readonly bytes: number;
}

/** Results are made of the operands alone, and nothing else comes of them. */
const PURE = new Set([
  'mov',
  'copy',
  'add',
  'sub',
  'mul',
  'mad',
  'fma',
  'min',
  'max',
  'neg',
  'abs',
  'and',
  'or',
  'xor',
  'not',
  'shl',
  'shr',
  'cvt',
  'mul24',
  'mad24',
  'lop3',
]);

const registersOf = (args: readonly Arg[]): Register[] =>
  args.flatMap((arg) => (arg.kind === 'register' ? [arg.register] : []));

export class Choices {
  /** Of a `selp`: what its two values are made of, where that was loaded in its block. */
  private readonly chosen = new Map<
    Inst,
    readonly [readonly LoadedPart[], readonly LoadedPart[]]
  >();
  /** Instructions whose results only such a `selp` uses. */
  private readonly passing = new Set<Inst>();

  /**
   * `parts`: the registers that a load sets, with their bytes; undefined for what is no plain load.
   */
  constructor(
    blocks: readonly Block[],
    parts: (inst: Inst) => readonly { register: Register; bytes: number }[] | undefined,
  ) {
    const uses = new Map<number, number>();
    const defs = new Map<number, number>();
    const count = (counts: Map<number, number>, { id }: Register): void =>
      void counts.set(id, (counts.get(id) ?? 0) + 1);
    for (const block of blocks) {
      eachInstruction(block, (inst) => {
        for (const register of inst.uses) count(uses, register);
        if (inst.predicate !== undefined) count(uses, inst.predicate.register);
        for (const register of inst.defs) count(defs, register);
      });
    }
    for (const { insts } of blocks) {
      this.follow(insts, parts);
      this.findPassing(
        insts,
        (register) => defs.get(register.id) === 1,
        (register) => uses.get(register.id) ?? 0,
      );
    }
  }

  /**
   * What the two values of a `selp` are made of; undefined where neither was loaded in its block.
   */
  of(inst: Inst): readonly [readonly LoadedPart[], readonly LoadedPart[]] | undefined {
    return this.chosen.get(inst);
  }

  /** Whether what it does with its operands shows at a `selp` only. */
  passes(inst: Inst): boolean {
    return this.passing.has(inst);
  }

  private follow(
    insts: readonly Inst[],
    parts: (inst: Inst) => readonly { register: Register; bytes: number }[] | undefined,
  ): void {
    const held = new Map<number, readonly LoadedPart[]>();
    for (const inst of insts) {
      const { mnemonic, args, defs, predicate } = inst;
      // The loads of what is called have the same numbers.
      if (mnemonic === 'call') {
        held.clear();
        continue;
      }
      const made = registersOf(args.slice(1)).flatMap(({ id }) => held.get(id) ?? []);
      if (mnemonic === 'selp' && predicate === undefined) {
        const sides = [args[1], args[2]].map((arg) =>
          arg?.kind === 'register' ? (held.get(arg.register.id) ?? []) : [],
        ) as [LoadedPart[], LoadedPart[]];
        if (sides.some((side) => side.length > 0)) this.chosen.set(inst, sides);
      }
      for (const { id } of defs) held.delete(id);
      if (predicate !== undefined) continue;
      const loaded = parts(inst);
      if (loaded !== undefined)
        for (const { register, bytes } of loaded) held.set(register.id, [{ load: inst, bytes }]);
      else if (PURE.has(mnemonic) && defs.length === 1 && made.length > 0)
        held.set(defs[0]!.id, made);
    }
  }

  /**
   * Against the order of the code: a result all of whose uses are choices, or pass it on to
   * choices.
   */
  private findPassing(
    insts: readonly Inst[],
    isSingle: (register: Register) => boolean,
    usesOf: (register: Register) => number,
  ): void {
    const choices = new Map<number, number>();
    const count = (args: readonly Arg[]): void => {
      for (const { id } of registersOf(args)) choices.set(id, (choices.get(id) ?? 0) + 1);
    };
    for (const inst of [...insts].reverse()) {
      const {
        mnemonic,
        args,
        defs: [target],
        defs,
        predicate,
      } = inst;
      if (this.chosen.has(inst)) count(args.slice(1, 3));
      else if (
        PURE.has(mnemonic) &&
        predicate === undefined &&
        defs.length === 1 &&
        isSingle(target!) &&
        usesOf(target!) > 0 &&
        choices.get(target!.id) === usesOf(target!)
      ) {
        this.passing.add(inst);
        count(args.slice(1));
      }
    }
  }
}
