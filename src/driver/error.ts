/** The errors of driver calls: the call, its result, and what the driver reported about it. */
import { CLASS_NAME, NamedError } from '../ground/named-error.js';
import type { CheckReport } from '../ground/check-report.js';
import { resultName } from '../ground/result.js';
import type { CUresult } from '../ground/result.js';

export { LibraryNotFoundError } from '../native/library-not-found.js';

/** Details of a {@link DriverError}. */
export interface DriverErrorDetails {
  /** Text of the JIT's info log, where the call runs the JIT. */
  infoLog?: string;
  /** Text of the JIT's error log, where the call runs the JIT. */
  errorLog?: string;
  /** A further sentence: the call's arguments, or where a kernel faulted. */
  detail?: string;
  /** The reports of the checking CPU device. */
  reports?: readonly CheckReport[];
}

/**
 * A driver call returned a result other than CUDA_SUCCESS. Its message has the call, the result,
 * and the JIT's error log where there is one.
 *
 * @example
 * ```ts
 * const driver = openCpu();
 * try {
 *   driver.cuDeviceGetCount();
 * } catch (error) {
 *   if (error instanceof DriverError) console.log(error.resultName); // CUDA_ERROR_NOT_INITIALIZED
 * }
 * ```
 */
export class DriverError extends NamedError {
  /** @internal */
  static override readonly [CLASS_NAME]: string = 'DriverError';

  override readonly name = 'DriverError';
  /** The driver's name of the result, e.g. `CUDA_ERROR_INVALID_VALUE`. */
  readonly resultName: string;
  /** The call, e.g. `cuMemAllocAsync`. */
  readonly call: string;
  /** The driver's number of the result. */
  readonly result: CUresult;
  readonly infoLog: string | undefined;
  readonly errorLog: string | undefined;
  readonly detail: string | undefined;
  readonly reports: readonly CheckReport[] | undefined;

  constructor(call: string, result: CUresult, details: DriverErrorDetails = {}) {
    const name = resultName(result);
    const log = details.errorLog?.trim();
    super(
      `${call} returned ${name} (${result})` +
        (details.detail === undefined ? '' : `: ${details.detail}`) +
        (log === undefined || log === '' ? '' : `\n${log}`),
    );
    this.call = call;
    this.result = result;
    this.resultName = name;
    this.infoLog = details.infoLog;
    this.errorLog = details.errorLog;
    this.detail = details.detail;
    this.reports = details.reports;
  }
}

/**
 * The loaded driver does not have a symbol, because it is too old.
 *
 * @example
 * ```ts no-run
 * const driver = openLibcuda();
 * try {
 *   driver.cuFuncGetParamInfo(0x7f0000001000, 0);
 * } catch (error) {
 *   if (error instanceof MissingSymbolError) console.log(error.symbol); // cuFuncGetParamInfo
 * }
 * ```
 */
export class MissingSymbolError extends Error {
  override readonly name = 'MissingSymbolError';
  readonly symbol: string;
  constructor(symbol: string, since: string, have: string) {
    super(
      `${symbol} needs an NVIDIA driver for CUDA ${since} or later; this one supports CUDA ` +
        `${have}. Update the driver.`,
    );
    this.symbol = symbol;
  }
}
