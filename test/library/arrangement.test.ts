/** Tensors joined, cut, turned and repeated, compared with indices in JavaScript. */
import { CudaOutOfMemoryError, Device, complex64, f32, f64, i32, i64, i8, u8 } from 'async-cuda';
import type { AnyTensor, DeviceOp } from 'async-cuda';
import * as library from 'async-cuda/library';
import { beforeAll, describe, expect, test } from 'vitest';

import { onDevice, range } from '../core/test-device.js';
import * as fc from '../fast-check.js';

/** An array on the host, in row-major order. */
interface Host {
  readonly shape: readonly number[];
  readonly values: readonly number[];
}

const sizeOf = (shape: readonly number[]): number => shape.reduce((size, each) => size * each, 1);
const indexOf = (at: number, shape: readonly number[]): number[] => {
  const index = new Array<number>(shape.length).fill(0);
  for (let axis = shape.length - 1, rest = at; axis >= 0; axis--) {
    index[axis] = rest % shape[axis]!;
    rest = Math.floor(rest / shape[axis]!);
  }
  return index;
};
const placeOf = (index: readonly number[], shape: readonly number[]): number =>
  index.reduce((at, each, axis) => at * shape[axis]! + each, 0);
const make = (shape: readonly number[], value: (index: number[]) => number): Host => ({
  shape,
  values: range(sizeOf(shape)).map((at) => value(indexOf(at, shape))),
});
const get = ({ shape, values }: Host, index: readonly number[]): number =>
  values[placeOf(index, shape)]!;
const counted = (shape: readonly number[]): Host => ({ shape, values: range(sizeOf(shape)) });
const modulo = (a: number, b: number): number => ((a % b) + b) % b;

const shapes = fc.array(fc.nat({ max: 4 }), { minLength: 1, maxLength: 4 });
/** A shape, and one of its axes, which may count from the end. */
const withAxis = shapes.chain((shape) =>
  fc.tuple(fc.constant(shape), fc.integer({ min: -shape.length, max: shape.length - 1 })),
);

