// The compiler from PTX text to a WebAssembly module: parse, place data, lower, emit, link. This
// file contains the order of the steps; each step is in a file of its own.

import { buildBlocks } from './analysis/blocks.js';
import { calledFunctions } from './analysis/called-functions.js';
import { definitions, functionTraits } from './analysis/call-graph.js';
import { functionAddress, layOutData } from './analysis/data-layout.js';
import type { DataLayout } from './analysis/data-layout.js';
import { checkDeclarations } from './analysis/declarations.js';
import { moveFunctionData } from './analysis/function-data.js';
import { computeLiveness } from './analysis/liveness.js';
import { checkFunction, lowerFunction } from './analysis/lower.js';
import type { LoweringContext } from './analysis/lowering-state.js';
import { completeOldForms } from './analysis/old-forms.js';
import type { LoweredFunction } from './analysis/program.js';
import { analyseShape } from './analysis/regions.js';
import { placeShared } from './analysis/shared-layout.js';
import { sourceLines } from './analysis/source-lines.js';
import { RESERVED_SHARED } from './analysis/special-registers.js';
import { checkTarget } from './analysis/targets.js';
import { unnamedShared } from './analysis/unnamed-shared.js';
import { expandVectorParameters } from './analysis/vector-parameters.js';
import type { ModuleCheck } from './check.js';
import { compileKernel } from './compile-kernel.js';
import type { Program } from './compile-kernel.js';
import type { PtxCompileOptions, WasmModule } from './compiled-module.js';
import { callSignature } from './emit/calling.js';
import { CHECK_FUNCTIONS, gapOf } from './emit/check.js';
import { DeviceFunctionEmitter } from './emit/device-function.js';
import { fitsLimits } from './emit/divided-kernel.js';
import { IndirectCalls } from './emit/indirect-calls.js';
import { HOST_FUNCTIONS, Linker } from './emit/linker.js';
import { PtxError } from './error.js';
import { INSTRUCTIONS, RULES } from './isa/table.js';
import { checkForms } from './rules/forms.js';
import { pushSpecialRegister } from './rules/special.js';
import { runtimeLibrary } from './runtime/library.js';
import { relaxedFmaIsFused } from './runtime/relaxed-probe.js';
import type { PtxFunction, PtxModule, Statement } from './syntax/ast.js';
import { parsePtx } from './syntax/parser.js';

/** Limits of WebAssembly engines for one function. */
const LARGEST_FUNCTION = { bytes: 7_600_000, locals: 49_000 };

/**
 * Compiles a PTX module to a WebAssembly module that runs blocks of its kernels one thread at a
 * time. `inLanes` of a kernel compiles it for the vector back end. The WebAssembly module imports
 * `env.memory` (shared), `env.dataBase` and the host functions in `hostImports`; `context.ts`
 * describes the memory that a call reads.
 *
 * @throws {@link PtxError} with code 'syntax' or 'semantic' if the text is not valid PTX, and with
 * code 'unsupported' if no kernel compiles because each uses an instruction or a form that is not
 * covered. If another kernel compiles, the error is in `failures` of the result instead.
 *
 * @example
 * ```ts
 * const { kernels, failures } = compilePtx(`.version 8.0
 *   .target sm_80
 *   .address_size 64
 *   .visible .entry twice(.param .u64 data, .param .u32 n) { ret; }`);
 * console.log(kernels[0]!.name, kernels[0]!.paramBytes, failures.length); // twice 12 0
 * ```
 */
