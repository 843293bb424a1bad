/** How one launch of an element kernel is laid out: its code is specialised for it. */

/**
 * How a tensor is walked over rows and columns. `dense`: rows one behind the other; `row`,
 * `column`: one row for all, one element for each row; `one`: one element for all; `strided`: by
 * two strides.
 */
export type RowAccess = 'dense' | 'row' | 'column' | 'one' | 'strided';

/** How the tensors of one launch lie. */
export interface ElementForm {
  /** Elements of one thread. 1 where tensors are walked by strides. */
  readonly width: number;
  /**
   * Axes that the tensors are indexed by: 1 where each is one run of elements, or one element; else
   * 2 to 4.
   */
  readonly axes: number;
  /** Tensors, by name, of which there is one element for all. With one axis only. */
  readonly single: readonly string[];
  /**
   * Of tensors of two axes, by name, where no strides are needed: each is passed as one run of
   * elements.
   */
  readonly access?: Readonly<Record<string, Exclude<RowAccess, 'strided'>>>;
  /** Axes of `gpu.coordinates`; 0 where the body does not ask for them. */
  readonly coordinates: number;
}

/** The name of the parameter that an axis' extent is passed by. */
export const extentName = (axis: number): string => `extent$${axis}`;

/** Parameters of a form with `access`: rows, and columns in units of the form's width. */
export const ROW_NAMES = ['rows$', 'groups$'] as const;
