/** Promotion of dtypes, and functions whose rule depends on the dtype. */
import { Device, bool, f16, f32, f64, i16, i32, i64, i8, u32, u64, u8 } from 'async-cuda';
import type { AnyTensor, DType, DeviceOp, Tensor } from 'async-cuda';
import * as library from 'async-cuda/library';
import { beforeAll, describe, expect, expectTypeOf, test } from 'vitest';

import {
  DTYPES,
  DTYPE_FACTS,
  DTYPE_NAMES,
  INTEGER_LIMITS,
  namesWhere,
} from '../../src/ground/dtype.js';
import type { DTypeName, IntegerName } from '../../src/ground/dtype.js';
import { promoted } from '../../src/ground/promotion.js';
import { onDevice } from '../core/test-device.js';
import * as fc from '../fast-check.js';

/** Whether a dtype has all values of another, by the bounds of integers and formats of floats. */
function hasAllOf(wide: DTypeName, narrow: DTypeName): boolean {
  const [a, b] = [DTYPE_FACTS[wide], DTYPE_FACTS[narrow]];
  const [some, others] = [INTEGER_LIMITS[wide], INTEGER_LIMITS[narrow]];
  if (a.kind === 'bool' || b.kind === 'bool') return a.kind === b.kind;
  if (some !== undefined && others !== undefined)
    return some[0] <= others[0] && some[1] >= others[1];
  const float = (name: DTypeName) =>
    DTYPE_FACTS[DTYPE_FACTS[name].part ?? name].float as {
      exponentBits: number;
      fractionBits: number;
    } | null;
  const [one, other] = [float(wide), float(narrow)];
  return (
    one !== null &&
    other !== null &&
    (b.kind !== 'complex' || a.kind === 'complex') &&
    one.exponentBits >= other.exponentBits &&
    one.fractionBits >= other.fractionBits
  );
}

describe('the common dtype of two', () => {
  test.each(DTYPE_NAMES)('%s with each', (a) => {
    for (const b of DTYPE_NAMES) {
      const common = promoted(a, b);
      expect(promoted(b, a), b).toBe(common);
      const candidates = DTYPE_NAMES.filter((name) => hasAllOf(name, a) && hasAllOf(name, b));
      if (common === undefined) expect(candidates, b).toEqual([]);
      else {
        expect(candidates, b).toContain(common);
        // f16 and bf16 both have all values of the two f8.
        for (const other of candidates)
          expect(
            hasAllOf(other, common) || DTYPES[other].bytes === DTYPES[common].bytes,
            `${b}, ${other}`,
          ).toBe(true);
      }
    }
  });
});

