// Compiles one kernel: its blocks, its shared memory, its scalar code, and its scheduler.

import { buildBlocks } from './analysis/blocks.js';
import type { Block } from './analysis/blocks.js';
import { alignUp } from './analysis/data-layout.js';
import { computeLiveness } from './analysis/liveness.js';
import type { Liveness } from './analysis/liveness.js';
import type { LoweringContext } from './analysis/lowering-state.js';
import type { LoweredFunction, SharedVariable } from './analysis/program.js';
import { analyseShape } from './analysis/regions.js';
import type { Shape } from './analysis/regions.js';
import { dynamicShared, placeShared } from './analysis/shared-layout.js';
import type { SharedLayout } from './analysis/shared-layout.js';
import { targetNumber } from './analysis/targets.js';
import { countsOnWarpSteps } from './analysis/warp-steps.js';
import type { ModuleCheck, PlacedVariable } from './check.js';
import type { ClusterDirectives, PtxCompileOptions, WasmKernel } from './compiled-module.js';
import { callParts, divideKernel, fitsLimits } from './emit/divided-kernel.js';
import type { DividedKernel, Emitted, Limits } from './emit/divided-kernel.js';
import { CALL_STACK_BYTES, localsAddress, scratchBytes } from './emit/frame-layout.js';
import type { FrameLayout } from './emit/frame-layout.js';
import { KernelEmitter } from './emit/kernel.js';
import type { Linker } from './emit/linker.js';
import type { Surroundings } from './emit/surroundings.js';
import { waitingThreads } from './emit/waiting.js';
import { RULES } from './isa/table.js';
import { compileLanes, groupsFor } from './lanes/compile-lanes.js';
import type { LaneCode } from './lanes/compile-lanes.js';
import { blockLoopText, schedulerText } from './runtime/scheduler.js';
import { signatureOf } from './signatures.js';
import type { PtxFunction } from './syntax/ast.js';

/**
 * The limit of ptxas for static shared variables, in bytes. It has none for targets from sm_100 on.
 */
const MOST_STATIC_SHARED = 48 * 1024;
const UNBOUNDED_SHARED = 100;

/** What the kernels of a module have in common. */
export interface Program {
  readonly options: PtxCompileOptions;
  readonly check: ModuleCheck | undefined;
  readonly context: LoweringContext;
  readonly linker: Linker;
  readonly limits: Limits;
  /** Functions that are not inlined, and where their shared variables are in every kernel. */
  readonly functions: ReadonlyMap<PtxFunction, LoweredFunction>;
  readonly pinned: SharedLayout;
  readonly surroundings: (
    shared: ReadonlyMap<SharedVariable, number>,
    dynamicStart: number | undefined,
    linker: Linker,
  ) => Surroundings;
}

/** A kernel's shared memory. */
interface KernelShared {
  readonly offsets: ReadonlyMap<SharedVariable, number>;
  readonly usesDynamic: boolean;
  readonly dynamicAlign: number;
  readonly dynamicStart: number;
}

/** A kernel's scalar code, and what it is made from. */
interface ScalarKernel {
  readonly emitter: KernelEmitter;
  readonly emitted: Emitted;
  readonly blocks: readonly Block[];
  readonly shape: Shape;
  readonly liveness: Liveness;
  /** Present if the kernel is too large for one function. */
  readonly divided: DividedKernel | undefined;
}

