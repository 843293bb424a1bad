// Compiles a kernel in lanes to a module of its own, at the first request: most kernels are never
// launched often enough for it to pay. It serves blocks whose rows divide into units of its width,
// keeps the contract of the scalar back end, and has its own layout of scratch memory.

import type { Register } from '../analysis/program.js';
import { countsOnWarpSteps } from '../analysis/warp-steps.js';
import { Linker } from '../emit/linker.js';
import type { Surroundings } from '../emit/surroundings.js';
import { LANE_RULES, RULES } from '../isa/table.js';
import { runtimeLibrary } from '../runtime/library.js';
import {
  PROBED_BODY,
  PROBE_SIGNATURE,
  blockLoopText,
  schedulerText,
} from '../runtime/scheduler.js';
import { emitKernel } from './emission/unit-loops.js';
import { LaneKernelEmitter } from './lane-kernel.js';
import type { LaneKernel } from './lane-kernel.js';
import type { Passes } from './pass-table.js';
import { planLanes } from './plan.js';
import type { LanePlan } from './plan.js';
import { sideBySideText } from './side-by-side.js';
import { BURST } from './streaming-loops.js';
import { vectorPressure } from './vector-pressure.js';

/**
 * The limit of WebAssembly engines for one function, with a margin: v128 locals cost more than
 * others.
 */
const LARGEST_FUNCTION = 2_000_000;
const MOST_LOCALS = 30_000;

export interface LaneCode {
  /**
   * Imports env.memory and env.dataBase, as the kernel's own module does, and env.probe: (rounds:
   * i32) => i32. The exported functions call env.probe with their second argument if their first is
   * 0.
   */
  wasm: Uint8Array;
  /** The exported WebAssembly function: (ctx: i32, fuel: i32) => i32 status. */
  exportName: string;
  /** As `runsOn` of the kernel itself; it may be true here and false there. */
  runsOn: boolean;
  /**
   * The exported function that runs several blocks in one slot side by side, in a kernel for which
   * that is faster: (head: i32, fuel: i32) => i32 status, see `TEAM`.
   */
  sideBySide: string | undefined;
  /** Threads that run at once. */
  width: number;
  /** Bytes of scratch for one resident block. The caller zeroes them before the first run. */
  blockBytes(threads: number): number;
}

/**
 * The groups of four in a unit for blocks of this shape: units are parts of rows, or the last part
 * of a single row. 0 if there is none.
 */
export function groupsFor([x, y, z]: readonly [number, number, number]): number {
  if (x >= 4 && y * z === 1) return x > 16 ? 8 : x > 8 ? 4 : x > 4 ? 2 : 1;
  for (const groups of [8, 4, 2, 1]) if (x % (4 * groups) === 0) return groups;
  return 0;
}

/** Groups of a unit that is a warp. */
const WARP_GROUPS = 8;
/** Instructions, times groups, that engines compile in acceptable time. */
const MOST_WORK = 6000;
/**
 * The same for kernels whose warps exchange values: in units that are warps, these operations cost
 * nothing, and in smaller units threads wait for each other. A radix sort's ranks of 1600
 * instructions, one in twelve a vote, take 19 ms instead of 247, and those of 3900 take 40 instead
 * of 358; the first launch takes 0.1 to 0.3 s longer.
 */
const MOST_WORK_OF_WARPS = 40_000;
/**
 * Instructions of a kernel for which eight groups always pay: larger ones may have too few vector
 * registers for them.
 */
const SMALL = 60;
/** Vectors that are live at once with which eight groups pay in larger kernels, too. */
const FEW_VECTORS = 24;

/**
 * A larger kernel has no lanes if one in this many instructions is a warp operation: in smaller
 * units its threads wait for each other one by one. A pass of CUB's radix sort, in which it is one
 * in 14, took 2.4 times as long in units of 4 as thread by thread, and the engine took 8 s to
 * compile it; a selection, one in 67, took 0.7 times as long.
 */
