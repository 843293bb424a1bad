/**
 * Zeros, infinities and NaN of the functions of the library and of kernels: C's annex F, which is
 * IEEE 754's clause 9.2.1 and CUDA's.
 */
import { Device, f16, f32, f64, input, kernel, output } from 'async-cuda';
import type { AnyTensor, DType, DeviceOp } from 'async-cuda';
import * as library from 'async-cuda/library';
import { beforeAll, describe, expect, test } from 'vitest';

import { onDevice } from '../core/test-device.js';
import { someOf } from '../random-runs.js';

const INF = Infinity;

// prettier-ignore
const UNARY: Readonly<Record<string, readonly (readonly [x: number, f: number])[]>> = {
  exp: [[0, 1], [-0, 1], [-INF, 0], [INF, INF], [NaN, NaN]],
  expm1: [[0, 0], [-0, -0], [-INF, -1], [INF, INF], [NaN, NaN]],
  log: [[0, -INF], [-0, -INF], [1, 0], [-1, NaN], [-INF, NaN], [INF, INF], [NaN, NaN]],
  log2: [[0, -INF], [-0, -INF], [1, 0], [-1, NaN], [INF, INF], [NaN, NaN]],
  log10: [[0, -INF], [-0, -INF], [1, 0], [-1, NaN], [INF, INF], [NaN, NaN]],
  log1p: [[0, 0], [-0, -0], [-1, -INF], [-2, NaN], [-INF, NaN], [INF, INF], [NaN, NaN]],
  sqrt: [[0, 0], [-0, -0], [-1, NaN], [-INF, NaN], [INF, INF], [NaN, NaN]],
  rsqrt: [[0, INF], [-0, -INF], [-1, NaN], [INF, 0], [NaN, NaN]],
  reciprocal: [[0, INF], [-0, -INF], [INF, 0], [-INF, -0], [NaN, NaN]],
  sin: [[0, 0], [-0, -0], [INF, NaN], [-INF, NaN], [NaN, NaN]],
  cos: [[0, 1], [-0, 1], [INF, NaN], [NaN, NaN]],
  tan: [[0, 0], [-0, -0], [INF, NaN], [NaN, NaN]],
  tanh: [[0, 0], [-0, -0], [INF, 1], [-INF, -1], [NaN, NaN]],
  asin: [[0, 0], [-0, -0], [2, NaN], [-2, NaN], [INF, NaN], [NaN, NaN]],
  acos: [[1, 0], [2, NaN], [-2, NaN], [NaN, NaN]],
  atan: [[0, 0], [-0, -0], [NaN, NaN]],
  sinh: [[0, 0], [-0, -0], [INF, INF], [-INF, -INF], [NaN, NaN]],
  cosh: [[0, 1], [-0, 1], [INF, INF], [-INF, INF], [NaN, NaN]],
  asinh: [[0, 0], [-0, -0], [INF, INF], [-INF, -INF], [NaN, NaN]],
  acosh: [[1, 0], [0.5, NaN], [-INF, NaN], [INF, INF], [NaN, NaN]],
  atanh: [[0, 0], [-0, -0], [1, INF], [-1, -INF], [2, NaN], [INF, NaN], [NaN, NaN]],
  erf: [[0, 0], [-0, -0], [INF, 1], [-INF, -1], [NaN, NaN]],
  abs: [[-0, 0], [-INF, INF], [NaN, NaN]],
  neg: [[0, -0], [-0, 0], [-INF, INF], [NaN, NaN]],
  sign: [[0, 0], [-0, 0], [INF, 1], [-INF, -1], [NaN, NaN]],
  floor: [[-0, -0], [0.5, 0], [-0.5, -1], [INF, INF], [-INF, -INF], [NaN, NaN]],
  ceil: [[-0, -0], [-0.5, -0], [0.5, 1], [INF, INF], [-INF, -INF], [NaN, NaN]],
  trunc: [[-0, -0], [-0.5, -0], [0.5, 0], [INF, INF], [NaN, NaN]],
  round: [[0.5, 0], [1.5, 2], [2.5, 2], [-0.5, -0], [-1.5, -2], [-0, -0], [INF, INF], [NaN, NaN]],
  sigmoid: [[0, 0.5], [INF, 1], [-INF, 0], [NaN, NaN]],
  softplus: [[INF, INF], [-INF, 0], [NaN, NaN]],
  relu: [[-INF, 0], [INF, INF], [NaN, NaN]],
};

