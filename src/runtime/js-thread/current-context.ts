/**
 * The CUDA context that is current on this thread. The thread uses several GPUs alternately; most
 * calls are for the context that is current already.
 */
import type { Driver } from '../../driver/driver.js';

/** The current context; 0 where it is not known. */
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
