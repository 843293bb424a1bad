// What an emitter needs besides the code that it writes.

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
  /** Bytes from the start of shared memory to a static variable, in the kernel's layout. */
  sharedOffset(variable: SharedVariable): number;
  /**
   * The beginning of dynamic shared memory; undefined in real functions, since the kernels that
   * call them have different variables.
   */
  dynamicStart: number | undefined;
  functionAddress(target: PtxFunction): bigint;
  functionIndex(target: PtxFunction): number;
  /**
   * The index of the function that calls through an address: (…arguments, address, line) → results.
   */
  indirectCall(signature: Signature): number;
  /** Pushes a special register's value, of the type that the instruction has. */
  pushSpecialRegister: (e: Emitter, name: string, type: ScalarType) => void;
  data: Pick<DataLayout, 'constants'>;
  /** relaxed_madd is fused on this machine. */
  relaxedFma: boolean;
  /** Results that are NaN become PTX's canonical NaN. */
  canonicalNaN: boolean;
  /** A number in scratch decides the order of warps. */
  ordered: boolean;
  /** Present if the code is compiled with `check`: the compiler adds what the checker needs. */
  check: ModuleCheck | undefined;
}
