/**
 * The driver's flags, modes and kinds: arguments and results of its calls that are small numbers,
 * by NVIDIA's names, as in CUDA 13.0. Attribute numbers are in `attributes.ts`.
 */

type ValueOf<T> = T[keyof T];

/** The host, in the place of a device ordinal (cuMemPrefetchAsync, cuMemAdvise). */
export const CU_DEVICE_CPU = -1;
/** The null stream, which synchronises with every blocking stream of its context. */
export const CU_STREAM_LEGACY = 1;
/** Each thread's own default stream. */
export const CU_STREAM_PER_THREAD = 2;

/** Flags of cuDevicePrimaryCtxSetFlags. */
export const CUctx_flags = {
  CU_CTX_SCHED_AUTO: 0,
  CU_CTX_SCHED_SPIN: 1,
  CU_CTX_SCHED_YIELD: 2,
  CU_CTX_SCHED_BLOCKING_SYNC: 4,
  CU_CTX_BLOCKING_SYNC: 4,
  CU_CTX_SCHED_MASK: 7,
  CU_CTX_MAP_HOST: 8,
  CU_CTX_LMEM_RESIZE_TO_MAX: 16,
  CU_CTX_COREDUMP_ENABLE: 32,
  CU_CTX_USER_COREDUMP_ENABLE: 64,
  CU_CTX_SYNC_MEMOPS: 128,
} as const;
export type CUctx_flags = (typeof CUctx_flags)[keyof typeof CUctx_flags];

/** Flags of cuStreamCreateWithPriority. */
export const CUstream_flags = {
  CU_STREAM_DEFAULT: 0,
  CU_STREAM_NON_BLOCKING: 1,
} as const;
export type CUstream_flags = (typeof CUstream_flags)[keyof typeof CUstream_flags];

/** Flags of cuEventCreate. */
export const CUevent_flags = {
  CU_EVENT_DEFAULT: 0,
  CU_EVENT_BLOCKING_SYNC: 1,
  CU_EVENT_DISABLE_TIMING: 2,
  CU_EVENT_INTERPROCESS: 4,
} as const;
export type CUevent_flags = (typeof CUevent_flags)[keyof typeof CUevent_flags];

/** Flags of cuEventRecordWithFlags. */
export const CUevent_record_flags = {
  CU_EVENT_RECORD_DEFAULT: 0,
  CU_EVENT_RECORD_EXTERNAL: 1,
} as const;
export type CUevent_record_flags = (typeof CUevent_record_flags)[keyof typeof CUevent_record_flags];

/** Flags of cuStreamWaitEvent. */
export const CUevent_wait_flags = {
  CU_EVENT_WAIT_DEFAULT: 0,
  CU_EVENT_WAIT_EXTERNAL: 1,
} as const;
export type CUevent_wait_flags = (typeof CUevent_wait_flags)[keyof typeof CUevent_wait_flags];

/**
 * Flags of cuStreamWaitValue32: the stream continues once `(int)(*addr - value) >= 0` (GEQ), `*addr
 * == value` (EQ), `*addr & value` (AND) or `~(*addr | value)` (NOR).
 */
export const CUstreamWaitValue_flags = {
  CU_STREAM_WAIT_VALUE_GEQ: 0,
  CU_STREAM_WAIT_VALUE_EQ: 1,
  CU_STREAM_WAIT_VALUE_AND: 2,
  CU_STREAM_WAIT_VALUE_NOR: 3,
  CU_STREAM_WAIT_VALUE_FLUSH: 0x40000000,
} as const;
export type CUstreamWaitValue_flags =
  (typeof CUstreamWaitValue_flags)[keyof typeof CUstreamWaitValue_flags];

/**
 * Flags of cuStreamWriteValue32. The default orders the write after all work before it in the
 * stream.
 */
export const CUstreamWriteValue_flags = {
  CU_STREAM_WRITE_VALUE_DEFAULT: 0,
  CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER: 1,
} as const;
export type CUstreamWriteValue_flags =
  (typeof CUstreamWriteValue_flags)[keyof typeof CUstreamWriteValue_flags];

