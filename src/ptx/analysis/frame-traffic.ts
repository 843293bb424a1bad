// Plans which registers a suspended thread writes to its frame, and which it reads when it
// continues. A cell that was read or written is valid as long as its register has not been written
// since, and a register that is not used before the next suspension is not read. Kernels of
// thousands of warp operations with many live registers consist mostly of such code.

import { successors } from './blocks.js';
import type { Block } from './blocks.js';
import type { Liveness } from './liveness.js';
import type { Inst, Register } from './program.js';
import type { Shape } from './regions.js';

export interface FrameTraffic {
  /** Whether threads that are suspended before an entry write the register's cell. */
  writes(entry: number, register: Register): boolean;
  /** Whether threads that continue at an entry read the register's cell. */
  reads(entry: number, register: Register): boolean;
}

/**
 * @param cells the registers that have a cell in the frame, by their number
 * @param anywhere threads may be suspended on every edge that leads to an entry, in whichever order
 * blocks are laid out
 */
export function planFrameTraffic(
  blocks: readonly Block[],
  shape: Pick<Shape, 'order' | 'irregular'>,
  entries: readonly number[],
  liveness: Liveness,
  cells: ReadonlyMap<number, unknown>,
  anywhere = false,
): FrameTraffic {
  if (cells.size === 0) return { writes: () => false, reads: () => false };
  return new TrafficPlanner(blocks, shape, entries, liveness, cells, anywhere).plan();
}

/**
 * The registers of a cut that get their values only when threads continue; a thread that sleeps has
 * them before.
 */
const arriving = ({ ending }: Block): readonly Register[] =>
  ending.kind === 'cut' && ending.cut !== 'sleep' ? ending.inst.defs : [];
/** Threads continue only after their registers have been read. */
const waits = ({ ending }: Block): boolean => ending.kind === 'cut' || ending.kind === 'part';

class TrafficPlanner {
  private readonly blocks: readonly Block[];
  private readonly irregular: ReadonlySet<number>;
  private readonly entries: readonly number[];
  private readonly isEntry: ReadonlySet<number>;
  private readonly liveness: Liveness;
  private readonly anywhere: boolean;
  /** The bit of each register with a cell in a set. */
  private readonly bits = new Map<number, number>();
  private readonly words: number;
  private readonly reached: readonly Block[];
  /** The place of each block in the layout. */
  private readonly position: Int32Array;
  /** The registers that each block writes, and those that it reads before it writes them. */
  private readonly written: readonly Uint32Array[];
  private readonly used: readonly Uint32Array[];
  private readonly excluded: Uint32Array;

  constructor(
    blocks: readonly Block[],
    { order, irregular }: Pick<Shape, 'order' | 'irregular'>,
    entries: readonly number[],
    liveness: Liveness,
    cells: ReadonlyMap<number, unknown>,
    anywhere: boolean,
  ) {
    this.blocks = blocks;
    this.irregular = irregular;
    this.entries = entries;
    this.isEntry = new Set(entries);
    this.liveness = liveness;
    this.anywhere = anywhere;
    for (const id of cells.keys()) this.bits.set(id, this.bits.size);
    this.words = (this.bits.size + 31) >> 5;
    this.reached = order.map((at) => blocks[at]!);
    const position = new Int32Array(blocks.length);
    order.forEach((block, at) => {
      position[block] = at;
    });
    this.position = position;
    this.written = this.sets();
    this.used = this.sets();
    this.excluded = new Uint32Array(this.words);
  }

  plan(): FrameTraffic {
    this.markAccesses();
    const saved = this.savedRegisters(this.changedRegisters());
    const needed = this.neededRegisters(saved);
    return {
      writes: (entry, { id }) => this.has(saved.get(entry)!, id),
      reads: (entry, { id }) => this.has(needed[entry]!, id),
    };
  }

  // Sets of registers.

  private sets(): Uint32Array[] {
    const { words, blocks } = this;
    const all = new Uint32Array(words * blocks.length);
    return blocks.map((_, at) => all.subarray(at * words, (at + 1) * words));
  }

