/**
 * A loaded module: PTX compiled to WebAssembly, its variables placed in device memory, and an
 * instance of the code that works on that memory. Compiled code is cached by its text, since tests
 * and reopened devices load the same again.
 */
import { PtxError, relocate } from '../../../ptx/index.js';
import type { WasmKernel, WasmModule, DataVariable } from '../../../ptx/index.js';
import { DriverError } from '../../error.js';
import { CUresult } from '../../../ground/result.js';
import { fail } from '../failure.js';
import type { MachineServices } from '../services.js';
import { GRANULE } from '../memory/arena.js';
import type { Allocation } from '../memory/device-memory.js';
import type { RunBlock } from './run-block.js';
import type { Compile } from './compile.js';
import { engineModule } from './engine-module.js';
import type { EngineModule } from './engine-module.js';
import { hostFunctions } from './host-functions.js';
import type { CodeModule } from './kernel-code.js';
import { KernelFunction } from './kernel-function.js';
import type { KernelContext } from './kernel-context.js';

/** The result of compiling a text: everything that does not depend on a context. */
export interface LoadedCode extends EngineModule {
  readonly compiled: WasmModule;
  /** Kernels and variables by name: a module may have tens of thousands. */
  readonly kernels: ReadonlyMap<string, { readonly kernel: WasmKernel; readonly index: number }>;
  readonly variables: ReadonlyMap<string, DataVariable>;
}

const KEPT_TEXTS = 64;
const kept = new WeakMap<Compile, Map<string, LoadedCode>>();

/**
 * Loads PTX text, or its bytes; every other image is refused with an error that names its format.
 */
export function loadCode(
  call: string,
  image: string | Uint8Array,
  { compile, check, seed }: MachineServices,
): LoadedCode {
  const source = ptxText(call, image);
  const options = {
    ...(check === undefined ? {} : { check: true }),
    ...(seed === undefined ? {} : { ordered: true }),
  };
  const key = `${Object.keys(options).join()} ${source}`;
  let texts = kept.get(compile);
  if (texts === undefined) {
    texts = new Map<string, LoadedCode>();
    kept.set(compile, texts);
  }
  const known = texts.get(key);
  if (known !== undefined) return known;
  let compiled: WasmModule;
  try {
    compiled = compile(source, options);
  } catch (error) {
    if (!(error instanceof PtxError)) throw error;
    failPtx(call, error);
  }
  const code: LoadedCode = {
    compiled,
    ...engineModule(compiled.wasm),
    kernels: new Map(compiled.kernels.map((kernel, index) => [kernel.name, { kernel, index }])),
    variables: new Map(compiled.variables.map((variable) => [variable.name, variable])),
  };
  texts.set(key, code);
  if (texts.size > KEPT_TEXTS) texts.delete(texts.keys().next().value!);
  return code;
}

/** Throws with the compiler's message as the JIT's error log. */
export function failPtx(call: string, error: PtxError): never {
  throw new DriverError(call, CUresult.CUDA_ERROR_INVALID_PTX, {
    errorLog: error.message,
    detail:
      error.code === 'unsupported'
        ? `the CPU device does not cover this PTX yet (line ${error.line})`
        : `the PTX has an error at line ${error.line}`,
  });
}

export function ptxText(call: string, image: string | Uint8Array): string {
  if (typeof image === 'string') return image.replace(/\0+$/, '');
  const [a, b, c, d] = image;
  const isElf = a === 0x7f && b === 0x45 && c === 0x4c && d === 0x46;
  const isFatbin = a === 0x50 && b === 0xed && c === 0x55 && d === 0xba;
  if (isElf || isFatbin) {
    fail(
      call,
      CUresult.CUDA_ERROR_NO_BINARY_FOR_GPU,
      'this is machine code for a GPU; the CPU device takes PTX',
    );
  }
  // The bytes are copied, because decoders do not accept shared memory.
  return new TextDecoder().decode(image.slice()).replace(/\0+$/, '');
}

