/** Launches of kernels, and the facts that a kernel has. */

import { i32, u32, u8 } from 'async-cuda/core';
import { describe, expect, test } from 'vitest';

import { ELEMENTWISE } from './kernels/elementwise.js';
import { THREADS } from './kernels/threads.js';
import { failure, onDeviceInEachMode, range } from './test-device.js';

onDeviceInEachMode('Kernel launches', (host) => {
  test.each([
    [1, 1],
    [3, 4],
    [[3], [4]],
    [
      [2, 3],
      [4, 2],
    ],
    [
      [2, 3, 2],
      [3, 2, 4],
    ],
    [
      [1, 1, 5],
      [1, 1, 7],
    ],
  ] as const)(
    'in a grid of %j and blocks of %j every thread has its indices',
    async (grid, block) => {
      const g = [...[grid].flat(), 1, 1] as number[];
      const b = [...[block].flat(), 1, 1] as number[];
      const threads = g[0]! * g[1]! * g[2]! * b[0]! * b[1]! * b[2]!;
      using out = host.device.alloc(u32, threads);
      out.fill(host.stream, 0xffffffff);
      (await host.load(THREADS))
        .kernel('who')
        .launch(host.stream, { grid: grid as never, block: block as never }, out);
      const expected: number[] = [];
      for (let bz = 0; bz < g[2]!; bz++)
        for (let by = 0; by < g[1]!; by++)
          for (let bx = 0; bx < g[0]!; bx++) {
            for (let tz = 0; tz < b[2]!; tz++)
              for (let ty = 0; ty < b[1]!; ty++)
                for (let tx = 0; tx < b[0]!; tx++) {
                  expected.push(tx | (ty << 4) | (tz << 8) | (bx << 16) | (by << 20) | (bz << 24));
                }
          }
      expect([...(await out.read(host.stream))]).toEqual(expected);
    },
  );

  test('threads of a block meet at a barrier', async () => {
    using source = host.device.alloc(u32, 2560);
    using sums = host.device.alloc(u32, 10);
    const values = Uint32Array.from(range(2560), (i) => (i * 7919) % 1000);
    source.write(host.stream, values);
    (await host.load(THREADS))
      .kernel('block_sum')
      .launch(host.stream, { grid: 10, block: 256 }, sums, source);
    const expected = range(10).map((block) =>
      values.subarray(block * 256, block * 256 + 256).reduce((a, b) => a + b, 0),
    );
    expect([...(await sums.read(host.stream))]).toEqual(expected);
  });

  test('blocks have the dynamic shared memory of the launch', async () => {
    using buffer = host.device.alloc(i32, 1024);
    buffer.write(host.stream, Int32Array.from(range(1024)));
    (await host.load(THREADS))
      .kernel('reverse_block')
      .launch(host.stream, { grid: 2, block: 512, sharedBytes: 2048 }, buffer);
    expect([...(await buffer.read(host.stream))]).toEqual(
      range(1024).map((i) => (i < 512 ? 511 - i : 1535 - i)),
    );
  });

  test('atomics of all threads add up', async () => {
    using bins = host.device.alloc(u32, 16);
    using values = host.device.alloc(u8, 10_000);
    bins.fill(host.stream, 0);
    const source = Uint8Array.from(range(10_000), (i) => (i * i) % 16);
    values.write(host.stream, source);
    (await host.load(THREADS))
      .kernel('histogram')
      .launch(host.stream, { grid: 40, block: 256 }, bins, values, 10_000);
    const expected = new Array<number>(16).fill(0);
    for (const value of source) expected[value]!++;
    expect([...(await bins.read(host.stream))]).toEqual(expected);
  });

  test('a kernel without parameters runs', async () => {
    await (
      await host.load(ELEMENTWISE)
    )
      .kernel('nothing')
      .launch(host.stream, { grid: 2, block: 2 });
  });

  test('a cooperative launch runs', async () => {
    using buffer = host.device.alloc(i32, 32);
    buffer.fill(host.stream, 1);
    (await host.load(ELEMENTWISE))
      .kernel('add1')
      .launch(host.stream, { grid: 1, block: 32, cooperative: true }, buffer, 32);
    expect((await buffer.read(host.stream))[31]).toBe(2);
  });

  test('a launch with a priority runs', async () => {
    using buffer = host.device.alloc(i32, 32);
    buffer.fill(host.stream, 1);
    (await host.load(ELEMENTWISE))
      .kernel('add1')
      .launch(host.stream, { grid: 1, block: 32, priority: 0 }, buffer, 32);
    expect((await buffer.read(host.stream))[31]).toBe(2);
  });

  describe('refuses', () => {
    test.each([
      [{ grid: 0, block: 1 }, 'options.grid (x)'],
      [{ grid: 1, block: 0 }, 'options.block (x)'],
      [{ grid: 1.5, block: 1 }, 'options.grid (x)'],
      [{ grid: [1, 65_536], block: 1 }, 'options.grid (y)'],
      [{ grid: [1, 1, 65_536], block: 1 }, 'options.grid (z)'],
      [{ grid: 2 ** 31, block: 1 }, 'options.grid (x)'],
      [{ grid: 1, block: 1025 }, 'options.block (x)'],
      [{ grid: 1, block: [1, 1, 65] }, 'options.block (z)'],
      [{ grid: 1, block: [32, 33] }, 'options.block'],
      [{ grid: NaN, block: 1 }, 'options.grid (x)'],
      [{ grid: -1, block: -1 }, 'options.grid (x)'],
      [{ grid: [-1, -1], block: 1 }, 'options.grid (x)'],
      [{ grid: 1, block: [-1, -1] }, 'options.block (x)'],
      [{ block: 1 }, 'options.grid'],
      [{ grid: 1 }, 'options.block'],
      [{ grid: [], block: 1 }, 'options.grid'],
      [{ grid: [1, 1, 1, 1], block: 1 }, 'options.grid'],
      [{ grid: '1', block: 1 }, 'options.grid'],
      [{ grid: 1, block: 1, sharedBytes: -1 }, 'options.sharedBytes'],
      [{ grid: 1, block: 1, sharedBytes: 1 << 24 }, 'options.sharedBytes'],
      [{ grid: 1, block: 1, sharedBytes: 0.5 }, 'options.sharedBytes'],
      [{ grid: 1, block: 1, sharedBytes: null }, 'options.sharedBytes'],
      [{ grid: [1, 1], block: 1, sharedBytes: null }, 'options.sharedBytes'],
      [{ grid: 1, block: 1, sharde: 4 }, 'options.sharde'],
      [undefined, 'options'],
      [7, 'options'],
    ])('the launch %j', async (options, argument) => {
      const nothing = (await host.load(ELEMENTWISE)).kernel('nothing');
      const error = await failure(() => nothing.launch(host.stream, options as never));
      expect(error.code).toBe('ERR_CUDA_INVALID_ARGUMENT');
      expect(error.argument).toBe(argument);
    });

    test('more threads than the kernel was compiled for', async () => {
      const sum = (await host.load(THREADS)).kernel('block_sum');
      expect(sum.attributes.maxThreadsPerBlock).toBe(256);
      using buffer = host.device.alloc(u32, 512);
      const error = await failure(() =>
        sum.launch(host.stream, { grid: 1, block: 512 }, buffer, buffer),
      );
      expect(error.message).toContain("at most 256 threads in a block of kernel 'block_sum'");
    });

    test('an options object that was changed after it was used', async () => {
      const nothing = (await host.load(ELEMENTWISE)).kernel('nothing');
      const options = { grid: 1, block: 1 };
      nothing.launch(host.stream, options);
      options.grid = 0;
      expect(await failure(() => nothing.launch(host.stream, options))).toMatchObject({
        argument: 'options.grid (x)',
      });
    });
  });

  test('changing an options object between launches changes the later one only', async () => {
    const who = (await host.load(THREADS)).kernel('who');
    using out = host.device.alloc(u32, 8);
    out.fill(host.stream, 99);
    const options = { grid: 1, block: 2 };
    who.launch(host.stream, options, out);
    options.block = 4;
    who.launch(host.stream, options, out.slice(4));
    expect([...(await out.read(host.stream))]).toEqual([0, 1, 99, 99, 0, 1, 2, 3]);
  });
});

