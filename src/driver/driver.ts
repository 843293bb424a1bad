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
import type { CUresult } from '../ground/result.js';

export type CUdevice = number;
export type CUcontext = number;
export type CUstream = number;
export type CUevent = number;
export type CUmodule = number;
export type CUlibrary = number;
export type CUkernel = number;
export type CUfunction = number;
export type CUgraph = number;
export type CUgraphNode = number;
export type CUgraphExec = number;
/** All 64 bits of it count: it is not an address. */
export type CUgraphConditionalHandle = bigint;
export type CUmemoryPool = number;
export type CUarray = number;
export type CUtexObject = number;
export type CUsurfObject = number;
/** A device address in bytes. */
export type CUdeviceptr = number;
/** A host address in bytes of memory that was registered with the driver or allocated by it. */
export type HostAddress = number;

/** A 2-D copy; offsets, widths and pitches in bytes, heights in rows. */
export interface CUDA_MEMCPY2D {
  srcXInBytes: number;
  srcY: number;
  srcMemoryType: number;
  srcHost: HostAddress;
  srcDevice: CUdeviceptr;
  srcPitch: number;
  /** Used with CU_MEMORYTYPE_ARRAY, as `dstArray`. */
  srcArray?: CUarray;
  dstXInBytes: number;
  dstY: number;
  dstMemoryType: number;
  dstHost: HostAddress;
  dstDevice: CUdeviceptr;
  dstPitch: number;
  dstArray?: CUarray;
  WidthInBytes: number;
  Height: number;
}

/** A 3-D copy; widths and pitches in bytes, heights in rows, depths in slices. */
export interface CUDA_MEMCPY3D {
  srcXInBytes: number;
  srcY: number;
  srcZ: number;
  srcMemoryType: number;
  srcHost: HostAddress;
  srcDevice: CUdeviceptr;
  srcPitch: number;
  srcHeight: number;
  /** Used with CU_MEMORYTYPE_ARRAY, as `dstArray`. */
  srcArray?: CUarray;
  dstXInBytes: number;
  dstY: number;
  dstZ: number;
  dstMemoryType: number;
  dstHost: HostAddress;
  dstDevice: CUdeviceptr;
  dstPitch: number;
  dstHeight: number;
  dstArray?: CUarray;
  WidthInBytes: number;
  Height: number;
  Depth: number;
}

/** An array of one or two dimensions; a height of 0 means one dimension. */
export interface CUDA_ARRAY_DESCRIPTOR {
  /** The width in texels. */
  Width: number;
  Height: number;
  /** A value of CUarray_format. */
  Format: number;
  /** 1, 2 or 4 */
  NumChannels: number;
}

/**
 * An array of up to three dimensions, or of layers, whose number is then `Depth`. Absent dimensions
 * are 0.
 */
export interface CUDA_ARRAY3D_DESCRIPTOR extends CUDA_ARRAY_DESCRIPTOR {
  Depth: number;
  /** A combination of CUDA_ARRAY3D_*. */
  Flags: number;
}

/**
 * The memory of a texture or surface: the fields of the union's member that `resType`
 * (CUresourcetype) selects.
 */
export interface CUDA_RESOURCE_DESC {
  resType: number;
  array?: { hArray: CUarray };
  linear?: { devPtr: CUdeviceptr; format: number; numChannels: number; sizeInBytes: number };
  pitch2D?: {
    devPtr: CUdeviceptr;
    format: number;
    numChannels: number;
    width: number;
    height: number;
    pitchInBytes: number;
  };
}

/** How a texture reads. */
export interface CUDA_TEXTURE_DESC {
  /** The CUaddress_mode of each dimension. */
  addressMode: readonly [number, number, number];
  /** A value of CUfilter_mode. */
  filterMode: number;
  /** A combination of CU_TRSF_*. */
  flags: number;
  maxAnisotropy?: number;
  mipmapFilterMode?: number;
  mipmapLevelBias?: number;
  minMipmapLevelClamp?: number;
  maxMipmapLevelClamp?: number;
  borderColor?: readonly [number, number, number, number];
}

