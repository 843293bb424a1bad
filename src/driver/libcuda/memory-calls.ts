/**
 * Device, managed and host memory.
 */
import { CUresult } from '../../ground/result.js';
import { CUpointer_attribute } from '../attributes.js';
import type { CUdevice, CUdeviceptr, CUmemoryPool, CUstream, HostAddress } from '../handles.js';
import type { Binding } from './binding.js';
import type { RowsOf } from './call-row.js';
import { plainCalls } from './plain-calls.js';
import { memLocation } from './structures.js';

/** Device and managed memory; sizes in bytes. */
export interface MemoryCalls {
  cuMemGetInfo(): { free: number; total: number };
  cuMemAlloc(bytesize: number): CUdeviceptr;
  cuMemAllocPitch(
    widthInBytes: number,
    height: number,
    elementSizeBytes: number,
  ): { dptr: CUdeviceptr; pitch: number };
  cuMemFree(dptr: CUdeviceptr): void;
  cuMemAllocAsync(bytesize: number, stream: CUstream): CUdeviceptr;
  cuMemAllocFromPoolAsync(bytesize: number, pool: CUmemoryPool, stream: CUstream): CUdeviceptr;
  cuMemFreeAsync(dptr: CUdeviceptr, stream: CUstream): void;
  /** `flags`: CU_MEM_ATTACH_GLOBAL 1, HOST 2, SINGLE 4. */
  cuMemAllocManaged(bytesize: number, flags: number): CUdeviceptr;
  cuMemPrefetchAsync(dptr: CUdeviceptr, count: number, dstDevice: CUdevice, stream: CUstream): void;
  cuMemAdvise(dptr: CUdeviceptr, count: number, advice: number, device: CUdevice): void;
}

/** Host memory, and addresses of all kinds; sizes in bytes. */
export interface HostMemoryCalls {
  /** `flags`: CU_MEMHOSTALLOC_PORTABLE 1, DEVICEMAP 2, WRITECOMBINED 4. */
  cuMemHostAlloc(bytesize: number, flags: number): HostAddress;
  cuMemFreeHost(p: HostAddress): void;
  /**
   * Page-locks `bytesize` bytes of `buffer` from `byteOffset` on and returns their address. The
   * caller keeps `buffer` referenced until cuMemHostUnregister. `flags`:
   * CU_MEMHOSTREGISTER_PORTABLE 1, DEVICEMAP 2.
   */
  cuMemHostRegister(
    buffer: SharedArrayBuffer,
    byteOffset: number,
    bytesize: number,
    flags: number,
  ): HostAddress;
  cuMemHostUnregister(p: HostAddress): void;
  /**
   * Returns the address at which `buffer` begins, to find a page boundary in it. It is no address
   * for the driver until it is registered.
   */
  hostAddress(buffer: SharedArrayBuffer): HostAddress;
  cuMemHostGetDevicePointer(p: HostAddress, flags: number): CUdeviceptr;
  /**
   * Returns the bytes of host memory of the driver, or of managed memory; their lifetime is that
   * memory's. Read and write through a view of `.buffer` from `.byteOffset` on.
   */
  hostView(p: HostAddress, bytesize: number): Uint8Array;
  /** `attribute` is a value of `CUpointer_attribute` with a 32- or 64-bit result. */
  cuPointerGetAttribute(attribute: number, ptr: CUdeviceptr): number;
}

