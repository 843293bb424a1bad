// What an emitter must know beyond the code that it writes.

import type { DataLayout } from '../analysis/data-layout.js';
import type { SharedVariable } from '../analysis/program.js';
import type { ModuleCheck } from '../check.js';
import type { SourceText } from '../error.js';
import type { ScalarType } from '../scalar-types.js';
import type { PtxFunction } from '../syntax/ast.js';
import type { Signature } from '../wasm/signature.js';
import type { Emitter } from './emitter.js';
import type { Linker } from './linker.js';

export interface Surroundings {
  source: SourceText;
  linker: Linker;
  /**
   * Bytes from the start of shared memory to a static variable, once the kernel's layout is known.
   */
  sharedOffset(variable: SharedVariable): number;
  /**
   * Where dynamic shared memory begins; undefined in real functions, which kernels with more or
   * fewer variables of their own call.
   */
  dynamicStart: number | undefined;
  functionAddress(target: PtxFunction): bigint;
  functionIndex(target: PtxFunction): number;
  /** Index of the function that calls through an address: (…arguments, address, line) → results. */
  indirectCall(signature: Signature): number;
  /** Pushes a special register's value, of the type that the instruction has. */
  pushSpecialRegister: (e: Emitter, name: string, type: ScalarType) => void;
  data: Pick<DataLayout, 'constants'>;
  /** relaxed_madd was found to be fused on this machine. */
  relaxedFma: boolean;
  /** Results that are NaN are PTX's canonical NaN. */
  canonicalNaN: boolean;
  /** A number in scratch decides the order of warps. */
  ordered: boolean;
  /** Set where the code is to be watched: filled with what the watcher needs to know. */
  check: ModuleCheck | undefined;
}
