/**
 * Kernel launches: the call that decides how many commands a second the runtime thread can pass on.
 *
 * The packed parameters are copied into one native block, and the driver copies them out of it
 * before the call returns, so the next launch may reuse the block. There are two ways to give the
 * driver the place of each parameter:
 *
 * - `pointers`: `kernelParams`, an array of pointers into the block, made once per function from
 *   cuFuncGetParamInfo (CUDA 12.4). A launch passes the array's address.
 * - `buffer`: `extra`, with CU_LAUNCH_PARAM_BUFFER_POINTER and _SIZE: the block is described as a
 *   whole. Needs nothing known about the function but where its last parameter ends, to the byte: a
 *   size rounded up is refused with 701. It is what a driver without cuFuncGetParamInfo gets.
 *
 * And two calls: cuLaunchKernel with eleven arguments, or cuLaunchKernelEx with four and a
 * CUlaunchConfig in native memory. An FFI argument costs more than a word of memory (koffi 3.3.4 on
 * a stand-in: 84 against 43 ns a call). The usual launches take a shorter way: `launch-batch.ts`.
 */
import { CUresult } from '../../ground/result.js';
import { NativeMemory } from '../../native/native-memory.js';
import type { CUfunction, CUstream } from '../handles.js';
import type { LaunchConfig } from '../structures.js';
import type { Binding } from './binding.js';
import type { RowsOf } from './call-row.js';
import { ParamLayouts } from './param-layouts.js';
import {
  LAUNCH_ATTRIBUTE,
  LAUNCH_CONFIG,
  MAX_LAUNCH_ATTRIBUTES,
  writeLaunchConfig,
} from './structures.js';

/**
 * Launches. The kernel's parameters are packed as its parameter space lays them out: `paramBytes`
 * bytes of `params` from word `paramStart` on. The bytes end exactly where the last parameter does:
 * for a larger size (rounded up to words, for example) the driver refuses the launch with
 * CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES.
 */
export interface LaunchCalls {
  cuLaunchKernel(
    func: CUfunction,
    gridDimX: number,
    gridDimY: number,
    gridDimZ: number,
    blockDimX: number,
    blockDimY: number,
    blockDimZ: number,
    sharedMemBytes: number,
    stream: CUstream,
    params: Int32Array,
    paramStart: number,
    paramBytes: number,
  ): void;
  cuLaunchKernelEx(
    config: LaunchConfig,
    func: CUfunction,
    params: Int32Array,
    paramStart: number,
    paramBytes: number,
  ): void;
  cuOccupancyMaxActiveClusters(func: CUfunction, config: LaunchConfig): number;
}

export const LAUNCH_CALLS = {
  cuOccupancyMaxActiveClusters: {
    since: '11.7',
    symbols: ['cuOccupancyMaxActiveClusters'],
    args: ['uintptr_t numClusters', 'uintptr_t func', 'uintptr_t config'],
  },
  cuLaunchKernel: {
    since: '4.0',
    symbols: ['cuLaunchKernel'],
    args: [
      'uintptr_t f',
      'uint32_t gridDimX',
      'uint32_t gridDimY',
      'uint32_t gridDimZ',
      'uint32_t blockDimX',
      'uint32_t blockDimY',
      'uint32_t blockDimZ',
      'uint32_t sharedMemBytes',
      'uintptr_t hStream',
      'uintptr_t kernelParams',
      'uintptr_t extra',
    ],
  },
  cuLaunchKernelEx: {
    since: '11.6',
    symbols: ['cuLaunchKernelEx'],
    args: ['uintptr_t config', 'uintptr_t f', 'uintptr_t kernelParams', 'uintptr_t extra'],
    nodeFfi: true,
  },
} as const satisfies RowsOf<LaunchCalls>;

export interface LaunchOptions {
  /**
   * Which call `cuLaunchKernel` of the interface makes. Default `cuLaunchKernelEx`: four arguments
   * cross over instead of eleven.
   */
  launchVia?: 'cuLaunchKernel' | 'cuLaunchKernelEx';
  /**
   * How parameters are passed; `pointers` needs a driver for CUDA 12.4, an older one gets `buffer`.
   */
  launchParams?: 'pointers' | 'buffer';
}

/** A kernel's parameters take at most 32,764 bytes (4,096 before sm_70 or CUDA 12.1). */
const PARAMS_SIZE = 32768;
const CONFIG = PARAMS_SIZE;
const ATTRIBUTES = CONFIG + 64;
/** The `extra` array of five words, and the word that its size entry points to. */
const EXTRA = ATTRIBUTES + MAX_LAUNCH_ATTRIBUTES * LAUNCH_ATTRIBUTE.size + 24;
const EXTRA_SIZE = EXTRA + 40;
const BLOCK_SIZE = EXTRA_SIZE + 8;

const CONFIG_WORD = CONFIG >> 2;
const CONFIG_STREAM_WORD = (CONFIG + LAUNCH_CONFIG.hStream) >> 2;
const CONFIG_COUNT_WORD = (CONFIG + LAUNCH_CONFIG.numAttrs) >> 2;
const EXTRA_SIZE_WORD = EXTRA_SIZE >> 2;
const TWO_32 = 4294967296;

