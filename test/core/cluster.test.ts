/**
 * Clusters of thread blocks: kernels from nvcc whose blocks reach into each other's shared memory
 * and wait for each other.
 */
import { readFileSync } from 'node:fs';
import { CudaError, i32 } from 'async-cuda/core';
import type { Kernel } from 'async-cuda/core';
import { beforeEach, expect, test } from 'vitest';
import { failure, onDevice } from './test-device.js';

const CLUSTERS = readFileSync(new URL('./kernels/clusters.ptx', import.meta.url), 'utf8');
const integers = (length: number, value: (i: number) => number): Int32Array =>
  Int32Array.from({ length }, (_, i) => value(i));

onDevice('clusters', (host) => {
  beforeEach((context) => {
    if (!host.device.properties.clusterLaunch) context.skip();
  });
  const kernel = async (name: string): Promise<Kernel> => (await host.load(CLUSTERS)).kernel(name);

  /** Runs a kernel whose first argument is `length` integers that it writes. */
  async function written(
    name: string,
    length: number,
    grid: number | [number, number],
    block: number,
    ...args: number[]
  ): Promise<number[]> {
    using out = host.device.alloc(i32, length);
    out.fill(host.stream, -1);
    (await kernel(name)).launch(host.stream, { grid, block }, out, ...args);
    return [...(await out.read(host.stream))];
  }

  test.each([1, 2, 4, 8])('a histogram in the shared memory of %i blocks', async (blocks) => {
    const bins = 1000;
    const n = 20_000;
    const values = integers(n, (i) => Math.imul(i, 2654435761) >>> 8).map((v) => v % bins);
    const expected = new Int32Array(bins);
    for (const v of values) expected[v]!++;
    using input = host.device.alloc(i32, n);
    using output = host.device.alloc(i32, bins);
    input.write(host.stream, values);
    output.fill(host.stream, 0);
    const share = Math.ceil(bins / blocks);
    (await kernel('histogram')).launch(
      host.stream,
      { grid: 16, block: 128, sharedBytes: share * 4, cluster: blocks },
      input,
      n,
      output,
      share,
    );
    expect([...(await output.read(host.stream))]).toEqual([...expected]);
  });

  test('a ring of four blocks, round after round', async () => {
    const rounds = 9;
    let cells = integers(8 * 96, (i) => Math.floor(i / 96) * 1000 + (i % 96));
    for (let round = 0; round < rounds; round++) {
      const before = cells;
      cells = before.map((value, i) => {
        const block = Math.floor(i / 96);
        const next = (block & ~3) + ((block + 1) % 4);
        return (value + Math.imul(before[next * 96 + (i % 96)]!, round + 1)) | 0;
      });
    }
    expect(await written('ring', cells.length, 8, 96, rounds)).toEqual([...cells]);
  });

  test('blocks of a cluster of 2 by 2 have their coordinates, and add to one cell', async () => {
    const [gx, gy] = [4, 6];
    const expected = [];
    for (let y = 0; y < gy; y++) {
      for (let x = 0; x < gx; x++) {
        const rank = (x % 2) + 2 * (y % 2);
        const sum = rank === 0 ? 3 * 10 * (1 + 2 + 3 + 4) : rank === 3 ? 7003 : 0;
        expected.push(
          x % 2,
          y % 2,
          0,
          2,
          2,
          1,
          rank,
          4,
          x >> 1,
          y >> 1,
          gx / 2,
          gy / 2,
          2,
          rank * 32,
          sum,
          1,
        );
      }
    }
    expect(await written('places', 16 * gx * gy, [gx, gy], 32)).toEqual(expected);
  });

  test("blocks arrive at barriers in each other's shared memory", async () => {
    const laps = 5;
    const expected = [];
    let cell = 0;
    for (let turn = 0; turn < 3 * laps; turn++) {
      cell = cell * 3 + (turn % 3) + 1;
      if (turn >= 3 * (laps - 1)) expected.push(cell);
    }
    expect(await written('relay', 6, 6, 64, laps)).toEqual([...expected, ...expected]);
  });

  test.each([0b1111, 0b0001, 0b1010, 0b0110])(
    'a copy to the blocks of the mask %i, and words that are counted where they come',
    async (mask) => {
      const values = integers(128, (i) => i * 7 - 100);
      using input = host.device.alloc(i32, 128);
      using output = host.device.alloc(i32, 8 * 68);
      input.write(host.stream, values);
      (await kernel('copies')).launch(host.stream, { grid: 8, block: 64 }, input, output, mask);
      const expected = [];
      for (let block = 0; block < 8; block++) {
        const first = block & ~3;
        for (let i = 0; i < 64; i++)
          expected.push((mask >> (block % 4)) & 1 ? values[16 * first + i]! : -1);
        for (let i = 0; i < 4; i++) expected.push(block % 4 === 3 ? (first + i) * 5 : -1);
      }
      expect([...(await output.read(host.stream))]).toEqual(expected);
    },
  );

  test('a cluster barrier does not wait for threads that have exited', async () => {
    const sum = Array.from({ length: 3000 }, (_, i) => i).reduce(
      (now, i) => (Math.imul(now, 5) + i) | 0,
      0,
    );
    const expected = [
      ...integers(
        128,
        (i) => (((i >> 5) ^ 1) + 1) * 100 + ((i >> 5) % 2 === 1 && sum === 12345 ? 1 : 0),
      ),
    ];
    expect(await written('leavers', 128, 4, 64)).toEqual(expected);
  });

  test('a launch has many clusters', async () => {
    const found = await written('ring', 4000 * 96, 4000, 96, 2);
    const cell = (block: number, i: number): number => block * 1000 + i;
    const next = (block: number): number => (block & ~3) + ((block + 1) % 4);
    const once = (block: number, i: number): number => cell(block, i) + cell(next(block), i);
    const wrong = found.findIndex((value, i) => {
      const [block, thread] = [Math.floor(i / 96), i % 96];
      return value !== once(block, thread) + 2 * once(next(block), thread);
    });
    expect(wrong).toBe(-1);
  });

  test('clusters of a wrong shape, size or grid are refused', async () => {
    const ring = await kernel('ring');
    using out = host.device.alloc(i32, 12 * 96);
    const options = { block: 96 };
    expect(
      await failure(() => ring.launch(host.stream, { ...options, grid: 8, cluster: 2 }, out, 1)),
    ).toBeInstanceOf(CudaError);
    expect(
      await failure(() => ring.launch(host.stream, { ...options, grid: 6 }, out, 1)),
    ).toBeInstanceOf(CudaError);
    const histogram = await kernel('histogram');
    expect(
      await failure(() =>
        histogram.launch(
          host.stream,
          { grid: 32, block: 32, sharedBytes: 4, cluster: 32 },
          out,
          0,
          out,
          1,
        ),
      ),
    ).toBeInstanceOf(CudaError);
  });
});
