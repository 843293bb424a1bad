/** Very many operations without an await between them. */
import { i32 } from 'async-cuda/core';
import { expect, test } from 'vitest';

import { ELEMENTWISE } from '../core/kernels/elementwise.js';
import { onDevice, turns } from '../core/test-device.js';

onDevice('100,000 operations without an await', (host) => {
  test(
    'on one stream all take effect, in order',
    { tags: 'thorough', timeout: 60_000 },
    async () => {
      const add1 = (await host.load(ELEMENTWISE)).kernel('add1');
      using buffer = host.device.alloc(i32, 8);
      buffer.fill(host.stream, 0);
      for (let i = 0; i < 100_000; i++) add1.launch(host.stream, { grid: 1, block: 8 }, buffer, 8);
      expect([...(await buffer.read(host.stream))]).toEqual(Array(8).fill(100_000));
    },
  );

  test('of all kinds on several streams give the sequential result', async () => {
    const module = await host.load(ELEMENTWISE);
    const add1 = module.kernel('add1');
    const absorb = module.kernel('absorb');
    const streams = Array.from({ length: 3 }, () => host.device.createStream());
    using a = host.device.alloc(i32, 4);
    using b = host.device.alloc(i32, 4);
    a.fill(streams[0]!, 1);
    b.fill(streams[0]!, 1);
    let modelA = 1;
    let modelB = 1;
    const reads: [PromiseLike<Int32Array>, number][] = [];
    for (let i = 0; i < 20_000; i++) {
      const stream = streams[i % 3]!;
      add1.launch(stream, { grid: 1, block: 4 }, a, 4);
      absorb.launch(streams[(i * 7) % 3]!, { grid: 1, block: 4 }, b, a, 4);
      modelA++;
      modelB = (Math.imul(modelB, 31) + modelA) | 0;
      if (i % 100 === 0) reads.push([b.read(streams[(i >> 3) % 3]!), modelB]);
      if (i % 1000 === 0) {
        a.write(stream, new Int32Array(4).fill(i));
        modelA = i;
      }
      const scratch = host.device.alloc(i32, 4, { stream });
      scratch.fill(stream, i);
      scratch.close();
    }
    expect((await b.read(streams[1]!))[3]).toBe(modelB);
    for (const [read, expected] of reads) expect((await read)[0]).toBe(expected);
    for (const stream of streams) stream.close();
    await turns(2);
  }, 60_000);

  test('each awaited afterwards resolves', async () => {
    using buffer = host.device.alloc(i32, 8);
    const pendings = Array.from({ length: 100_000 }, (_, i) => buffer.fill(host.stream, i));
    await Promise.all(pendings);
    expect((await buffer.read(host.stream))[0]).toBe(99_999);
  }, 60_000);
});