const FREQUENT = 16;

/**
 * The groups that pay, at most as many as given; 0 if none do. A warp that exchanges values is best
 * a unit.
 */
function worthwhile({ blocks, shape, liveness }: LaneKernel, plan: LanePlan, most: number): number {
  let instructions = 0;
  let warps = 0;
  for (const index of shape.order) {
    const { insts, ending } = blocks[index]!;
    instructions += insts.length + 1;
    if (ending.kind === 'cut' && ending.cut === 'warp') warps++;
  }
  const isVarying = (register: Register): boolean => plan.spread(register).stride === undefined;
  const fit =
    warps > 0 ||
    instructions <= SMALL ||
    most * vectorPressure(blocks, shape.order, liveness, isVarying) <= FEW_VECTORS;
  if (warps > 0 && most === WARP_GROUPS && most * instructions <= MOST_WORK_OF_WARPS) return most;
  let groups = fit ? most : Math.min(most, 4);
  while (groups > 1 && groups * instructions > MOST_WORK) groups /= 2;
  return groups < WARP_GROUPS && groups < most && warps * FREQUENT >= instructions ? 0 : groups;
}

/**
 * The kernel in lanes for blocks whose rows divide into this many groups, or the reason why there
 * is none. `oneRow`: the blocks have one row.
 */
export function compileLanes(
  name: string,
  kernel: LaneKernel,
  most: number,
  oneRow: boolean,
  passes: Passes,
  surroundings: (linker: Linker) => Surroundings,
): LaneCode | string {
  const { blocks, shape, liveness, lowered, layout } = kernel;
  const widest = planLanes(blocks, shape, liveness, lowered.registers, 4 * most);
  if (typeof widest === 'string') return widest;
  const groups =
    most === WARP_GROUPS && countsOnWarpSteps(blocks) ? most : worthwhile(kernel, widest, most);
  if (groups === 0) return 'its warps would be several units, and exchange values often';
  const plan =
    groups === most ? widest : planLanes(blocks, shape, liveness, lowered.registers, 4 * groups);
  if (typeof plan === 'string') return plan;
  const linker = new Linker(runtimeLibrary(false), [], { probe: PROBE_SIGNATURE });
  const emitter = new LaneKernelEmitter(
    surroundings(linker),
    groups,
    plan,
    RULES,
    LANE_RULES,
    kernel,
    oneRow,
    passes,
  );
  const { locals, code } = emitKernel(emitter);
  if (emitter.effort.threads > emitter.effort.lanes) return 'most of it has no vector form';
  if (code.length > LARGEST_FUNCTION || locals.length > MOST_LOCALS) return 'it is large';
  const scheduled = layout.stateful && !emitter.alone;
  const params = scheduled ? (['i32', 'i32', 'i32'] as const) : (['i32', 'i32'] as const);
  const body = linker.module.reserve(`${name} threads`, { params, results: ['i32'] });
  linker.define(body, locals, code);
  let text = PROBED_BODY;
  if (scheduled) {
    const warps = shape.order.some((index) => {
      const { ending } = blocks[index]!;
      return ending.kind === 'cut' && ending.cut === 'warp';
    });
    text = schedulerText({
      warps,
      matrices: false,
      barriers: kernel.barriers,
      cluster: layout.cluster,
      check: false,
      ordered: false,
      probed: true,
    });
  } else if (layout.stateful) {
    text = blockLoopText(true);
  }
  linker.addText(text, { body }, name);
  const sideBySide = emitter.strides ? `${name} side by side` : undefined;
  if (sideBySide !== undefined)
    linker.addText(sideBySideText(emitter.width, BURST), { body }, sideBySide);
  return {
    wasm: linker.finish(),
    exportName: name,
    sideBySide,
    width: emitter.width,
    runsOn: emitter.runsOn,
    blockBytes: (threads) => emitter.scratchBytes(threads),
  };
}
