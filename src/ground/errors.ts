/** The errors that the library throws: one family of classes, each error with a stable `code`. */
import { CLASS_NAME, NamedError } from './named-error.js';
import type { CUresult } from './result.js';
import type { CheckReport } from './check-report.js';
import type { InFlight } from './in-flight.js';

/**
 * The reason, stable from version to version. docs/errors.md describes when each arises and what to
 * do.
 */
export type CudaErrorCode =
  | 'ERR_CUDA_INVALID_ARGUMENT'
  | 'ERR_CUDA_DISPOSED'
  | 'ERR_CUDA_OUT_OF_MEMORY'
  | 'ERR_CUDA_DEVICE_LOST'
  | 'ERR_CUDA_CHECK'
  | 'ERR_CUDA_SCHEDULE'
  | 'ERR_CUDA_DEVICE_CLOSED'
  | 'ERR_CUDA_NO_DEVICE'
  | 'ERR_CUDA_NO_DRIVER'
  | 'ERR_CUDA_NO_LIBRARY'
  | 'ERR_CUDA_COMPILE'
  | 'ERR_CUDA_NOT_FOUND'
  | 'ERR_CUDA_UNDEFINED_CONTENTS'
  | 'ERR_CUDA_SOURCE_DETACHED'
  | 'ERR_CUDA_CAPTURE'
  | 'ERR_CUDA_NESTED'
  | 'ERR_CUDA_BUSY'
  | 'ERR_CUDA_QUEUE_FULL'
  | 'ERR_CUDA_UNSUPPORTED'
  | 'ERR_CUDA_FORMAT'
  | 'ERR_CUDA_DRIVER'
  | 'ERR_CUDA_LIBRARY'
  | 'ERR_CUDA_INTERNAL';

export interface CudaErrorOptions {
  cause?: unknown;
  driverName?: string | undefined;
  driverCode?: CUresult | undefined;
  operation?: string | undefined;
}

/**
 * The base class of the library's errors.
 *
 * @example
 * ```ts
 * try {
 *   await device.ones(f32, [2]).andThen((x) => x.read()).capture();
 * } catch (error) {
 *   console.log(error instanceof CudaError && error.code); // ERR_CUDA_CAPTURE
 * }
 * ```
 */
export class CudaError extends NamedError {
  /** @internal */
  static override readonly [CLASS_NAME]: string = 'CudaError';

  override name = 'CudaError';
  /** The reason. Programs distinguish errors by it, not by the message, which may change. */
  readonly code: CudaErrorCode;
  /** NVIDIA's name of the driver's result, where a driver call failed. */
  readonly driverName: string | undefined;
  /** The driver's number of the result. */
  readonly driverCode: CUresult | undefined;
  /** The call that failed: the library's, or the driver's. */
  readonly operation: string | undefined;

  constructor(code: CudaErrorCode, message: string, options: CudaErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.driverName = options.driverName;
    this.driverCode = options.driverCode;
    this.operation = options.operation;
  }
}

/**
 * An argument is wrong. It is thrown at the call, before anything is queued.
 *
 * @example
 * ```ts
 * try {
 *   device.ones(f32, [-1]);
 * } catch (error) {
 *   console.log(error instanceof CudaArgumentError && error.argument); // shape[0]
 * }
 * ```
 */
export class CudaArgumentError extends CudaError {
  /** @internal */
  static override readonly [CLASS_NAME]: string = 'CudaArgumentError';
  override name = 'CudaArgumentError';
  /** The argument's name. */
  readonly argument: string;
  constructor(argument: string, message: string, options: CudaErrorOptions = {}) {
    super('ERR_CUDA_INVALID_ARGUMENT', message, options);
    this.argument = argument;
  }
}

/**
 * An object was used after it was closed, or after its device was closed.
 *
 * @example
 * ```ts
 * const x = await device.ones(f32, [2]);
 * x.close();
 * try {
 *   await x.read();
 * } catch (error) {
 *   console.log(error instanceof CudaDisposedError); // true
 * }
 * ```
 */
export class CudaDisposedError extends CudaError {
  /** @internal */
  static override readonly [CLASS_NAME]: string = 'CudaDisposedError';
  override name = 'CudaDisposedError';
  constructor(message: string) {
    super('ERR_CUDA_DISPOSED', message);
  }
}

