import * as fc from '../../test/fast-check.js';
import { expect, test } from 'vitest';

import { permute } from './axes.js';
import { broadcastTo } from './broadcasting.js';
import { coalesce, coalesceTogether } from './coalescing.js';
import { contiguous, elements, strided } from './layout.js';
import type { Layout } from './layout.js';
import { layouts, shapes } from './naive-view.test-support.js';

/** Whether no two axes that follow each other could be one, and none is of one element. */
function isMinimal(together: readonly Layout[]): boolean {
  const { shape } = together[0]!;
  return shape.every(
    (extent, axis) =>
      extent !== 1 &&
      (axis === 0 ||
        !together.every(({ strides }) => strides[axis - 1] === strides[axis]! * extent)),
  );
}

test('keeps the elements and their order in the fewest axes', { tags: 'random' }, () => {
  fc.assert(
    fc.property(layouts({ maxStride: 6 }), (layout) => {
      const fewer = coalesce(layout);
      expect([...elements(fewer)]).toEqual([...elements(layout)]);
      expect(isMinimal([fewer])).toBe(true);
    }),
    { numRuns: 1000 },
  );
});

test('what is contiguous becomes one axis', () => {
  expect(coalesce(contiguous([2, 3, 4], 5))).toEqual({ shape: [24], strides: [1], offset: 5 });
  expect(coalesce(contiguous([1, 1]))).toEqual({ shape: [], strides: [], offset: 0 });
  expect(coalesce(contiguous([2, 0, 4]))).toEqual({ shape: [0], strides: [1], offset: 0 });
  expect(coalesce(strided([2, 3], [10, 1]))).toEqual({
    shape: [2, 3],
    strides: [10, 1],
    offset: 0,
  });
});

test('layouts coalesced together keep their pairs', { tags: 'random' }, () => {
  const pairs = shapes().chain((shape) => {
    const strides = fc.array(fc.constantFrom(0, 1, 2, 3, 4, 6, 12), {
      minLength: shape.length,
      maxLength: shape.length,
    });
    return fc.tuple(fc.constant(shape), strides, strides);
  });
  fc.assert(
    fc.property(pairs, fc.boolean(), ([shape, first, second], anyOrder) => {
      const before = [contiguous(shape), strided(shape, first), strided(shape, second)];
      const after = coalesceTogether(before, { anyOrder });
      const zipped = (list: readonly Layout[]): string[] => {
        const [a, b, c] = list.map((layout) => [...elements(layout)]);
        return a!.map((element, i) => `${element} ${b![i]} ${c![i]}`);
      };
      const [was, is] = [zipped(before), zipped(after)];
      expect(anyOrder ? is.sort() : is).toEqual(anyOrder ? was.sort() : was);
      expect(isMinimal(after)).toBe(true);
    }),
    { numRuns: 1000 },
  );
});

test('in any order, permuted tensors are walked as they lie', () => {
  const permuted = permute(contiguous([2, 3, 4]), [2, 0, 1]);
  expect(coalesceTogether([permuted, permuted], { anyOrder: true })).toEqual([
    contiguous([24]),
    contiguous([24]),
  ]);
  const row = broadcastTo(contiguous([4]), [3, 4]);
  expect(coalesceTogether([row, contiguous([3, 4])], { anyOrder: true })[0]).toEqual({
    shape: [4, 3],
    strides: [1, 0],
    offset: 0,
  });
});

test('refuses layouts of different shapes', () => {
  expect(coalesceTogether([])).toEqual([]);
  expect(() => coalesceTogether([contiguous([2]), contiguous([3])])).toThrow(
    'layouts[1]: expected the shape of the first, [2], got [ 3 ]. Broadcast them to one shape.',
  );
});
