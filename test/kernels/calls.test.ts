/**
 * Calls of kernels: refused arguments and their errors, inference, results. The compiler is a
 * stand-in.
 */
import type { Tensor } from 'async-cuda';
import {
  CudaArgumentError,
  CudaDisposedError,
  Device,
  bool,
  f32,
  i32,
  i64,
  inout,
  input,
  kernel,
  output,
  struct,
  u8,
  value,
  zip,
} from 'async-cuda';
import { inspect } from 'node:util';
import { beforeAll, describe, expect, test, vi } from 'vitest';

import { failure, onDevice, openTestDevice } from '../core/test-device.js';
import { SCALE } from './stand-in-compiler.js';

vi.mock('../../src/kernels/compiler.js', () => import('./stand-in-compiler.js'));

const Body = struct({ x: f32, id: i64, alive: bool });
const scale = kernel('scale', { y: inout(f32), a: f32 }, ({ y, a }, gpu) => {
  y[gpu.globalId.x] = a * y[gpu.globalId.x]!;
});
// Arguments are refused before the kernel is compiled.
const add = kernel(
  'add',
  { sum: output(f32), left: input(f32), right: input(f32) },
  () => undefined,
);
const plane = kernel(
  'plane',
  { out: output(f32, 2), count: i32, wide: i64, flag: bool, body: Body, bodies: input(Body) },
  () => undefined,
);
const nothing = kernel('nothing', { x: input(f32) }, () => undefined);

