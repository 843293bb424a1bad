/** Arguments of kernels that make one image of another. */
import type { Input, Output } from '../library/kernel-family.js';

export interface ImageArgs {
  readonly out: Output;
  readonly x: Input;
  /** Columns of the result. */
  readonly width: number;
  readonly outRow: number;
  readonly outImage: number;
  /** Columns and rows of the source. */
  readonly columns: number;
  readonly rows: number;
  readonly inRow: number;
  readonly inImage: number;
}
