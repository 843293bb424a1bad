// Divides a kernel that is too large for one WebAssembly function into parts: each part has a run
// of blocks in layout order, and a thread that goes from one part to another is suspended on the
// way, as at a wait.

import { BRANCH } from '../isa/traits.js';
import type { Block } from './blocks.js';
import type { Inst } from './program.js';
import { analyseShape } from './regions.js';
import type { Shape } from './regions.js';

export interface Part {
  /**
   * Blocks by their numbers in the whole kernel. Those of other parts are empty, and an additional
   * one leads to the place where this part is entered.
   */
  readonly blocks: readonly Block[];
  readonly shape: Shape;
  /** The numbers of its own blocks. */
  readonly members: ReadonlySet<number>;
}

export interface Division {
  /** The whole kernel. Its edges between parts are endings of their own. */
  readonly blocks: readonly Block[];
  readonly parts: readonly Part[];
}

/** Divides blocks into blocks of at most this many instructions, in sequence. */
function shortened(
  blocks: readonly Block[],
  order: readonly number[],
  most: number,
): { blocks: Block[]; order: number[] } {
  const all = [...blocks];
  const laidOut: number[] = [];
  for (const index of order) {
    laidOut.push(index);
    const { insts, ending } = blocks[index]!;
    let last = index;
    for (let from = most; from < insts.length; from += most) {
      const rest: Block = { index: all.length, insts: insts.slice(from, from + most), ending };
      const kept = last === index ? insts.slice(0, most) : all[last]!.insts;
      all[last] = { index: last, insts: kept, ending: { kind: 'jump', to: rest.index } };
      all.push(rest);
      laidOut.push(rest.index);
      last = rest.index;
    }
  }
  return { blocks: all, order: laidOut };
}

/** `most` is the number of instructions in a part; no block has more. */
export function divide(whole: readonly Block[], shape: Shape, most: number): Division {
  const { blocks, order } = shortened(whole, shape.order, most);
  const partOf = new Map<number, number>();
  let parts = 0;
  let filled = 0;
  for (const index of order) {
    const size = blocks[index]!.insts.length + 1;
    if (filled > 0 && filled + size > most) {
      parts++;
      filled = 0;
    }
    filled += size;
    partOf.set(index, parts);
  }
  parts++;

  // Edges to another part go through a block of their own, which suspends the thread. A cut has one
  // to itself, since only the cut may lead to the block where its results arrive.
  const entered: Set<number>[] = Array.from({ length: parts }, () => new Set());
  const ways = new Map<string, number>();
  const wayTo = (from: number, to: number, alone: boolean): number => {
    const own = partOf.get(from)!;
    const target = partOf.get(to);
    if (target === undefined || target === own) return to;
    entered[target]!.add(to);
    const key = `${own} ${to}`;
    const known = alone ? undefined : ways.get(key);
    if (known !== undefined) return known;
    const way: Block = { index: blocks.length, insts: [], ending: { kind: 'part', to } };
    blocks.push(way);
    partOf.set(way.index, own);
    if (!alone) ways.set(key, way.index);
    return way.index;
  };
  for (const index of order) {
    const block = blocks[index]!;
    const { ending } = block;
    const lead = (to: number): number => wayTo(index, to, ending.kind === 'cut');
    switch (ending.kind) {
      case 'jump':
      case 'cut':
        blocks[index] = { ...block, ending: { ...ending, to: lead(ending.to) } };
        break;
      case 'branch':
        blocks[index] = {
          ...block,
          ending: { ...ending, yes: lead(ending.yes), no: lead(ending.no) },
        };
        break;
      case 'switch':
        blocks[index] = { ...block, ending: { ...ending, to: ending.to.map(lead) } };
        break;
    }
  }

  const { source } = blocks.flatMap(({ insts, ending }) =>
    'inst' in ending ? [ending.inst] : insts.slice(0, 1),
  )[0]!;
  const where: Inst = {
    mnemonic: 'brx',
    traits: BRANCH,
    modifiers: ['idx'],
    args: [{ kind: 'integer', value: 0n, at: source.start }],
    predicate: undefined,
    source,
    defs: [],
    uses: [],
    targets: [],
    call: undefined,
  };
  const first = partOf.get(0)!;
  return {
    blocks,
    parts: Array.from({ length: parts }, (_, part): Part => {
      const own = blocks.map((block): Block => {
        const { index, ending } = block;
        if (partOf.get(index) !== part) return { index, insts: [], ending: { kind: 'return' } };
        return ending.kind === 'part' ? { ...block, ending: { ...ending, leaves: true } } : block;
      });
      const roots = [...(part === first ? [0] : []), ...entered[part]!];
      own.push({
        index: own.length,
        insts: [],
        ending: { kind: 'switch', inst: where, to: roots },
      });
      const members = new Set(
        blocks.flatMap(({ index }) => (partOf.get(index) === part ? [index] : [])),
      );
      return { blocks: own, shape: analyseShape(own, own.length - 1), members };
    }),
  };
}

/** Blocks at which threads of some part may be resumed, besides those after cuts. */
export function entriesOf({ blocks, parts }: Division): number[] {
  const found = new Set<number>();
  for (const {
    shape: { loopHeaders, irregularTargets },
  } of parts) {
    for (const block of [...loopHeaders, ...irregularTargets]) found.add(block);
  }
  for (const { ending } of blocks) if (ending.kind === 'part') found.add(ending.to);
  return [...found];
}
