/**
 * Arrays, and the objects through which kernels read textures and write surfaces.
 */
import type { Driver } from '../driver.js';
import type { Binding } from './binding.js';
import { hex } from './memory-calls.js';
import { STRUCTURE } from '../../native/native-memory.js';
import {
  RESOURCE_DESC,
  writeArray3DDescriptor,
  writeArrayDescriptor,
  writeResourceDesc,
  writeTextureDesc,
} from './structures.js';

type TextureCalls = Pick<
  Driver,
  | 'cuArrayCreate'
  | 'cuArray3DCreate'
  | 'cuArrayDestroy'
  | 'cuTexObjectCreate'
  | 'cuTexObjectDestroy'
  | 'cuSurfObjectCreate'
  | 'cuSurfObjectDestroy'
>;

/** Behind the resource's description. */
const TEXTURE = STRUCTURE + RESOURCE_DESC.size;

export function textureCalls({ calls, scratch }: Binding): TextureCalls {
  const out = scratch.address;
  const structure = scratch.address + STRUCTURE;
  const {
    cuArrayCreate,
    cuArray3DCreate,
    cuArrayDestroy,
    cuTexObjectCreate,
    cuTexObjectDestroy,
    cuSurfObjectCreate,
    cuSurfObjectDestroy,
  } = calls;

  return {
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
    cuArrayDestroy(hArray) {
      const r = cuArrayDestroy.run(hArray);
      if (r !== 0) throw cuArrayDestroy.failure(r, hex(hArray));
    },
    cuTexObjectCreate(resDesc, texDesc) {
      writeResourceDesc(scratch, STRUCTURE, resDesc);
      writeTextureDesc(scratch, TEXTURE, texDesc);
      // No resource view: the texture reads what the resource says it is.
      const r = cuTexObjectCreate.run(out, structure, scratch.address + TEXTURE, 0);
      if (r !== 0) throw cuTexObjectCreate.failure(r);
      return scratch.u64(0);
    },
    cuTexObjectDestroy(texObject) {
      const r = cuTexObjectDestroy.run(texObject);
      if (r !== 0) throw cuTexObjectDestroy.failure(r, hex(texObject));
    },
    cuSurfObjectCreate(resDesc) {
      writeResourceDesc(scratch, STRUCTURE, resDesc);
      const r = cuSurfObjectCreate.run(out, structure);
      if (r !== 0) throw cuSurfObjectCreate.failure(r);
      return scratch.u64(0);
    },
    cuSurfObjectDestroy(surfObject) {
      const r = cuSurfObjectDestroy.run(surfObject);
      if (r !== 0) throw cuSurfObjectDestroy.failure(r, hex(surfObject));
    },
  };
}
