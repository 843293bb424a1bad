// Which registers are alive at the start of each block. Most registers live and die inside one block; those are
// found first and kept out of the bit sets, so that a kernel of thousands of blocks stays cheap.

import { successors } from './blocks.js';
import type { Block } from './blocks.js';
import type { Inst, Register } from './program.js';

export interface Liveness {
  /** Registers alive on entry to a block. */
  liveIn(block: number): readonly Register[];
  /** True for registers that never leave their block. */
  isLocal(register: Register): boolean;
  /** Most 32-bit values alive at once, estimated at block boundaries. */
  pressure: number;
}

/** All instructions of a block, its ending's included. */
export function instructionsOf(block: Block): readonly Inst[] {
  return 'inst' in block.ending ? [...block.insts, block.ending.inst] : block.insts;
}

export function computeLiveness(blocks: readonly Block[], registers: readonly Register[], pinned: readonly Register[] = []): Liveness {
  const home = new Int32Array(registers.length).fill(-1);
  /** The last block that was seen to write a register. */
  const defined = new Int32Array(registers.length).fill(-1);
  const crossing = new Uint8Array(registers.length);
  for (const block of blocks) {
    const here = block.index;
    for (const inst of instructionsOf(block)) {
      // By number: an iterator for each list of each instruction costs more than what is done here.
      for (let at = 0; at < inst.uses.length; at++) {
        const { id } = inst.uses[at]!;
        if (defined[id] !== here || (home[id] !== -1 && home[id] !== here)) crossing[id] = 1;
        home[id] = here;
      }
      for (let at = 0; at < inst.defs.length; at++) {
        const { id } = inst.defs[at]!;
        if (home[id] !== -1 && home[id] !== here) crossing[id] = 1;
        home[id] = defined[id] = here;
      }
    }
    // What a cut writes arrives in the block after it.
    if (block.ending.kind === 'cut') for (const { id } of block.ending.inst.defs) crossing[id] = 1;
  }
  for (const { id } of pinned) crossing[id] = 1;

  const index = new Int32Array(registers.length).fill(-1);
  const members: Register[] = [];
  for (const register of registers) if (crossing[register.id]) index[register.id] = members.push(register) - 1;
  const words = (members.length + 31) >> 5;
  // One allocation per kind of set: thousands of small ones cost more than all the rest.
  const sets = (): Uint32Array[] => {
    const all = new Uint32Array(words * blocks.length);
    return blocks.map((_, at) => all.subarray(at * words, (at + 1) * words));
  };
  const liveIn = sets();
  const generated = sets();
  const killed = sets();
  for (const block of blocks) {
    const gen = generated[block.index]!;
    const kill = killed[block.index]!;
    for (const inst of instructionsOf(block)) {
      for (let at = 0; at < inst.uses.length; at++) {
        const bit = index[inst.uses[at]!.id]!;
        if (bit >= 0 && !(kill[bit >> 5]! & (1 << (bit & 31)))) gen[bit >> 5]! |= 1 << (bit & 31);
      }
      for (let at = 0; at < inst.defs.length; at++) {
        const bit = index[inst.defs[at]!.id]!;
        if (bit >= 0) kill[bit >> 5]! |= 1 << (bit & 31);
      }
    }
  }
  const predecessors: number[][] = blocks.map(() => []);
  for (const block of blocks) for (const to of successors(block)) predecessors[to]!.push(block.index);
  const queued = new Uint8Array(blocks.length).fill(1);
  const queue = blocks.map(block => block.index);
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
  const wide = new Uint32Array(words);
  members.forEach((register, bit) => { if (register.type.bits === 64) wide[bit >> 5]! |= 1 << (bit & 31); });
  let pressure = 0;
  for (const bits of liveIn) {
    let cells = 0;
    for (let w = 0; w < words; w++) if (bits[w]) cells += ones(bits[w]!) + ones(bits[w]! & wide[w]!);
    pressure = Math.max(pressure, cells);
  }
  const lists = new Map<number, readonly Register[]>();
  const list = (block: number): readonly Register[] => {
    let found = lists.get(block);
    if (!found) {
      const made: Register[] = [];
      liveIn[block]!.forEach((bits, w) => {
        for (let rest = bits; rest; rest &= rest - 1) made.push(members[(w << 5) + 31 - Math.clz32(rest & -rest)]!);
      });
      found = made;
      lists.set(block, found);
    }
    return found;
  };
  return { liveIn: list, isLocal: register => !crossing[register.id], pressure };
}

function ones(value: number): number {
  let x = value - ((value >>> 1) & 0x55555555);
  x = (x & 0x33333333) + ((x >>> 2) & 0x33333333);
  return Math.imul((x + (x >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}
