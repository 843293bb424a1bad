/**
 * Calls that may wait: module load and JIT, plain and pinned allocation, instantiation, queries of
 * the device. Each is a row with plain data as arguments and result. On a GPU they run on the
 * second worker, on the CPU device in the runtime thread (which has its state), in inline mode on
 * the calling thread.
 */
import type {
  CUDA_ARRAY3D_DESCRIPTOR,
  CUDA_RESOURCE_DESC,
  CUDA_TEXTURE_DESC,
  Driver,
} from '../driver/driver.js';
import { DriverError } from '../driver/error.js';
import { CUgraphNodeType, CUjitInputType } from '../driver/flags.js';
import { loadKoffi } from '../native/koffi.js';
import { LibraryCaller, findFunctions } from '../native/library-caller.js';
import type { LibraryFunction, LibraryStatuses } from '../native/library-call.js';
import type { LibraryRow } from '../native/libraries.js';
import { CUresult } from '../ground/result.js';
import { SHORT_GRAPH_NODES } from './commands.js';
import { asOutOfMemory } from './host-allocation.js';
import { PAGE_BYTES, SLOTS_BYTES } from './layout.js';
import { loadModule } from './load-module.js';

/** Makes the calls of `callLibrary`. It is kept: koffi never frees a function's signature. */
let caller: LibraryCaller | undefined;

export interface PinnedInfo {
  /** Where the page-aligned part begins in the buffer, in bytes. */
  byteOffset: number;
  address: number;
  /** The device's address of the memory: the same, where addresses are unified. */
  deviceAddress: number;
}

/** Values of CUdevice_attribute that open reads, by the names of the properties. */
export const OPEN_ATTRIBUTES = {
  maxThreadsPerBlock: 1,
  maxBlockDimX: 2,
  maxBlockDimY: 3,
  maxBlockDimZ: 4,
  maxGridDimX: 5,
  maxGridDimY: 6,
  maxGridDimZ: 7,
  sharedMemoryPerBlock: 8,
  totalConstantMemory: 9,
  warpSize: 10,
  registersPerBlock: 12,
  clockRateKHz: 13,
  multiprocessorCount: 16,
  integrated: 18,
  canMapHostMemory: 19,
  concurrentKernels: 31,
  eccEnabled: 32,
  memoryClockRateKHz: 36,
  memoryBusWidthBits: 37,
  l2CacheBytes: 38,
  maxThreadsPerMultiprocessor: 39,
  asyncEngineCount: 40,
  unifiedAddressing: 41,
  computeCapabilityMajor: 75,
  computeCapabilityMinor: 76,
  sharedMemoryPerMultiprocessor: 81,
  managedMemory: 83,
  concurrentManagedAccess: 89,
  streamMemoryOperations: 92,
  cooperativeLaunch: 95,
  sharedMemoryPerBlockOptin: 97,
  memoryPools: 115,
  clusterLaunch: 120,
} as const;

export type DeviceAttributes = Record<keyof typeof OPEN_ATTRIBUTES, number>;

/** Values of CU_POINTER_ATTRIBUTE_*. */
const POINTER = {
  memoryType: 2,
  isManaged: 8,
  deviceOrdinal: 9,
  rangeStart: 11,
  rangeSize: 12,
} as const;
const CU_MEMORYTYPE_DEVICE = 2;

/** The value of CU_MEMPOOL_ATTR_RELEASE_THRESHOLD. */
const RELEASE_THRESHOLD = 4;
/**
 * Release threshold of the device's own pool until a user sets one: more than a user can request.
 */
const KEEP_WHILE_BUSY = 2 ** 62;

