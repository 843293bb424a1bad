/**
 * The structures that the driver takes by pointer, written by hand into native memory. The offsets
 * are those of cuda.h in the layout of a 64-bit compiler (LP64 and LLP64 agree);
 * `structures.test.ts` checks them.
 */
import type {
  CUDA_ARRAY3D_DESCRIPTOR,
  CUDA_ARRAY_DESCRIPTOR,
  CUDA_MEMCPY2D,
  CUDA_MEMCPY3D,
  CUDA_MEMCPY3D_PEER,
  CUDA_RESOURCE_DESC,
  CUDA_TEXTURE_DESC,
  CUmemPoolProps,
  ConditionalNodeParams,
  LaunchAttributes,
  LaunchConfig,
} from '../structures.js';
import {
  CUgraphNodeType,
  CUlaunchAttributeID,
  CUmemAllocationType,
  CUmemLocationType,
} from '../flags.js';
import type { NativeMemory } from '../../native/native-memory.js';

/** The layout of CUDA_MEMCPY2D_v2. */
export const MEMCPY2D = {
  size: 128,
  srcXInBytes: 0,
  srcY: 8,
  srcMemoryType: 16,
  srcHost: 24,
  srcDevice: 32,
  srcArray: 40,
  srcPitch: 48,
  dstXInBytes: 56,
  dstY: 64,
  dstMemoryType: 72,
  dstHost: 80,
  dstDevice: 88,
  dstArray: 96,
  dstPitch: 104,
  WidthInBytes: 112,
  Height: 120,
} as const;

/** The layout of CUDA_MEMCPY3D_v2. The levels of detail stay zero. */
export const MEMCPY3D = {
  size: 200,
  srcXInBytes: 0,
  srcY: 8,
  srcZ: 16,
  srcLOD: 24,
  srcMemoryType: 32,
  srcHost: 40,
  srcDevice: 48,
  srcArray: 56,
  reserved0: 64,
  srcPitch: 72,
  srcHeight: 80,
  dstXInBytes: 88,
  dstY: 96,
  dstZ: 104,
  dstLOD: 112,
  dstMemoryType: 120,
  dstHost: 128,
  dstDevice: 136,
  dstArray: 144,
  reserved1: 152,
  dstPitch: 160,
  dstHeight: 168,
  WidthInBytes: 176,
  Height: 184,
  Depth: 192,
} as const;

/** The layout of CUDA_MEMCPY3D_PEER_v1: CUDA_MEMCPY3D with contexts in its reserved fields. */
export const MEMCPY3D_PEER = {
  size: 200,
  srcXInBytes: 0,
  srcY: 8,
  srcZ: 16,
  srcLOD: 24,
  srcMemoryType: 32,
  srcHost: 40,
  srcDevice: 48,
  srcArray: 56,
  srcContext: 64,
  srcPitch: 72,
  srcHeight: 80,
  dstXInBytes: 88,
  dstY: 96,
  dstZ: 104,
  dstLOD: 112,
  dstMemoryType: 120,
  dstHost: 128,
  dstDevice: 136,
  dstArray: 144,
  dstContext: 152,
  dstPitch: 160,
  dstHeight: 168,
  WidthInBytes: 176,
  Height: 184,
  Depth: 192,
} as const;

/** The layout of CUDA_ARRAY_DESCRIPTOR_v2. */
export const ARRAY_DESCRIPTOR = {
  size: 24,
  Width: 0,
  Height: 8,
  Format: 16,
  NumChannels: 20,
} as const;

/** The layout of CUDA_ARRAY3D_DESCRIPTOR_v2. */
export const ARRAY3D_DESCRIPTOR = {
  size: 40,
  Width: 0,
  Height: 8,
  Depth: 16,
  Format: 24,
  NumChannels: 28,
  Flags: 32,
} as const;

/**
 * The layout of CUDA_RESOURCE_DESC_v1: the members of its union begin at 8, with the array's handle
 * or the address.
 */
export const RESOURCE_DESC = {
  size: 144,
  resType: 0,
  hArray: 8,
  devPtr: 8,
  format: 16,
  numChannels: 20,
  sizeInBytes: 24,
  width: 24,
  height: 32,
  pitchInBytes: 40,
  flags: 136,
} as const;

