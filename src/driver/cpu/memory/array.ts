/**
 * CUDA arrays: texels in rows of device memory that copies and textures address by coordinates. A
 * GPU stores them in an order of its own; here they are pitched as any image.
 */
import { CUDA_ARRAY3D, CUarray_format } from '../../flags.js';
import type { CUDA_ARRAY3D_DESCRIPTOR } from '../../driver.js';
import { checkSize, invalidValue } from '../failure.js';
import type { Allocation, DeviceMemory } from './device-memory.js';

/** Bytes of one channel. */
const FORMAT_BYTES: Readonly<Record<number, number>> = {
  [CUarray_format.CU_AD_FORMAT_UNSIGNED_INT8]: 1,
  [CUarray_format.CU_AD_FORMAT_UNSIGNED_INT16]: 2,
  [CUarray_format.CU_AD_FORMAT_UNSIGNED_INT32]: 4,
  [CUarray_format.CU_AD_FORMAT_SIGNED_INT8]: 1,
  [CUarray_format.CU_AD_FORMAT_SIGNED_INT16]: 2,
  [CUarray_format.CU_AD_FORMAT_SIGNED_INT32]: 4,
  [CUarray_format.CU_AD_FORMAT_HALF]: 2,
  [CUarray_format.CU_AD_FORMAT_FLOAT]: 4,
};

const ROW_ALIGNMENT = 32;

/** The place and the number of texels of a texture or surface. */
export interface Texels {
  address: number;
  /** Texels of a row, rows of a slice, slices; 1 where there is no such dimension. */
  width: number;
  height: number;
  depth: number;
  pitch: number;
  format: number;
  channels: number;
  /** Whether `depth` counts layers. */
  layered: boolean;
}

/** The context that an array is in. */
interface ArrayContext {
  readonly memory: DeviceMemory;
  obtain<T>(attempt: () => T | undefined): T | undefined;
  outOfMemory(call: string, bytes: number): never;
}

export interface CpuArray extends Texels {
  context: ArrayContext;
  allocation: Allocation;
  flags: number;
}

export function texelBytes(call: string, format: number, channels: number): number {
  const bytes =
    FORMAT_BYTES[format] ??
    invalidValue(call, `format ${format} is none of CUarray_format that the CPU device has`);
  if (channels !== 1 && channels !== 2 && channels !== 4)
    invalidValue(call, `${channels} channels; there can be 1, 2 or 4`);
  return bytes * channels;
}

export function createArray(
  call: string,
  context: ArrayContext,
  desc: CUDA_ARRAY3D_DESCRIPTOR,
): CpuArray {
  const { Width: width, Height, Depth, Format: format, NumChannels: channels, Flags: flags } = desc;
  checkSize(call, 'Width', width);
  checkSize(call, 'Height', Height);
  checkSize(call, 'Depth', Depth);
  if (width === 0) invalidValue(call, 'Width is 0');
  const known = Object.values(CUDA_ARRAY3D).reduce((all: number, flag) => all | flag, 0);
  if ((flags & ~known) !== 0) invalidValue(call, `Flags ${flags} are not all known`);
  const cube = (flags & CUDA_ARRAY3D.CUDA_ARRAY3D_CUBEMAP) !== 0;
  const layered = (flags & CUDA_ARRAY3D.CUDA_ARRAY3D_LAYERED) !== 0;
  if (cube && (width !== Height || (layered ? Depth === 0 || Depth % 6 !== 0 : Depth !== 6))) {
    invalidValue(call, 'a cube has six square faces, or a multiple of them in layers');
  }
  if (layered && Depth === 0)
    invalidValue(call, 'a layered array needs a Depth, the number of layers');
  if (!layered && Depth > 0 && Height === 0)
    invalidValue(call, 'an array with a Depth needs a Height');
  const height = Math.max(1, Height);
  const depth = Math.max(1, Depth);
  const pitch =
    Math.ceil((width * texelBytes(call, format, channels)) / ROW_ALIGNMENT) * ROW_ALIGNMENT;
  const bytes = pitch * height * depth;
  const allocation =
    context.obtain(() => context.memory.allocate(bytes, 'array')) ??
    context.outOfMemory(call, bytes);
  return {
    context,
    allocation,
    address: allocation.address,
    width,
    height,
    depth,
    pitch,
    format,
    channels,
    flags,
    layered: layered || cube,
  };
}
