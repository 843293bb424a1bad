/**
 * Tuning and preparing of element and tile kernels over constants and tiles: choices are recorded,
 * and their results are checked before they are used.
 */
import { Device, elementKernel, f32, input, output, tileKernel } from 'async-cuda';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest';

import { failure, onDevice } from '../core/test-device.js';

const product = tileKernel(
  'product',
  { c: output(f32), a: input(f32), b: input(f32) },
  ({ c, a, b }, tile) => {
    let sum = 0;
    for (const part of tile.over('k')) sum = tile.dot(a.load(part), b.load(part), sum);
    c.store(sum * tile.SCALE);
  },
  {
    axes: { c: ['m', 'n'], a: ['m', 'k'], b: ['k', 'n'] },
    tile: { m: 16, n: 16, k: { walk: 8 } },
    uses: { SCALE: 1 },
  },
);

const scale = elementKernel('scale', { y: output(f32), x: input(f32) }, ({ x }, { BY }) => x * BY, {
  uses: { BY: 2 },
});

onDevice('Tuning of kernels without indices', (host) => {
  let folder: string;
  let device: Device;
  beforeAll(() => {
    device = Device.of(host.device);
  });
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'async-cuda-tuning-'));
    process.env['ASYNC_CUDA_CACHE_DIR'] = folder;
  });
  afterEach(async () => {
    delete process.env['ASYNC_CUDA_CACHE_DIR'];
    await rm(folder, { recursive: true, force: true, maxRetries: 10 });
  });
  const records = async (): Promise<string[]> =>
    (await readdir(folder)).filter((name) => name.endsWith('.tuning'));

  test(
    'the choice of tiles is recorded, and checked before it is used again',
    { tags: 'thorough' },
    async () => {
      using a = await device.ones(f32, [400, 24]);
      using b = await device.full(f32, [24, 200], 2);
      using c = await device.zeros(f32, [400, 200]);
      const candidates = [
        {},
        { tile: { m: 32, n: 32, k: { walk: 8 } } },
        { uses: { SCALE: 3 } },
      ] as const;
      const tuning = await product.tune({ c, a, b }, { candidates, rounds: 1 });
      expect(tuning.candidates.map(({ milliseconds }) => milliseconds !== undefined)).toEqual([
        true,
        true,
        false,
      ]);
      expect(String((tuning.candidates[2]!.error as Error).message)).toContain(
        "output 'c' of candidate 2 is not that of the first",
      );
      expect(new Set(await c.read())).toEqual(new Set([0]));
      await tuning.kernel({ c, a, b });
      expect(new Set(await c.read())).toEqual(new Set([48]));
      await vi.waitFor(async () => {
        expect(await records()).toHaveLength(1);
      });
      expect((await product.tune({ c, a, b }, { candidates, rounds: 1 })).recorded).toBe(true);
      // The first spends nearly all of its time on starting blocks, so that the second is chosen,
      // and compared when it is found.
      const unequal = [
        { tile: { m: 1, n: 1, k: { walk: 1 } } },
        { tile: { m: 32, n: 32, k: { walk: 8 } } },
      ] as const;
      expect((await product.tune({ c, a, b }, { candidates: unequal, rounds: 2 })).chosen).toBe(
        unequal[1],
      );
      await vi.waitFor(async () => {
        expect(await records()).toHaveLength(2);
      });
      const looked: string[] = [];
      const verify =
        (answer: boolean) =>
        (
          _expected: ArrayLike<number | bigint>,
          _actual: ArrayLike<number | bigint>,
          name: string,
        ): boolean => {
          looked.push(name);
          return answer;
        };
      expect(
        (await product.tune({ c, a, b }, { candidates: unequal, rounds: 1, verify: verify(true) }))
          .recorded,
      ).toBe(true);
      expect(looked).toEqual(['c']);
      // A choice that no longer has the first one's results is not taken from the disk.
      const again = await product.tune(
        { c, a, b },
        { candidates: unequal, rounds: 1, verify: verify(false) },
      );
      expect(again.recorded).toBe(false);
    },
  );

  test('constants of an element kernel are tuned with existing outputs', async () => {
    using x = await device.ones(f32, [1000]);
    using y = await device.zeros(f32, [1000]);
    const candidates = [{}, { uses: { BY: 2 } }, { uses: { BY: 5 } }];
    const { candidates: seen, kernel: tuned } = await scale.tune(
      { y, x },
      { candidates, rounds: 1 },
    );
    expect(seen.map(({ error }) => error === undefined)).toEqual([true, true, false]);
    expect(new Set(await tuned({ x }).andThen((made) => made.y.read()))).toEqual(new Set([2]));
    expect((await failure(() => scale.tune({ x }, { candidates }))).message).toContain(
      'An output that is left out would be made in each launch',
    );
  });

  test('they run on a blocked thread, prepared or not', async () => {
    using x = await device.ones(f32, [4, 12]);
    using row = await device.ones(f32, [12]);
    using y = await device.zeros(f32, [4, 12]);
    const added = elementKernel(
      'added',
      { y: output(f32), x: input(f32), row: input(f32) },
      ({ x, row }) => x + row,
    );
    await added.prepare(device, { y: [4, 12], x: [4, 12], row: [12] });
    added({ y, x, row }).sync();
    expect(new Set(await y.read())).toEqual(new Set([2]));
    const less = tileKernel(
      'less',
      { y: output(f32), x: input(f32), row: input(f32) },
      ({ y, x, row }, tile) => y.store(x.load() - row.load() * tile.max(x.load(), 1)),
      { tile: [2, null] },
    );
    less({ y, x, row }).sync();
    expect(new Set(await y.read())).toEqual(new Set([0]));
    using square = await device.ones(f32, [12, 12]);
    using c = await device.zeros(f32, [12, 12]);
    const other = product.with({ uses: { SCALE: 2 } });
    await other.prepare(device, { m: 12, n: 12, k: 12 });
    other({ c, a: square, b: square }).sync();
    expect(new Set(await c.read())).toEqual(new Set([24]));
    expect((await failure(() => other.prepare(device, { m: 12, n: 0, k: 12 }))).message).toContain(
      'shape: expected the length of each axis by name',
    );
    expect(
      (await failure(() => added.prepare(device, { y: [4, 12], x: [4, 12] } as never))).message,
    ).toContain('shapes.row: expected the shape of a tensor');
  });
});
