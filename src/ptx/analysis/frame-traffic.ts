// Which registers a thread that is suspended writes to its frame, and which it reads when it goes
// on. A cell that was read, or written, and whose register has not been written since is still
// good; a register that is not used before the next suspension is not read. Kernels of thousands of
// warp operations with many registers alive are mostly such code.

import { successors } from './blocks.js';
import type { Block } from './blocks.js';
import type { Liveness } from './liveness.js';
import type { Inst, Register } from './program.js';
import type { Shape } from './regions.js';

export interface FrameTraffic {
  /** Whether threads that are suspended before an entry write the register's cell. */
  writes(entry: number, register: Register): boolean;
  /** Whether threads that go on at an entry read the register's cell. */
  reads(entry: number, register: Register): boolean;
}

/**
 * @param cells the registers that have a cell in the frame, by their number
 * @param anywhere threads may be suspended on every edge that leads to an entry, in whichever order
 * blocks are laid out
 */
export function planFrameTraffic(
  blocks: readonly Block[],
  { order, irregular }: Pick<Shape, 'order' | 'irregular'>,
  entries: readonly number[],
  liveness: Liveness,
  cells: ReadonlyMap<number, unknown>,
  anywhere = false,
): FrameTraffic {
  if (cells.size === 0) return { writes: () => false, reads: () => false };
  const bits = new Map<number, number>();
  for (const id of cells.keys()) bits.set(id, bits.size);
  const words = (bits.size + 31) >> 5;
  const sets = (): Uint32Array[] => {
    const all = new Uint32Array(words * blocks.length);
    return blocks.map((_, at) => all.subarray(at * words, (at + 1) * words));
  };
  const has = (set: Uint32Array, id: number): boolean => {
    const bit = bits.get(id);
    return bit !== undefined && (set[bit >> 5]! & (1 << (bit & 31))) !== 0;
  };
  const add = (set: Uint32Array, registers: readonly Register[], unless?: Uint32Array): void => {
    for (let at = 0; at < registers.length; at++) {
      const bit = bits.get(registers[at]!.id);
      if (bit === undefined) continue;
      const [word, mask] = [bit >> 5, 1 << (bit & 31)];
      if (unless === undefined || !(unless[word]! & mask)) set[word]! |= mask;
    }
  };

  const written = sets();
  const used = sets();
  const reached = order.map((at) => blocks[at]!);
  /** Of a cut, what its registers get only when threads go on; those that sleep have it before. */
  const arriving = ({ ending }: Block): readonly Register[] =>
    ending.kind === 'cut' && ending.cut !== 'sleep' ? ending.inst.defs : [];
  for (const { index, insts, ending } of reached) {
    const read = (inst: Inst): void => {
      add(used[index]!, inst.uses, written[index]);
    };
    for (let at = 0; at < insts.length; at++) {
      read(insts[at]!);
      add(written[index]!, insts[at]!.defs);
    }
    if ('inst' in ending) read(ending.inst);
    if (ending.kind === 'cut' && ending.cut === 'sleep') add(written[index]!, ending.inst.defs);
  }
  /** Threads go on only where their registers have been read. */
  const waits = ({ ending }: Block): boolean => ending.kind === 'cut' || ending.kind === 'part';
  const isEntry = new Set(entries);
  const position = new Int32Array(blocks.length);
  order.forEach((block, at) => {
    position[block] = at;
  });
  /** Entries before which a block may suspend its threads. */
  const suspends = (block: Block): number[] =>
    successors(block).filter(
      (to) =>
        isEntry.has(to) &&
        (anywhere ||
          waits(block) ||
          position[to]! <= position[block.index]! ||
          irregular.has(block.index * blocks.length + to)),
    );

  // Forward: registers that may differ from their cells.
  const changed = sets();
  changed[order[0]!]!.fill(-1);
  for (const block of reached) {
    if (block.ending.kind === 'cut') add(changed[block.ending.to]!, arriving(block));
  }
  for (let grows = true; grows;) {
    grows = false;
    for (const block of reached) {
      if (waits(block)) continue;
      const [before, own] = [changed[block.index]!, written[block.index]!];
      for (const to of successors(block)) {
        const into = changed[to]!;
        for (let word = 0; word < words; word++) {
          const value = (into[word]! | before[word]! | own[word]!) >>> 0;
          if (value === into[word]) continue;
          into[word] = value;
          if (position[to]! <= position[block.index]!) grows = true;
        }
      }
    }
  }
  const saved = new Map<number, Uint32Array>();
  const alive = new Map<number, Uint32Array>();
  for (const entry of entries) {
    saved.set(entry, new Uint32Array(words));
    const live = new Uint32Array(words);
    add(live, liveness.liveIn(entry));
    alive.set(entry, live);
  }
  const excluded = new Uint32Array(words);
  const addWritten = (block: Block, into: Uint32Array, from: (word: number) => number): void => {
    excluded.fill(0);
    add(excluded, arriving(block));
    for (let word = 0; word < words; word++) into[word]! |= from(word) & ~excluded[word]!;
  };
  for (const block of reached) {
    for (const entry of suspends(block)) {
      const live = alive.get(entry)!;
      const [before, own] = [changed[block.index]!, written[block.index]!];
      addWritten(block, saved.get(entry)!, (word) => (before[word]! | own[word]!) & live[word]!);
    }
  }

  // Backward: what a turn may use, the writing of cells included.
  const needed = sets();
  const after = new Uint32Array(words);
  for (let grows = true; grows;) {
    grows = false;
    for (let at = reached.length - 1; at >= 0; at--) {
      const block = reached[at]!;
      after.fill(0);
      if (!waits(block)) {
        for (const to of successors(block)) {
          for (let word = 0; word < words; word++) after[word]! |= needed[to]![word]!;
        }
      }
      for (const entry of suspends(block)) {
        addWritten(block, after, (word) => saved.get(entry)![word]!);
      }
      const own = needed[block.index]!;
      const [reads, writes] = [used[block.index]!, written[block.index]!];
      for (let word = 0; word < words; word++) {
        const value = (own[word]! | reads[word]! | (after[word]! & ~writes[word]!)) >>> 0;
        if (value === own[word]) continue;
        own[word] = value;
        grows = true;
      }
    }
  }
  return {
    writes: (entry, { id }) => has(saved.get(entry)!, id),
    reads: (entry, { id }) => has(needed[entry]!, id),
  };
}
