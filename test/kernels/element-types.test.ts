/**
 * Types of element and tile kernels: bodies are typed from the signature, calls by name. The type
 * checker is the test.
 */
import {
  bool,
  elementKernel,
  f16,
  f32,
  i64,
  inout,
  input,
  output,
  struct,
  tileKernel,
} from 'async-cuda';
import type { Device, DeviceOp, Shape, Tensor } from 'async-cuda';
import type { LoadedTile, StoredTile, TileStep } from 'async-cuda/kernels';
import type { Closing } from 'async-cuda/tensor';
import { expect, expectTypeOf, test } from 'vitest';

const Range = struct({ low: f32, open: bool });

const saxpy = elementKernel(
  'saxpy',
  { y: inout(f32), a: f32, x: input(f32) },
  ({ y, a, x }) => a * x + y,
);

const several = elementKernel(
  'several',
  { out: output(f16), mask: output(bool), x: input(f32), on: input(bool), range: Range, wide: i64 },
  (elements, gpu) => {
    expectTypeOf(elements).toEqualTypeOf<{
      readonly x: number;
      readonly on: boolean;
      readonly range: { readonly low: number; readonly open: boolean };
      readonly wide: number;
    }>();
    expectTypeOf(gpu.index).toEqualTypeOf<number>();
    expectTypeOf(gpu.coordinates[0]).toEqualTypeOf<number | undefined>();
    expectTypeOf(gpu.LIMIT).toEqualTypeOf<number>();
    // @ts-expect-error: there are no blocks
    void gpu.blockIdx;
    // @ts-expect-error: a body has no shared memory
    void gpu.shared;
    // @ts-expect-error: an output is not read
    void elements.out;
    return { out: gpu.clamp(elements.x, 0, gpu.LIMIT), mask: elements.on };
  },
  { uses: { LIMIT: 3 } },
);

const softmax = tileKernel(
  'softmax',
  { y: output(f32), z: inout(f32), x: input(f32), on: input(bool), a: f32 },
  ({ y, z, x, on, a }, tile) => {
    expectTypeOf(y).toEqualTypeOf<StoredTile<number, 'columns'>>();
    expectTypeOf(z).toEqualTypeOf<LoadedTile<number, 'columns'> & StoredTile<number, 'columns'>>();
    for (const part of tile.over('columns'))
      expectTypeOf(part).toEqualTypeOf<TileStep<'columns'>>();
    // @ts-expect-error: each block has one tile along the rows
    tile.over('rows');
    expectTypeOf(on.load()).toEqualTypeOf<boolean>();
    expectTypeOf(a).toEqualTypeOf<number>();
    expectTypeOf(tile.sum(x.load(), 1)).toEqualTypeOf<number>();
    // @ts-expect-error: an input is not written
    x.store(1);
    // @ts-expect-error: an output is not read
    y.load();
    // @ts-expect-error: a tile has two axes
    tile.sum(x.load(), 2);
    // @ts-expect-error: there are no indices
    void y[0];
  },
  { tile: [1, null] },
);

const product = tileKernel(
  'product',
  { c: output(f32), a: input(f32), b: input(f32), scale: f32 },
  ({ c, a, b, scale }, tile) => {
    let sum = 0;
    for (const part of tile.over('k')) {
      expectTypeOf(part).toEqualTypeOf<TileStep<'k'>>();
      sum = tile.dot(a.load(part), b.load(part), sum);
      // @ts-expect-error: a step is no number
      sum = part;
      // @ts-expect-error: a number is not a step
      a.load(0);
    }
    // @ts-expect-error: each block has one tile along m
    tile.over('m');
    c.store(tile.transpose(sum) * scale);
  },
  {
    axes: { c: ['m', 'n'], a: ['m', 'k'], b: ['k', 'n'] },
    tile: { m: 64, n: 64, k: { walk: 32 } },
    uses: { FACTOR: 2 },
  },
);

void (() =>
  tileKernel('p', { c: output(f32), a: input(f32) }, () => undefined, {
    // @ts-expect-error: named axes have to be given to every tensor
    axes: { c: ['m'] },
    tile: { m: 4 },
  }));
void (() =>
  // @ts-expect-error: a reduction names axes that the tile has
  tileKernel('p', { c: output(f32) }, () => undefined, { axes: { c: ['k'] }, tile: { m: 4 } }));
// @ts-expect-error: every axis has a length
void (() => product.ptx({ capability: [9, 0] }, { m: 4, n: 4 }));
// @ts-expect-error: another tile has the same axes
void (() => product.with({ tile: { m: 4, n: 4 } }));

// Never called: the type checker reads it.
function declared(
  device: Device,
  x: Tensor<'f32', [4]>,
  half: Tensor<'f16', [4]>,
  on: Tensor<'bool', [4]>,
): void {
  expectTypeOf(saxpy({ y: x, a: 2, x: device.ones(f32, [4]) })).toEqualTypeOf<
    DeviceOp<{ y: Tensor<'f32', [4]>; a: number; x: Tensor<'f32', [4]> } & Closing>
  >();
  const op = several({ x, on, range: { low: 1, open: true }, wide: 3n });
  expectTypeOf(op.map(({ out }) => out)).toEqualTypeOf<DeviceOp<Tensor<'f16', Shape>>>();
  expectTypeOf(op.map(({ mask }) => mask)).toEqualTypeOf<DeviceOp<Tensor<'bool', Shape>>>();
  expectTypeOf(
    several({ out: half, x, on, range: { low: 1, open: true }, wide: 3 }).map(({ out }) => out),
  ).toEqualTypeOf<DeviceOp<Tensor<'f16', [4]>>>();
  expectTypeOf(softmax({ z: x, x, on, a: 1 }).map(({ y }) => y)).toEqualTypeOf<
    DeviceOp<Tensor<'f32', Shape>>
  >();
  expectTypeOf(several.with({ uses: { LIMIT: 4 } })).toEqualTypeOf<typeof several>();
  // @ts-expect-error: an inout is given
  saxpy({ a: 2, x });
  // @ts-expect-error: the tensor has another dtype
  saxpy({ y: half, a: 2, x });
  // @ts-expect-error: there is no such parameter
  saxpy({ y: x, a: 2, x, z: x });
  // @ts-expect-error: there is no such constant
  several.with({ uses: { LIMITS: 4 } });
  // @ts-expect-error: a body of several outputs returns all of them
  elementKernel('k', { a: output(f32), b: output(f32), x: input(f32) }, ({ x: v }) => ({ a: v }));
  tileKernel(
    'k',
    { a: output(f32) },
    () => {
      /* nothing */
    },
    // @ts-expect-error: a tile has rows and columns
    { tile: [4] },
  );
}

test('types of element and tile kernels', () => {
  expect(declared).toBeTypeOf('function');
  expect(String(saxpy)).toBe('element kernel saxpy({ y: inout(f32), a: f32, x: input(f32) })');
  expect(String(softmax)).toContain('tile kernel softmax({ y: output(f32), z: inout(f32)');
});
