/** Operations that run at the same time. */
import { i32 } from 'async-cuda/core';
import { RoundRobin, allOf, operation, parallel, value, withContext } from 'async-cuda/ops';
import type { DeviceOp } from 'async-cuda/ops';
import { afterEach, beforeAll, expect, test } from 'vitest';

import { failure, onDevice, stillPending } from '../core/test-device.js';
import { LENGTH, RecordedWork } from './recorded-work.js';

onDevice('Parallel branches', (host) => {
  let work: RecordedWork;
  beforeAll(async () => {
    work = await RecordedWork.on(host);
  });
  afterEach(() => {
    work.taken();
  });

  test('run on streams of their own, at the same time', async () => {
    const { gate, held } = await work.hold();
    using x = host.device.alloc(i32, LENGTH);
    await work.fill(x, 0);
    const running = parallel(held, work.add(x))
      .andThen(() => work.add(x))
      .runOn(host.stream);
    // The second branch is done, while the first holds its stream and the work after both.
    const other = host.device.createStream();
    expect(await stillPending(running)).toBe(true);
    await gate.open();
    await running;
    expect(await work.read(x)).toBe(2);
    const streams = work
      .taken()
      .filter((entry) => entry.startsWith('add'))
      .map((entry) => entry.split(' on ')[1]);
    expect(streams[0]).not.toBe(streams[1]);
    other.close();
  });

  test('run on streams of their own by default, too', async () => {
    const at = operation(host.device, ({ stream }) => {
      stream.record().close();
      return stream;
    });
    for (let i = 0; i < 3; i++) expect(new Set(await parallel(at, at, at)).size).toBe(3);
  });

  test('of more branches than the policy has streams each stream has as many', async () => {
    const at = withContext(({ stream }) => value({ stream }));
    for (const streams of [1, 3, 4]) {
      using policy = new RoundRobin(host.device, streams);
      const places = await parallel(...Array.from({ length: 12 }, () => at)).schedule(policy);
      const counts = new Map<object, number>();
      for (const { stream } of places) counts.set(stream, (counts.get(stream) ?? 0) + 1);
      expect([...counts.values()]).toEqual(Array.from({ length: streams }, () => 12 / streams));
    }
  });

  test('resolve to their values in order, also host values', async () => {
    const [a, b, c] = await parallel(
      work.make(1).andThen((buffer) => work.read(buffer)),
      'plain',
      work.make(2).andThen((buffer) => work.read(buffer)),
    );
    expect([a, b, c]).toEqual([1, 'plain', 2]);
  });

  test('work after them reads what all of them wrote', async () => {
    for (let i = 0; i < 20; i++) {
      const buffers = await parallel(work.make(i), work.make(i + 1), work.make(i + 2));
      expect(
        await allOf(buffers.map((buffer) => work.add(buffer).andThen(() => work.read(buffer)))),
      ).toEqual([i + 1, i + 2, i + 3]);
      for (const buffer of buffers) buffer.close();
    }
  });

  test('an error in one of them is the error of all', async () => {
    expect(
      await failure(() =>
        parallel(
          work.make(1).andThen(() => value(1)),
          work.failing(),
          value(1),
        ),
      ),
    ).toMatchObject({ code: 'ERR_CUDA_OUT_OF_MEMORY' });
    expect(await value(3)).toBe(3);
  });

  const ends: [string, (op: DeviceOp<unknown>) => unknown][] = [
    ['awaited', (op) => op.then()],
    ['with a thread that blocks', (op) => op.sync()],
  ];
  test.each(ends)(
    'a handled failure of one of them does not affect the others, %s',
    async (_, run) => {
      using first = host.device.alloc(i32, LENGTH);
      using second = host.device.alloc(i32, LENGTH);
      const recovered = work.failing().orElse(() => work.fill(first, 1));
      const late = value(1)
        .ensure(() => undefined)
        .map(() => {
          throw new Error('late');
        })
        .orElse(() => work.fill(first, 1));
      for (const broken of [recovered, late]) {
        for (const op of [
          parallel(broken, work.fill(second, 2)),
          parallel(work.fill(second, 2), broken),
          parallel(
            broken,
            value(1).ensure(() => work.fill(second, 2)),
          ),
        ]) {
          await work.fill(first, 0);
          await work.fill(second, 0);
          await run(op);
          expect([await work.read(first), await work.read(second)]).toEqual([1, 2]);
        }
      }
    },
  );

  test.each(ends)(
    'a failure outside of orElse and ensure fails all of them, %s',
    async (_, run) => {
      const failed = { code: 'ERR_CUDA_OUT_OF_MEMORY' };
      for (const calm of [
        value(1).orElse(() => 2),
        work
          .make(1)
          .andThen(() => value(1))
          .ensure(() => undefined),
        work.failing().orElse(() => 2),
      ]) {
        expect(await failure(() => run(parallel(calm, work.failing())))).toMatchObject(failed);
        expect(await failure(() => run(parallel(work.failing(), calm)))).toMatchObject(failed);
      }
    },
  );
});
