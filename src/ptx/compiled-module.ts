// The result of compiling PTX, and the options.

import type { Passes } from './lanes/pass-table.js';
import type { DataVariable, Relocation } from './analysis/data-layout.js';
import type { KernelCheck, ModuleCheck } from './check.js';
import type { Waiting } from './emit/waiting.js';
import type { PtxError } from './error.js';
import type { LaneCode } from './lanes/compile-lanes.js';
import type { KernelSignature } from './signatures.js';

export interface PtxCompileOptions {
  /** The name in error messages. */
  fileName?: string;
  /**
   * Compiles kernels for the vector back end as well: see {@link WasmKernel.inLanes}. On by
   * default.
   */
  simd?: boolean;
  /**
   * The code reports what it does through the functions that check.ts describes, and stops if they
   * return that it has to.
   */
  check?: boolean;
  /**
   * In each pass the warps of a block take turns in an order that is drawn from the word at
   * ORDER_SEED in scratch. The vector back end is not used.
   */
  ordered?: boolean;
  /** @internal Bytes of code above which a kernel is divided into several functions. */
  largestFunction?: number;
  /** @internal A pass of the vector back end is switched off by `false`. */
  passes?: Passes;
  /** @internal Uses relaxed_madd where it is fused; on by default. */
  relaxedFma?: boolean;
  /**
   * Arithmetic gives PTX's canonical NaN (0x7fffffff in f32, 0x7ff8000000000000 in f64) as a GPU
   * does, instead of the processor's. Off by default: each result is tested for NaN, which costs
   * float-heavy kernels up to a third. Halves always have their canonical NaN (0x7fff).
   */
  canonicalNaN?: boolean;
}

/** The directives of a kernel about the clusters that its blocks form. */
export interface ClusterDirectives {
  /** .reqnctapercluster */
  required?: [number, number, number];
  /** .maxclusterrank: the most blocks of a cluster. */
  most?: number;
  /** .explicitcluster: the kernel can only be launched with clusters. */
  explicit: boolean;
  /** .blocksareclusters: a launch counts the clusters of the grid, not the blocks. */
  gridOfClusters: boolean;
}

export interface WasmKernel extends KernelSignature {
  /** The exported WebAssembly function: (ctx: i32, fuel: i32) => i32 status. */
  exportName: string;
  /** Bytes of static shared memory. */
  sharedBytes: number;
  sharedAlign: number;
  usesDynamicShared: boolean;
  /** Bytes of .local memory per thread, for information. */
  localBytes: number;
  /** An estimate for information: the most 32-bit values that are live at once. */
  registers: number;
  /** The product of .maxntid or .reqntid, else 1024. */
  maxThreads: number;
  requiredBlock?: [number, number, number];
  cluster: ClusterDirectives;
  /** Bytes of scratch for one resident block. The caller zeroes them before the first run. */
  blockBytes(threads: number): number;
  /** False for a kernel without loops and waits: it never returns STATUS.yielded. */
  yields: boolean;
  /** The kernel depends on warps that run in step, as they do in vector lanes. */
  inWarpSteps: boolean;
  /**
   * One call runs as many further blocks as the context block requests: no block leaves state for
   * the next one.
   */
  runsOn: boolean;
  /**
   * The kernel for blocks of a shape in vector lanes, several threads at once, or the reason why
   * there is none. It is compiled at the first call. A block that one of the two codes has begun
   * cannot continue in the other.
   */
  inLanes(block: readonly [number, number, number]): LaneCode | string;
  /**
   * The places of the threads of a block that has begun and has not ended; empty for a kernel that
   * never yields.
   */
  waiting(words: Int32Array, scratch: number, threads: number): Waiting[];
  /** Present if the code is compiled with `check`. */
  check?: KernelCheck;
}

export interface WasmModule {
  version: string;
  target: string;
  /**
   * Imports env.memory (shared), env.dataBase (immutable i32 global), and the host functions in
   * `hostImports`.
   */
  wasm: Uint8Array;
  /**
   * The initial image of all .global and .const variables. The caller copies it to dataBase, which
   * is a multiple of 256.
   */
  data: Uint8Array;
  /** The cells of the image for {@link relocate}. */
  relocations: Relocation[];
  variables: DataVariable[];
  kernels: WasmKernel[];
  hostImports: string[];
  /**
   * Kernels that are left out because they use what is not covered, in a module in which others
   * compile. If none compiles, compilePtx throws the first of these errors.
   */
  failures: { kernel: string; error: PtxError }[];
  /** Present if the code is compiled with `check`. */
  check?: ModuleCheck;
}