export const MEMORY_CALLS = {
  cuMemGetInfo: {
    since: '3.2',
    symbols: ['cuMemGetInfo_v2'],
    args: ['size_t* free', 'size_t* total'],
    plain: true,
  },
  cuMemAlloc: {
    since: '3.2',
    symbols: ['cuMemAlloc_v2'],
    args: ['uintptr_t* dptr', 'size_t bytesize'],
    plain: (bytesize) => `${bytesize} bytes`,
  },
  cuMemAllocPitch: {
    since: '3.2',
    symbols: ['cuMemAllocPitch_v2'],
    args: [
      'uintptr_t* dptr',
      'size_t* pitch',
      'size_t WidthInBytes',
      'size_t Height',
      'uint32_t ElementSizeBytes',
    ],
    plain: (widthInBytes, height, elementSizeBytes) =>
      `${height} rows of ${widthInBytes} bytes, elements of ${elementSizeBytes} bytes`,
  },
  cuMemFree: {
    since: '3.2',
    symbols: ['cuMemFree_v2'],
    args: ['uintptr_t dptr'],
    plain: (dptr) => hex(dptr),
  },
  cuMemAllocAsync: {
    since: '11.2',
    symbols: ['cuMemAllocAsync'],
    args: ['uintptr_t dptr', 'size_t bytesize', 'uintptr_t hStream'],
  },
  cuMemAllocFromPoolAsync: {
    since: '11.2',
    symbols: ['cuMemAllocFromPoolAsync'],
    args: ['uintptr_t dptr', 'size_t bytesize', 'uintptr_t pool', 'uintptr_t hStream'],
  },
  cuMemFreeAsync: {
    since: '11.2',
    symbols: ['cuMemFreeAsync'],
    args: ['uintptr_t dptr', 'uintptr_t hStream'],
  },
  cuMemAllocManaged: {
    since: '6.0',
    symbols: ['cuMemAllocManaged'],
    args: ['uintptr_t* dptr', 'size_t bytesize', 'uint32_t flags'],
    plain: (bytesize, flags) => `${bytesize} bytes, flags ${flags}`,
  },
  cuMemHostAlloc: {
    since: '2.2',
    symbols: ['cuMemHostAlloc'],
    args: ['uintptr_t* pp', 'size_t bytesize', 'uint32_t Flags'],
    plain: (bytesize, flags) => `${bytesize} bytes, flags ${flags}`,
  },
  cuMemFreeHost: {
    since: '2.0',
    symbols: ['cuMemFreeHost'],
    args: ['uintptr_t p'],
    plain: (p) => hex(p),
  },
  cuMemHostRegister: {
    since: '4.0',
    symbols: ['cuMemHostRegister_v2', 'cuMemHostRegister'],
    args: ['uintptr_t p', 'size_t bytesize', 'uint32_t Flags'],
  },
  cuMemHostUnregister: { since: '4.0', symbols: ['cuMemHostUnregister'], args: ['uintptr_t p'] },
  cuMemHostGetDevicePointer: {
    since: '3.2',
    symbols: ['cuMemHostGetDevicePointer_v2'],
    args: ['uintptr_t* pdptr', 'uintptr_t p', 'uint32_t Flags'],
    plain: (p) => hex(p),
  },
  cuMemPrefetchAsync_v2: {
    since: '12.2',
    symbols: ['cuMemPrefetchAsync_v2'],
    args: [
      'uintptr_t devPtr',
      'size_t count',
      'uint64_t location',
      'uint32_t flags',
      'uintptr_t hStream',
    ],
  },
  cuMemPrefetchAsync_v1: {
    since: '8.0',
    symbols: ['cuMemPrefetchAsync'],
    args: ['uintptr_t devPtr', 'size_t count', 'int dstDevice', 'uintptr_t hStream'],
  },
  cuMemAdvise_v2: {
    since: '12.2',
    symbols: ['cuMemAdvise_v2'],
    args: ['uintptr_t devPtr', 'size_t count', 'int advice', 'uint64_t location'],
  },
  cuMemAdvise_v1: {
    since: '8.0',
    symbols: ['cuMemAdvise'],
    args: ['uintptr_t devPtr', 'size_t count', 'int advice', 'int device'],
  },
  cuPointerGetAttribute: {
    since: '4.0',
    symbols: ['cuPointerGetAttribute'],
    args: ['uintptr_t data', 'int attribute', 'uintptr_t ptr'],
  },
} as const satisfies RowsOf<MemoryCalls & HostMemoryCalls>;

