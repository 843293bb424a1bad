/**
 * The attributes of the embedded device: the limits of its compute capability, and of later
 * features those that the PTX compiler supports, such as clusters. PTX for a later target is
 * accepted all the same. Attributes that are not listed are features that the device does not have,
 * and are 0.
 */
import { CUdevice_attribute as A } from '../attributes.js';

/** The attributes in which devices differ. */
interface DeviceProperties {
  readonly ordinal: number;
  readonly multiprocessors: number;
  readonly computeCapability: number;
}

export const MAX_THREADS_PER_BLOCK = 1024;
export const MAX_BLOCK_DIM = [1024, 1024, 64] as const;
export const MAX_GRID_DIM = [2147483647, 65535, 65535] as const;
export const WARP_SIZE = 32;
/**
 * Shared memory of a block, in bytes: what every kernel may use, and what one may use after it
 * requested more.
 */
export const SHARED_PER_BLOCK = 48 * 1024;
export const SHARED_PER_BLOCK_OPTIN = 227 * 1024;
export const SHARED_PER_MULTIPROCESSOR = 228 * 1024;
export const RESERVED_SHARED_PER_BLOCK = 1024;
export const THREADS_PER_MULTIPROCESSOR = 2048;
export const BLOCKS_PER_MULTIPROCESSOR = 32;
/**
 * Blocks of a cluster: the limit, and the limit once the kernel allows sizes that not every GPU
 * supports.
 */
export const PORTABLE_CLUSTER = 8;
export const MAX_CLUSTER = 16;
export const MAX_PITCH = 2147483647;
export const REGISTERS = 65536;

const ANSWERS: Readonly<Record<number, number | ((device: DeviceProperties) => number)>> = {
  [A.CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK]: MAX_THREADS_PER_BLOCK,
  [A.CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X]: MAX_BLOCK_DIM[0],
  [A.CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y]: MAX_BLOCK_DIM[1],
  [A.CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z]: MAX_BLOCK_DIM[2],
  [A.CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X]: MAX_GRID_DIM[0],
  [A.CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y]: MAX_GRID_DIM[1],
  [A.CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z]: MAX_GRID_DIM[2],
  [A.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK]: SHARED_PER_BLOCK,
  [A.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN]: SHARED_PER_BLOCK_OPTIN,
  [A.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR]: SHARED_PER_MULTIPROCESSOR,
  [A.CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK]: RESERVED_SHARED_PER_BLOCK,
  [A.CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY]: 65536,
  [A.CU_DEVICE_ATTRIBUTE_WARP_SIZE]: WARP_SIZE,
  [A.CU_DEVICE_ATTRIBUTE_MAX_PITCH]: MAX_PITCH,
  [A.CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK]: REGISTERS,
  [A.CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR]: REGISTERS,
  [A.CU_DEVICE_ATTRIBUTE_CLOCK_RATE]: 1_000_000,
  [A.CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE]: 1_000_000,
  [A.CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH]: 64,
  [A.CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE]: 2 ** 20,
  [A.CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT]: 256,
  [A.CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT]: 32,
  [A.CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT]: 512,
  [A.CU_DEVICE_ATTRIBUTE_GPU_OVERLAP]: 1,
  [A.CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT]: 1,
  [A.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT]: (device) => device.multiprocessors,
  [A.CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS]: 1,
  [A.CU_DEVICE_ATTRIBUTE_PCI_BUS_ID]: (device) => 0xc0 + device.ordinal,
  [A.CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR]: THREADS_PER_MULTIPROCESSOR,
  [A.CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR]: BLOCKS_PER_MULTIPROCESSOR,
  [A.CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING]: 1,
  [A.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR]: (device) =>
    Math.floor(device.computeCapability / 10),
  [A.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR]: (device) => device.computeCapability % 10,
  [A.CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED]: 1,
  [A.CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED]: 1,
  [A.CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED]: 1,
  [A.CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY]: 1,
  [A.CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS]: 1,
  [A.CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST]: 1,
  [A.CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO]: 2,
  [A.CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED]: 1,
  [A.CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS]: 1,
  [A.CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR]: 1,
  [A.CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH]: 1,
  [A.CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH]: 1,
  [A.CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED]: 1,
  [A.CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED]: 1,
  [A.CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED]: 1,
};

const known = new Set<number>(Object.values(A));

/** Returns undefined for a number that is no attribute. */
export function deviceAttribute(device: DeviceProperties, attribute: number): number | undefined {
  if (!known.has(attribute)) return undefined;
  const answer = ANSWERS[attribute];
  return typeof answer === 'function' ? answer(device) : (answer ?? 0);
}
