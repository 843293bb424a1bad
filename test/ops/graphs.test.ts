/** Operations that are captured as graphs. */
import { f32, i32 } from 'async-cuda/core';
import type { DeviceBuffer } from 'async-cuda/core';
import { OpGraph, empty, operation, parallel, zip } from 'async-cuda/ops';
import type { DeviceOp } from 'async-cuda/ops';
import { tensor, zeros } from 'async-cuda/tensor';
import { afterEach, beforeAll, expect, test } from 'vitest';

import { failure, onDevice } from '../core/test-device.js';
import { LENGTH, RecordedWork } from './recorded-work.js';

onDevice('Graphs of operations', (host) => {
  let work: RecordedWork;
  beforeAll(async () => {
    work = await RecordedWork.on(host);
  });
  afterEach(() => {
    work.taken();
  });

  test('an empty scope is a graph; an error leaves the stream usable', async () => {
    const stream = host.device.createStream();
    await using nothing = await OpGraph.scope(stream, () => 5);
    expect([nothing.output, await nothing.nodeCount()]).toEqual([5, 0]);
    await nothing.replay();
    using buffer = host.device.alloc(i32, LENGTH);
    await work.fill(buffer, 1);
    const graph = await OpGraph.scope(stream, ({ record }) => {
      const recorded = record(work.add(buffer));
      expect(recorded).toBe(buffer);
      return record(work.add(recorded));
    });
    expect(
      (
        await failure(() =>
          OpGraph.scope(stream, ({ record }) => {
            record(work.add(buffer));
            throw new Error('mine');
          }),
        )
      ).message,
    ).toBe('mine');
    await graph.replay().runOn(stream);
    expect(await work.read(buffer).runOn(stream)).toBe(3);
    await graph.close();
    stream.close();
  });

  test('launches give the result of the operation, with new inputs', async () => {
    using x = host.device.alloc(i32, LENGTH);
    await work.fill(x, 0);
    let op: DeviceOp<DeviceBuffer<'i32'>> = work.add(x);
    for (let i = 1; i < 22; i++) op = op.andThen((buffer) => work.add(buffer));
    await using graph = await op.capture();
    expect(await work.read(x)).toBe(0);
    for (let i = 0; i < 10; i++) await graph.replay();
    expect(await work.read(graph.output)).toBe(220);
    await graph.update(work.fill(x, 1000)).andThen(() => graph.replay());
    expect(await work.read(x)).toBe(1022);
    expect(await graph.nodeTypes()).toEqual(Array(22).fill('kernel'));
    expect(await graph.dot()).toContain('digraph');
  });

  test('every launch writes the memory that the capture allocated', async () => {
    const graph = await work
      .make(5)
      .andThen((buffer) => work.add(buffer))
      .capture();
    const { output } = graph;
    expect(await graph.replay().andThen((buffer) => work.read(buffer))).toBe(6);
    await work.fill(output, 77);
    expect(await graph.replay().andThen((buffer) => work.read(buffer))).toBe(6);
    await graph.close();
    expect(output.isClosed).toBe(true);
    expect(await failure(() => graph.replay())).toMatchObject({ code: 'ERR_CUDA_DISPOSED' });
  });

  test('memory that the operation closes is kept for the launches', async () => {
    const graph = await work
      .make(5)
      .andThen((buffer) =>
        work.add(buffer).andThen((x) => work.make(0).map((y) => [x, y] as const)),
      )
      .capture();
    for (let i = 0; i < 3; i++) {
      const [x] = await graph.replay();
      expect(await work.read(x)).toBe(6);
    }
    await graph.close();
    expect(graph.output.map((buffer) => buffer.isClosed)).toEqual([true, true]);
  });

  test('reparam takes the parameters of another operation of the same shape', async () => {
    using x = host.device.alloc(i32, LENGTH);
    using y = host.device.alloc(i32, LENGTH);
    await zip(work.fill(x, 0), work.fill(y, 0));
    await using graph = await work.add(x).capture();
    await graph.reparam(work.add(y));
    await graph.replay();
    expect(await zip(work.read(x), work.read(y))).toEqual([0, 1]);
    expect(await failure(() => graph.reparam(zip(work.add(x), work.add(x))))).toMatchObject({
      code: 'ERR_CUDA_CAPTURE',
    });
    await graph.replay();
    expect(await work.read(y)).toBe(2);
  });

  test('reparam takes an operation that writes to the output only', async () => {
    using x = await tensor(host.device, f32, [1, 2]);
    using y = await tensor(host.device, f32, [10, 20]);
    const list = async (
      op: PromiseLike<{ read(): PromiseLike<ArrayLike<number>> }>,
    ): Promise<number[]> => Array.from(await (await op).read());
    await using graph = await x.dup().capture();
    expect(await list(graph.replay())).toEqual([1, 2]);
    for (const op of [y.dup(), empty(() => y).andThen((each) => each.dup())]) {
      const error = await failure(() => graph.reparam(op));
      expect(error).toMatchObject({
        code: 'ERR_CUDA_CAPTURE',
        message: expect.stringContaining(
          'Capture an operation that writes to a tensor of yours, out.copyFrom(op)',
        ) as string,
      });
    }
    expect(await list(graph.replay())).toEqual([1, 2]);
    await graph.reparam(graph.output.copyFrom(y));
    expect(await list(graph.replay())).toEqual([10, 20]);

    // Never launched: its output has no earlier result.
    await using never = await x.dup().capture();
    expect(await failure(() => never.reparam(y.slice([0, 1]).dup()))).toMatchObject({
      code: 'ERR_CUDA_CAPTURE',
    });
    expect(await list(never.replay())).toEqual([1, 2]);

    using out = await zeros(host.device, f32, [2]);
    await using given = await out.copyFrom(x.dup()).capture();
    await given.reparam(out.copyFrom(y.dup()));
    expect(await list(given.replay())).toEqual([10, 20]);
    expect([...(await out.read())]).toEqual([10, 20]);
  });

  test('captures at the same time, and streams made meanwhile', async () => {
    using x = host.device.alloc(i32, LENGTH);
    using y = host.device.alloc(i32, LENGTH);
    await zip(work.fill(x, 0), work.fill(y, 10));
    const [a, b] = await Promise.all([work.add(x).capture(), work.add(y).capture()]);
    const stream = host.device.createStream();
    await Promise.all([a.replay(), b.replay().runOn(stream)]);
    expect(await zip(work.read(x), work.read(y))).toEqual([1, 11]);
    await Promise.all([a.close(), b.close()]);
    stream.close();
  });

  test('a graph whose buffer was closed is not launched', async () => {
    const x = host.device.alloc(i32, LENGTH);
    await work.fill(x, 0);
    await using graph = await work.add(x).capture();
    x.close();
    expect(await failure(() => graph.replay())).toMatchObject({
      code: 'ERR_CUDA_DISPOSED',
      message: expect.stringContaining('was closed') as string,
    });
  });

  test('parallel operations become branches of the graph', async () => {
    using x = host.device.alloc(i32, LENGTH);
    using y = host.device.alloc(i32, LENGTH);
    await zip(work.fill(x, 0), work.fill(y, 10));
    await using graph = await parallel(
      work.add(x).andThen(() => work.add(x)),
      work.add(y),
    )
      .andThen(() => work.add(x))
      .capture();
    const dot = await graph.dot();
    // Two nodes without an edge into them.
    const targets = new Set([...dot.matchAll(/->\s*"?([\w]+)/g)].map(([, to]) => to));
    const edges = [...dot.matchAll(/->/g)].length;
    expect(edges).toBeLessThanOrEqual(3);
    expect(targets.size).toBeLessThan(4);
    await graph.replay();
    expect(await zip(work.read(x), work.read(y))).toEqual([3, 11]);
  });

  test.each([
    [
      'a read',
      (x: DeviceBuffer<'i32'>) => operation(host.device, ({ stream }) => x.read(stream)),
      'read',
    ],
    [
      'a write of a plain array',
      (x: DeviceBuffer<'i32'>) =>
        operation(host.device, ({ stream }) => {
          x.write(stream, new Int32Array(LENGTH));
        }),
      'write',
    ],
    ['orElse', (x: DeviceBuffer<'i32'>) => work.add(x).orElse(() => x), 'orElse'],
    ['ensure', (x: DeviceBuffer<'i32'>) => work.add(x).ensure(() => undefined), 'ensure'],
    [
      'a launch of another graph',
      () => operation(host.device, ({ stream }) => stream.finished()),
      'stream.finished',
    ],
  ])('%s cannot be captured, and the error names it', async (_, make, name) => {
    using x = host.device.alloc(i32, LENGTH);
    expect(await failure(() => make(x).capture())).toMatchObject({
      code: 'ERR_CUDA_CAPTURE',
      message: expect.stringContaining(name) as string,
    });
    // The stream works as before.
    await using graph = await work.fill(x, 3).capture();
    await graph.replay();
    expect(await work.read(x)).toBe(3);
  });
});
