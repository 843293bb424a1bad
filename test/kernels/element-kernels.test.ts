/** Element kernels on the device: forms, broadcasting, outputs that the call makes, refusals. */
import {
  CudaArgumentError,
  CudaCompileError,
  Device,
  bool,
  elementKernel,
  f16,
  f32,
  f64,
  i32,
  i64,
  inout,
  input,
  output,
  struct,
  u8,
} from 'async-cuda';
import type { DeviceOp, Tensor } from 'async-cuda';
import * as fc from '../fast-check.js';
import { beforeAll, expect, test } from 'vitest';

import { failure, onDevice, range } from '../core/test-device.js';

const saxpy = elementKernel(
  'saxpy',
  { y: inout(f32), a: f32, x: input(f32) },
  ({ y, a, x }) => a * x + y,
);

const mixed = elementKernel(
  'mixed',
  { out: output(f32), x: input(f32), bias: input(f32), half: input(f16) },
  ({ x, bias, half }, gpu) => {
    if (x < 0) return gpu.SLOPE * x;
    return gpu.square(x) + bias * half;
  },
  { uses: { SLOPE: 0.5, square: (v: number) => v * v } },
);

const Range = struct({ low: f32, high: f32 });
const clip = elementKernel(
  'clip',
  { out: output(f32), below: output(bool), bytes: output(u8), x: input(f32), range: Range },
  ({ x, range: { low, high } }, gpu) => ({
    out: gpu.clamp(x, low, high),
    below: x < low,
    bytes: gpu.i32(x),
  }),
);

const places = elementKernel(
  'places',
  { out: output(i32), row: output(i32) },
  (_, { index, coordinates }) => ({ out: index, row: coordinates[0]! * 1000 + coordinates[1]! }),
);

const wide = elementKernel(
  'wide',
  { z: output(f64), n: output(i64), x: input(f64), k: input(i64) },
  ({ x, k }) => ({ z: x / 3, n: k * 3 }),
);

