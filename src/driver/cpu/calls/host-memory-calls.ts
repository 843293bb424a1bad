/**
 * Host memory that is allocated by the driver or registered with it, and the attributes of
 * addresses.
 */
import { CUpointer_attribute as A } from '../../attributes.js';
import { CUmemAccess_flags, CUmemorytype } from '../../flags.js';
import type { HostMemoryCalls } from '../../driver.js';
import { CUresult } from '../../../ground/result.js';
import { checkSize, fail, hex, invalidValue } from '../failure.js';
import { forbidUnlessRelaxed } from '../streams/capture.js';
import type { Machine } from '../machine.js';
import { HOST_BASE } from '../memory/host-memory.js';

export function hostMemoryCalls(machine: Machine): HostMemoryCalls {
  function checkBytes(call: string, bytes: number): void {
    checkSize(call, 'bytesize', bytes);
    if (bytes === 0) invalidValue(call, 'bytesize is 0');
  }

  return {
    cuMemHostAlloc(bytesize, flags) {
      const call = 'cuMemHostAlloc';
      machine.context(call);
      forbidUnlessRelaxed(call, machine);
      checkBytes(call, bytesize);
      if ((flags & ~7) !== 0) invalidValue(call, `flags is ${flags}`);
      let buffer: SharedArrayBuffer;
      try {
        buffer = new SharedArrayBuffer(bytesize);
      } catch {
        return fail(
          call,
          CUresult.CUDA_ERROR_OUT_OF_MEMORY,
          `the host has no ${bytesize} bytes left`,
        );
      }
      return machine.host.add(buffer, 0, bytesize, 'allocated')!.address;
    },
    cuMemFreeHost(p) {
      machine.context('cuMemFreeHost');
      forbidUnlessRelaxed('cuMemFreeHost', machine);
      if (!machine.host.remove(p, 'allocated'))
        invalidValue('cuMemFreeHost', `${hex(p)} was not given by cuMemHostAlloc`);
    },
    cuMemHostRegister(buffer, byteOffset, bytesize, flags) {
      const call = 'cuMemHostRegister';
      machine.context(call);
      checkBytes(call, bytesize);
      checkSize(call, 'byteOffset', byteOffset);
      if ((flags & ~15) !== 0) invalidValue(call, `flags is ${flags}`);
      if (byteOffset + bytesize > buffer.byteLength) {
        invalidValue(
          call,
          `${bytesize} bytes from ${byteOffset} on are not inside a buffer of ` +
            `${buffer.byteLength} bytes`,
        );
      }
      const range = machine.host.add(buffer, byteOffset, bytesize, 'registered');
      return (
        range ??
        fail(
          call,
          CUresult.CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
          'part of the range is registered already',
        )
      ).address;
    },
    cuMemHostUnregister(p) {
      machine.context('cuMemHostUnregister');
      if (!machine.host.remove(p, 'registered')) {
        fail(
          'cuMemHostUnregister',
          CUresult.CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED,
          `no registered range begins at ${hex(p)}`,
        );
      }
    },
    hostAddress: (buffer) => machine.host.bufferOf(buffer).origin,
    /** The same number: it is valid in copies and stream memory operations, not in kernels. */
    cuMemHostGetDevicePointer(p) {
      machine.context('cuMemHostGetDevicePointer');
      machine.space('cuMemHostGetDevicePointer', 'p', p, 1, 'host');
      return p;
    },
    hostView(p, bytesize) {
      const space = machine.space('hostView', 'p', p, bytesize, 'host');
      return space.bytes.subarray(p - space.origin, p - space.origin + bytesize);
    },
    cuPointerGetAttribute(attribute, ptr) {
      const call = 'cuPointerGetAttribute';
      machine.context(call);
      if (ptr >= HOST_BASE) {
        const range =
          machine.host.hostOf(ptr)?.holding(ptr, 1) ??
          invalidValue(call, `${hex(ptr)} is in no registered host range`);
        switch (attribute) {
          case A.CU_POINTER_ATTRIBUTE_CONTEXT:
            return machine.current!.handle;
          case A.CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
            return CUmemorytype.CU_MEMORYTYPE_HOST;
          case A.CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
          case A.CU_POINTER_ATTRIBUTE_HOST_POINTER:
            return ptr;
          case A.CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
            return range.address;
          case A.CU_POINTER_ATTRIBUTE_RANGE_SIZE:
            return range.bytes;
          case A.CU_POINTER_ATTRIBUTE_MAPPED:
            return 1;
          case A.CU_POINTER_ATTRIBUTE_IS_MANAGED:
            return 0;
          case A.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
            return machine.current!.device.ordinal;
          default:
            return invalidValue(call, `attribute ${attribute} of a host address is not known`);
        }
      }
      const device =
        machine.devices.find((candidate) => candidate.context?.memory.around(ptr) !== undefined) ??
        invalidValue(call, `${hex(ptr)} is in no live allocation`);
      const allocation = device.context!.memory.around(ptr)!;
      const managed = allocation.kind === 'managed';
      switch (attribute) {
        case A.CU_POINTER_ATTRIBUTE_CONTEXT:
          return device.context!.handle;
        case A.CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
          return CUmemorytype.CU_MEMORYTYPE_DEVICE;
        case A.CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
          return ptr;
        case A.CU_POINTER_ATTRIBUTE_HOST_POINTER:
          return managed ? ptr : invalidValue(call, `${hex(ptr)} is not host memory`);
        case A.CU_POINTER_ATTRIBUTE_BUFFER_ID:
          return allocation.id;
        case A.CU_POINTER_ATTRIBUTE_IS_MANAGED:
          return managed ? 1 : 0;
        case A.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
          return device.ordinal;
        case A.CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
          return allocation.address;
        case A.CU_POINTER_ATTRIBUTE_RANGE_SIZE:
          return allocation.bytes;
        case A.CU_POINTER_ATTRIBUTE_MAPPED:
          return 1;
        case A.CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
        case A.CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        case A.CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        case A.CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
          return 0;
        case A.CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
          return CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        case A.CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
          return allocation.pool?.handle ?? 0;
        default:
          return invalidValue(call, `attribute ${attribute} of an address is not known`);
      }
    },
  };
}
