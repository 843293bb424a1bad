import * as fc from '../../test/fast-check.js';
import { describe, expect, expectTypeOf, test } from 'vitest';

import { permute, squeeze, transpose, unsqueeze } from './axes.js';
import { broadcastTo } from './broadcasting.js';
import {
  contiguous,
  elementAt,
  elements,
  isContiguous,
  sameLayout,
  span,
  strided,
} from './layout.js';
import type { Layout } from './layout.js';
import {
  elementOf,
  indices,
  layouts,
  naive,
  pythonRange,
  shapes,
  taken,
} from './naive-view.test-support.js';
import type { NaiveView } from './naive-view.test-support.js';
import { tryReshape } from './reshaping.js';
import { numel } from './shape.js';
import type { Range } from './shape-types.js';
import { slice } from './slicing.js';

describe('making layouts', () => {
  test('a contiguous one counts up', { tags: 'random' }, () => {
    fc.assert(
      fc.property(shapes(), fc.nat(9), (shape, offset) => {
        const layout = contiguous(shape, offset);
        expect([...elements(layout)]).toEqual(indices(shape).map((_, i) => offset + i));
        expect(isContiguous(layout)).toBe(true);
        expect(numel(shape)).toBe(indices(shape).length);
      }),
    );
  });

  test('extents are kept in the type', () => {
    expectTypeOf(contiguous([2, 3])).toEqualTypeOf<Layout<[2, 3]>>();
    expectTypeOf(contiguous([2, 3] as number[])).toEqualTypeOf<Layout<number[]>>();
    expectTypeOf(contiguous([2, 3])).toExtend<Layout>();
    expectTypeOf(numel([2, 3])).toEqualTypeOf<6>();
  });

  test('is immutable', () => {
    const layout = contiguous([2, 3]);
    expect(
      Object.isFrozen(layout) && Object.isFrozen(layout.shape) && Object.isFrozen(layout.strides),
    ).toBe(true);
  });

  test.each([
    [() => contiguous(3 as never), 'shape: expected an array of extents, got 3. Write [3].'],
    [() => contiguous([2, -1]), 'shape[1]: expected a whole number of at least 0, got -1.'],
    [() => contiguous([2, 1.5]), 'shape[1]: expected a whole number of at least 0, got 1.5.'],
    [
      () => contiguous([2 ** 30, 2 ** 30]),
      'shape: expected a shape of at most 9007199254740991 elements, got [ 1073741824, ' +
        '1073741824 ].',
    ],
    [
      () => contiguous([2], -1),
      'offset: expected a whole number of at least 0 (elements), got -1.',
    ],
    [
      () => strided([2, 3], [3]),
      'strides: expected 2 strides, one for each axis of [2, 3], got [ 3 ].',
    ],
    [() => strided([2, 3], [3, 0.5]), 'strides[1]: expected a whole number (elements), got 0.5.'],
    [
      () => strided([3], [-1], 1),
      'offset: expected at least 2, so that no element lies before the buffer, got 1.',
    ],
    [
      () => strided([3], [2 ** 52], 2 ** 52),
      'strides: expected elements that lie below 9007199254740991, got [ 4503599627370496 ].',
    ],
  ])('refuses values that are no layouts: %#', (call, message) => {
    expect(call).toThrow(message);
  });
});

test('the span is the lowest and one past the highest element', { tags: 'random' }, () => {
  fc.assert(
    fc.property(layouts(), (layout) => {
      const all = [...elements(layout)];
      const { start, end } = span(layout);
      if (all.length === 0) expect(end - start).toBe(0);
      else expect([start, end]).toEqual([Math.min(...all), Math.max(...all) + 1]);
    }),
  );
});

test('what counts up by one is contiguous, and nothing else', { tags: 'random' }, () => {
  fc.assert(
    fc.property(layouts({ maxStride: 4, maxExtent: 3 }), (layout) => {
      expect(isContiguous(layout)).toBe(
        [...elements(layout)].every((element, i) => element === layout.offset + i),
      );
    }),
    { numRuns: 1000 },
  );
});

test('an index finds its element, from either end', { tags: 'random' }, () => {
  fc.assert(
    fc.property(layouts({ minExtent: 1 }), (layout) => {
      const view = naive(layout);
      for (const index of indices(layout.shape)) {
        expect(elementAt(layout, index)).toBe(elementOf(view, index));
        expect(
          elementAt(
            layout,
            index.map((i, axis) => i - layout.shape[axis]!),
          ),
        ).toBe(elementOf(view, index));
      }
    }),
  );
  expect(() => elementAt(contiguous([2, 3]), [1])).toThrow(
    'index: expected 2 numbers, one for each axis of [2, 3], got [ 1 ].',
  );
  expect(() => elementAt(contiguous([2, 3]), [1, 3])).toThrow(
    'index[1]: expected an index from -3 to 2, got 3.',
  );
});

test('layouts are the same where every index has the same element', { tags: 'random' }, () => {
  fc.assert(
    fc.property(
      layouts({ maxStride: 2, maxExtent: 2, maxRank: 2 }),
      layouts({ maxStride: 2, maxExtent: 2, maxRank: 2 }),
      (a, b) => {
        const same = JSON.stringify(naive(a)) === JSON.stringify(naive(b));
        expect(sameLayout(a, b)).toBe(same);
        expect(sameLayout(a, a)).toBe(true);
      },
    ),
    { numRuns: 2000 },
  );
});

