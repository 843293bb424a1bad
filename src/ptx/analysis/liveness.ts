// Computes which registers are live at the start of each block. Most registers are used inside one
// block only; those are found first and kept out of the bit sets, so that a kernel of thousands of
// blocks stays cheap.

import { successors } from './blocks.js';
import type { Block } from './blocks.js';
import type { Inst, Register } from './program.js';

/**
 * A register that is live at the start of at most this many blocks is listed there; others have a
 * bit in each block.
 */
const FEW = 32;

export interface Liveness {
  /** The number of registers: their ids are below it. */
  readonly registers: number;
  /** The registers that are live on entry to a block. */
  liveIn(block: number): readonly Register[];
  /** True for registers that never leave their block. */
  isLocal(register: Register): boolean;
  /** The most 32-bit values that are live at once, estimated at the boundaries of blocks. */
  pressure: number;
}

/** All instructions of a block, including its ending's. */
export function instructionsOf(block: Block): readonly Inst[] {
  return 'inst' in block.ending ? [...block.insts, block.ending.inst] : block.insts;
}

/**
 * Visits the same instructions in order, without a copy of the list and without iterators, which
 * make an object for each step.
 */
export function eachInstruction({ insts, ending }: Block, visit: (inst: Inst) => void): void {
  for (let at = 0; at < insts.length; at++) visit(insts[at]!);
  if ('inst' in ending) visit(ending.inst);
}

export function computeLiveness(
  blocks: readonly Block[],
  registers: readonly Register[],
  pinned: readonly Register[] = [],
): Liveness {
  const crossing = crossingRegisters(blocks, registers.length, pinned);
  const members = registers.filter(({ id }) => crossing[id]);
  const accesses = accessesOf(blocks, registers.length, members);
  const predecessors: number[][] = blocks.map(() => []);
  for (const block of blocks)
    for (const to of successors(block)) predecessors[to]!.push(block.index);
  const { few, many } = reachedBlocks(blocks, members, accesses, predecessors);
  const bits = liveBits(blocks, many, accesses, predecessors);
  const lists = new Map<number, readonly Register[]>();
  const list = (block: number): readonly Register[] => {
    let found = lists.get(block);
    if (!found) {
      const made = [...few[block]!];
      bits[block]?.forEach((word, w) => {
        for (let rest = word; rest; rest &= rest - 1)
          made.push(members[many[(w << 5) + 31 - Math.clz32(rest & -rest)]!]!);
      });
      found = made.sort((a, b) => a.id - b.id);
      lists.set(block, found);
    }
    return found;
  };
  const isWide = (member: number): boolean => members[member]!.type.bits === 64;
  return {
    registers: registers.length,
    liveIn: list,
    isLocal: (register) => !crossing[register.id],
    pressure: pressureOf(few, bits, many.map(isWide)),
  };
}

/** Marks the registers that are live at the start of some block. */
function crossingRegisters(
  blocks: readonly Block[],
  registers: number,
  pinned: readonly Register[],
): Uint8Array {
  const home = new Int32Array(registers).fill(-1);
  /** The last visited block that writes a register. */
  const defined = new Int32Array(registers).fill(-1);
  const crossing = new Uint8Array(registers);
  // Indices are used here and below: an iterator for each list of each instruction costs more than
  // the work itself.
  const meet = ({ uses, defs }: Inst, here: number): void => {
    for (let at = 0; at < uses.length; at++) {
      const { id } = uses[at]!;
      if (defined[id] !== here || (home[id] !== -1 && home[id] !== here)) crossing[id] = 1;
      home[id] = here;
    }
    for (let at = 0; at < defs.length; at++) {
      const { id } = defs[at]!;
      if (home[id] !== -1 && home[id] !== here) crossing[id] = 1;
      home[id] = defined[id] = here;
    }
  };
  for (const block of blocks) {
    const { index: here, ending } = block;
    eachInstruction(block, (inst) => {
      meet(inst, here);
    });
    // The results of a cut arrive in the block after it.
    if (ending.kind === 'cut') for (const { id } of ending.inst.defs) crossing[id] = 1;
  }
  for (const { id } of pinned) crossing[id] = 1;
  return crossing;
}

/** For each register, the blocks that read it before they write it, and those that write it. */
interface Accesses {
  readonly reads: BlockLists;
  readonly writes: BlockLists;
}

function accessesOf(
  blocks: readonly Block[],
  registers: number,
  members: readonly Register[],
): Accesses {
  const index = new Int32Array(registers).fill(-1);
  members.forEach(({ id }, member) => {
    index[id] = member;
  });
  const reads = new BlockLists(members.length);
  const writes = new BlockLists(members.length);
  const mark = ({ uses, defs }: Inst, here: number): void => {
    for (let at = 0; at < uses.length; at++) {
      const member = index[uses[at]!.id]!;
      if (member >= 0 && writes.last(member) !== here) reads.add(member, here);
    }
    for (let at = 0; at < defs.length; at++) {
      const member = index[defs[at]!.id]!;
      if (member >= 0) writes.add(member, here);
    }
  };
  for (const block of blocks)
    eachInstruction(block, (inst) => {
      mark(inst, block.index);
    });
  return { reads, writes };
}

