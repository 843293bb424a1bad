/** The streams, contexts and pools of operations. */
import type { Stream } from 'async-cuda/core';
import {
  LeastLoaded,
  NextIdle,
  RoundRobin,
  SingleStream,
  operation,
  getDefaultDevice,
  poolOf,
  setDefaultDevice,
  setPolicy,
  setPool,
  value,
  withContext,
} from 'async-cuda/ops';
import { afterEach, beforeAll, expect, test } from 'vitest';

import { failure, onCpu, onDevice, openTestDevice, range } from '../core/test-device.js';
import { LENGTH, RecordedWork } from './recorded-work.js';

onDevice('Streams, contexts, pools', (host) => {
  let work: RecordedWork;
  beforeAll(async () => {
    work = await RecordedWork.on(host);
  });
  afterEach(() => {
    work.taken();
  });

  test('the first device that runs something is the default; another can be set', async () => {
    setDefaultDevice(undefined);
    await work.make(1).andThen(() => value(1));
    expect(getDefaultDevice()).toBe(host.device);
    const other = await openTestDevice();
    setDefaultDevice(other);
    expect(await withContext(({ device }) => value(device)).map((device) => device === other)).toBe(
      true,
    );
    await other.close();
    setDefaultDevice(undefined);
    expect(getDefaultDevice()).toBe(undefined);
    expect(await failure(() => value(1))).toMatchObject({
      code: 'ERR_CUDA_INVALID_ARGUMENT',
      message: expect.stringContaining('setDefaultDevice') as string,
    });
    setDefaultDevice(host.device);
  });

  test('a round robin goes through its streams; a single stream keeps to one', async () => {
    const at = withContext(({ stream }) => value(stream));
    const robin = new RoundRobin(host.device, 3);
    const seen: Stream[] = [];
    for (let i = 0; i < 6; i++) seen.push(await at.schedule(robin));
    expect(new Set(seen).size).toBe(3);
    expect(seen.slice(3)).toEqual(seen.slice(0, 3));
    const one = new SingleStream(host.device);
    expect(new Set(await Promise.all(range(4).map(() => at.schedule(one))))).toEqual(
      new Set([host.stream]),
    );
    setPolicy(host.device, new RoundRobin(host.device, 2));
    const both = await Promise.all(
      range(4).map(() => operation(host.device, ({ stream }) => stream)),
    );
    setPolicy(host.device, undefined);
    expect([new Set(both).size, both[0] === both[2], both[1] === both[3]]).toEqual([2, true, true]);
  });

  test('runs awaited one by one stay on a stream, others use four in turn', async () => {
    const at = operation(host.device, ({ stream }) => {
      stream.record().close();
      return stream;
    });
    const first = await at;
    expect(await at).toBe(first);
    expect(await at).toBe(first);
    const { gate, held } = await work.hold();
    const busy = range(5).map(() => held.run());
    await gate.open();
    await Promise.all(busy);
    const policy = new NextIdle(host.device, 3);
    const streams = range(4).map(() => {
      const stream = policy.nextStream();
      held.runOn(stream);
      return stream;
    });
    expect([new Set(streams).size, streams[3] === streams[0]]).toEqual([3, true]);
    await host.device.finished();
    const idle = policy.nextStream();
    await idle.finished();
    expect(policy.nextStream()).toBe(policy.nextStream());
  });

  test('the least loaded stream is one that has nothing to do', async () => {
    const { gate, kernel, word } = await work.hold();
    const policy = new LeastLoaded(host.device, 3);
    const busy = [policy.nextStream(), undefined, undefined] as (Stream | undefined)[];
    kernel.launch(busy[0]!, { grid: 1, block: 1 }, word);
    busy[1] = policy.nextStream();
    expect(busy[1]).not.toBe(busy[0]);
    busy[1].record();
    await busy[1].finished();
    expect(busy[1].outstanding).toBe(0);
    for (let i = 0; i < 3; i++) expect(policy.nextStream()).not.toBe(busy[0]);
    await gate.open();
    await busy[0]!.finished();
  });

  test('the stream is chosen when an operation is scheduled', async () => {
    const robin = new RoundRobin(host.device, 2);
    const scheduled = withContext(({ stream }) => value(stream)).schedule(robin);
    const next = robin.nextStream();
    expect(scheduled.stream).not.toBe(next);
    expect(await scheduled).toBe(scheduled.stream);
  });

  test('a pool is set and cleared; one of another device is refused', async () => {
    await using pool = await host.device.createPool();
    expect(poolOf(host.device)).toBe(undefined);
    setPool(host.device, pool);
    expect(poolOf(host.device)).toBe(pool);
    setPool(host.device, undefined);
    expect(poolOf(host.device)).toBe(undefined);
    if (onCpu) {
      const other = await openTestDevice({ thread: host.mode }, 'cpu:1');
      const foreign = await other.createPool();
      expect(() => {
        setPool(host.device, foreign);
      }).toThrow(/cpu:1.*cpu:0/);
      await other.close();
    }
  });

  test('operations allocate from the pool of their run; it counts', async () => {
    const pool = await host.device.createPool();
    const bytes = 4 * LENGTH;
    expect((await pool.statistics()).used).toBe(0);
    setPool(host.device, pool);
    const scheduled = work.make(1).schedule(new SingleStream(host.stream));
    const buffers = [
      await work.make(1),
      work.make(2).sync(),
      work.make(3).syncOn(host.stream),
      await work.make(3).runOn(host.stream),
    ];
    setPool(host.device, undefined);
    buffers.push(await scheduled);
    const used = (await pool.statistics()).used;
    expect(used).toBeGreaterThanOrEqual(5 * bytes);
    const elsewhere = await work.make(1);
    expect((await pool.statistics()).used).toBe(used);
    for (const buffer of [...buffers, elsewhere]) buffer.close();
    await host.stream.finished();
    expect((await pool.statistics()).usedHigh).toBeGreaterThanOrEqual(used);
    await pool.close();
  });
});