/** A 3-D copy between two contexts. */
export interface CUDA_MEMCPY3D_PEER extends CUDA_MEMCPY3D {
  srcContext: CUcontext;
  dstContext: CUcontext;
}

/** A context for another thread's provider: plain data for a message. */
export interface SharedContext {
  /** libcuda: the context itself. Handles are the process's. */
  context?: CUcontext;
  /** The memory of the CPU device, a shared WebAssembly.Memory. */
  memory?: object;
}

/** A context of another thread's provider, as this provider uses it. */
export interface AdoptedContext {
  /**
   * The context's handle here. It serves {@link Driver.cuMemcpyPeerAsync} and
   * {@link Driver.cuMemcpy3DPeerAsync} only.
   */
  context: CUcontext;
  /** The offset that is added to the other's addresses to get the addresses of copies here. */
  addressOffset: number;
}

/** Launch attributes of cuLaunchKernelEx; absent ones have the driver's default. */
export interface LaunchAttributes {
  /** CU_LAUNCH_ATTRIBUTE_COOPERATIVE */
  cooperative?: boolean;
  /** CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, in blocks */
  clusterDim?: readonly [number, number, number];
  /**
   * CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE: 0 default, 1 spread, 2 load balancing
   */
  clusterSchedulingPolicyPreference?: number;
  /** CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION (programmatic dependent launch) */
  programmaticStreamSerialization?: boolean;
  /** CU_LAUNCH_ATTRIBUTE_PRIORITY */
  priority?: number;
}

/** Properties of a pool for cuMemPoolCreate. */
export interface CUmemPoolProps {
  /** The ordinal of the device that the memory lives on. */
  location: CUdevice;
  /** The upper bound in bytes; 0 for the driver's default. */
  maxSize?: number;
}

/** Options of the JIT; names follow CU_JIT_*. */
export interface JitOptions {
  CU_JIT_MAX_REGISTERS?: number;
  CU_JIT_THREADS_PER_BLOCK?: number;
  CU_JIT_OPTIMIZATION_LEVEL?: number;
  CU_JIT_TARGET?: number;
  CU_JIT_GENERATE_DEBUG_INFO?: boolean;
  CU_JIT_GENERATE_LINE_INFO?: boolean;
  CU_JIT_LOG_VERBOSE?: boolean;
  CU_JIT_CACHE_MODE?: number;
}

/**
 * The logs of the JIT. They are also properties of the {@link DriverError} of a failed load,
 * `infoLog` and `errorLog`.
 */
export interface JitLogs {
  infoLog: string;
  errorLog: string;
}

/** Offset and size in bytes of one kernel parameter, as cuFuncGetParamInfo returns them. */
export interface ParamInfo {
  offset: number;
  size: number;
}

export interface CaptureInfo {
  /** CU_STREAM_CAPTURE_STATUS_*: 0 none, 1 active, 2 invalidated */
  status: number;
  id: number;
  /** The graph that is being captured. It is set while a capture is active, from CUDA 11.3 on. */
  graph?: CUgraph;
  /** The nodes that the next node of the stream will depend on. Set as {@link graph}. */
  dependencies?: CUgraphNode[];
}

/** CUgraphNodeParams of a conditional node: CUDA_CONDITIONAL_NODE_PARAMS. */
export interface ConditionalNodeParams {
  handle: CUgraphConditionalHandle;
  /** CU_GRAPH_COND_TYPE_*: 0 if, 1 while, 2 switch */
  type: number;
  /**
   * The number of bodies: 1 for a while; for an if 1, or 2 with an else (CUDA 12.8); for a switch
   * any.
   */
  size: number;
  ctx: CUcontext;
}

export interface GraphExecUpdateResult {
  /** CU_GRAPH_EXEC_UPDATE_*: 0 success */
  result: number;
  errorNode: CUgraphNode;
}