/**
 * A queue is full, and the request was refused.
 *
 * @example
 * ```ts
 * const options = { maxBatchSize: 1, maxQueueSize: 1, maxConcurrentBatches: 1 };
 * await using batcher = new Batcher((items: readonly number[]) => Promise.resolve(items), options);
 * const requests = [1, 2, 3].map((n) => batcher.run(n));
 * for (const result of await Promise.allSettled(requests)) {
 *   if (result.status === 'fulfilled') continue;
 *   console.log(result.reason instanceof CudaQueueFullError); // true
 * }
 * ```
 */
export class CudaQueueFullError extends CudaError {
  /** @internal */
  static override readonly [CLASS_NAME]: string = 'CudaQueueFullError';
  override name = 'CudaQueueFullError';
  /** Requests that the queue holds at most. */
  readonly queueSize: number;
  /** Milliseconds until there is room, estimated from the rate so far. */
  readonly retryAfter: number;
  constructor(message: string, queueSize: number, retryAfter: number) {
    super('ERR_CUDA_QUEUE_FULL', message);
    this.queueSize = queueSize;
    this.retryAfter = retryAfter;
  }
}

/**
 * There is not enough memory. Work that does not need the memory goes on.
 *
 * @example
 * ```ts
 * try {
 *   await device.zeros(u8, [2 ** 46]);
 * } catch (error) {
 *   console.log(error instanceof CudaOutOfMemoryError); // true
 * }
 * ```
 */
export class CudaOutOfMemoryError extends CudaError {
  /** @internal */
  static override readonly [CLASS_NAME]: string = 'CudaOutOfMemoryError';
  override name = 'CudaOutOfMemoryError';
  constructor(message: string, options: CudaErrorOptions = {}) {
    super('ERR_CUDA_OUT_OF_MEMORY', message, options);
  }
}

/**
 * The device met a fault and cannot be used any more. `cause` is the first fault.
 *
 * @example
 * ```ts
 * const other = await Device.open('cpu:1');
 * const ptx = '.version 7.0\n.target sm_70\n.address_size 64\n.visible .entry f() { trap; }';
 * const kernel = (await other.loadModule(ptx)).kernel('f');
 * try {
 *   await kernel.call({ grid: 1, block: 1 });
 * } catch (error) {
 *   console.log(error instanceof CudaDeviceLostError && error.inFlight.length); // 1
 * }
 * await other.close();
 * ```
 */
export class CudaDeviceLostError extends CudaError {
  /** @internal */
  static override readonly [CLASS_NAME]: string = 'CudaDeviceLostError';
  override name = 'CudaDeviceLostError';
  /**
   * The work that was issued and not finished when the fault was found, for each stream that had
   * any. One of these operations caused the fault.
   */
  readonly inFlight: readonly InFlight[];
  constructor(
    message: string,
    options: CudaErrorOptions = {},
    inFlight: readonly InFlight[] = [],
    code: CudaErrorCode = 'ERR_CUDA_DEVICE_LOST',
  ) {
    super(code, message, options);
    this.inFlight = inFlight;
  }
}

/**
 * The checking CPU device found an error. The device is lost, as after a fault.
 *
 * @example
 * ```ts
 * const checked = await CoreDevice.open('cpu:1', { check: { leaks: false } });
 * const module = await checked.loadModule(`.version 7.0
 * .target sm_70
 * .address_size 64
 * .visible .entry f(.param .u64 y) {
 *   .reg .b64 %y; ld.param.u64 %y, [y]; st.global.u32 [%y+4], 7; ret;
 * }`);
 * try {
 *   await module.kernel('f').launch(checked.stream, { grid: 1, block: 1 }, checked.alloc(u32, 1));
 * } catch (error) {
 *   console.log(error instanceof CudaCheckError && error.reports[0]?.kind); // out-of-bounds
 * }
 * await checked.close();
 * ```
 */
export class CudaCheckError extends CudaDeviceLostError {
  /** @internal */
  static override readonly [CLASS_NAME]: string = 'CudaCheckError';
  override name = 'CudaCheckError';
  /** All errors that were found in the launch. */
  readonly reports: readonly CheckReport[];
  constructor(
    message: string,
    reports: readonly CheckReport[],
    options: CudaErrorOptions = {},
    inFlight: readonly InFlight[] = [],
  ) {
    super(message, options, inFlight, 'ERR_CUDA_CHECK');
    this.reports = reports;
  }
}