/** Functions that kernels have by themselves, too. */
// prettier-ignore
const IN_KERNELS: typeof UNARY = {
  asin: [[0, 0], [-0, -0], [2, NaN], [-2, NaN], [INF, NaN], [NaN, NaN]],
  acos: [[1, 0], [2, NaN], [-2, NaN], [NaN, NaN]],
  atan: [[0, 0], [-0, -0], [NaN, NaN]],
  sinh: [[0, 0], [-0, -0], [INF, INF], [-INF, -INF], [NaN, NaN]],
  cosh: [[0, 1], [-0, 1], [INF, INF], [-INF, INF], [NaN, NaN]],
  asinh: [[0, 0], [-0, -0], [INF, INF], [-INF, -INF], [NaN, NaN]],
  acosh: [[1, 0], [0.5, NaN], [-INF, NaN], [INF, INF], [NaN, NaN]],
  atanh: [[0, 0], [-0, -0], [1, INF], [-1, -INF], [2, NaN], [INF, NaN], [NaN, NaN]],
  cbrt: [[0, 0], [-0, -0], [INF, INF], [-INF, -INF], [NaN, NaN]],
};

/** C 2018, F.10.4.4. */
const POW: readonly (readonly [x: number, y: number, power: number])[] = [
  ...[-3, -1].flatMap(
    (y) =>
      [
        [0, y, INF],
        [-0, y, -INF],
      ] as const,
  ),
  ...[-2, -2.5].flatMap(
    (y) =>
      [
        [0, y, INF],
        [-0, y, INF],
      ] as const,
  ),
  [0, -INF, INF],
  [-0, -INF, INF],
  ...[1, 3].flatMap(
    (y) =>
      [
        [0, y, 0],
        [-0, y, -0],
      ] as const,
  ),
  ...[2, 0.5, INF].flatMap(
    (y) =>
      [
        [0, y, 0],
        [-0, y, 0],
      ] as const,
  ),
  [-1, INF, 1],
  [-1, -INF, 1],
  ...[0, -0, 1, -1, 2.5, -2, INF, -INF, NaN].map((y) => [1, y, 1] as const),
  ...[0, -0, 1, -1, 0.5, -2, INF, -INF, NaN].flatMap(
    (x) =>
      [
        [x, 0, 1],
        [x, -0, 1],
      ] as const,
  ),
  [-2, 0.5, NaN],
  [-0.5, -1.5, NaN],
  ...[0.5, -0.5].flatMap(
    (x) =>
      [
        [x, -INF, INF],
        [x, INF, 0],
      ] as const,
  ),
  ...[2, -2, INF, -INF].flatMap(
    (x) =>
      [
        [x, -INF, 0],
        [x, INF, INF],
      ] as const,
  ),
  [-INF, -3, -0],
  [-INF, -2, 0],
  [-INF, -2.5, 0],
  [-INF, 3, -INF],
  [-INF, 2, INF],
  [-INF, 2.5, INF],
  [INF, -1, 0],
  [INF, -0.5, 0],
  [INF, 1, INF],
  [INF, 0.5, INF],
  [NaN, 1, NaN],
  [2, NaN, NaN],
  [-1, NaN, NaN],
  [0, NaN, NaN],
  [INF, NaN, NaN],
  [NaN, INF, NaN],
  [NaN, NaN, NaN],
];

