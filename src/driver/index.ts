/**
 * Level 1 of async-cuda: the CUDA driver API as one TypeScript interface, with NVIDIA's names, and
 * its two providers.
 *
 * Calls run on the calling thread and nothing is checked for them: for lifetimes and ordering use
 * `async-cuda/core`.
 *
 * @packageDocumentation
 */
export { isPolled } from './driver.js';
export type * from './driver.js';
export { CUresult, resultName } from '../ground/result.js';
export * from './attributes.js';
export * from './flags.js';
export { DriverError, LibraryNotFoundError, MissingSymbolError } from './error.js';
export type { DriverErrorDetails } from './error.js';
export { openLibcuda } from './libcuda/open.js';
export type { LibcudaOptions } from './libcuda/open.js';
export { findLibrary } from '../native/find.js';
export type { FindResult, Tried } from '../native/find.js';
export { KNOWN_LIBRARIES } from '../native/libraries.js';
export type { LibraryRow } from '../native/libraries.js';
export type * from '../ground/check-report.js';
export { openCpu } from './cpu/open.js';
export type { CpuOptions } from './cpu/open.js';
