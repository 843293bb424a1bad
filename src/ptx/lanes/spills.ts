// Which registers a suspension writes to the frame, and which a resumption reads. A cell that was
// read and whose register has not been written since is valid; a register that is not used before
// the next suspension is not read. A cut that threads may pass without waiting is an edge like any
// other, too.

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
   * Registers to write at the end of a block that leads to a loop which suspends threads and does
   * not write them.
   */
  early(block: number): readonly Register[];
  /**
   * Registers of threads that wait after a loop, to write when the others are suspended in it, in
   * addition to {@link saved}.
   */
  waiting(header: number): readonly Register[];
  /** Registers to read, or to compute again, when threads continue at an entry. */
  needed(entry: number): readonly Register[];
}

/** A kernel's blocks, and where its threads may be suspended. */
export interface Suspensions {
  /** In layout order. */
  reached: readonly Block[];
  entries: readonly number[];
  liveness: Liveness;
  /** The register has a cell in the frame. */
  inFrame: (register: Register) => boolean;
  /** Threads may continue after the cut without waiting. */
  passes: (inst: Inst) => boolean;
  loops: readonly Region[];
  /** A block that writes a register leaves some threads' values unchanged. */
  keeps: (block: number, register: Register) => boolean;
  /** Registers of threads that wait after a loop, by its header. */
  waiting: (header: number) => readonly Register[];
}

/** Without the pass `spills`: everything that is live. */
export function spillAll({ entries, liveness, inFrame, waiting }: Suspensions): Spills {
  const saved = new Map(
    entries.map((entry) => [entry, liveness.liveIn(entry).filter(inFrame)] as const),
  );
  return {
    saved: (entry) => saved.get(entry)!,
    early: () => [],
    waiting: (header) =>
      waiting(header).filter(
        (register) => inFrame(register) && !saved.get(header)!.includes(register),
      ),
    needed: (entry) => liveness.liveIn(entry),
  };
}

export function planSpills(kernel: Suspensions): Spills {
  const { reached, entries, liveness, inFrame, waiting } = kernel;
  const flow = new Flow(kernel);
  const leaving = changedRegisters(kernel, flow);
  const saved = new Map<number, Set<Register>>(entries.map((entry) => [entry, new Set()]));
  const further = new Map<number, Set<Register>>(entries.map((entry) => [entry, new Set()]));
  for (const block of reached) {
    const arriving =
      block.ending.kind === 'cut' && block.ending.cut !== 'sleep' ? block.ending.inst.defs : [];
    for (const entry of flow.suspends(block)) {
      const live = new Set(liveness.liveIn(entry));
      for (const register of leaving.get(block.index)!) {
        if (live.has(register) && inFrame(register) && !arriving.includes(register))
          saved.get(entry)!.add(register);
      }
      for (const register of waiting(entry))
        if (inFrame(register) && leaving.get(block.index)!.has(register))
          further.get(entry)!.add(register);
    }
  }
  const early = new Map(
    reached.map((block) => [
      block.index,
      [
        ...new Set(successors(block).flatMap((to) => [...(flow.aheadOf(block.index, to) ?? [])])),
      ].filter((register) => leaving.get(block.index)!.has(register)),
    ]),
  );
  const needed = neededRegisters(kernel, (block) => [
    ...flow.suspends(block).flatMap((entry) => [...saved.get(entry)!, ...further.get(entry)!]),
    ...early.get(block.index)!,
  ]);
  return {
    saved: (entry) => [...saved.get(entry)!],
    early: (block) => early.get(block)!,
    waiting: (header) =>
      [...further.get(header)!].filter((register) => !saved.get(header)!.has(register)),
    needed: (entry) =>
      liveness.liveIn(entry).filter((register) => needed.get(entry)!.has(register)),
  };
}

/** Where threads continue, and where they are suspended. */
class Flow {
  readonly position: ReadonlyMap<number, number>;
  private readonly entries: ReadonlySet<number>;
  private readonly ahead = new Map<
    number,
    { members: ReadonlySet<number>; registers: Set<Register> }
  >();

  constructor({ reached, entries, liveness, inFrame, loops, waiting }: Suspensions) {
    this.position = new Map(reached.map(({ index }, at) => [index, at]));
    this.entries = new Set(entries);
    // What a loop does not write is written to its cells before the loop, and not each time that
    // threads wait in it.
    for (const { header, members } of loops) {
      const inside = reached.filter(({ index }) => members.has(index));
      const waits = inside.some(
        (block) => block.ending.kind === 'cut' && this.suspends(block).length,
      );
      const kept = new Set(
        [...(waits ? liveness.liveIn(header) : []), ...waiting(header)].filter(inFrame),
      );
      for (const block of inside)
        for (const inst of instructionsOf(block))
          for (const register of inst.defs) kept.delete(register);
      if (kept.size) this.ahead.set(header, { members, registers: kept });
    }
  }

  /** Entries before which a block may suspend its threads. */
  suspends(block: Block): number[] {
    return successors(block).filter(
      (to) => this.entries.has(to) && (block.ending.kind === 'cut' || this.goesBack(block, to)),
    );
  }

  goesBack({ index }: Block, to: number): boolean {
    return this.position.get(to)! <= this.position.get(index)!;
  }

  /** Registers that are written before an edge is taken. */
  aheadOf(from: number, to: number): ReadonlySet<Register> | undefined {
    const loop = this.ahead.get(to);
    return loop && !loop.members.has(from) ? loop.registers : undefined;
  }
}

/** A forward analysis: registers that may differ from their cells at the end of each block. */
function changedRegisters(
  { reached, liveness, passes }: Suspensions,
  flow: Flow,
): Map<number, Set<Register>> {
  const changed = new Map(reached.map(({ index }) => [index, new Set<Register>()]));
  for (const register of liveness.liveIn(0)) changed.get(reached[0]!.index)!.add(register);
  for (const { ending } of reached)
    if (ending.kind === 'cut' && ending.cut !== 'sleep')
      for (const register of ending.inst.defs) changed.get(ending.to)?.add(register);
  const leaving = new Map<number, Set<Register>>();
  for (let grows = true; grows;) {
    grows = false;
    for (const block of reached) {
      const out = new Set(changed.get(block.index));
      for (const inst of block.insts) for (const register of inst.defs) out.add(register);
      // Threads that sleep have their result before.
      if (block.ending.kind === 'cut' && block.ending.cut === 'sleep')
        for (const register of block.ending.inst.defs) out.add(register);
      leaving.set(block.index, out);
      if (block.ending.kind === 'cut' && !passes(block.ending.inst)) continue;
      for (const to of successors(block)) {
        const into = changed.get(to)!;
        const before = into.size;
        const written = flow.aheadOf(block.index, to);
        for (const register of out) if (!written?.has(register)) into.add(register);
        if (into.size > before && flow.goesBack(block, to)) grows = true;
      }
    }
  }
  return leaving;
}

/** A backward analysis: what a turn may use from each block on, including the writing of cells. */
function neededRegisters(
  { reached, passes, keeps }: Suspensions,
  written: (block: Block) => readonly Register[],
): Map<number, Set<Register>> {
  const needed = new Map(reached.map(({ index }) => [index, new Set<Register>()]));
  for (let grows = true; grows;) {
    grows = false;
    for (const block of [...reached].reverse()) {
      const live = new Set(written(block));
      if (block.ending.kind !== 'cut' || passes(block.ending.inst))
        for (const to of successors(block))
          for (const register of needed.get(to)!) live.add(register);
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
  return needed;
}
