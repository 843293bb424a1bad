// Cuts: the instructions at which a thread stops and lets others run. The rest of the thread's code
// continues in a later call, with the live registers read from its frame. The row of an instruction
// has whether it is one (`isa/traits.ts`).

import type { InstructionTraits } from '../isa/traits.js';

export type { CutKind } from '../isa/traits.js';

/** Codes of warp operations in a thread's mailbox; the resolver in runtime/warp.ts reads them. */
export const WARP_OPERATIONS: Readonly<Record<string, number>> = {
  'shfl.up': 1,
  'shfl.down': 2,
  'shfl.bfly': 3,
  'shfl.idx': 4,
  'vote.all': 5,
  'vote.any': 6,
  'vote.uni': 7,
  'vote.ballot': 8,
  'match.any': 9,
  'match.all': 10,
  'redux.add': 11,
  'redux.min.s32': 12,
  'redux.max.s32': 13,
  'redux.min.u32': 14,
  'redux.max.u32': 15,
  'redux.and': 16,
  'redux.or': 17,
  'redux.xor': 18,
  'bar.warp': 19,
  activemask: 20,
  elect: 21,
  mma: 22,
  ldmatrix: 23,
  stmatrix: 24,
  movmatrix: 25,
  wgmma: 26,
};

export const isCut = ({ waits }: InstructionTraits, modifiers: readonly string[]): boolean =>
  waits.cut(modifiers) !== undefined || waits.meetsFirst?.(modifiers) === true;