export const PROCEDURES = {
  memoryInfo: (driver: Driver) => driver.cuMemGetInfo(),
  getLimit: (driver: Driver, limit: number) => driver.cuCtxGetLimit(limit),
  setLimit: (driver: Driver, limit: number, value: number) => driver.cuCtxSetLimit(limit, value),

  loadModule,
  /** Returns the machine code that the driver's compiler makes of PTX. */
  link: (driver: Driver, ptx: string) =>
    driver.cuLink([{ type: CUjitInputType.CU_JIT_INPUT_PTX, data: ptx, name: 'module.ptx' }], {
      CU_JIT_LOG_VERBOSE: true,
    }),
  unloadLibrary: (driver: Driver, library: number) => driver.cuLibraryUnload(library),
  getGlobal: (driver: Driver, library: number, name: string) =>
    driver.cuLibraryGetGlobal(library, name),
  maxActiveBlocks: (driver: Driver, func: number, blockSize: number, sharedBytes: number) =>
    driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(func, blockSize, sharedBytes),
  maxPotentialBlockSize: (driver: Driver, func: number, sharedBytes: number, limit: number) =>
    driver.cuOccupancyMaxPotentialBlockSize(func, sharedBytes, limit),
  availableShared: (driver: Driver, func: number, blocks: number, blockSize: number) =>
    driver.cuOccupancyAvailableDynamicSMemPerBlock(func, blocks, blockSize),

  /**
   * Allocates managed memory. The CPU device's memory is shared with every thread, so its view is
   * sent; a view of a GPU's memory is made on the thread that reads it.
   */
  allocManaged: (
    driver: Driver,
    device: number,
    bytes: number,
    flags: number,
    root: number,
  ): { address: number; view: Uint8Array | undefined } => {
    const address = afterTrimming(driver, device, bytes, () =>
      driver.cuMemAllocManaged(bytes, flags),
    );
    driver.nameAllocation?.(address, root, 0);
    return {
      address,
      view: driver.provider === 'cpu' ? driver.hostView(address, bytes) : undefined,
    };
  },
  allocPlain: (driver: Driver, device: number, bytes: number, root: number) => {
    const address = afterTrimming(driver, device, bytes, () => driver.cuMemAlloc(bytes));
    driver.nameAllocation?.(address, root, 0);
    return address;
  },
  freePlain: (driver: Driver, address: number) => driver.cuMemFree(address),
  registerPinned: (driver: Driver, buffer: SharedArrayBuffer, bytes: number): PinnedInfo => {
    const start = driver.hostAddress(buffer);
    const byteOffset = Math.ceil(start / PAGE_BYTES) * PAGE_BYTES - start;
    const rounded = Math.ceil(bytes / PAGE_BYTES) * PAGE_BYTES;
    const address = driver.cuMemHostRegister(buffer, byteOffset, rounded, 3);
    return { byteOffset, address, deviceAddress: driver.cuMemHostGetDevicePointer(address, 0) };
  },
  unregisterPinned: (driver: Driver, address: number) => driver.cuMemHostUnregister(address),

  /**
   * Releases what open created, and the page locks that users left. The staging area's address is
   * that of the slots plus their size. Memory that a GPU's driver allocated is kept, with its
   * context, for the next open: JavaScript may keep views of it for any time.
   */
  closeContext: (
    driver: Driver,
    device: number,
    stagingAddress: number,
    registered: boolean,
    pinned: readonly number[],
  ) => {
    for (const address of pinned) driver.cuMemHostUnregister(address);
    if (!registered && driver.provider === 'libcuda') return;
    if (registered) driver.cuMemHostUnregister(stagingAddress - SLOTS_BYTES);
    else driver.cuMemFreeHost(stagingAddress - SLOTS_BYTES);
    driver.cuDevicePrimaryCtxRelease(device);
  },

  defaultPool: (driver: Driver, device: number) => driver.cuDeviceGetDefaultMemPool(device),
  createPool: (driver: Driver, device: number, maxBytes: number, releaseThreshold: number) => {
    const pool = driver.cuMemPoolCreate({ location: device, maxSize: maxBytes });
    driver.cuMemPoolSetAttribute(pool, RELEASE_THRESHOLD, releaseThreshold);
    return pool;
  },
  /**
   * Sets the device's own pool to keep freed memory. By default it releases everything whenever a
   * stream is synchronised with, and each allocation then maps memory anew: hundreds of
   * microseconds, in which nothing is launched.
   */
  keepPool: (driver: Driver, device: number) =>
    driver.cuMemPoolSetAttribute(
      driver.cuDeviceGetDefaultMemPool(device),
      RELEASE_THRESHOLD,
      KEEP_WHILE_BUSY,
    ),
  destroyPool: (driver: Driver, pool: number) => driver.cuMemPoolDestroy(pool),
  /**
   * Trims a pool. A pool counts a free as complete when its stream was synchronised with (a query
   * has no such effect, driver 580). No other call here synchronises, so this one does, with
   * streams that are known to be idle.
   */
  trimPool: (driver: Driver, pool: number, keepBytes: number, idle: readonly number[]) => {
    for (const stream of idle) driver.cuStreamSynchronize(stream);
    driver.cuMemPoolTrimTo(pool, keepBytes);
  },
  /** Trims all pools, `pools` and the device's own, as far as possible. */
  trimPools: (driver: Driver, device: number, pools: readonly number[]) => {
    for (const pool of [...pools, driver.cuDeviceGetDefaultMemPool(device)])
      driver.cuMemPoolTrimTo(pool, 0);
  },
  /**
   * Trims the device's own pool to its release threshold, or entirely where no threshold was set.
   */
  trimIdle: (driver: Driver, device: number) => {
    const pool = driver.cuDeviceGetDefaultMemPool(device);
    const threshold = driver.cuMemPoolGetAttribute(pool, RELEASE_THRESHOLD);
    driver.cuMemPoolTrimTo(pool, threshold >= KEEP_WHILE_BUSY ? 0 : threshold);
  },
  poolAttribute: (driver: Driver, pool: number, attribute: number) =>
    driver.cuMemPoolGetAttribute(pool, attribute),
  setPoolAttribute: (driver: Driver, pool: number, attribute: number, value: number) =>
    driver.cuMemPoolSetAttribute(pool, attribute, value),

  /** Returns the properties of the memory at an address; undefined where it is unknown. */
  pointerPlace: (driver: Driver, address: number) => {
    const ask = (attribute: number): number | undefined => {
      try {
        return driver.cuPointerGetAttribute(attribute, address);
      } catch (error) {
        if (error instanceof DriverError && error.result === CUresult.CUDA_ERROR_INVALID_VALUE)
          return undefined;
        throw error;
      }
    };
    const type = ask(POINTER.memoryType);
    if (type === undefined) return undefined;
    const [start, bytes] = [ask(POINTER.rangeStart), ask(POINTER.rangeSize)];
    return {
      device: type === CU_MEMORYTYPE_DEVICE,
      managed: ask(POINTER.isManaged) === 1,
      ordinal: ask(POINTER.deviceOrdinal) ?? 0,
      end: start === undefined || bytes === undefined || bytes === 0 ? Infinity : start + bytes,
    };
  },

  createArray: (driver: Driver, description: CUDA_ARRAY3D_DESCRIPTOR) =>
    driver.cuArray3DCreate(description),
  destroyArray: (driver: Driver, array: number) => driver.cuArrayDestroy(array),
  createTexture: (driver: Driver, resource: CUDA_RESOURCE_DESC, description: CUDA_TEXTURE_DESC) =>
    driver.cuTexObjectCreate(resource, description),
  destroyTexture: (driver: Driver, texture: number) => driver.cuTexObjectDestroy(texture),
  createSurface: (driver: Driver, resource: CUDA_RESOURCE_DESC) =>
    driver.cuSurfObjectCreate(resource),
  destroySurface: (driver: Driver, surface: number) => driver.cuSurfObjectDestroy(surface),

  instantiate: (driver: Driver, graph: number, flags: number) => ({
    exec: driver.cuGraphInstantiate(graph, flags),
    short: isShort(driver, graph),
  }),
  updateGraph: (driver: Driver, exec: number, graph: number) =>
    driver.cuGraphExecUpdate(exec, graph),
  destroyGraph: (driver: Driver, graph: number, exec: number) => {
    if (exec !== 0) driver.cuGraphExecDestroy(exec);
    if (graph !== 0) driver.cuGraphDestroy(graph);
  },
  /**
   * Frees what the last launch of a graph has left allocated. That is nothing where the launch
   * failed.
   */
  freeNodeMemory: (driver: Driver, addresses: readonly number[], stream: number) => {
    for (const address of addresses) {
      try {
        driver.cuMemFreeAsync(address, stream);
      } catch (error) {
        if (!(error instanceof DriverError) || error.result !== CUresult.CUDA_ERROR_INVALID_VALUE)
          throw error;
      }
    }
  },
  uploadGraph: (driver: Driver, exec: number, stream: number) => driver.cuGraphUpload(exec, stream),
  graphNodeTypes: (driver: Driver, graph: number) =>
    driver.cuGraphGetNodes(graph).map((node) => driver.cuGraphNodeGetType(node)),
  graphDot: (driver: Driver, graph: number, path: string, flags: number) =>
    driver.cuGraphDebugDotPrint(graph, path, flags),

  canAccessPeer: (driver: Driver, device: number, peer: number) =>
    driver.cuDeviceCanAccessPeer(device, peer),
  enablePeerAccess: (driver: Driver, peer: number) => {
    try {
      driver.cuCtxEnablePeerAccess(peer, 0);
    } catch (error) {
      if (
        !(error instanceof DriverError) ||
        error.result !== CUresult.CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED
      )
        throw error;
    }
  },
  disablePeerAccess: (driver: Driver, peer: number) => {
    try {
      driver.cuCtxDisablePeerAccess(peer);
    } catch (error) {
      if (
        !(error instanceof DriverError) ||
        error.result !== CUresult.CUDA_ERROR_PEER_ACCESS_NOT_ENABLED
      )
        throw error;
    }
  },
  /**
   * Sets access to memory that was allocated from pools, which enabling peer access does not
   * include.
   */
  setPoolAccess: (
    driver: Driver,
    pools: readonly number[],
    device: number,
    access: 'none' | 'readwrite',
  ) => {
    for (const pool of pools) driver.cuMemPoolSetAccess(pool, device, access);
  },

  /** Loads a library, which may take a second, and returns the addresses of its functions. */
  findFunctions: (
    _driver: Driver,
    koffiPath: string | undefined,
    row: LibraryRow,
    file: string | undefined,
    names: readonly string[],
  ) => findFunctions(koffiPath, row, file, names),
  /**
   * Calls a function of a library that is not part of a stream's order and may wait: plans,
   * workspaces, versions. Returns the words of its arguments as they are afterwards, with what it
   * wrote to the host.
   */
  callLibrary: (
    _driver: Driver,
    koffiPath: string | undefined,
    statuses: LibraryStatuses,
    func: LibraryFunction,
    words: Int32Array,
  ) => {
    caller ??= new LibraryCaller(koffiPath);
    return caller.ask(statuses, func, words);
  },

  /**
   * Returns where the memory of a CPU device begins in the process: its own addresses are relative
   * to that.
   */
  memoryBase: (driver: Driver, koffiPath: string | undefined, context: number) => {
    const { memory } = driver.shareContext(context);
    return Number(
      loadKoffi(koffiPath).address(new Uint8Array((memory as WebAssembly.Memory).buffer)),
    );
  },

  elapsed: (driver: Driver, start: number, end: number) => driver.cuEventElapsedTime(start, end),
  /**
   * Returns the milliseconds from one event to each of the others; NaN for an event that was not
   * recorded.
   */
  elapsedEach: (driver: Driver, start: number, ends: Float64Array) =>
    ends.map((end) => {
      try {
        return driver.cuEventElapsedTime(start, end);
      } catch {
        return NaN;
      }
    }),
} as const;

