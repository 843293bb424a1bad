/**
 * Executable graphs that another library has made. The test uses one of ours and passes it as a
 * foreign one.
 */
import { i32, u8 } from 'async-cuda/core';
import type { CoreDevice } from 'async-cuda/core';
import { expect, test } from 'vitest';

import { ForeignGraph, graphUse } from '../../src/core/foreign-graph.js';
import { onDevice } from './test-device.js';

onDevice('Graphs of others', (host) => {
  test('run in the order of uses of the same memory, and of shared exclusive groups', async () => {
    const { device } = host;
    const [a, b, c] = [1, 2, 3].map(() => device.createStream()) as [
      ReturnType<CoreDevice['createStream']>,
      ReturnType<CoreDevice['createStream']>,
      ReturnType<CoreDevice['createStream']>,
    ];
    using x = device.alloc(i32, 4);
    using between = device.alloc(i32, 4);
    using y = device.alloc(i32, 4);
    using turn = device.alloc(u8, 16);
    await Promise.all([x, between, y].map((buffer) => buffer.fill(a, 0)));
    await using graph = await a.capture((stream) => {
      between.copyFrom(stream, x);
      y.copyFrom(stream, between);
    });
    const { graph: captured } = graph as unknown as { graph: number };
    const { exec } = await device.runtime.call('instantiate', captured, 0);
    const foreign = new ForeignGraph(device, 'theirs', { graph: 0, exec, nodes: 1 });
    const launches = (await device.stats()).graphLaunches;
    const read: Promise<Int32Array>[] = [];
    for (let i = 1; i <= 50; i++) {
      x.fill(a, i);
      foreign.launch(
        i % 2 === 0 ? b : c,
        [graphUse({ buffer: x, access: 'in' }), graphUse({ buffer: y, access: 'out' })],
        turn,
      );
      read.push(Promise.resolve(y.read(a)));
    }
    expect((await Promise.all(read)).map((values) => [...values])).toEqual(
      Array.from({ length: 50 }, (_, i) => [i + 1, i + 1, i + 1, i + 1]),
    );
    expect((await device.stats()).graphLaunches - launches).toBe(50);
    await Promise.all([b.finished(), c.finished()]);
    await foreign.close();
    for (const stream of [a, b, c]) stream.close();
  });
});
