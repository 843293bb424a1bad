// The plan of a kernel's code: what is written in which order, as data, before any byte.
// `plain-code.ts` builds it, passes change it (`pass-table.ts`), and then it is written
// (`emission/`), which only decides about bytes and locals.
//
// A kernel has one version of its code or two. The general one has masks of the threads that run.
// The other one is for whole units: all threads of the unit run and take the same branches. It
// hands over to the general one before the instruction of a block at which that ends.

import type { Block } from '../analysis/blocks.js';
import type { Inst, Register } from '../analysis/program.js';
import type { Region } from '../analysis/regions.js';
import type { Guard } from './guards.js';
import type { HoistedChecks } from './hoisted-checks.js';
import type { PrefetchedRows } from './prefetching.js';
import type { ShortSide } from './short-branches.js';
import type { Range, UncheckedRun } from './unchecked-accesses.js';
import type { SteadyUnits } from './versioned-kernels.js';
import type { SteadyLoop } from './versioned-loops.js';

export interface CodePlan {
  readonly general: Version;
  whole: Version | undefined;
  /** Checks in code for whole units that serve other blocks, too. */
  hoisted: HoistedChecks | undefined;
  /** Whole units of a block have a loop of their own, without the general code. */
  ownLoop: boolean;
  /** Units of a block of threads that run without any check, before all others. */
  units: SteadyUnits | undefined;
  /** Loops whose turns all units take before any unit does anything else in a pass. */
  loopPasses: readonly LoopPass[];
  /** Rows that are loaded when a block of threads begins. */
  prefetched: PrefetchedRows | undefined;
  /** Instructions around accesses without checks are written group by group. */
  byGroup: boolean;
  /** Blocks of threads go through memory with the stride of the grid. */
  strides: boolean;
}

export interface Version {
  /** By index, in layout order. */
  readonly blocks: ReadonlyMap<number, BlockCode>;
  /** By header. */
  readonly loops: ReadonlyMap<number, LoopCode>;
  /** Blocks of a turn without loops, in an order in which control only goes forward. */
  order: readonly number[] | undefined;
}

export interface LoopCode {
  readonly region: Region;
  /**
   * The only block for which threads leave the loop, so that at its end the set of those that have
   * left is known.
   */
  exit: number | undefined;
  /**
   * In general code: the loop's only block without masks, for as long as all threads stay in the
   * loop.
   */
  unmasked: BlockCode | undefined;
  /** The turns of a unit are short, so that adjacent units go through memory together. */
  short: boolean;
  /** Some turns at a time run without checks. */
  versioned: SteadyLoop | undefined;
}

/** A loop in code for whole units: a number of turns of each unit. */
export interface LoopPass {
  readonly header: number;
  /** Its turns without checks; absent if they need some. */
  readonly loop: SteadyLoop | undefined;
  /** The turns are unrolled. */
  unrolled: boolean;
}

export interface BlockCode {
  readonly block: Block;
  /** The instructions, in the order in which they are written. */
  steps: Step[];
  /** Accesses that are checked together, from one of the steps on. */
  run: CheckedRun | undefined;
  /**
   * Where code for whole units hands over to the general code: the indices of the instructions
   * before which the general code continues, in ascending order, each with the number of its entry.
   */
  entries: ReadonlyMap<number, number>;
  /** Registers that are written to the frame at the end: see `Spills.early`. */
  spilled: readonly Register[];
  readonly ending: Ending;
}

export interface CheckedRun extends UncheckedRun {
  /**
   * The run is written twice, the second time with a check for each access, for the case that a
   * range is bad. Otherwise control leaves the block before the run.
   */
  twice: boolean;
}

export interface Step {
  readonly inst: Inst;
  /** Registers that are local to the block and that no later step uses. */
  last: readonly Register[];
  /** The comparison is made once for the unit. */
  uniform: UniformComparison | undefined;
  /** Ranges of accesses in other blocks, which are checked after the instruction. */
  checks: { ranges: Range[]; place: number } | undefined;
  anchor: Anchor | undefined;
}

/** A comparison for which the general code makes a mask if the threads do not agree. */
export interface UniformComparison {
  readonly comparison: Guard;
  /** Where the general code continues then. */
  readonly place: number;
  /** What some threads run instead, if the comparison decides the block's branch. */
  side: ShortSide | undefined;
}

/** For a load: the vectors that it takes. For a result: whether the next store writes it anyway. */
export type Anchor = { kind: 'load'; vectors: number } | { kind: 'result'; stored: boolean };

export interface Ending {
  /** Some threads of the unit may continue here while others do not. */
  soft: boolean;
  form: EndingForm;
  /** The comparison of the branch, which is tested for the first and the last thread. */
  guard: Guard | undefined;
  /** A side of the branch that some threads run under its predicate. */
  side: ShortSide | undefined;
}

export type EndingForm =
  /** All threads continue at one block. */
  | 'jump'
  /** A branch by a predicate that is uniform in the unit. */
  | 'branch'
  /** The threads of a whole unit agree, or the general code continues. */
  | 'agree'
  /** Each thread branches by itself. */
  | 'part'
  | 'leave'
  | 'fault'
  /** Threads are suspended at the cut. */
  | 'wait'
  /** A warp operation that all threads of the warp have reached. */
  | 'exchange'
  /** The same if all threads of the warp have reached it; else its threads wait. */
  | 'exchange or wait'
  | 'table';
