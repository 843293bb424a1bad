/**
 * Functions, occupancy and launches.
 *
 * Occupancy is a GPU's arithmetic on the limits that the device states: a multiprocessor holds 2048
 * threads, 32 blocks and 228 KiB of shared memory, 1 KiB of which goes to each block. Registers do
 * not count: PTX has virtual ones.
 */
import type { FunctionCalls, LaunchCalls, LaunchConfig } from '../../driver.js';
import { CUfunction_attribute } from '../../attributes.js';
import { CUresult } from '../../../ground/result.js';
import {
  BLOCKS_PER_MULTIPROCESSOR,
  MAX_BLOCK_DIM,
  MAX_CLUSTER,
  MAX_GRID_DIM,
  PORTABLE_CLUSTER,
  RESERVED_SHARED_PER_BLOCK,
  SHARED_PER_BLOCK_OPTIN,
  SHARED_PER_MULTIPROCESSOR,
  THREADS_PER_MULTIPROCESSOR,
  WARP_SIZE,
} from '../device-attributes.js';
import { checkSize, fail, invalidHandle, invalidValue } from '../failure.js';
import { submit } from '../streams/capture.js';
import { clusterShape } from '../kernels/cluster.js';
import type { ClusterShape } from '../kernels/cluster.js';
import type { KernelFunction } from '../kernels/kernel-function.js';
import { LaunchOperation } from '../kernels/launch-operation.js';
import type { Machine } from '../machine.js';

const AXES = ['X', 'Y', 'Z'] as const;
const CLUSTER_SIZES: readonly number[] = [
  CUfunction_attribute.CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH,
  CUfunction_attribute.CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT,
  CUfunction_attribute.CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH,
];

function activeBlocks(func: KernelFunction, threads: number, dynamicShared: number): number {
  if (threads > func.maxThreads) return 0;
  const shared = func.kernel.sharedBytes + dynamicShared + RESERVED_SHARED_PER_BLOCK;
  return Math.min(
    BLOCKS_PER_MULTIPROCESSOR,
    Math.floor(THREADS_PER_MULTIPROCESSOR / (Math.ceil(threads / WARP_SIZE) * WARP_SIZE)),
    Math.floor(SHARED_PER_MULTIPROCESSOR / shared),
  );
}