/** The layout of CUDA_TEXTURE_DESC_v1. */
export const TEXTURE_DESC = {
  size: 104,
  addressMode: 0,
  filterMode: 12,
  flags: 16,
  maxAnisotropy: 20,
  mipmapFilterMode: 24,
  mipmapLevelBias: 28,
  minMipmapLevelClamp: 32,
  maxMipmapLevelClamp: 36,
  borderColor: 40,
} as const;

/** The layout of CUmemPoolProps_v1; `location` is a CUmemLocation of two 32-bit words. */
export const MEM_POOL_PROPS = {
  size: 88,
  allocType: 0,
  handleTypes: 4,
  locationType: 8,
  locationId: 12,
  win32SecurityAttributes: 16,
  maxSize: 24,
  usage: 32,
} as const;

/** The layout of CUmemAccessDesc_v1. */
export const MEM_ACCESS_DESC = { size: 12, locationType: 0, locationId: 4, flags: 8 } as const;

/** The layout of CUgraphExecUpdateResultInfo_v1. */
export const EXEC_UPDATE_RESULT_INFO = {
  size: 24,
  result: 0,
  errorNode: 8,
  errorFromNode: 16,
} as const;

/** The layout of CUgraphNodeParams: CUDA_CONDITIONAL_NODE_PARAMS begins at 16. */
export const CONDITIONAL_NODE_PARAMS = {
  size: 256,
  nodeType: 0,
  handle: 16,
  type: 24,
  bodies: 28,
  phGraph_out: 32,
  ctx: 40,
} as const;

/** The layout of CUlaunchConfig. */
export const LAUNCH_CONFIG = {
  size: 56,
  gridDimX: 0,
  gridDimY: 4,
  gridDimZ: 8,
  blockDimX: 12,
  blockDimY: 16,
  blockDimZ: 20,
  sharedMemBytes: 24,
  hStream: 32,
  attrs: 40,
  numAttrs: 48,
} as const;

/** The layout of CUlaunchAttribute: an id and a union of 64 bytes. */
export const LAUNCH_ATTRIBUTE = { size: 72, id: 0, value: 8, valueSize: 64 } as const;

/** The number of fields of {@link LaunchAttributes}. */
export const MAX_LAUNCH_ATTRIBUTES = 5;

/** Writes CUDA_MEMCPY2D at byte `at`. */
export function writeMemcpy2D(memory: NativeMemory, at: number, copy: CUDA_MEMCPY2D): void {
  memory.bytes.fill(0, at, at + MEMCPY2D.size);
  memory.setU64(at + MEMCPY2D.srcXInBytes, copy.srcXInBytes);
  memory.setU64(at + MEMCPY2D.srcY, copy.srcY);
  memory.u32[(at + MEMCPY2D.srcMemoryType) >> 2] = copy.srcMemoryType;
  memory.setU64(at + MEMCPY2D.srcHost, copy.srcHost);
  memory.setU64(at + MEMCPY2D.srcDevice, copy.srcDevice);
  memory.setU64(at + MEMCPY2D.srcArray, copy.srcArray ?? 0);
  memory.setU64(at + MEMCPY2D.srcPitch, copy.srcPitch);
  memory.setU64(at + MEMCPY2D.dstXInBytes, copy.dstXInBytes);
  memory.setU64(at + MEMCPY2D.dstY, copy.dstY);
  memory.u32[(at + MEMCPY2D.dstMemoryType) >> 2] = copy.dstMemoryType;
  memory.setU64(at + MEMCPY2D.dstHost, copy.dstHost);
  memory.setU64(at + MEMCPY2D.dstDevice, copy.dstDevice);
  memory.setU64(at + MEMCPY2D.dstArray, copy.dstArray ?? 0);
  memory.setU64(at + MEMCPY2D.dstPitch, copy.dstPitch);
  memory.setU64(at + MEMCPY2D.WidthInBytes, copy.WidthInBytes);
  memory.setU64(at + MEMCPY2D.Height, copy.Height);
}