export interface Driver {
  /** The provider's name. */
  readonly provider: 'libcuda' | 'cpu';

  // Initialisation, devices
  cuInit(flags: number): void;
  /** The driver's CUDA version, e.g. 13000 for CUDA 13.0. */
  cuDriverGetVersion(): number;
  cuDeviceGetCount(): number;
  cuDeviceGet(ordinal: number): CUdevice;
  cuDeviceGetName(dev: CUdevice): string;
  /** Returns 16 bytes. */
  cuDeviceGetUuid(dev: CUdevice): Uint8Array;
  cuDeviceGetPCIBusId(dev: CUdevice): string;
  /** Returns bytes. */
  cuDeviceTotalMem(dev: CUdevice): number;
  /** `attrib` is a value of `CUdevice_attribute`. */
  cuDeviceGetAttribute(attrib: number, dev: CUdevice): number;
  cuDeviceCanAccessPeer(dev: CUdevice, peerDev: CUdevice): boolean;
  cuDeviceGetDefaultMemPool(dev: CUdevice): CUmemoryPool;
  cuDeviceGetMemPool(dev: CUdevice): CUmemoryPool;
  cuDeviceSetMemPool(dev: CUdevice, pool: CUmemoryPool): void;

  // Contexts
  cuDevicePrimaryCtxRetain(dev: CUdevice): CUcontext;
  cuDevicePrimaryCtxRelease(dev: CUdevice): void;
  cuDevicePrimaryCtxReset(dev: CUdevice): void;
  cuDevicePrimaryCtxSetFlags(dev: CUdevice, flags: number): void;
  cuDevicePrimaryCtxGetState(dev: CUdevice): { flags: number; active: boolean };
  cuCtxSetCurrent(ctx: CUcontext): void;
  cuCtxGetCurrent(): CUcontext;
  /** Waits for the device. The runtime thread never calls it. */
  cuCtxSynchronize(): void;
  cuCtxGetStreamPriorityRange(): { leastPriority: number; greatestPriority: number };
  /** `limit` is a value of `CUlimit`; the result is in bytes or a count, as NVIDIA defines it. */
  cuCtxGetLimit(limit: number): number;
  cuCtxSetLimit(limit: number, value: number): void;
  cuCtxEnablePeerAccess(peerContext: CUcontext, flags: number): void;
  cuCtxDisablePeerAccess(peerContext: CUcontext): void;
  /**
   * Names an allocation for reports, on a checked CPU device, by these numbers, since one operation
   * may make several.
   */
  nameAllocation?: ((dptr: CUdeviceptr, root: number, handle: number) => void) | undefined;
  /** Returns the data that another thread's provider needs to copy from and to this context. */
  shareContext(ctx: CUcontext): SharedContext;
  /** Returns the context that another thread's provider shared, for copies between the two. */
  adoptContext(shared: SharedContext): AdoptedContext;
  /** Ends what {@link adoptContext} began. Copies that are queued still run. */
  disownContext(adopted: AdoptedContext): void;

