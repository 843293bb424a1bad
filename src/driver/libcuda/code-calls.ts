/**
 * Modules, libraries, the linker, functions and occupancy.
 */
import { CUresult } from '../../ground/result.js';
import { NativeMemory } from '../../native/native-memory.js';
import { CUjitInputType } from '../flags.js';
import type { CUdeviceptr, CUfunction, CUkernel, CUlibrary, CUmodule } from '../handles.js';
import type { JitLogs, JitOptions, ParamInfo } from '../structures.js';
import type { Binding } from './binding.js';
import type { Prototype, RowsOf } from './call-row.js';
import { JitRequest, imageBytes } from './jit.js';
import { plainCalls } from './plain-calls.js';

/**
 * Modules, libraries and the linker. `image` is PTX text (no terminating zero needed), cubin or
 * fatbin bytes.
 */
export interface ModuleCalls {
  cuModuleLoadDataEx(image: string | Uint8Array, options: JitOptions): CUmodule;
  cuModuleUnload(mod: CUmodule): void;
  cuModuleGetFunction(mod: CUmodule, name: string): CUfunction;
  cuModuleGetGlobal(mod: CUmodule, name: string): { dptr: CUdeviceptr; bytes: number };
  cuLibraryLoadData(code: string | Uint8Array, options: JitOptions): CUlibrary;
  cuLibraryUnload(library: CUlibrary): void;
  cuLibraryGetKernel(library: CUlibrary, name: string): CUkernel;
  /** CUDA 12.4 or later. */
  cuLibraryGetKernelCount(library: CUlibrary): number;
  cuLibraryEnumerateKernels(library: CUlibrary): CUkernel[];
  cuKernelGetName(kernel: CUkernel): string;
  cuLibraryGetGlobal(library: CUlibrary, name: string): { dptr: CUdeviceptr; bytes: number };
  cuLibraryGetModule(library: CUlibrary): CUmodule;
  cuKernelGetFunction(kernel: CUkernel): CUfunction;
  /**
   * Combines cuLinkCreate, cuLinkAddData for each input, cuLinkComplete and cuLinkDestroy. Returns
   * the finished cubin and the logs.
   */
  cuLink(
    inputs: readonly { type: number; data: string | Uint8Array; name: string }[],
    options: JitOptions,
  ): { cubin: Uint8Array } & JitLogs;
}

/** Functions and occupancy; `attrib` is a value of `CUfunction_attribute`. */
export interface FunctionCalls {
  cuFuncGetAttribute(attrib: number, func: CUfunction): number;
  cuFuncSetAttribute(func: CUfunction, attrib: number, value: number): void;
  cuFuncSetCacheConfig(func: CUfunction, config: number): void;
  /**
   * Loads the function now, so that no first launch loads it. CUDA 12.4 or later; on older ones it
   * has no effect.
   */
  cuFuncLoad(func: CUfunction): void;
  /** Returns undefined past the last parameter. CUDA 12.4 or later. */
  cuFuncGetParamInfo(func: CUfunction, paramIndex: number): ParamInfo | undefined;
  cuOccupancyMaxActiveBlocksPerMultiprocessor(
    func: CUfunction,
    blockSize: number,
    dynamicSMemSize: number,
  ): number;
  cuOccupancyMaxPotentialBlockSize(
    func: CUfunction,
    dynamicSMemSize: number,
    blockSizeLimit: number,
  ): { minGridSize: number; blockSize: number };
  cuOccupancyAvailableDynamicSMemPerBlock(
    func: CUfunction,
    numBlocks: number,
    blockSize: number,
  ): number;
}

