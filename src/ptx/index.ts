// PTX on WebAssembly: a pure compiler from NVIDIA PTX text to a WebAssembly module, and the
// contract for running the module. It contains no devices, no streams, and nothing of Node.
// README.md describes its steps.

export { CTX, EXPLICIT_CLUSTER, FAULT, SHARED_ALIGNMENT, STATUS, TEAM } from './context.js';
export {
  ACCESS,
  ACCESS_SPACES,
  ARRIVAL,
  CHECK_GAP,
  GROUP_EVENT,
  IN_FLIGHT,
  SHUFFLE,
} from './check.js';
export type { KernelCheck, ModuleCheck, PlacedVariable, SourceLine } from './check.js';
export { RESERVED_SHARED } from './analysis/special-registers.js';
export { relocate } from './analysis/data-layout.js';
export type { DataVariable, Relocation } from './analysis/data-layout.js';
export { compilePtx } from './compile.js';
export type {
  ClusterDirectives,
  PtxCompileOptions,
  WasmKernel,
  WasmModule,
} from './compiled-module.js';
export type { LaneCode } from './lanes/compile-lanes.js';
export { ORDER_SEED, SCRATCH_STATES, THREAD_EXITED, TURN_BYTES } from './emit/waiting.js';
export type { Waiting } from './emit/waiting.js';
export { PtxError } from './error.js';
export type { PtxErrorCode, PtxErrorPlace } from './error.js';
export { kernelSignatures } from './signatures.js';
export type { PtxKernelParam, KernelSignature } from './signatures.js';
export { TEXTURE, TEXTURE_KIND, TEXTURE_MAGIC } from './texture-descriptor.js';
export { optimisingTime } from './wasm/optimising.js';
export type { OptimisingTime } from './wasm/optimising.js';
export { parsePtx } from './syntax/parser.js';
export type { PtxModule } from './syntax/ast.js';