/** Modes of cuStreamBeginCapture. */
export const CUstreamCaptureMode = {
  CU_STREAM_CAPTURE_MODE_GLOBAL: 0,
  CU_STREAM_CAPTURE_MODE_THREAD_LOCAL: 1,
  CU_STREAM_CAPTURE_MODE_RELAXED: 2,
} as const;
export type CUstreamCaptureMode = (typeof CUstreamCaptureMode)[keyof typeof CUstreamCaptureMode];

/** States of cuStreamGetCaptureInfo. */
export const CUstreamCaptureStatus = {
  CU_STREAM_CAPTURE_STATUS_NONE: 0,
  CU_STREAM_CAPTURE_STATUS_ACTIVE: 1,
  CU_STREAM_CAPTURE_STATUS_INVALIDATED: 2,
} as const;
export type CUstreamCaptureStatus =
  (typeof CUstreamCaptureStatus)[keyof typeof CUstreamCaptureStatus];

/** Flags of cuMemAllocManaged. */
export const CUmemAttach_flags = {
  CU_MEM_ATTACH_GLOBAL: 1,
  CU_MEM_ATTACH_HOST: 2,
  CU_MEM_ATTACH_SINGLE: 4,
} as const;
export type CUmemAttach_flags = (typeof CUmemAttach_flags)[keyof typeof CUmemAttach_flags];

/** The kind of memory at one end of a 2-D or 3-D copy; also CU_POINTER_ATTRIBUTE_MEMORY_TYPE. */
export const CUmemorytype = {
  CU_MEMORYTYPE_HOST: 1,
  CU_MEMORYTYPE_DEVICE: 2,
  CU_MEMORYTYPE_ARRAY: 3,
  CU_MEMORYTYPE_UNIFIED: 4,
} as const;
export type CUmemorytype = (typeof CUmemorytype)[keyof typeof CUmemorytype];

/** The type of an element of an array. */
export const CUarray_format = {
  CU_AD_FORMAT_UNSIGNED_INT8: 1,
  CU_AD_FORMAT_UNSIGNED_INT16: 2,
  CU_AD_FORMAT_UNSIGNED_INT32: 3,
  CU_AD_FORMAT_SIGNED_INT8: 8,
  CU_AD_FORMAT_SIGNED_INT16: 9,
  CU_AD_FORMAT_SIGNED_INT32: 10,
  CU_AD_FORMAT_HALF: 16,
  CU_AD_FORMAT_FLOAT: 32,
} as const;
export type CUarray_format = (typeof CUarray_format)[keyof typeof CUarray_format];

/** Flags of cuArray3DCreate. */
export const CUDA_ARRAY3D = {
  CUDA_ARRAY3D_LAYERED: 1,
  CUDA_ARRAY3D_SURFACE_LDST: 2,
  CUDA_ARRAY3D_CUBEMAP: 4,
  CUDA_ARRAY3D_TEXTURE_GATHER: 8,
} as const;
export type CUDA_ARRAY3D = (typeof CUDA_ARRAY3D)[keyof typeof CUDA_ARRAY3D];

/** Element types of tensor maps. */
export const CUtensorMapDataType = {
  CU_TENSOR_MAP_DATA_TYPE_UINT8: 0,
  CU_TENSOR_MAP_DATA_TYPE_UINT16: 1,
  CU_TENSOR_MAP_DATA_TYPE_UINT32: 2,
  CU_TENSOR_MAP_DATA_TYPE_INT32: 3,
  CU_TENSOR_MAP_DATA_TYPE_UINT64: 4,
  CU_TENSOR_MAP_DATA_TYPE_INT64: 5,
  CU_TENSOR_MAP_DATA_TYPE_FLOAT16: 6,
  CU_TENSOR_MAP_DATA_TYPE_FLOAT32: 7,
  CU_TENSOR_MAP_DATA_TYPE_FLOAT64: 8,
  CU_TENSOR_MAP_DATA_TYPE_BFLOAT16: 9,
  CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ: 10,
  CU_TENSOR_MAP_DATA_TYPE_TFLOAT32: 11,
  CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ: 12,
  CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B: 13,
  CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B: 14,
  CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B: 15,
} as const;
export type CUtensorMapDataType = (typeof CUtensorMapDataType)[keyof typeof CUtensorMapDataType];

