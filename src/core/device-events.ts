/** Events of a device, the arguments of their listeners, and the report of unawaited failures. */
import type { CheckReport } from '../ground/check-report.js';
import { show } from '../ground/arguments.js';
import { CudaError } from '../ground/errors.js';
import type { CoreDevice } from './device.js';

/** Events of a `CoreDevice`, and the arguments of their listeners. */
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

/** Reports a failure that was not awaited, to listeners of `error` or as a process warning. */
export function reportUnclaimed(device: CoreDevice, error: unknown): void {
  const shown =
    error instanceof CudaError
      ? error
      : new CudaError('ERR_CUDA_INTERNAL', show(error), { cause: error });
  if (device.listenerCount('error') > 0) device.emit('error', shown);
  else
    process.emitWarning(
      `${shown.message} (it was not awaited; listen with device.on('error', …))`,
      { type: 'CudaWarning', code: shown.code },
    );
}