  // Streams
  cuStreamCreateWithPriority(flags: number, priority: number): CUstream;
  cuStreamDestroy(stream: CUstream): void;
  /**
   * Returns CUDA_SUCCESS, CUDA_ERROR_NOT_READY, or the fault that the stream met; none is thrown.
   */
  cuStreamQuery(stream: CUstream): CUresult;
  /** Waits for the stream. The runtime thread never calls it, except where that returns at once. */
  cuStreamSynchronize(stream: CUstream): void;
  cuStreamWaitEvent(stream: CUstream, event: CUevent, flags: number): void;
  cuStreamGetPriority(stream: CUstream): number;
  cuStreamGetFlags(stream: CUstream): number;
  cuStreamWriteValue32(stream: CUstream, addr: CUdeviceptr, value: number, flags: number): void;
  /** `flags`: CU_STREAM_WAIT_VALUE_GEQ 0, EQ 1, AND 2, NOR 3. */
  cuStreamWaitValue32(stream: CUstream, addr: CUdeviceptr, value: number, flags: number): void;
  cuStreamWriteValue64(stream: CUstream, addr: CUdeviceptr, value: bigint, flags: number): void;
  /** `flags` as for {@link cuStreamWaitValue32}. */
  cuStreamWaitValue64(stream: CUstream, addr: CUdeviceptr, value: bigint, flags: number): void;
  /** `mode`: CU_STREAM_CAPTURE_MODE_GLOBAL 0, THREAD_LOCAL 1, RELAXED 2. */
  cuStreamBeginCapture(stream: CUstream, mode: number): void;
  /** Returns the graph; 0 where the capture was invalidated without an error. */
  cuStreamEndCapture(stream: CUstream): CUgraph;
  cuStreamGetCaptureInfo(stream: CUstream): CaptureInfo;
  /**
   * Captures into an existing graph, after the given nodes. `mode` as for
   * {@link cuStreamBeginCapture}. CUDA 12.3 or later.
   */
  cuStreamBeginCaptureToGraph(
    stream: CUstream,
    graph: CUgraph,
    dependencies: readonly CUgraphNode[],
    mode: number,
  ): void;
  /** `flags`: CU_STREAM_ADD_CAPTURE_DEPENDENCIES 0, SET 1. CUDA 12.3 or later. */
  cuStreamUpdateCaptureDependencies(
    stream: CUstream,
    dependencies: readonly CUgraphNode[],
    flags: number,
  ): void;

  // Events
  cuEventCreate(flags: number): CUevent;
  cuEventRecord(event: CUevent, stream: CUstream): void;
  /** Returns CUDA_SUCCESS, CUDA_ERROR_NOT_READY or a fault; none is thrown. */
  cuEventQuery(event: CUevent): CUresult;
  /** Waits for the event. The runtime thread never calls it, except where that returns at once. */
  cuEventSynchronize(event: CUevent): void;
  cuEventDestroy(event: CUevent): void;
  /** Returns milliseconds. */
  cuEventElapsedTime(start: CUevent, end: CUevent): number;

  // Memory; sizes in bytes
  cuMemGetInfo(): { free: number; total: number };
  cuMemAlloc(bytesize: number): CUdeviceptr;
  cuMemAllocPitch(
    widthInBytes: number,
    height: number,
    elementSizeBytes: number,
  ): { dptr: CUdeviceptr; pitch: number };
  cuMemFree(dptr: CUdeviceptr): void;
  cuMemAllocAsync(bytesize: number, stream: CUstream): CUdeviceptr;
  cuMemAllocFromPoolAsync(bytesize: number, pool: CUmemoryPool, stream: CUstream): CUdeviceptr;
  cuMemFreeAsync(dptr: CUdeviceptr, stream: CUstream): void;
  /** `flags`: CU_MEM_ATTACH_GLOBAL 1, HOST 2, SINGLE 4. */
  cuMemAllocManaged(bytesize: number, flags: number): CUdeviceptr;
  /** `flags`: CU_MEMHOSTALLOC_PORTABLE 1, DEVICEMAP 2, WRITECOMBINED 4. */
  cuMemHostAlloc(bytesize: number, flags: number): HostAddress;
  cuMemFreeHost(p: HostAddress): void;
  /**
   * Page-locks `bytesize` bytes of `buffer` from `byteOffset` on and returns their address. The
   * caller keeps `buffer` referenced until cuMemHostUnregister. `flags`:
   * CU_MEMHOSTREGISTER_PORTABLE 1, DEVICEMAP 2.
   */
  cuMemHostRegister(
    buffer: SharedArrayBuffer,
    byteOffset: number,
    bytesize: number,
    flags: number,
  ): HostAddress;
  cuMemHostUnregister(p: HostAddress): void;
  /**
   * Returns the address at which `buffer` begins, to find a page boundary in it. It is no address
   * for the driver until it is registered.
   */
  hostAddress(buffer: SharedArrayBuffer): HostAddress;
  cuMemHostGetDevicePointer(p: HostAddress, flags: number): CUdeviceptr;
  /**
   * Returns the bytes of host memory of the driver, or of managed memory; their lifetime is that
   * memory's. Read and write through a view of `.buffer` from `.byteOffset` on.
   */
  hostView(p: HostAddress, bytesize: number): Uint8Array;
  cuMemPrefetchAsync(dptr: CUdeviceptr, count: number, dstDevice: CUdevice, stream: CUstream): void;
  cuMemAdvise(dptr: CUdeviceptr, count: number, advice: number, device: CUdevice): void;
  /** `attribute` is a value of `CUpointer_attribute` with a 32- or 64-bit result. */
  cuPointerGetAttribute(attribute: number, ptr: CUdeviceptr): number;

