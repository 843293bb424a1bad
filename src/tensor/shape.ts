/** Checks and functions of shapes at run time. */
import { checkInteger, invalid, isList } from '../ground/arguments.js';
import type { Numel, Shape } from './shape-types.js';

/** Axes that a tensor has at most. NumPy and PyTorch have at most 64. */
export const MOST_AXES = 1024;

/**
 * Checks a shape.
 *
 * @throws CudaArgumentError for what is no list of whole numbers of at least 0, and where their
 *   product is above 2^53 - 1
 */
export function checkShape(argument: string, shape: unknown): asserts shape is Shape {
  if (!isList(shape))
    throw invalid(
      argument,
      'an array of extents',
      shape,
      typeof shape === 'number' ? `Write [${shape}].` : '',
    );
  // The limit of the product does not limit the number of extents of 1.
  if (shape.length > MOST_AXES)
    throw invalid(argument, `an array of at most ${MOST_AXES} extents`, `one of ${shape.length}`);
  let product = 1;
  for (let axis = 0; axis < shape.length; axis++) {
    const extent: unknown = shape[axis];
    checkInteger(`${argument}[${axis}]`, extent, 0, Number.MAX_SAFE_INTEGER);
    // With an empty axis the other extents count too, since strides are computed of them.
    product *= Math.max(extent, 1);
  }
  if (product > Number.MAX_SAFE_INTEGER)
    throw invalid(argument, `a shape of at most ${Number.MAX_SAFE_INTEGER} elements`, shape);
}

/**
 * Gives the number of elements of a shape: the product of its extents, 1 for `[]`.
 *
 * @example
 * ```ts
 * console.log(layouts.numel([2, 3, 4])); // 24
 * ```
 */
export function numel<const S extends Shape>(shape: S): Numel<S>;
export function numel(shape: Shape): number {
  let product = 1;
  for (let axis = 0; axis < shape.length; axis++) product *= shape[axis]!;
  return product;
}

/**
 * Whether rank and extents are the same.
 *
 * @example
 * ```ts
 * console.log(layouts.sameShape([2, 3], [3, 2])); // false
 * ```
 */
export function sameShape(a: Shape, b: Shape): boolean {
  return a.length === b.length && a.every((extent, axis) => extent === b[axis]);
}

/** Shows shapes, strides and indices in messages: `[2, 3]`. */
export function showShape(shape: Shape): string {
  return `[${shape.join(', ')}]`;
}

/**
 * Gives the axis, from 0 to `rank - 1`, for a number that may count from the end.
 *
 * @throws CudaArgumentError for an axis beyond the rank
 */
export function checkAxis(argument: string, axis: unknown, rank: number): number {
  if (typeof axis === 'number' && Number.isInteger(axis) && axis >= -rank && axis < rank)
    return axis < 0 ? axis + rank : axis;
  throw invalid(
    argument,
    rank === 0 ? 'no axis, since a scalar has none' : `an axis from ${-rank} to ${rank - 1}`,
    axis,
  );
}

/**
 * Gives the strides, in elements, of a row-major layout of a shape.
 *
 * @example
 * ```ts
 * console.log(layouts.contiguousStrides([2, 3, 4])); // [ 12, 4, 1 ]
 * ```
 */
export function contiguousStrides(shape: Shape): number[] {
  const strides = new Array<number>(shape.length);
  let stride = 1;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    strides[axis] = stride;
    stride *= Math.max(shape[axis]!, 1);
  }
  return strides;
}