export class CpuModule implements CodeModule {
  readonly handle: number;
  readonly context: KernelContext;
  readonly compiled: WasmModule;
  readonly wasm: WebAssembly.Module;
  readonly optimisingMs: number;
  private readonly code: LoadedCode;
  readonly inLanes = false;
  readonly constBytes: number;
  /**
   * It is 80 for `.target sm_80`: drivers report the virtual architecture by this attribute, and
   * CUB chooses its kernels' sizes by it.
   */
  readonly ptxVersion: number;
  private readonly data: Allocation | undefined;
  /** The address of its variables; 0 where it has none. */
  readonly dataAddress: number;
  private readonly exports: WebAssembly.Exports;
  private readonly functions = new Map<string, KernelFunction>();

  constructor(call: string, handle: number, context: KernelContext, code: LoadedCode) {
    const { compiled } = code;
    this.code = code;
    this.handle = handle;
    this.context = context;
    this.compiled = compiled;
    this.wasm = code.wasm;
    this.optimisingMs = code.optimisingMs;
    this.ptxVersion = Number(/\d+/.exec(compiled.target)?.[0] ?? 0);
    this.constBytes = compiled.variables.reduce(
      (sum, v) => (v.space === 'const' ? sum + v.size : sum),
      0,
    );
    // Offsets are aligned for the variables, so the start must be, too.
    const align = compiled.variables.reduce(
      (most, variable) => Math.max(most, variable.align),
      GRANULE,
    );
    this.data = compiled.data.length === 0 ? undefined : this.allocateData(call, align - GRANULE);
    this.dataAddress = this.data === undefined ? 0 : Math.ceil(this.data.address / align) * align;
    if (this.data !== undefined) this.placeData(this.data);
    const memory = context.memory.memory;
    const dataBase = new WebAssembly.Global({ value: 'i32', mutable: false }, this.dataAddress | 0);
    this.exports = new WebAssembly.Instance(code.wasm, {
      env: {
        memory,
        dataBase,
        ...hostFunctions(call, context, compiled.hostImports),
        ...context.checker?.imports(),
      },
    }).exports;
  }

  get hostImports(): readonly string[] {
    return this.compiled.hostImports;
  }

  get exportNames(): readonly string[] {
    return this.compiled.kernels.map((kernel) => kernel.exportName);
  }

  private allocateData(call: string, slack: number): Allocation {
    const { compiled, context } = this;
    return (
      context.memory.allocate(compiled.data.length + slack, 'module') ??
      context.outOfMemory(call, compiled.data.length)
    );
  }

  private placeData(allocation: Allocation): void {
    const { compiled, context, dataAddress } = this;
    context.checker?.placed(allocation, this);
    const { bytes } = context.memory;
    bytes.set(compiled.data, dataAddress);
    relocate(new DataView(bytes.buffer), dataAddress, compiled.relocations);
  }

  function(name: string): KernelFunction | undefined {
    let known = this.functions.get(name);
    if (known === undefined) {
      const found = this.code.kernels.get(name);
      if (found === undefined) return undefined;
      const { kernel, index } = found;
      const { machine } = this.context;
      known = new KernelFunction(machine.newHandle(), this, kernel, {
        module: this,
        index,
        run: this.exports[kernel.exportName] as RunBlock,
        runsOn: kernel.runsOn,
        blockBytes: (threads) => kernel.blockBytes(threads),
      });
      this.functions.set(name, known);
      machine.functions.set(known.handle, known);
    }
    return known;
  }

  /**
   * Returns a variable. nvcc marks the variables of a program of one file as local; drivers find
   * them all the same.
   */
  variable(name: string): { dptr: number; bytes: number } | undefined {
    const variable = this.code.variables.get(name);
    return variable === undefined || this.data === undefined
      ? undefined
      : { dptr: this.dataAddress + variable.offset, bytes: variable.size };
  }

  /** Ends its handles now, and its memory once queued kernels have passed. */
  unload(): void {
    const { context, data } = this;
    context.machine.modules.delete(this.handle);
    for (const known of this.functions.values()) context.machine.functions.delete(known.handle);
    if (data !== undefined) data.memory.retire(data);
    context.afterQueuedWork(() => {
      if (data !== undefined) data.memory.reclaim(data);
      for (const known of this.functions.values())
        for (const lanes of known.codes.modules) context.crew?.forget(lanes);
      context.crew?.forget(this);
    });
  }
}