/**
 * Goes backwards from the reads of a register to its writes. Most registers reach only the next
 * block or two: those are listed in each block. `many` gets the numbers of the others.
 */
function reachedBlocks(
  blocks: readonly Block[],
  members: readonly Register[],
  { reads, writes }: Accesses,
  predecessors: readonly (readonly number[])[],
): { few: Register[][]; many: number[] } {
  const few: Register[][] = blocks.map(() => []);
  const many: number[] = [];
  const alive = new Int32Array(blocks.length).fill(-1);
  const written = new Int32Array(blocks.length).fill(-1);
  for (let member = 0; member < members.length; member++) {
    const reached: number[] = [];
    const reach = (block: number): void => {
      if (alive[block] === member) return;
      alive[block] = member;
      reached.push(block);
    };
    writes.each(member, (block) => {
      written[block] = member;
    });
    reads.each(member, reach);
    for (let at = 0; at < reached.length && reached.length <= FEW; at++) {
      for (const from of predecessors[reached[at]!]!) if (written[from] !== member) reach(from);
    }
    if (reached.length > FEW) many.push(member);
    else for (const block of reached) few[block]!.push(members[member]!);
  }
  return { few, many };
}

/** For each block, a set of the registers in `many` that are live at its start. */
function liveBits(
  blocks: readonly Block[],
  many: readonly number[],
  { reads, writes }: Accesses,
  predecessors: readonly (readonly number[])[],
): Uint32Array[] {
  const words = (many.length + 31) >> 5;
  if (!words) return [];
  // One allocation for each kind of set: thousands of small ones would cost more than everything
  // else.
  const sets = (): Uint32Array[] => {
    const all = new Uint32Array(words * blocks.length);
    return blocks.map((_, at) => all.subarray(at * words, (at + 1) * words));
  };
  const liveIn = sets();
  const generated = sets();
  const killed = sets();
  many.forEach((member, bit) => {
    reads.each(member, (block) => {
      generated[block]![bit >> 5]! |= 1 << (bit & 31);
    });
    writes.each(member, (block) => {
      killed[block]![bit >> 5]! |= 1 << (bit & 31);
    });
  });
  const queued = new Uint8Array(blocks.length).fill(1);
  const queue = blocks.map((block) => block.index);
  const out = new Uint32Array(words);
  for (let at = queue.pop(); at !== undefined; at = queue.pop()) {
    queued[at] = 0;
    out.fill(0);
    for (const to of successors(blocks[at]!)) {
      const into = liveIn[to]!;
      for (let w = 0; w < words; w++) out[w]! |= into[w]!;
    }
    const live = liveIn[at]!;
    const gen = generated[at]!;
    const kill = killed[at]!;
    let changed = false;
    for (let w = 0; w < words; w++) {
      const value = (gen[w]! | (out[w]! & ~kill[w]!)) >>> 0;
      if (value !== live[w]) {
        live[w] = value;
        changed = true;
      }
    }
    if (!changed) continue;
    for (const from of predecessors[at]!) {
      if (queued[from]) continue;
      queued[from] = 1;
      queue.push(from);
    }
  }
  return liveIn;
}

/** @param isWide for the registers that have bits: whether they are of 64 bits */
function pressureOf(
  few: readonly (readonly Register[])[],
  bits: readonly Uint32Array[],
  isWide: readonly boolean[],
): number {
  const wide = new Uint32Array((isWide.length + 31) >> 5);
  isWide.forEach((is, bit) => {
    if (is) wide[bit >> 5]! |= 1 << (bit & 31);
  });
  let pressure = 0;
  few.forEach((registers, block) => {
    let cells = 0;
    for (const register of registers) cells += register.type.bits === 64 ? 2 : 1;
    for (let w = 0; w < wide.length; w++) {
      const word = bits[block]![w]!;
      if (word) cells += ones(word) + ones(word & wide[w]!);
    }
    pressure = Math.max(pressure, cells);
  });
  return pressure;
}

/** Numbers of blocks for each of many registers, added in the order of the blocks. */
class BlockLists {
  private readonly heads: Int32Array;
  /** For each entry, the block, and the previous entry of the same register. */
  private readonly blocks: number[] = [];
  private readonly before: number[] = [];

  constructor(registers: number) {
    this.heads = new Int32Array(registers).fill(-1);
  }

  /** The last block that was added. */
  last(register: number): number {
    const head = this.heads[register]!;
    return head < 0 ? -1 : this.blocks[head]!;
  }

  add(register: number, block: number): void {
    if (this.last(register) === block) return;
    this.before.push(this.heads[register]!);
    this.heads[register] = this.blocks.push(block) - 1;
  }

  each(register: number, take: (block: number) => void): void {
    for (let at = this.heads[register]!; at >= 0; at = this.before[at]!) take(this.blocks[at]!);
  }
}

function ones(value: number): number {
  let x = value - ((value >>> 1) & 0x55555555);
  x = (x & 0x33333333) + ((x >>> 2) & 0x33333333);
  return Math.imul((x + (x >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}