export function memoryCalls(binding: Binding): MemoryCalls & HostMemoryCalls {
  const { koffi, calls, scratch } = binding;
  const out0 = scratch.address;
  const {
    cuMemFreeAsync,
    cuMemAllocAsync,
    cuMemAllocFromPoolAsync,
    cuMemHostRegister,
    cuMemHostUnregister,
    cuMemPrefetchAsync_v1,
    cuMemPrefetchAsync_v2,
    cuMemAdvise_v1,
    cuMemAdvise_v2,
    cuPointerGetAttribute,
  } = calls;
  /** What is registered through this provider, by address: referenced until it is unregistered. */
  const registered = new Map<
    number,
    { buffer: SharedArrayBuffer; byteOffset: number; bytesize: number }
  >();

  return {
    ...plainCalls(binding, MEMORY_CALLS),
    cuMemFreeAsync(dptr, stream) {
      const r = cuMemFreeAsync.run(dptr, stream);
      if (r !== 0) throw cuMemFreeAsync.failure(r, hex(dptr));
    },
    cuMemAllocAsync(bytesize, stream) {
      const r = cuMemAllocAsync.run(out0, bytesize, stream);
      if (r !== 0) throw cuMemAllocAsync.failure(r, `${bytesize} bytes`);
      return scratch.u64(0);
    },
    cuMemAllocFromPoolAsync(bytesize, pool, stream) {
      const r = cuMemAllocFromPoolAsync.run(out0, bytesize, pool, stream);
      if (r !== 0) throw cuMemAllocFromPoolAsync.failure(r, `${bytesize} bytes`);
      return scratch.u64(0);
    },

    cuMemHostRegister(buffer, byteOffset, bytesize, flags) {
      const range =
        `${bytesize} bytes at ${byteOffset} of a buffer of ${buffer.byteLength}, ` +
        `flags ${flags}`;
      if (bytesize <= 0 || byteOffset < 0 || byteOffset + bytesize > buffer.byteLength) {
        throw cuMemHostRegister.failure(CUresult.CUDA_ERROR_INVALID_VALUE, range);
      }
      const address = Number(koffi.address(new Uint8Array(buffer, byteOffset)));
      const r = cuMemHostRegister.run(address, bytesize, flags);
      if (r !== 0) throw cuMemHostRegister.failure(r, range);
      registered.set(address, { buffer, byteOffset, bytesize });
      return address;
    },
    cuMemHostUnregister(p) {
      const r = cuMemHostUnregister.run(p);
      if (r !== 0) throw cuMemHostUnregister.failure(r, hex(p));
      registered.delete(p);
    },
    hostAddress(buffer) {
      return Number(koffi.address(new Uint8Array(buffer)));
    },
    hostView(p, bytesize) {
      for (const [address, { buffer, byteOffset, bytesize: size }] of registered) {
        if (p >= address && p + bytesize <= address + size)
          return new Uint8Array(buffer, byteOffset + p - address, bytesize);
      }
      // The driver's own memory, or what another thread registered: a view that keeps nothing
      // alive.
      return new Uint8Array(koffi.view(p, bytesize));
    },

    cuMemPrefetchAsync(dptr, count, dstDevice, stream) {
      const call = cuMemPrefetchAsync_v2.available ? cuMemPrefetchAsync_v2 : cuMemPrefetchAsync_v1;
      const r =
        call === cuMemPrefetchAsync_v2
          ? cuMemPrefetchAsync_v2.run(dptr, count, memLocation(dstDevice), 0, stream)
          : cuMemPrefetchAsync_v1.run(dptr, count, dstDevice, stream);
      if (r !== 0) throw call.failure(r, `${count} bytes at ${hex(dptr)} to device ${dstDevice}`);
    },
    cuMemAdvise(dptr, count, advice, device) {
      const call = cuMemAdvise_v2.available ? cuMemAdvise_v2 : cuMemAdvise_v1;
      const r =
        call === cuMemAdvise_v2
          ? cuMemAdvise_v2.run(dptr, count, advice, memLocation(device))
          : cuMemAdvise_v1.run(dptr, count, advice, device);
      if (r !== 0)
        throw call.failure(
          r,
          `advice ${advice} for ${count} bytes at ${hex(dptr)}, device ${device}`,
        );
    },
    cuPointerGetAttribute(attribute, ptr) {
      scratch.setU64(0, 0); // half of the attributes write 32 bits
      const r = cuPointerGetAttribute.run(out0, attribute, ptr);
      if (r !== 0) throw cuPointerGetAttribute.failure(r, `attribute ${attribute} of ${hex(ptr)}`);
      return attribute === CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
        ? scratch.i32[0]!
        : scratch.u64(0);
    },
  };
}

export function hex(address: number): string {
  return `0x${address.toString(16)}`;
}