const SHORT_KINDS: readonly number[] = [
  CUgraphNodeType.CU_GRAPH_NODE_TYPE_KERNEL,
  CUgraphNodeType.CU_GRAPH_NODE_TYPE_MEMCPY,
  CUgraphNodeType.CU_GRAPH_NODE_TYPE_MEMSET,
  CUgraphNodeType.CU_GRAPH_NODE_TYPE_EMPTY,
];

/** Whether launching the graph takes so little time that the JavaScript thread may do it. */
function isShort(driver: Driver, graph: number): boolean {
  if (driver.provider !== 'libcuda') return false;
  const nodes = driver.cuGraphGetNodes(graph);
  return (
    nodes.length <= SHORT_GRAPH_NODES &&
    nodes.every((node) => SHORT_KINDS.includes(driver.cuGraphNodeGetType(node)))
  );
}

/**
 * Allocates. Where there is too little memory, it trims the device's own pool and tries once more.
 */
function afterTrimming(
  driver: Driver,
  device: number,
  bytes: number,
  allocate: () => number,
): number {
  try {
    return allocate();
  } catch (thrown) {
    const error = asOutOfMemory(thrown, bytes);
    if (!(error instanceof DriverError) || error.result !== CUresult.CUDA_ERROR_OUT_OF_MEMORY)
      throw error;
    try {
      driver.cuMemPoolTrimTo(driver.cuDeviceGetDefaultMemPool(device), 0);
    } catch {
      // There is no pool that could be trimmed.
      throw error;
    }
    try {
      return allocate();
    } catch (again) {
      throw asOutOfMemory(again, bytes);
    }
  }
}

export type Procedures = typeof PROCEDURES;
export type ProcedureName = keyof Procedures;
type Rest<F> = F extends (driver: Driver, ...args: infer A) => unknown ? A : never;
export type ProcedureArguments<N extends ProcedureName> = Rest<Procedures[N]>;
export type ProcedureResult<N extends ProcedureName> = ReturnType<Procedures[N]>;

export function runProcedure(driver: Driver, name: string, args: readonly unknown[]): unknown {
  const procedure = PROCEDURES[name as ProcedureName] as (
    driver: Driver,
    ...args: unknown[]
  ) => unknown;
  return procedure(driver, ...args);
}
