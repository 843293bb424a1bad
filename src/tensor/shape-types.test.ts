import { describe, expectTypeOf, test } from 'vitest';

import type {
  Broadcast,
  BroadcastTo,
  Dims,
  Numel,
  Permuted,
  Reinterpreted,
  Reshaped,
  ShapeError,
  Shown,
  Sliced,
  Squeezed,
  Tiled,
  Transposed,
  Unsqueezed,
} from './shape-types.js';

type Any = number[];

test('shapes as they are shown, carried and counted', () => {
  expectTypeOf<Shown<[2, number, 4]>>().toEqualTypeOf<'[2, ?, 4]'>();
  expectTypeOf<Shown<[]>>().toEqualTypeOf<'[]'>();
  expectTypeOf<Shown<Any>>().toEqualTypeOf<'[…]'>();
  expectTypeOf<Dims<readonly [2, 3]>>().toEqualTypeOf<[2, 3]>();
  expectTypeOf<Dims<readonly number[]>>().toEqualTypeOf<Any>();
  expectTypeOf<Numel<[32, 128, 768]>>().toEqualTypeOf<3145728>();
  expectTypeOf<Numel<[]>>().toEqualTypeOf<1>();
  expectTypeOf<Numel<[32, number]>>().toEqualTypeOf<number>();
  expectTypeOf<Numel<Any>>().toEqualTypeOf<number>();
});

describe('permute and transpose', () => {
  test('literal axes pick extents, from either end', () => {
    expectTypeOf<Permuted<[2, 3, 4], readonly [2, 0, 1]>>().toEqualTypeOf<[4, 2, 3]>();
    expectTypeOf<Permuted<[2, 3, 4], readonly [-1, -3, -2]>>().toEqualTypeOf<[4, 2, 3]>();
    expectTypeOf<Permuted<[2, number, 4], readonly [1, 2, 0]>>().toEqualTypeOf<[number, 4, 2]>();
    expectTypeOf<Transposed<[2, 3, 4], -2, -1>>().toEqualTypeOf<[2, 4, 3]>();
    expectTypeOf<Transposed<[2, 3, 4], 0, 2>>().toEqualTypeOf<[4, 3, 2]>();
    expectTypeOf<Transposed<[2, 3, 4], 1, 1>>().toEqualTypeOf<[2, 3, 4]>();
  });

  test('what is not known becomes number', () => {
    expectTypeOf<Permuted<[2, 3, 4], number[]>>().toEqualTypeOf<[number, number, number]>();
    expectTypeOf<Permuted<Any, readonly [1, 0]>>().toEqualTypeOf<[number, number]>();
    expectTypeOf<Transposed<Any, -2, -1>>().toEqualTypeOf<Any>();
    expectTypeOf<Transposed<[2, 3], number, 1>>().toEqualTypeOf<[number, number]>();
  });

  test('errors name the axis', () => {
    expectTypeOf<Permuted<[2, 3], readonly [0]>>().toEqualTypeOf<
      ShapeError<'[2, 3] has 2 axes, and 1 were named'>
    >();
    expectTypeOf<Permuted<[2, 3], readonly [0, 2]>>().toEqualTypeOf<
      ShapeError<'[2, 3] has no axis 2'>
    >();
    expectTypeOf<Permuted<[2, 3], readonly [0, -3]>>().toEqualTypeOf<
      ShapeError<'[2, 3] has no axis -3'>
    >();
    expectTypeOf<Permuted<[2, 3], readonly [1, -1]>>().toEqualTypeOf<
      ShapeError<'axis -1 is named twice'>
    >();
    expectTypeOf<Transposed<[2], -2, -1>>().toEqualTypeOf<ShapeError<'[2] has no axis -2'>>();
  });
});

describe('squeeze and unsqueeze', () => {
  test('extents of 1 go and come', () => {
    expectTypeOf<Squeezed<[1, 2, 1, 3], undefined>>().toEqualTypeOf<[2, 3]>();
    expectTypeOf<Squeezed<[1, 2, 1, 3], 2>>().toEqualTypeOf<[1, 2, 3]>();
    expectTypeOf<Squeezed<[1, 2, 1, 3], -2>>().toEqualTypeOf<[1, 2, 3]>();
    expectTypeOf<Squeezed<[number, 2], 0>>().toEqualTypeOf<[2]>();
    expectTypeOf<Squeezed<[number, 2], undefined>>().toEqualTypeOf<Any>();
    expectTypeOf<Unsqueezed<[2, 3], 0>>().toEqualTypeOf<[1, 2, 3]>();
    expectTypeOf<Unsqueezed<[2, 3], -1>>().toEqualTypeOf<[2, 3, 1]>();
    expectTypeOf<Unsqueezed<[2, 3], 2>>().toEqualTypeOf<[2, 3, 1]>();
    expectTypeOf<Unsqueezed<[], 0>>().toEqualTypeOf<[1]>();
    expectTypeOf<Unsqueezed<[2, 3], number>>().toEqualTypeOf<Any>();
  });

  test('errors name the extent or the axis', () => {
    expectTypeOf<Squeezed<[2, 3], 1>>().toEqualTypeOf<
      ShapeError<'axis 1 of [2, 3] has extent 3, not 1'>
    >();
    expectTypeOf<Squeezed<[2, 3], 2>>().toEqualTypeOf<ShapeError<'[2, 3] has no axis 2'>>();
    expectTypeOf<Unsqueezed<[2, 3], 3>>().toEqualTypeOf<ShapeError<'[2, 3, 1] has no axis 3'>>();
  });
});

