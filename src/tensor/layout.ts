/**
 * Where the elements of a tensor lie in its buffer: element `[i, j, …]` is number `offset +
 * i·strides[0] + j·strides[1] + …`.
 *
 * A layout is an immutable value. A view is another layout over the same buffer: see `slicing.ts`,
 * `reshaping.ts`, `axes.ts`, `broadcasting.ts`, `reinterpreting.ts`. These files are independent of
 * dtypes and devices; strides, offsets and extents count elements.
 */
import { checkInteger, invalid } from '../ground/arguments.js';
import { checkShape, contiguousStrides, showShape } from './shape.js';
import type { Dims, Shape } from './shape-types.js';

/** Shape, strides and offset of a tensor within its buffer, in elements. */
export interface Layout<S extends Shape = Shape> {
  /** Extent of each axis, outermost first. */
  readonly shape: Readonly<S>;
  /**
   * Elements from one index of an axis to the next; 0 where it is broadcast, negative where it is
   * reversed.
   */
  readonly strides: readonly number[];
  /** Where element `[0, 0, …]` lies, counted from the start of the buffer. */
  readonly offset: number;
}

/** A layout of values that were checked before. The arrays are frozen and become its own. */
export function layoutOf<S extends Shape>(
  shape: S,
  strides: readonly number[],
  offset: number,
): Layout<S> {
  return Object.freeze({ shape: Object.freeze(shape), strides: Object.freeze(strides), offset });
}

/**
 * Makes a row-major layout: the elements of the last axis lie next to each other, without gaps.
 *
 * @throws CudaArgumentError for an invalid shape or offset
 *
 * @example
 * ```ts
 * const { shape, strides, offset } = layouts.contiguous([2, 3]);
 * console.log(shape, strides, offset); // [ 2, 3 ] [ 3, 1 ] 0
 * ```
 */
export function contiguous<const S extends Shape>(shape: S, offset = 0): Layout<Dims<S>> {
  checkShape('shape', shape);
  checkInteger('offset', offset, 0, Number.MAX_SAFE_INTEGER, 'elements');
  const layout = layoutOf([...shape] as Dims<S>, contiguousStrides(shape), offset);
  checkReach(layout);
  return layout;
}

/**
 * Makes a layout of any strides, in elements; 0 and negative ones too.
 *
 * @throws CudaArgumentError where shape and strides differ in rank, or an element would lie before
 *   element 0 of the buffer
 *
 * @example
 * ```ts
 * const diagonal = layouts.strided([3], [4]);
 * console.log([...layouts.elements(diagonal)]); // [ 0, 4, 8 ]
 * ```
 */
export function strided<const S extends Shape>(
  shape: S,
  strides: readonly number[],
  offset = 0,
): Layout<Dims<S>> {
  checkShape('shape', shape);
  if (!(Array.isArray as (value: unknown) => boolean)(strides) || strides.length !== shape.length)
    throw invalid(
      'strides',
      `${shape.length} strides, one for each axis of ${showShape(shape)}`,
      strides,
    );
  strides.forEach((stride, axis) => {
    if (!Number.isSafeInteger(stride))
      throw invalid(`strides[${axis}]`, 'a whole number (elements)', stride);
  });
  checkInteger('offset', offset, 0, Number.MAX_SAFE_INTEGER, 'elements');
  const layout = layoutOf([...shape] as Dims<S>, [...strides], offset);
  checkReach(layout);
  return layout;
}

function checkReach(layout: Layout): void {
  const { start, end } = span(layout);
  if (start < 0)
    throw invalid(
      'offset',
      `at least ${layout.offset - start}, so that no element lies before the buffer`,
      layout.offset,
    );
  if (end > Number.MAX_SAFE_INTEGER)
    throw invalid('strides', `elements that lie below ${Number.MAX_SAFE_INTEGER}`, layout.strides);
}

/** A half-open range of elements of the buffer. */
export interface Span {
  /** The lowest element of the layout. */
  readonly start: number;
  /** The highest element of the layout, plus 1; `start` where the layout is empty. */
  readonly end: number;
}