export const CODE_CALLS = {
  cuModuleLoadDataEx: {
    since: '2.1',
    symbols: ['cuModuleLoadDataEx'],
    args: [
      'uintptr_t module',
      'void* image',
      'uint32_t numOptions',
      'uintptr_t options',
      'uintptr_t optionValues',
    ],
  },
  cuModuleUnload: { since: '2.0', symbols: ['cuModuleUnload'], args: ['uintptr_t hmod'] },
  cuModuleGetFunction: {
    since: '2.0',
    symbols: ['cuModuleGetFunction'],
    args: ['uintptr_t* hfunc', 'uintptr_t hmod', 'const char* name'],
    plain: (_mod, name) => `"${name}"`,
  },
  cuModuleGetGlobal: {
    since: '3.2',
    symbols: ['cuModuleGetGlobal_v2'],
    args: ['uintptr_t* dptr', 'size_t* bytes', 'uintptr_t hmod', 'const char* name'],
    plain: (_mod, name) => `"${name}"`,
  },
  cuLibraryLoadData: {
    since: '12.0',
    symbols: ['cuLibraryLoadData'],
    args: [
      'uintptr_t library',
      'void* code',
      'uintptr_t jitOptions',
      'uintptr_t jitOptionsValues',
      'uint32_t numJitOptions',
      'uintptr_t libraryOptions',
      'uintptr_t libraryOptionValues',
      'uint32_t numLibraryOptions',
    ],
  },
  cuLibraryUnload: { since: '12.0', symbols: ['cuLibraryUnload'], args: ['uintptr_t library'] },
  cuLibraryGetKernel: {
    since: '12.0',
    symbols: ['cuLibraryGetKernel'],
    args: ['uintptr_t pKernel', 'uintptr_t library', 'const char* name'],
  },
  cuLibraryGetKernelCount: {
    since: '12.4',
    symbols: ['cuLibraryGetKernelCount'],
    args: ['uint32_t* count', 'uintptr_t lib'],
    plain: true,
  },
  cuLibraryEnumerateKernels: {
    since: '12.4',
    symbols: ['cuLibraryEnumerateKernels'],
    args: ['uintptr_t kernels', 'uint32_t numKernels', 'uintptr_t lib'],
  },
  cuKernelGetName: {
    since: '12.3',
    symbols: ['cuKernelGetName'],
    args: ['uintptr_t name', 'uintptr_t hfunc'],
  },
  cuLibraryGetGlobal: {
    since: '12.0',
    symbols: ['cuLibraryGetGlobal'],
    args: ['uintptr_t* dptr', 'size_t* bytes', 'uintptr_t library', 'const char* name'],
    plain: (_library, name) => `"${name}"`,
  },
  cuLibraryGetModule: {
    since: '12.0',
    symbols: ['cuLibraryGetModule'],
    args: ['uintptr_t* pMod', 'uintptr_t library'],
    plain: true,
  },
  cuKernelGetFunction: {
    since: '12.0',
    symbols: ['cuKernelGetFunction'],
    args: ['uintptr_t pFunc', 'uintptr_t kernel'],
  },
  cuFuncGetAttribute: {
    since: '2.2',
    symbols: ['cuFuncGetAttribute'],
    args: ['int* pi', 'int attrib', 'uintptr_t hfunc'],
    plain: (attrib) => `attribute ${attrib}`,
  },
  cuFuncSetAttribute: {
    since: '9.0',
    symbols: ['cuFuncSetAttribute'],
    args: ['uintptr_t hfunc', 'int attrib', 'int value'],
    plain: (_func, attrib, value) => `attribute ${attrib} to ${value}`,
  },
  cuFuncSetCacheConfig: {
    since: '3.0',
    symbols: ['cuFuncSetCacheConfig'],
    args: ['uintptr_t hfunc', 'int config'],
    plain: (_func, config) => `config ${config}`,
  },
  cuFuncLoad: { since: '12.4', symbols: ['cuFuncLoad'], args: ['uintptr_t hfunc'] },
  cuFuncGetParamInfo: {
    since: '12.4',
    symbols: ['cuFuncGetParamInfo'],
    args: ['uintptr_t func', 'size_t paramIndex', 'uintptr_t paramOffset', 'uintptr_t paramSize'],
  },
  cuOccupancyMaxActiveBlocksPerMultiprocessor: {
    since: '6.5',
    symbols: ['cuOccupancyMaxActiveBlocksPerMultiprocessor'],
    args: ['int* numBlocks', 'uintptr_t func', 'int blockSize', 'size_t dynamicSMemSize'],
    plain: (_func, blockSize, dynamicSMemSize) =>
      `${blockSize} threads, ${dynamicSMemSize} bytes of shared memory`,
  },
  cuOccupancyMaxPotentialBlockSize: {
    since: '6.5',
    symbols: ['cuOccupancyMaxPotentialBlockSize'],
    args: [
      'uintptr_t minGridSize',
      'uintptr_t blockSize',
      'uintptr_t func',
      'uintptr_t blockSizeToDynamicSMemSize',
      'size_t dynamicSMemSize',
      'int blockSizeLimit',
    ],
  },
  cuOccupancyAvailableDynamicSMemPerBlock: {
    since: '10.2',
    symbols: ['cuOccupancyAvailableDynamicSMemPerBlock'],
    args: ['size_t* dynamicSmemSize', 'uintptr_t func', 'int numBlocks', 'int blockSize'],
    plain: (_func, numBlocks, blockSize) => `${numBlocks} blocks of ${blockSize} threads`,
  },
} as const satisfies RowsOf<ModuleCalls & FunctionCalls>;