/** A view made of another, and of its model. */
type Step = (layout: Layout, view: NaiveView) => [Layout, NaiveView];

const steps: fc.Arbitrary<Step> = fc.oneof(
  fc
    .record({
      axis: fc.nat(),
      start: fc.option(fc.integer({ min: -6, max: 6 })),
      stop: fc.option(fc.integer({ min: -6, max: 6 })),
      step: fc.constantFrom(-3, -2, -1, 1, 2, 3),
    })
    .map(({ axis, start, stop, step }): Step => (layout, view) => {
      const rank = layout.shape.length;
      if (rank === 0) return [layout, view];
      const range: Range = [start, stop, step];
      const kept = pythonRange(view.shape[axis % rank]!, range);
      const shape = view.shape.map((extent, i) => (i === axis % rank ? kept.length : extent));
      return [
        slice<number[], (Range | null)[]>(
          layout as Layout<number[]>,
          layout.shape.map((_, i) => (i === axis % rank ? range : null)),
        ),
        taken(view, shape, (index) => index.map((at, i) => (i === axis % rank ? kept[at]! : at))),
      ];
    }),
  fc.record({ axis: fc.nat(), at: fc.nat() }).map(({ axis, at }): Step => (layout, view) => {
    const rank = layout.shape.length;
    if (rank === 0 || view.shape[axis % rank] === 0) return [layout, view];
    const position = at % view.shape[axis % rank]!;
    const before = new Array<null>(axis % rank).fill(null);
    return [
      slice<number[], (number | null)[]>(layout as Layout<number[]>, [...before, position]),
      taken(
        view,
        view.shape.filter((_, i) => i !== axis % rank),
        (index) => [...index.slice(0, axis % rank), position, ...index.slice(axis % rank)],
      ),
    ];
  }),
  fc.array(fc.nat(), { minLength: 8, maxLength: 8 }).map((keys): Step => (layout, view) => {
    const order = layout.shape.map((_, axis) => axis).sort((a, b) => keys[a % 8]! - keys[b % 8]!);
    return [
      permute<number[], number[]>(layout as Layout<number[]>, order),
      taken(
        view,
        order.map((axis) => view.shape[axis]!),
        (index) => order.map((_, axis) => index[order.indexOf(axis)]!),
      ),
    ];
  }),
  fc.nat().map((at): Step => (layout, view) => {
    const axis = at % (layout.shape.length + 1);
    return [
      unsqueeze<number[], number>(layout as Layout<number[]>, axis),
      taken(view, [...view.shape.slice(0, axis), 1, ...view.shape.slice(axis)], (index) =>
        index.filter((_, i) => i !== axis),
      ),
    ];
  }),
  fc.constant<Step>((layout, view) => [
    squeeze(layout as Layout<number[]>) as Layout,
    { ...view, shape: view.shape.filter((extent) => extent !== 1) },
  ]),
  fc.array(fc.integer({ min: 1, max: 3 }), { maxLength: 2 }).map((more): Step => (layout, view) => {
    if (numel(layout.shape) > 100 || layout.shape.length > 5) return [layout, view];
    const shape = [...more, ...view.shape.map((extent) => (extent === 1 ? 2 : extent))];
    return [
      broadcastTo<number[], number[]>(layout as Layout<number[]>, shape),
      taken(view, shape, (index) =>
        index.slice(more.length).map((at, axis) => (view.shape[axis] === 1 ? 0 : at)),
      ),
    ];
  }),
  fc.nat().map((at): Step => (layout, view) => {
    const total = view.elements.length;
    if (total === 0) return [layout, view];
    const divisors = Array.from({ length: total }, (_, i) => i + 1).filter((n) => total % n === 0);
    const reshaped = tryReshape<number[], number[]>(layout as Layout<number[]>, [
      divisors[at % divisors.length]!,
      -1,
    ]);
    return reshaped === undefined
      ? [layout, view]
      : [reshaped, { shape: [...reshaped.shape], elements: view.elements }];
  }),
);

test('views of views of views have the elements that the model says', { tags: 'random' }, () => {
  fc.assert(
    fc.property(shapes(), fc.array(steps, { maxLength: 8 }), (shape, chain) => {
      let layout: Layout = contiguous(shape, 3);
      let view = naive(layout);
      for (const step of chain) {
        [layout, view] = step(layout, view);
        expect(naive(layout)).toEqual(view);
      }
    }),
    { numRuns: 500 },
  );
});

test('transpose exchanges the last two axes, or those that are named', () => {
  const layout = contiguous([2, 3, 4]);
  expectTypeOf(transpose(layout)).toEqualTypeOf<Layout<[2, 4, 3]>>();
  expect(transpose(layout)).toEqual({ shape: [2, 4, 3], strides: [12, 1, 4], offset: 0 });
  expectTypeOf(transpose(layout, 0, 2)).toEqualTypeOf<Layout<[4, 3, 2]>>();
  expect(transpose(layout, 0, 2)).toEqual({ shape: [4, 3, 2], strides: [1, 4, 12], offset: 0 });
  // @ts-expect-error [2] has no axis -2
  expect(() => transpose(contiguous([2]))).toThrow('a: expected an axis from -1 to 0, got -2.');
});
