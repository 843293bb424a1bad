/**
 * A failure as plain data, for its way from the thread that met it to the JavaScript that awaits
 * it: an Error loses its fields in a message port.
 */
import { types } from 'node:util';
import type { CheckReport } from '../ground/check-report.js';
import { DriverError } from '../driver/error.js';
import { LibraryCallError } from '../native/library-call.js';
import type { LibraryStatus } from '../native/library-call.js';
import { CUresult } from '../ground/result.js';

export interface Failure {
  /** The number of this failure; handles that it poisons have the same number. */
  id: number;
  /** The operation that failed, 0 where the device as a whole did. */
  root: number;
  /** The slot of the stream it ran on, -1 for none. */
  stream: number;
  /** The driver's result code; 0 where the failure is not the driver's. */
  result: CUresult;
  resultName: string;
  /** The driver call that returned it. */
  call: string;
  message: string;
  detail?: string;
  infoLog?: string;
  errorLog?: string;
  /** The reports of the checking CPU device. */
  reports?: readonly CheckReport[];
  /** The failure that this one follows from: the first failure of a poisoned buffer. */
  cause?: number;
  /**
   * The device whose failure `cause` is, where it is another one. A cause of 0 means that the
   * device was lost or closed.
   */
  causePeer?: number;
  /** The numbers of the same failure on other devices whose memory it made undefined. */
  elsewhere?: readonly { peer: number; id: number }[];
  /** The status that a function of a library returned; `call` is the function's name. */
  library?: {
    readonly name: string;
    readonly status: number;
    readonly statusName: string;
    readonly means: LibraryStatus['means'];
  };
  /** The class of the error, where it is not a driver error. */
  thrown?: string;
  /** The command's stream could not be created; `cause` is the failure of its creation. */
  unmade?: true;
}

/** A command used a handle whose contents an earlier failure made undefined. */
export class PoisonedError extends Error {
  readonly failure: number;
  /** The device whose failure it is, where it is another one. */
  readonly peer: number | undefined;
  constructor(failure: number, peer?: number) {
    super('an operand is undefined');
    this.failure = failure;
    this.peer = peer;
  }
}

/** The command's stream could not be created. */
export class UnmadeStreamError extends Error {
  readonly failure: number;
  constructor(failure: number) {
    super('its stream could not be made');
    this.failure = failure;
  }
}

/** Returns plain data of what a driver call threw. */
export function describeFailure(
  error: unknown,
  call: string,
): Omit<Failure, 'id' | 'root' | 'stream'> {
  if (error instanceof DriverError) {
    return {
      result: error.result,
      resultName: error.resultName,
      call: error.call,
      message: error.message,
      ...(error.detail === undefined ? {} : { detail: error.detail }),
      ...(error.infoLog === undefined ? {} : { infoLog: error.infoLog }),
      ...(error.errorLog === undefined ? {} : { errorLog: error.errorLog }),
      ...(error.reports === undefined ? {} : { reports: error.reports }),
    };
  }
  if (error instanceof LibraryCallError) {
    const { library: name, status, statusName, means, message } = error;
    return {
      result: 0,
      resultName: '',
      call: error.call,
      message,
      library: { name, status, statusName, means },
    };
  }
  const thrown =
    error instanceof Error || types.isNativeError(error) ? error : new Error(String(error));
  return {
    result: 0,
    resultName: '',
    call,
    message: thrown.message,
    thrown: thrown.name,
    detail: thrown.stack ?? '',
  };
}

/**
 * Results after which the context cannot be used again. They are those that NVIDIA's documentation
 * of CUresult describes as leaving the process in an inconsistent state.
 */
const STICKY: ReadonlySet<number> = new Set([
  CUresult.CUDA_ERROR_ECC_UNCORRECTABLE,
  CUresult.CUDA_ERROR_ILLEGAL_ADDRESS,
  CUresult.CUDA_ERROR_LAUNCH_TIMEOUT,
  CUresult.CUDA_ERROR_ASSERT,
  CUresult.CUDA_ERROR_HARDWARE_STACK_ERROR,
  CUresult.CUDA_ERROR_ILLEGAL_INSTRUCTION,
  CUresult.CUDA_ERROR_MISALIGNED_ADDRESS,
  CUresult.CUDA_ERROR_INVALID_ADDRESS_SPACE,
  CUresult.CUDA_ERROR_INVALID_PC,
  CUresult.CUDA_ERROR_LAUNCH_FAILED,
  CUresult.CUDA_ERROR_CONTEXT_IS_DESTROYED,
  CUresult.CUDA_ERROR_DEVICE_UNAVAILABLE,
  CUresult.CUDA_ERROR_NVLINK_UNCORRECTABLE,
  CUresult.CUDA_ERROR_EXTERNAL_DEVICE,
]);

export function isSticky(result: number): boolean {
  return STICKY.has(result);
}
