/** Events of a device, and what their listeners are given. */
import type { CheckReport } from '../ground/check-report.js';
import type { CudaError } from '../ground/errors.js';

/** Events of a {@link Device}, and what their listeners are given. */
export interface DeviceEvents {
  /** A failure that nobody awaits. Without a listener it becomes a process warning. */
  error: [error: CudaError];
  /**
   * The device met a fault (a {@link CudaDeviceLostError}), or its thread died; everything rejects
   * from here on.
   */
  lost: [error: CudaError];
  /**
   * Text that a kernel of the CPU device printed. Without a listener it goes to standard output. On
   * a GPU it always does, written there by the driver.
   */
  print: [text: string];
  /**
   * The checking CPU device found something: also what fails nothing, leaks and all that
   * `keepGoing` lets pass.
   */
  check: [report: CheckReport];
}
