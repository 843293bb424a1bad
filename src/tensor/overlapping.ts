/**
 * Overlap: whether a layout has one element at two indices, or two layouts have an element in
 * common. A kernel's output must not: two threads would write one element, or one thread would read
 * what another writes.
 *
 * Both questions are whether a sum of strides, each taken a limited number of times, can equal a
 * given number. That is NP-hard in general, and decided quickly for the layouts that slices,
 * permutations and tiles have. The search ends after a fixed number of steps, and an undecided
 * answer counts as an overlap.
 */
import { isContiguous, span } from './layout.js';
import type { Layout } from './layout.js';

/** Steps of a search: about 0.2 ms. Slices, permutations and tiles take fewer than a hundred. */
const STEPS = 20_000;

/** A summand: `factor`, taken from 0 to `limit` times. */
interface Term {
  factor: number;
  limit: number;
}

/**
 * Whether two indices of a layout name one element: an axis is broadcast, or strides overlap. The
 * answer is exact, except that a search that takes too long counts as an overlap.
 *
 * @example
 * ```ts
 * console.log(layouts.overlapsItself(layouts.contiguous([2, 3]))); // false
 * console.log(layouts.overlapsItself(layouts.strided([2, 3], [0, 1]))); // true
 * ```
 */
export function overlapsItself(layout: Layout): boolean {
  if (isContiguous(layout)) return false;
  const { shape, strides } = layout;
  const axes = shape.flatMap((extent, axis): Term[] =>
    extent === 1 ? [] : [{ factor: Math.abs(strides[axis]!), limit: extent - 1 }],
  );
  axes.sort((a, b) => a.factor - b.factor);
  if (axes[0]?.factor === 0) return true;
  // In every slice and permutation of a contiguous layout each stride is larger than all that the
  // smaller strides reach together: then there is no overlap.
  let reach = 0;
  let nested = true;
  for (const { factor, limit } of axes) {
    if (factor <= reach) nested = false;
    reach += factor * limit;
  }
  if (nested) return false;
  // Two different indices are equal on the axes before a first one, differ by at least 1 on that
  // one, and by -limit to limit on those after it.
  return axes.some(({ factor, limit }, first) => {
    const later = axes.slice(first + 1);
    const below = later.reduce((sum, term) => sum + term.factor * term.limit, 0);
    const terms = [
      { factor, limit: limit - 1 },
      ...later.map((term) => ({ factor: term.factor, limit: 2 * term.limit })),
    ];
    return reaches(terms, below - factor);
  });
}

/**
 * Whether two layouts over one buffer have an element in common. The answer is exact, except that a
 * search that takes too long counts as an overlap. Both layouts count the same elements: those of
 * different dtypes are compared `inBytes`.
 *
 * @example
 * ```ts
 * const layout = layouts.contiguous([4, 4]);
 * const even = layouts.slice(layout, [[null, null, 2]]);
 * const odd = layouts.slice(layout, [[1, null, 2]]);
 * console.log(layouts.overlaps(even, odd)); // false
 * ```
 */
export function overlaps(a: Layout, b: Layout): boolean {
  if (a.shape.includes(0) || b.shape.includes(0)) return false;
  const [inA, inB] = [span(a), span(b)];
  if (inA.end <= inB.start || inB.end <= inA.start) return false;
  // Indices of a count up from its lowest element, those of b down from its highest: together they
  // have to cover the distance.
  return reaches([...termsOf(a), ...termsOf(b)], inB.end - 1 - inA.start);
}

function termsOf({ shape, strides }: Layout): Term[] {
  return shape.map((extent, axis) => ({ factor: Math.abs(strides[axis]!), limit: extent - 1 }));
}

function greatestCommonDivisor(a: number, b: number): number {
  while (b !== 0) [a, b] = [b, a % b];
  return a;
}

/**
 * Whether some of the terms add up to `total`; also true where the search takes more than
 * {@link STEPS}.
 */
function reaches(given: readonly Term[], total: number): boolean {
  const limits = new Map<number, number>();
  for (const { factor, limit } of given)
    if (factor !== 0 && limit > 0) limits.set(factor, (limits.get(factor) ?? 0) + limit);
  // The largest factor comes first: it leaves the fewest possibilities.
  const terms = [...limits]
    .map(([factor, limit]): Term => ({ factor, limit }))
    .sort((a, b) => b.factor - a.factor);
  const divisors = new Array<number>(terms.length + 1).fill(0);
  const sums = new Array<number>(terms.length + 1).fill(0);
  for (let i = terms.length - 1; i >= 0; i--) {
    divisors[i] = greatestCommonDivisor(terms[i]!.factor, divisors[i + 1]!);
    sums[i] = sums[i + 1]! + terms[i]!.factor * terms[i]!.limit;
  }

  let steps = STEPS;
  const search = (i: number, rest: number): boolean => {
    if (rest === 0) return true;
    if (rest < 0 || rest > sums[i]! || rest % divisors[i]! !== 0) return false;
    const { factor, limit } = terms[i]!;
    const highest = Math.min(limit, Math.floor(rest / factor));
    const lowest = Math.max(0, Math.ceil((rest - sums[i + 1]!) / factor));
    // Counts whose rest is a multiple of the others' divisor are `period` apart.
    const period =
      divisors[i + 1] === 0
        ? 1
        : divisors[i + 1]! / greatestCommonDivisor(factor, divisors[i + 1]!);
    for (let count = highest, step = 1; count >= lowest; count -= step) {
      if (--steps < 0) return true;
      const left = rest - count * factor;
      if (left === 0) return true;
      if (divisors[i + 1] === 0 || left % divisors[i + 1]! !== 0) continue;
      step = period;
      if (search(i + 1, left)) return true;
    }
    return false;
  };
  return search(0, total);
}
