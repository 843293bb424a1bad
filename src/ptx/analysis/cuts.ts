// Cuts: the instructions at which a thread stops so that others can run. The rest of the thread's
// code continues in a later call, with the live registers brought back from its frame.

export type CutKind = 'barrier' | 'warp' | 'sleep';

/**
 * Codes that warp operations leave in a thread's mailbox; the resolver in runtime/warp.ts reads
 * them.
 */
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
};

export function cutKind(mnemonic: string, modifiers: readonly string[]): CutKind | undefined {
  switch (mnemonic) {
    case 'bar':
    case 'barrier':
      if (modifiers.includes('warp')) return 'warp';
      return modifiers.includes('arrive') ? undefined : 'barrier';
    case 'shfl':
    case 'vote':
    case 'match':
    case 'redux':
    case 'activemask':
    case 'elect':
      return 'warp';
    case 'mma':
    case 'ldmatrix':
    case 'stmatrix':
    case 'movmatrix':
      return 'warp';
    case 'wmma':
      return modifiers[0] === 'mma' ? 'warp' : undefined;
    case 'nanosleep':
      return 'sleep';
    // A wait on an mbarrier gives way, so that the threads that will arrive can run.
    case 'mbarrier':
      return modifiers[0] === 'test_wait' || modifiers[0] === 'try_wait' ? 'sleep' : undefined;
  }
  return undefined;
}

/**
 * Accesses behind which the warp's other threads have their turn. Code of before Volta reduces and
 * scans in `volatile` shared memory without `__syncwarp`, which is right where the threads of a
 * warp are in step from access to access.
 */
export const givesWay = (mnemonic: string, modifiers: readonly string[]): boolean =>
  (mnemonic === 'ld' || mnemonic === 'st') &&
  modifiers.includes('volatile') &&
  !modifiers.includes('global') &&
  !modifiers.includes('local');

/** Instructions that the threads of a warp begin together, each then doing its own part. */
export const meetsFirst = (mnemonic: string, modifiers: readonly string[]): boolean =>
  mnemonic === 'wmma' && (modifiers[0] === 'load' || modifiers[0] === 'store');

export const isCut = (mnemonic: string, modifiers: readonly string[]): boolean =>
  cutKind(mnemonic, modifiers) !== undefined || meetsFirst(mnemonic, modifiers);