onDevice('Promotion', (host) => {
  let device: Device;
  beforeAll(() => {
    device = Device.of(host.device);
  });
  const read = async (op: DeviceOp<AnyTensor>): Promise<unknown[]> =>
    Array.from((await op.andThen((tensor) => tensor.read())) as ArrayLike<number>);

  test('types of results', async () => {
    const sum = library.add(device.tensor(i8, [-1]), device.tensor(u8, [255]));
    expectTypeOf(sum).toEqualTypeOf<DeviceOp<Tensor<'i16', [number]>>>();
    expect(await read(sum as never)).toEqual([254]);
    const less = library.less(device.tensor(i32, [-1]), device.tensor(u32, [1]));
    expectTypeOf(less).toEqualTypeOf<DeviceOp<Tensor<'bool', [number]>>>();
    expect(await read(less as never)).toEqual([1]);
    using whole = await device.tensor(i32, [1]);
    using float = await device.tensor(f32, [1]);
    // @ts-expect-error integers and floats have no common dtype
    expect(() => library.add(whole, float)).toThrow(
      'y: expected a Tensor of a dtype that has a common one with i32, for add(…), got ' +
        'Tensor<f32, [1]>',
    );
  });

  test('each pair of dtypes is computed in the common one', async () => {
    const names = namesWhere(({ kind }) => kind === 'signed' || kind === 'unsigned');
    const given = ({ bytes }: DType, value: bigint): never =>
      (bytes === 8 ? value : Number(value)) as never;
    for (const a of names)
      for (const b of names) {
        const common = promoted(a, b);
        if (common === undefined) continue;
        const [x, y] = [DTYPES[a], DTYPES[b]] as DType<IntegerName>[];
        const [most, least] = [INTEGER_LIMITS[a]![1], INTEGER_LIMITS[b]![0]];
        using made = (await library.sub(
          device.full(x!, [3], given(x!, most)) as never,
          device.full(y!, [3], given(y!, least)) as never,
        )) as unknown as AnyTensor;
        expect(made.dtype.name).toBe(common);
        const bits = DTYPES[common].bytes * 8;
        const wrap = DTYPES[common].kind === 'signed' ? BigInt.asIntN : BigInt.asUintN;
        expect(BigInt((await made.read())[0] as number), `${a} - ${b}`).toBe(
          wrap(bits, most - least),
        );
      }
    expect(
      await read(library.add(device.tensor(f32, [0.1]), device.tensor(f64, [1])) as never),
    ).toEqual([Math.fround(0.1) + 1]);
    const condition = device.tensor(bool, [true, false]);
    using chosen = await library.where(
      condition,
      device.tensor(i8, [-1, -2]),
      device.tensor(u32, [1, 2 ** 32 - 1]),
    );
    expect(chosen.dtype).toBe(i64);
    expect([...(await chosen.read())]).toEqual([-1n, 2n ** 32n - 1n]);
  });

  test('where of two numbers', async () => {
    const condition = device.tensor(bool, [true, false]);
    using floats = await library.where(condition, 0.5, 2);
    expect([floats.dtype, ...(await floats.read())]).toEqual([f32, 0.5, 2]);
    using wide = await library.where(condition, 1n, 2, { dtype: i64 });
    expect([wide.dtype, ...(await wide.read())]).toEqual([i64, 1n, 2n]);
    using one = await condition;
    expect(() => library.where(one, 0.5, 2, { dtype: i8 })).toThrow(
      'x: expected a whole number for i8',
    );
    const where = library.where as (...given: unknown[]) => unknown;
    expect(() => where(true, 1, 2)).toThrow('condition: expected a Tensor of bool, for where(…)');
    expect(() => where(one, 1)).toThrow('y: expected a Tensor or a number, for where(…)');
    using truth = await library.where(condition, false, true, { dtype: bool });
    expect([truth.dtype, ...(await truth.read())]).toEqual([bool, 0, 1]);
  });

  test('clip', async () => {
    const x = device.tensor(f32, [-2, -0.5, NaN, 0.5, 2]);
    expect(await read(library.clip(x, -1, 1) as never)).toEqual([-1, -0.5, NaN, 0.5, 1]);
    expect(await read(library.clip(x, -1) as never)).toEqual([-1, -0.5, NaN, 0.5, 2]);
    expect(await read(library.clip(x, undefined, 1) as never)).toEqual([-2, -0.5, NaN, 0.5, 1]);
    expect(await read(library.clip(x) as never)).toEqual([-2, -0.5, NaN, 0.5, 2]);
    expect(
      await read(
        library.clip(device.tensor(i32, [1, 5]), device.tensor(i32, [2, 3], [2, 1])) as never,
      ),
    ).toEqual([2, 5, 3, 5]);
    using y = await device.tensor(f32, [1]);
    expect(() => library.clip(y, {} as never)).toThrow('min: expected a Tensor');
    expect(() => (library.clip as (...given: unknown[]) => unknown)(y, 0, 1, 2)).toThrow(
      'clip(…) takes no options',
    );
  });

  test('classes of floats; integers are finite', async () => {
    const values = [0, -0, 1, -1, NaN, Infinity, -Infinity];
    for (const dtype of [f16, f32, f64]) {
      const x = device.tensor(dtype as DType<'f32'>, values);
      expect(await read(library.isnan(x) as never)).toEqual([0, 0, 0, 0, 1, 0, 0]);
      expect(await read(library.isinf(x) as never)).toEqual([0, 0, 0, 0, 0, 1, 1]);
      expect(await read(library.isfinite(x) as never)).toEqual([1, 1, 1, 1, 0, 0, 0]);
      expect((await read(library.signbit(x) as never)).filter((_, i) => i !== 4)).toEqual([
        0, 1, 0, 1, 0, 1,
      ]);
    }
    const whole = device.tensor(i16, [-1, 0]);
    expect(await read(library.isnan(whole) as never)).toEqual([0, 0]);
    expect(await read(library.isinf(whole) as never)).toEqual([0, 0]);
    expect(await read(library.isfinite(whole) as never)).toEqual([1, 1]);
    for (const name of ['floor', 'ceil', 'trunc', 'round', 'positive'] as const)
      expect(await read(library[name](whole) as never), name).toEqual([-1, 0]);
  });

  test('nextafter goes through the floats in order', async () => {
    const [x, y] = [
      [0, -0, 0, 1, -1, 1, Infinity, 1, NaN, 2 ** -1074],
      [1, -1, -0, 2, -2, 0, 0, 1, 1, 0],
    ];
    expect(
      await read(library.nextafter(device.tensor(f64, x!), device.tensor(f64, y!)) as never),
    ).toEqual([
      2 ** -1074,
      -(2 ** -1074),
      -0,
      1 + 2 ** -52,
      -1 - 2 ** -52,
      1 - 2 ** -53,
      Number.MAX_VALUE,
      1,
      NaN,
      0,
    ]);
    expect(await read(library.nextafter(device.tensor(f32, [0, 1]), 2) as never)).toEqual([
      2 ** -149,
      1 + 2 ** -23,
    ]);
  });

  describe('integers', () => {
    const integers = [i8, u8, i32, u32, i64, u64] as const;
    const wrapped = ({ kind, bytes }: DType, value: bigint): bigint =>
      kind === 'signed' ? BigInt.asIntN(bytes * 8, value) : BigInt.asUintN(bytes * 8, value);
    const down = (a: bigint, b: bigint): bigint =>
      a / b - (a % b !== 0n && a < 0n !== b < 0n ? 1n : 0n);
    const rules: Record<string, (dtype: DType, a: bigint, b: bigint) => bigint> = {
      floorDivide: (_, a, b) => (b === 0n ? 0n : down(a, b)),
      remainder: (_, a, b) => (b === 0n ? 0n : a - b * down(a, b)),
      bitwiseLeftShift: ({ bytes }, a, b) => (b < 0n || b >= bytes * 8 ? 0n : a << b),
      bitwiseRightShift: ({ bytes }, a, b) =>
        b < 0n || b >= bytes * 8 ? (a < 0n ? -1n : 0n) : a >> b,
      pow: (_, a, b) => (b >= 0n ? a ** b : a === 1n ? 1n : a !== -1n ? 0n : b & 1n ? -1n : 1n),
    };
    test.each(Object.keys(rules))('%s', { tags: 'random' }, async (name) => {
      for (const dtype of integers) {
        const [least, most] = INTEGER_LIMITS[dtype.name]!;
        const near = fc.oneof(
          fc.bigInt({ min: least, max: most }),
          fc.bigInt({ min: least < -70n ? -70n : least, max: most > 70n ? 70n : most }),
          fc.constantFrom(least, most),
        );
        const exponents = fc.bigInt({ min: least < -3n ? -3n : least, max: 70n });
        const pairs = fc.array(fc.tuple(near, name === 'pow' ? exponents : near), {
          minLength: 1,
          maxLength: 200,
        });
        await fc.assert(
          fc.asyncProperty(pairs, async (rows) => {
            const list = (values: bigint[]): DeviceOp<AnyTensor> =>
              device.tensor(
                dtype as DType<'i64'>,
                (dtype.bytes === 8 ? values : values.map(Number)) as never,
              ) as never;
            const found = await read(
              (library as never as Record<string, (x: unknown, y: unknown) => DeviceOp<AnyTensor>>)[
                name
              ]!(list(rows.map(([a]) => a)), list(rows.map(([, b]) => b))),
            );
            expect(found.map((value) => BigInt(value as number))).toEqual(
              rows.map(([a, b]) => wrapped(dtype, rules[name]!(dtype, a, b))),
            );
          }),
          { numRuns: 40 },
        );
      }
    });
  });
});