describe('reshape', () => {
  test('as many elements, and -1 for the rest', () => {
    expectTypeOf<Reshaped<[2, 3, 4], readonly [6, 4]>>().toEqualTypeOf<[6, 4]>();
    expectTypeOf<Reshaped<[2, 3, 4], readonly [-1]>>().toEqualTypeOf<[24]>();
    expectTypeOf<Reshaped<[32, 128, 768], readonly [-1, 768]>>().toEqualTypeOf<[4096, 768]>();
    expectTypeOf<Reshaped<[32, 128, 768], readonly [32, 128, 12, -1]>>().toEqualTypeOf<
      [32, 128, 12, 64]
    >();
    expectTypeOf<Reshaped<[], readonly [1, 1]>>().toEqualTypeOf<[1, 1]>();
    expectTypeOf<Reshaped<[1, 1], readonly []>>().toEqualTypeOf<[]>();
    expectTypeOf<Reshaped<[0, 3], readonly [7, 0]>>().toEqualTypeOf<[7, 0]>();
    expectTypeOf<Reshaped<[0, 3], readonly [-1, 3]>>().toEqualTypeOf<[0, 3]>();
  });

  test('what is not known becomes number', () => {
    expectTypeOf<Reshaped<[number, 3], readonly [3, -1]>>().toEqualTypeOf<[3, number]>();
    expectTypeOf<Reshaped<Any, readonly [3, -1]>>().toEqualTypeOf<[3, number]>();
    expectTypeOf<Reshaped<[2, 3], readonly [number, 3]>>().toEqualTypeOf<[number, 3]>();
    expectTypeOf<Reshaped<[2, 3], Any>>().toEqualTypeOf<Any>();
  });

  type NoMultiple = '6 elements are no multiple of the other extents';
  type AnyExtent = 'beside an extent of 0, -1 could be anything';

  test('errors name both shapes and the reason', () => {
    expectTypeOf<Reshaped<[2, 3], readonly [7]>>().toEqualTypeOf<
      ShapeError<'[2, 3] cannot be reshaped to [7]: 6 elements are not 7 elements'>
    >();
    expectTypeOf<Reshaped<[2, 3], readonly [4, -1]>>().toEqualTypeOf<
      ShapeError<`[2, 3] cannot be reshaped to [4, -1]: ${NoMultiple}`>
    >();
    expectTypeOf<Reshaped<[2, 3], readonly [-1, -1]>>().toEqualTypeOf<
      ShapeError<'[2, 3] cannot be reshaped to [-1, -1]: only one extent can be -1'>
    >();
    expectTypeOf<Reshaped<[0, 3], readonly [0, -1]>>().toEqualTypeOf<
      ShapeError<`[0, 3] cannot be reshaped to [0, -1]: ${AnyExtent}`>
    >();
  });
});

describe('broadcast', () => {
  test('extents of 1 and missing ones stretch', () => {
    expectTypeOf<Broadcast<[2, 3], [3]>>().toEqualTypeOf<[2, 3]>();
    expectTypeOf<Broadcast<[2, 1, 4], [3, 1]>>().toEqualTypeOf<[2, 3, 4]>();
    expectTypeOf<Broadcast<[], [3]>>().toEqualTypeOf<[3]>();
    expectTypeOf<Broadcast<[number, 3], [2, 1]>>().toEqualTypeOf<[2, 3]>();
    expectTypeOf<Broadcast<[number, 3], [1, 3]>>().toEqualTypeOf<[number, 3]>();
    expectTypeOf<Broadcast<[1], [0]>>().toEqualTypeOf<[0]>();
    expectTypeOf<Broadcast<Any, [3]>>().toEqualTypeOf<Any>();
    expectTypeOf<BroadcastTo<[1, 3], readonly [5, 2, 3]>>().toEqualTypeOf<[5, 2, 3]>();
    expectTypeOf<BroadcastTo<[number], readonly [5, 2]>>().toEqualTypeOf<[5, 2]>();
    expectTypeOf<BroadcastTo<Any, readonly [5, 2]>>().toEqualTypeOf<[5, 2]>();
  });

  test('errors name the extents', () => {
    expectTypeOf<Broadcast<[2, 3], [4]>>().toEqualTypeOf<
      ShapeError<'[2, 3] and [4] do not broadcast: 3 against 4'>
    >();
    expectTypeOf<BroadcastTo<[2, 3], readonly [2, 1]>>().toEqualTypeOf<
      ShapeError<'[2, 3] does not broadcast to [2, 1]: 3 against 1'>
    >();
    expectTypeOf<BroadcastTo<[2, 3], readonly [3]>>().toEqualTypeOf<
      ShapeError<'[2, 3] has more axes than [3]'>
    >();
  });
});

