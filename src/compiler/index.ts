/** The compiler from TypeScript functions to kernels. */
export { KernelSourceError } from './source-error.js';
export { readKernel } from './read/read-kernel.js';
export type {
  DeviceFunctionText,
  KernelSource,
  Signature,
  SignatureEntry,
  Used,
} from './signature.js';
export { SimulationError } from './simulate/failure.js';
export type { Locate, SourcePosition } from './simulate/failure.js';
export { simulateKernel } from './simulate/simulate.js';
export type { Dimensions, SimulateOptions } from './simulate/simulate.js';
export type { HostArguments, HostArray, HostScalar, HostTensor } from './simulate/arguments.js';
