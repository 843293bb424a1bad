/**
 * Memory pools.
 */
import type { Driver } from '../driver.js';
import { CUmemAccess_flags } from '../flags.js';
import type { Binding } from './binding.js';
import { STRUCTURE } from '../../native/native-memory.js';
import { writeMemAccessDesc, writeMemPoolProps } from './structures.js';

type PoolCalls = Pick<
  Driver,
  | 'cuMemPoolCreate'
  | 'cuMemPoolDestroy'
  | 'cuMemPoolTrimTo'
  | 'cuMemPoolGetAttribute'
  | 'cuMemPoolSetAttribute'
  | 'cuMemPoolSetAccess'
>;

export function poolCalls({ calls, scratch }: Binding): PoolCalls {
  const out0 = scratch.address;
  const structure = out0 + STRUCTURE;
  const {
    cuMemPoolCreate,
    cuMemPoolDestroy,
    cuMemPoolTrimTo,
    cuMemPoolGetAttribute,
    cuMemPoolSetAttribute,
    cuMemPoolSetAccess,
  } = calls;

  return {
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
    cuMemPoolDestroy(pool) {
      const r = cuMemPoolDestroy.run(pool);
      if (r !== 0) throw cuMemPoolDestroy.failure(r);
    },
    cuMemPoolTrimTo(pool, minBytesToKeep) {
      const r = cuMemPoolTrimTo.run(pool, minBytesToKeep);
      if (r !== 0) throw cuMemPoolTrimTo.failure(r, `to ${minBytesToKeep} bytes`);
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