/**
 * Gives the range of the buffer from the lowest to the highest element of the layout.
 *
 * @example
 * ```ts
 * const column = layouts.slice(layouts.contiguous([2, 3]), [null, 1]);
 * console.log(layouts.span(column)); // { start: 1, end: 5 }
 * ```
 */
export function span({ shape, strides, offset }: Layout): Span {
  let start = offset;
  let last = offset;
  for (let axis = 0; axis < shape.length; axis++) {
    const extent = shape[axis]!;
    if (extent === 0) return { start: offset, end: offset };
    const reach = (extent - 1) * strides[axis]!;
    if (reach < 0) start += reach;
    else last += reach;
  }
  return { start, end: last + 1 };
}

/**
 * Whether the elements lie in row-major order without gaps, from any offset on. Axes of extent 1
 * may have any stride, and an empty layout is contiguous.
 *
 * @example
 * ```ts
 * const layout = layouts.contiguous([2, 3]);
 * console.log(layouts.isContiguous(layout)); // true
 * console.log(layouts.isContiguous(layouts.transpose(layout))); // false
 * ```
 */
export function isContiguous({ shape, strides }: Layout): boolean {
  let expected = 1;
  let dense = true;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    const extent = shape[axis]!;
    if (extent === 0) return true;
    if (extent !== 1 && strides[axis] !== expected) dense = false;
    expected *= extent;
  }
  return dense;
}

/**
 * Whether every index names the same element in both layouts. Strides of axes of extent 1 do not
 * count, nor do those of empty layouts.
 *
 * @example
 * ```ts
 * const row = layouts.contiguous([1, 3]);
 * console.log(layouts.sameLayout(row, layouts.strided([1, 3], [100, 1]))); // true
 * console.log(layouts.sameLayout(row, layouts.contiguous([1, 3], 3))); // false
 * ```
 */
export function sameLayout(a: Layout, b: Layout): boolean {
  if (a.shape.length !== b.shape.length || a.shape.some((extent, axis) => extent !== b.shape[axis]))
    return false;
  if (a.shape.includes(0)) return true;
  return (
    a.offset === b.offset &&
    a.shape.every((extent, axis) => extent === 1 || a.strides[axis] === b.strides[axis])
  );
}

/**
 * Gives the element of the buffer at an index, which has one number for each axis; negative ones
 * count from the end.
 *
 * @throws CudaArgumentError for an index outside the shape
 *
 * @example
 * ```ts
 * console.log(layouts.elementAt(layouts.contiguous([2, 3]), [1, -1])); // 5
 * ```
 */
export function elementAt({ shape, strides, offset }: Layout, index: readonly number[]): number {
  if (index.length !== shape.length)
    throw invalid(
      'index',
      `${shape.length} numbers, one for each axis of ${showShape(shape)}`,
      index,
    );
  let element = offset;
  for (let axis = 0; axis < shape.length; axis++)
    element += checkIndex(`index[${axis}]`, index[axis], shape[axis]!) * strides[axis]!;
  return element;
}

/** An index of an axis, from 0 on; negative ones count from the end. */
export function checkIndex(argument: string, index: unknown, extent: number): number {
  if (typeof index === 'number' && Number.isInteger(index) && index >= -extent && index < extent)
    return index < 0 ? index + extent : index;
  throw invalid(
    argument,
    extent === 0
      ? 'no index, since the axis is empty'
      : `an index from ${-extent} to ${extent - 1}`,
    index,
  );
}

/**
 * Yields the element of the buffer for every index, in row-major order. It takes a step for each
 * element, and is for small layouts.
 *
 * @example
 * ```ts
 * const column = layouts.slice(layouts.contiguous([2, 3]), [null, 1]);
 * console.log([...layouts.elements(column)]); // [ 1, 4 ]
 * ```
 */
export function* elements({ shape, strides, offset }: Layout): Generator<number, void, undefined> {
  if (shape.includes(0)) return;
  const index = new Array<number>(shape.length).fill(0);
  let element = offset;
  for (;;) {
    yield element;
    let axis = shape.length - 1;
    for (; axis >= 0; axis--) {
      if (++index[axis]! < shape[axis]!) {
        element += strides[axis]!;
        break;
      }
      index[axis] = 0;
      element -= (shape[axis]! - 1) * strides[axis]!;
    }
    if (axis < 0) return;
  }
}