describe('slice', () => {
  test('a number drops the axis, a range keeps it, the rest is whole', () => {
    expectTypeOf<Sliced<[4, 5, 6], readonly [0]>>().toEqualTypeOf<[5, 6]>();
    expectTypeOf<Sliced<[4, 5, 6], readonly [null, -1]>>().toEqualTypeOf<[4, 6]>();
    expectTypeOf<
      Sliced<[4, 5, 6], readonly [readonly [1, 3], readonly [2], readonly []]>
    >().toEqualTypeOf<[2, 3, 6]>();
    expectTypeOf<Sliced<[4, 5, 6], readonly ['...', 0]>>().toEqualTypeOf<[4, 5]>();
    expectTypeOf<Sliced<[4, 5, 6], readonly [1, '...', readonly [0, 2]]>>().toEqualTypeOf<[5, 2]>();
    expectTypeOf<Sliced<[4], readonly [2]>>().toEqualTypeOf<[]>();
  });

  test('bounds count from the end and are limited by it', () => {
    expectTypeOf<Sliced<[10], readonly [readonly [-3, null]]>>().toEqualTypeOf<[3]>();
    expectTypeOf<Sliced<[10], readonly [readonly [null, -3]]>>().toEqualTypeOf<[7]>();
    expectTypeOf<Sliced<[10], readonly [readonly [2, 100]]>>().toEqualTypeOf<[8]>();
    expectTypeOf<Sliced<[10], readonly [readonly [-100, 4]]>>().toEqualTypeOf<[4]>();
    expectTypeOf<Sliced<[10], readonly [readonly [7, 3]]>>().toEqualTypeOf<[0]>();
    expectTypeOf<Sliced<[10], readonly [readonly [null, null, -1]]>>().toEqualTypeOf<[10]>();
    expectTypeOf<Sliced<[10], readonly [readonly [0, 10, 3]]>>().toEqualTypeOf<[number]>();
  });

  test('what is not known becomes number', () => {
    expectTypeOf<Sliced<[number, 5], readonly [readonly [1, 3], 0]>>().toEqualTypeOf<[number]>();
    expectTypeOf<Sliced<[10], readonly [readonly [number, 3]]>>().toEqualTypeOf<[number]>();
    expectTypeOf<Sliced<[10, 3], readonly [number]>>().toEqualTypeOf<[3]>();
    expectTypeOf<Sliced<Any, readonly [0]>>().toEqualTypeOf<Any>();
  });

  test('errors name the index', () => {
    expectTypeOf<Sliced<[4, 5], readonly [4]>>().toEqualTypeOf<
      ShapeError<'4 is outside an axis of 4 elements, of [4, 5]'>
    >();
    expectTypeOf<Sliced<[4, 5], readonly [0, -6]>>().toEqualTypeOf<
      ShapeError<'-6 is outside an axis of 5 elements, of [4, 5]'>
    >();
    expectTypeOf<Sliced<[4, 5], readonly [0, -5]>>().toEqualTypeOf<[]>();
    expectTypeOf<Sliced<[4], readonly [0, 0]>>().toEqualTypeOf<
      ShapeError<'more indices than [4] has axes'>
    >();
    expectTypeOf<Sliced<[4], readonly ['...', 0, 0]>>().toEqualTypeOf<
      ShapeError<'more indices than [4] has axes'>
    >();
  });
});

test('reinterpretation changes the last extent', () => {
  expectTypeOf<Reinterpreted<[2, 3], 4, 4>>().toEqualTypeOf<[2, 3]>();
  expectTypeOf<Reinterpreted<[2, 3], 8, 2>>().toEqualTypeOf<[2, 12]>();
  expectTypeOf<Reinterpreted<[2, 12], 2, 8>>().toEqualTypeOf<[2, 3]>();
  expectTypeOf<Reinterpreted<[2, number], 2, 8>>().toEqualTypeOf<[2, number]>();
  expectTypeOf<Reinterpreted<Any, 2, 8>>().toEqualTypeOf<Any>();
  expectTypeOf<Reinterpreted<[2, 3], 4, 8>>().toEqualTypeOf<
    ShapeError<'the last axis of [2, 3] has no whole number of elements of 8 bytes'>
  >();
  expectTypeOf<Reinterpreted<[], 4, 8>>().toEqualTypeOf<
    ShapeError<'a scalar of 4 bytes cannot be read as elements of 8'>
  >();
});

test('tiles cover each axis', () => {
  expectTypeOf<Tiled<[10, 8], readonly [4, 4]>>().toEqualTypeOf<[3, 2]>();
  expectTypeOf<Tiled<[number, 8], readonly [4, 16]>>().toEqualTypeOf<[number, 1]>();
  expectTypeOf<Tiled<Any, readonly [4, 16]>>().toEqualTypeOf<[number, number]>();
  expectTypeOf<Tiled<[10], readonly [4, 4]>>().toEqualTypeOf<
    ShapeError<'tiles of 2 axes, [4, 4], do not cover [10], which has 1'>
  >();
});
