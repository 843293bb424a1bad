/**
 * Device memory: plain, pitched, managed and stream-ordered allocations, and memory pools.
 */
import { CUmemPool_attribute as PoolAttribute } from '../../attributes.js';
import { CU_DEVICE_CPU } from '../../flags.js';
import type { Driver, MemoryCalls, PoolCalls } from '../../driver.js';
import { CUresult } from '../../../ground/result.js';
import type { CpuContext } from '../context.js';
import { checkSize, fail, hex, invalidValue } from '../failure.js';
import { forbidUnlessRelaxed, submit } from '../streams/capture.js';
import { AllocNodeOperation, FreeNodeOperation } from '../streams/memory-nodes.js';
import type { Machine } from '../machine.js';
import type { Allocation, AllocationKind } from '../memory/device-memory.js';
import { MemoryPool } from '../memory/pool.js';
import { FreeOperation } from '../streams/free-operation.js';
import type { Stream } from '../streams/stream.js';

/** What cuMemAllocPitch rounds rows up to, as NVIDIA's GPUs do. */
const PITCH_ALIGNMENT = 512;

export function memoryCalls(
  machine: Machine,
): MemoryCalls & PoolCalls & Pick<Driver, 'nameAllocation'> {
  function checkBytes(call: string, bytes: number): void {
    checkSize(call, 'bytesize', bytes);
    if (bytes === 0) invalidValue(call, 'bytesize is 0');
  }

  function allocate(call: string, bytes: number, kind: AllocationKind): number {
    const context = machine.context(call);
    forbidUnlessRelaxed(call, machine);
    checkBytes(call, bytes);
    const allocation = context.obtain(() => context.memory.allocate(bytes, kind));
    return (allocation ?? context.outOfMemory(call, bytes)).address;
  }

  function allocateOrdered(call: string, bytes: number, pool: MemoryPool, stream: Stream): number {
    checkBytes(call, bytes);
    if (stream.capture !== undefined) return allocateNode(call, bytes, stream);
    const owner =
      machine.devices[pool.device.ordinal]!.context ??
      fail(
        call,
        CUresult.CUDA_ERROR_INVALID_CONTEXT,
        `device ${pool.device.ordinal} of the pool has no context`,
      );
    let isCounted = false;
    for (const free of stream.pendingFrees) {
      if (owner.checker !== undefined) {
        isCounted = free.isReplaced(pool, bytes);
        if (isCounted) break;
        continue;
      }
      const taken = free.takeOver(pool, bytes);
      if (taken === undefined) continue;
      owner.memory.revive(taken, bytes);
      return taken.address;
    }
    const allocation = owner.obtainOrdered(pool, () => pool.take(owner.memory, bytes, isCounted));
    if (allocation === undefined && isCounted) pool.lose(bytes);
    return (allocation ?? poolExhausted(call, owner, pool, bytes)).address;
  }

  function poolExhausted(call: string, owner: CpuContext, pool: MemoryPool, bytes: number): never {
    if (pool.maxBytes === 0) return owner.outOfMemory(call, bytes);
    return fail(
      call,
      CUresult.CUDA_ERROR_OUT_OF_MEMORY,
      `${bytes} bytes were asked for; the pool holds ${pool.reserved} of at most ` +
        `${pool.maxBytes} bytes, ${pool.used} of them in use`,
    );
  }

  /** The memory of a graph's allocation is the graph's; its address is good from now on. */
  function allocateNode(call: string, bytes: number, stream: Stream): number {
    const { context } = stream;
    if (stream.capture!.graph.isBody) {
      stream.capture!.invalidate();
      fail(
        call,
        CUresult.CUDA_ERROR_NOT_SUPPORTED,
        'a body of a conditional node cannot allocate memory',
      );
    }
    const allocation =
      context.obtain(() => context.memory.allocate(bytes, 'graph')) ??
      context.outOfMemory(call, bytes);
    stream.capture!.graph.memory.allocations.push({ allocation, freed: false, bytes });
    submit(call, stream, new AllocNodeOperation(allocation.address));
    return allocation.address;
  }

  /** The live allocation that begins at the address, which no call can name from now on. */
  function retire(call: string, dptr: number): Allocation {
    for (const device of machine.devices) {
      const allocation = device.context?.memory.at(dptr);
      if (allocation === undefined) continue;
      if (allocation.kind === 'module')
        invalidValue(call, `${hex(dptr)} is a variable of a module`);
      if (allocation.kind === 'array' || allocation.kind === 'texture')
        invalidValue(call, `${hex(dptr)} belongs to an array or a texture`);
      allocation.memory.retire(allocation);
      return allocation;
    }
    return invalidValue(call, `${hex(dptr)} is not the beginning of a live allocation`);
  }

  function poolOf(call: string, handle: number): MemoryPool {
    machine.checkInitialised(call);
    return machine.pools.get(handle) ?? invalidValue(call, `${handle} is not a live memory pool`);
  }

  function managed(call: string, dptr: number, count: number): void {
    machine.context(call);
    checkBytes(call, count);
    machine.space(call, 'dptr', dptr, count, 'host');
  }

  return {
    nameAllocation(dptr, root, handle) {
      machine.current?.checker?.map.name(dptr, root, handle);
    },
    cuMemGetInfo() {
      const { memory } = machine.context('cuMemGetInfo');
      return { free: memory.freeBytes, total: memory.capacity };
    },
    cuMemAlloc: (bytesize) => allocate('cuMemAlloc', bytesize, 'plain'),
    cuMemAllocPitch(widthInBytes, height, elementSizeBytes) {
      if (elementSizeBytes !== 4 && elementSizeBytes !== 8 && elementSizeBytes !== 16) {
        invalidValue(
          'cuMemAllocPitch',
          `elementSizeBytes is ${elementSizeBytes}; it must be 4, 8 or 16`,
        );
      }
      checkSize('cuMemAllocPitch', 'widthInBytes', widthInBytes);
      checkSize('cuMemAllocPitch', 'height', height);
      const pitch = Math.ceil(widthInBytes / PITCH_ALIGNMENT) * PITCH_ALIGNMENT;
      return { dptr: allocate('cuMemAllocPitch', pitch * height, 'pitched'), pitch };
    },
    /**
     * A GPU's driver waits for all work first; here the memory stays taken until queued work is
     * past.
     */
    cuMemFree(dptr) {
      const context = machine.context('cuMemFree');
      forbidUnlessRelaxed('cuMemFree', machine);
      if (dptr === 0) return;
      const allocation = retire('cuMemFree', dptr);
      if (allocation.kind !== 'graph')
        context.afterQueuedWork(() => allocation.memory.reclaim(allocation));
    },
    cuMemAllocAsync(bytesize, handle) {
      const stream = machine.stream('cuMemAllocAsync', handle);
      return allocateOrdered('cuMemAllocAsync', bytesize, stream.context.device.pool, stream);
    },
    cuMemAllocFromPoolAsync(bytesize, pool, handle) {
      const stream = machine.stream('cuMemAllocFromPoolAsync', handle);
      return allocateOrdered(
        'cuMemAllocFromPoolAsync',
        bytesize,
        poolOf('cuMemAllocFromPoolAsync', pool),
        stream,
      );
    },
    cuMemFreeAsync(dptr, handle) {
      const stream = machine.stream('cuMemFreeAsync', handle);
      if (dptr === 0) return;
      const { capture } = stream;
      const node = capture?.graph.memory.allocations.find(
        ({ allocation }) => allocation.address === dptr,
      );
      if (capture !== undefined && node === undefined) {
        capture.invalidate();
        invalidValue(
          'cuMemFreeAsync',
          `${hex(dptr)} was not allocated in the capture that frees it`,
        );
      }
      const allocation = retire('cuMemFreeAsync', dptr);
      if (node !== undefined) {
        node.freed = true;
        submit('cuMemFreeAsync', stream, new FreeNodeOperation(dptr));
      } else if (allocation.kind !== 'graph') {
        submit('cuMemFreeAsync', stream, new FreeOperation(allocation, stream));
      }
    },
    cuMemAllocManaged(bytesize, flags) {
      if (flags !== 1 && flags !== 2)
        invalidValue(
          'cuMemAllocManaged',
          `flags is ${flags}; it must be CU_MEM_ATTACH_GLOBAL or CU_MEM_ATTACH_HOST`,
        );
      return allocate('cuMemAllocManaged', bytesize, 'managed');
    },
    /** Managed memory is in one place only: there is nothing to move. */
    cuMemPrefetchAsync(dptr, count, dstDevice, handle) {
      machine.stream('cuMemPrefetchAsync', handle);
      if (dstDevice !== CU_DEVICE_CPU) machine.device('cuMemPrefetchAsync', dstDevice);
      managed('cuMemPrefetchAsync', dptr, count);
    },
    cuMemAdvise(dptr, count, advice, device) {
      if (!(advice >= 1 && advice <= 6)) invalidValue('cuMemAdvise', `advice is ${advice}`);
      if (device !== CU_DEVICE_CPU) machine.device('cuMemAdvise', device);
      managed('cuMemAdvise', dptr, count);
    },

    cuMemPoolCreate(props) {
      const device = machine.device('cuMemPoolCreate', props.location);
      checkSize('cuMemPoolCreate', 'maxSize', props.maxSize ?? 0);
      const pool = new MemoryPool(machine.newHandle(), device, props.maxSize ?? 0, false);
      machine.pools.set(pool.handle, pool);
      return pool.handle;
    },
    /** Allocations that live keep their memory until they are freed. */
    cuMemPoolDestroy(handle) {
      const pool = poolOf('cuMemPoolDestroy', handle);
      if (pool.isDefault)
        invalidValue('cuMemPoolDestroy', 'the default pool of a device cannot be destroyed');
      pool.destroyed = true;
      if (pool.device.context !== undefined) pool.trim(pool.device.context.memory, 0);
      const device = machine.devices[pool.device.ordinal]!;
      if (device.pool === pool) device.pool = device.defaultPool;
      machine.pools.delete(handle);
    },
    cuMemPoolTrimTo(handle, minBytesToKeep) {
      const pool = poolOf('cuMemPoolTrimTo', handle);
      checkSize('cuMemPoolTrimTo', 'minBytesToKeep', minBytesToKeep);
      if (pool.device.context !== undefined) pool.trim(pool.device.context.memory, minBytesToKeep);
    },
    cuMemPoolGetAttribute(handle, attr) {
      const pool = poolOf('cuMemPoolGetAttribute', handle);
      switch (attr) {
        case PoolAttribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
          return pool.releaseThreshold;
        case PoolAttribute.CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
          return pool.reserved;
        case PoolAttribute.CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
          return pool.reservedHigh;
        case PoolAttribute.CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
          return pool.used;
        case PoolAttribute.CU_MEMPOOL_ATTR_USED_MEM_HIGH:
          return pool.usedHigh;
        default:
          return (
            pool.reuse.get(attr) ??
            invalidValue('cuMemPoolGetAttribute', `${attr} is not an attribute of a pool`)
          );
      }
    },
    cuMemPoolSetAttribute(handle, attr, value) {
      const call = 'cuMemPoolSetAttribute';
      const pool = poolOf(call, handle);
      // UINT64_MAX, "keep everything", is more than a double holds exactly.
      if (!(value >= 0)) invalidValue(call, `value is ${value}`);
      switch (attr) {
        case PoolAttribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
          pool.releaseThreshold = value;
          return;
        case PoolAttribute.CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
        case PoolAttribute.CU_MEMPOOL_ATTR_USED_MEM_HIGH:
          if (value !== 0) invalidValue(call, 'a high-water mark can only be set to 0');
          if (attr === PoolAttribute.CU_MEMPOOL_ATTR_USED_MEM_HIGH) pool.usedHigh = pool.used;
          else pool.reservedHigh = pool.reserved;
          return;
        default:
          if (!pool.reuse.has(attr))
            invalidValue(call, `attribute ${attr} of a pool cannot be set`);
          pool.reuse.set(attr, value === 0 ? 0 : 1);
      }
    },
    cuMemPoolSetAccess(handle, dev, access) {
      const pool = poolOf('cuMemPoolSetAccess', handle);
      const device = machine.device('cuMemPoolSetAccess', dev);
      if (device === pool.device) {
        if (access === 'none')
          invalidValue('cuMemPoolSetAccess', 'a device keeps access to its own pools');
      } else if (access !== 'none') {
        fail(
          'cuMemPoolSetAccess',
          CUresult.CUDA_ERROR_PEER_ACCESS_UNSUPPORTED,
          'kernels of a CPU device reach its own memory only',
        );
      }
    },
  };
}
