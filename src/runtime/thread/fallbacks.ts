/**
 * Replacements for driver features that some platforms do not have (WSL, MIG, vGPU and Jetson each
 * lack some): events for stream memory operations, plain allocation for memory pools.
 *
 * Each feature is tested by trying it, once, when the device is opened.
 * `ASYNC_CUDA_WITHOUT=memops,pools` disables them, so that the fallbacks are tested where every
 * feature is there; `paraminfo` makes the driver one before CUDA 12.4, which does not return a
 * kernel's parameters.
 */
import type { CUdeviceptr, CUevent, CUstream, Driver, PolledDriver } from '../../driver/driver.js';
import { isPolled } from '../../driver/driver.js';
import { MissingSymbolError } from '../../driver/error.js';
import { CUresult } from '../../ground/result.js';

const CU_EVENT_DISABLE_TIMING = 2;
const CU_STREAM_NON_BLOCKING = 1;

export interface Missing {
  memops: boolean;
  pools: boolean;
}

/** A driver some of whose calls are replaced. Its `poll` completes the work that they postpone. */
export interface PatchedDriver extends PolledDriver {
  /** Whether postponed work exists that only `poll` completes. */
  readonly owes: boolean;
}

/**
 * Returns the features that this device does not have, found by trying them. `slot` is a
 * page-locked word, by its device address and its view.
 */
export function findMissing(
  driver: Driver,
  taken: readonly string[],
  slotAddress: CUdeviceptr,
  slot: Int32Array,
  poolsAttribute: number,
): Missing {
  if (driver.provider === 'cpu')
    return { memops: taken.includes('memops'), pools: taken.includes('pools') };
  return {
    memops: taken.includes('memops') || !canWriteValues(driver, slotAddress, slot),
    pools: taken.includes('pools') || poolsAttribute === 0,
  };
}

function canWriteValues(driver: Driver, address: CUdeviceptr, slot: Int32Array): boolean {
  const stream = driver.cuStreamCreateWithPriority(CU_STREAM_NON_BLOCKING, 0);
  try {
    driver.cuStreamWriteValue32(stream, address, 1, 0);
    // This is the runtime thread's only wait: at open, for a stream with nothing else in it.
    driver.cuStreamSynchronize(stream);
    return Atomics.load(slot, 0) === 1;
  } catch {
    return false;
  } finally {
    Atomics.store(slot, 0, 0);
    driver.cuStreamDestroy(stream);
  }
}

/** Replaces the calls for the missing features. `slots` are the words at `slotsAddress`. */
export function patch(
  driver: Driver,
  missing: Missing,
  slotsAddress: CUdeviceptr,
  slots: Int32Array,
): Driver {
  if (!missing.memops && !missing.pools) return driver;
  const queue = new AfterStream(driver);
  const plain = new PlainAllocation(driver);
  const inner = isPolled(driver) ? driver : undefined;
  const patched: PatchedDriver = Object.assign(Object.create(driver) as Driver, {
    poll(budgetMicroseconds: number): boolean {
      const busy = inner?.poll(budgetMicroseconds) ?? false;
      return queue.settle() || busy;
    },
  }) as PatchedDriver;
  Object.defineProperty(patched, 'owes', { get: () => queue.waiting > 0 });
  if (missing.memops) {
    patched.cuStreamWriteValue32 = (stream, address, value) => {
      const at = (address - slotsAddress) / 4;
      // Of two fences that became due between two polls the later may be seen first; a slot never
      // goes back.
      queue.add(stream, () => {
        if (((value - Atomics.load(slots, at)) | 0) > 0) Atomics.store(slots, at, value | 0);
      });
    };
  }
  if (missing.pools) {
    patched.cuMemAllocAsync = (bytesize) => plain.take(bytesize);
    patched.cuMemFreeAsync = (dptr, stream) => queue.add(stream, () => plain.give(dptr));
  }
  return patched;
}

/** Makes the driver one before CUDA 12.4. */
export function withoutParamInfo(driver: Driver): Driver {
  driver.cuFuncGetParamInfo = () => {
    throw new MissingSymbolError('cuFuncGetParamInfo', '12.4', 'less, as ASYNC_CUDA_WITHOUT says');
  };
  return driver;
}

/** Runs functions of the host once a stream has reached the points where they were added. */
class AfterStream {
  private readonly driver: Driver;
  private readonly spare: CUevent[] = [];
  private readonly entries: { event: CUevent; run: () => void }[] = [];

  constructor(driver: Driver) {
    this.driver = driver;
  }

  get waiting(): number {
    return this.entries.length;
  }

  add(stream: CUstream, run: () => void): void {
    const event = this.spare.pop() ?? this.driver.cuEventCreate(CU_EVENT_DISABLE_TIMING);
    this.driver.cuEventRecord(event, stream);
    this.entries.push({ event, run });
  }

  /**
   * Runs the functions that have become due. Returns whether there were any. A stream that met a
   * fault never reaches its points; the probe detects the fault.
   */
  settle(): boolean {
    let any = false;
    for (let i = 0; i < this.entries.length;) {
      const { event, run } = this.entries[i]!;
      if (this.driver.cuEventQuery(event) !== CUresult.CUDA_SUCCESS) {
        i++;
        continue;
      }
      this.entries.splice(i, 1);
      this.spare.push(event);
      run();
      any = true;
    }
    return any;
  }
}

/**
 * Plain allocation, with freed memory kept for the next allocation of its size: cuMemFree waits for
 * the whole device, so it is called only when memory runs out.
 */
class PlainAllocation {
  private readonly driver: Driver;
  private readonly sizes = new Map<CUdeviceptr, number>();
  private readonly kept = new Map<number, CUdeviceptr[]>();

  constructor(driver: Driver) {
    this.driver = driver;
  }

  take(bytes: number): CUdeviceptr {
    const kept = this.kept.get(bytes)?.pop();
    if (kept !== undefined) return kept;
    const address = this.allocate(bytes);
    this.sizes.set(address, bytes);
    return address;
  }

  give(address: CUdeviceptr): void {
    const bytes = this.sizes.get(address)!;
    const kept = this.kept.get(bytes);
    if (kept === undefined) this.kept.set(bytes, [address]);
    else kept.push(address);
  }

  private allocate(bytes: number): CUdeviceptr {
    try {
      return this.driver.cuMemAlloc(bytes);
    } catch (error) {
      let freed = false;
      for (const addresses of this.kept.values()) {
        for (const address of addresses.splice(0)) {
          this.sizes.delete(address);
          this.driver.cuMemFree(address);
          freed = true;
        }
      }
      if (!freed) throw error;
      return this.driver.cuMemAlloc(bytes);
    }
  }
}
