/**
 * NVTX: ranges that profilers (Nsight Systems and others) show beside the driver's calls.
 *
 * NVTX 3 has no library: a program's header loads the tool that NVTX_INJECTION64_PATH names, which
 * a profiler sets for the processes that it starts, and passes it tables of pointers to fill in.
 * This file does that. Up to CUDA 12 the library libnvToolsExt did it; it is used where no tool is
 * named.
 */
import { findLibrary, thisMachine } from '../../native/find.js';
import type { Machine } from '../../native/find.js';
import { firstLine, loadKoffi } from '../../native/koffi.js';
import type { Koffi } from '../../native/koffi.js';
import { KNOWN_LIBRARIES } from '../../native/libraries.js';
import { loadForGood } from '../../native/open-library.js';
import { NativeMemory } from '../../native/native-memory.js';

/** Ranges of the calling thread. They nest. */
export interface Nvtx {
  push(name: string): void;
  pop(): void;
}

/** The value of NVTX_VERSION. */
const VERSION = 3;
/** Values of NvtxExportTableID. */
const CALLBACKS = 1;
const VERSION_INFO = 3;
/**
 * The size of each NvtxCallbackModule: one more function pointer than functions, since they count
 * from 1.
 */
const MODULES: Readonly<Record<number, number>> = { 1: 16, 2: 9, 3: 15, 4: 7, 5: 16, 6: 7 };
const CORE = 1;
/** Values of NvtxCallbackIdCore. */
const RANGE_PUSH_A = 9;
const RANGE_POP = 11;
const POINTER = 8;
/**
 * The layout: NvtxExportTableCallbacks { size_t, function }, then NvtxExportTableVersionInfo {
 * size_t, u32, u32, function }.
 */
const CALLBACKS_AT = 0;
const CALLBACKS_BYTES = 2 * POINTER;
const VERSION_INFO_AT = CALLBACKS_BYTES;
const VERSION_INFO_BYTES = 3 * POINTER;
const TABLES_AT = VERSION_INFO_AT + VERSION_INFO_BYTES;

/**
 * Returns the ranges of this thread; undefined where there is neither a tool nor the library.
 *
 * @throws Error where a tool is named that cannot be loaded or refuses
 */
export function openNvtx(machine: Machine = thisMachine()): Nvtx | undefined {
  const tool = machine.env['NVTX_INJECTION64_PATH'];
  if (tool !== undefined && tool !== '') return attach(loadKoffi(), tool);
  const found = findLibrary(KNOWN_LIBRARIES.nvtx, machine);
  if (!('path' in found)) return undefined;
  const library = loadForGood(loadKoffi(), found.path);
  return {
    push: library.func('int nvtxRangePushA(const char* message)') as (name: string) => void,
    pop: library.func('int nvtxRangePop()') as () => void,
  };
}

/** Does what nvtxInit.h does: the tool writes its functions into our tables. */
function attach(koffi: Koffi, path: string): Nvtx {
  const initialize = entryPoint(koffi, path);
  const tables = new Tables(koffi);
  if (initialize(tables.getExportTable) === 0)
    throw new Error(`${path} refuses to be attached to (InitializeInjectionNvtx2)`);
  const pushed = tables.functionAt(CORE, RANGE_PUSH_A);
  const popped = tables.functionAt(CORE, RANGE_POP);
  // A tool need not have all functions, and one function without the other is useless.
  if (pushed === 0n || popped === 0n) return { push: () => undefined, pop: () => undefined };
  const push = koffi.proto('int', ['const char*']);
  const pop = koffi.proto('int', []);
  return {
    push: (name) => void koffi.call(pushed, push, name),
    pop: () => void koffi.call(popped, pop),
  };
}

function entryPoint(koffi: Koffi, path: string): (getExportTable: bigint) => number {
  try {
    return loadForGood(koffi, path).func(
      'int InitializeInjectionNvtx2(uintptr_t getExportTable)',
    ) as (getExportTable: bigint) => number;
  } catch (error) {
    throw new Error(`NVTX_INJECTION64_PATH names ${path}, which is no tool: ${firstLine(error)}`, {
      cause: error,
    });
  }
}

/**
 * The tables of function pointers, and the function by which a tool gets them. They live as long as
 * the process.
 */
class Tables {
  /** A pointer of the type NvtxGetExportTableFunc_t. */
  readonly getExportTable: bigint;
  private readonly memory: NativeMemory;
  /** Where the pointers to each module's functions begin. */
  private readonly tableOf = new Map<number, number>();
  /** Where each module's functions begin. */
  private readonly functionsOf = new Map<number, number>();

  constructor(koffi: Koffi) {
    let size = TABLES_AT;
    for (const [module, count] of Object.entries(MODULES)) {
      this.functionsOf.set(Number(module), size);
      size += count * POINTER;
      this.tableOf.set(Number(module), size);
      // One more pointer is zero: a tool that reads on finds no function.
      size += (count + 1) * POINTER;
    }
    const memory = new NativeMemory(koffi, size);
    this.memory = memory;
    const pointer = (
      type: ReturnType<Koffi['proto']>,
      callback: (...args: never[]) => unknown,
    ): bigint => koffi.register(callback, koffi.pointer(type));

    const getModuleFunctionTable = pointer(
      koffi.proto('int', ['int', 'uintptr_t', 'uintptr_t']),
      (module: number, outTable: number | bigint, outSize: number | bigint) => {
        const table = this.tableOf.get(module);
        if (table === undefined) return 0;
        if (Number(outTable) !== 0)
          koffi.encode(BigInt(outTable), 'uint64_t', BigInt(memory.address + table));
        if (Number(outSize) !== 0) koffi.encode(BigInt(outSize), 'uint32_t', MODULES[module]!);
        return 1;
      },
    );
    const setInjectionVersion = pointer(koffi.proto('void', ['uint32_t']), () => undefined);
    memory.setU64(CALLBACKS_AT, CALLBACKS_BYTES);
    memory.setU64(CALLBACKS_AT + POINTER, Number(getModuleFunctionTable));
    memory.setU64(VERSION_INFO_AT, VERSION_INFO_BYTES);
    memory.setU64(VERSION_INFO_AT + POINTER, VERSION);
    memory.setU64(VERSION_INFO_AT + 2 * POINTER, Number(setInjectionVersion));
    for (const [module, table] of this.tableOf) {
      for (let id = 1; id < MODULES[module]!; id++)
        memory.setU64(
          table + id * POINTER,
          memory.address + this.functionsOf.get(module)! + id * POINTER,
        );
    }
    const exported: Readonly<Record<number, number>> = {
      [CALLBACKS]: CALLBACKS_AT,
      [VERSION_INFO]: VERSION_INFO_AT,
    };
    this.getExportTable = pointer(koffi.proto('uintptr_t', ['uint32_t']), (id: number) => {
      const at = exported[id];
      return at === undefined ? 0 : memory.address + at;
    });
  }

  functionAt(module: number, id: number): bigint {
    return BigInt(this.memory.u64(this.functionsOf.get(module)! + id * POINTER));
  }
}
