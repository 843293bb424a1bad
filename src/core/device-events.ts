/** Events of a device, and the arguments of their listeners. */
import type { CheckReport } from '../ground/check-report.js';
import type { CudaError } from '../ground/errors.js';

/** Events of a {@link Device}, and the arguments of their listeners. */
export interface DeviceEvents {
  /** A failure of work that is not awaited. Without a listener it becomes a process warning. */
  error: [error: CudaError];
  /**
   * The device met a fault (a {@link CudaDeviceLostError}), or its thread ended. All work rejects
   * from here on.
   */
  lost: [error: CudaError];
  /**
   * Text that a kernel of the CPU device printed. Without a listener it goes to standard output. On
   * a GPU the driver always writes it there.
   */
  print: [text: string];
  /**
   * A finding of the checking CPU device. Findings that do not fail the launch are included: leaks,
   * and all findings under `keepGoing`.
   */
  check: [report: CheckReport];
}
