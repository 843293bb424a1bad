/**
 * Copies and fills. All of them are enqueued and return at once, provided that host ends are
 * page-locked.
 */
import { STRUCTURE } from '../../native/native-memory.js';
import type { CUcontext, CUdeviceptr, CUstream, HostAddress } from '../handles.js';
import type { CUDA_MEMCPY2D, CUDA_MEMCPY3D, CUDA_MEMCPY3D_PEER } from '../structures.js';
import type { Binding } from './binding.js';
import type { RowsOf } from './call-row.js';
import { hex } from './memory-calls.js';
import { writeMemcpy2D, writeMemcpy3D, writeMemcpy3DPeer } from './structures.js';

/** Copies and fills: all of them asynchronous, host ends page-locked. Sizes in bytes. */
export interface CopyCalls {
  cuMemcpyHtoDAsync(
    dstDevice: CUdeviceptr,
    srcHost: HostAddress,
    byteCount: number,
    stream: CUstream,
  ): void;
  cuMemcpyDtoHAsync(
    dstHost: HostAddress,
    srcDevice: CUdeviceptr,
    byteCount: number,
    stream: CUstream,
  ): void;
  cuMemcpyDtoDAsync(
    dstDevice: CUdeviceptr,
    srcDevice: CUdeviceptr,
    byteCount: number,
    stream: CUstream,
  ): void;
  cuMemcpyPeerAsync(
    dstDevice: CUdeviceptr,
    dstContext: CUcontext,
    srcDevice: CUdeviceptr,
    srcContext: CUcontext,
    byteCount: number,
    stream: CUstream,
  ): void;
  cuMemcpy2DAsync(copy: CUDA_MEMCPY2D, stream: CUstream): void;
  cuMemcpy3DAsync(copy: CUDA_MEMCPY3D, stream: CUstream): void;
  cuMemcpy3DPeerAsync(copy: CUDA_MEMCPY3D_PEER, stream: CUstream): void;
  /** Writes `n` elements of 8, 16 or 32 bits. */
  cuMemsetD8Async(dstDevice: CUdeviceptr, value: number, n: number, stream: CUstream): void;
  cuMemsetD16Async(dstDevice: CUdeviceptr, value: number, n: number, stream: CUstream): void;
  cuMemsetD32Async(dstDevice: CUdeviceptr, value: number, n: number, stream: CUstream): void;
  /** Writes `height` rows of `width` elements, `dstPitch` bytes apart. */
  cuMemsetD2D8Async(
    dstDevice: CUdeviceptr,
    dstPitch: number,
    value: number,
    width: number,
    height: number,
    stream: CUstream,
  ): void;
  cuMemsetD2D16Async(
    dstDevice: CUdeviceptr,
    dstPitch: number,
    value: number,
    width: number,
    height: number,
    stream: CUstream,
  ): void;
  cuMemsetD2D32Async(
    dstDevice: CUdeviceptr,
    dstPitch: number,
    value: number,
    width: number,
    height: number,
    stream: CUstream,
  ): void;
}

export const COPY_CALLS = {
  cuMemcpyHtoDAsync: {
    since: '3.2',
    symbols: ['cuMemcpyHtoDAsync_v2'],
    args: ['uintptr_t dstDevice', 'uintptr_t srcHost', 'size_t ByteCount', 'uintptr_t hStream'],
  },
  cuMemcpyDtoHAsync: {
    since: '3.2',
    symbols: ['cuMemcpyDtoHAsync_v2'],
    args: ['uintptr_t dstHost', 'uintptr_t srcDevice', 'size_t ByteCount', 'uintptr_t hStream'],
  },
  cuMemcpyDtoDAsync: {
    since: '3.2',
    symbols: ['cuMemcpyDtoDAsync_v2'],
    args: ['uintptr_t dstDevice', 'uintptr_t srcDevice', 'size_t ByteCount', 'uintptr_t hStream'],
  },
  cuMemcpyPeerAsync: {
    since: '4.0',
    symbols: ['cuMemcpyPeerAsync'],
    args: [
      'uintptr_t dstDevice',
      'uintptr_t dstContext',
      'uintptr_t srcDevice',
      'uintptr_t srcContext',
      'size_t ByteCount',
      'uintptr_t hStream',
    ],
  },
  cuMemcpy2DAsync: {
    since: '3.2',
    symbols: ['cuMemcpy2DAsync_v2'],
    args: ['uintptr_t pCopy', 'uintptr_t hStream'],
  },
  cuMemcpy3DAsync: {
    since: '3.2',
    symbols: ['cuMemcpy3DAsync_v2'],
    args: ['uintptr_t pCopy', 'uintptr_t hStream'],
  },
  cuMemcpy3DPeerAsync: {
    since: '4.0',
    symbols: ['cuMemcpy3DPeerAsync'],
    args: ['uintptr_t pCopy', 'uintptr_t hStream'],
  },
  cuMemsetD8Async: {
    since: '3.2',
    symbols: ['cuMemsetD8Async'],
    args: ['uintptr_t dstDevice', 'uint8_t uc', 'size_t N', 'uintptr_t hStream'],
  },
  cuMemsetD16Async: {
    since: '3.2',
    symbols: ['cuMemsetD16Async'],
    args: ['uintptr_t dstDevice', 'uint16_t us', 'size_t N', 'uintptr_t hStream'],
  },
  cuMemsetD32Async: {
    since: '3.2',
    symbols: ['cuMemsetD32Async'],
    args: ['uintptr_t dstDevice', 'uint32_t ui', 'size_t N', 'uintptr_t hStream'],
  },
  cuMemsetD2D8Async: {
    since: '3.2',
    symbols: ['cuMemsetD2D8Async'],
    args: [
      'uintptr_t dstDevice',
      'size_t dstPitch',
      'uint8_t uc',
      'size_t Width',
      'size_t Height',
      'uintptr_t hStream',
    ],
  },
  cuMemsetD2D16Async: {
    since: '3.2',
    symbols: ['cuMemsetD2D16Async'],
    args: [
      'uintptr_t dstDevice',
      'size_t dstPitch',
      'uint16_t us',
      'size_t Width',
      'size_t Height',
      'uintptr_t hStream',
    ],
  },
  cuMemsetD2D32Async: {
    since: '3.2',
    symbols: ['cuMemsetD2D32Async'],
    args: [
      'uintptr_t dstDevice',
      'size_t dstPitch',
      'uint32_t ui',
      'size_t Width',
      'size_t Height',
      'uintptr_t hStream',
    ],
  },
} as const satisfies RowsOf<CopyCalls>;

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