export function compileKernel(
  fn: PtxFunction,
  lowered: LoweredFunction,
  program: Program,
): WasmKernel {
  const { options, check } = program;
  const shared = sharedMemory(fn, lowered, program);
  const scalar = compileThreads(fn, lowered, shared, program);
  const { emitter, blocks, liveness } = scalar;
  const { layout, entryPlaces: places } = emitter;
  link(fn, scalar, program);
  const required = fn.directives.get('reqntid');
  const limit = required ?? fn.directives.get('maxntid');
  const kernel: WasmKernel = {
    ...signatureOf(fn),
    exportName: fn.name,
    sharedBytes: shared.dynamicStart,
    sharedAlign: Math.max(
      shared.dynamicAlign,
      ...[...shared.offsets.keys()].map(({ align }) => align),
    ),
    usesDynamicShared: shared.usesDynamic,
    localBytes: lowered.frameBytes,
    registers: liveness.pressure,
    maxThreads: limit?.length
      ? Math.min(
          1024,
          limit.reduce((product, count) => product * count, 1),
        )
      : 1024,
    blockBytes: (count) => scratchBytes(layout, count),
    yields: layout.stateful,
    inWarpSteps: countsOnWarpSteps(blocks),
    runsOn:
      !layout.stateful &&
      lowered.frameBytes === 0 &&
      check === undefined &&
      options.ordered !== true,
    inLanes: inLanes(fn, lowered, scalar, shared, program),
    waiting: (words, scratch, count) =>
      layout.stateful ? waitingThreads(places, layout.mail, words, scratch, count) : [],
    cluster: clusterOf(fn),
    ...(required?.length
      ? { requiredBlock: [required[0] ?? 1, required[1] ?? 1, required[2] ?? 1] }
      : {}),
  };
  if (check) addCheck(kernel, shared.offsets, shared.dynamicAlign, lowered, layout);
  return kernel;
}

function sharedMemory(
  fn: PtxFunction,
  lowered: LoweredFunction,
  { context, check, functions, pinned }: Program,
): KernelShared {
  const { module } = context;
  const { offsets, bytes } = placeShared([lowered], context.gap, pinned);
  const ownBytes = [...offsets.keys()].reduce(
    (sum, variable) =>
      variable === context.reservedShared ? sum : alignUp(sum, variable.align) + variable.size,
    0,
  );
  if (ownBytes > MOST_STATIC_SHARED && targetNumber(module.target) < UNBOUNDED_SHARED) {
    throw module.source.error(
      'semantic',
      `kernel '${fn.name}' has ${ownBytes} bytes of shared variables, ` +
        `${MOST_STATIC_SHARED} are the most`,
      fn.at,
    );
  }
  const dynamic = dynamicShared([lowered, ...functions.values()]);
  return {
    offsets,
    usesDynamic: dynamic.used,
    dynamicAlign: dynamic.align,
    // All dynamic variables begin at one place, as in ptxas; the bytes before it count as static.
    dynamicStart: dynamic.used || check ? alignUp(bytes, dynamic.align) : bytes,
  };
}

function compileThreads(
  fn: PtxFunction,
  lowered: LoweredFunction,
  { offsets, usesDynamic, dynamicStart }: KernelShared,
  { context, limits, linker, surroundings }: Program,
): ScalarKernel {
  // A thread gives way at some accesses to shared memory: otherwise it would run while other
  // threads only poll a lock that it holds.
  const blocks = buildBlocks(lowered, offsets.size > 0 || usesDynamic);
  const shape = analyseShape(blocks);
  const liveness = computeLiveness(blocks, lowered.registers);
  const callsFunctions = lowered.calls.size > 0 || lowered.indirectCalls;
  const around = surroundings(offsets, dynamicStart, linker);
  const emitter = new KernelEmitter(
    lowered,
    blocks,
    shape,
    liveness,
    RULES,
    around,
    callsFunctions,
  );
  const emitted = emitter.emit();
  if (fitsLimits(emitted, limits))
    return { emitter, emitted, blocks, shape, liveness, divided: undefined };
  const divided = divideKernel(
    lowered,
    blocks,
    shape,
    emitted,
    limits,
    RULES,
    around,
    callsFunctions,
  );
  if (!divided)
    throw context.module.source.error('unsupported', `kernel '${fn.name}' is too large`, fn.at);
  return {
    emitter: divided.whole,
    emitted,
    blocks: divided.blocks,
    shape: divided.shape,
    liveness: divided.liveness,
    divided,
  };
}