/**
 * A program fails under an order of work that a device may choose. `cause` is the error it failed
 * with, undefined where it only gave another result.
 *
 * @example
 * ```ts
 * let runs = 0;
 * try {
 *   await explore(() => runs++, { seeds: 2 }); // another result each time
 * } catch (error) {
 *   console.log(error instanceof CudaScheduleError && error.seed); // 1
 * }
 * ```
 */
export class CudaScheduleError extends CudaError {
  /** @internal */
  static override readonly [CLASS_NAME]: string = 'CudaScheduleError';
  override name = 'CudaScheduleError';
  /** The seed of that order. */
  readonly seed: number;
  constructor(seed: number, message: string, options: CudaErrorOptions = {}) {
    super('ERR_CUDA_SCHEDULE', message, options);
    this.seed = seed;
  }
}

/** A place in a source file of the program. */
export interface SourcePlace {
  readonly file: string;
  /** From 1. */
  readonly line: number;
  /** From 1. */
  readonly column: number;
}

/**
 * A module or a kernel did not compile or load. `log` is the compiler's error log.
 *
 * @example
 * ```ts
 * try {
 *   await device.loadModule('.version 7.0\n.target sm_70\n.address_size 64\n.entry f() { oops; }');
 * } catch (error) {
 *   console.log(error instanceof CudaCompileError && error.log.length > 0); // true
 * }
 * ```
 */
export class CudaCompileError extends CudaError {
  /** @internal */
  static override readonly [CLASS_NAME]: string = 'CudaCompileError';
  override name = 'CudaCompileError';
  readonly log: string;
  readonly infoLog: string;
  /** The place in the source file, for a kernel in TypeScript; undefined where it is not known. */
  readonly place: SourcePlace | undefined;
  constructor(
    message: string,
    log: string,
    infoLog: string,
    options: CudaErrorOptions & { place?: SourcePlace } = {},
  ) {
    super('ERR_CUDA_COMPILE', message, options);
    this.log = log;
    this.infoLog = infoLog;
    this.place = options.place;
  }
}

/**
 * A file, or a stream of bytes, does not conform to its format, or holds a dtype that this library
 * does not have.
 *
 * @example
 * ```ts
 * try {
 *   readNpy(new Uint8Array(16));
 * } catch (error) {
 *   console.log(error instanceof CudaFormatError && error.format); // npy
 * }
 * ```
 */
export class CudaFormatError extends CudaError {
  /** @internal */
  static override readonly [CLASS_NAME]: string = 'CudaFormatError';
  override name = 'CudaFormatError';
  /** The format that it was read as. */
  readonly format: 'npy' | 'safetensors' | 'image' | 'frames';
  /** The place in the file, in bytes; undefined where there is no single place. */
  readonly offset: number | undefined;
  constructor(
    format: CudaFormatError['format'],
    message: string,
    offset?: number,
    options: CudaErrorOptions = {},
  ) {
    super('ERR_CUDA_FORMAT', `${format}: ${message}`, options);
    this.format = format;
    this.offset = offset;
  }
}

/**
 * A function of one of NVIDIA's libraries (NPP, cuBLAS, …) returned a failure.
 *
 * @example
 * ```ts no-run
 * const gpu = await Device.open('cuda');
 * try {
 *   await resize(gpu.zeros(u8, [8, 8, 3]), { width: 4, height: 4, engine: 'npp' });
 * } catch (error) {
 *   if (error instanceof CudaLibraryError) console.log(error.statusName); // NPP_STEP_ERROR
 * }
 * await gpu.close();
 * ```
 */
export class CudaLibraryError extends CudaError {
  /** @internal */
  static override readonly [CLASS_NAME]: string = 'CudaLibraryError';
  override name = 'CudaLibraryError';
  /** The library, with its version. */
  readonly library: string;
  /** The library's function. */
  readonly call: string;
  /** The status that the function returned. */
  readonly status: number;
  /** The library's name of the status, e.g. `NPP_STEP_ERROR`. */
  readonly statusName: string;
  constructor(
    message: string,
    failure: { library: string; call: string; status: number; statusName: string },
    code: CudaErrorCode = 'ERR_CUDA_LIBRARY',
    options: CudaErrorOptions = {},
  ) {
    super(code, message, options);
    this.library = failure.library;
    this.call = failure.call;
    this.status = failure.status;
    this.statusName = failure.statusName;
  }
}