  private has(set: Uint32Array, id: number): boolean {
    const bit = this.bits.get(id);
    return bit !== undefined && (set[bit >> 5]! & (1 << (bit & 31))) !== 0;
  }

  private add(set: Uint32Array, registers: readonly Register[], unless?: Uint32Array): void {
    for (let at = 0; at < registers.length; at++) {
      const bit = this.bits.get(registers[at]!.id);
      if (bit === undefined) continue;
      const [word, mask] = [bit >> 5, 1 << (bit & 31)];
      if (unless === undefined || !(unless[word]! & mask)) set[word]! |= mask;
    }
  }

  // What blocks do.

  private markAccesses(): void {
    const { written, used } = this;
    for (const { index, insts, ending } of this.reached) {
      const read = (inst: Inst): void => {
        this.add(used[index]!, inst.uses, written[index]);
      };
      for (let at = 0; at < insts.length; at++) {
        read(insts[at]!);
        this.add(written[index]!, insts[at]!.defs);
      }
      if ('inst' in ending) read(ending.inst);
      if (ending.kind === 'cut' && ending.cut === 'sleep')
        this.add(written[index]!, ending.inst.defs);
    }
  }

  /** Entries before which a block may suspend its threads. */
  private suspends(block: Block): number[] {
    return successors(block).filter(
      (to) =>
        this.isEntry.has(to) &&
        (this.anywhere ||
          waits(block) ||
          this.position[to]! <= this.position[block.index]! ||
          this.irregular.has(block.index * this.blocks.length + to)),
    );
  }

  // The flow of values.

  /**
   * A forward analysis: the registers that may differ from their cells at the start of each block.
   */
  private changedRegisters(): Uint32Array[] {
    const { reached, position, words } = this;
    const changed = this.sets();
    changed[reached[0]!.index]!.fill(-1);
    for (const block of reached) {
      if (block.ending.kind === 'cut') this.add(changed[block.ending.to]!, arriving(block));
    }
    for (let grows = true; grows;) {
      grows = false;
      for (const block of reached) {
        if (waits(block)) continue;
        const [before, own] = [changed[block.index]!, this.written[block.index]!];
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
    return changed;
  }

  /** The registers that threads write to their cells before they wait at each entry. */
  private savedRegisters(changed: readonly Uint32Array[]): Map<number, Uint32Array> {
    const saved = new Map<number, Uint32Array>();
    const alive = new Map<number, Uint32Array>();
    for (const entry of this.entries) {
      saved.set(entry, new Uint32Array(this.words));
      const live = new Uint32Array(this.words);
      this.add(live, this.liveness.liveIn(entry));
      alive.set(entry, live);
    }
    for (const block of this.reached) {
      for (const entry of this.suspends(block)) {
        const live = alive.get(entry)!;
        const [before, own] = [changed[block.index]!, this.written[block.index]!];
        this.addUnlessArriving(
          block,
          saved.get(entry)!,
          (word) => (before[word]! | own[word]!) & live[word]!,
        );
      }
    }
    return saved;
  }

  private addUnlessArriving(block: Block, into: Uint32Array, from: (word: number) => number): void {
    const { excluded } = this;
    excluded.fill(0);
    this.add(excluded, arriving(block));
    for (let word = 0; word < this.words; word++) into[word]! |= from(word) & ~excluded[word]!;
  }

  /**
   * A backward analysis: what a turn may use from each block on, including the writing of cells.
   */
  private neededRegisters(saved: ReadonlyMap<number, Uint32Array>): Uint32Array[] {
    const { reached, words } = this;
    const needed = this.sets();
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
        for (const entry of this.suspends(block))
          this.addUnlessArriving(block, after, (word) => saved.get(entry)![word]!);
        const own = needed[block.index]!;
        const [reads, writes] = [this.used[block.index]!, this.written[block.index]!];
        for (let word = 0; word < words; word++) {
          const value = (own[word]! | reads[word]! | (after[word]! & ~writes[word]!)) >>> 0;
          if (value === own[word]) continue;
          own[word] = value;
          grows = true;
        }
      }
    }
    return needed;
  }
}
