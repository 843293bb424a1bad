import { expect, expectTypeOf, test } from 'vitest';

import { permute, squeeze, unsqueeze } from './axes.js';
import { contiguous, isContiguous } from './layout.js';
import type { Layout } from './layout.js';

const layout = contiguous([2, 1, 3]);

test('permute gives the axes in the order named', () => {
  const permuted = permute(layout, [2, 0, 1]);
  expectTypeOf(permuted).toEqualTypeOf<Layout<[3, 2, 1]>>();
  expect(permuted).toEqual({ shape: [3, 2, 1], strides: [1, 3, 3], offset: 0 });
  expect(permute(layout, [-1, -3, -2])).toEqual(permuted);
});

test('permute refuses axes that are not each axis once', () => {
  // @ts-expect-error [2, 1, 3] has 3 axes, and 2 were named
  expect(() => permute(layout, [0, 1])).toThrow(
    'axes: expected 3 axes, each axis of [2, 1, 3] once, got [ 0, 1 ].',
  );
  // @ts-expect-error axis 0 is named twice
  expect(() => permute(layout, [0, 0, 1])).toThrow(
    'axes: expected each axis of [2, 1, 3] once, got [ 0, 0, 1 ].',
  );
  // @ts-expect-error [2, 1, 3] has no axis 3
  expect(() => permute(layout, [0, 1, 3])).toThrow(
    'axes[2]: expected an axis from -3 to 2, got 3.',
  );
});

test('squeeze drops axes of extent 1', () => {
  expectTypeOf(squeeze(layout)).toEqualTypeOf<Layout<[2, 3]>>();
  expect(squeeze(layout)).toEqual({ shape: [2, 3], strides: [3, 1], offset: 0 });
  expectTypeOf(squeeze(layout, 1)).toEqualTypeOf<Layout<[2, 3]>>();
  expect(squeeze(layout, -2)).toEqual(squeeze(layout));
  // @ts-expect-error axis 0 of [2, 1, 3] has extent 2, not 1
  expect(() => squeeze(layout, 0)).toThrow(
    'axis: expected an axis of extent 1, and axis 0 of [2, 1, 3] has 2, got 0.',
  );
});

test('unsqueeze adds one where it is named, and what was contiguous stays so', () => {
  expectTypeOf(unsqueeze(layout, 0)).toEqualTypeOf<Layout<[1, 2, 1, 3]>>();
  for (const axis of [0, 1, 2, 3, -1] as const) {
    const more = unsqueeze<number[], number>(contiguous([2, 1, 3] as number[]), axis);
    expect(more.shape[axis < 0 ? 4 + axis : axis]).toBe(1);
    expect(more.strides).toEqual(contiguous(more.shape).strides);
    expect(isContiguous(more)).toBe(true);
  }
  // @ts-expect-error [2, 1, 3, 1] has no axis 4
  expect(() => unsqueeze(layout, 4)).toThrow('axis: expected an axis from -4 to 3, got 4.');
});