onDevice('Arrangement', (host) => {
  let device: Device;
  beforeAll(() => {
    device = Device.of(host.device);
  });
  const up = ({ shape, values }: Host): DeviceOp<AnyTensor> =>
    device.tensor(i32, [...values], [...shape]) as never;
  /** The operand as it is, or a view of a larger tensor. */
  const upAsView = async ({ shape, values }: Host): Promise<[AnyTensor, AnyTensor]> => {
    const whole = (await device.zeros(
      i32,
      shape.map((extent) => 2 * extent + 1),
    )) as unknown as AnyTensor;
    const view = whole.slice(
      ...(shape.map((extent) => [1, 1 + 2 * extent, 2]) as never[]),
    ) as unknown as AnyTensor;
    if (values.length > 0) await view.write(Int32Array.from(values) as never);
    return [whole, view];
  };
  const same = async (op: unknown, wanted: Host): Promise<void> => {
    using made = await (op as DeviceOp<AnyTensor>);
    expect(made.shape).toEqual([...wanted.shape]);
    expect(made.isContiguous).toBe(true);
    expect(Array.from((await made.read()) as Int32Array)).toEqual(wanted.values);
  };

  describe('of random shapes', () => {
    const check = <T>(arbitrary: fc.Arbitrary<T>, body: (value: T) => Promise<void>) =>
      fc.assert(fc.asyncProperty(arbitrary, body), { numRuns: 60 });

    test('concat and unstack', { tags: 'random' }, () =>
      check(
        fc.tuple(withAxis, fc.array(fc.nat({ max: 3 }), { maxLength: 3 })),
        async ([[shape, axis], more]) => {
          const at = modulo(axis, shape.length);
          const parts = [shape[at]!, ...more].map((extent, part) =>
            make(
              shape.map((each, i) => (i === at ? extent : each)),
              (index) =>
                1000 * part +
                placeOf(
                  index,
                  shape.map(() => 5),
                ),
            ),
          );
          const owner = parts.flatMap((part, number) =>
            range(part.shape[at]!).map((index) => ({ number, index })),
          );
          await same(
            library.concat(parts.map(up) as never, { axis }),
            make(
              shape.map((each, i) => (i === at ? owner.length : each)),
              (index) => {
                const { number, index: within } = owner[index[at]!]!;
                return get(
                  parts[number]!,
                  index.map((each, i) => (i === at ? within : each)),
                );
              },
            ),
          );
          const x = counted(shape);
          const pieces = (await library.unstack(up(x), { axis })) as unknown as AnyTensor[];
          expect(pieces).toHaveLength(shape[at]!);
          for (const [index, piece] of pieces.entries()) {
            await same(
              piece.dup(),
              make(
                shape.filter((_, i) => i !== at),
                (rest) => get(x, [...rest.slice(0, at), index, ...rest.slice(at)]),
              ),
            );
            piece.close();
          }
        },
      ),
    );

    test('stack', { tags: 'random' }, () =>
      check(
        fc.tuple(shapes, fc.integer({ min: 1, max: 3 }), fc.nat({ max: 8 })),
        async ([shape, count, given]) => {
          const at = given % (shape.length + 1);
          const parts = range(count).map((part) =>
            make(shape, (index) => 100 * part + placeOf(index, shape)),
          );
          await same(
            library.stack(parts.map(up) as never, { axis: given % 2 ? at : at - shape.length - 1 }),
            make([...shape.slice(0, at), count, ...shape.slice(at)], (index) =>
              get(
                parts[index[at]!]!,
                index.filter((_, i) => i !== at),
              ),
            ),
          );
        },
      ),
    );

    test('flip, and roll along several axes', { tags: 'random' }, () =>
      check(
        fc.tuple(
          withAxis,
          fc.array(fc.integer({ min: -9, max: 9 }), { minLength: 4, maxLength: 4 }),
        ),
        async ([[shape, axis], shifts]) => {
          const at = modulo(axis, shape.length);
          const x = counted(shape);
          const [whole, view] = await upAsView(x);
          await same(
            library.flip(view, { axis }),
            make(shape, (index) =>
              get(
                x,
                index.map((each, i) => (i === at ? shape[i]! - 1 - each : each)),
              ),
            ),
          );
          await same(
            library.flip(view),
            make(shape, (index) =>
              get(
                x,
                index.map((each, i) => shape[i]! - 1 - each),
              ),
            ),
          );
          const axes = range(shape.length);
          await same(
            library.roll(view, shifts.slice(0, shape.length), { axis: axes }),
            make(shape, (index) =>
              get(
                x,
                index.map((each, i) => modulo(each - shifts[i]!, shape[i]!)),
              ),
            ),
          );
          await same(library.roll(view, shifts[0]!), {
            shape,
            values: x.values.map((_, i) => x.values[modulo(i - shifts[0]!, x.values.length)]!),
          });
          whole.close();
        },
      ),
    );

    test('moveaxis', { tags: 'random' }, () =>
      check(fc.tuple(shapes, fc.nat(), fc.nat()), async ([shape, a, b]) => {
        const [from, to] = [a % shape.length, b % shape.length];
        const order = range(shape.length).filter((each) => each !== from);
        order.splice(to, 0, from);
        const x = counted(shape);
        await same(
          library.moveaxis(up(x), from - shape.length, to),
          make(
            order.map((each) => shape[each]!),
            (index) => {
              const source: number[] = [];
              order.forEach((each, i) => (source[each] = index[i]!));
              return get(x, source);
            },
          ),
        );
      }),
    );

    test('repeat', { tags: 'random' }, () =>
      check(
        fc.tuple(withAxis, fc.array(fc.nat({ max: 3 }), { minLength: 4, maxLength: 4 })),
        async ([[shape, axis], counts]) => {
          const at = modulo(axis, shape.length);
          const x = counted(shape);
          const [whole, view] = await upAsView(x);
          const list = counts.slice(0, shape[at]);
          const sources = list.flatMap((count, index) => range(count).map(() => index));
          const wanted = (from: readonly number[]): Host =>
            make(
              shape.map((each, i) => (i === at ? from.length : each)),
              (index) =>
                get(
                  x,
                  index.map((each, i) => (i === at ? from[each]! : each)),
                ),
            );
          if (list.length > 0) await same(library.repeat(view, list, { axis }), wanted(sources));
          await same(
            library.repeat(view, counts[0]!, { axis }),
            wanted(range(shape[at]!).flatMap((index) => range(counts[0]!).map(() => index))),
          );
          await same(library.repeat(view, counts[0]!), {
            shape: [x.values.length * counts[0]!],
            values: x.values.flatMap((value) => range(counts[0]!).map(() => value)),
          });
          whole.close();
        },
      ),
    );

    test('tile', { tags: 'random' }, () =>
      check(
        fc.tuple(shapes, fc.array(fc.nat({ max: 3 }), { maxLength: 5 })),
        async ([shape, times]) => {
          const rank = Math.max(shape.length, times.length);
          const wide = [...new Array<number>(rank - shape.length).fill(1), ...shape];
          const by = [...new Array<number>(rank - times.length).fill(1), ...times];
          const x = { shape: wide, values: counted(shape).values };
          await same(
            library.tile(up(counted(shape)), times),
            make(
              wide.map((extent, i) => extent * by[i]!),
              (index) =>
                get(
                  x,
                  index.map((each, i) => each % wide[i]!),
                ),
            ),
          );
        },
      ),
    );

    test('triangles', { tags: 'random' }, () =>
      check(
        fc.tuple(
          fc.array(fc.nat({ max: 5 }), { minLength: 2, maxLength: 3 }),
          fc.oneof(fc.integer({ min: -7, max: 7 }), fc.constantFrom(-0x7fffffff, 0x7fffffff)),
        ),
        async ([shape, diagonal]) => {
          const x = make(shape, (index) => 1 + placeOf(index, shape));
          const keep = (below: boolean): Host =>
            make(shape, (index) => {
              const from = index.at(-1)! - index.at(-2)! - diagonal;
              return (below ? from <= 0 : from >= 0) ? get(x, index) : 0;
            });
          await same(library.tril(up(x) as never, { diagonal }), keep(true));
          await same(library.triu(up(x) as never, { diagonal }), keep(false));
        },
      ),
    );
  });

  test('dtypes are promoted, and complex numbers are moved', async () => {
    using both = await library.concat([device.tensor(i8, [-1]), device.tensor(u8, [255])]);
    expect([both.dtype.name, ...(await both.read())]).toEqual(['i16', -1, 255]);
    using wide = await library.stack([device.tensor(f32, [0.5]), device.tensor(f64, [0.1])]);
    expect([wide.dtype.name, ...(await wide.read())]).toEqual(['f64', 0.5, 0.1]);
    const pairs = device.tensor(complex64, [
      [1, 2],
      [3, 4],
    ] as never);
    using turned = await library.flip(pairs);
    expect([...(await turned.read())]).toEqual([3, 4, 1, 2]);
  });

  test('tensors like others', async () => {
    using x = await device.tensor(i64, [1n, 2n]);
    using zeros = await library.zerosLike(x);
    using ones = await library.onesLike(x, { dtype: f32 });
    using full = await library.fullLike(x, 7n);
    using pairs = await library.onesLike(x, { dtype: complex64 });
    using empty = await library.emptyLike(x, { dtype: u8 });
    expect([...(await zeros.read())]).toEqual([0n, 0n]);
    expect([...(await ones.read())]).toEqual([1, 1]);
    expect([...(await full.read())]).toEqual([7n, 7n]);
    expect([...(await pairs.read())]).toEqual([1, 0, 1, 0]);
    expect([empty.dtype, empty.shape]).toEqual([u8, [2]]);
    expect(() => library.fullLike(x, 0.5 as never)).toThrow('value: expected');
    expect(() => library.zerosLike(x, { type: u8 } as never)).toThrow('options');
  });

  test('meshgrid', async () => {
    for (const indexing of ['xy', 'ij'] as const) {
      const grids = await library.meshgrid(
        [device.tensor(i32, [1, 2, 3]), device.tensor(i32, [4, 5]), device.tensor(i32, [6])],
        { indexing },
      );
      const shape = indexing === 'xy' ? [2, 3, 1] : [3, 2, 1];
      const [first, second] = indexing === 'xy' ? [1, 0] : [0, 1];
      const wanted = [
        make(shape, (index) => 1 + index[first]!),
        make(shape, (index) => 4 + index[second]!),
        make(shape, () => 6),
      ];
      for (const [i, grid] of grids.entries()) {
        expect([grid.shape, ...(await grid.read())]).toEqual([shape, ...wanted[i]!.values]);
        grid.close();
      }
    }
  });

  test('more elements than the device has memory for', async () => {
    using x = await device.tensor(i32, [1, 2]);
    // Rows of more elements than one launch copies.
    for (const call of [() => library.repeat(x, 1e12), () => library.tile(x, [1e12])])
      await expect(call()).rejects.toThrow(CudaOutOfMemoryError);
  });

  test('wrong arguments', async () => {
    using x = await device.zeros(f32, [2, 3]);
    using square = await device.zeros(f32, [3, 3]);
    using whole = await device.zeros(i32, [2, 3]);
    const refused: readonly (readonly [() => unknown, string])[] = [
      [() => library.concat([] as never), 'tensors: expected a list of at least one Tensor'],
      [() => library.concat(x as never), 'Write concat([x, y])'],
      [
        () => library.concat([x, square], { axis: 1 }),
        'tensors[1]: expected a Tensor of shape [2, 3] but for axis 1',
      ],
      [
        () => library.concat([x, whole] as never),
        'tensors[1]: expected a Tensor of a dtype that has a common one with f32',
      ],
      [() => library.concat([x], { axis: 2 }), 'options.axis: expected an axis from -2 to 1'],
      [() => library.stack([x, square]), 'tensors[1]: expected a Tensor of shape [2, 3]'],
      [() => library.stack([x], { axis: 3 }), 'options.axis: expected an axis from -3 to 2'],
      [() => library.unstack(x, { axis: 5 }), 'options.axis: expected an axis'],
      [() => library.flip(x, { axis: [0, 0] }), 'options.axis: expected axes that are named once'],
      [
        () => library.roll(x, [1, 2], { axis: 0 }),
        'shift: expected a whole number for each of 1 axes',
      ],
      [() => library.roll(x, 0.5), 'shift: expected a whole number'],
      [() => library.moveaxis(x, [0, 1], 0), 'destination: expected 2 axes'],
      [() => library.moveaxis(x, 0, undefined as never), 'destination: expected an axis or a list'],
      [() => library.repeat(x, -1), 'repeats: expected a whole number of at least 0'],
      [() => library.repeat(x, [1, 2]), 'repeats: expected a number for each of the 6 indices'],
      [() => library.tile(x, 2 as never), 'repetitions: expected a list'],
      [() => library.tril(x.slice(0)), 'x: expected a Tensor of matrices'],
      [() => library.meshgrid([x]), 'tensors[0]: expected a Tensor of one axis'],
      [() => library.flip([1] as never), 'Copy it to the device first'],
    ];
    for (const [call, message] of refused) expect(call).toThrow(message);
  });
});