  // Memory pools; sizes in bytes
  cuMemPoolCreate(props: CUmemPoolProps): CUmemoryPool;
  cuMemPoolDestroy(pool: CUmemoryPool): void;
  cuMemPoolTrimTo(pool: CUmemoryPool, minBytesToKeep: number): void;
  /** `attr` is a value of `CUmemPool_attribute`. */
  cuMemPoolGetAttribute(pool: CUmemoryPool, attr: number): number;
  cuMemPoolSetAttribute(pool: CUmemoryPool, attr: number, value: number): void;
  /** Sets read and write access for `device` to the pool's memory, or none. */
  cuMemPoolSetAccess(pool: CUmemoryPool, device: CUdevice, access: 'none' | 'readwrite'): void;

  // Copies and fills: all of them asynchronous, host ends page-locked. Sizes in bytes.
  cuMemcpyHtoDAsync(
    dstDevice: CUdeviceptr,
    srcHost: HostAddress,
    byteCount: number,
    stream: CUstream,
  ): void;
  cuMemcpyDtoHAsync(
    dstHost: HostAddress,
    srcDevice: CUdeviceptr,
    byteCount: number,
    stream: CUstream,
  ): void;
  cuMemcpyDtoDAsync(
    dstDevice: CUdeviceptr,
    srcDevice: CUdeviceptr,
    byteCount: number,
    stream: CUstream,
  ): void;
  cuMemcpyPeerAsync(
    dstDevice: CUdeviceptr,
    dstContext: CUcontext,
    srcDevice: CUdeviceptr,
    srcContext: CUcontext,
    byteCount: number,
    stream: CUstream,
  ): void;
  cuMemcpy2DAsync(copy: CUDA_MEMCPY2D, stream: CUstream): void;
  cuMemcpy3DAsync(copy: CUDA_MEMCPY3D, stream: CUstream): void;
  cuMemcpy3DPeerAsync(copy: CUDA_MEMCPY3D_PEER, stream: CUstream): void;
  /** Writes `n` elements of 8, 16 or 32 bits. */
  cuMemsetD8Async(dstDevice: CUdeviceptr, value: number, n: number, stream: CUstream): void;
  cuMemsetD16Async(dstDevice: CUdeviceptr, value: number, n: number, stream: CUstream): void;
  cuMemsetD32Async(dstDevice: CUdeviceptr, value: number, n: number, stream: CUstream): void;
  /** Writes `height` rows of `width` elements, `dstPitch` bytes apart. */
  cuMemsetD2D8Async(
    dstDevice: CUdeviceptr,
    dstPitch: number,
    value: number,
    width: number,
    height: number,
    stream: CUstream,
  ): void;
  cuMemsetD2D16Async(
    dstDevice: CUdeviceptr,
    dstPitch: number,
    value: number,
    width: number,
    height: number,
    stream: CUstream,
  ): void;
  cuMemsetD2D32Async(
    dstDevice: CUdeviceptr,
    dstPitch: number,
    value: number,
    width: number,
    height: number,
    stream: CUstream,
  ): void;