/** Slices of channels in global memory. */
export const CUtensorMapInterleave = {
  CU_TENSOR_MAP_INTERLEAVE_NONE: 0,
  CU_TENSOR_MAP_INTERLEAVE_16B: 1,
  CU_TENSOR_MAP_INTERLEAVE_32B: 2,
} as const;
export type CUtensorMapInterleave =
  (typeof CUtensorMapInterleave)[keyof typeof CUtensorMapInterleave];

/** How a box is laid out in shared memory. */
export const CUtensorMapSwizzle = {
  CU_TENSOR_MAP_SWIZZLE_NONE: 0,
  CU_TENSOR_MAP_SWIZZLE_32B: 1,
  CU_TENSOR_MAP_SWIZZLE_64B: 2,
  CU_TENSOR_MAP_SWIZZLE_128B: 3,
  CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B: 4,
  CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B_FLIP_8B: 5,
  CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B: 6,
} as const;
export type CUtensorMapSwizzle = (typeof CUtensorMapSwizzle)[keyof typeof CUtensorMapSwizzle];

/** The least bytes that the L2 cache fetches. */
export const CUtensorMapL2promotion = {
  CU_TENSOR_MAP_L2_PROMOTION_NONE: 0,
  CU_TENSOR_MAP_L2_PROMOTION_L2_64B: 1,
  CU_TENSOR_MAP_L2_PROMOTION_L2_128B: 2,
  CU_TENSOR_MAP_L2_PROMOTION_L2_256B: 3,
} as const;
export type CUtensorMapL2promotion =
  (typeof CUtensorMapL2promotion)[keyof typeof CUtensorMapL2promotion];

/** What loads give for elements outside of the tensor. */
export const CUtensorMapFloatOOBfill = {
  CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE: 0,
  CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA: 1,
} as const;
export type CUtensorMapFloatOOBfill =
  (typeof CUtensorMapFloatOOBfill)[keyof typeof CUtensorMapFloatOOBfill];

/** Modes of cuTensorMapEncodeIm2colWide. */
export const CUtensorMapIm2ColWideMode = {
  CU_TENSOR_MAP_IM2COL_WIDE_MODE_W: 0,
  CU_TENSOR_MAP_IM2COL_WIDE_MODE_W128: 1,
} as const;
export type CUtensorMapIm2ColWideMode =
  (typeof CUtensorMapIm2ColWideMode)[keyof typeof CUtensorMapIm2ColWideMode];

/** Kinds of resources of cuTexObjectCreate and cuSurfObjectCreate. */
export const CUresourcetype = {
  CU_RESOURCE_TYPE_ARRAY: 0,
  CU_RESOURCE_TYPE_MIPMAPPED_ARRAY: 1,
  CU_RESOURCE_TYPE_LINEAR: 2,
  CU_RESOURCE_TYPE_PITCH2D: 3,
} as const;
export type CUresourcetype = (typeof CUresourcetype)[keyof typeof CUresourcetype];

/** What a texture returns outside itself. */
export const CUaddress_mode = {
  CU_TR_ADDRESS_MODE_WRAP: 0,
  CU_TR_ADDRESS_MODE_CLAMP: 1,
  CU_TR_ADDRESS_MODE_MIRROR: 2,
  CU_TR_ADDRESS_MODE_BORDER: 3,
} as const;
export type CUaddress_mode = (typeof CUaddress_mode)[keyof typeof CUaddress_mode];

export const CUfilter_mode = {
  CU_TR_FILTER_MODE_POINT: 0,
  CU_TR_FILTER_MODE_LINEAR: 1,
} as const;
export type CUfilter_mode = (typeof CUfilter_mode)[keyof typeof CUfilter_mode];

/** Flags of CUDA_TEXTURE_DESC. */
export const CU_TRSF = {
  CU_TRSF_READ_AS_INTEGER: 0x01,
  CU_TRSF_NORMALIZED_COORDINATES: 0x02,
  CU_TRSF_SRGB: 0x10,
  CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION: 0x20,
  CU_TRSF_SEAMLESS_CUBEMAP: 0x40,
} as const;
export type CU_TRSF = (typeof CU_TRSF)[keyof typeof CU_TRSF];

