/** Operations that fail: where the error goes, and what runs after it. */
import { CoreDevice, i32 } from 'async-cuda/core';
import type { CudaError, DeviceBuffer, Stream } from 'async-cuda/core';
import {
  OpGraph,
  RoundRobin,
  SingleStream,
  empty,
  operation,
  policyOf,
  setPolicy,
  value,
  zip,
} from 'async-cuda/ops';
import type { DeviceOp } from 'async-cuda/ops';
import { afterEach, beforeAll, expect, test } from 'vitest';

import { failure, onCpu, onDevice, turns } from '../core/test-device.js';
import { runProgram } from '../faults/program.js';
import { LENGTH, RecordedWork } from './recorded-work.js';
import { someOf } from '../random-runs.js';

onDevice('Errors', (host) => {
  let work: RecordedWork;
  beforeAll(async () => {
    work = await RecordedWork.on(host);
  });
  afterEach(() => {
    work.taken();
  });

  test('the first error ends a chain and a zip; later callbacks are not called', async () => {
    const thrown = new Error('first');
    let called = 0;
    const count = <T>(x: T): DeviceOp<T> => {
      called++;
      return value(x);
    };
    const broken = empty(() => {
      throw thrown;
    });
    expect(await failure(() => broken.andThen(count).andThen(count))).toBe(thrown);
    expect(
      await failure(() =>
        zip(
          work.make(1).andThen(() => value(1)),
          broken,
          value(1).andThen(count),
        ),
      ),
    ).toBe(thrown);
    expect(called).toBe(0);
  });

  test('an error of the device ends the rest of the operation, on the device', async () => {
    using buffer = host.device.alloc(i32, LENGTH);
    await work.fill(buffer, 1);
    const op = work.failing().andThen(() => work.add(buffer));
    expect(await failure(() => op)).toMatchObject({ code: 'ERR_CUDA_OUT_OF_MEMORY' });
    // The launch after it was queued and not run. Its output is undefined until it is written
    // whole.
    expect(await failure(() => work.read(buffer))).toMatchObject({
      code: 'ERR_CUDA_UNDEFINED_CONTENTS',
      cause: { code: 'ERR_CUDA_OUT_OF_MEMORY' },
    });
    await work.fill(buffer, 2);
    expect(await work.read(buffer)).toBe(2);
  });

  test('a failed operation rejects at once and keeps the kind of its error', async () => {
    const scheduled = value(1)
      .andThen(() => {
        throw new RangeError('mine');
      })
      .schedule(new SingleStream(host.stream));
    expect(await failure(() => scheduled)).toBeInstanceOf(RangeError);
    const shared = work.failing().shared();
    const [a, b] = await Promise.allSettled([shared, shared]);
    expect([a, b]).toMatchObject([
      { status: 'rejected', reason: { name: 'CudaOutOfMemoryError' } },
      { status: 'rejected', reason: { name: 'CudaOutOfMemoryError' } },
    ]);
  });

  test('a scheduled operation that has run is not run again', async () => {
    const scheduled = work.make(1).schedule(new SingleStream(host.stream));
    (await scheduled).close();
    expect(await failure(() => scheduled)).toMatchObject({
      code: 'ERR_CUDA_DISPOSED',
      message: expect.stringContaining('runs once') as string,
    });
    expect(work.taken()).toEqual(['make 1']);
  });

  const inside: [string, (op: DeviceOp<unknown>, stream: Stream) => unknown][] = [
    ['sync()', (op) => op.sync()],
    ['syncOn(stream)', (op, stream) => op.syncOn(stream)],
    ['runOn(stream)', (op, stream) => op.runOn(stream)],
    ['schedule()', (op) => op.schedule()],
  ];
  test.each(inside)('%s inside of a callback is refused', async (_, run) => {
    const other = host.device.createStream();
    const op = value(1).andThen(() => {
      run(value(2), other);
      return value(3);
    });
    expect(await failure(() => op)).toMatchObject({
      code: 'ERR_CUDA_NESTED',
      message: expect.stringContaining('andThen') as string,
    });
    other.close();
  });

  test('an async callback is refused', async () => {
    const op = value(1).andThen((async () => {
      await turns(1);
      return value(1);
    }) as never);
    expect(await failure(() => op)).toMatchObject({
      code: 'ERR_CUDA_INVALID_ARGUMENT',
      message: expect.stringContaining('synchronous') as string,
    });
    expect(await failure(() => value(1).map((async () => 1) as never))).toMatchObject({
      code: 'ERR_CUDA_INVALID_ARGUMENT',
    });
  });

  test('every other async callback is refused, and its rejection is handled', async () => {
    const late = (async () => {
      throw new Error('late');
    }) as never;
    const refused: [string, DeviceOp<unknown>][] = [
      ['tap(callback)', value(1).tap(late)],
      ['orElse(callback)', work.failing().orElse(late)],
      ['ensure(callback)', value(1).ensure(late)],
      ['ensure(callback)', work.failing().ensure(late)],
      ['when(condition)', value(1).when(late, () => value(1))],
      ['repeatWhile(condition)', value(1).repeatWhile(late, () => value(1))],
      ['choose(index)', value(1).choose(late, [() => value(1)])],
    ];
    for (const [argument, op] of refused) {
      const error = {
        code: 'ERR_CUDA_INVALID_ARGUMENT',
        argument,
        message: expect.stringContaining('synchronous') as string,
      };
      expect(await failure(() => op)).toMatchObject(error);
      expect(await failure(() => op.sync())).toMatchObject(error);
    }
  });

  test("an async callback inside of a graph's scope is refused", async () => {
    const error = await failure(() =>
      OpGraph.scope(host.device.createStream(), () => {
        value(1).sync();
      }),
    );
    expect(error).toMatchObject({ code: 'ERR_CUDA_NESTED' });
  });

  test('after an error, thrown or of the device, operations run as before', async () => {
    for (let i = 0; i < 3; i++) {
      await failure(() =>
        value(1).andThen(() => {
          throw new Error('x');
        }),
      );
      await failure(() => value(1).andThen(() => value(1).sync() as never));
      await failure(() => work.failing());
      expect(() =>
        value(1)
          .map(() => {
            throw new Error('y');
          })
          .sync(),
      ).toThrow('y');
      expect(await value(7)).toBe(7);
      expect(value(8).sync()).toBe(8);
    }
  });

  test('setting another policy leaves the streams of the first unchanged', async () => {
    const first = new RoundRobin(host.device, 2);
    setPolicy(host.device, first);
    const op = work.make(4);
    const buffer = await op;
    expect(() => {
      setPolicy(host.device, {} as never);
    }).toThrow('nextStream');
    expect(policyOf(host.device)).toBe(first);
    setPolicy(host.device, undefined);
    expect(policyOf(host.device)).not.toBe(first);
    expect((await buffer.read(first.nextStream()))[0]).toBe(4);
    buffer.close();
  });

  test('a device that does not exist is an error', async () => {
    expect(await failure(() => CoreDevice.open(onCpu ? 'cpu:-1' : 'cuda:99'))).toHaveProperty(
      'code',
    );
  });

  test('a failure that is not awaited goes to the device, also of host values', async () => {
    work
      .failing()
      .andThen((buffer) => operation(host.device, ({ stream }) => buffer.slice(0, 4).read(stream)))
      .runOn(host.stream);
    work
      .failing()
      .andThen(() => value(1))
      .runOn(host.stream);
    await host.device.finished();
    for (let i = 0; i < 50 && host.errors.length < 2; i++)
      await new Promise((resolve) => setTimeout(resolve, 4));
    expect(host.errors.splice(0).map(({ code }) => code)).toEqual([
      'ERR_CUDA_OUT_OF_MEMORY',
      'ERR_CUDA_OUT_OF_MEMORY',
    ]);
  });

  test('orElse replaces what failed on the device, on the same stream', async () => {
    const stream = host.device.createStream();
    const seen: unknown[] = [];
    const result = await work
      .failing()
      .orElse((error) => {
        seen.push((error as CudaError).code);
        return work.make(9);
      })
      .andThen((buffer) => work.read(buffer as DeviceBuffer<'i32'>))
      .runOn(stream);
    expect(result).toBe(9);
    expect(seen).toEqual(['ERR_CUDA_OUT_OF_MEMORY']);
    expect(await value(1).orElse(() => 2)).toBe(1);
    expect(
      await empty((): number => {
        throw new Error('x');
      }).orElse(() => 2),
    ).toBe(2);
    stream.close();
  });

  const ends: [string, (op: DeviceOp<unknown>) => unknown][] = [
    ['awaited', (op) => op.then()],
    ['with a thread that blocks', (op) => op.sync()],
  ];
  test.each(ends)('orElse does not handle earlier failures, %s', async (_, run) => {
    using buffer = host.device.alloc(i32, LENGTH);
    let called = 0;
    const instead = (): number => ++called;
    const one = work.fill(buffer, 1);
    const failed = { code: 'ERR_CUDA_OUT_OF_MEMORY' };
    expect(
      await failure(() => run(work.failing().andThen(() => one.orElse(instead)))),
    ).toMatchObject(failed);
    expect(await failure(() => run(zip(work.failing(), one.orElse(instead))))).toMatchObject(
      failed,
    );
    expect(await failure(() => run(zip(one.orElse(instead), work.failing())))).toMatchObject(
      failed,
    );
    expect(
      await failure(() =>
        run(
          work.failing().andThen((made) =>
            operation(host.device, ({ stream }) => {
              made.fill(stream, 2);
            }).orElse(instead),
          ),
        ),
      ),
    ).toMatchObject(failed);
    expect(
      await failure(() =>
        run(
          work.failing().andThen(() =>
            empty(() => {
              throw new Error('second');
            }).orElse(instead),
          ),
        ),
      ),
    ).toMatchObject(failed);
    expect(called).toBe(0);
    expect(await run(one.andThen(() => work.failing().orElse(instead)))).toBe(1);
    expect(
      await run(
        one
          .andThen(() => work.failing().orElse(() => work.add(buffer)))
          .andThen(() => work.add(buffer)),
      ),
    ).toBe(buffer);
    expect(await work.read(buffer)).toBe(3);
    // Nested: the inner one handles its own step only.
    expect(
      await run(
        work
          .failing()
          .andThen(() => one.orElse(() => 'inner'))
          .orElse(() => 'outer'),
      ),
    ).toBe('outer');
  });

  test('a shared operation within orElse fails for other runs', async () => {
    const shared = work.failing().shared();
    const failed = { code: 'ERR_CUDA_OUT_OF_MEMORY' };
    expect(await shared.orElse(() => 2)).toBe(2);
    expect(await failure(() => shared)).toMatchObject(failed);
    const again = work.failing().shared();
    expect(
      await failure(() =>
        zip(
          again.orElse(() => 2),
          again,
        ),
      ),
    ).toMatchObject(failed);
  });

  test('the label of an operation names the failure of its parts', async () => {
    const messages: string[] = [];
    await work
      .failing()
      .orElse((error) => messages.push((error as Error).message))
      .label('whole');
    expect(messages).toEqual([expect.stringContaining("'whole'")]);
  });

  test('andThen, withContext and others name themselves in errors', async () => {
    expect(await failure(() => work.make(1).andThen((() => 5) as never))).toMatchObject({
      argument: 'andThen(callback)',
    });
    expect(await failure(() => value(1).withContext((() => 5) as never))).toMatchObject({
      argument: 'withContext(callback)',
    });
  });

  test('ensure runs after success and failure, and does not change the result', async () => {
    using buffer = host.device.alloc(i32, LENGTH);
    await work.fill(buffer, 0);
    expect(await value(5).ensure(() => work.add(buffer))).toBe(5);
    expect(await failure(() => work.failing().ensure(() => work.add(buffer)))).toMatchObject({
      code: 'ERR_CUDA_OUT_OF_MEMORY',
    });
    expect(await work.read(buffer)).toBe(2);
    const last = await failure(() =>
      empty(() => {
        throw new Error('first');
      }).ensure(() =>
        empty(() => {
          throw new Error('last');
        }),
      ),
    );
    expect([last.message, (last.cause as Error).message]).toEqual(['last', 'first']);
    const mine = new TypeError('mine');
    expect(
      await failure(() =>
        work.failing().ensure(() => {
          throw mine;
        }),
      ),
    ).toBe(mine);
    expect(mine.cause).toMatchObject({ code: 'ERR_CUDA_OUT_OF_MEMORY' });
  });

  test('ensure runs on a blocked thread as well', async () => {
    using buffer = host.device.alloc(i32, LENGTH);
    work.fill(buffer, 0).sync();
    expect(
      value(5)
        .ensure(() => work.add(buffer))
        .sync(),
    ).toBe(5);
    expect(
      await failure(() =>
        work
          .failing()
          .ensure(() => work.add(buffer))
          .sync(),
      ),
    ).toMatchObject({ code: 'ERR_CUDA_OUT_OF_MEMORY' });
    expect(
      work
        .failing()
        .orElse(() => work.add(buffer))
        .andThen(() => work.add(buffer))
        .sync(),
    ).toBe(buffer);
  });

  test('the results of callbacks are checked', async () => {
    expect(await failure(() => value(1).andThen((() => 3) as never))).toMatchObject({
      argument: 'andThen(callback)',
      message: expect.stringContaining('map(…)') as string,
    });
    expect(await failure(() => value(1).map((() => value(2)) as never))).toMatchObject({
      argument: 'map(callback)',
      message: expect.stringContaining('andThen(…)') as string,
    });
    expect(() => value(1).andThen(3 as never)).toThrow('a function');
    expect(() => value(value(1))).toThrow('already');
  });

  // orElse does not handle a stack overflow, and a promise created there would be unhandled. In a
  // process of its own: vitest's exports catch what their getters throw, so that a stack overflow
  // there gives undefined.
  someOf(1, test)(['orElse', 'zip', 'parallel', 'label', 'ensure', 'andThen'])(
    'more nested %s than the stack allows is an error with what to write',
    async (kind) => {
      const { result, code, stderr } = await runProgram('nested', { args: [kind, host.mode] });
      expect(stderr).toBe('');
      expect(code).toBe(0);
      expect(result).toMatchObject({
        nested: 0,
        tooDeep: {
          code: 'ERR_CUDA_INVALID_ARGUMENT',
          argument: 'operation',
          cause: { name: 'RangeError' },
        },
        chained: 20_000,
      });
      expect((result as { tooDeep: { message: string } }).tooDeep.message).toContain(
        'op.andThen(…).andThen(…)',
      );
    },
  );

  test('an operation that depends on itself is an error', async () => {
    let op: DeviceOp<unknown> = value(1);

    op = empty(() => undefined)
      .andThen(() => op)
      .shared();
    const cycle: DeviceOp<unknown> = value(1)
      .andThen(() => cycle)
      .shared();
    expect(await failure(() => cycle)).toHaveProperty('message');
  });
});
