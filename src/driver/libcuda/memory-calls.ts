/**
 * Device, managed and host memory.
 */
import type { Driver } from '../driver.js';
import { CUpointer_attribute } from '../attributes.js';
import { CUresult } from '../../ground/result.js';
import type { Binding } from './binding.js';
import { memLocation } from './structures.js';

type MemoryCalls = Pick<
  Driver,
  | 'cuMemGetInfo'
  | 'cuMemAlloc'
  | 'cuMemAllocPitch'
  | 'cuMemFree'
  | 'cuMemAllocAsync'
  | 'cuMemAllocFromPoolAsync'
  | 'cuMemFreeAsync'
  | 'cuMemAllocManaged'
  | 'cuMemHostAlloc'
  | 'cuMemFreeHost'
  | 'cuMemHostRegister'
  | 'cuMemHostUnregister'
  | 'cuMemHostGetDevicePointer'
  | 'hostAddress'
  | 'hostView'
  | 'cuMemPrefetchAsync'
  | 'cuMemAdvise'
  | 'cuPointerGetAttribute'
>;

export function memoryCalls({ koffi, calls, scratch }: Binding): MemoryCalls {
  const out0 = scratch.address;
  const out1 = out0 + 8;
  const {
    cuMemGetInfo,
    cuMemAlloc,
    cuMemAllocPitch,
    cuMemFree,
    cuMemAllocAsync,
    cuMemAllocFromPoolAsync,
    cuMemFreeAsync,
    cuMemAllocManaged,
    cuMemHostAlloc,
    cuMemFreeHost,
    cuMemHostRegister,
    cuMemHostUnregister,
    cuMemHostGetDevicePointer,
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
    cuMemGetInfo() {
      const r = cuMemGetInfo.run(out0, out1);
      if (r !== 0) throw cuMemGetInfo.failure(r);
      return { free: scratch.u64(0), total: scratch.u64(8) };
    },
    cuMemAlloc(bytesize) {
      const r = cuMemAlloc.run(out0, bytesize);
      if (r !== 0) throw cuMemAlloc.failure(r, `${bytesize} bytes`);
      return scratch.u64(0);
    },
    cuMemAllocPitch(widthInBytes, height, elementSizeBytes) {
      const r = cuMemAllocPitch.run(out0, out1, widthInBytes, height, elementSizeBytes);
      if (r !== 0) {
        throw cuMemAllocPitch.failure(
          r,
          `${height} rows of ${widthInBytes} bytes, elements of ${elementSizeBytes} bytes`,
        );
      }
      return { dptr: scratch.u64(0), pitch: scratch.u64(8) };
    },
    cuMemFree(dptr) {
      const r = cuMemFree.run(dptr);
      if (r !== 0) throw cuMemFree.failure(r, hex(dptr));
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
    cuMemFreeAsync(dptr, stream) {
      const r = cuMemFreeAsync.run(dptr, stream);
      if (r !== 0) throw cuMemFreeAsync.failure(r, hex(dptr));
    },
    cuMemAllocManaged(bytesize, flags) {
      const r = cuMemAllocManaged.run(out0, bytesize, flags);
      if (r !== 0) throw cuMemAllocManaged.failure(r, `${bytesize} bytes, flags ${flags}`);
      return scratch.u64(0);
    },

    cuMemHostAlloc(bytesize, flags) {
      const r = cuMemHostAlloc.run(out0, bytesize, flags);
      if (r !== 0) throw cuMemHostAlloc.failure(r, `${bytesize} bytes, flags ${flags}`);
      return scratch.u64(0);
    },
    cuMemFreeHost(p) {
      const r = cuMemFreeHost.run(p);
      if (r !== 0) throw cuMemFreeHost.failure(r, hex(p));
    },
    cuMemHostRegister(buffer, byteOffset, bytesize, flags) {
      const range = `${bytesize} bytes at ${byteOffset} of a buffer of ${buffer.byteLength}, flags ${flags}`;
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
    cuMemHostGetDevicePointer(p, flags) {
      const r = cuMemHostGetDevicePointer.run(out0, p, flags);
      if (r !== 0) throw cuMemHostGetDevicePointer.failure(r, hex(p));
      return scratch.u64(0);
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