onDevice('Calls of kernels', (host) => {
  let device: Device;
  beforeAll(() => {
    device = Device.of(host.device);
  });

  test('resolve to their arguments, by name; operations run before', async () => {
    const made = scale({ y: device.ones(f32, [2, 3]), a: value(5) });
    const { y, a } = await made;
    expect([y.shape, a, [...(await y.read())]]).toEqual([[2, 3], 5, [5, 5, 5, 5, 5, 5]]);
    y.close();
    expect(inspect(made)).toMatch(/^DeviceOp scale\(…\) on .*, run once$/);
  });

  test('run with each await, and can be chained', async () => {
    using y = await device.ones(f32, [1000]);
    const twice = scale({ y, a: 2 });
    await twice;
    expect([
      ...new Set(
        await twice
          .andThen((given) => scale({ y: given.y, a: 3 }))
          .andThen((given) => given.y.read()),
      ),
    ]).toEqual([12]);
  });

  test('are captured in graphs, also where the kernel is not loaded yet', async () => {
    using y = await device.ones(f32, [10]);
    const other = scale.with({ block: 32, index: 'i32' });
    await using graph = await other({ y, a: 2 }).capture();
    await graph.replay();
    await graph.replay();
    expect((await y.read())[9]).toBe(4);
  });

  test('state that can change after the call is checked at the run, in any order', async () => {
    using x = await device.ones(f32, [8]);
    const closed = await device.ones(f32, [8]);
    const [reads, writes] = [
      add({ sum: x, left: closed, right: closed }),
      scale({ a: 2, y: closed }),
    ];
    closed.close();
    for (const call of [reads, writes])
      expect(await failure(() => call)).toBeInstanceOf(CudaDisposedError);
    using parts = await device.ones(f32, [8]);
    const [tiles, other] = [parts.partition([4]), x.partition([4])];
    const [written, read] = [
      scale({ y: tiles, a: 2 }, { block: 2 }),
      kernel(
        'reads',
        { y: inout(f32), x: input(f32) },
        () => undefined,
      )({ y: tiles, x: other }, { block: 2 }),
    ];
    other.unpartition();
    expect((await failure(() => read)).message).toContain('used after unpartition()');
    tiles.unpartition();
    expect((await failure(() => written)).message).toContain('used after unpartition()');
    const body = { x: 1, id: 2, alive: true };
    const structured = kernel(
      'structured',
      { y: inout(f32), body: Body },
      () => undefined,
    )({ y: x, body });
    (body as { x: unknown }).x = 'one';
    expect((await failure(() => structured)).message).toContain(
      "args.body of kernel 'structured'.x: expected a number for f32, got 'one'",
    );
    // In another order, and with inherited properties.
    using y = await device.ones(f32, [4]);
    await scale({ a: 3, y });
    await scale(Object.assign(Object.create({ a: 5 }) as { a: number }, { y }));
    expect([...(await y.read())]).toEqual([15, 15, 15, 15]);
  });

  test('views are written in place, and nothing around them', async () => {
    using y = await device.ones(f32, [4, 3]);
    await scale({ y: y.slice([1, 3]), a: 7 });
    expect([...(await y.read())]).toEqual([1, 1, 1, 7, 7, 7, 7, 7, 7, 1, 1, 1]);
  });

  test('an empty output launches nothing', async () => {
    using y = await device.zeros(f32, [0, 4]);
    expect((await scale({ y, a: 2 })).y).toBe(y);
  });

  test('a partition determines the grid', async () => {
    using y = await device.ones(f32, [8]);
    using tiles = y.partition([4]);
    await scale({ y: tiles, a: 2 }, { block: 2 });
    // Two blocks of two threads: the kernel counts threads, not tiles.
    tiles.unpartition();
    expect([...(await y.read())]).toEqual([2, 2, 2, 2, 1, 1, 1, 1]);
  });

  test('there are at least as many threads as elements, or as many as requested', async () => {
    using y = await device.ones(f32, [8]);
    await scale({ y, a: 2 }, { grid: 1, block: 3 });
    expect([...(await y.read())]).toEqual([2, 2, 2, 1, 1, 1, 1, 1]);
  });

  test('run by a blocked thread, they compile and load the kernel', async () => {
    const other = kernel('scale', { y: inout(f32), a: f32 }, ({ y, a }) => {
      y[0] = a + 1;
    });
    using y = await device.ones(f32, [8]);
    expect(other({ y, a: 3 }).sync().y.read().sync()[0]).toBe(3);
    // Another wait for the same kernel meanwhile is not affected.
    const third = kernel('scale', { y: inout(f32), a: f32 }, ({ y, a }) => {
      y[0] = a + 2;
    });
    const waiting = third({ y, a: 5 }).run();
    expect(third({ y, a: 7 }).sync().y).toBe(y);
    await waiting;
    expect(y.read().sync()[0]).toBe(105);
  });

  test('a tensor of another device', async () => {
    await using other = Device.of(
      await openTestDevice({}, host.device.kind === 'cpu' ? 'cpu:1' : 'cpu'),
    );
    using here = await device.ones(f32, [4]);
    using there = await other.ones(f32, [4]);
    const error = await failure(() => add({ sum: here, left: there, right: here.slice([0, 0]) }));
    expect(error.message).toMatch(
      /^args\.left of kernel 'add': expected a Tensor on \w+:0, where the kernel runs, got Tensor/,
    );
    expect(error.message).toMatch(/<f32, \[4\]> on cpu:\d\. Copy it with to\(device\) first\.$/);
  });

  test('outputs that overlap another argument', async () => {
    using m = await device.ones(f32, [4, 4]);
    const column = (from: number): Tensor<'f32', number[]> =>
      m.slice([null, null], [from, from + 1]) as never;
    const message = (await failure(() => add({ sum: m, left: m, right: m }))).message;
    expect(message).toMatch(
      /^args\.sum of kernel 'add' is written and overlaps args\.left: Tensor<f32, \[4, 4\]> on /,
    );
    expect(message).toMatch(
      / and Tensor<f32, \[4, 4\]> on [^.]*\. Pass tensors that share no elements; /,
    );
    expect(message).toMatch(/; copy one with dup\(\) where they have to\.$/);
    expect(
      (
        await failure(() =>
          add({ sum: m.slice([0, 2]), left: m.slice([1, 3]), right: m.slice([2, 4]) }),
        )
      ).message,
    ).toContain('overlaps args.left');
    // Where operations give the tensors, the check is at the run.
    expect(
      (await failure(() => add({ sum: value(m), left: value(m), right: m }))).message,
    ).toContain('overlaps args.left');
    // Columns of one matrix share no element, though their memory runs past each other.
    const copy = kernel('copy', { to: output(f32, 2), from: input(f32, 2) }, () => undefined);
    expect(() => copy({ to: column(0), from: column(1) })).not.toThrow();
    expect(() => copy({ to: column(0), from: column(0) })).toThrow('overlaps args.from');
  });

  test.each<[string, (x: Tensor<'f32', [8]>, y: Tensor<'f32', [2, 2]>) => unknown, string]>([
    [
      'a missing argument',
      (x) => add({ sum: x, left: x } as never),
      "args.right of kernel 'add': expected a Tensor of f32 for input(f32), got nothing. It " +
        'is add({ sum, left, right }).',
    ],
    [
      'an unknown argument',
      (x) => add({ sum: x, left: x, rihgt: x } as never),
      "args.rihgt: kernel 'add' has no parameter 'rihgt'. Did you mean 'right'?",
    ],
    ['arguments in a row', (x) => add(x as never), 'Write add({ sum, left, right }).'],
    [
      'an array',
      (x) => add({ sum: x, left: new Float32Array(8), right: x } as never),
      "args.left of kernel 'add': expected a Tensor of f32 for input(f32), got " +
        'Float32Array(8). Copy it to the device first: device.tensor(f32, array).',
    ],
    [
      'a buffer',
      (x) => add({ sum: x.buffer, left: x, right: x } as never),
      'Write Tensor.of(buffer, [length]).',
    ],
    [
      'a promise',
      (x) => add({ sum: Promise.resolve(x), left: x, right: x } as never),
      'Await the promise first, or pass the operation itself.',
    ],
    [
      'a step between elements',
      (x) => add({ sum: x.slice([null, null, 2]), left: x, right: x } as never),
      "args.sum of kernel 'add': expected a contiguous Tensor, got Tensor<f32, [4]> on ",
    ],
    [
      'a broadcast view that is written',
      (x) => add({ sum: x.slice([0, 1]).broadcastTo([4]), left: x, right: x } as never),
      "args.sum of kernel 'add' is written: elements of ",
    ],
    ['another number of axes', (x) => plane({ out: x } as never), 'expected'],
    [
      'an unknown option',
      (x) => scale({ y: x, a: 1 }, { gird: 1 } as never),
      "options: there is no option 'gird'. Did you mean 'grid'?",
    ],
    [
      'a grid of nothing',
      (x) => scale({ y: x, a: 1 }, { grid: 0 }),
      'options.grid: expected a whole number from 1 to 2147483647 (blocks), got 0.',
    ],
    [
      'a block of nothing',
      (x) => scale({ y: x, a: 1 }, { block: 0 }),
      'options.block: expected a whole number of at least 1 (threads), got 0.',
    ],
    [
      'a block of four axes',
      (x) => scale({ y: x, a: 1 }, { block: [1, 1, 1, 1] as never }),
      'options.block: expected a number or an array of one to three numbers',
    ],
    [
      'text for a number',
      (x) => scale({ y: x, a: '1' } as never),
      "args.a of kernel 'scale': expected a number for f32, got '1'.",
    ],
  ])('%s is refused at the call', async (_, call, message) => {
    using x = await device.ones(f32, [8]);
    using y = await device.ones(f32, [2, 2]);
    expect(() => call(x, y)).toThrow(CudaArgumentError);
    expect(() => call(x, y)).toThrow(message);
  });

  test('each scalar has its type', async () => {
    using out = await device.zeros(f32, [2, 2]);
    using bodies = await device.zeros(u8, [48]);
    const args = {
      out,
      count: 1,
      wide: 2,
      flag: true,
      body: { x: 1, id: 2n, alive: false },
      bodies,
    };
    expect(() => plane(args)).not.toThrow();
    const refused = (changes: object): string => {
      try {
        plane({ ...args, ...changes });
      } catch (error) {
        return (error as Error).message.replace("of kernel 'plane'", '');
      }
      throw new Error('it was taken');
    };
    expect(refused({ count: 1.5 })).toBe(
      'args.count : expected a whole number for i32, from -2147483648 to 2147483647, got 1.5.',
    );
    expect(refused({ count: 2 ** 31 })).toContain('got 2147483648.');
    expect(refused({ wide: 2 ** 60 })).toContain('Beyond 2^53 pass a bigint.');
    expect(refused({ wide: 1n << 63n })).toContain('got 9223372036854775808n.');
    expect(refused({ flag: 1 })).toContain('expected true or false, got 1. Write true.');
    expect(refused({ body: { x: 1, id: 2 } })).toContain(
      'args.body .alive: expected true or false, got undefined.',
    );
    expect(refused({ body: { x: 1, id: 2, alive: true, z: 1 } })).toContain(
      'args.body .z: expected no other fields than x, id, alive, got 1.',
    );
    expect(refused({ out: bodies })).toMatch(
      /^args\.out : expected a Tensor of f32, got Tensor<u8, \[48\]> on .* Convert it with /,
    );
    expect(refused({ out: bodies })).toMatch(
      / Convert it with convert\(f32\), or declare the parameter as u8\.$/,
    );
    expect(refused({ out: out.reshape([4]) })).toMatch(
      /^args\.out : expected a Tensor of 2 axes, .* with reshape\(\[…\]\) or unsqueeze\(axis\)\.$/,
    );
    expect(refused({ bodies: out })).toContain(
      'expected a Tensor of u8, whose bytes are the structures',
    );
    expect(refused({ bodies: bodies.slice([0, 47]) })).toContain('a multiple of 24');
    expect(refused({ bodies: bodies.slice([4, 28]) })).toContain('begins at a multiple of 8 bytes');
  });

  test('closed tensors', async () => {
    const y = await device.ones(f32, [8]);
    const op = scale({ y, a: 2 });
    y.close();
    expect(() => scale({ y, a: 2 })).toThrow(CudaDisposedError);
    expect(() => scale({ y, a: 2 })).toThrow("args.y of kernel 'scale': Tensor<f32, [8]>");
    expect(await failure(() => op)).toBeInstanceOf(CudaDisposedError);
  });

  test('the results of operations are checked at the run', async () => {
    using y = await device.ones(i32, [8]);
    expect((await failure(() => scale({ y: value(y) as never, a: 2 }))).message).toContain(
      "args.y of kernel 'scale': expected a Tensor of f32, got Tensor<i32, [8]>",
    );
    expect(
      (await failure(() => zip(scale({ y: device.ones(f32, [2]), a: value('x') as never }))))
        .message,
    ).toContain("args.a of kernel 'scale': expected a number for f32, got 'x'.");
  });

  test('without an output the grid has to be passed', async () => {
    using x = await device.ones(f32, [8]);
    expect((await failure(() => nothing({ x }))).message).toBe(
      "options.grid: expected the number of blocks of kernel 'nothing', got undefined. It is " +
        'inferred from the outputs only, and this kernel has none: write kernel(args, { grid ' +
        '}).',
    );
  });

  test('report has the driver’s attributes, and the occupancy', async () => {
    const report = await scale.report(device, { block: 128 });
    expect((await failure(() => scale.report(device, { block: 4096 }))).message).toContain(
      'options.block: expected at most 1024 threads',
    );
    expect(report).toMatchObject({
      device: device.name,
      block: 128,
      localBytes: 0,
      sharedBytes: 0,
      spillStoreBytes: 0,
      spillLoadBytes: 0,
    });
    expect(report.blocksPerMultiprocessor).toBeGreaterThan(0);
    expect(report.occupancy).toBeCloseTo(
      (report.blocksPerMultiprocessor * 128) / device.properties.maxThreadsPerMultiprocessor,
    );
    expect(await scale.ptx(device)).toBe(SCALE.ptx);
  });
});

