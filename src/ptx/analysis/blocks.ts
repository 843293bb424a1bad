// Basic blocks of a lowered function. A block ends at a branch, at an exit and at every cut,
// because a thread can be resumed only at the start of a block.

import { BRANCH, WARP_BARRIER } from '../isa/traits.js';
import { SHORT_SLICE, THREAD_SLICE } from '../context.js';
import type { CutKind } from './cuts.js';
import { assignRoles } from './operand-roles.js';
import { isLabel } from './program.js';
import type { Inst, Label, LoweredFunction } from './program.js';

export type Ending =
  | { kind: 'jump'; to: number }
  | { kind: 'branch'; inst: Inst; yes: number; no: number }
  | { kind: 'switch'; inst: Inst; to: number[] }
  /** ret of the outermost function, or exit; `inst` is absent at the end of the text. */
  | { kind: 'return' }
  | { kind: 'exit' }
  | { kind: 'trap'; inst: Inst }
  | { kind: 'cut'; inst: Inst; cut: CutKind; to: number }
  /**
   * To a block in another part of a kernel that is several functions. `leaves`: the ending as the
   * part that control leaves has it.
   */
  | { kind: 'part'; to: number; leaves?: boolean };

export interface Block {
  index: number;
  insts: Inst[];
  ending: Ending;
}

export function successors(block: Block): number[] {
  const { ending } = block;
  switch (ending.kind) {
    case 'jump':
    case 'cut':
      return [ending.to];
    case 'part':
      return ending.leaves ? [] : [ending.to];
    case 'branch':
      return ending.yes === ending.no ? [ending.yes] : [ending.no, ending.yes];
    case 'switch':
      return [...new Set(ending.to)];
    default:
      return [];
  }
}

/** The back edges that a thread may take in one turn. */
export const threadSlice = (blocks: readonly Block[]): number =>
  blocks.some(({ ending }) => ending.kind === 'cut' && ending.cut === 'sleep')
    ? SHORT_SLICE
    : THREAD_SLICE;

/**
 * `suspends`: threads of the function can be suspended where they need not wait, such as after
 * accesses that may be to shared memory.
 */
export function buildBlocks(fn: LoweredFunction, suspends: boolean): Block[] {
  const blocks: Block[] = [];
  const pending: { block: Block; inst: Inst }[] = [];
  let current: Block | undefined;
  /** A block that begins with the results of a cut: only the cut may lead to it. */
  let arrival: Block | undefined;
  const open = (): Block => {
    const block: Block = { index: blocks.length, insts: [], ending: { kind: 'return' } };
    blocks.push(block);
    return block;
  };
  const close = (ending: Ending): void => {
    current!.ending = ending;
    current = undefined;
  };
  // The index of the next block, to which control falls through.
  const next = (): number => blocks.length;

  for (let at = 0; at < fn.code.length; at++) {
    const entry = fn.code[at]!;
    if (isLabel(entry)) {
      const label: Label = entry;
      if (current && current !== arrival && current.insts.length === 0) {
        label.block = current.index;
        continue;
      }
      if (current) close({ kind: 'jump', to: next() });
      current = open();
      label.block = current.index;
      continue;
    }
    current ??= open();
    const inst = entry;
    const { mnemonic, modifiers, predicate } = inst;
    if (mnemonic === 'bra' || (mnemonic === 'brx' && !predicate)) {
      pending.push({ block: current, inst });
      close({ kind: 'jump', to: next() });
      continue;
    }
    const leaves =
      mnemonic === 'ret' || mnemonic === 'exit' || mnemonic === 'trap' || mnemonic === 'brkpt';
    const { waits } = inst.traits;
    if (waits.meetsFirst?.(modifiers)) {
      const meeting: Inst = {
        ...inst,
        mnemonic: 'bar',
        traits: WARP_BARRIER,
        modifiers: ['warp', 'sync'],
        args: [{ kind: 'integer', value: -1n, at: inst.source.start }],
        predicate: undefined,
        defs: [],
        uses: [],
      };
      // All threads of the warp execute it or none does, so the second cut does not test the
      // predicate again.
      close({ kind: 'cut', inst: meeting, cut: 'warp', to: next() });
      current = open();
    }
    const cut =
      waits.cut(modifiers) ?? (suspends && waits.givesWay?.(modifiers) ? 'sleep' : undefined);
    if (!leaves && cut === undefined && mnemonic !== 'brx') {
      current.insts.push(inst);
      continue;
    }
    if (predicate) {
      // A predicated exit, cut or brx gets a block of its own after a branch.
      const holder = next();
      const test: Inst = {
        ...inst,
        args: [],
        defs: [],
        uses: [predicate.register],
        mnemonic: 'bra',
        traits: BRANCH,
        modifiers: [],
        call: undefined,
      };
      close({ kind: 'branch', inst: test, yes: holder, no: holder + 1 });
      current = open();
    }
    const bare: Inst = { ...inst, predicate: undefined };
    assignRoles(bare);
    if (cut !== undefined) close({ kind: 'cut', inst: bare, cut, to: next() });
    else if (mnemonic === 'brx') {
      pending.push({ block: current, inst: bare });
      close({ kind: 'jump', to: next() });
    }
    // Without a debugger, a breakpoint ends the kernel as a trap does (measured on an H200).
    else if (mnemonic === 'trap' || mnemonic === 'brkpt') close({ kind: 'trap', inst: bare });
    else close({ kind: mnemonic === 'exit' ? 'exit' : 'return' });
    // The branch around it needs a target block.
    if (predicate || cut !== undefined) current = open();
    if (cut !== undefined && bare.defs.length) arrival = current;
  }
  if (!blocks.length) open();
  for (const { block, inst } of pending) {
    const after = block.index + 1;
    if (inst.mnemonic === 'brx')
      block.ending = { kind: 'switch', inst, to: inst.targets.map((label) => label.block) };
    else if (inst.predicate)
      block.ending = { kind: 'branch', inst, yes: inst.targets[0]!.block, no: after };
    else block.ending = { kind: 'jump', to: inst.targets[0]!.block };
  }
  // A predicated branch at the very end of the text falls off it: that is a return.
  const past = blocks.length;
  if (blocks.some((block) => successors(block).some((to) => to >= past))) open();
  return blocks;
}
