/**
 * The CUDA driver API as one TypeScript interface between the library and its two devices.
 *
 * Two providers implement it: `libcuda` (the real driver) and `cpu` (the embedded device). Names,
 * arguments and their order are NVIDIA's, with three rules for TypeScript:
 *
 * - a call returns what C returns through its pointers, and throws {@link DriverError} for any
 *   result but CUDA_SUCCESS. The two queries for which "not ready" is a result return the
 *   `CUresult` itself;
 * - handles and addresses are numbers (all of them fit 53 bits), `0` is the null handle. A host
 *   address comes from {@link Driver.cuMemHostRegister} or {@link Driver.cuMemHostAlloc} and is
 *   valid in every thread of the process;
 * - a structure that C takes by pointer is a plain object whose fields have C's names.
 *
 * The provider chooses among `_v2`, `_v3` and the like: it calls the newest that the driver has.
 * Every call acts on the context that is current on the calling thread, as in C.
 */
import type { LaunchBatch } from './launch-batch.js';
import type { CUdeviceptr } from './handles.js';
import type { DeviceCalls } from './libcuda/device-calls.js';
import type { StreamCalls, EventCalls } from './libcuda/stream-calls.js';
import type { MemoryCalls, HostMemoryCalls } from './libcuda/memory-calls.js';
import type { PoolCalls } from './libcuda/pool-calls.js';
import type { CopyCalls } from './libcuda/copy-calls.js';
import type { TensorMapCalls } from './libcuda/tensor-map-calls.js';
import type { TextureCalls } from './libcuda/texture-calls.js';
import type { ModuleCalls, FunctionCalls } from './libcuda/code-calls.js';
import type { LaunchCalls } from './libcuda/launch-calls.js';
import type { GraphCalls } from './libcuda/graph-calls.js';

export type * from './handles.js';
export type * from './structures.js';
export type {
  DeviceCalls,
  StreamCalls,
  EventCalls,
  MemoryCalls,
  HostMemoryCalls,
  PoolCalls,
  CopyCalls,
  TextureCalls,
  TensorMapCalls,
  ModuleCalls,
  FunctionCalls,
  LaunchCalls,
  GraphCalls,
};

/** All calls, by the groups that `libcuda/` declares and calls. */
export interface Driver
  extends
    DeviceCalls,
    StreamCalls,
    EventCalls,
    MemoryCalls,
    HostMemoryCalls,
    PoolCalls,
    CopyCalls,
    TextureCalls,
    TensorMapCalls,
    ModuleCalls,
    FunctionCalls,
    LaunchCalls,
    GraphCalls {
  /** The provider's name. */
  readonly provider: 'libcuda' | 'cpu';
  /**
   * Names an allocation for reports, on a checked CPU device, by these numbers, since one operation
   * may make several.
   */
  nameAllocation?: ((dptr: CUdeviceptr, root: number, handle: number) => void) | undefined;
  /** Returns the provider's fast path for plain launches, where it has one. */
  launchBatch?(): LaunchBatch | undefined;
}

/**
 * A provider whose device runs on the calling thread. The runtime thread calls `poll` whenever it
 * has no command to decode; a GPU does not need it.
 */
export interface PolledDriver extends Driver {
  /**
   * Does the device's work for about `budgetMicroseconds`. Returns true while more could be done at
   * once, false when every stream is empty or waits for the host.
   */
  poll(budgetMicroseconds: number): boolean;
  /**
   * Whether there are streams with work, where {@link poll} has just returned false: all of them
   * wait for the host.
   */
  waits?(): boolean;
}

/**
 * Whether a driver's device runs on the calling thread, so that {@link PolledDriver.poll} has to be
 * called. It is true for the CPU device.
 *
 * @example
 * ```ts
 * const driver = openCpu();
 * driver.cuInit(0);
 * driver.cuDevicePrimaryCtxRetain(driver.cuDeviceGet(0));
 * console.log(isPolled(driver) && driver.poll(100)); // false
 * ```
 */
export function isPolled(driver: Driver): driver is PolledDriver {
  return typeof (driver as Partial<PolledDriver>).poll === 'function';
}
