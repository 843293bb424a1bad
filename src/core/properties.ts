/** The properties of a device. */
import type { OpenReply } from '../runtime/messages.js';

/** The properties of a device, with units in their names. cuDeviceGetAttribute */
export interface DeviceProperties {
  /** Major and minor version. */
  computeCapability: readonly [major: number, minor: number];
  /** The CUDA version that the driver supports, e.g. `13.0`. */
  driverVersion: string;
  /** `GPU-` and 16 bytes in hexadecimal. cuDeviceGetUuid */
  uuid: string;
  /** `domain:bus:device.function`. cuDeviceGetPCIBusId */
  pciBusId: string;
  /** Bytes. */
  totalMemory: number;
  multiprocessorCount: number;
  /** Threads. */
  warpSize: number;
  /** Threads. */
  maxThreadsPerBlock: number;
  /** Threads. */
  maxThreadsPerMultiprocessor: number;
  /** Threads in x, y and z. */
  maxBlock: readonly [number, number, number];
  /** Blocks in x, y and z. */
  maxGrid: readonly [number, number, number];
  /** Bytes. */
  sharedMemoryPerBlock: number;
  /** Bytes; the most that a launch may have. */
  sharedMemoryPerBlockOptin: number;
  /** Bytes. */
  sharedMemoryPerMultiprocessor: number;
  /** 32-bit registers. */
  registersPerBlock: number;
  /** Bytes. */
  totalConstantMemory: number;
  /** Bytes. */
  l2CacheBytes: number;
  clockRateKHz: number;
  memoryClockRateKHz: number;
  memoryBusWidthBits: number;
  integrated: boolean;
  eccEnabled: boolean;
  concurrentKernels: boolean;
  /** Whether a launch may be {@link LaunchOptions.cooperative}. */
  cooperativeLaunch: boolean;
  /** Whether a launch may have {@link LaunchOptions.cluster}. */
  clusterLaunch: boolean;
  /** Whether the device has `CoreDevice.managed` memory. */
  managedMemory: boolean;
  /** Whether host and device may use managed memory at the same time. */
  concurrentManagedAccess: boolean;
  /**
   * Whether the device has stream-ordered memory pools. Without them allocations are plain ones.
   */
  memoryPools: boolean;
}

export function propertiesOf(info: OpenReply): DeviceProperties {
  const a = info.attributes;
  const { driverVersion: version } = info;
  const hex = [...info.uuid].map((byte) => byte.toString(16).padStart(2, '0')).join('');
  return {
    computeCapability: [a.computeCapabilityMajor, a.computeCapabilityMinor],
    driverVersion: `${Math.floor(version / 1000)}.${Math.floor((version % 1000) / 10)}`,
    uuid: `GPU-${[0, 8, 12, 16, 20].map((from, i, all) => hex.slice(from, all[i + 1])).join('-')}`,
    pciBusId: info.pciBusId,
    totalMemory: info.totalMemory,
    multiprocessorCount: a.multiprocessorCount,
    warpSize: a.warpSize,
    maxThreadsPerBlock: a.maxThreadsPerBlock,
    maxThreadsPerMultiprocessor: a.maxThreadsPerMultiprocessor,
    maxBlock: [a.maxBlockDimX, a.maxBlockDimY, a.maxBlockDimZ],
    maxGrid: [a.maxGridDimX, a.maxGridDimY, a.maxGridDimZ],
    sharedMemoryPerBlock: a.sharedMemoryPerBlock,
    sharedMemoryPerBlockOptin: Math.max(a.sharedMemoryPerBlockOptin, a.sharedMemoryPerBlock),
    sharedMemoryPerMultiprocessor: a.sharedMemoryPerMultiprocessor,
    registersPerBlock: a.registersPerBlock,
    totalConstantMemory: a.totalConstantMemory,
    l2CacheBytes: a.l2CacheBytes,
    clockRateKHz: a.clockRateKHz,
    memoryClockRateKHz: a.memoryClockRateKHz,
    memoryBusWidthBits: a.memoryBusWidthBits,
    integrated: a.integrated !== 0,
    eccEnabled: a.eccEnabled !== 0,
    concurrentKernels: a.concurrentKernels !== 0,
    cooperativeLaunch: a.cooperativeLaunch !== 0,
    clusterLaunch: a.clusterLaunch !== 0,
    managedMemory: a.managedMemory !== 0,
    concurrentManagedAccess: a.concurrentManagedAccess !== 0,
    memoryPools: a.memoryPools !== 0,
  };
}
