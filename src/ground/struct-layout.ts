/** The places of a structure's fields in memory. */
import type { KernelDTypeName } from './dtype.js';

/** One field of a structure. */
export interface StructField {
  readonly name: string;
  readonly storage: KernelDTypeName;
  /** Bytes from the structure's beginning. */
  readonly offset: number;
}

/** A structure of scalars, laid out as C lays it out. */
export interface StructLayout {
  readonly fields: readonly StructField[];
  readonly bytes: number;
  readonly align: number;
}
