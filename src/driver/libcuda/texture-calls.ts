/**
 * Arrays, and the objects through which kernels read textures and write surfaces.
 */
import { STRUCTURE } from '../../native/native-memory.js';
import type { CUarray, CUsurfObject, CUtexObject } from '../handles.js';
import type {
  CUDA_ARRAY3D_DESCRIPTOR,
  CUDA_ARRAY_DESCRIPTOR,
  CUDA_RESOURCE_DESC,
  CUDA_TEXTURE_DESC,
} from '../structures.js';
import type { Binding } from './binding.js';
import type { RowsOf } from './call-row.js';
import { hex } from './memory-calls.js';
import { plainCalls } from './plain-calls.js';
import {
  RESOURCE_DESC,
  writeArray3DDescriptor,
  writeArrayDescriptor,
  writeResourceDesc,
  writeTextureDesc,
} from './structures.js';

/** Arrays, textures and surfaces. */
export interface TextureCalls {
  cuArrayCreate(desc: CUDA_ARRAY_DESCRIPTOR): CUarray;
  cuArray3DCreate(desc: CUDA_ARRAY3D_DESCRIPTOR): CUarray;
  cuArrayDestroy(hArray: CUarray): void;
  cuTexObjectCreate(resDesc: CUDA_RESOURCE_DESC, texDesc: CUDA_TEXTURE_DESC): CUtexObject;
  cuTexObjectDestroy(texObject: CUtexObject): void;
  cuSurfObjectCreate(resDesc: CUDA_RESOURCE_DESC): CUsurfObject;
  cuSurfObjectDestroy(surfObject: CUsurfObject): void;
}

export const TEXTURE_CALLS = {
  cuArrayCreate: {
    since: '3.2',
    symbols: ['cuArrayCreate_v2'],
    args: ['uintptr_t pHandle', 'uintptr_t pAllocateArray'],
  },
  cuArray3DCreate: {
    since: '3.2',
    symbols: ['cuArray3DCreate_v2'],
    args: ['uintptr_t pHandle', 'uintptr_t pAllocateArray'],
  },
  cuArrayDestroy: {
    since: '2.0',
    symbols: ['cuArrayDestroy'],
    args: ['uintptr_t hArray'],
    plain: (hArray) => hex(hArray),
  },
  cuTexObjectCreate: {
    since: '5.0',
    symbols: ['cuTexObjectCreate'],
    args: [
      'uintptr_t pTexObject',
      'uintptr_t pResDesc',
      'uintptr_t pTexDesc',
      'uintptr_t pResViewDesc',
    ],
  },
  cuTexObjectDestroy: {
    since: '5.0',
    symbols: ['cuTexObjectDestroy'],
    args: ['uint64_t texObject'],
    plain: (texObject) => hex(texObject),
  },
  cuSurfObjectCreate: {
    since: '5.0',
    symbols: ['cuSurfObjectCreate'],
    args: ['uintptr_t pSurfObject', 'uintptr_t pResDesc'],
  },
  cuSurfObjectDestroy: {
    since: '5.0',
    symbols: ['cuSurfObjectDestroy'],
    args: ['uint64_t surfObject'],
    plain: (surfObject) => hex(surfObject),
  },
} as const satisfies RowsOf<TextureCalls>;

/** The fields after the resource's description. */
const TEXTURE = STRUCTURE + RESOURCE_DESC.size;

export function textureCalls(binding: Binding): TextureCalls {
  const { calls, scratch } = binding;
  const out = scratch.address;
  const structure = scratch.address + STRUCTURE;
  const { cuArrayCreate, cuArray3DCreate, cuTexObjectCreate, cuSurfObjectCreate } = calls;

  return {
    ...plainCalls(binding, TEXTURE_CALLS),
    cuArrayCreate(desc) {
      writeArrayDescriptor(scratch, STRUCTURE, desc);
      const r = cuArrayCreate.run(out, structure);
      if (r !== 0) throw cuArrayCreate.failure(r, `${desc.Height} rows of ${desc.Width} texels`);
      return scratch.u64(0);
    },
    cuArray3DCreate(desc) {
      writeArray3DDescriptor(scratch, STRUCTURE, desc);
      const r = cuArray3DCreate.run(out, structure);
      if (r !== 0)
        throw cuArray3DCreate.failure(
          r,
          `${desc.Depth} slices of ${desc.Height} rows of ${desc.Width} texels`,
        );
      return scratch.u64(0);
    },
    cuTexObjectCreate(resDesc, texDesc) {
      writeResourceDesc(scratch, STRUCTURE, resDesc);
      writeTextureDesc(scratch, TEXTURE, texDesc);
      // No resource view: the texture reads the resource in its own format.
      const r = cuTexObjectCreate.run(out, structure, scratch.address + TEXTURE, 0);
      if (r !== 0) throw cuTexObjectCreate.failure(r);
      return scratch.u64(0);
    },
    cuSurfObjectCreate(resDesc) {
      writeResourceDesc(scratch, STRUCTURE, resDesc);
      const r = cuSurfObjectCreate.run(out, structure);
      if (r !== 0) throw cuSurfObjectCreate.failure(r);
      return scratch.u64(0);
    },
  };
}
