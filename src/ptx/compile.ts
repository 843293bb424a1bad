// From PTX text to a WebAssembly module: parse, place data, lower, emit, link. This file only says
// in which order; each step is in a file of its own.

import { buildBlocks } from './analysis/blocks.js';
import type { Block } from './analysis/blocks.js';
import { checkDeclarations } from './analysis/declarations.js';
import { definitions, functionTraits } from './analysis/call-graph.js';
import { RESERVED_SHARED } from './analysis/special-registers.js';
import { FUNCTION_TAG, alignUp, functionAddress, layOutData } from './analysis/data-layout.js';
import type { DataVariable, Relocation } from './analysis/data-layout.js';
import { countsOnWarpSteps } from './analysis/warp-steps.js';
import { moveFunctionData } from './analysis/function-data.js';
import { completeOldForms } from './analysis/old-forms.js';
import { checkTarget, targetNumber } from './analysis/targets.js';
import { expandVectorParameters } from './analysis/vector-parameters.js';
import { unnamedShared } from './analysis/unnamed-shared.js';
import { computeLiveness } from './analysis/liveness.js';
import { checkFunction, lowerFunction } from './analysis/lower.js';
import type { LoweringContext } from './analysis/lowering-state.js';
import { isLabel } from './analysis/program.js';
import type { LoweredFunction, SharedVariable } from './analysis/program.js';
import { analyseShape } from './analysis/regions.js';
import { callSignature, sameSignature } from './emit/calling.js';
import { callParts, divideKernel, fitsLimits } from './emit/divided-kernel.js';
import type { DividedKernel } from './emit/divided-kernel.js';
import { DeviceFunctionEmitter } from './emit/device-function.js';
import type { Surroundings } from './emit/surroundings.js';
import { localsAddress, scratchBytes, CALL_STACK_BYTES } from './emit/frame-layout.js';
import { KernelEmitter } from './emit/kernel.js';
import { HOST_FUNCTIONS, Linker } from './emit/linker.js';
import { waitingThreads } from './emit/waiting.js';
import type { Waiting } from './emit/waiting.js';
import { FAULT } from './context.js';
import { sourceLines } from './analysis/source-lines.js';
import type { KernelCheck, ModuleCheck, PlacedVariable } from './check.js';
import { CHECK_FUNCTIONS, gapOf } from './emit/check.js';
import { PtxError } from './error.js';
import { INSTRUCTIONS, RULES } from './isa/table.js';
import { checkForms } from './rules/forms.js';
import { compileLanes, groupsFor } from './lanes/compile-lanes.js';
import type { Passes } from './lanes/pass-table.js';
import type { LaneCode } from './lanes/compile-lanes.js';
import { runtimeLibrary } from './runtime/library.js';
import { relaxedFmaIsFused } from './runtime/relaxed-probe.js';
import { blockLoopText, schedulerText } from './runtime/scheduler.js';
import { signatureOf } from './signatures.js';
import type { KernelSignature } from './signatures.js';
import type { PtxFunction, Statement } from './syntax/ast.js';
import type { FrameLayout } from './emit/frame-layout.js';
import { parsePtx } from './syntax/parser.js';
import { Code } from './wasm/code.js';
import type { Signature } from './wasm/module.js';

/** What WebAssembly engines accept in one function. */
const LARGEST_FUNCTION = 7_600_000;
const MOST_LOCALS = 49_000;
/** Bytes of static shared variables; ptxas has no limit for targets from sm_100 on. */
const MOST_STATIC_SHARED = 48 * 1024;
const UNBOUNDED_SHARED = 100;

export interface CompileOptions {
  /** name shown in errors */
  fileName?: string;
  /** Kernels can be had in vector lanes, too: see {@link CompiledKernel.inLanes}. On by default. */
  simd?: boolean;
  /**
   * The code tells of what it does through the functions that check.ts names, and stops where they
   * say so.
   */
  check?: boolean;
  /**
   * In each pass the warps of a block take their turns in an order that is drawn from the word at
   * ORDER_SEED in scratch. Without lanes.
   */
  ordered?: boolean;
  /** @internal Bytes of code above which a kernel becomes several functions. */
  largestFunction?: number;
  /** @internal Passes of the vector back end that are switched off are `false`. */
  passes?: Passes;
  /** @internal Use relaxed_madd where it is fused; on by default. */
  relaxedFma?: boolean;
  /**
   * Arithmetic gives PTX's canonical NaN (0x7fffffff in f32, 0x7ff8000000000000 in f64) as a GPU
   * does, instead of the machine's. Off by default, because each result is tested for it: it costs
   * float-heavy kernels up to a third. Halves always have theirs (0x7fff).
   */
  canonicalNaN?: boolean;
}