export function compilePtx(source: string, options: PtxCompileOptions = {}): WasmModule {
  const module = readModule(source, options.fileName);
  const functions = definitions(module);
  const taken: PtxFunction[] = [];
  const check: ModuleCheck | undefined = options.check
    ? { frames: [], text: source, lines: sourceLines(module) }
    : undefined;
  const gap = gapOf(check !== undefined);
  const data = layOutData(module, functions, taken, gap);
  const hostFunctions = calledHostFunctions([...functions.values()], functions);
  const context = loweringContext(module, functions, data, gap);
  const linker = new Linker(
    runtimeLibrary(check !== undefined),
    hostFunctions,
    check ? CHECK_FUNCTIONS : {},
  );
  const failures: WasmModule['failures'] = [];
  const entries = module.functions.filter((fn) => fn.entry && fn.body);
  const kernels = entries.flatMap((fn) =>
    attempt(fn, failures, () => ({ fn, lowered: lowerFunction(fn, context) })),
  );
  const called = calledFunctions(
    kernels.map(({ lowered }) => lowered),
    context,
    taken,
  );
  checkUncalled(context);

  const indices = new Map<PtxFunction, number>();
  for (const target of called.keys())
    indices.set(target, linker.module.reserve(target.name, callSignature(target)));
  const indirectCalls = new IndirectCalls();
  const program: Program = {
    options,
    check,
    context,
    linker,
    limits: {
      ...LARGEST_FUNCTION,
      bytes: options.largestFunction ?? LARGEST_FUNCTION.bytes,
    },
    functions: called,
    pinned: placeShared(called.values(), gap),
    surroundings: (shared, dynamicStart, linker) => ({
      source: module.source,
      linker,
      sharedOffset: (variable) => shared.get(variable)!,
      dynamicStart,
      functionAddress: (target) => functionAddress(target, taken),
      functionIndex: (target) => indices.get(target)!,
      indirectCall: (signature) => indirectCalls.index(signature, linker),
      ordered: options.ordered === true,
      check,
      pushSpecialRegister,
      data,
      relaxedFma: options.relaxedFma !== false && relaxedFmaIsFused(),
      canonicalNaN: options.canonicalNaN === true,
    }),
  };
  const compiled = kernels.flatMap(({ fn, lowered }) =>
    attempt(fn, failures, () => compileKernel(fn, lowered, program)),
  );
  if (failures.length && !compiled.length) throw failures[0]!.error;
  for (const [target, lowered] of called)
    compileFunction(target, lowered, indices.get(target)!, program);
  indirectCalls.define(linker, taken, indices);

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

/** Parses a module, rejects what PTX does not have, and adds what the text may leave out. */
function readModule(source: string, fileName: string | undefined): PtxModule {
  const module = parsePtx(source, fileName);
  checkTarget(module);
  checkDeclarations(module);
  completeOldForms(module);
  expandVectorParameters(module);
  moveFunctionData(module);
  checkForms(module, INSTRUCTIONS);
  return module;
}

function loweringContext(
  module: PtxModule,
  functions: Map<string, PtxFunction>,
  { symbols }: DataLayout,
  gap: number,
): LoweringContext {
  return {
    module,
    functions,
    instructions: INSTRUCTIONS,
    ...functionTraits(module, functions, INSTRUCTIONS),
    symbols,
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
}

/**
 * Runs a step. An error 'unsupported' is recorded as the function's failure; other errors are
 * thrown.
 */
function attempt<T>(fn: PtxFunction, failures: WasmModule['failures'], step: () => T): T[] {
  try {
    return [step()];
  } catch (error) {
    if (!(error instanceof PtxError) || error.code !== 'unsupported') throw error;
    failures.push({ kernel: fn.name, error });
    return [];
  }
}

/** Functions without a call get no code, but an error in one is an error of the module. */
function checkUncalled(context: LoweringContext): void {
  for (const fn of context.module.functions)
    if (fn.body && !fn.entry && !context.lowered.has(fn))
      attempt(fn, [], () => {
        checkFunction(fn, context);
      });
}

/** Compiles a device function that is not inlined. */
function compileFunction(
  target: PtxFunction,
  lowered: LoweredFunction,
  index: number,
  { context, linker, pinned, surroundings }: Program,
): void {
  const blocks = buildBlocks(lowered, false);
  const shape = analyseShape(blocks);
  // Every return reads the results.
  const liveness = computeLiveness(blocks, lowered.registers, [
    ...lowered.results,
    ...lowered.params,
  ]);
  const emitted = new DeviceFunctionEmitter(
    lowered,
    blocks,
    shape,
    liveness,
    RULES,
    surroundings(pinned.offsets, undefined, linker),
  ).emit();
  if (!fitsLimits(emitted, LARGEST_FUNCTION)) {
    throw context.module.source.error(
      'unsupported',
      `function '${target.name}' is too large`,
      target.at,
    );
  }
  linker.define(index, emitted.locals, emitted.code);
}

/** Host functions that the module calls and does not define. */
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