/** Advice of cuMemAdvise. */
export const CUmem_advise = {
  CU_MEM_ADVISE_SET_READ_MOSTLY: 1,
  CU_MEM_ADVISE_UNSET_READ_MOSTLY: 2,
  CU_MEM_ADVISE_SET_PREFERRED_LOCATION: 3,
  CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION: 4,
  CU_MEM_ADVISE_SET_ACCESSED_BY: 5,
  CU_MEM_ADVISE_UNSET_ACCESSED_BY: 6,
} as const;
export type CUmem_advise = (typeof CUmem_advise)[keyof typeof CUmem_advise];

/** Access of a device to a pool, in CUmemAccessDesc. */
export const CUmemAccess_flags = {
  CU_MEM_ACCESS_FLAGS_PROT_NONE: 0,
  CU_MEM_ACCESS_FLAGS_PROT_READ: 1,
  CU_MEM_ACCESS_FLAGS_PROT_READWRITE: 3,
} as const;
export type CUmemAccess_flags = (typeof CUmemAccess_flags)[keyof typeof CUmemAccess_flags];

/** Kinds of a CUmemLocation. */
export const CUmemLocationType = {
  CU_MEM_LOCATION_TYPE_NONE: 0,
  CU_MEM_LOCATION_TYPE_DEVICE: 1,
  CU_MEM_LOCATION_TYPE_HOST: 2,
  CU_MEM_LOCATION_TYPE_HOST_NUMA: 3,
  CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT: 4,
} as const;
export type CUmemLocationType = (typeof CUmemLocationType)[keyof typeof CUmemLocationType];

/** Kinds of allocations of CUmemPoolProps. */
export const CUmemAllocationType = {
  CU_MEM_ALLOCATION_TYPE_INVALID: 0,
  CU_MEM_ALLOCATION_TYPE_PINNED: 1,
  CU_MEM_ALLOCATION_TYPE_MANAGED: 2,
} as const;
export type CUmemAllocationType = (typeof CUmemAllocationType)[keyof typeof CUmemAllocationType];

/** Preferences of cuFuncSetCacheConfig. */
export const CUfunc_cache = {
  CU_FUNC_CACHE_PREFER_NONE: 0,
  CU_FUNC_CACHE_PREFER_SHARED: 1,
  CU_FUNC_CACHE_PREFER_L1: 2,
  CU_FUNC_CACHE_PREFER_EQUAL: 3,
} as const;
export type CUfunc_cache = (typeof CUfunc_cache)[keyof typeof CUfunc_cache];

/** Options of the JIT and the linker. */
export const CUjit_option = {
  CU_JIT_MAX_REGISTERS: 0,
  CU_JIT_THREADS_PER_BLOCK: 1,
  CU_JIT_WALL_TIME: 2,
  CU_JIT_INFO_LOG_BUFFER: 3,
  CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES: 4,
  CU_JIT_ERROR_LOG_BUFFER: 5,
  CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES: 6,
  CU_JIT_OPTIMIZATION_LEVEL: 7,
  CU_JIT_TARGET_FROM_CUCONTEXT: 8,
  CU_JIT_TARGET: 9,
  CU_JIT_FALLBACK_STRATEGY: 10,
  CU_JIT_GENERATE_DEBUG_INFO: 11,
  CU_JIT_LOG_VERBOSE: 12,
  CU_JIT_GENERATE_LINE_INFO: 13,
  CU_JIT_CACHE_MODE: 14,
  CU_JIT_NEW_SM3X_OPT: 15,
  CU_JIT_FAST_COMPILE: 16,
  CU_JIT_GLOBAL_SYMBOL_NAMES: 17,
  CU_JIT_GLOBAL_SYMBOL_ADDRESSES: 18,
  CU_JIT_GLOBAL_SYMBOL_COUNT: 19,
  CU_JIT_LTO: 20,
  CU_JIT_FTZ: 21,
  CU_JIT_PREC_DIV: 22,
  CU_JIT_PREC_SQRT: 23,
  CU_JIT_FMA: 24,
  CU_JIT_REFERENCED_KERNEL_NAMES: 25,
  CU_JIT_REFERENCED_KERNEL_COUNT: 26,
  CU_JIT_REFERENCED_VARIABLE_NAMES: 27,
  CU_JIT_REFERENCED_VARIABLE_COUNT: 28,
  CU_JIT_OPTIMIZE_UNUSED_DEVICE_VARIABLES: 29,
  CU_JIT_POSITION_INDEPENDENT_CODE: 30,
  CU_JIT_MIN_CTA_PER_SM: 31,
  CU_JIT_MAX_THREADS_PER_BLOCK: 32,
  CU_JIT_OVERRIDE_DIRECTIVE_VALUES: 33,
  CU_JIT_SPLIT_COMPILE: 34,
} as const;
export type CUjit_option = (typeof CUjit_option)[keyof typeof CUjit_option];

