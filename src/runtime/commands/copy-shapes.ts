/** The words of 2-D and 3-D copies, and the driver's structures that are made of them. */
import type { CUDA_MEMCPY2D, CUDA_MEMCPY3D } from '../../driver/driver.js';
import { int64 } from './record.js';

export const COPY_HOST_TO_DEVICE = 0;
export const COPY_DEVICE_TO_HOST = 1;
export const COPY_DEVICE_TO_DEVICE = 2;
/** The direction of a copy between two contexts. */
export const COPY_PEER = 3;
/**
 * Added to the kind of a `copy3D` whose destination or source is an array; an array's offset counts
 * as if it were dense.
 */
export const COPY_TO_ARRAY = 4;
export const COPY_FROM_ARRAY = 8;

/** The words of a 2-D copy; offsets are 64-bit. */
export const COPY_2D = {
  to: 0,
  toOffset: 1,
  toPitch: 3,
  from: 4,
  fromOffset: 5,
  fromPitch: 7,
  width: 8,
  height: 9,
  kind: 10,
} as const;

/** The words of a 3-D copy; offsets are 64-bit, rows are those of a slice. */
export const COPY_3D = {
  to: 0,
  toOffset: 1,
  toPitch: 3,
  toRows: 4,
  from: 5,
  fromOffset: 6,
  fromPitch: 8,
  fromRows: 9,
  width: 10,
  height: 11,
  depth: 12,
  kind: 13,
} as const;

/** Values of CUmemorytype. */
const HOST = 1;
const DEVICE = 2;
const ARRAY = 3;

/**
 * Makes the structure of a 2-D copy. Offsets are added to the addresses, so that the structure's
 * own X and Y stay zero.
 */
export function copy2D(
  memory: Int32Array,
  body: number,
  dstBase: number,
  srcBase: number,
): CUDA_MEMCPY2D {
  const kind = memory[body + COPY_2D.kind]!;
  const dst = dstBase + int64(memory, body + COPY_2D.toOffset);
  const src = srcBase + int64(memory, body + COPY_2D.fromOffset);
  const fromHost = kind === COPY_HOST_TO_DEVICE;
  const toHost = kind === COPY_DEVICE_TO_HOST;
  return {
    srcXInBytes: 0,
    srcY: 0,
    srcMemoryType: fromHost ? HOST : DEVICE,
    srcHost: fromHost ? src : 0,
    srcDevice: fromHost ? 0 : src,
    srcPitch: memory[body + COPY_2D.fromPitch]!,
    dstXInBytes: 0,
    dstY: 0,
    dstMemoryType: toHost ? HOST : DEVICE,
    dstHost: toHost ? dst : 0,
    dstDevice: toHost ? 0 : dst,
    dstPitch: memory[body + COPY_2D.toPitch]!,
    WidthInBytes: memory[body + COPY_2D.width]!,
    Height: memory[body + COPY_2D.height]!,
  };
}

/** As {@link copy2D}, for a 3-D copy. A copy between contexts has both ends on devices. */
export function copy3D(
  memory: Int32Array,
  body: number,
  dstBase: number,
  srcBase: number,
): CUDA_MEMCPY3D {
  const ends = memory[body + COPY_3D.kind]!;
  const box = linearBox(memory, body, ends & 3, dstBase, srcBase);
  if ((ends & COPY_TO_ARRAY) !== 0) {
    const { x, y, z } = placeInArray(
      int64(memory, body + COPY_3D.toOffset),
      box.dstPitch,
      box.dstHeight,
    );
    Object.assign(box, {
      dstMemoryType: ARRAY,
      dstArray: dstBase,
      dstDevice: 0,
      dstXInBytes: x,
      dstY: y,
      dstZ: z,
    });
  }
  if ((ends & COPY_FROM_ARRAY) !== 0) {
    const { x, y, z } = placeInArray(
      int64(memory, body + COPY_3D.fromOffset),
      box.srcPitch,
      box.srcHeight,
    );
    Object.assign(box, {
      srcMemoryType: ARRAY,
      srcArray: srcBase,
      srcDevice: 0,
      srcXInBytes: x,
      srcY: y,
      srcZ: z,
    });
  }
  return box;
}

/**
 * Converts an offset into an array, counted as if its rows and slices were dense, to bytes, rows
 * and slices.
 */
function placeInArray(
  offset: number,
  pitch: number,
  rows: number,
): { x: number; y: number; z: number } {
  const row = Math.floor(offset / pitch);
  return { x: offset % pitch, y: row % rows, z: Math.floor(row / rows) };
}

function linearBox(
  memory: Int32Array,
  body: number,
  kind: number,
  dstBase: number,
  srcBase: number,
): CUDA_MEMCPY3D {
  const dst = dstBase + int64(memory, body + COPY_3D.toOffset);
  const src = srcBase + int64(memory, body + COPY_3D.fromOffset);
  const fromHost = kind === COPY_HOST_TO_DEVICE;
  const toHost = kind === COPY_DEVICE_TO_HOST;
  return {
    srcXInBytes: 0,
    srcY: 0,
    srcZ: 0,
    srcMemoryType: fromHost ? HOST : DEVICE,
    srcHost: fromHost ? src : 0,
    srcDevice: fromHost ? 0 : src,
    srcPitch: memory[body + COPY_3D.fromPitch]!,
    srcHeight: memory[body + COPY_3D.fromRows]!,
    dstXInBytes: 0,
    dstY: 0,
    dstZ: 0,
    dstMemoryType: toHost ? HOST : DEVICE,
    dstHost: toHost ? dst : 0,
    dstDevice: toHost ? 0 : dst,
    dstPitch: memory[body + COPY_3D.toPitch]!,
    dstHeight: memory[body + COPY_3D.toRows]!,
    WidthInBytes: memory[body + COPY_3D.width]!,
    Height: memory[body + COPY_3D.height]!,
    Depth: memory[body + COPY_3D.depth]!,
  };
}