/** Adds the code to the module, with the exported function that calls it. */
function link(
  fn: PtxFunction,
  { emitter, emitted, blocks, shape, divided }: ScalarKernel,
  { options, check, linker }: Program,
): void {
  const { layout } = emitter;
  const threads = layout.stateful ? (['i32', 'i32', 'i32'] as const) : (['i32', 'i32'] as const);
  const body = linker.module.reserve(`${fn.name} threads`, { params: threads, results: ['i32'] });
  if (!layout.stateful) {
    linker.define(body, emitted.locals, emitted.code);
    linker.addText(blockLoopText(false), { body }, fn.name);
    return;
  }
  const warps = shape.order.some((index) => {
    const { ending } = blocks[index]!;
    return ending.kind === 'cut' && ending.cut === 'warp';
  });
  const ordered = options.ordered === true;
  const parts = divided?.functions.map(({ locals, code }, number) => {
    const index = linker.module.reserve(`${fn.name} part ${number}`, {
      params: threads,
      results: ['i32'],
    });
    linker.define(index, locals, code);
    return index;
  });
  const { locals, code } = parts ? callParts(parts, warps || ordered, linker.module) : emitted;
  linker.define(body, locals, code);
  const text = schedulerText({
    warps,
    matrices: layout.matrixBytes > 0,
    barriers: emitter.barriers,
    cluster: layout.cluster,
    check: check !== undefined,
    ordered,
    probed: false,
  });
  linker.addText(text, { body }, fn.name);
}

function clusterOf({ directives }: PtxFunction): ClusterDirectives {
  const required = directives.get('reqnctapercluster');
  const [most] = directives.get('maxclusterrank') ?? [];
  return {
    ...(required?.length
      ? { required: [required[0] ?? 1, required[1] ?? 1, required[2] ?? 1] }
      : {}),
    ...(most === undefined ? {} : { most }),
    explicit: directives.has('explicitcluster'),
    gridOfClusters: directives.has('blocksareclusters'),
  };
}

/**
 * Adds what a checker needs to a kernel. Its shared bytes become those of its variables alone, as
 * without `check`.
 */
function addCheck(
  kernel: WasmKernel,
  shared: ReadonlyMap<SharedVariable, number>,
  dynamicAlign: number,
  lowered: LoweredFunction,
  layout: FrameLayout,
): void {
  const placed: PlacedVariable[] = [];
  let own = 0;
  for (const [{ name, size, align }, offset] of shared) {
    placed.push({ name, offset, size });
    own = alignUp(own, align) + size;
  }
  const { sharedBytes } = kernel;
  kernel.sharedBytes = kernel.usesDynamicShared ? alignUp(own, dynamicAlign) : own;
  kernel.check = {
    sharedBytes,
    shared: placed,
    dynamicShared: sharedBytes,
    frames: (scratch, threads) => localsAddress(layout, scratch, threads),
    frameBytes: layout.localBytes,
    frame: lowered.frameVariables,
    stackBytes: layout.callStack ? CALL_STACK_BYTES : 0,
  };
}

function inLanes(
  fn: PtxFunction,
  lowered: LoweredFunction,
  { emitter, blocks, shape, liveness, divided }: ScalarKernel,
  { offsets, dynamicStart }: KernelShared,
  { options, surroundings }: Program,
): WasmKernel['inLanes'] {
  if (divided) return () => 'it is too large';
  const { layout, remade, barriers, paramBytes } = emitter;
  const kernel = { lowered, blocks, shape, liveness, remade, layout, barriers, paramBytes };
  return lanesOf(options, (groups, oneRow) =>
    compileLanes(fn.name, kernel, groups, oneRow, options.passes ?? {}, (own) =>
      surroundings(offsets, dynamicStart, own),
    ),
  );
}

/**
 * Compiles a kernel in lanes once for each number of groups that block shapes need, and separately
 * for blocks of one row.
 */
function lanesOf(
  options: PtxCompileOptions,
  compile: (groups: number, oneRow: boolean) => LaneCode | string,
): WasmKernel['inLanes'] {
  const known = new Map<number, LaneCode | string>();
  return (block) => {
    if (options.simd === false || options.check === true || options.ordered === true)
      return 'it was compiled without';
    if (options.canonicalNaN) return "vector forms give the machine's NaNs";
    const groups = groupsFor(block);
    if (!groups) return "the block's rows do not divide by four";
    const oneRow = block[1] * block[2] === 1;
    const kind = oneRow ? groups : -groups;
    let code = known.get(kind);
    if (code === undefined) known.set(kind, (code = compile(groups, oneRow)));
    return code;
  };
}
