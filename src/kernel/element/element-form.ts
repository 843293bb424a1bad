/** How one launch of an element kernel is laid out: its code is specialised for it. */

/** How the tensors of one launch lie. */
export interface ElementForm {
  /** Elements of one thread. 1 where there is more than one axis. */
  readonly width: number;
  /** Axes that the tensors are indexed by: 1 where each is one run of elements, or one element; else 2 to 4. */
  readonly axes: number;
  /** Tensors, by name, of which there is one element for all. With one axis only. */
  readonly single: readonly string[];
  /** Axes of `gpu.coordinates`; 0 where the body does not ask for them. */
  readonly coordinates: number;
}

/** The name of the parameter that an axis' extent is passed by. */
export const extentName = (axis: number): string => `extent$${axis}`;
