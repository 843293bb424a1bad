import { f16, f32, f64, i32, u8 } from 'async-cuda/core';
import type { DType } from 'async-cuda/core';
import * as fc from '../../test/fast-check.js';
import { expect, expectTypeOf, test } from 'vitest';

import { contiguous, elements, strided } from './layout.js';
import type { Layout } from './layout.js';
import { layouts } from './naive-view.test-support.js';
import { inBytes, reinterpret } from './reinterpreting.js';
import { scaled } from '../../test/random-runs.js';

test('of the same size it is the same layout', () => {
  const layout = strided([2, 3], [1, 2]);
  expect(reinterpret(layout, f32, i32)).toBe(layout);
});

test('smaller elements lengthen the last axis, larger ones shorten it', () => {
  const smaller = reinterpret(contiguous([2, 3], 1), f32, f16);
  expectTypeOf(smaller).toEqualTypeOf<Layout<[2, 6]>>();
  expect(smaller).toEqual({ shape: [2, 6], strides: [6, 1], offset: 2 });
  const larger = reinterpret(contiguous([2, 8], 4), f16, f64);
  expectTypeOf(larger).toEqualTypeOf<Layout<[2, 2]>>();
  expect(larger).toEqual({ shape: [2, 2], strides: [2, 1], offset: 1 });
  // Rows of one need no stride that divides.
  expect(reinterpret(strided([1, 2], [7, 1]), f16, f32)).toMatchObject({
    shape: [1, 1],
    offset: 0,
  });
});

const dtypes = fc.constantFrom<DType>(u8, f16, f32, f64);

test('the bytes stay the same bytes in the same order', { tags: 'random' }, () => {
  let views = 0;
  const candidates = layouts({ maxStride: 16, maxExtent: 8, maxRank: 3 }).chain((layout) =>
    // The last stride 1 more often than chance has it: there is no other view.
    fc.boolean().map((dense) => {
      if (!dense || layout.shape.length === 0) return layout;
      const strides = layout.strides.map((stride, axis) =>
        axis === layout.shape.length - 1 ? 1 : Math.abs(stride) * 4,
      );
      return strided([...layout.shape], strides, layout.offset * 4);
    }),
  );
  fc.assert(
    fc.property(candidates, dtypes, dtypes, (layout, from, to) => {
      let result: Layout;
      try {
        result = reinterpret<number[], never, never>(
          layout as Layout<number[]>,
          from as never,
          to as never,
        );
      } catch (error) {
        expect(error).toMatchObject({ name: 'CudaArgumentError', argument: 'to' });
        return;
      }
      views++;
      expect([...elements(inBytes(result, to))]).toEqual([...elements(inBytes(layout, from))]);
    }),
    { numRuns: 2000 },
  );
  expect(views).toBeGreaterThan(scaled(300));
});

test('errors name the part that is not aligned', () => {
  // @ts-expect-error a scalar of 4 bytes cannot be read as elements of 8
  expect(() => reinterpret(contiguous([]), f32, f64)).toThrow(
    'to: expected a dtype of 4 bytes, since a scalar has no axis to hold more or fewer ' +
      "elements, got 'f64'. Reshape it to [1].",
  );
  // @ts-expect-error the last axis of [3] has no whole number of elements of 8 bytes
  expect(() => reinterpret(contiguous([3]), f32, f64)).toThrow(
    'to: expected a dtype whose 8 bytes divide the last axis of [3], of 3 elements of 4, got ' +
      "'f64'.",
  );
  expect(() => reinterpret(contiguous([4], 1), f32, f64)).toThrow(
    'to: expected a dtype that is aligned at element 1, byte 4, where the tensor begins',
  );
  expect(() => reinterpret(strided([2, 4], [5, 1]), f32, f64)).toThrow(
    'to: expected a dtype that is aligned in every row: the stride of axis 0 is 5 elements ' +
      'of 4 bytes',
  );
  expect(() => reinterpret(strided([4], [2]), f32, f64)).toThrow(
    'to: expected a dtype of 4 bytes, since the last axis of [4] has stride 2, not 1',
  );
  expect(() => reinterpret(strided([4], [-1], 3), f32, u8)).toThrow(
    'since the last axis of [4] has stride -1, not 1',
  );
});
