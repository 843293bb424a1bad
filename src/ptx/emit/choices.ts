// Values that a `selp` may discard. Compilers load what a bound makes invalid, compute with it and
// choose afterwards: `selp` of a sum with memory that was never written, and of the sum without it.
// In code compiled with `check` such a load does not report a use of its bytes; the `selp` reports
// it if it chooses them. This is done within one basic block, while a thread runs.

import type { Block } from '../analysis/blocks.js';
import { eachInstruction } from '../analysis/liveness.js';
import type { Arg, Inst, Register } from '../analysis/program.js';

/** Bytes of a load from which an operand is computed. */
export interface LoadedPart {
  readonly load: Inst;
  /** A bit for each byte of the load. */
  readonly bytes: number;
}

/** Instructions whose results depend on the operands alone, and that have no other effect. */
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
  /** For a `selp`, the loaded parts of its two values, if they were loaded in its block. */
  private readonly chosen = new Map<
    Inst,
    readonly [readonly LoadedPart[], readonly LoadedPart[]]
  >();
  /** Instructions whose results only such a `selp` uses. */
  private readonly passing = new Set<Inst>();

  /**
   * `parts` gives the registers that a load sets, with their bytes; undefined for anything but a
   * plain load.
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
   * The loaded parts of the two values of a `selp`; undefined if neither was loaded in its block.
   */
  of(inst: Inst): readonly [readonly LoadedPart[], readonly LoadedPart[]] | undefined {
    return this.chosen.get(inst);
  }

  /** Whether its operands have an effect only through a `selp`. */
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
      // The loads of the called function have the same numbers.
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
   * Goes through the code backwards: a result is passing if all its uses are choices, or pass it on
   * to choices.
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