/** What a kernel says of the clusters that its blocks form. */
export interface ClusterDirectives {
  /** .reqnctapercluster */
  required?: [number, number, number];
  /** .maxclusterrank: blocks that a cluster has at most */
  most?: number;
  /** .explicitcluster: it is launched with clusters, or not at all */
  explicit: boolean;
  /** .blocksareclusters: a launch counts the clusters of the grid, not the blocks */
  gridOfClusters: boolean;
}

export interface CompiledKernel extends KernelSignature {
  /** exported wasm function: (ctx: i32, fuel: i32) => i32 status */
  exportName: string;
  /** static shared */
  sharedBytes: number;
  sharedAlign: number;
  usesDynamicShared: boolean;
  /** .local per thread, informational */
  localBytes: number;
  /** estimate: max live 32-bit values, informational */
  registers: number;
  /** from .maxntid/.reqntid product, else 1024 */
  maxThreads: number;
  requiredBlock?: [number, number, number];
  cluster: ClusterDirectives;
  /** bytes of scratch for one resident block, zeroed by the caller before the first run */
  blockBytes(threads: number): number;
  /** false when the kernel is straight-line or forward-only: it can never return STATUS.yielded */
  yields: boolean;
  /** It counts on warps that run in step, which those in lanes do. */
  inWarpSteps: boolean;
  /**
   * One call runs as many further blocks as the context block asks for: none of them leaves
   * anything to the next.
   */
  runsOn: boolean;
  /**
   * The kernel for blocks of a shape with several threads at once in vector lanes, or why there is
   * none. Compiled when it is first asked for. Blocks run by one of the two are not to be carried
   * on by the other.
   */
  inLanes(block: readonly [number, number, number]): LaneCode | string;
  /**
   * Where the threads of a block are that has been run and has not ended; nothing for a kernel that
   * never yields.
   */
  waiting(words: Int32Array, scratch: number, threads: number): Waiting[];
  /** Of code compiled with `check`. */
  check?: KernelCheck;
}

export interface CompiledModule {
  version: string;
  target: string;
  /**
   * Imports env.memory (shared), env.dataBase (immutable i32 global) and the host functions listed.
   */
  wasm: Uint8Array;
  /** Initial image of all .global and .const variables, to be copied to dataBase; alignment 256. */
  data: Uint8Array;
  /** For {@link relocate}. */
  relocations: Relocation[];
  variables: DataVariable[];
  kernels: CompiledKernel[];
  hostImports: string[];
  /**
   * Kernels left out because they use what is not covered, in a module where others compiled. When
   * none compiles, compilePtx throws the first of these errors.
   */
  failures: { kernel: string; error: PtxError }[];
  /** Of code compiled with `check`. */
  check?: ModuleCheck;
}

