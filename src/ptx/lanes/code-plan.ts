// The plan of a kernel's code: what is written in which order, as data, before any byte is. It is
// built plain (`plain-code.ts`), changed by passes (`pass-table.ts`), and then written
// (`emission/`), which decides about bytes and locals only.
//
// A kernel has one version of its code or two. The general one keeps masks of the threads that run.
// The one for whole units is for units all of whose threads run and go the same way; it hands over
// to the general one before the instruction of a block where that ends.

import type { Block } from '../analysis/blocks.js';
import type { Inst, Register } from '../analysis/program.js';
import type { Region } from '../analysis/regions.js';
import type { Guard } from './guards.js';
import type { HoistedChecks } from './hoisted-checks.js';
import type { Touches } from './prefetching.js';
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
  /** Units of a block of threads that go without any check, before all others. */
  units: SteadyUnits | undefined;
  /** Loops of which all units take turns before any unit does anything else in a pass. */
  loopPasses: readonly LoopPass[];
  /** Rows that are loaded when a block of threads begins. */
  touches: Touches | undefined;
  /** Instructions around accesses without checks are written group by group. */
  byGroup: boolean;
  /** Blocks of threads go through memory with the stride of the grid. */
  strides: boolean;
}

export interface Version {
  /** By index, in the order of the layout. */
  readonly blocks: ReadonlyMap<number, BlockCode>;
  /** By header. */
  readonly loops: ReadonlyMap<number, LoopCode>;
  /** Blocks of a turn that never goes round, in an order in which control only goes ahead. */
  order: readonly number[] | undefined;
}

export interface LoopCode {
  readonly region: Region;
  /** The block for which all threads leave the loop, so that its end knows the ones that left. */
  exit: number | undefined;
  /** In general code: the loop's only block without masks, while all threads go round. */
  unmasked: BlockCode | undefined;
  /** The turns of a unit are short, so that neighbouring units go through memory together. */
  short: boolean;
  /** Some turns at a time go without checks. */
  versioned: SteadyLoop | undefined;
}

/** A loop in code for whole units: a number of turns of each unit. */
export interface LoopPass {
  readonly header: number;
  /** Its turns without checks; none where they need some. */
  readonly loop: SteadyLoop | undefined;
  /** The turns are written one after the other. */
  unrolled: boolean;
}

export interface BlockCode {
  readonly block: Block;
  /** The instructions, in the order in which they are written. */
  steps: Step[];
  /** Accesses that are checked together, from one of the steps on. */
  run: CheckedRun | undefined;
  /**
   * Where code for whole units hands over to the general code: the index in the block of the
   * instruction before which that goes on, in ascending order, and the number that says so.
   */
  entries: ReadonlyMap<number, number>;
  /** Registers that are written to the frame at the end: see `Spills.early`. */
  spilled: readonly Register[];
  readonly ending: Ending;
}

export interface CheckedRun extends UncheckedRun {
  /**
   * The run is written twice, the second time with a check for each access, for where a range is
   * bad. Otherwise control leaves the block before the run.
   */
  twice: boolean;
}

export interface Step {
  readonly inst: Inst;
  /** Registers of the block alone that no later step has. */
  last: readonly Register[];
  /** The comparison is made once for the unit. */
  uniform: UniformComparison | undefined;
  /** Ranges of accesses in other blocks, which are checked after the instruction. */
  checks: { ranges: Range[]; place: number } | undefined;
  anchor: Anchor | undefined;
}

/** A comparison of which the general code makes one mask where the threads do not agree. */
export interface UniformComparison {
  readonly comparison: Guard;
  /** Where the general code goes on then. */
  readonly place: number;
  /** What some threads run instead of that, where the comparison decides the block's branch. */
  side: ShortSide | undefined;
}

/** Of a load: the vectors that it takes. Of a result: whether the next store writes it anyway. */
export type Anchor = { kind: 'load'; vectors: number } | { kind: 'result'; stored: boolean };

export interface Ending {
  /** Some threads of the unit may go on here while others do not. */
  soft: boolean;
  form: EndingForm;
  /** The comparison of the branch, which looks at the first thread and the last. */
  guard: Guard | undefined;
  /** A side of the branch that some threads run under its predicate. */
  side: ShortSide | undefined;
}

export type EndingForm =
  /** all threads go on at one block */
  | 'jump'
  /** a branch by a predicate that is one value for the unit */
  | 'branch'
  /** threads of a whole unit agree, or the general code goes on */
  | 'agree'
  /** each thread goes its way */
  | 'part'
  | 'leave'
  | 'fault'
  /** threads are suspended at the cut */
  | 'wait'
  /** an operation of a warp whose threads are all there */
  | 'exchange'
  /** the same where the warp has come together; else its threads wait */
  | 'exchange or wait'
  | 'table';