/** The kind of one input of cuLinkAddData. */
export const CUjitInputType = {
  CU_JIT_INPUT_CUBIN: 0,
  CU_JIT_INPUT_PTX: 1,
  CU_JIT_INPUT_FATBINARY: 2,
  CU_JIT_INPUT_OBJECT: 3,
  CU_JIT_INPUT_LIBRARY: 4,
  CU_JIT_INPUT_NVVM: 5,
} as const;
export type CUjitInputType = (typeof CUjitInputType)[keyof typeof CUjitInputType];

/** Values of CU_JIT_TARGET. A: architecture-specific, F: family-specific. */
export const CUjit_target = {
  CU_TARGET_COMPUTE_30: 30,
  CU_TARGET_COMPUTE_32: 32,
  CU_TARGET_COMPUTE_35: 35,
  CU_TARGET_COMPUTE_37: 37,
  CU_TARGET_COMPUTE_50: 50,
  CU_TARGET_COMPUTE_52: 52,
  CU_TARGET_COMPUTE_53: 53,
  CU_TARGET_COMPUTE_60: 60,
  CU_TARGET_COMPUTE_61: 61,
  CU_TARGET_COMPUTE_62: 62,
  CU_TARGET_COMPUTE_70: 70,
  CU_TARGET_COMPUTE_72: 72,
  CU_TARGET_COMPUTE_75: 75,
  CU_TARGET_COMPUTE_80: 80,
  CU_TARGET_COMPUTE_86: 86,
  CU_TARGET_COMPUTE_87: 87,
  CU_TARGET_COMPUTE_89: 89,
  CU_TARGET_COMPUTE_90: 90,
  CU_TARGET_COMPUTE_100: 100,
  CU_TARGET_COMPUTE_103: 103,
  CU_TARGET_COMPUTE_110: 110,
  CU_TARGET_COMPUTE_120: 120,
  CU_TARGET_COMPUTE_121: 121,
  CU_TARGET_COMPUTE_90A: 0x1005a,
  CU_TARGET_COMPUTE_100A: 0x10064,
  CU_TARGET_COMPUTE_103A: 0x10067,
  CU_TARGET_COMPUTE_110A: 0x1006e,
  CU_TARGET_COMPUTE_120A: 0x10078,
  CU_TARGET_COMPUTE_121A: 0x10079,
  CU_TARGET_COMPUTE_100F: 0x20064,
  CU_TARGET_COMPUTE_103F: 0x20067,
  CU_TARGET_COMPUTE_110F: 0x2006e,
  CU_TARGET_COMPUTE_120F: 0x20078,
  CU_TARGET_COMPUTE_121F: 0x20079,
} as const;
export type CUjit_target = (typeof CUjit_target)[keyof typeof CUjit_target];

/** Values of CU_JIT_CACHE_MODE. */
export const CUjit_cacheMode = {
  CU_JIT_CACHE_OPTION_NONE: 0,
  CU_JIT_CACHE_OPTION_CG: 1,
  CU_JIT_CACHE_OPTION_CA: 2,
} as const;
export type CUjit_cacheMode = (typeof CUjit_cacheMode)[keyof typeof CUjit_cacheMode];

/** Values of CU_JIT_FALLBACK_STRATEGY. */
export const CUjit_fallback = {
  CU_PREFER_PTX: 0,
  CU_PREFER_BINARY: 1,
} as const;
export type CUjit_fallback = (typeof CUjit_fallback)[keyof typeof CUjit_fallback];

