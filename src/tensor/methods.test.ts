/**
 * The functions' types as the methods of a class, as a tensor has them: within it, where the shape
 * is a type parameter, and for those who use it.
 */
import type { DTypeName } from 'async-cuda/core';
import { expect, expectTypeOf, test } from 'vitest';

import { permute, squeeze, transpose, unsqueeze } from './axes.js';
import { broadcastShapes, broadcastTo } from './broadcasting.js';
import { contiguous } from './layout.js';
import type { Layout } from './layout.js';
import { partition } from './partition.js';
import type { Partition } from './partition.js';
import { reshape } from './reshaping.js';
import type {
  Broadcast,
  BroadcastTo,
  Checked,
  Dims,
  Index,
  Known,
  Permuted,
  Reshaped,
  Shape,
  Sliced,
  Squeezed,
  Tiled,
  Transposed,
  Unsqueezed,
} from './shape-types.js';
import { slice } from './slicing.js';

class Viewed<D extends DTypeName, S extends Shape = Shape> {
  readonly dtype: D;
  readonly layout: Layout<S>;
  constructor(dtype: D, layout: Layout<S>) {
    this.dtype = dtype;
    this.layout = layout;
  }
  reshape<const T extends Shape>(
    shape: T & Checked<Reshaped<S, T>>,
  ): Viewed<D, Known<Reshaped<S, T>>> {
    return new Viewed(this.dtype, reshape<S, T>(this.layout, shape));
  }
  permute<const A extends Shape>(
    axes: A & Checked<Permuted<S, A>>,
  ): Viewed<D, Known<Permuted<S, A>>> {
    return new Viewed(this.dtype, permute<S, A>(this.layout, axes));
  }
  slice<const I extends readonly Index[]>(
    ...indices: I & Checked<Sliced<S, I>>
  ): Viewed<D, Known<Sliced<S, I>>> {
    return new Viewed(this.dtype, slice<S, I>(this.layout, indices));
  }
  transpose(
    this: Viewed<D, S> & Checked<Transposed<S, -2, -1>>,
  ): Viewed<D, Known<Transposed<S, -2, -1>>>;
  transpose<const A extends number, const B extends number>(
    a: A,
    b: B & Checked<Transposed<S, A, B>>,
  ): Viewed<D, Known<Transposed<S, A, B>>>;
  transpose(a = -2, b = -1): unknown {
    return new Viewed(this.dtype, transpose(this.layout as Layout<number[]>, a, b));
  }
  squeeze(): Viewed<D, Known<Squeezed<S, undefined>>>;
  squeeze<const A extends number>(
    axis: A & Checked<Squeezed<S, A>>,
  ): Viewed<D, Known<Squeezed<S, A>>>;
  squeeze(axis?: number): unknown {
    return new Viewed(
      this.dtype,
      axis === undefined
        ? squeeze(this.layout as Layout<number[]>)
        : squeeze(this.layout as Layout<number[]>, axis),
    );
  }
  unsqueeze<const A extends number>(
    axis: A & Checked<Unsqueezed<S, A>>,
  ): Viewed<D, Known<Unsqueezed<S, A>>> {
    return new Viewed(this.dtype, unsqueeze<S, A>(this.layout, axis));
  }
  broadcastTo<const T extends Shape>(
    shape: T & Checked<BroadcastTo<S, T>>,
  ): Viewed<D, Known<BroadcastTo<S, T>>> {
    return new Viewed(this.dtype, broadcastTo<S, T>(this.layout, shape));
  }
  plus<T extends Shape>(
    other: Viewed<D, T> & Checked<Broadcast<S, T>>,
  ): Viewed<D, Known<Broadcast<S, T>>> {
    return new Viewed(
      this.dtype,
      contiguous(
        broadcastShapes<S, T>(this.layout.shape as never, other.layout.shape as never),
      ) as never,
    );
  }
  partition<const T extends Shape>(tile: T & Checked<Tiled<S, T>>): Partition<Dims<S>, Dims<T>> {
    return partition<S, T>(this.layout.shape as never, tile);
  }
}

const t = new Viewed('f32', contiguous([4, 6]));

test('a known shape is assignable to one that is known less, and not the other way', () => {
  expectTypeOf(t).toExtend<Viewed<'f32'>>();
  expectTypeOf(t).toExtend<Viewed<'f32', number[]>>();
  expectTypeOf(t).toExtend<Viewed<'f32', [number, 6]>>();
  expectTypeOf(t).not.toExtend<Viewed<'f32', [4, 7]>>();
  expectTypeOf<Viewed<'f32'>>().not.toExtend<Viewed<'f32', [4, 6]>>();
  const keep = <S extends Shape>(x: Viewed<'f32', S>): Viewed<'f32', S> => x;
  expectTypeOf(keep(t)).toEqualTypeOf<Viewed<'f32', [4, 6]>>();
  const dynamic: Viewed<'f32'> = t;
  expectTypeOf(dynamic.reshape([2, -1])).toEqualTypeOf<Viewed<'f32', [2, number]>>();
});

test('methods know the shapes of what they give, whatever it is assigned to', () => {
  const turned: Viewed<'f32', [6, 4]> = t.transpose();
  expect(turned.layout).toEqual({ shape: [6, 4], strides: [1, 6], offset: 0 });
  const same: Viewed<'f32', [6, 4]> = t.transpose(0, 1);
  expect(same).toEqual(turned);
  const folded: Viewed<'f32', [2, 12]> = t.reshape([2, -1]);
  expect(folded.layout.shape).toEqual([2, 12]);
  const row: Viewed<'f32', [6]> = t.slice(0);
  expect(row.layout.shape).toEqual([6]);
  const block: Viewed<'f32', [4, 2]> = t.slice(null, [1, 3]);
  expect(block.layout).toEqual({ shape: [4, 2], strides: [6, 1], offset: 1 });
  const permuted: Viewed<'f32', [6, 4]> = t.permute([1, 0]);
  expect(permuted.layout.strides).toEqual([1, 6]);
  const squeezed: Viewed<'f32', [4, 6]> = t.unsqueeze(0).squeeze();
  const squeezedOne: Viewed<'f32', [4, 6]> = t.unsqueeze(0).squeeze(0);
  expect(squeezed).toEqual(squeezedOne);
  const stretched: Viewed<'f32', [2, 4, 6]> = t.broadcastTo([2, 4, 6]);
  expect(stretched.layout.strides).toEqual([0, 6, 1]);
  expectTypeOf(t.plus(block.slice(null, 0).unsqueeze(1))).toEqualTypeOf<Viewed<'f32', [4, 6]>>();
  expectTypeOf(t.partition([2, 4]).grid).toEqualTypeOf<readonly [2, 2]>();
});

test('what does not fit does not compile', () => {
  // @ts-expect-error 4 is outside an axis of 4 elements
  expect(() => t.slice(4)).toThrow();
  // @ts-expect-error 24 elements are not 25 elements
  expect(() => t.reshape([5, 5])).toThrow();
  // @ts-expect-error axis 0 of [4, 6] has extent 4, not 1
  expect(() => t.squeeze(0)).toThrow();
  // @ts-expect-error [3] has no axis -2
  expect(() => new Viewed('f32', contiguous([3])).transpose()).toThrow();
  // @ts-expect-error [4, 6] and [4, 2] do not broadcast
  expect(() => t.plus(t.slice(null, [1, 3]))).toThrow();
});
