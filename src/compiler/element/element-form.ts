/** The form of one launch of an element kernel: the code is specialised for it. */

/**
 * How an element kernel reads a tensor by row and column. `dense`: contiguous rows; `row`,
 * `column`: one row for all, one element for each row; `one`: one element for all; `strided`: by
 * two strides.
 */
export type RowAccess = 'dense' | 'row' | 'column' | 'one' | 'strided';

/** The form of the tensors of one launch. */
export interface ElementForm {
  /** Elements of one thread; 1 where tensors are walked by strides. */
  readonly width: number;
  /**
   * Axes that the tensors are indexed by: 1 where each is one run of elements, or one element; else
   * 2 to 4.
   */
  readonly axes: number;
  /** Names of tensors with one element for all; only with one axis. */
  readonly single: readonly string[];
  /**
   * The access of tensors of two axes, by name, where no strides are needed: each is passed as one
   * run of elements.
   */
  readonly access?: Readonly<Record<string, Exclude<RowAccess, 'strided'>>>;
  /** Axes of `gpu.coordinates`; 0 where the body does not use them. */
  readonly coordinates: number;
}

/** The name of the parameter for an axis' extent. */
export const extentName = (axis: number): string => `extent$${axis}`;

/** Parameters of a form with `access`: rows, and columns in units of the form's width. */
export const ROW_NAMES = ['rows$', 'groups$'] as const;
