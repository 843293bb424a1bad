/**
 * Modules, libraries, the linker, functions and occupancy.
 */
import type { Driver } from '../driver.js';
import { CUjitInputType } from '../flags.js';
import { CUresult } from '../../ground/result.js';
import type { Binding } from './binding.js';
import { JitRequest, imageBytes } from './jit.js';
import { NativeMemory } from '../../native/native-memory.js';

type CodeCalls = Pick<
  Driver,
  | 'cuModuleLoadDataEx'
  | 'cuModuleUnload'
  | 'cuModuleGetFunction'
  | 'cuModuleGetGlobal'
  | 'cuLibraryLoadData'
  | 'cuLibraryUnload'
  | 'cuLibraryGetKernel'
  | 'cuLibraryGetKernelCount'
  | 'cuLibraryEnumerateKernels'
  | 'cuKernelGetName'
  | 'cuLibraryGetGlobal'
  | 'cuLibraryGetModule'
  | 'cuKernelGetFunction'
  | 'cuLink'
  | 'cuFuncGetAttribute'
  | 'cuFuncSetAttribute'
  | 'cuFuncSetCacheConfig'
  | 'cuFuncLoad'
  | 'cuFuncGetParamInfo'
  | 'cuOccupancyMaxActiveBlocksPerMultiprocessor'
  | 'cuOccupancyMaxPotentialBlockSize'
  | 'cuOccupancyAvailableDynamicSMemPerBlock'
>;

export function codeCalls({ koffi, calls, scratch, unloads }: Binding): CodeCalls {
  // The driver compiles a library's PTX when one of its kernels is first asked for
  // (CUDA_MODULE_LOADING=LAZY, the default), and writes the logs then: options and log buffers live
  // as long as the library.
  const libraries = new Map<number, JitRequest>();
  const kernels = new Map<number, number>();
  const out0 = scratch.address;
  const out1 = out0 + 8;
  const {
    cuModuleLoadDataEx,
    cuModuleUnload,
    cuModuleGetFunction,
    cuModuleGetGlobal,
    cuLibraryLoadData,
    cuLibraryUnload,
    cuLibraryGetKernel,
    cuLibraryGetKernelCount,
    cuLibraryEnumerateKernels,
    cuKernelGetName,
    cuLibraryGetGlobal,
    cuLibraryGetModule,
    cuKernelGetFunction,
    cuLinkCreate,
    cuLinkAddData,
    cuLinkComplete,
    cuLinkDestroy,
    cuFuncGetAttribute,
    cuFuncSetAttribute,
    cuFuncSetCacheConfig,
    cuFuncLoad,
    cuFuncGetParamInfo,
    cuOccupancyMaxActiveBlocksPerMultiprocessor,
    cuOccupancyMaxPotentialBlockSize,
    cuOccupancyAvailableDynamicSMemPerBlock,
  } = calls;

  return {
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
    cuModuleGetFunction(mod, name) {
      const r = cuModuleGetFunction.run(out0, mod, name);
      if (r !== 0) throw cuModuleGetFunction.failure(r, `"${name}"`);
      return scratch.u64(0);
    },
    cuModuleGetGlobal(mod, name) {
      const r = cuModuleGetGlobal.run(out0, out1, mod, name);
      if (r !== 0) throw cuModuleGetGlobal.failure(r, `"${name}"`);
      return { dptr: scratch.u64(0), bytes: scratch.u64(8) };
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
    cuLibraryGetKernelCount(library) {
      const r = cuLibraryGetKernelCount.run(out0, library);
      if (r !== 0) throw cuLibraryGetKernelCount.failure(r);
      return scratch.u32[0]!;
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
    cuLibraryGetGlobal(library, name) {
      const r = cuLibraryGetGlobal.run(out0, out1, library, name);
      if (r !== 0) throw cuLibraryGetGlobal.failure(r, `"${name}"`);
      return { dptr: scratch.u64(0), bytes: scratch.u64(8) };
    },
    cuLibraryGetModule(library) {
      const r = cuLibraryGetModule.run(out0, library);
      if (r !== 0) throw cuLibraryGetModule.failure(r);
      return scratch.u64(0);
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

    cuFuncGetAttribute(attrib, func) {
      const r = cuFuncGetAttribute.run(out0, attrib, func);
      if (r !== 0) throw cuFuncGetAttribute.failure(r, `attribute ${attrib}`);
      return scratch.i32[0]!;
    },
    cuFuncSetAttribute(func, attrib, value) {
      const r = cuFuncSetAttribute.run(func, attrib, value);
      if (r !== 0) throw cuFuncSetAttribute.failure(r, `attribute ${attrib} to ${value}`);
    },
    cuFuncSetCacheConfig(func, config) {
      const r = cuFuncSetCacheConfig.run(func, config);
      if (r !== 0) throw cuFuncSetCacheConfig.failure(r, `config ${config}`);
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

    cuOccupancyMaxActiveBlocksPerMultiprocessor(func, blockSize, dynamicSMemSize) {
      const r = cuOccupancyMaxActiveBlocksPerMultiprocessor.run(
        out0,
        func,
        blockSize,
        dynamicSMemSize,
      );
      if (r !== 0) {
        throw cuOccupancyMaxActiveBlocksPerMultiprocessor.failure(
          r,
          `${blockSize} threads, ${dynamicSMemSize} bytes of shared memory`,
        );
      }
      return scratch.i32[0]!;
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
    cuOccupancyAvailableDynamicSMemPerBlock(func, numBlocks, blockSize) {
      const r = cuOccupancyAvailableDynamicSMemPerBlock.run(out0, func, numBlocks, blockSize);
      if (r !== 0)
        throw cuOccupancyAvailableDynamicSMemPerBlock.failure(
          r,
          `${numBlocks} blocks of ${blockSize} threads`,
        );
      return scratch.u64(0);
    },
  };
}