/** Flags of cuStreamUpdateCaptureDependencies. */
export const CUstreamUpdateCaptureDependencies_flags = {
  CU_STREAM_ADD_CAPTURE_DEPENDENCIES: 0,
  CU_STREAM_SET_CAPTURE_DEPENDENCIES: 1,
} as const;
export type CUstreamUpdateCaptureDependencies_flags = ValueOf<
  typeof CUstreamUpdateCaptureDependencies_flags
>;

/** Kinds of conditional nodes. */
export const CUgraphConditionalNodeType = {
  CU_GRAPH_COND_TYPE_IF: 0,
  CU_GRAPH_COND_TYPE_WHILE: 1,
  CU_GRAPH_COND_TYPE_SWITCH: 2,
} as const;
export type CUgraphConditionalNodeType =
  (typeof CUgraphConditionalNodeType)[keyof typeof CUgraphConditionalNodeType];

/**
 * A flag of cuGraphConditionalHandleCreate: each launch of the graph begins with the default value.
 */
export const CU_GRAPH_COND_ASSIGN_DEFAULT = 1;

/** Kinds of nodes of cuGraphNodeGetType. */
export const CUgraphNodeType = {
  CU_GRAPH_NODE_TYPE_KERNEL: 0,
  CU_GRAPH_NODE_TYPE_MEMCPY: 1,
  CU_GRAPH_NODE_TYPE_MEMSET: 2,
  CU_GRAPH_NODE_TYPE_HOST: 3,
  CU_GRAPH_NODE_TYPE_GRAPH: 4,
  CU_GRAPH_NODE_TYPE_EMPTY: 5,
  CU_GRAPH_NODE_TYPE_WAIT_EVENT: 6,
  CU_GRAPH_NODE_TYPE_EVENT_RECORD: 7,
  CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL: 8,
  CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT: 9,
  CU_GRAPH_NODE_TYPE_MEM_ALLOC: 10,
  CU_GRAPH_NODE_TYPE_MEM_FREE: 11,
  CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: 12,
  CU_GRAPH_NODE_TYPE_CONDITIONAL: 13,
} as const;
export type CUgraphNodeType = (typeof CUgraphNodeType)[keyof typeof CUgraphNodeType];

/** Flags of cuGraphInstantiateWithFlags. */
export const CUgraphInstantiate_flags = {
  CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH: 1,
  CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD: 2,
  CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH: 4,
  CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY: 8,
} as const;
export type CUgraphInstantiate_flags =
  (typeof CUgraphInstantiate_flags)[keyof typeof CUgraphInstantiate_flags];

/** Why an instantiation failed. */
export const CUgraphInstantiateResult = {
  CUDA_GRAPH_INSTANTIATE_SUCCESS: 0,
  CUDA_GRAPH_INSTANTIATE_ERROR: 1,
  CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE: 2,
  CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED: 3,
  CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED: 4,
  CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED: 5,
} as const;
export type CUgraphInstantiateResult =
  (typeof CUgraphInstantiateResult)[keyof typeof CUgraphInstantiateResult];

/** Why cuGraphExecUpdate could not apply a graph. */
export const CUgraphExecUpdateResult = {
  CU_GRAPH_EXEC_UPDATE_SUCCESS: 0,
  CU_GRAPH_EXEC_UPDATE_ERROR: 1,
  CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED: 2,
  CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED: 3,
  CU_GRAPH_EXEC_UPDATE_ERROR_FUNCTION_CHANGED: 4,
  CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED: 5,
  CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED: 6,
  CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE: 7,
  CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED: 8,
} as const;
export type CUgraphExecUpdateResult =
  (typeof CUgraphExecUpdateResult)[keyof typeof CUgraphExecUpdateResult];

