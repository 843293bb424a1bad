// Prefetching of rows in blocks of several rows that wait at barriers, such as those of a tile:
// each unit's row is far from the next one's, often on another page, and a processor looks ahead a
// few hundred instructions, which are two or three units of work. A load of each of their lines at
// the start of the block has all of them on their way at once, and the units then find them in
// caches. The loaded values are not used, so any address in memory will do: guards are not
// evaluated, and rows are assumed to be evenly spaced. Lines that are stored to have to be fetched,
// too, and are loaded with the others. A tile of a transpose of 2048² takes 0.65 us instead of 0.92
// on one thread. With the loads of the lines that are stored to after the barrier it took 0.8, with
// unrolled loads instead of a loop 0.84, and with each unit loading the next block's lines between
// 0.6 and 1.7.

import type { Block } from '../analysis/blocks.js';
import type { Arg, Inst, Register } from '../analysis/program.js';
import type { CodePlan } from './code-plan.js';
import type { LaneEmitter } from './lane-emitter.js';
import type { LaneKernelEmitter } from './lane-kernel.js';
import { ADDRESS_ARITHMETIC, ofMeaning } from './meanings.js';
import { access } from './places.js';
import type { Access } from './places.js';

const KNOWN = /^(?:n?ctaid|n?tid)\.[xyz]$/;
/** The most instructions of all addresses together. */
const MOST_INSTRUCTIONS = 80;
/** Bytes of a line: processors with longer ones lose little. */
export const LINE = 64;

/** A block that accesses more places of each row has other work. */
const MOST_PLACES = 12;

export interface PrefetchedRows {
  /** The instructions that compute the addresses, in order. */
  insts: readonly Inst[];
  /** The instructions whose results differ from row to row. */
  ofRow: ReadonlySet<Inst>;
  /**
   * The accessed places of a row, two at a time: loads and stores are on their way together. Some
   * may occur twice.
   */
  pairs: readonly (readonly [Access, Access])[];
  /** Bytes for each thread. */
  size: number;
}

/**
 * Accesses to memory that each thread makes at most once, at adjacent places, whose addresses
 * depend on the thread's row. `repeats`: blocks in loops.
 */
function findPrefetchedRows(
  e: LaneEmitter,
  blocks: readonly Block[],
  order: readonly number[],
  repeats: (block: number) => boolean,
): PrefetchedRows | undefined {
  // Between loops and other long work there is time to fetch memory.
  if (
    !order.some((index) => {
      const { ending } = blocks[index]!;
      return ending.kind === 'cut' && ending.cut === 'barrier';
    })
  )
    return undefined;
  const definitions = new Map<Register, Inst | undefined>();
  for (const index of order) {
    const { insts, ending } = blocks[index]!;
    for (const inst of 'inst' in ending ? [...insts, ending.inst] : insts)
      for (const register of inst.defs)
        definitions.set(register, definitions.has(register) ? undefined : inst);
  }
  const slices = new Map<Register, ReadonlySet<Inst> | undefined>();
  /** The instructions that compute a register from only parameters and places in the grid. */
  const sliceOf = (register: Register, depth = 0): ReadonlySet<Inst> | undefined => {
    if (slices.has(register)) return slices.get(register);
    // A register that depends on itself has none.
    slices.set(register, undefined);
    const inst = definitions.get(register);
    if (
      !inst ||
      depth === MOST_INSTRUCTIONS ||
      inst.predicate ||
      inst.carry ||
      e.isVarying(register) ||
      !(ofMeaning(ADDRESS_ARITHMETIC, inst) ? inst.args.slice(1).every(isKnown) : isParameter(inst))
    )
      return undefined;
    const slice = new Set<Inst>();
    for (const used of inst.uses) {
      const before = sliceOf(used, depth + 1);
      if (!before) return undefined;
      for (const each of before) slice.add(each);
    }
    slice.add(inst);
    if (slice.size > MOST_INSTRUCTIONS) return undefined;
    slices.set(register, slice);
    return slice;
  };
  const ofRow = new Set<Inst>();
  /** Whether the value depends on the row. */
  const depends = (register: Register): boolean => {
    for (const inst of sliceOf(register)!) {
      const defined = (used: Register): boolean => ofRow.has(definitions.get(used)!);
      if (
        inst.uses.some(defined) ||
        inst.args.some((arg) => arg.kind === 'special' && arg.name === 'tid.y')
      )
        ofRow.add(inst);
    }
    return ofRow.has(definitions.get(register)!);
  };
  const found: { inst: Inst; access: Access }[] = [];
  const insts = new Set<Inst>();
  for (const index of order) {
    if (repeats(index)) continue;
    for (const inst of blocks[index]!.insts) {
      if (inst.mnemonic !== 'ld' && inst.mnemonic !== 'st') continue;
      e.inst = inst;
      const [to, from] = inst.mnemonic === 'ld' ? [1, 0] : [0, 1];
      const each = access(e, inst.args[to], inst.args[from]);
      if (!each?.wide || each.shared || each.stride !== each.size) continue;
      const { base, offset } = each.address;
      const slice = sliceOf(base!);
      if (!slice || !depends(base!)) continue;
      if (
        found.some(
          ({ access: { address } }) =>
            address.base === base && Math.abs(address.offset - offset) < LINE,
        )
      )
        continue;
      found.push({ inst, access: each });
      for (const made of slice) insts.add(made);
    }
  }
  // Rows of narrower elements are shorter.
  const size = Math.max(...found.map(({ access: { size } }) => size));
  const [loads, stores] = ['ld', 'st'].map((mnemonic) =>
    found
      .filter(({ inst, access: { size: own } }) => inst.mnemonic === mnemonic && own === size)
      .map((each) => each.access),
  ) as [Access[], Access[]];
  if (!found.length || loads.length + stores.length > MOST_PLACES || insts.size > MOST_INSTRUCTIONS)
    return undefined;
  const inTurn = Array.from({ length: Math.max(loads.length, stores.length) }, (_, index) => [
    ...loads.slice(index, index + 1),
    ...stores.slice(index, index + 1),
  ]).flat();
  const pairs: [Access, Access][] = [];
  for (let index = 0; index < inTurn.length; index += 2)
    pairs.push([inTurn[index]!, inTurn[index + 1] ?? inTurn[index]!]);
  return { insts: [...insts], ofRow, pairs, size };
}

function isParameter({ mnemonic, modifiers, args }: Inst): boolean {
  return (
    mnemonic === 'ld' &&
    modifiers.includes('param') &&
    args[0]!.kind === 'register' &&
    args
      .slice(1)
      .every((arg) => arg.kind === 'address' && !arg.base && arg.symbol?.kind === 'entryParam')
  );
}

function isKnown(arg: Arg): boolean {
  switch (arg.kind) {
    case 'integer':
    case 'register':
      return true;
    case 'special':
      return KNOWN.test(arg.name);
    case 'symbol':
      return arg.symbol.kind === 'data' || arg.symbol.kind === 'shared';
    default:
      return false;
  }
}

/** A pass: rows that are loaded at the start of a block that a function runs by itself. */
export function loadRowsAhead(code: CodePlan, k: LaneKernelEmitter): void {
  const { blocks, shape } = k.kernel;
  if (k.passes && !k.oneRow)
    code.prefetched = findPrefetchedRows(
      k,
      blocks,
      shape.order,
      (block) => shape.regionOf(block).header >= 0,
    );
}