describe('rules of dtypes', () => {
  test('resultType, canCast, isdtype', () => {
    const { resultType, canCast, isdtype } = library;
    expect(resultType(i8, u8).name).toBe('i16');
    expect(resultType(f32, complex64, f64).name).toBe('complex128');
    expect(() => resultType(i8, f32 as never)).toThrow('argument 2: expected a dtype that has');
    expect([
      canCast(i8, i32),
      canCast(i32, i8),
      canCast(i32, f64),
      canCast(f64, complex64),
    ]).toEqual([true, false, false, false]);
    expect(isdtype(u8, 'unsigned integer')).toBe(true);
    expect(isdtype(u8, 'signed integer')).toBe(false);
    expect(isdtype(complex64, ['bool', 'complex floating'])).toBe(true);
    expect(isdtype(f32, f64)).toBe(false);
    expect(() => isdtype(f32, 'float' as never)).toThrow('kind: expected a dtype, or one of bool');
  });

  test('finfo and iinfo', () => {
    const { finfo, iinfo } = library;
    expect(finfo(f64)).toMatchObject({
      bits: 64,
      eps: Number.EPSILON,
      max: Number.MAX_VALUE,
      min: -Number.MAX_VALUE,
      smallestNormal: 2 ** -1022,
    });
    expect(finfo(complex64).dtype).toBe(f32);
    expect(iinfo(i64)).toMatchObject({ bits: 64, min: -(2n ** 63n), max: 2n ** 63n - 1n });
    expect(iinfo(u8)).toMatchObject({ bits: 8, min: 0, max: 255 });
    expect(() => finfo(i32 as never)).toThrow('Write iinfo(dtype)');
    expect(() => iinfo(f32 as never)).toThrow('Write finfo(dtype)');
  });
});
