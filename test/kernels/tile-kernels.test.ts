/** Tile kernels on the device: reductions, broadcasting, edges. */
import { Device, f16, f32, f64, i32, i64, input, output, tileKernel, u32, u8 } from 'async-cuda';
import type { DeviceOp, Tensor } from 'async-cuda';
import * as fc from '../fast-check.js';
import { beforeAll, expect, test } from 'vitest';

import { failure, onCpu, onDevice, range } from '../core/test-device.js';
import { scaledRows } from '../random-runs.js';
import { columns, scaled, softmax } from './tile-kernels.test-support.js';

const rmsNorm = tileKernel(
  'rms_norm',
  { y: output(f32), x: input(f32), w: input(f32), eps: f32 },
  ({ y, x, w, eps }, { mean }) => {
    const v = x.load();
    y.store((v / Math.sqrt(mean(v * v, 1) + eps)) * w.load());
  },
  { tile: [4, null] },
);

const sums = tileKernel(
  'sums',
  { out: output(i32), x: input(i32) },
  ({ out, x }, tile) => {
    out.store(tile.sum(x.load(), 1));
  },
  { tile: [4, null] },
);

const centred = tileKernel(
  'centred',
  { y: output(f64), x: input(f64) },
  ({ y, x }, tile) => {
    const v = x.load();
    const all = tile.sum(v);
    y.store(v - all / tile.sum(v / v) + tile.max(v) - tile.min(v));
  },
  { tile: [null, null] },
);

const square = tileKernel(
  'square',
  { y: output(f16), x: input(f16) },
  ({ y, x }) => y.store(x.load() ** 2),
  { tile: [16, 16] },
);