/** C 2018, F.10.1.4: first y, second x. Other tests compare angles to the last bits. */
const ATAN2: typeof POW = [
  [0, 0, 0],
  [-0, 0, -0],
  [0, -0, Math.PI],
  [-0, -0, -Math.PI],
  [0, 1, 0],
  [-0, 1, -0],
  [0, -1, Math.PI],
  [-0, -1, -Math.PI],
  [1, 0, Math.PI / 2],
  [-1, 0, -Math.PI / 2],
  [1, -0, Math.PI / 2],
  [1, INF, 0],
  [-1, INF, -0],
  [1, -INF, Math.PI],
  [-1, -INF, -Math.PI],
  [INF, 1, Math.PI / 2],
  [-INF, -1, -Math.PI / 2],
  [INF, INF, Math.PI / 4],
  [INF, -INF, (3 * Math.PI) / 4],
  [-INF, INF, -Math.PI / 4],
  [-INF, -INF, (-3 * Math.PI) / 4],
  [NaN, 1, NaN],
  [1, NaN, NaN],
  [NaN, INF, NaN],
  [INF, NaN, NaN],
];

/** The array API standard 2025.12, floor_divide and remainder. */
// prettier-ignore
const FLOOR_DIVIDE: typeof POW = [
  [INF, INF, NaN], [-INF, INF, NaN], [0, 0, NaN], [-0, 0, NaN], [0, -0, NaN],
  [0, 2, 0], [-0, 2, -0], [0, -2, -0], [-0, -2, 0],
  [3, 0, INF], [3, -0, -INF], [-3, 0, -INF], [-3, -0, INF],
  [INF, 2, INF], [INF, -2, -INF], [-INF, 2, -INF], [-INF, -2, INF],
  [2, INF, 0], [2, -INF, -1], [-2, INF, -1], [-2, -INF, 0],
  [7, 2, 3], [-7, 2, -4], [7, -2, -4], [-7, -2, 3], [1, 4, 0], [-1, 4, -1],
  [NaN, 1, NaN], [1, NaN, NaN],
];
// prettier-ignore
const REMAINDER: typeof POW = [
  [INF, 2, NaN], [-INF, INF, NaN], [3, 0, NaN], [-3, -0, NaN], [0, 0, NaN],
  [0, 2, 0], [-0, 2, 0], [0, -2, -0], [-0, -2, -0],
  [2, INF, 2], [2, -INF, -INF], [-2, INF, INF], [-2, -INF, -2],
  [7, 2, 1], [-7, 2, 1], [7, -2, -1], [-7, -2, -1], [6, 3, 0], [-6, 3, 0], [6, -3, -0],
  [NaN, 1, NaN], [1, NaN, NaN],
];
// prettier-ignore
const LOGADDEXP: typeof POW = [
  [INF, INF, INF], [-INF, -INF, -INF], [INF, -INF, INF], [-INF, 2, 2], [0, 0, Math.LN2],
  [NaN, 1, NaN], [1, NaN, NaN],
];
// prettier-ignore
const COPYSIGN: typeof POW = [
  [1, -0, -1], [-1, 0, 1], [0, -2, -0], [-INF, 3, INF], [NaN, 1, NaN],
];

const HYPOT: typeof POW = [
  [INF, NaN, INF],
  [NaN, -INF, INF],
  [-INF, 1, INF],
  [0, -0, 0],
  [NaN, 1, NaN],
  [-3, 0, 3],
];

const call = (name: string, x: AnyTensor, y?: AnyTensor): DeviceOp<AnyTensor> =>
  (library as unknown as Record<string, (...given: unknown[]) => DeviceOp<AnyTensor>>)[name]!(
    ...(y === undefined ? [x] : [x, y]),
  );

