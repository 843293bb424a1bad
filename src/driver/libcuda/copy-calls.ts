/**
 * Copies and fills. All of them are enqueued and return at once, provided that host ends are
 * page-locked.
 */
import type { CUDA_MEMCPY2D, CUDA_MEMCPY3D, Driver } from '../driver.js';
import type { Binding } from './binding.js';
import { hex } from './memory-calls.js';
import { STRUCTURE } from '../../native/native-memory.js';
import { writeMemcpy2D, writeMemcpy3D, writeMemcpy3DPeer } from './structures.js';

type CopyCalls = Pick<
  Driver,
  | 'cuMemcpyHtoDAsync'
  | 'cuMemcpyDtoHAsync'
  | 'cuMemcpyDtoDAsync'
  | 'cuMemcpyPeerAsync'
  | 'cuMemcpy2DAsync'
  | 'cuMemcpy3DAsync'
  | 'cuMemcpy3DPeerAsync'
  | 'cuMemsetD8Async'
  | 'cuMemsetD16Async'
  | 'cuMemsetD32Async'
  | 'cuMemsetD2D8Async'
  | 'cuMemsetD2D16Async'
  | 'cuMemsetD2D32Async'
>;

export function copyCalls({ calls, scratch }: Binding): CopyCalls {
  const structure = scratch.address + STRUCTURE;
  const {
    cuMemcpyHtoDAsync,
    cuMemcpyDtoHAsync,
    cuMemcpyDtoDAsync,
    cuMemcpyPeerAsync,
    cuMemcpy2DAsync,
    cuMemcpy3DAsync,
    cuMemcpy3DPeerAsync,
    cuMemsetD8Async,
    cuMemsetD16Async,
    cuMemsetD32Async,
    cuMemsetD2D8Async,
    cuMemsetD2D16Async,
    cuMemsetD2D32Async,
  } = calls;

  return {
    cuMemcpyHtoDAsync(dstDevice, srcHost, byteCount, stream) {
      const r = cuMemcpyHtoDAsync.run(dstDevice, srcHost, byteCount, stream);
      if (r !== 0) throw cuMemcpyHtoDAsync.failure(r, copied(byteCount, srcHost, dstDevice));
    },
    cuMemcpyDtoHAsync(dstHost, srcDevice, byteCount, stream) {
      const r = cuMemcpyDtoHAsync.run(dstHost, srcDevice, byteCount, stream);
      if (r !== 0) throw cuMemcpyDtoHAsync.failure(r, copied(byteCount, srcDevice, dstHost));
    },
    cuMemcpyDtoDAsync(dstDevice, srcDevice, byteCount, stream) {
      const r = cuMemcpyDtoDAsync.run(dstDevice, srcDevice, byteCount, stream);
      if (r !== 0) throw cuMemcpyDtoDAsync.failure(r, copied(byteCount, srcDevice, dstDevice));
    },
    cuMemcpyPeerAsync(dstDevice, dstContext, srcDevice, srcContext, byteCount, stream) {
      const r = cuMemcpyPeerAsync.run(
        dstDevice,
        dstContext,
        srcDevice,
        srcContext,
        byteCount,
        stream,
      );
      if (r !== 0) throw cuMemcpyPeerAsync.failure(r, copied(byteCount, srcDevice, dstDevice));
    },
    cuMemcpy2DAsync(copy, stream) {
      writeMemcpy2D(scratch, STRUCTURE, copy);
      const r = cuMemcpy2DAsync.run(structure, stream);
      if (r !== 0) throw cuMemcpy2DAsync.failure(r, copied2D(copy));
    },
    cuMemcpy3DAsync(copy, stream) {
      writeMemcpy3D(scratch, STRUCTURE, copy);
      const r = cuMemcpy3DAsync.run(structure, stream);
      if (r !== 0) throw cuMemcpy3DAsync.failure(r, `${copied2D(copy)}, ${copy.Depth} slices`);
    },
    cuMemcpy3DPeerAsync(copy, stream) {
      writeMemcpy3DPeer(scratch, STRUCTURE, copy);
      const r = cuMemcpy3DPeerAsync.run(structure, stream);
      if (r !== 0) throw cuMemcpy3DPeerAsync.failure(r, `${copied2D(copy)}, ${copy.Depth} slices`);
    },

    // koffi hands integers on unmasked and C leaves the upper bits of a narrow argument open, hence
    // the masks.
    cuMemsetD8Async(dstDevice, value, n, stream) {
      const r = cuMemsetD8Async.run(dstDevice, value & 0xff, n, stream);
      if (r !== 0) throw cuMemsetD8Async.failure(r, filled(dstDevice, n, 1));
    },
    cuMemsetD16Async(dstDevice, value, n, stream) {
      const r = cuMemsetD16Async.run(dstDevice, value & 0xffff, n, stream);
      if (r !== 0) throw cuMemsetD16Async.failure(r, filled(dstDevice, n, 2));
    },
    cuMemsetD32Async(dstDevice, value, n, stream) {
      const r = cuMemsetD32Async.run(dstDevice, value >>> 0, n, stream);
      if (r !== 0) throw cuMemsetD32Async.failure(r, filled(dstDevice, n, 4));
    },
    cuMemsetD2D8Async(dstDevice, dstPitch, value, width, height, stream) {
      const r = cuMemsetD2D8Async.run(dstDevice, dstPitch, value & 0xff, width, height, stream);
      if (r !== 0)
        throw cuMemsetD2D8Async.failure(r, filled2D(dstDevice, dstPitch, width, height, 1));
    },
    cuMemsetD2D16Async(dstDevice, dstPitch, value, width, height, stream) {
      const r = cuMemsetD2D16Async.run(dstDevice, dstPitch, value & 0xffff, width, height, stream);
      if (r !== 0)
        throw cuMemsetD2D16Async.failure(r, filled2D(dstDevice, dstPitch, width, height, 2));
    },
    cuMemsetD2D32Async(dstDevice, dstPitch, value, width, height, stream) {
      const r = cuMemsetD2D32Async.run(dstDevice, dstPitch, value >>> 0, width, height, stream);
      if (r !== 0)
        throw cuMemsetD2D32Async.failure(r, filled2D(dstDevice, dstPitch, width, height, 4));
    },
  };
}

function copied(byteCount: number, from: number, to: number): string {
  return `${byteCount} bytes from ${hex(from)} to ${hex(to)}`;
}

function copied2D(copy: CUDA_MEMCPY2D | CUDA_MEMCPY3D): string {
  return (
    `${copy.Height} rows of ${copy.WidthInBytes} bytes, pitch ${copy.srcPitch} to ` +
    `${copy.dstPitch}`
  );
}

function filled(address: number, count: number, size: number): string {
  return `${count} elements of ${size} bytes at ${hex(address)}`;
}

function filled2D(
  address: number,
  pitch: number,
  width: number,
  height: number,
  size: number,
): string {
  return `${height} rows of ${width} elements of ${size} bytes at ${hex(address)}, pitch ${pitch}`;
}
