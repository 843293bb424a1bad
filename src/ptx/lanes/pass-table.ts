// The passes of the vector back end, in the order in which they run. Each can be switched off
// (`CompileOptions.passes`), and the code stays correct: docs/cpu-device-passes.md lists what each
// pass brings to each benchmark.
//
// `run` changes the plan of the code. A pass without it acts elsewhere and is tested for there by
// its name: while the frame is planned, or while bytes are written.

import { anchorResults } from './anchors.js';
import { putChecksFirst } from './check-hoisting-order.js';
import type { CodePlan } from './code-plan.js';
import { hoistChecks } from './hoisted-checks.js';
import type { LaneKernelEmitter } from './lane-kernel.js';
import { completeCode, plainCode } from './plain-code.js';
import { loadRowsAhead } from './prefetching.js';
import { runShortSides } from './short-branches.js';
import { addWholeUnits, linkVersions } from './side-exits.js';
import { separateWholeUnits, straighten } from './straight-turns.js';
import { runSideBySide, shortenTurns } from './streaming-loops.js';
import { makeUniform } from './uniform-predicates.js';

interface Pass {
  readonly name: string;
  readonly what: string;
  readonly run?: (code: CodePlan, k: LaneKernelEmitter) => void;
}

export const PASSES = [
  {
    name: 'one row',
    what: "in blocks of one row a thread's number is its index",
  },
  {
    name: 'block loop',
    what: 'a function runs a block by itself if threads wait only at its barrier',
  },
  {
    name: 'warp operations in passing',
    what: 'no entry after a warp operation that all threads of the warp reach together',
  },
  {
    name: 'spills',
    what: 'registers are written to the frame where they change, and read where they are used',
  },
  {
    name: 'whole units',
    what: 'a version without masks for units all of whose threads take the same branches',
    run: addWholeUnits,
  },
  {
    name: 'uniform predicates',
    what: 'comparisons on which the threads nearly always agree are made once for the unit',
    run: makeUniform,
  },
  {
    name: 'hoisted checks',
    what: 'accesses of several blocks are checked once, where their address is computed',
    run: hoistChecks,
  },
  {
    name: 'checks first',
    what: 'the accesses of a block are checked together at its beginning',
    run: putChecksFirst,
  },
  // The versions are complete from here on.
  { name: 'linked versions', what: 'places where one version hands over', run: linkVersions },
  {
    name: 'short branches',
    what: "a few instructions that a branch skips run under the branch's predicate",
    run: runShortSides,
  },
  {
    name: 'value ranges',
    what: 'accesses to shared memory that cannot leave their variable have no check',
  },
  {
    name: 'short turns',
    what: 'units take turns after a few rounds of a loop that goes through memory',
    run: shortenTurns,
  },
  {
    name: 'side by side',
    what: 'blocks that go through memory with the stride of the grid run in turns',
    run: runSideBySide,
  },
  {
    name: 'straight turns',
    what: 'no loop around blocks if every path round it waits at a barrier',
    run: straighten,
  },
  {
    name: 'loop of whole units',
    what: 'whole units whose turns have no loops have a loop of their own',
    run: separateWholeUnits,
  },
  {
    name: 'rows ahead',
    what: "a block's rows are loaded when it begins",
    run: loadRowsAhead,
  },
  {
    name: 'anchors',
    what: 'a result is stored now and then, so that engines do not load too early',
    run: anchorResults,
  },
  {
    name: 'group by group',
    what: 'instructions around unchecked accesses are written for one group after the other',
    run: (code) => {
      code.byGroup = true;
    },
  },
  {
    name: 'dead-local clearing',
    what: 'vectors that no unit leaves for the next one are found in the bytes and cleared',
  },
] as const satisfies readonly Pass[];

export type PassName = (typeof PASSES)[number]['name'];

/** These cannot be switched off: without them the code is not correct. */
export type FixedPass = 'linked versions';

/** Passes that are switched off are `false`. */
export type Passes = Readonly<Partial<Record<Exclude<PassName, FixedPass>, boolean>>>;

/** The plan of the kernel's code, with the passes that are switched on. */
export function planCode(k: LaneKernelEmitter): CodePlan {
  const code = plainCode(k);
  for (const { name, run } of PASSES as readonly (Pass & { name: PassName })[])
    if (run && k.runs(name)) run(code, k);
  completeCode(code, k);
  return code;
}