/** Flags of cuGraphDebugDotPrint. */
export const CUgraphDebugDot_flags = {
  CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE: 1,
  CU_GRAPH_DEBUG_DOT_FLAGS_RUNTIME_TYPES: 2,
  CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_PARAMS: 4,
  CU_GRAPH_DEBUG_DOT_FLAGS_MEMCPY_NODE_PARAMS: 8,
  CU_GRAPH_DEBUG_DOT_FLAGS_MEMSET_NODE_PARAMS: 16,
  CU_GRAPH_DEBUG_DOT_FLAGS_HOST_NODE_PARAMS: 32,
  CU_GRAPH_DEBUG_DOT_FLAGS_EVENT_NODE_PARAMS: 64,
  CU_GRAPH_DEBUG_DOT_FLAGS_EXT_SEMAS_SIGNAL_NODE_PARAMS: 128,
  CU_GRAPH_DEBUG_DOT_FLAGS_EXT_SEMAS_WAIT_NODE_PARAMS: 256,
  CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_ATTRIBUTES: 512,
  CU_GRAPH_DEBUG_DOT_FLAGS_HANDLES: 1024,
  CU_GRAPH_DEBUG_DOT_FLAGS_MEM_ALLOC_NODE_PARAMS: 2048,
  CU_GRAPH_DEBUG_DOT_FLAGS_MEM_FREE_NODE_PARAMS: 4096,
  CU_GRAPH_DEBUG_DOT_FLAGS_BATCH_MEM_OP_NODE_PARAMS: 8192,
  CU_GRAPH_DEBUG_DOT_FLAGS_EXTRA_TOPO_INFO: 16384,
  CU_GRAPH_DEBUG_DOT_FLAGS_CONDITIONAL_NODE_PARAMS: 32768,
} as const;
export type CUgraphDebugDot_flags =
  (typeof CUgraphDebugDot_flags)[keyof typeof CUgraphDebugDot_flags];

/** Attributes of cuLaunchKernelEx. */
export const CUlaunchAttributeID = {
  CU_LAUNCH_ATTRIBUTE_IGNORE: 0,
  CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW: 1,
  CU_LAUNCH_ATTRIBUTE_COOPERATIVE: 2,
  CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY: 3,
  CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION: 4,
  CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE: 5,
  CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION: 6,
  CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT: 7,
  CU_LAUNCH_ATTRIBUTE_PRIORITY: 8,
  CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP: 9,
  CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN: 10,
  CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION: 11,
  CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT: 12,
  CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE: 13,
  CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: 14,
  CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING: 16,
} as const;
export type CUlaunchAttributeID = (typeof CUlaunchAttributeID)[keyof typeof CUlaunchAttributeID];

/** Values of CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE. */
export const CUclusterSchedulingPolicy = {
  CU_CLUSTER_SCHEDULING_POLICY_DEFAULT: 0,
  CU_CLUSTER_SCHEDULING_POLICY_SPREAD: 1,
  CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING: 2,
} as const;
export type CUclusterSchedulingPolicy =
  (typeof CUclusterSchedulingPolicy)[keyof typeof CUclusterSchedulingPolicy];

/** Values of CU_DEVICE_ATTRIBUTE_COMPUTE_MODE. */
export const CUcomputemode = {
  CU_COMPUTEMODE_DEFAULT: 0,
  CU_COMPUTEMODE_PROHIBITED: 2,
  CU_COMPUTEMODE_EXCLUSIVE_PROCESS: 3,
} as const;
export type CUcomputemode = (typeof CUcomputemode)[keyof typeof CUcomputemode];

/** Flags of cuMemHostAlloc. */
export const CU_MEMHOSTALLOC = {
  CU_MEMHOSTALLOC_PORTABLE: 1,
  CU_MEMHOSTALLOC_DEVICEMAP: 2,
  CU_MEMHOSTALLOC_WRITECOMBINED: 4,
} as const;
export type CU_MEMHOSTALLOC = (typeof CU_MEMHOSTALLOC)[keyof typeof CU_MEMHOSTALLOC];

/** Flags of cuMemHostRegister. */
export const CU_MEMHOSTREGISTER = {
  CU_MEMHOSTREGISTER_PORTABLE: 1,
  CU_MEMHOSTREGISTER_DEVICEMAP: 2,
  CU_MEMHOSTREGISTER_IOMEMORY: 4,
  CU_MEMHOSTREGISTER_READ_ONLY: 8,
} as const;
export type CU_MEMHOSTREGISTER = (typeof CU_MEMHOSTREGISTER)[keyof typeof CU_MEMHOSTREGISTER];
