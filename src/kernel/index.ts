/** The compiler from TypeScript functions to kernels. */
export { KernelSourceError } from './source-error.js';
export { readKernel } from './read/read-kernel.js';
export type { DeviceFunctionText, KernelSource, Signature, SignatureEntry, Used } from './signature.js';