export function launchCalls(machine: Machine): FunctionCalls & LaunchCalls {
  /** By its handle or by that of the library's kernel, which the driver takes in its place. */
  function functionOf(call: string, handle: number): KernelFunction {
    const context = machine.context(call);
    const known = machine.functions.get(handle);
    if (known !== undefined) return known;
    const kernel = machine.kernels.get(handle) ?? invalidHandle(call, 'function', handle);
    return kernel.functionIn(call, context);
  }

  function checkDimension(
    call: string,
    name: string,
    axis: number,
    value: number,
    most: number,
  ): void {
    if (!Number.isInteger(value) || value < 1 || value > most) {
      invalidValue(call, `${name}Dim${AXES[axis]} is ${value}; it must be 1 to ${most}`);
    }
  }

  function launch(
    call: string,
    func: KernelFunction,
    gx: number,
    gy: number,
    gz: number,
    bx: number,
    by: number,
    bz: number,
    shared: number,
    streamHandle: number,
    cooperative: boolean,
    clusterDim: readonly [number, number, number] | undefined,
    params: Int32Array,
    paramStart: number,
    paramBytes: number,
  ): void {
    const stream = machine.stream(call, streamHandle);
    if (func.context !== stream.context)
      fail(
        call,
        CUresult.CUDA_ERROR_INVALID_HANDLE,
        'the function and the stream belong to different contexts',
      );
    checkDimension(call, 'grid', 0, gx, MAX_GRID_DIM[0]);
    checkDimension(call, 'grid', 1, gy, MAX_GRID_DIM[1]);
    checkDimension(call, 'grid', 2, gz, MAX_GRID_DIM[2]);
    const cluster = clusterOf(call, func, clusterDim);
    if (cluster !== undefined) [gx, gy, gz] = gridOf(call, func, cluster, gx, gy, gz);
    checkDimension(call, 'block', 0, bx, MAX_BLOCK_DIM[0]);
    checkDimension(call, 'block', 1, by, MAX_BLOCK_DIM[1]);
    checkDimension(call, 'block', 2, bz, MAX_BLOCK_DIM[2]);
    const threads = bx * by * bz;
    if (threads > func.maxThreads)
      invalidValue(
        call,
        `a block of ${threads} threads is more than the ${func.maxThreads} that ${func.name} ` +
          'can have',
      );
    const required = func.kernel.requiredBlock;
    if (
      required !== undefined &&
      (bx !== required[0] || by !== required[1] || bz !== required[2])
    ) {
      invalidValue(
        call,
        `${func.name} must be launched with blocks of (${required.join()}) threads`,
      );
    }
    checkSize(call, 'sharedMemBytes', shared);
    if (shared > func.maxDynamicShared) {
      invalidValue(
        call,
        `${shared} bytes of dynamic shared memory are more than the ${func.maxDynamicShared} ` +
          `that ${func.name} can have;` +
          ' CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES raises it',
      );
    }
    if (paramBytes < func.kernel.paramBytes || paramStart + func.paramWords > params.length) {
      invalidValue(
        call,
        `${paramBytes} bytes of parameters were given; ${func.name} takes ` +
          `${func.kernel.paramBytes}`,
      );
    }
    if (cooperative) {
      const most = activeBlocks(func, threads, shared) * func.context.device.multiprocessors;
      if (gx * gy * gz > most) {
        fail(
          call,
          CUresult.CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
          `${gx * gy * gz} blocks cannot run at once; the device holds ${most} of this kernel`,
        );
      }
    }
    submit(
      call,
      stream,
      LaunchOperation.take(
        func,
        gx,
        gy,
        gz,
        bx,
        by,
        bz,
        shared,
        cooperative,
        cluster,
        params,
        paramStart,
      ),
    );
  }

  /** The clusters that a launch and the kernel request; undefined where neither does. */
  function clusterOf(
    call: string,
    func: KernelFunction,
    asked: readonly [number, number, number] | undefined,
  ): ClusterShape | undefined {
    const { requiredCluster: required, kernel } = func;
    const invalid = (why: string): never =>
      fail(call, CUresult.CUDA_ERROR_INVALID_CLUSTER_SIZE, why);
    if (asked === undefined && required === undefined) {
      return kernel.cluster.explicit
        ? invalid(`${func.name} must be launched with clusters`)
        : undefined;
    }
    if (asked?.every((blocks) => Number.isInteger(blocks) && blocks >= 1) === false)
      invalidValue(
        call,
        `clusters of (${asked.join()}) blocks; each dimension must be an integer of at least 1`,
      );
    const cluster = asked === undefined ? required! : clusterShape(asked);
    if (
      required !== undefined &&
      (cluster.x !== required.x || cluster.y !== required.y || cluster.z !== required.z)
    ) {
      invalid(
        `clusters of (${asked!.join()}) blocks; ${func.name} must have ` +
          `(${required.x},${required.y},${required.z})`,
      );
    }
    const most = Math.min(
      func.allowsLargeClusters ? MAX_CLUSTER : PORTABLE_CLUSTER,
      kernel.cluster.most ?? MAX_CLUSTER,
    );
    if (cluster.blocks > most) {
      invalid(
        `a cluster of ${cluster.blocks} blocks is more than the ${most} that ${func.name} ` +
          'can have' +
          (most === PORTABLE_CLUSTER
            ? '; CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED allows more'
            : ''),
      );
    }
    return cluster;
  }

  /** The grid in blocks: a whole number of clusters along each axis. */
  function gridOf(
    call: string,
    func: KernelFunction,
    { x, y, z }: ClusterShape,
    gx: number,
    gy: number,
    gz: number,
  ): [number, number, number] {
    if (func.kernel.cluster.gridOfClusters) {
      checkDimension(call, 'grid', 0, gx * x, MAX_GRID_DIM[0]);
      checkDimension(call, 'grid', 1, gy * y, MAX_GRID_DIM[1]);
      checkDimension(call, 'grid', 2, gz * z, MAX_GRID_DIM[2]);
      return [gx * x, gy * y, gz * z];
    }
    if (gx % x !== 0 || gy % y !== 0 || gz % z !== 0)
      invalidValue(
        call,
        `a grid of (${gx},${gy},${gz}) blocks is no multiple of clusters of (${x},${y},${z})`,
      );
    return [gx, gy, gz];
  }

  return {
    cuFuncGetAttribute(attrib, func) {
      return (
        functionOf('cuFuncGetAttribute', func).attribute(attrib) ??
        invalidValue('cuFuncGetAttribute', `${attrib} is not an attribute of a function`)
      );
    },
    cuFuncSetAttribute(handle, attrib, value) {
      const func = functionOf('cuFuncSetAttribute', handle);
      if (CLUSTER_SIZES.includes(attrib) && func.kernel.cluster.required !== undefined) {
        fail(
          'cuFuncSetAttribute',
          CUresult.CUDA_ERROR_NOT_PERMITTED,
          `the clusters of ${func.name} were decided when it was compiled`,
        );
      }
      const problem = func.setAttribute(attrib, value);
      if (problem !== undefined) invalidValue('cuFuncSetAttribute', problem);
    },
    cuFuncSetCacheConfig(func, config) {
      functionOf('cuFuncSetCacheConfig', func);
      if (!(config >= 0 && config <= 3))
        invalidValue('cuFuncSetCacheConfig', `config is ${config}`);
    },
    cuFuncLoad(func) {
      functionOf('cuFuncLoad', func);
    },
    cuFuncGetParamInfo(func, paramIndex) {
      const param = functionOf('cuFuncGetParamInfo', func).kernel.params[paramIndex];
      return param === undefined ? undefined : { offset: param.offset, size: param.size };
    },

    cuOccupancyMaxActiveBlocksPerMultiprocessor(handle, blockSize, dynamicSMemSize) {
      const call = 'cuOccupancyMaxActiveBlocksPerMultiprocessor';
      const func = functionOf(call, handle);
      checkSize(call, 'blockSize', blockSize);
      checkSize(call, 'dynamicSMemSize', dynamicSMemSize);
      if (blockSize === 0) invalidValue(call, 'blockSize is 0');
      return activeBlocks(func, blockSize, dynamicSMemSize);
    },
    /** Of the sizes that keep the most threads busy, the largest. */
    cuOccupancyMaxPotentialBlockSize(handle, dynamicSMemSize, blockSizeLimit) {
      const func = functionOf('cuOccupancyMaxPotentialBlockSize', handle);
      checkSize('cuOccupancyMaxPotentialBlockSize', 'blockSizeLimit', blockSizeLimit);
      const limit = Math.min(
        blockSizeLimit === 0 ? func.maxThreads : blockSizeLimit,
        func.maxThreads,
      );
      let best = 0;
      let blockSize = 0;
      for (let size = limit; size > 0; size = Math.ceil(size / WARP_SIZE) * WARP_SIZE - WARP_SIZE) {
        const busy = activeBlocks(func, size, dynamicSMemSize) * size;
        if (busy > best) {
          best = busy;
          blockSize = size;
        }
      }
      return {
        minGridSize: blockSize === 0 ? 0 : (best / blockSize) * func.context.device.multiprocessors,
        blockSize,
      };
    },
    cuOccupancyAvailableDynamicSMemPerBlock(handle, numBlocks, blockSize) {
      const call = 'cuOccupancyAvailableDynamicSMemPerBlock';
      const func = functionOf(call, handle);
      if (!(numBlocks >= 1) || !(blockSize >= 1))
        invalidValue(call, `${numBlocks} blocks of ${blockSize} threads`);
      if (activeBlocks(func, blockSize, 0) < numBlocks)
        invalidValue(
          call,
          `${numBlocks} blocks of ${blockSize} threads do not fit a multiprocessor`,
        );
      const share = Math.floor(SHARED_PER_MULTIPROCESSOR / numBlocks) - RESERVED_SHARED_PER_BLOCK;
      return Math.max(0, Math.min(share, SHARED_PER_BLOCK_OPTIN) - func.kernel.sharedBytes);
    },
    cuOccupancyMaxActiveClusters(handle, config) {
      const call = 'cuOccupancyMaxActiveClusters';
      const func = functionOf(call, handle);
      const cluster = clusterOf(call, func, config.attrs.clusterDim);
      const threads = config.blockDimX * config.blockDimY * config.blockDimZ;
      return Math.floor(
        (activeBlocks(func, threads, config.sharedMemBytes) * func.context.device.multiprocessors) /
          (cluster?.blocks ?? 1),
      );
    },

    cuLaunchKernel(
      handle,
      gx,
      gy,
      gz,
      bx,
      by,
      bz,
      sharedMemBytes,
      stream,
      params,
      paramStart,
      paramBytes,
    ) {
      const func = functionOf('cuLaunchKernel', handle);
      launch(
        'cuLaunchKernel',
        func,
        gx,
        gy,
        gz,
        bx,
        by,
        bz,
        sharedMemBytes,
        stream,
        false,
        undefined,
        params,
        paramStart,
        paramBytes,
      );
    },
    /** Programmatic serialization and priority are hints that change nothing on this device. */
    cuLaunchKernelEx(c: LaunchConfig, handle, params, paramStart, paramBytes) {
      const call = 'cuLaunchKernelEx';
      const func = functionOf(call, handle);
      launch(
        call,
        func,
        c.gridDimX,
        c.gridDimY,
        c.gridDimZ,
        c.blockDimX,
        c.blockDimY,
        c.blockDimZ,
        c.sharedMemBytes,
        c.hStream,
        c.attrs.cooperative === true,
        c.attrs.clusterDim,
        params,
        paramStart,
        paramBytes,
      );
    },
  };
}