onDevice('Element kernels', (host) => {
  let device: Device;
  beforeAll(() => {
    device = Device.of(host.device);
  });

  const read = async (op: DeviceOp<Tensor> | Tensor): Promise<number[]> => [
    ...((await (await op).read()) as Iterable<number>),
  ];

  test('one output has lengths near those of a thread and a block', async () => {
    for (const n of [1, 2, 3, 4, 5, 7, 8, 1023, 1024, 1025, 5000]) {
      const x = Float32Array.from(range(n), (i) => i / 7);
      const { y } = await saxpy({ y: device.ones(f32, [n]), a: 2, x: device.tensor(f32, x) });
      expect(await y.read()).toEqual(x.map((each) => Math.fround(2 * each + 1)));
      y.close();
    }
  });

  test('use closes the tensors that the call and its operations made', async () => {
    using mine = await device.ones(f32, [8]);
    const made: Tensor[] = [];
    const values = await mixed({
      x: device.full(f32, [8], 2),
      bias: mine,
      half: device.ones(f16, [8]),
    }).andThen(({ out, x }) => {
      made.push(out as Tensor, x as Tensor);
      return out.read();
    });
    expect([
      [...(values as Float32Array)],
      made.map(({ isClosed }) => isClosed),
      mine.isClosed,
    ]).toEqual([Array<number>(8).fill(5), [true, true], false]);
  });

  test('nothing is written past the end', async () => {
    using whole = await device.full(f32, [64], 9);
    await saxpy({ y: whole.slice([16, 35]), a: 1, x: device.ones(f32, [19]) });
    expect(await read(whole)).toEqual(range(64).map((i) => (i >= 16 && i < 35 ? 10 : 9)));
    // Its address is not a multiple of 16 bytes.
    await saxpy({ y: whole.slice([3, 60]), a: 1, x: device.ones(f32, []) });
    expect(await read(whole)).toEqual(
      range(64).map((i) => (i >= 16 && i < 35 ? 11 : i >= 3 && i < 60 ? 10 : 9)),
    );
  });

  test('an output that is left out has the broadcast shape of the inputs', async () => {
    const given = {
      x: device.arange(f32, 6, { start: -3 }).map((x) => x.reshape([2, 3])),
      bias: device.tensor(f32, [1, 2, 3]),
      half: device.full(f16, [2, 1], 0.5),
    };
    const { out } = await mixed(given);
    expect(out.shape).toEqual([2, 3]);
    expect(await read(out)).toEqual([-1.5, -1, -0.5, 0.5, 2, 5.5]);
    expect(
      await read(
        mixed
          .with({ uses: { SLOPE: 2 } })(given)
          .map((each) => each.out as Tensor),
      ),
    ).toEqual([-6, -4, -2, 0.5, 2, 5.5]);
    out.close();
  });

  test('several outputs, structures, narrow dtypes', async () => {
    const { out, below, bytes } = await clip({
      x: device.arange(f32, 11, { start: -5 }),
      range: { low: -1, high: 3 },
    });
    expect(await read(out)).toEqual([-1, -1, -1, -1, -1, 0, 1, 2, 3, 3, 3]);
    expect(await read(below as Tensor)).toEqual([1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0]);
    expect(await read(bytes)).toEqual([251, 252, 253, 254, 255, 0, 1, 2, 3, 4, 5]);
    const { z, n } = await wide({ x: device.arange(f64, 9), k: device.arange(i64, 9) });
    expect(await read(z)).toEqual(range(9).map((i) => i / 3));
    expect(await read(n)).toEqual(range(9).map((i) => BigInt(3 * i)));
  });

  test('rint rounds to the nearest, ties to even', async () => {
    const rounded = elementKernel('rounded', { y: output(f32), x: input(f32) }, ({ x }, gpu) =>
      gpu.rint(x),
    );
    const { y } = await rounded({ x: device.tensor(f32, [0.5, 1.5, 2.5, -0.5, -1.5, 2.4, 2.6]) });
    expect(await read(y)).toEqual([0, 2, 2, -0, -2, 2, 3]);
  });

  test('index and coordinates', async () => {
    using out = await device.zeros(i32, [3, 5]);
    const { row } = await places({ out });
    expect(await read(out)).toEqual(range(15));
    expect(await read(row)).toEqual(range(15).map((i) => Math.floor(i / 5) * 1000 + (i % 5)));
    // The same with a view of another memory layout.
    using turned = await device.zeros(i32, [5, 3]);
    await places({ out: turned.transpose(), row: device.zeros(i32, [3, 5]) });
    expect(await read(turned)).toEqual(range(15).map((i) => (i % 3) * 5 + Math.floor(i / 3)));
  });

  test('any shapes that broadcast, and any views, are taken', { tags: 'random' }, async () => {
    const extent = fc.integer({ min: 1, max: 5 });
    await fc.assert(
      fc.asyncProperty(
        fc.array(extent, { maxLength: 4 }),
        fc.infiniteStream(fc.boolean()),
        fc.boolean(),
        async (shape, coins, reversed) => {
          const ones = shape.map((each) => (coins.next().value === true ? 1 : each));
          const count = (extents: readonly number[]): number => extents.reduce((a, b) => a * b, 1);
          using y = await device
            .arange(f32, count(shape))
            .map((each) => each.reshape(shape as [number]));
          using x = await device
            .arange(f32, count(ones))
            .map((each) => each.reshape(ones as [number]));
          const flip = reversed && shape.length > 0 ? ([[null, null, -1]] as never) : ([] as never);
          await saxpy({ y: y.slice(...flip), a: 100, x });
          const strides = (extents: readonly number[]): number[] =>
            extents.map((_, axis) => count(extents.slice(axis + 1)));
          const expected = range(count(shape)).map((i) => {
            const at = shape.map((each, axis) => Math.floor(i / strides(shape)[axis]!) % each);
            if (reversed && shape.length > 0) at[0] = shape[0]! - 1 - at[0]!;
            return (
              i +
              100 *
                ones.reduce(
                  (sum, each, axis) => sum + (each === 1 ? 0 : at[axis]! * strides(ones)[axis]!),
                  0,
                )
            );
          });
          expect(await read(y as unknown as Tensor)).toEqual(expected);
        },
      ),
      {
        numRuns: 60,
        examples: [[[5, 2, 3, 4], [true, false, true, false][Symbol.iterator]() as never, true]],
      },
    );
  });

  test('rows and columns can be multiples of a thread’s elements', async () => {
    for (const [rows, columns] of [
      [1, 8],
      [3, 4],
      [20, 132],
      [9, 512],
    ] as const) {
      const row = range(columns);
      const x = Float32Array.from(range(rows * columns), (i) => (i % 97) - 40);
      const bias = Float32Array.from(row, (i) => i % 5);
      const half = Float32Array.from(range(rows), (i) => i / 2);
      const { out } = await mixed({
        x: device.tensor(f32, x, [rows, columns]),
        bias: device.tensor(f32, bias),
        half: device.tensor(f16, half, [rows, 1]),
      });
      expect(await read(out)).toEqual([
        ...x.map((v, i) =>
          v < 0 ? 0.5 * v : v * v + bias[i % columns]! * half[Math.floor(i / columns)]!,
        ),
      ]);
      out.close();
    }
    const { row } = await places({
      out: device.zeros(i32, [3, 8]),
      row: device.zeros(i32, [3, 8]),
    });
    expect(await read(row)).toEqual(range(24).map((i) => Math.floor(i / 8) * 1000 + (i % 8)));
  });

  test('outputs that share elements, and other shapes and dtypes, are refused', async () => {
    using x = await device.ones(f32, [4]);
    expect(() => saxpy({ y: x, a: 1, x })).toThrow(
      "args.y of kernel 'saxpy' is written and overlaps args.x",
    );
    using both = await device.zeros(i32, [3, 5]);
    expect(() => places({ out: both, row: both.slice([null, null, -1]) })).toThrow(
      "args.out of kernel 'places' is written and overlaps args.row",
    );
    expect(() => saxpy({ y: x.broadcastTo([3, 4]), a: 1, x: 1 as never })).toThrow(
      CudaArgumentError,
    );
    expect(() => saxpy({ a: 1, x } as never)).toThrow(
      "args.y of kernel 'saxpy': expected a Tensor of f32 for inout(f32), got nothing",
    );
    expect(() => saxpy({ y: x, a: 1, z: x } as never)).toThrow(
      "kernel 'saxpy' has no parameter 'z'",
    );
    expect(
      (await failure(() => saxpy({ y: x, a: 1, x: device.ones(f32, [3]) }))).message,
    ).toContain(
      "args.x of kernel 'saxpy': expected a Tensor that broadcasts to [4], the shape of the " +
        'outputs',
    );
    expect((await failure(() => places({}))).message).toContain(
      "args.out of kernel 'places': expected a Tensor to write to, got undefined. It can be " +
        'left out where another tensor determines its shape.',
    );
    expect(
      (await failure(() => places({ out: device.zeros(i32, [2, 2]), row: device.zeros(i32, [4]) })))
        .message,
    ).toContain('outputs have one shape');
  });

  test('a store, another thread and another result type are errors with their line', async () => {
    const store = elementKernel('store', { y: inout(f32), x: input(f32) }, ({ y, x }) => {
      // @ts-expect-error: an element is a number
      y[x] = 1;
      return y;
    });
    const thread = elementKernel(
      'thread',
      { y: inout(f32) },
      // @ts-expect-error: element kernels have no threads
      ({ y }, gpu) => y + gpu.threadIdx.x,
    );
    const type = elementKernel('type', { y: output(i32), x: input(f32) }, ({ x }) => x * 2);
    // @ts-expect-error: the body returns nothing
    const nothing = elementKernel('nothing', { y: output(i32) }, () => {
      /* nothing */
    });
    for (const [made, code, message] of [
      [store, 'y[x] = 1', 'This cannot be assigned to: y[x] belongs to a number (f32)'],
      [thread, 'gpu.threadIdx', 'There is no gpu.threadIdx in an element kernel'],
      [type, 'x * 2', 'gpu.i32'],
      [
        nothing,
        "'nothing', { y: output(i32) }, () => {",
        'The body returns nothing, and y takes its element from what it returns',
      ],
    ] as const) {
      const error = await failure(() => made.prepare(device));
      expect(error).toBeInstanceOf(CudaCompileError);
      expect(error.message).toContain(message);
      expect(error.message).toContain(code);
      expect(error.message).toContain('element-kernels.test.ts');
      expect(error.message).not.toContain('$');
    }
  });

  test('contiguous tensors are accessed 16 bytes at a time', async () => {
    const text = await saxpy.ptx({ capability: [9, 0] });
    if (device.kind === 'cpu')
      expect(await failure(() => saxpy.sass(device))).toMatchObject({
        code: 'ERR_CUDA_UNSUPPORTED',
      });
    expect(text.match(/ld\.global\S*\.v4\.\S+/g)).toHaveLength(2);
    expect(text.match(/st\.global\S*\.v4\.\S+/g)).toHaveLength(1);
    // Branches in the body stay between them.
    const branches = await elementKernel('branches', { y: output(f32), x: input(f32) }, ({ x }) =>
      x > 1 ? Math.exp(x) : Math.sin(x),
    ).ptx({ capability: [9, 0] });
    expect(branches.match(/(ld|st)\.global\S*\.v4\.\S+/g)).toHaveLength(2);
  });

  test('simulation has the same results', async () => {
    const x = Float32Array.from(range(30), (i) => i - 7);
    const { out } = await mixed({
      out: device.zeros(f32, [10, 3]),
      x: device.tensor(f32, x, [10, 3]),
      bias: device.tensor(f32, [1, 2, 3]),
      half: device.ones(f16, []),
    });
    const simulated = await mixed.simulate({
      out: { data: new Float32Array(30), shape: [10, 3] },
      x: { data: x, shape: [10, 3] },
      bias: Float32Array.of(1, 2, 3),
      half: Float32Array.of(1),
    });
    expect([...simulated.out.data]).toEqual(await read(out));
  });

  test('simulation refuses what a call refuses', async () => {
    const copied = elementKernel('copied', { y: output(f32), x: input(f32) }, ({ x }) => x);
    const x = new Float32Array(4);
    expect((await failure(() => copied.simulate({ y: x, x }))).message).toContain(
      "args.y of kernel 'copied' is written and overlaps args.x: Float32Array(4) and " +
        'Float32Array(4)',
    );
    expect((await failure(() => copied.simulate({ y: x, x: 'four' as never }))).message).toBe(
      "args.x of kernel 'copied': expected a typed array, or { data, shape }, got 'four'.",
    );
    expect(
      await failure(() => saxpy.simulate({ y: x, a: 1n as never, x: new Float32Array(4) })),
    ).toBeInstanceOf(CudaArgumentError);
  });
});
