/**
 * Arrays, textures and surfaces. A texture or surface object is the address of a descriptor in
 * device memory, which compiled kernels read (`ptx/texture-descriptor.ts`).
 */
import { TEXTURE, TEXTURE_KIND, TEXTURE_MAGIC } from '../../../ptx/index.js';
import type { CUDA_RESOURCE_DESC, CUDA_TEXTURE_DESC, TextureCalls } from '../../driver.js';
import {
  CUDA_ARRAY3D,
  CU_TRSF,
  CUarray_format,
  CUfilter_mode,
  CUresourcetype,
} from '../../flags.js';
import { CUresult } from '../../../ground/result.js';
import type { CpuContext } from '../context.js';
import { checkSize, fail, hex, invalidValue } from '../failure.js';
import { forbidUnlessRelaxed } from '../streams/capture.js';
import type { Machine } from '../machine.js';
import { createArray, texelBytes } from '../memory/array.js';
import type { CpuArray, Texels } from '../memory/array.js';
import type { Allocation } from '../memory/device-memory.js';

/** The value of the device's attributes. */
const ADDRESS_ALIGNMENT = 256;
const PITCH_ALIGNMENT = 32;
const WIDE = new Set<number>([
  CUarray_format.CU_AD_FORMAT_UNSIGNED_INT32,
  CUarray_format.CU_AD_FORMAT_SIGNED_INT32,
]);
const FLOATS = new Set<number>([
  CUarray_format.CU_AD_FORMAT_HALF,
  CUarray_format.CU_AD_FORMAT_FLOAT,
]);

const float = new Float32Array(1);
const bits = new Int32Array(float.buffer);