/** What `cuLink` calls. */
export const LINK_CALLS = {
  cuLinkCreate: {
    since: '6.5',
    symbols: ['cuLinkCreate_v2'],
    args: [
      'uint32_t numOptions',
      'uintptr_t options',
      'uintptr_t optionValues',
      'uintptr_t stateOut',
    ],
  },
  cuLinkAddData: {
    since: '6.5',
    symbols: ['cuLinkAddData_v2'],
    args: [
      'uintptr_t state',
      'int type',
      'void* data',
      'size_t size',
      'const char* name',
      'uint32_t numOptions',
      'uintptr_t options',
      'uintptr_t optionValues',
    ],
  },
  cuLinkComplete: {
    since: '5.5',
    symbols: ['cuLinkComplete'],
    args: ['uintptr_t state', 'uintptr_t cubinOut', 'uintptr_t sizeOut'],
  },
  cuLinkDestroy: { since: '5.5', symbols: ['cuLinkDestroy'], args: ['uintptr_t state'] },
} as const satisfies Record<string, Prototype>;

export function codeCalls(binding: Binding): ModuleCalls & FunctionCalls {
  const { koffi, calls, scratch, unloads } = binding;
  // The driver compiles a library's PTX when one of its kernels is first requested
  // (CUDA_MODULE_LOADING=LAZY, the default), and writes the logs then: options and log buffers live
  // as long as the library.
  const libraries = new Map<number, JitRequest>();
  const kernels = new Map<number, number>();
  const out0 = scratch.address;
  const out1 = out0 + 8;
  const {
    cuModuleLoadDataEx,
    cuModuleUnload,
    cuLibraryLoadData,
    cuLibraryUnload,
    cuLibraryGetKernel,
    cuLibraryGetKernelCount,
    cuLibraryEnumerateKernels,
    cuKernelGetName,
    cuKernelGetFunction,
    cuLinkCreate,
    cuLinkAddData,
    cuLinkComplete,
    cuLinkDestroy,
    cuFuncLoad,
    cuFuncGetParamInfo,
    cuOccupancyMaxPotentialBlockSize,
  } = calls;

  return {
    ...plainCalls(binding, CODE_CALLS),
    cuModuleLoadDataEx(image, options) {
      const jit = new JitRequest(koffi, options);
      const r = cuModuleLoadDataEx.run(
        out0,
        imageBytes(image),
        jit.count,
        jit.options,
        jit.optionValues,
      );
      if (r !== 0) throw cuModuleLoadDataEx.failure(r, jit.logs());
      return scratch.u64(0);
    },
    cuModuleUnload(mod) {
      Atomics.add(unloads, 0, 1);
      const r = cuModuleUnload.run(mod);
      if (r !== 0) throw cuModuleUnload.failure(r);
    },

    cuLibraryLoadData(code, options) {
      const jit = new JitRequest(koffi, options);
      const image = imageBytes(code);
      const r = cuLibraryLoadData.run(
        out0,
        image,
        jit.options,
        jit.optionValues,
        jit.count,
        0,
        0,
        0,
      );
      if (r !== 0) throw cuLibraryLoadData.failure(r, jit.logs());
      const library = scratch.u64(0);
      libraries.set(library, jit);
      return library;
    },
    cuLibraryUnload(library) {
      Atomics.add(unloads, 0, 1);
      const r = cuLibraryUnload.run(library);
      if (r !== 0) throw cuLibraryUnload.failure(r);
      libraries.delete(library);
      for (const [kernel, owner] of kernels) if (owner === library) kernels.delete(kernel);
    },
    cuLibraryGetKernel(library, name) {
      const r = cuLibraryGetKernel.run(out0, library, name);
      if (r !== 0)
        throw cuLibraryGetKernel.failure(r, {
          ...libraries.get(library)?.logs(),
          detail: `"${name}"`,
        });
      const kernel = scratch.u64(0);
      kernels.set(kernel, library);
      return kernel;
    },
    cuLibraryEnumerateKernels(library) {
      let r = cuLibraryGetKernelCount.run(out0, library);
      if (r !== 0) throw cuLibraryGetKernelCount.failure(r);
      const count = scratch.u32[0]!;
      if (count === 0) return [];
      const kernels = new NativeMemory(koffi, 8 * count);
      r = cuLibraryEnumerateKernels.run(kernels.address, count, library);
      if (r !== 0) throw cuLibraryEnumerateKernels.failure(r, `${count} kernels`);
      return Array.from({ length: count }, (_, i) => kernels.u64(8 * i));
    },
    cuKernelGetName(kernel) {
      const r = cuKernelGetName.run(out0, kernel);
      if (r !== 0) throw cuKernelGetName.failure(r);
      return koffi.decode.string(scratch.u64(0));
    },
    cuKernelGetFunction(kernel) {
      const r = cuKernelGetFunction.run(out0, kernel);
      if (r !== 0)
        throw cuKernelGetFunction.failure(r, {
          ...libraries.get(kernels.get(kernel) ?? 0)?.logs(),
        });
      return scratch.u64(0);
    },

    cuLink(inputs, options) {
      const jit = new JitRequest(koffi, options);
      let r = cuLinkCreate.run(jit.count, jit.options, jit.optionValues, out0);
      if (r !== 0) throw cuLinkCreate.failure(r, jit.logs());
      const state = scratch.u64(0);
      try {
        for (const { type, data, name } of inputs) {
          const isText = typeof data === 'string' || type === CUjitInputType.CU_JIT_INPUT_PTX;
          const bytes = isText ? imageBytes(data) : data;
          r = cuLinkAddData.run(state, type, bytes, bytes.length, name, 0, 0, 0);
          if (r !== 0)
            throw cuLinkAddData.failure(r, {
              ...jit.logs(),
              detail: `input "${name}", ${bytes.length} bytes`,
            });
        }
        r = cuLinkComplete.run(state, out0, out1);
        if (r !== 0) throw cuLinkComplete.failure(r, jit.logs());
        // The driver owns the cubin until cuLinkDestroy.
        const cubin = new Uint8Array(koffi.view(scratch.u64(0), scratch.u64(8))).slice();
        return { cubin, ...jit.logs() };
      } finally {
        cuLinkDestroy.run(state);
      }
    },

    cuFuncLoad(func) {
      if (!cuFuncLoad.available) return;
      const r = cuFuncLoad.run(func);
      if (r !== 0) throw cuFuncLoad.failure(r);
    },
    cuFuncGetParamInfo(func, paramIndex) {
      const r = cuFuncGetParamInfo.run(func, paramIndex, out0, out1);
      // The driver's answer to an index past the last parameter.
      if (r === CUresult.CUDA_ERROR_INVALID_VALUE) return undefined;
      if (r !== 0) throw cuFuncGetParamInfo.failure(r, `parameter ${paramIndex}`);
      return { offset: scratch.u64(0), size: scratch.u64(8) };
    },

    cuOccupancyMaxPotentialBlockSize(func, dynamicSMemSize, blockSizeLimit) {
      const r = cuOccupancyMaxPotentialBlockSize.run(
        out0,
        out1,
        func,
        0,
        dynamicSMemSize,
        blockSizeLimit,
      );
      if (r !== 0)
        throw cuOccupancyMaxPotentialBlockSize.failure(
          r,
          `${dynamicSMemSize} bytes of shared memory`,
        );
      return { minGridSize: scratch.i32[0]!, blockSize: scratch.i32[2]! };
    },
  };
}