/** Writes CUgraphNodeParams of a conditional node at byte `at`. */
export function writeConditionalNode(
  memory: NativeMemory,
  at: number,
  { handle, type, size, ctx }: ConditionalNodeParams,
): void {
  memory.bytes.fill(0, at, at + CONDITIONAL_NODE_PARAMS.size);
  memory.u32[(at + CONDITIONAL_NODE_PARAMS.nodeType) >> 2] =
    CUgraphNodeType.CU_GRAPH_NODE_TYPE_CONDITIONAL;
  memory.u32[(at + CONDITIONAL_NODE_PARAMS.handle) >> 2] = Number(handle & 0xffffffffn);
  memory.u32[(at + CONDITIONAL_NODE_PARAMS.handle + 4) >> 2] = Number(
    (handle >> 32n) & 0xffffffffn,
  );
  memory.u32[(at + CONDITIONAL_NODE_PARAMS.type) >> 2] = type;
  memory.u32[(at + CONDITIONAL_NODE_PARAMS.bodies) >> 2] = size;
  memory.setU64(at + CONDITIONAL_NODE_PARAMS.ctx, ctx);
}

/** Writes CUDA_MEMCPY3D at byte `at`. */
export function writeMemcpy3D(memory: NativeMemory, at: number, copy: CUDA_MEMCPY3D): void {
  memory.bytes.fill(0, at, at + MEMCPY3D.size);
  memory.setU64(at + MEMCPY3D.srcXInBytes, copy.srcXInBytes);
  memory.setU64(at + MEMCPY3D.srcY, copy.srcY);
  memory.setU64(at + MEMCPY3D.srcZ, copy.srcZ);
  memory.u32[(at + MEMCPY3D.srcMemoryType) >> 2] = copy.srcMemoryType;
  memory.setU64(at + MEMCPY3D.srcHost, copy.srcHost);
  memory.setU64(at + MEMCPY3D.srcDevice, copy.srcDevice);
  memory.setU64(at + MEMCPY3D.srcArray, copy.srcArray ?? 0);
  memory.setU64(at + MEMCPY3D.srcPitch, copy.srcPitch);
  memory.setU64(at + MEMCPY3D.srcHeight, copy.srcHeight);
  memory.setU64(at + MEMCPY3D.dstXInBytes, copy.dstXInBytes);
  memory.setU64(at + MEMCPY3D.dstY, copy.dstY);
  memory.setU64(at + MEMCPY3D.dstZ, copy.dstZ);
  memory.u32[(at + MEMCPY3D.dstMemoryType) >> 2] = copy.dstMemoryType;
  memory.setU64(at + MEMCPY3D.dstHost, copy.dstHost);
  memory.setU64(at + MEMCPY3D.dstDevice, copy.dstDevice);
  memory.setU64(at + MEMCPY3D.dstArray, copy.dstArray ?? 0);
  memory.setU64(at + MEMCPY3D.dstPitch, copy.dstPitch);
  memory.setU64(at + MEMCPY3D.dstHeight, copy.dstHeight);
  memory.setU64(at + MEMCPY3D.WidthInBytes, copy.WidthInBytes);
  memory.setU64(at + MEMCPY3D.Height, copy.Height);
  memory.setU64(at + MEMCPY3D.Depth, copy.Depth);
}

/** Writes CUDA_MEMCPY3D_PEER at byte `at`. */
export function writeMemcpy3DPeer(
  memory: NativeMemory,
  at: number,
  copy: CUDA_MEMCPY3D_PEER,
): void {
  writeMemcpy3D(memory, at, copy);
  memory.setU64(at + MEMCPY3D_PEER.srcContext, copy.srcContext);
  memory.setU64(at + MEMCPY3D_PEER.dstContext, copy.dstContext);
}

