// What compiling PTX gives, and what can be chosen about it.

import type { Passes } from './lanes/pass-table.js';
import type { DataVariable, Relocation } from './analysis/data-layout.js';
import type { KernelCheck, ModuleCheck } from './check.js';
import type { Waiting } from './emit/waiting.js';
import type { PtxError } from './error.js';
import type { LaneCode } from './lanes/compile-lanes.js';
import type { KernelSignature } from './signatures.js';

export interface PtxCompileOptions {
  /** name shown in errors */
  fileName?: string;
  /** Kernels can be had in vector lanes, too: see {@link WasmKernel.inLanes}. On by default. */
  simd?: boolean;
  /**
   * The code tells of what it does through the functions that check.ts names, and stops where they
   * say so.
   */
  check?: boolean;
  /**
   * In each pass the warps of a block take their turns in an order that is drawn from the word at
   * ORDER_SEED in scratch. Without lanes.
   */
  ordered?: boolean;
  /** @internal Bytes of code above which a kernel becomes several functions. */
  largestFunction?: number;
  /** @internal Passes of the vector back end that are switched off are `false`. */
  passes?: Passes;
  /** @internal Use relaxed_madd where it is fused; on by default. */
  relaxedFma?: boolean;
  /**
   * Arithmetic gives PTX's canonical NaN (0x7fffffff in f32, 0x7ff8000000000000 in f64) as a GPU
   * does, instead of the machine's. Off by default, because each result is tested for it: it costs
   * float-heavy kernels up to a third. Halves always have theirs (0x7fff).
   */
  canonicalNaN?: boolean;
}

/** What a kernel says of the clusters that its blocks form. */
export interface ClusterDirectives {
  /** .reqnctapercluster */
  required?: [number, number, number];
  /** .maxclusterrank: blocks that a cluster has at most */
  most?: number;
  /** .explicitcluster: it is launched with clusters, or not at all */
  explicit: boolean;
  /** .blocksareclusters: a launch counts the clusters of the grid, not the blocks */
  gridOfClusters: boolean;
}

export interface WasmKernel extends KernelSignature {
  /** exported wasm function: (ctx: i32, fuel: i32) => i32 status */
  exportName: string;
  /** static shared */
  sharedBytes: number;
  sharedAlign: number;
  usesDynamicShared: boolean;
  /** .local per thread, informational */
  localBytes: number;
  /** estimate: max live 32-bit values, informational */
  registers: number;
  /** from .maxntid/.reqntid product, else 1024 */
  maxThreads: number;
  requiredBlock?: [number, number, number];
  cluster: ClusterDirectives;
  /** bytes of scratch for one resident block, zeroed by the caller before the first run */
  blockBytes(threads: number): number;
  /** false when the kernel is straight-line or forward-only: it can never return STATUS.yielded */
  yields: boolean;
  /** It counts on warps that run in step, which those in lanes do. */
  inWarpSteps: boolean;
  /**
   * One call runs as many further blocks as the context block asks for: none of them leaves
   * anything to the next.
   */
  runsOn: boolean;
  /**
   * The kernel for blocks of a shape with several threads at once in vector lanes, or why there is
   * none. Compiled when it is first asked for. Blocks run by one of the two are not to be carried
   * on by the other.
   */
  inLanes(block: readonly [number, number, number]): LaneCode | string;
  /**
   * Where the threads of a block are that has been run and has not ended; nothing for a kernel that
   * never yields.
   */
  waiting(words: Int32Array, scratch: number, threads: number): Waiting[];
  /** Of code compiled with `check`. */
  check?: KernelCheck;
}

export interface WasmModule {
  version: string;
  target: string;
  /**
   * Imports env.memory (shared), env.dataBase (immutable i32 global) and the host functions listed.
   */
  wasm: Uint8Array;
  /** Initial image of all .global and .const variables, to be copied to dataBase; alignment 256. */
  data: Uint8Array;
  /** For {@link relocate}. */
  relocations: Relocation[];
  variables: DataVariable[];
  kernels: WasmKernel[];
  hostImports: string[];
  /**
   * Kernels left out because they use what is not covered, in a module where others compiled. When
   * none compiles, compilePtx throws the first of these errors.
   */
  failures: { kernel: string; error: PtxError }[];
  /** Of code compiled with `check`. */
  check?: ModuleCheck;
}
