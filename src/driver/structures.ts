/**
 * Structures of the driver API as plain objects whose fields have the names that C gives them.
 */
import type {
  CUarray,
  CUcontext,
  CUdevice,
  CUdeviceptr,
  CUgraph,
  CUgraphConditionalHandle,
  CUgraphNode,
  CUstream,
  HostAddress,
} from './handles.js';

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

/**
 * The 128 bytes of a tensor map, which a kernel takes as a parameter. Only the driver's calls and
 * kernels give them a meaning.
 */
export type CUtensorMap = Uint8Array;

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
   * The context's handle here. It serves `cuMemcpyPeerAsync` and
   * `cuMemcpy3DPeerAsync` only.
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
  /** The ordinal of the device that has the memory. */
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