/** Writes CUDA_ARRAY_DESCRIPTOR at byte `at`. */
export function writeArrayDescriptor(
  memory: NativeMemory,
  at: number,
  desc: CUDA_ARRAY_DESCRIPTOR,
): void {
  memory.bytes.fill(0, at, at + ARRAY_DESCRIPTOR.size);
  memory.setU64(at + ARRAY_DESCRIPTOR.Width, desc.Width);
  memory.setU64(at + ARRAY_DESCRIPTOR.Height, desc.Height);
  memory.u32[(at + ARRAY_DESCRIPTOR.Format) >> 2] = desc.Format;
  memory.u32[(at + ARRAY_DESCRIPTOR.NumChannels) >> 2] = desc.NumChannels;
}

/** Writes CUDA_ARRAY3D_DESCRIPTOR at byte `at`. */
export function writeArray3DDescriptor(
  memory: NativeMemory,
  at: number,
  desc: CUDA_ARRAY3D_DESCRIPTOR,
): void {
  memory.bytes.fill(0, at, at + ARRAY3D_DESCRIPTOR.size);
  memory.setU64(at + ARRAY3D_DESCRIPTOR.Width, desc.Width);
  memory.setU64(at + ARRAY3D_DESCRIPTOR.Height, desc.Height);
  memory.setU64(at + ARRAY3D_DESCRIPTOR.Depth, desc.Depth);
  memory.u32[(at + ARRAY3D_DESCRIPTOR.Format) >> 2] = desc.Format;
  memory.u32[(at + ARRAY3D_DESCRIPTOR.NumChannels) >> 2] = desc.NumChannels;
  memory.u32[(at + ARRAY3D_DESCRIPTOR.Flags) >> 2] = desc.Flags;
}

/** Writes CUDA_RESOURCE_DESC at byte `at`. */
export function writeResourceDesc(
  memory: NativeMemory,
  at: number,
  { resType, array, linear, pitch2D }: CUDA_RESOURCE_DESC,
): void {
  memory.bytes.fill(0, at, at + RESOURCE_DESC.size);
  memory.u32[(at + RESOURCE_DESC.resType) >> 2] = resType;
  if (array !== undefined) memory.setU64(at + RESOURCE_DESC.hArray, array.hArray);
  const texels = linear ?? pitch2D;
  if (texels !== undefined) {
    memory.setU64(at + RESOURCE_DESC.devPtr, texels.devPtr);
    memory.u32[(at + RESOURCE_DESC.format) >> 2] = texels.format;
    memory.u32[(at + RESOURCE_DESC.numChannels) >> 2] = texels.numChannels;
  }
  if (linear !== undefined) memory.setU64(at + RESOURCE_DESC.sizeInBytes, linear.sizeInBytes);
  if (pitch2D !== undefined) {
    memory.setU64(at + RESOURCE_DESC.width, pitch2D.width);
    memory.setU64(at + RESOURCE_DESC.height, pitch2D.height);
    memory.setU64(at + RESOURCE_DESC.pitchInBytes, pitch2D.pitchInBytes);
  }
}

/** Writes CUDA_TEXTURE_DESC at byte `at`. */
export function writeTextureDesc(memory: NativeMemory, at: number, desc: CUDA_TEXTURE_DESC): void {
  memory.bytes.fill(0, at, at + TEXTURE_DESC.size);
  const word = (offset: number): number => (at + offset) >> 2;
  desc.addressMode.forEach((mode, axis) => {
    memory.u32[word(TEXTURE_DESC.addressMode) + axis] = mode;
  });
  memory.u32[word(TEXTURE_DESC.filterMode)] = desc.filterMode;
  memory.u32[word(TEXTURE_DESC.flags)] = desc.flags;
  memory.u32[word(TEXTURE_DESC.maxAnisotropy)] = desc.maxAnisotropy ?? 0;
  memory.u32[word(TEXTURE_DESC.mipmapFilterMode)] = desc.mipmapFilterMode ?? 0;
  memory.f32[word(TEXTURE_DESC.mipmapLevelBias)] = desc.mipmapLevelBias ?? 0;
  memory.f32[word(TEXTURE_DESC.minMipmapLevelClamp)] = desc.minMipmapLevelClamp ?? 0;
  memory.f32[word(TEXTURE_DESC.maxMipmapLevelClamp)] = desc.maxMipmapLevelClamp ?? 0;
  desc.borderColor?.forEach((value, channel) => {
    memory.f32[word(TEXTURE_DESC.borderColor) + channel] = value;
  });
}