describe('Definitions', () => {
  test.each<[string, () => unknown, string]>([
    [
      'a name that PTX has not',
      () => kernel('a b', {}, () => undefined),
      'name: expected the name of a kernel',
    ],
    [
      'a text for a dtype',
      () => kernel('k', { x: 'f32' } as never, () => undefined),
      "signature.x: expected a dtype, input(…), output(…), inout(…) or struct({…}), got 'f32'.",
    ],
    [
      'a struct of bytes',
      () => kernel('k', { x: struct(8) as never }, () => undefined),
      'signature.x: a structure of a kernel in TypeScript has to list its fields.',
    ],
    [
      'a bound function',
      () => kernel('k', {}, (() => undefined).bind(null)),
      'It is native or bound',
    ],
    [
      'a string among the uses',
      () => kernel('k', {}, () => undefined, { uses: { A: 'x' as never } }),
      'options.uses.A: expected a number, a bigint, a boolean, a list of them, or a ' +
        "function, got 'x'.",
    ],
    [
      'an option that there is not',
      () => kernel('k', {}, () => undefined, { blok: 1 } as never),
      "Did you mean 'block'?",
    ],
    [
      'another constant',
      () =>
        kernel('k', {}, () => undefined, { uses: { TILE: 1 } }).with({
          uses: { TYLE: 1 } as never,
        }),
      "kernel 'k' does not use 'TYLE'. Did you mean 'TILE'?",
    ],
    [
      'too many axes',
      () => input(f32, 5 as never),
      'rank: expected a number of axes from 1 to 4, got 5.',
    ],
    [
      'structures in rows',
      () => (input as (element: unknown, rank: number) => unknown)(Body, 2),
      'rank: expected 1 for a tensor of structures, got 2.',
    ],
  ])('%s', (_, define, message) => {
    expect(define).toThrow(CudaArgumentError);
    expect(define).toThrow(message);
  });

  test('are shown with their signature', () => {
    expect(inspect(plane)).toBe(
      'kernel plane({ out: output(f32, 2), count: i32, wide: i64, flag: bool, body: struct({ ' +
        'x: f32, id: i64, alive: bool }), bodies: input(struct({ x: f32, id: i64, alive: bool ' +
        '})) })',
    );
    expect(
      inspect(
        kernel('k', {}, () => undefined, { uses: { TILE: 16, list: [1, 2], f: (x: number) => x } }),
      ),
    ).toBe('kernel k({  }) with { TILE: 16, list: [2], f }');
    expect(scale.name).toBe('scale');
  });
});