onDevice('Tile kernels', (host) => {
  let device: Device;
  beforeAll(() => {
    device = Device.of(host.device);
  });

  const read = async (op: DeviceOp<Tensor> | Tensor): Promise<number[]> => [
    ...((await (await op).read()) as Iterable<number>),
  ];

  test('reductions of a single row or column are stored as those of many', async () => {
    const one = tileKernel(
      'one',
      { out: output(f32), x: input(f32), a: input(f32) },
      ({ out, x, a }, tile) => {
        out.store(tile.sum(x.load(), 1) + a.load());
      },
      { tile: [1, null] },
    );
    for (const [rows, length] of [
      [1, 5],
      [3, 5],
      [1, 1],
      [3, 1],
      [1, 700],
    ] as const) {
      using x = await device.ones(f32, [rows, length]);
      using a = await device.full(f32, [1, 1], 0.5);
      using out = await device.zeros(f32, [rows, 1]);
      await one({ out, x, a });
      expect(await read(out)).toEqual(range(rows).map(() => length + 0.5));
      using most = await device.zeros(f32, [1, length]);
      using least = await device.zeros(f32, [1, length]);
      await columns({ most, least, x });
      expect(await read(most)).toEqual(range(length).map(() => 1));
      using total = await device.zeros(i32, [rows, 1]);
      using ints = await device.full(i32, [rows, length], 2);
      await sums({ out: total, x: ints });
      expect(await read(total)).toEqual(range(rows).map(() => 2 * length));
    }
  });

  test('softmax of rows of any length', async () => {
    for (const [rows, length] of [
      [1, 1],
      [3, 7],
      [2, 32],
      [5, 100],
      [2, 1024],
      [2, 1030],
      [1, 5000],
    ] as const) {
      const values = Float32Array.from(range(rows * length), (i) => ((i * 7919) % 101) / 10 - 5);
      using x = await device.tensor(f32, values, [rows, length]);
      const { y } = await softmax({ x });
      expect(y.shape).toEqual([rows, length]);
      const got = await read(y);
      for (let row = 0; row < rows; row++) {
        const own = [...values.subarray(row * length, (row + 1) * length)];
        const most = Math.max(...own);
        const all = own.reduce((sum, v) => sum + Math.exp(v - most), 0);
        for (const [i, v] of own.entries())
          expect(Math.abs(got[row * length + i]! / (Math.exp(v - most) / all) - 1)).toBeLessThan(
            1e-5,
          );
      }
      y.close();
    }
  });

  test('RMS norm with a row of weights, rows of several axes', async () => {
    const x = Float32Array.from(range(2 * 3 * 40), (i) => Math.sin(i));
    const w = Float32Array.from(range(40), (i) => i);
    const { y } = await rmsNorm({
      x: device.tensor(f32, x, [2, 3, 40]),
      w: device.tensor(f32, w),
      eps: 1e-5,
    });
    const got = await read(y);
    for (let row = 0; row < 6; row++) {
      const own = x.subarray(row * 40, row * 40 + 40);
      const scale = 1 / Math.sqrt(own.reduce((sum, v) => sum + v * v, 0) / 40 + 1e-5);
      for (let i = 0; i < 40; i++)
        expect(got[row * 40 + i]).toBeCloseTo(own[i]! * scale * w[i]!, 4);
    }
  });

  test(
    'tiles are clipped at the edge, and no element beyond is written',
    { tags: 'random' },
    async () => {
      const shape = fc.tuple(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 1, max: 70 }));
      await fc.assert(
        fc.asyncProperty(
          shape,
          fc.constantFrom('dense', 'row', 'column', 'one', 'view'),
          async ([rows, length], kind) => {
            using whole = await device.full(f32, [rows + 2, length + 3], 5);
            const y = whole.slice([1, rows + 1], [2, length + 2]) as unknown as Tensor<
              'f32',
              [number, number]
            >;
            const of = {
              dense: [rows, length],
              row: [length],
              column: [rows, 1],
              one: [],
              view: [length, rows],
            }[kind] as [number];
            using base = await device
              .arange(
                f32,
                of.reduce((a, b) => a * b, 1),
              )
              .map((each) => each.reshape(of));
            const x =
              kind === 'view'
                ? (base as unknown as Tensor<'f32', [number, number]>).transpose()
                : base;
            await scaled({ y, x, by: 0.5 });
            const at = {
              dense: (r: number, c: number) => r * length + c,
              row: (_: number, c: number) => c,
              column: (r: number) => r,
              one: () => 0,
              view: (r: number, c: number) => c * rows + r,
            }[kind];
            expect(await read(whole)).toEqual(
              range((rows + 2) * (length + 3)).map((i) => {
                const r = Math.floor(i / (length + 3)) - 1;
                const c = (i % (length + 3)) - 2;
                return r >= 0 && r < rows && c >= 0 && c < length ? 5 + at(r, c) : 5;
              }),
            );
          },
        ),
        { numRuns: 40 },
      );
    },
  );

  test('reductions are stored into smaller outputs', async () => {
    for (const [rows, length] of [
      [1, 1],
      [5, 9],
      [4, 128],
      [9, 1000],
    ] as const) {
      using x = await device.arange(i32, rows * length).map((each) => each.reshape([rows, length]));
      using out = await device.zeros(i32, [rows, 1]);
      await sums({ out, x });
      expect(await read(out)).toEqual(
        range(rows).map((row) => (length * (2 * row * length + length - 1)) / 2),
      );
    }
    for (const [rows, length] of [
      [1, 1],
      [7, 5],
      [64, 33],
      [100, 16],
    ] as const) {
      const values = Float32Array.from(range(rows * length), (i) => ((i * 31) % 17) - 8);
      using x = await device.tensor(f32, values, [rows, length]);
      const { most, least } = await columns({
        x,
        most: device.zeros(f32, [length]),
        least: device.zeros(f32, [1, length]),
      });
      const column = (c: number): number[] => range(rows).map((row) => values[row * length + c]!);
      expect(await read(most as unknown as Tensor)).toEqual(
        range(length).map((c) => Math.max(...column(c))),
      );
      expect(await read(least as unknown as Tensor)).toEqual(
        range(length).map((c) => Math.min(...column(c))),
      );
    }
  });

  test('whole tiles, and dtypes', async () => {
    const { y } = await centred({
      x: device.arange(f64, 35, { start: 1 }).map((x) => x.reshape([5, 7])),
    });
    expect(await read(y)).toEqual(range(35).map((i) => i + 1 - 18 + 35 - 1));
    expect(
      await read(
        square({ x: device.arange(f16, 40).map((x) => x.reshape([2, 20])) }).map(
          (each) => each.y as Tensor,
        ),
      ),
    ).toEqual(range(40).map((i) => Math.fround(i * i)));
  });

  test('results are those of JavaScript, to the bit, at each run', async () => {
    const x = Float32Array.from(range(3 * 210), (i) => Math.sin(i * i) * 3);
    const { y } = await softmax({ x: device.tensor(f32, x, [3, 210]) });
    const simulated = await softmax.simulate({
      y: { data: new Float32Array(630), shape: [3, 210] },
      x: { data: x, shape: [3, 210] },
    });
    expect([...simulated.y.data]).toEqual(await read(y));
    const op = softmax({ y, x: device.tensor(f32, x, [3, 210]) });
    expect(await read(op.map((each) => each.y as Tensor))).toEqual([...simulated.y.data]);
  });

  test('rows are accessed 16 bytes at a time, and stay in registers', async () => {
    const text = await softmax.ptx({ capability: [9, 0] }, [1024, 4096]);
    if (device.kind === 'cpu')
      expect(await failure(() => softmax.sass(device, [1024, 4096]))).toMatchObject({
        code: 'ERR_CUDA_UNSUPPORTED',
      });
    expect(text.match(/ld\.global\S*\.v4/g)).toHaveLength(2);
    expect(text.match(/st\.global\S*\.v4/g)).toHaveLength(2);
    expect(text).not.toContain('.local');
  });

  test('rows of 4096 by 16 warps give the bits of JavaScript', { tags: 'thorough' }, async () => {
    const spread = tileKernel(
      'spread',
      { y: output(f32), x: input(f32) },
      ({ y, x }, tile) => {
        const v = x.load();
        const most = tile.max(v, 1);
        y.store(
          Math.exp(v - most) / tile.sum(Math.exp(v - most), 1) +
            tile.mean(v, 1) -
            tile.min(v, 1) +
            tile.max(v) * tile.sum(v),
        );
      },
      { tile: [1, null] },
    );
    // The last row has a NaN, the one before infinities.
    const x = Float32Array.from(range(4 * 4096), (i) =>
      i === 3 * 4096 + 77 ? NaN : i >= 2 * 4096 && i % 3 === 0 ? -Infinity : Math.sin(i * i) * 60,
    );
    const { y } = await spread({ x: device.tensor(f32, x, [4, 4096]) });
    const simulated = await spread.simulate({
      y: { data: new Float32Array(x.length), shape: [4, 4096] },
      x: { data: x, shape: [4, 4096] },
    });
    expect(await read(y)).toEqual([...simulated.y.data]);
  });

  test('softmax takes one reciprocal of its sum, and no bound of its exponents', async () => {
    const text = await softmax.ptx({ capability: [9, 0] }, [1024, 4096]);
    expect(text.match(/rcp\.approx/g)).toHaveLength(1);
    expect(await softmax.ptx({ capability: [9, 0], emulated: true }, [1024, 4096])).not.toContain(
      'rcp.approx',
    );
    expect((await softmax.ptx(host.device, [1024, 4096])).includes('rcp.approx')).toBe(!onCpu);
    expect(text).not.toMatch(/min\.NaN|setp\.gt\.f32 .*, 0f00000000;/);
  });

  test(
    'the mean of integers has a fraction, and their sum does not wrap',
    { tags: 'scaled' },
    async () => {
      for (const dtype of scaledRows([i32, u32, u8, i64] as const, 2)) {
        const means = tileKernel(
          'means',
          { rows: output(f32), columns: output(f32), all: output(f32), x: input(dtype) },
          ({ rows, columns: each, all, x }, tile) => {
            const v = x.load();
            rows.store(tile.mean(v, 1));
            each.store(tile.mean(v, 0));
            all.store(tile.mean(v));
          },
          { tile: [null, null] },
        );
        for (const [rows, length] of scaledRows(
          [
            [2, 2],
            [1, 5],
            [7, 33],
            [3, 1000],
          ] as const,
          2,
        )) {
          const values = range(rows * length).map((i) => ((i * 7) % 251) % 4);
          const shapes = {
            rows: [rows, 1],
            columns: [1, length],
            all: [1, 1],
            x: [rows, length],
          } as const;
          using x = await device.tensor(
            dtype as typeof i32,
            (dtype === i64 ? values.map(BigInt) : values) as number[],
            shapes.x,
          );
          const got = await means({
            rows: device.zeros(f32, shapes.rows),
            columns: device.zeros(f32, shapes.columns),
            all: device.zeros(f32, shapes.all),
            x: x as never,
          });
          const mean = (of: readonly number[]): number =>
            Math.fround(of.reduce((sum, v) => sum + v, 0) / of.length);
          expect(await read(got.rows as unknown as Tensor)).toEqual(
            range(rows).map((row) => mean(values.slice(row * length, (row + 1) * length))),
          );
          expect(await read(got.columns as unknown as Tensor)).toEqual(
            range(length).map((c) => mean(values.filter((_, i) => i % length === c))),
          );
          expect(await read(got.all as unknown as Tensor)).toEqual([mean(values)]);
        }
      }
      const large = tileKernel(
        'large',
        { out: output(f32), x: input(i32) },
        ({ out, x }, tile) => {
          out.store(tile.mean(x.load(), 1));
        },
        { tile: [1, null] },
      );
      const { out } = await large({
        out: device.zeros(f32, [2, 1]),
        x: device.full(i32, [2, 1024], 2 ** 30),
      });
      expect(await read(out as unknown as Tensor)).toEqual([2 ** 30, 2 ** 30]);
      const whole = tileKernel(
        'whole',
        { out: output(i32), x: input(i32) },
        ({ out: to, x }, tile) => {
          to.store(tile.mean(x.load(), 1));
        },
        { tile: [1, null] },
      );
      expect(
        (
          await failure(() =>
            whole({ out: device.zeros(i32, [2, 1]), x: device.ones(i32, [2, 4]) }),
          )
        ).message,
      ).toContain(
        'What is written to i32 elements is f32, and has to be an integer: tile.mean(x.load(), 1)',
      );
    },
  );

  test('rint rounds to the nearest, ties to even', async () => {
    const rounded = tileKernel(
      'rounded',
      { y: output(f32), x: input(f32) },
      ({ y, x }, tile) => {
        y.store(tile.rint(x.load()));
      },
      { tile: [1, null] },
    );
    const { y } = await rounded({ x: device.tensor(f32, [0.5, 1.5, 2.5, -0.5, -1.5, 2.4, 2.6]) });
    expect(await read(y)).toEqual([0, 2, 2, -0, -2, 2, 3]);
  });
});
