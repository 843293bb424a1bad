/**
 * Releases page locks, for a worker_thread that ends while the process continues. Its memory is
 * unmapped with it: the device must not write there any more, and the driver must not keep the
 * range.
 */
import type { Driver } from '../../driver/driver.js';
import { CUresult } from '../../ground/result.js';

/**
 * Waits, blocking, until the device has ended its work, `ms` milliseconds at most; does nothing if
 * it has not. Then releases the ranges at `registered`, and the driver's own memory at `allocated`.
 */
export function releasePageLocks(
  driver: Driver,
  streams: Float64Array,
  registered: readonly number[],
  allocated: number | undefined,
  ms: number,
): void {
  const until = performance.now() + ms;
  while (streams.some((stream) => isBusy(driver, stream))) if (performance.now() > until) return;
  const release = (call: () => void): void => {
    try {
      call();
    } catch {
      // It was released already.
    }
  };
  for (const address of registered) release(() => driver.cuMemHostUnregister(address));
  if (allocated !== undefined) release(() => driver.cuMemFreeHost(allocated));
}

function isBusy(driver: Driver, stream: number): boolean {
  try {
    return stream !== 0 && driver.cuStreamQuery(stream) === CUresult.CUDA_ERROR_NOT_READY;
  } catch {
    return false;
  }
}