export function textureCalls(machine: Machine): TextureCalls {
  function arrayOf(call: string, handle: number): CpuArray {
    return machine.find(call, 'array', machine.arrays, handle);
  }

  function add(array: CpuArray): number {
    const handle = machine.newHandle();
    machine.arrays.set(handle, array);
    return handle;
  }

  /** The texels that a resource names, in live memory of the current context. */
  function texelsOf(
    call: string,
    { resType, array, linear, pitch2D }: CUDA_RESOURCE_DESC,
  ): Texels & { linear: boolean } {
    if (resType === CUresourcetype.CU_RESOURCE_TYPE_ARRAY && array !== undefined)
      return { ...arrayOf(call, array.hArray), linear: false };
    const from =
      resType === CUresourcetype.CU_RESOURCE_TYPE_LINEAR
        ? linear
        : resType === CUresourcetype.CU_RESOURCE_TYPE_PITCH2D
          ? pitch2D
          : undefined;
    if (from === undefined)
      fail(
        call,
        CUresult.CUDA_ERROR_NOT_SUPPORTED,
        `the CPU device has no resources of type ${resType}, or its description is missing`,
      );
    const { devPtr: address, format, numChannels: channels } = from;
    const bytes = texelBytes(call, format, channels);
    if (address % ADDRESS_ALIGNMENT !== 0)
      invalidValue(call, `devPtr ${hex(address)} is not a multiple of ${ADDRESS_ALIGNMENT}`);
    let width: number;
    let height = 1;
    let pitch: number;
    if ('sizeInBytes' in from) {
      checkSize(call, 'sizeInBytes', from.sizeInBytes);
      width = Math.floor(from.sizeInBytes / bytes);
      pitch = width * bytes;
    } else {
      ({ width, height, pitchInBytes: pitch } = from);
      checkSize(call, 'width', width);
      checkSize(call, 'height', height);
      checkSize(call, 'pitchInBytes', pitch);
      if (pitch % PITCH_ALIGNMENT !== 0)
        invalidValue(call, `pitchInBytes ${pitch} is not a multiple of ${PITCH_ALIGNMENT}`);
      if (pitch < width * bytes)
        invalidValue(
          call,
          `pitchInBytes ${pitch} is less than the ${width * bytes} bytes of a row`,
        );
    }
    if (width === 0 || height === 0) invalidValue(call, 'the resource has no texels');
    machine.space(call, 'devPtr', address, (height - 1) * pitch + width * bytes, 'any');
    return {
      address,
      width,
      height,
      depth: 1,
      pitch,
      format,
      channels,
      layered: false,
      linear: 'sizeInBytes' in from,
    };
  }

  /** Writes a descriptor into memory of its own; its address is the object. */
  function describe(
    call: string,
    context: CpuContext,
    kind: number,
    texels: Texels & { linear: boolean },
    desc: CUDA_TEXTURE_DESC,
  ): number {
    const allocation =
      context.obtain(() => context.memory.allocate(TEXTURE.bytes, 'texture')) ??
      context.outOfMemory(call, TEXTURE.bytes);
    const words = new Int32Array(TEXTURE.bytes / 4);
    const put = (offset: number, value: number): void => {
      words[offset / 4] = value;
    };
    put(TEXTURE.magic, TEXTURE_MAGIC);
    put(TEXTURE.kind, kind);
    put(TEXTURE.data, texels.address);
    put(TEXTURE.width, texels.width);
    put(TEXTURE.height, texels.height);
    put(TEXTURE.depth, texels.depth);
    put(TEXTURE.pitch, texels.pitch);
    put(TEXTURE.slicePitch, texels.pitch * texels.height);
    put(TEXTURE.format, texels.format);
    put(TEXTURE.channels, texels.channels);
    put(TEXTURE.texelBytes, texelBytes(call, texels.format, texels.channels));
    put(TEXTURE.flags, desc.flags);
    put(TEXTURE.filter, texels.linear ? CUfilter_mode.CU_TR_FILTER_MODE_POINT : desc.filterMode);
    desc.addressMode.forEach((mode, axis) => {
      put(TEXTURE.addressMode + 4 * axis, mode);
    });
    desc.borderColor?.forEach((value, channel) => {
      float[0] = value;
      put(TEXTURE.border + 4 * channel, bits[0]!);
    });
    put(TEXTURE.linear, texels.linear ? 1 : 0);
    put(TEXTURE.layered, texels.layered ? 1 : 0);
    context.memory.words.set(words, allocation.address / 4);
    machine.textures.set(allocation.address, { context, allocation });
    return allocation.address;
  }

  function create(
    call: string,
    kind: number,
    resource: CUDA_RESOURCE_DESC,
    desc: CUDA_TEXTURE_DESC,
  ): number {
    const context = machine.context(call);
    forbidUnlessRelaxed(call, machine);
    const texels = texelsOf(call, resource);
    for (const mode of desc.addressMode)
      if (!(mode >= 0 && mode <= 3))
        invalidValue(call, `addressMode ${mode} is none of CUaddress_mode`);
    if (
      desc.filterMode === CUfilter_mode.CU_TR_FILTER_MODE_LINEAR &&
      !FLOATS.has(texels.format) &&
      (WIDE.has(texels.format) || (desc.flags & CU_TRSF.CU_TRSF_READ_AS_INTEGER) !== 0)
    ) {
      invalidValue(call, 'linear filtering is for textures that are read as floats');
    }
    return describe(call, context, kind, texels, desc);
  }

  function destroy(call: string, kind: string, object: number): void {
    const context = machine.context(call);
    const found =
      machine.textures.get(object) ?? invalidValue(call, `${hex(object)} is not a live ${kind}`);
    machine.textures.delete(object);
    release(context, found.allocation, () => {
      found.allocation.memory.words[object / 4] = 0;
    });
  }

  /** What queued kernels may still use stays until they are past. */
  function release(context: CpuContext, allocation: Allocation, last: () => void = () => {}): void {
    allocation.memory.retire(allocation);
    context.afterQueuedWork(() => {
      last();
      allocation.memory.reclaim(allocation);
    });
  }

  return {
    cuArrayCreate(desc) {
      const context = machine.context('cuArrayCreate');
      forbidUnlessRelaxed('cuArrayCreate', machine);
      return add(createArray('cuArrayCreate', context, { ...desc, Depth: 0, Flags: 0 }));
    },
    cuArray3DCreate(desc) {
      const context = machine.context('cuArray3DCreate');
      forbidUnlessRelaxed('cuArray3DCreate', machine);
      return add(createArray('cuArray3DCreate', context, desc));
    },
    cuArrayDestroy(hArray) {
      const { allocation } = arrayOf('cuArrayDestroy', hArray);
      machine.arrays.delete(hArray);
      release(machine.context('cuArrayDestroy'), allocation);
    },
    cuTexObjectCreate: (resource, desc) =>
      create('cuTexObjectCreate', TEXTURE_KIND.texture, resource, desc),
    cuTexObjectDestroy(texObject) {
      destroy('cuTexObjectDestroy', 'texture object', texObject);
    },
    cuSurfObjectCreate(resource) {
      const call = 'cuSurfObjectCreate';
      const { array } = resource;
      if (array === undefined) invalidValue(call, 'a surface is made of an array');
      if ((arrayOf(call, array.hArray).flags & CUDA_ARRAY3D.CUDA_ARRAY3D_SURFACE_LDST) === 0) {
        invalidValue(call, 'the array was not created with CUDA_ARRAY3D_SURFACE_LDST');
      }
      return create(call, TEXTURE_KIND.surface, resource, {
        addressMode: [1, 1, 1],
        filterMode: 0,
        flags: 0,
      });
    },
    cuSurfObjectDestroy(surfObject) {
      destroy('cuSurfObjectDestroy', 'surface object', surfObject);
    },
  };
}
