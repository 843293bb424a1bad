/** When operations run, and how often. */
import { i32 } from 'async-cuda/core';
import type { DeviceBuffer, Stream } from 'async-cuda/core';
import { SingleStream, allOf, parallel, value, zip } from 'async-cuda/ops';
import type { DeviceOp } from 'async-cuda/ops';
import { afterEach, beforeAll, expect, test } from 'vitest';

import { failure, onDevice, stillPending, turns } from '../core/test-device.js';
import { LENGTH, RecordedWork } from './recorded-work.js';

/** The number of operations queued so far, on all streams of the policy. */
const queuedOn = (...streams: Stream[]): number[] => streams.map((stream) => stream.mark);

onDevice('Laziness and sharing', (host) => {
  let work: RecordedWork;
  beforeAll(async () => {
    work = await RecordedWork.on(host);
  });
  afterEach(() => {
    work.taken();
  });

  test('building operations queues nothing and calls no callback', async () => {
    const stream = host.device.createStream();
    let called = 0;
    const op = work
      .make(1)
      .andThen((buffer) => {
        called++;
        return work.add(buffer);
      })
      .map((x) => {
        called++;
        return x;
      })
      .tap(() => {
        called++;
      });
    const more = [
      zip(op, 2),
      allOf([op, op]),
      parallel(op, op),
      op.shared(),
      op.label('x'),
      op.orElse(() => {
        called++;
        return op;
      }),
      op.ensure(() => {
        called++;
        return undefined;
      }),
      op.on(stream),
    ];
    await turns(3);
    expect({ called, log: work.taken(), marks: queuedOn(stream), count: more.length }).toEqual({
      called: 0,
      log: [],
      marks: [0],
      count: 8,
    });
  });

  test('an operation that was scheduled and never awaited queues nothing', async () => {
    const scheduled = work.make(1).schedule(new SingleStream(host.stream));
    const before = host.stream.mark;
    await turns(3);
    expect(host.stream.mark).toBe(before);
    expect(work.taken()).toEqual([]);
    expect(String(scheduled)).toContain('not run yet');
  });

  test('shared() runs once, and resolves to the identical object', async () => {
    const shared = work.make(3).shared();
    const [a, b, [c]] = await Promise.all([shared, shared.shared(), zip(shared, 1)]);
    expect(a).toBe(b);
    expect(a).toBe(c);
    expect(work.taken()).toEqual(['make 3']);
    expect((await a.read(host.stream))[5]).toBe(3);
    a.close();
  });

  test('a value is shared without running anything', async () => {
    const given = { x: 1 };
    const shared = value(given).shared();
    const before = queuedOn(host.stream);
    expect(await Promise.all([shared, shared])).toEqual([given, given]);
    expect((await shared) === given).toBe(true);
    expect(queuedOn(host.stream)).toEqual(before);
  });

  test.each([
    [0, 1],
    [1, 0],
  ])('parts of unzip run in any order, their source once (%i, then %i)', async (first, second) => {
    const parts = zip(work.make(10), work.make(20)).unzip();
    const values: DeviceBuffer<'i32'>[] = [];
    values[first] = await parts[first as 0];
    values[second] = await parts[second as 1];
    expect(work.taken()).toEqual(['make 10', 'make 20']);
    expect((await values[0]!.read(host.stream))[0]).toBe(10);
    expect((await values[1]!.read(host.stream))[0]).toBe(20);
    for (const buffer of values) buffer.close();
  });

  test('the parts of unzip() can be zipped again', async () => {
    const [a, b] = zip(work.make(1), work.make(2)).unzip();
    const [y, x] = await zip(b, a);
    expect(work.taken()).toEqual(['make 1', 'make 2']);
    expect([(await x.read(host.stream))[0], (await y.read(host.stream))[0]]).toEqual([1, 2]);
    x.close();
    y.close();
  });

  const later: [string, (work: RecordedWork) => DeviceOp<DeviceBuffer<'i32'>>][] = [
    ['orElse', (on) => on.make(3).orElse(() => on.make(9))],
    [
      'orElse of what fails',
      (on) => on.failing().orElse(() => on.make(3)) as DeviceOp<DeviceBuffer<'i32'>>,
    ],
    ['ensure', (on) => on.make(3).ensure(() => undefined)],
    [
      'a value of the host',
      (on) =>
        on
          .make(3)
          .andThen((buffer) => on.read(buffer))
          .andThen((n) => on.make(n)),
    ],
  ];
  test.each(later)(
    'a shared result after %s is known to a blocked thread and a graph',
    async (_, make) => {
      const shared = make(work).shared();
      const [part] = zip(shared).unzip();
      const [a, b] = await Promise.all([shared, part]);
      expect(a).toBe(b);
      work.taken();
      expect(shared.sync()).toBe(a);
      expect(part.sync()).toBe(a);
      await using graph = await part.andThen((buffer) => work.add(buffer)).capture();
      await graph.replay();
      expect(await work.read(a)).toBe(4);
      expect(work.taken().filter((entry) => entry.startsWith('make'))).toEqual([]);
      a.close();
    },
  );

  test('a shared operation that failed rejects each later run', async () => {
    const shared = work
      .make(1)
      .andThen((buffer) => work.read(buffer))
      .map((): number => {
        throw new RangeError('mine');
      })
      .shared();
    for (let i = 0; i < 2; i++) expect(await failure(() => shared)).toBeInstanceOf(RangeError);
    expect(() => shared.sync()).toThrow('mine');
    expect(await failure(() => shared.capture())).toBeInstanceOf(RangeError);
  });

  test('a diamond runs its root once', async () => {
    const root = work.make(1).shared();
    const left = root.andThen((buffer) => work.add(buffer));
    const right = root.andThen((buffer) => work.add(buffer));
    const [a, b] = await zip(left, right);
    expect(a).toBe(b);
    expect(work.taken().filter((entry) => entry.startsWith('make'))).toEqual(['make 1']);
    expect((await a.read(host.stream))[0]).toBe(3);
    a.close();
  });

  test('andThen runs both on one stream in order, without the host in between', async () => {
    const { gate, held } = await work.hold();
    const stream = host.device.createStream();
    let called = 0;
    // The device is held, and all callbacks run nevertheless.
    const run = held
      .andThen(() => work.make(1))
      .andThen((buffer) => {
        called++;
        return work.add(buffer);
      })
      .andThen((buffer) => {
        called++;
        return work.add(buffer);
      })
      .runOn(stream);
    expect(called).toBe(2);
    expect(await stillPending(run)).toBe(true);
    await gate.open();
    const buffer = await run;
    expect((await buffer.read(stream))[0]).toBe(3);
    expect(work.taken()).toEqual([
      'make 1',
      `add on ${stream.slot.index}`,
      `add on ${stream.slot.index}`,
    ]);
    buffer.close();
    stream.close();
  });

  test('zip runs from left to right on one stream', async () => {
    using buffer = host.device.alloc(i32, LENGTH);
    const [, , result] = await zip(
      work.fill(buffer, 5),
      work.add(buffer),
      work.read(buffer),
      work.add(buffer),
    );
    expect(result).toBe(6);
    const log = work.taken();
    expect(log.map((entry) => entry.split(' ')[0])).toEqual(['fill', 'add', 'read', 'add']);
    expect(new Set(log.map((entry) => entry.split(' on ')[1])).size).toBe(1);
  });

  test('awaiting again runs again', async () => {
    using buffer = host.device.alloc(i32, LENGTH);
    await work.fill(buffer, 0);
    const op = work.add(buffer);
    for (let i = 0; i < 3; i++) await op;
    expect(await work.read(buffer)).toBe(3);
    await Promise.all([op, op]);
    expect(await work.read(buffer)).toBe(5);
  });
});
