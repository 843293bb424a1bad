/** Which elements a tile kernel reads and writes, and in which order its threads do so. */
import {
  CudaCompileError,
  Device,
  elementKernel,
  f32,
  i32,
  inout,
  input,
  output,
  tileKernel,
} from 'async-cuda';
import type { DeviceOp, Tensor } from 'async-cuda';
import * as fc from '../fast-check.js';
import { beforeAll, expect, test } from 'vitest';

import { failure, onCpu, onDevice, range } from '../core/test-device.js';
import { columns, scaled } from './tile-kernels.test-support.js';

onDevice('Accesses of tile kernels', (host) => {
  let device: Device;
  beforeAll(() => {
    device = Device.of(host.device);
  });

  const read = async (op: DeviceOp<Tensor> | Tensor): Promise<number[]> => [
    ...((await (await op).read()) as Iterable<number>),
  ];

  // Section 3 of the paper on cuda-async: a kernel that permutes writes through an index that it
  // computes, and two threads may compute the same one. Here no body has an index to write through,
  // and no tensor is written in two places at once.
  test('a permutation through computed indices cannot be written', async () => {
    const byIndex = tileKernel(
      'permute',
      { y: output(f32), x: input(f32), p: input(i32) },
      ({ y, x, p }) => {
        // @ts-expect-error: a tensor of a tile kernel has no elements to assign
        y[p.load()] = x.load();
      },
      { tile: [1, 64] },
    );
    const byPlace = tileKernel(
      'permute',
      { y: output(f32), x: input(f32), p: input(i32) },
      ({ y, x, p }) => {
        // @ts-expect-error: store takes what is written, and no place
        y.store(x.load(), p.load());
      },
      { tile: [1, 64] },
    );
    const byThread = tileKernel(
      'permute',
      { y: output(f32), x: input(f32) },
      ({ y, x }, tile) => {
        // @ts-expect-error: there are no threads
        y.store(x.load() + tile.threadIdx.x);
      },
      { tile: [1, 64] },
    );
    const byAtomic = tileKernel(
      'permute',
      { y: inout(f32), x: input(f32) },
      ({ y, x }, tile) => {
        // @ts-expect-error: tile kernels have no atomics
        tile.atomicAdd(y, 0, x.load());
      },
      { tile: [1, 64] },
    );
    const byRead = tileKernel(
      'permute',
      { y: output(f32), x: input(f32), p: input(i32) },
      ({ y, x, p }) => {
        // @ts-expect-error: an element that is read is not a place
        y.store(x.load()[p.load()]);
      },
      { tile: [1, 64] },
    );
    using x = await device.arange(f32, 64);
    const p = await device.zeros(i32, [64]);
    for (const [permute, args, code] of [
      [byIndex, { x, p }, 'y[p.load()] = x.load()'],
      [byPlace, { x, p }, 'y.store(x.load(), p.load())'],
      [byThread, { x }, 'tile.threadIdx'],
      [byAtomic, { y: device.zeros(f32, [64]), x }, 'tile.atomicAdd'],
      [byRead, { x, p }, 'x.load()[p.load()]'],
    ] as const) {
      const error = await failure(() =>
        (permute as unknown as (given: unknown) => DeviceOp<unknown>)(args),
      );
      expect(error).toBeInstanceOf(CudaCompileError);
      expect(error.message).toContain(code);
      expect(error.message).toContain('tile-accesses.test.ts');
    }
    const element = elementKernel(
      'permute',
      { y: inout(f32), x: input(f32), p: input(i32) },
      ({ y, x, p }) => {
        // @ts-expect-error: an element is a number, without elements of its own
        y[p] = x;
        return y;
      },
    );
    expect((await failure(() => element({ y: device.zeros(f32, [64]), x, p }))).message).toContain(
      'y[p]',
    );
    // Two names of one memory are refused, and so is an output whose own elements lie in one place.
    expect(() => scaled({ y: x, x, by: 1 })).toThrow(
      "args.y of kernel 'scaled' is written and overlaps args.x",
    );
    expect(() =>
      columns({ most: x.slice([0, 32]), least: x.slice([16, 48]), x: p as never }),
    ).toThrow("args.x of kernel 'columns': expected a Tensor of f32");
    expect(() => columns({ most: x.slice([0, 32]), least: x.slice([16, 48]) } as never)).toThrow(
      'args.x',
    );
    expect(() => scaled({ y: x.broadcastTo([3, 64]), x: device.ones(f32, [64]), by: 1 })).toThrow(
      'lie in the same place',
    );
    p.close();
  });

  test('every element of an output is written by one thread', { tags: 'random' }, async () => {
    const counted = tileKernel('counted', { y: inout(i32) }, ({ y }) => y.store(y.load() + 1), {
      tile: [3, 5],
    });
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 9 }),
        fc.integer({ min: 1, max: 40 }),
        fc.integer({ min: 1, max: 9 }),
        fc.integer({ min: 1, max: 33 }),
        async (rows, length, down, across) => {
          using y = await device.zeros(i32, [rows, length]);
          await counted.with({ tile: [down, across] })({ y });
          expect((await read(y)).every((each) => each === 1)).toBe(true);
        },
      ),
      { numRuns: 20 },
    );
  });

  test('no thread reads what another may be writing', async () => {
    const kernels = [
      tileKernel(
        'above',
        { y: inout(f32) },
        ({ y }, tile) => {
          const v = y.load();
          y.store(v - tile.max(v, 1));
        },
        { tile: [4, 64] },
      ),
      tileKernel(
        'twice',
        { y: inout(f32) },
        ({ y }, tile) => {
          y.store(y.load() * 0.5);
          y.store(y.load() - tile.max(y.load(), 1));
        },
        { tile: [4, 64] },
      ),
    ];
    for (const [at, made] of kernels.entries()) {
      await using checked = await Device.open(onCpu ? 'cpu' : 'cuda', onCpu ? { check: true } : {});
      using y = await checked.arange(f32, 9 * 41).map((each) => each.reshape([9, 41]));
      await made({ y });
      expect(await read(y as unknown as Tensor)).toEqual(
        range(9 * 41).map((i) => ((i % 41) - 40) * (at === 0 ? 1 : 0.5)),
      );
    }
  });

  // Each shape: that of the output, and that of the tile.
  const smaller = [
    [
      [1, 1],
      [32, 32],
    ],
    [
      [32, 1],
      [32, 64],
    ],
    [
      [8, 1],
      [8, 256],
    ],
    [
      [16, 1],
      [16, 128],
    ],
    [
      [4, 1],
      [4, 1024],
    ],
    [
      [1, 4],
      [256, 4],
    ],
    [
      [1, 64],
      [64, 64],
    ],
    [
      [31, 1],
      [31, 32],
    ],
  ] as const;
  const signature = { s: inout(f32), y: output(f32), x: input(f32) };

  test(
    'elements that all threads along an axis read are ordered with their writes',
    { tags: 'thorough' },
    async () => {
      const before = tileKernel(
        'before',
        signature,
        ({ s, y, x }) => {
          const a = s.load();
          s.store(a * 2 + 1);
          y.store(x.load() + a);
        },
        { tile: [null, null] },
      );
      const after = tileKernel(
        'after',
        signature,
        ({ s, y, x }) => {
          s.store(s.load() + 1);
          y.store(x.load() + s.load());
          s.store(0);
        },
        { tile: [null, null] },
      );
      await using checked = await Device.open(onCpu ? 'cpu' : 'cuda', onCpu ? { check: true } : {});
      for (const on of [device, checked]) {
        for (const [own, shape] of smaller) {
          using s = await on.full(f32, own, 5);
          using x = await on.zeros(f32, shape);
          using y = await on.zeros(f32, shape);
          await before({ s, y, x });
          expect([own, new Set(await read(y)), new Set(await read(s))]).toEqual([
            own,
            new Set([5]),
            new Set([11]),
          ]);
          await after({ s, y, x });
          expect([own, new Set(await read(y)), new Set(await read(s))]).toEqual([
            own,
            new Set([12]),
            new Set([0]),
          ]);
        }
      }
    },
  );

  test(
    'a sum that is stored along an axis is visible to all threads',
    { tags: 'thorough' },
    async () => {
      const kept = tileKernel(
        'kept',
        signature,
        ({ s, y, x }, tile) => {
          s.store(tile.sum(x.load(), 0));
          y.store(x.load() + s.load());
        },
        { tile: [null, null] },
      );
      const gathered = tileKernel(
        'gathered',
        signature,
        ({ s, y, x }, tile) => {
          for (const part of tile.over('rows')) {
            y.store(s.load(), part);
            s.store(s.load() + tile.sum(x.load(part), 0));
          }
        },
        { tile: [{ walk: 32 }, null] },
      );
      await using checked = await Device.open(onCpu ? 'cpu' : 'cuda', onCpu ? { check: true } : {});
      for (const on of [device, checked]) {
        using s = await on.zeros(f32, [1, 64]);
        using x = await on.ones(f32, [64, 64]);
        using y = await on.zeros(f32, [64, 64]);
        await kept({ s, y, x });
        expect([new Set(await read(y)), new Set(await read(s))]).toEqual([
          new Set([65]),
          new Set([64]),
        ]);
        await gathered({ s, y, x });
        expect([await read(y), new Set(await read(s))]).toEqual([
          range(64 * 64).map((i) => (i < 32 * 64 ? 64 : 96)),
          new Set([128]),
        ]);
      }
    },
  );
});