export function launchCalls(binding: Binding, options: LaunchOptions): LaunchCalls {
  const { koffi, calls, scratch } = binding;
  const { cuLaunchKernel, cuLaunchKernelEx, cuOccupancyMaxActiveClusters } = calls;
  const out0 = scratch.address;
  const block = new NativeMemory(koffi, BLOCK_SIZE);
  const words = block.i32;
  const configAddress = block.address + CONFIG;
  const extraAddress = block.address + EXTRA;
  const layouts = new ParamLayouts(binding, [block.address]);
  writeExtra(block);

  const viaEx = options.launchVia !== 'cuLaunchKernel' && cuLaunchKernelEx.available;
  /**
   * Undecided until the first launch: it is then tested whether the driver has cuFuncGetParamInfo.
   */
  let usePointers: boolean | undefined = options.launchParams === 'buffer' ? false : undefined;

  /** The `extra` argument of the launch being made. */
  let extra = 0;

  /**
   * Copies the parameters, sets `extra`, and returns the address for `kernelParams`; one of the two
   * is 0.
   */
  function place(func: number, params: Int32Array, start: number, bytes: number): number {
    if (bytes > PARAMS_SIZE) {
      throw cuLaunchKernel.failure(
        CUresult.CUDA_ERROR_INVALID_VALUE,
        `${bytes} bytes of parameters, at most 32764 are allowed`,
      );
    }
    const count = (bytes + 3) >>> 2;
    for (let i = 0; i < count; i++) words[i] = params[start + i]!;
    usePointers ??= layouts.available;
    if (!usePointers) {
      words[EXTRA_SIZE_WORD] = bytes;
      extra = count === 0 ? 0 : extraAddress;
      return 0;
    }
    const layout = layouts.find(func);
    if (bytes < layout.bytes) {
      throw cuLaunchKernel.failure(
        CUresult.CUDA_ERROR_INVALID_VALUE,
        `the kernel takes ${layout.bytes} bytes of parameters and got ${bytes}`,
      );
    }
    return layout.addresses[0]!;
  }

  return {
    cuLaunchKernel(
      func,
      gridDimX,
      gridDimY,
      gridDimZ,
      blockDimX,
      blockDimY,
      blockDimZ,
      sharedMemBytes,
      stream,
      params,
      paramStart,
      paramBytes,
    ) {
      const kernelParams = place(func, params, paramStart, paramBytes);
      let r: number;
      if (viaEx) {
        words[CONFIG_WORD] = gridDimX;
        words[CONFIG_WORD + 1] = gridDimY;
        words[CONFIG_WORD + 2] = gridDimZ;
        words[CONFIG_WORD + 3] = blockDimX;
        words[CONFIG_WORD + 4] = blockDimY;
        words[CONFIG_WORD + 5] = blockDimZ;
        words[CONFIG_WORD + 6] = sharedMemBytes;
        words[CONFIG_STREAM_WORD] = stream;
        words[CONFIG_STREAM_WORD + 1] = stream / TWO_32;
        words[CONFIG_COUNT_WORD] = 0;
        r = cuLaunchKernelEx.run(configAddress, func, kernelParams, extra);
      } else {
        r = cuLaunchKernel.run(
          func,
          gridDimX,
          gridDimY,
          gridDimZ,
          blockDimX,
          blockDimY,
          blockDimZ,
          sharedMemBytes,
          stream,
          kernelParams,
          extra,
        );
      }
      if (r !== 0) {
        throw cuLaunchKernel.failure(
          r,
          describe({
            gridDimX,
            gridDimY,
            gridDimZ,
            blockDimX,
            blockDimY,
            blockDimZ,
            sharedMemBytes,
          }),
        );
      }
    },
    cuLaunchKernelEx(config, func, params, paramStart, paramBytes) {
      const kernelParams = place(func, params, paramStart, paramBytes);
      writeLaunchConfig(block, CONFIG, ATTRIBUTES, config);
      const r = cuLaunchKernelEx.run(configAddress, func, kernelParams, extra);
      if (r !== 0) throw cuLaunchKernelEx.failure(r, describe(config));
    },
    cuOccupancyMaxActiveClusters(func, config) {
      writeLaunchConfig(block, CONFIG, ATTRIBUTES, config);
      const r = cuOccupancyMaxActiveClusters.run(out0, func, configAddress);
      if (r !== 0) throw cuOccupancyMaxActiveClusters.failure(r, describe(config));
      return scratch.i32[0]!;
    },
  };
}

/** The `extra` array never changes: it points to the block and to the word that holds its size. */
function writeExtra(block: NativeMemory): void {
  const CU_LAUNCH_PARAM_END = 0;
  const CU_LAUNCH_PARAM_BUFFER_POINTER = 1;
  const CU_LAUNCH_PARAM_BUFFER_SIZE = 2;
  block.setU64(EXTRA, CU_LAUNCH_PARAM_BUFFER_POINTER);
  block.setU64(EXTRA + 8, block.address);
  block.setU64(EXTRA + 16, CU_LAUNCH_PARAM_BUFFER_SIZE);
  block.setU64(EXTRA + 24, block.address + EXTRA_SIZE);
  block.setU64(EXTRA + 32, CU_LAUNCH_PARAM_END);
  block.setU64(EXTRA_SIZE, 0);
}

function describe(c: Omit<LaunchConfig, 'hStream' | 'attrs'>): string {
  return (
    `grid ${c.gridDimX}×${c.gridDimY}×${c.gridDimZ}, block ` +
    `${c.blockDimX}×${c.blockDimY}×${c.blockDimZ}, ` +
    `${c.sharedMemBytes} bytes of dynamic shared memory`
  );
}