onDevice('Special values', (host) => {
  let device: Device;
  beforeAll(() => {
    device = Device.of(host.device);
  });

  /**
   * Compares with the expected values, rounded to the dtype: numbers within a few units in the last
   * place, zeros, infinities and NaN exactly.
   */
  function check(
    name: string,
    dtype: DType,
    given: readonly (readonly number[])[],
    found: ArrayLike<number>,
  ): void {
    given.forEach((row, i) => {
      const wanted = row.at(-1)!;
      const isClose =
        Number.isFinite(wanted) &&
        wanted !== 0 &&
        Math.abs(found[i]! - wanted) <=
          Math.abs(wanted) * (dtype.bytes === 2 ? 1e-3 : dtype.bytes === 4 ? 3e-7 : 1e-15);
      if (!isClose && !Object.is(found[i], wanted))
        expect.fail(
          `${name}(${row.slice(0, -1).join(', ')}) of ${dtype.name} gives ` +
            `${Object.is(found[i], -0) ? '-0' : found[i]}, not ` +
            `${Object.is(wanted, -0) ? '-0' : wanted}`,
        );
    });
  }

  describe.each([{ dtype: f32 }, { dtype: f64 }, { dtype: f16 }] as {
    dtype: DType<'f32' | 'f64' | 'f16'>;
  }[])('$dtype.name', ({ dtype }) => {
    const of = (values: readonly number[]): DeviceOp<AnyTensor> =>
      device.tensor(dtype, values) as never;

    someOf(10, test)(Object.keys(UNARY))('%s', async (name) => {
      const rows = UNARY[name]!;
      check(
        name,
        dtype,
        rows,
        (await of(rows.map(([x]) => x))
          .andThen((x) => call(name, x))
          .andThen((y) => y.read())) as ArrayLike<number>,
      );
    });

    test.each([
      ['pow', POW],
      ['atan2', ATAN2],
      ['hypot', HYPOT],
      ['floorDivide', FLOOR_DIVIDE],
      ['remainder', REMAINDER],
      ['logaddexp', LOGADDEXP],
      ['copysign', COPYSIGN],
    ] as const)('%s', async (name, rows) => {
      check(
        name,
        dtype,
        rows,
        (await of(rows.map(([x]) => x))
          .andThen((x) => of(rows.map(([, y]) => y)).andThen((y) => call(name, x, y)))
          .andThen((z) => z.read())) as ArrayLike<number>,
      );
    });
  });

  someOf(1, test)([{ dtype: f32 }, { dtype: f64 }] as { dtype: DType<'f32'> }[])(
    'Math of kernels of $dtype.name, also in simulation',
    async ({ dtype }) => {
      const each = kernel(
        `maths_${dtype.name}`,
        {
          x: input(dtype),
          asin: output(dtype),
          acos: output(dtype),
          atan: output(dtype),
          sinh: output(dtype),
          cosh: output(dtype),
          asinh: output(dtype),
          acosh: output(dtype),
          atanh: output(dtype),
          cbrt: output(dtype),
        },
        ({ x, asin, acos, atan, sinh, cosh, asinh, acosh, atanh, cbrt }, gpu) => {
          const i = gpu.globalId.x;
          if (i >= x.length) return;
          const v = x[i]!;
          asin[i] = Math.asin(v);
          acos[i] = Math.acos(v);
          atan[i] = Math.atan(v);
          sinh[i] = Math.sinh(v);
          cosh[i] = Math.cosh(v);
          asinh[i] = Math.asinh(v);
          acosh[i] = Math.acosh(v);
          atanh[i] = Math.atanh(v);
          cbrt[i] = Math.cbrt(v);
        },
      );
      const arguments_ = [
        ...new Set(Object.values(IN_KERNELS).flatMap((rows) => rows.map(([x]) => x))),
        -0,
      ];
      const n = arguments_.length;
      const outs = Object.keys(IN_KERNELS);
      using result = (await each({
        x: device.tensor(dtype, arguments_),
        ...Object.fromEntries(outs.map((name) => [name, device.zeros(dtype, [n])])),
      } as never)) as unknown as Record<string, AnyTensor> & Disposable;
      const Elements = dtype.name === 'f32' ? Float32Array : Float64Array;
      const simulated = (await each.simulate({
        x: Elements.from(arguments_),
        ...Object.fromEntries(outs.map((name) => [name, new Elements(n)])),
      } as never)) as unknown as Record<string, ArrayLike<number>>;
      for (const [name, rows] of Object.entries(IN_KERNELS)) {
        const at = rows.map(([x]) => arguments_.findIndex((other) => Object.is(other, x)));
        const found = (await result[name]!.read()) as ArrayLike<number>;
        check(
          name,
          dtype,
          rows,
          at.map((i) => found[i]!),
        );
        check(
          `simulated ${name}`,
          dtype,
          rows,
          at.map((i) => simulated[name]![i]!),
        );
      }
    },
  );

  someOf(1, test)([{ dtype: f32 }, { dtype: f64 }] as { dtype: DType<'f32'> }[])(
    'Math.pow, ** and hypot of kernels of $dtype.name, also in simulation',
    async ({ dtype }) => {
      const both = kernel(
        `pairs_${dtype.name}`,
        {
          x: input(dtype),
          y: input(dtype),
          pow: output(dtype),
          star: output(dtype),
          hypot: output(dtype),
        },
        ({ x, y, pow, star, hypot }, gpu) => {
          const i = gpu.globalId.x;
          if (i >= x.length) return;
          pow[i] = Math.pow(x[i]!, y[i]!);
          star[i] = x[i]! ** y[i]!;
          hypot[i] = Math.hypot(x[i]!, y[i]!);
        },
      );
      const rows = [...POW, ...HYPOT];
      const [x, y] = [rows.map(([first]) => first), rows.map(([, second]) => second)];
      using result = await both({
        x: device.tensor(dtype, x),
        y: device.tensor(dtype, y),
        pow: device.zeros(dtype, [x.length]),
        star: device.zeros(dtype, [x.length]),
        hypot: device.zeros(dtype, [x.length]),
      });
      const Elements = dtype.name === 'f32' ? Float32Array : Float64Array;
      const array = (values: readonly number[]): Float32Array =>
        Elements.from(values) as Float32Array;
      const simulated = await both.simulate({
        x: array(x),
        y: array(y),
        pow: array(x),
        star: array(x),
        hypot: array(x),
      });
      for (const [name, found] of [
        ['pow', await result.pow.read()],
        ['**', await result.star.read()],
        ['simulated pow', simulated.pow],
        ['simulated **', simulated.star],
      ] as const)
        check(name, dtype, POW, found as ArrayLike<number>);
      for (const [name, found] of [
        ['hypot', await result.hypot.read()],
        ['simulated hypot', simulated.hypot],
      ] as const)
        check(name, dtype, HYPOT, (found as Float32Array).slice(POW.length));
    },
  );

  test('powers of literals', async () => {
    const literals = kernel(
      'literals',
      { out: output(f32), nan: f32 },
      ({ out, nan }, gpu) => {
        if (gpu.globalId.x > 0) return;
        out[0] = 1 ** NaN;
        out[1] = (-1) ** Infinity;
        out[2] = 1 ** nan;
        out[3] = gpu.ONE ** gpu.NOTHING;
        out[4] = nan ** 0;
        out[5] = 2 ** NaN;
      },
      { uses: { ONE: 1, NOTHING: NaN } },
    );
    expect([
      ...(await literals({ out: device.zeros(f32, [6]), nan: NaN }).andThen(({ out }) =>
        out.read(),
      )),
    ]).toEqual([1, 1, 1, 1, 1, NaN]);
    expect([
      ...(await literals.simulate({ out: new Float32Array(6), nan: NaN }, { grid: 1, block: 1 }))
        .out,
    ]).toEqual([1, 1, 1, 1, 1, NaN]);
  });
});
