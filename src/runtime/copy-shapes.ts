/**
 * The structures of 2-D and 3-D copies, made from the words of their commands.
 */
import type { CUDA_MEMCPY2D, CUDA_MEMCPY3D } from '../driver/driver.js';
import {
  COPY_DEVICE_TO_HOST,
  COPY_FROM_ARRAY,
  COPY_HOST_TO_DEVICE,
  COPY_TO_ARRAY,
} from './commands.js';

/** CUmemorytype */
const HOST = 1;
const DEVICE = 2;
const ARRAY = 3;
const TWO32 = 4294967296;

/** A 64-bit integer of a command, low half first. */
export function int64(memory: Int32Array, at: number): number {
  return (memory[at]! >>> 0) + memory[at + 1]! * TWO32;
}

/** Offsets are added to the addresses, so that the structure's own X and Y stay zero. */
export function copy2D(
  memory: Int32Array,
  body: number,
  dstBase: number,
  srcBase: number,
): CUDA_MEMCPY2D {
  const kind = memory[body + 10]!;
  const dst = dstBase + int64(memory, body + 1);
  const src = srcBase + int64(memory, body + 5);
  const fromHost = kind === COPY_HOST_TO_DEVICE;
  const toHost = kind === COPY_DEVICE_TO_HOST;
  return {
    srcXInBytes: 0,
    srcY: 0,
    srcMemoryType: fromHost ? HOST : DEVICE,
    srcHost: fromHost ? src : 0,
    srcDevice: fromHost ? 0 : src,
    srcPitch: memory[body + 7]!,
    dstXInBytes: 0,
    dstY: 0,
    dstMemoryType: toHost ? HOST : DEVICE,
    dstHost: toHost ? dst : 0,
    dstDevice: toHost ? 0 : dst,
    dstPitch: memory[body + 3]!,
    WidthInBytes: memory[body + 8]!,
    Height: memory[body + 9]!,
  };
}

/** As {@link copy2D}. A copy between contexts has both ends on devices. */
export function copy3D(
  memory: Int32Array,
  body: number,
  dstBase: number,
  srcBase: number,
): CUDA_MEMCPY3D {
  const ends = memory[body + 13]!;
  const box = linearBox(memory, body, ends & 3, dstBase, srcBase);
  if ((ends & COPY_TO_ARRAY) !== 0) {
    const { x, y, z } = placeInArray(int64(memory, body + 1), box.dstPitch, box.dstHeight);
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
    const { x, y, z } = placeInArray(int64(memory, body + 6), box.srcPitch, box.srcHeight);
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

/** An offset into an array as if its rows and slices were dense: bytes, rows and slices. */
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
  const dst = dstBase + int64(memory, body + 1);
  const src = srcBase + int64(memory, body + 6);
  const fromHost = kind === COPY_HOST_TO_DEVICE;
  const toHost = kind === COPY_DEVICE_TO_HOST;
  return {
    srcXInBytes: 0,
    srcY: 0,
    srcZ: 0,
    srcMemoryType: fromHost ? HOST : DEVICE,
    srcHost: fromHost ? src : 0,
    srcDevice: fromHost ? 0 : src,
    srcPitch: memory[body + 8]!,
    srcHeight: memory[body + 9]!,
    dstXInBytes: 0,
    dstY: 0,
    dstZ: 0,
    dstMemoryType: toHost ? HOST : DEVICE,
    dstHost: toHost ? dst : 0,
    dstDevice: toHost ? 0 : dst,
    dstPitch: memory[body + 3]!,
    dstHeight: memory[body + 4]!,
    WidthInBytes: memory[body + 10]!,
    Height: memory[body + 11]!,
    Depth: memory[body + 12]!,
  };
}
