/**
 * The CUDA context that is current on this thread. Several GPUs are worked from it in turns; most
 * calls go to the one that is current already.
 */
import type { Driver } from '../../driver/driver.js';

/** As far as is known here; 0 where it is not. */
let current = 0;

export function makeCurrent(driver: Driver, context: number): void {
  if (context === current) return;
  driver.cuCtxSetCurrent(context);
  current = context;
}

/** A call of the driver has made another context current, or may have. */
export function forgetCurrent(): void {
  current = 0;
}