onDeviceInEachMode('Kernel facts', (host) => {
  test('attributes give the resources that the kernel takes', async () => {
    const { attributes } = (await host.load(THREADS)).kernel('block_sum');
    expect(attributes.sharedBytes).toBe(1024);
    expect(attributes.maxThreadsPerBlock).toBe(256);
    expect(attributes.maxDynamicSharedBytes).toBeGreaterThanOrEqual(40 << 10);
    expect(attributes.localBytes).toBeGreaterThanOrEqual(0);
    expect(attributes.registers).toBeGreaterThanOrEqual(0);
    expect(attributes.ptxVersion).toBeGreaterThanOrEqual(70);
  });

  // CUB takes the sizes of its blocks and grids from it.
  test('the virtual architecture is that of the target, not the version of the text', async () => {
    const { attributes } = (
      await host.load(
        '.version 8.3\n.target sm_75\n.address_size 64\n.visible .entry empty() { ret; }',
      )
    ).kernel('empty');
    expect(attributes.ptxVersion).toBe(75);
  });

  test('occupancy falls with the size of the block', async () => {
    const kernel = (await host.load(ELEMENTWISE)).kernel('add1');
    const small = await kernel.maxActiveBlocks(128);
    const large = await kernel.maxActiveBlocks(1024);
    expect(large).toBeGreaterThanOrEqual(1);
    expect(small).toBeGreaterThanOrEqual(large);
  });

  test('a block size is suggested that can be launched', async () => {
    const kernel = (await host.load(ELEMENTWISE)).kernel('add1');
    const { blockSize, minGridSize } = await kernel.suggestBlockSize();
    expect(blockSize).toBeGreaterThanOrEqual(32);
    expect(minGridSize).toBeGreaterThanOrEqual(1);
    using buffer = host.device.alloc(i32, 1);
    await kernel.launch(host.stream, { grid: 1, block: blockSize }, buffer, 1);
    expect((await kernel.suggestBlockSize({ limit: 64 })).blockSize).toBeLessThanOrEqual(64);
  });

  test('availableShared falls with the number of blocks', async () => {
    const kernel = (await host.load(THREADS)).kernel('reverse_block');
    const one = await kernel.availableShared(1, 128);
    const four = await kernel.availableShared(4, 128);
    expect(one).toBeGreaterThan(four);
    expect(four).toBeGreaterThan(0);
  });

  test('refuses a block size that no device supports', async () => {
    const kernel = (await host.load(ELEMENTWISE)).kernel('add1');
    expect(await failure(() => kernel.maxActiveBlocks(0))).toMatchObject({ argument: 'blockSize' });
    expect(await failure(() => kernel.maxActiveBlocks(1025))).toMatchObject({
      argument: 'blockSize',
    });
  });
});
