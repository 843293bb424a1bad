// Which registers a suspension must write to the frame and a resumption must read. A cell that was
// read and whose register has not been written since is still good; a register that is not used
// before the next suspension is not read. A cut that threads may pass without waiting is an edge
// like any other, too.

import type { Block } from '../analysis/blocks.js';
import { successors } from '../analysis/blocks.js';
import { instructionsOf } from '../analysis/liveness.js';
import type { Liveness } from '../analysis/liveness.js';
import type { Inst, Register } from '../analysis/program.js';
import type { Region } from '../analysis/regions.js';

export interface Spills {
  /** Registers to write when threads are suspended before an entry. */
  saved(entry: number): readonly Register[];
  /**
   * Registers to write at the end of a block: what it leads to is a loop that suspends threads and
   * leaves them alone.
   */
  early(block: number): readonly Register[];
  /**
   * Registers of threads that wait behind a loop, to write when the others are suspended in it,
   * besides {@link saved}.
   */
  waiting(header: number): readonly Register[];
  /** Registers to read, or to compute again, when threads go on at an entry. */
  needed(entry: number): readonly Register[];
}

/**
 * @param keeps says that a block that writes a register leaves some threads' values alone
 * @param waiting registers that threads need that wait behind a loop, by its header
 */
export function planSpills(
  blocks: readonly Block[],
  order: readonly number[],
  entries: readonly number[],
  liveness: Liveness,
  inFrame: (register: Register) => boolean,
  passes: (inst: Inst) => boolean,
  loops: readonly Region[],
  keeps: (block: number, register: Register) => boolean,
  waiting: (header: number) => readonly Register[],
): Spills {
  const position = new Map(order.map((block, index) => [block, index]));
  const isEntry = new Set(entries);
  /** Entries before which a block may suspend its threads. */
  const suspends = (block: Block): number[] =>
    successors(block).filter(
      (to) =>
        isEntry.has(to) &&
        (block.ending.kind === 'cut' || position.get(to)! <= position.get(block.index)!),
    );
  const reached = order.map((index) => blocks[index]!);

  // What a loop does not write is written to its cells before the loop, not each time that threads
  // wait in it.
  const ahead = new Map<number, { members: ReadonlySet<number>; registers: Set<Register> }>();
  for (const { header, members } of loops) {
    const waits = reached.some(
      (block) => members.has(block.index) && block.ending.kind === 'cut' && suspends(block).length,
    );
    const kept = new Set(
      [...(waits ? liveness.liveIn(header) : []), ...waiting(header)].filter(inFrame),
    );
    if (!kept.size) continue;
    for (const index of members)
      for (const inst of instructionsOf(blocks[index]!))
        for (const register of inst.defs) kept.delete(register);
    ahead.set(header, { members, registers: kept });
  }
  /** Registers that are written before an edge is taken. */
  const aheadOf = (from: number, to: number): ReadonlySet<Register> | undefined => {
    const loop = ahead.get(to);
    return loop && !loop.members.has(from) ? loop.registers : undefined;
  };

  // Forward: registers that may differ from their cells.
  const changed = new Map(reached.map(({ index }) => [index, new Set<Register>()]));
  for (const register of liveness.liveIn(0)) changed.get(order[0]!)!.add(register);
  for (const { ending } of reached)
    if (ending.kind === 'cut' && ending.cut !== 'sleep')
      for (const register of ending.inst.defs) changed.get(ending.to)?.add(register);
  const leaving = new Map<number, Set<Register>>();
  for (let grows = true; grows;) {
    grows = false;
    for (const block of reached) {
      const out = new Set(changed.get(block.index));
      for (const inst of block.insts) for (const register of inst.defs) out.add(register);
      // Those that sleep have their result before they do.
      if (block.ending.kind === 'cut' && block.ending.cut === 'sleep')
        for (const register of block.ending.inst.defs) out.add(register);
      leaving.set(block.index, out);
      if (block.ending.kind === 'cut' && !passes(block.ending.inst)) continue;
      for (const to of successors(block)) {
        const into = changed.get(to)!;
        const before = into.size;
        const written = aheadOf(block.index, to);
        for (const register of out) if (!written?.has(register)) into.add(register);
        if (into.size > before && position.get(to)! <= position.get(block.index)!) grows = true;
      }
    }
  }
  const saved = new Map<number, Set<Register>>(entries.map((entry) => [entry, new Set()]));
  const besides = new Map<number, Set<Register>>(entries.map((entry) => [entry, new Set()]));
  for (const block of reached) {
    const arriving =
      block.ending.kind === 'cut' && block.ending.cut !== 'sleep' ? block.ending.inst.defs : [];
    for (const entry of suspends(block)) {
      const live = new Set(liveness.liveIn(entry));
      for (const register of leaving.get(block.index)!) {
        if (live.has(register) && inFrame(register) && !arriving.includes(register))
          saved.get(entry)!.add(register);
      }
      for (const register of waiting(entry))
        if (inFrame(register) && leaving.get(block.index)!.has(register))
          besides.get(entry)!.add(register);
    }
  }

  const early = (block: Block): Register[] => {
    const out = leaving.get(block.index)!;
    return [
      ...new Set(successors(block).flatMap((to) => [...(aheadOf(block.index, to) ?? [])])),
    ].filter((register) => out.has(register));
  };

  // Backward: what a turn may use, the writing of cells included.
  const needed = new Map(reached.map(({ index }) => [index, new Set<Register>()]));
  for (let grows = true; grows;) {
    grows = false;
    for (const block of [...reached].reverse()) {
      const live = new Set<Register>();
      if (block.ending.kind !== 'cut' || passes(block.ending.inst))
        for (const to of successors(block))
          for (const register of needed.get(to)!) live.add(register);
      for (const entry of suspends(block))
        for (const each of [saved, besides])
          for (const register of each.get(entry)!) live.add(register);
      for (const register of early(block)) live.add(register);
      for (const inst of [...instructionsOf(block)].reverse()) {
        // Threads that wait elsewhere have their values in the same cell.
        if (inst !== ('inst' in block.ending ? block.ending.inst : undefined))
          for (const register of inst.defs)
            if (!keeps(block.index, register)) live.delete(register);
        for (const register of inst.uses) live.add(register);
      }
      const known = needed.get(block.index)!;
      if (live.size > known.size) {
        needed.set(block.index, live);
        grows = true;
      }
    }
  }
  return {
    saved: (entry) => [...saved.get(entry)!],
    early: (block) => early(blocks[block]!),
    waiting: (header) =>
      [...besides.get(header)!].filter((register) => !saved.get(header)!.has(register)),
    needed: (entry) =>
      liveness.liveIn(entry).filter((register) => needed.get(entry)!.has(register)),
  };
}
