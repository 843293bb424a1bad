/**
 * Memory pools.
 */
import { STRUCTURE } from '../../native/native-memory.js';
import { CUmemAccess_flags } from '../flags.js';
import type { CUdevice, CUmemoryPool } from '../handles.js';
import type { CUmemPoolProps } from '../structures.js';
import type { Binding } from './binding.js';
import type { RowsOf } from './call-row.js';
import { plainCalls } from './plain-calls.js';
import { writeMemAccessDesc, writeMemPoolProps } from './structures.js';

/** Memory pools; sizes in bytes. */
export interface PoolCalls {
  cuMemPoolCreate(props: CUmemPoolProps): CUmemoryPool;
  cuMemPoolDestroy(pool: CUmemoryPool): void;
  cuMemPoolTrimTo(pool: CUmemoryPool, minBytesToKeep: number): void;
  /** `attr` is a value of `CUmemPool_attribute`. */
  cuMemPoolGetAttribute(pool: CUmemoryPool, attr: number): number;
  cuMemPoolSetAttribute(pool: CUmemoryPool, attr: number, value: number): void;
  /** Sets read and write access for `device` to the pool's memory, or none. */
  cuMemPoolSetAccess(pool: CUmemoryPool, device: CUdevice, access: 'none' | 'readwrite'): void;
}

export const POOL_CALLS = {
  cuMemPoolCreate: {
    since: '11.2',
    symbols: ['cuMemPoolCreate'],
    args: ['uintptr_t pool', 'uintptr_t poolProps'],
  },
  cuMemPoolDestroy: {
    since: '11.2',
    symbols: ['cuMemPoolDestroy'],
    args: ['uintptr_t pool'],
    plain: true,
  },
  cuMemPoolTrimTo: {
    since: '11.2',
    symbols: ['cuMemPoolTrimTo'],
    args: ['uintptr_t pool', 'size_t minBytesToKeep'],
    plain: (_pool, minBytesToKeep) => `to ${minBytesToKeep} bytes`,
  },
  cuMemPoolGetAttribute: {
    since: '11.2',
    symbols: ['cuMemPoolGetAttribute'],
    args: ['uintptr_t pool', 'int attr', 'uintptr_t value'],
  },
  cuMemPoolSetAttribute: {
    since: '11.2',
    symbols: ['cuMemPoolSetAttribute'],
    args: ['uintptr_t pool', 'int attr', 'uintptr_t value'],
  },
  cuMemPoolSetAccess: {
    since: '11.2',
    symbols: ['cuMemPoolSetAccess'],
    args: ['uintptr_t pool', 'uintptr_t map', 'size_t count'],
  },
} as const satisfies RowsOf<PoolCalls>;

export function poolCalls(binding: Binding): PoolCalls {
  const { calls, scratch } = binding;
  const out0 = scratch.address;
  const structure = out0 + STRUCTURE;
  const { cuMemPoolCreate, cuMemPoolGetAttribute, cuMemPoolSetAttribute, cuMemPoolSetAccess } =
    calls;

  return {
    ...plainCalls(binding, POOL_CALLS),
    cuMemPoolCreate(props) {
      writeMemPoolProps(scratch, STRUCTURE, props);
      const r = cuMemPoolCreate.run(out0, structure);
      if (r !== 0)
        throw cuMemPoolCreate.failure(
          r,
          `device ${props.location}, at most ${props.maxSize ?? 0} bytes (0: no limit)`,
        );
      return scratch.u64(0);
    },
    cuMemPoolGetAttribute(pool, attr) {
      scratch.setU64(0, 0); // the REUSE attributes write 32 bits
      const r = cuMemPoolGetAttribute.run(pool, attr, out0);
      if (r !== 0) throw cuMemPoolGetAttribute.failure(r, `attribute ${attr}`);
      return scratch.u64(0);
    },
    cuMemPoolSetAttribute(pool, attr, value) {
      scratch.setU64(0, value);
      const r = cuMemPoolSetAttribute.run(pool, attr, out0);
      if (r !== 0) throw cuMemPoolSetAttribute.failure(r, `attribute ${attr} to ${value}`);
    },
    cuMemPoolSetAccess(pool, device, access) {
      const flags =
        access === 'none'
          ? CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_NONE
          : CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
      writeMemAccessDesc(scratch, STRUCTURE, device, flags);
      const r = cuMemPoolSetAccess.run(pool, structure, 1);
      if (r !== 0) throw cuMemPoolSetAccess.failure(r, `${access} for device ${device}`);
    },
  };
}