export function compilePtx(source: string, options: CompileOptions = {}): CompiledModule {
  const module = parsePtx(source, options.fileName);
  checkTarget(module);
  checkDeclarations(module);
  completeOldForms(module);
  expandVectorParameters(module);
  moveFunctionData(module);
  checkForms(module, INSTRUCTIONS);
  const functions = definitions(module);
  const taken: PtxFunction[] = [];
  const check: ModuleCheck | undefined = options.check
    ? { frames: [], text: source, lines: sourceLines(module) }
    : undefined;
  const gap = gapOf(check !== undefined);
  const data = layOutData(module, functions, taken, gap);
  const hostFunctions = calledHostFunctions([...functions.values()], functions);
  const context: LoweringContext = {
    module,
    functions,
    instructions: INSTRUCTIONS,
    ...functionTraits(module, functions, INSTRUCTIONS),
    symbols: data.symbols,
    hostFunctions: new Set(Object.keys(HOST_FUNCTIONS)),
    gap,
    reservedShared: {
      name: RESERVED_SHARED.name,
      size: RESERVED_SHARED.bytes,
      align: 128,
      dynamic: false,
    },
    unnamedShared: unnamedShared(module),
    lowered: new Set(),
  };
  const limits = { bytes: options.largestFunction ?? LARGEST_FUNCTION, locals: MOST_LOCALS };
  const linker = new Linker(
    runtimeLibrary(check !== undefined),
    hostFunctions,
    check ? CHECK_FUNCTIONS : {},
  );
  const failures: CompiledModule['failures'] = [];
  /**
   * Sets a kernel aside when it needs something that is not covered; other errors are the module's.
   */
  const attempt = <T>(kernel: PtxFunction, step: () => T, missing = failures): T[] => {
    try {
      return [step()];
    } catch (error) {
      if (!(error instanceof PtxError) || error.code !== 'unsupported') throw error;
      missing.push({ kernel: kernel.name, error });
      return [];
    }
  };
  const entries = module.functions.filter((fn) => fn.entry && fn.body);
  const kernels = entries.flatMap((fn) =>
    attempt(fn, () => ({ fn, lowered: lowerFunction(fn, context) })),
  );

  // Functions that stay functions: called ones, and those whose address is taken.
  const real = new Map<PtxFunction, LoweredFunction>();
  const pending: PtxFunction[] = [];
  const want = (first: PtxFunction): void => {
    const queue = [first];
    for (let target = queue.pop(); target; target = queue.pop()) {
      if (real.has(target)) continue;
      if (module.perThread.length) {
        throw module.source.error(
          'unsupported',
          `'${target.name}' is recursive or called through a pointer, and the module has ` +
            'registers or .local variables outside functions: not covered. Declare them in ' +
            'each function',
          target.at,
        );
      }
      const lowered = lowerFunction(target, context);
      real.set(target, lowered);
      pending.push(target);
      const pointed = addressesIn(lowered);
      for (const each of pointed) functionAddress(each, taken);
      queue.push(...lowered.calls, ...pointed.filter((each) => !context.waiting.includes(each)));
    }
  };
  for (const { lowered } of kernels) {
    for (const callee of lowered.calls) want(callee);
    for (const pointed of addressesIn(lowered)) functionAddress(pointed, taken);
  }
  const indirect =
    kernels.some(({ lowered }) => lowered.indirectCalls) ||
    [...real.values()].some((lowered) => lowered.indirectCalls);
  if (indirect)
    for (const target of taken) if (target.body && !context.waiting.includes(target)) want(target);

  // Shared variables that real functions use are at the same place in every kernel.
  const pinned = new Map<SharedVariable, number>();
  let pinnedBytes = 0;
  for (const lowered of real.values()) {
    for (const variable of lowered.shared) {
      if (variable.dynamic || pinned.has(variable)) continue;
      pinnedBytes = alignUp(pinnedBytes, variable.align);
      pinned.set(variable, pinnedBytes);
      pinnedBytes += variable.size + gap;
    }
  }

  // Functions that nothing calls need no code, but their errors are the module's all the same.
  for (const fn of module.functions)
    if (fn.body && !fn.entry && !context.lowered.has(fn))
      attempt(fn, () => {
        checkFunction(fn, context);
      }, []);

  const indices = new Map<PtxFunction, number>();
  const indirectCalls: { signature: Signature; index: number }[] = [];
  const surroundings = (
    shared: ReadonlyMap<SharedVariable, number>,
    dynamicStart: number | undefined,
    linker: Linker,
  ): Surroundings => ({
    source: module.source,
    linker,
    sharedOffset: (variable) => shared.get(variable)!,
    dynamicStart,
    functionAddress: (target) => functionAddress(target, taken),
    functionIndex: (target) => indices.get(target)!,
    indirectCall: (signature) => {
      const known = indirectCalls.find((call) => sameSignature(call.signature, signature));
      if (known) return known.index;
      const index = linker.module.reserve(`indirect_${indirectCalls.length}`, {
        params: [...signature.params, 'i64', 'i32'],
        results: signature.results,
      });
      indirectCalls.push({ signature, index });
      return index;
    },
    ordered: options.ordered === true,
    check,
    data,
    relaxedFma: options.relaxedFma !== false && relaxedFmaIsFused(),
    canonicalNaN: options.canonicalNaN === true,
  });

  for (const target of real.keys())
    indices.set(target, linker.module.reserve(target.name, callSignature(target)));
  const compiled = kernels.flatMap(({ fn, lowered }) =>
    attempt(fn, () => {
      const shared = new Map(pinned);
      let staticBytes = pinnedBytes;
      for (const variable of lowered.shared) {
        if (variable.dynamic || shared.has(variable)) continue;
        staticBytes = alignUp(staticBytes, variable.align);
        shared.set(variable, staticBytes);
        staticBytes += variable.size + gap;
      }
      const ownBytes = [...shared.keys()].reduce(
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
      const dynamic = [lowered, ...real.values()].flatMap((each) =>
        [...each.shared].filter((variable) => variable.dynamic),
      );
      const usesDynamicShared = dynamic.length > 0;
      const dynamicAlign = Math.max(16, ...dynamic.map(({ align }) => align));
      const sharedAlign = Math.max(dynamicAlign, ...[...shared.keys()].map(({ align }) => align));
      // All dynamic variables begin at one place, as in ptxas; the bytes up to there count as
      // static.
      const dynamicStart =
        usesDynamicShared || check ? alignUp(staticBytes, dynamicAlign) : staticBytes;
      // Without shared memory an access gives way to nobody: it would only let others look for a
      // lock that this thread holds.
      let blocks: readonly Block[] = buildBlocks(lowered, shared.size > 0 || usesDynamicShared);
      let shape = analyseShape(blocks);
      let liveness = computeLiveness(blocks, lowered.registers);
      const callsFunctions = lowered.calls.size > 0 || lowered.indirectCalls;
      const around = surroundings(shared, dynamicStart, linker);
      let emitter = new KernelEmitter(
        lowered,
        blocks,
        shape,
        liveness,
        RULES,
        around,
        callsFunctions,
      );
      const emitted = emitter.emit();
      let divided: DividedKernel | undefined;
      if (!fitsLimits(emitted, limits)) {
        divided = divideKernel(
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
          throw module.source.error('unsupported', `kernel '${fn.name}' is too large`, fn.at);
        ({ whole: emitter, blocks, shape, liveness } = divided);
      }
      const { layout, entryPlaces: places } = emitter;
      const links: Record<string, number> = {};
      const threads = layout.stateful
        ? (['i32', 'i32', 'i32'] as const)
        : (['i32', 'i32'] as const);
      links['body'] = linker.module.reserve(`${fn.name} threads`, {
        params: threads,
        results: ['i32'],
      });
      if (layout.stateful) {
        const cuts = shape.order
          .map((index) => blocks[index]!.ending)
          .filter((ending) => ending.kind === 'cut');
        const warps = cuts.some((cut) => cut.cut === 'warp');
        let body = emitted;
        if (divided) {
          const parts = divided.functions.map(({ locals, code }, number) => {
            const index = linker.module.reserve(`${fn.name} part ${number}`, {
              params: threads,
              results: ['i32'],
            });
            linker.define(index, locals, code);
            return index;
          });
          body = callParts(parts, warps || options.ordered === true);
        }
        linker.define(links['body'], body.locals, body.code);
        linker.addText(
          schedulerText({
            warps,
            matrices: layout.matrixBytes > 0,
            barriers: emitter.barriers,
            cluster: layout.cluster,
            check: check !== undefined,
            ordered: options.ordered === true,
            probed: false,
          }),
          links,
          fn.name,
        );
      } else {
        linker.define(links['body'], emitted.locals, emitted.code);
        linker.addText(blockLoopText(false), links, fn.name);
      }
      const { remade, barriers, paramBytes } = emitter;
      const inLanes = divided
        ? () => 'it is too large'
        : lanesOf(options, (groups, oneRow) =>
            compileLanes(
              fn.name,
              { lowered, blocks, shape, liveness, remade, layout, barriers, paramBytes },
              groups,
              oneRow,
              options.passes ?? {},
              (own) => surroundings(shared, dynamicStart, own),
            ),
          );
      const required = fn.directives.get('reqntid');
      const limit = required ?? fn.directives.get('maxntid');
      const kernel: CompiledKernel = {
        ...signatureOf(fn),
        exportName: fn.name,
        sharedBytes: dynamicStart,
        sharedAlign,
        usesDynamicShared,
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
        inLanes,
        waiting: (words, scratch, count) =>
          layout.stateful ? waitingThreads(places, layout.mail, words, scratch, count) : [],
        cluster: clusterOf(fn),
        ...(required?.length
          ? { requiredBlock: [required[0] ?? 1, required[1] ?? 1, required[2] ?? 1] }
          : {}),
      };
      if (check) watchable(kernel, shared, dynamicAlign, lowered, layout);
      return kernel;
    }),
  );
  if (failures.length && !compiled.length) throw failures[0]!.error;

  for (const target of pending) {
    const lowered = real.get(target)!;
    const blocks = buildBlocks(lowered, false);
    const shape = analyseShape(blocks);
    // Results are read at every return.
    const liveness = computeLiveness(blocks, lowered.registers, [
      ...lowered.results,
      ...lowered.params,
    ]);
    const emitter = new DeviceFunctionEmitter(
      lowered,
      blocks,
      shape,
      liveness,
      RULES,
      surroundings(pinned, undefined, linker),
    );
    const { locals, code } = emitter.emit();
    if (code.length > LARGEST_FUNCTION || locals.length > MOST_LOCALS) {
      throw module.source.error('unsupported', `function '${target.name}' is too large`, target.at);
    }
    linker.define(indices.get(target)!, locals, code);
  }
  for (const { signature, index } of indirectCalls) {
    linker.define(index, [], indirectCallCode(signature, taken, indices, linker));
  }

  return {
    version: module.version,
    target: module.target,
    wasm: linker.finish(),
    data: data.image,
    relocations: data.relocations,
    variables: data.variables,
    kernels: compiled,
    hostImports: hostFunctions.map((name) => HOST_FUNCTIONS[name]!.importName),
    failures,
    ...(check ? { check } : {}),
  };
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
 * Adds to a kernel what a watcher needs; its shared bytes become those of its variables alone, as
 * without `check`.
 */
function watchable(
  kernel: CompiledKernel,
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

/**
 * Compiles a kernel in lanes once for each number of groups that block shapes ask for, and apart
 * for blocks of one row.
 */
function lanesOf(
  options: CompileOptions,
  compile: (groups: number, oneRow: boolean) => LaneCode | string,
): CompiledKernel['inLanes'] {
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

/**
 * Finds the function that an address names and calls it; an address that names none of this shape
 * is a fault.
 */
function indirectCallCode(
  signature: Signature,
  taken: readonly PtxFunction[],
  indices: ReadonlyMap<PtxFunction, number>,
  linker: Linker,
): Uint8Array {
  const code = new Code();
  const address = signature.params.length;
  taken.forEach((target, position) => {
    const index = indices.get(target);
    if (index === undefined || !sameSignature(callSignature(target), signature)) return;
    code
      .get(address)
      .i64(FUNCTION_TAG + BigInt(position) * 16n)
      .op('i64.eq')
      .op('if')
      .byte(0x40);
    signature.params.forEach((_, param) => code.get(param));
    code.op('call').u32(index).op('return').op('end');
  });
  code
    .get(0)
    .i32(FAULT.invalidCall)
    .get(1)
    .get(address + 1)
    .get(address)
    .op('call')
    .u32(linker.functionIndex('fault'));
  for (const type of signature.results) {
    if (type === 'i64') code.i64(0);
    else code.i32(0);
  }
  return code.op('end').finish();
}

function addressesIn(lowered: LoweredFunction): PtxFunction[] {
  const found: PtxFunction[] = [];
  const { code } = lowered;
  for (let at = 0; at < code.length; at++) {
    const entry = code[at]!;
    if (isLabel(entry)) continue;
    for (let place = 0; place < entry.args.length; place++) {
      const arg = entry.args[place]!;
      if (arg.kind === 'symbol' && arg.symbol.kind === 'function') found.push(arg.symbol.target);
    }
  }
  return found;
}

/** Host functions that some call names and the module does not define. */
function calledHostFunctions(
  all: readonly PtxFunction[],
  functions: ReadonlyMap<string, PtxFunction>,
): string[] {
  const called = new Set<string>();
  const visit = (statements: readonly Statement[]): void => {
    for (let at = 0; at < statements.length; at++) {
      const statement = statements[at]!;
      if (statement.kind === 'block') visit(statement.statements);
      else if (statement.kind === 'instruction' && statement.mnemonic === 'call') {
        for (const operand of statement.operands) {
          if (
            operand.kind === 'name' &&
            Object.hasOwn(HOST_FUNCTIONS, operand.name) &&
            !functions.get(operand.name)?.body
          )
            called.add(operand.name);
        }
      }
    }
  };
  for (const fn of all) if (fn.body) visit(fn.body);
  return [...called];
}