/** Writes CUmemPoolProps at byte `at`: pinned device memory, not exportable. */
export function writeMemPoolProps(memory: NativeMemory, at: number, props: CUmemPoolProps): void {
  memory.bytes.fill(0, at, at + MEM_POOL_PROPS.size);
  memory.u32[(at + MEM_POOL_PROPS.allocType) >> 2] =
    CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED;
  memory.u32[(at + MEM_POOL_PROPS.locationType) >> 2] =
    CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE;
  memory.i32[(at + MEM_POOL_PROPS.locationId) >> 2] = props.location;
  memory.setU64(at + MEM_POOL_PROPS.maxSize, props.maxSize ?? 0);
}

/** Writes CUmemAccessDesc at byte `at`. `flags` is a value of CUmemAccess_flags. */
export function writeMemAccessDesc(
  memory: NativeMemory,
  at: number,
  device: number,
  flags: number,
): void {
  memory.u32[(at + MEM_ACCESS_DESC.locationType) >> 2] =
    CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE;
  memory.i32[(at + MEM_ACCESS_DESC.locationId) >> 2] = device;
  memory.u32[(at + MEM_ACCESS_DESC.flags) >> 2] = flags;
}

/** Writes CUlaunchConfig at byte `at` and its attributes at byte `attributesAt`. */
export function writeLaunchConfig(
  memory: NativeMemory,
  at: number,
  attributesAt: number,
  config: LaunchConfig,
): void {
  const count = writeLaunchAttributes(memory, attributesAt, config.attrs);
  const word = at >> 2;
  memory.u32[word] = config.gridDimX;
  memory.u32[word + 1] = config.gridDimY;
  memory.u32[word + 2] = config.gridDimZ;
  memory.u32[word + 3] = config.blockDimX;
  memory.u32[word + 4] = config.blockDimY;
  memory.u32[word + 5] = config.blockDimZ;
  memory.u32[word + 6] = config.sharedMemBytes;
  memory.setU64(at + LAUNCH_CONFIG.hStream, config.hStream);
  memory.setU64(at + LAUNCH_CONFIG.attrs, count === 0 ? 0 : memory.address + attributesAt);
  memory.u32[(at + LAUNCH_CONFIG.numAttrs) >> 2] = count;
}

/** Writes one CUlaunchAttribute for each field that is set. Returns their number. */
function writeLaunchAttributes(
  memory: NativeMemory,
  at: number,
  attributes: LaunchAttributes,
): number {
  let count = 0;
  const add = (id: number, x: number, y = 0, z = 0): void => {
    const start = at + count * LAUNCH_ATTRIBUTE.size;
    memory.bytes.fill(0, start, start + LAUNCH_ATTRIBUTE.size);
    memory.u32[start >> 2] = id;
    const value = (start + LAUNCH_ATTRIBUTE.value) >> 2;
    memory.i32[value] = x;
    memory.i32[value + 1] = y;
    memory.i32[value + 2] = z;
    count++;
  };
  const {
    cooperative,
    clusterDim,
    clusterSchedulingPolicyPreference,
    programmaticStreamSerialization,
    priority,
  } = attributes;
  if (cooperative !== undefined)
    add(CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_COOPERATIVE, Number(cooperative));
  if (clusterDim !== undefined)
    add(CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, ...clusterDim);
  if (clusterSchedulingPolicyPreference !== undefined) {
    add(
      CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE,
      clusterSchedulingPolicyPreference,
    );
  }
  if (programmaticStreamSerialization !== undefined) {
    add(
      CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
      Number(programmaticStreamSerialization),
    );
  }
  if (priority !== undefined) add(CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PRIORITY, priority);
  return count;
}

/**
 * Returns a CUmemLocation as the 64-bit integer that it is passed as by value. `device` -1 is the
 * host.
 */
export function memLocation(device: number): number {
  if (device < 0) return CUmemLocationType.CU_MEM_LOCATION_TYPE_HOST;
  return CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE + device * 4294967296;
}