  // Arrays, textures and surfaces
  cuArrayCreate(desc: CUDA_ARRAY_DESCRIPTOR): CUarray;
  cuArray3DCreate(desc: CUDA_ARRAY3D_DESCRIPTOR): CUarray;
  cuArrayDestroy(hArray: CUarray): void;
  cuTexObjectCreate(resDesc: CUDA_RESOURCE_DESC, texDesc: CUDA_TEXTURE_DESC): CUtexObject;
  cuTexObjectDestroy(texObject: CUtexObject): void;
  cuSurfObjectCreate(resDesc: CUDA_RESOURCE_DESC): CUsurfObject;
  cuSurfObjectDestroy(surfObject: CUsurfObject): void;

  // Modules, libraries, linker. `image` is PTX text (no terminating zero needed), cubin or fatbin
  // bytes.
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

  // Functions; `attrib` is a value of `CUfunction_attribute`
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

  // Occupancy
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
  cuOccupancyMaxActiveClusters(func: CUfunction, config: LaunchConfig): number;

  // Launch. The kernel's parameters are packed as its parameter space lays them out: `paramBytes`
  // bytes of `params` from word `paramStart` on. The bytes end exactly where the last parameter
  // does: for a larger size (rounded up to words, for example) the driver refuses the launch with
  // CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES.
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

  // Graphs
  cuGraphCreate(): CUgraph;
  cuGraphDestroy(graph: CUgraph): void;
  cuGraphClone(graph: CUgraph): CUgraph;
  cuGraphGetNodes(graph: CUgraph): CUgraphNode[];
  /**
   * Returns a CUgraphNodeType: 0 kernel, 1 memcpy, 2 memset, 3 host, 4 graph, 5 empty, 6 wait
   * event, 7 event record, …
   */
  cuGraphNodeGetType(node: CUgraphNode): number;
  /**
   * Creates the condition of a conditional node of the graph; kernels of the same context set it
   * with cudaGraphSetConditional. `flags`: CU_GRAPH_COND_ASSIGN_DEFAULT 1: each launch begins with
   * `defaultLaunchValue`. CUDA 12.3 or later.
   */
  cuGraphConditionalHandleCreate(
    graph: CUgraph,
    ctx: CUcontext,
    defaultLaunchValue: number,
    flags: number,
  ): CUgraphConditionalHandle;
  /**
   * Adds a conditional node, the only kind that is not made by capture. Returns its bodies, which
   * belong to the graph. CUDA 12.3 or later.
   */
  cuGraphAddNode(
    graph: CUgraph,
    dependencies: readonly CUgraphNode[],
    conditional: ConditionalNodeParams,
  ): { node: CUgraphNode; bodies: CUgraph[] };
  /** Writes DOT text to `path`. `flags`: CU_GRAPH_DEBUG_DOT_FLAGS_*. */
  cuGraphDebugDotPrint(graph: CUgraph, path: string, flags: number): void;
  cuGraphInstantiate(graph: CUgraph, flags: number): CUgraphExec;
  cuGraphExecUpdate(exec: CUgraphExec, graph: CUgraph): GraphExecUpdateResult;
  cuGraphExecDestroy(exec: CUgraphExec): void;
  cuGraphUpload(exec: CUgraphExec, stream: CUstream): void;
  cuGraphLaunch(exec: CUgraphExec, stream: CUstream): void;

  /** Returns the provider's fast path for plain launches, where it has one. */
  launchBatch?(): LaunchBatch | undefined;
}

/**
 * CUlaunchConfig, with its attributes as one object. Dimensions in blocks and threads, shared
 * memory in bytes.
 */
export interface LaunchConfig {
  gridDimX: number;
  gridDimY: number;
  gridDimZ: number;
  blockDimX: number;
  blockDimY: number;
  blockDimZ: number;
  sharedMemBytes: number;
  hStream: CUstream;
  attrs: LaunchAttributes;
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
