/**
 * The rule of ownership, one behaviour in each test. Random trees of operations are in
 * ownership-of-trees.test.ts.
 */
import { Device, f32, i32, inout, kernel, keep, output, u8, zip } from 'async-cuda';
import type { DeviceOp, Tensor } from 'async-cuda';
import type { OpContext } from 'async-cuda/ops';
import type { DeviceBuffer } from 'async-cuda/core';
import { f32 as coreF32 } from 'async-cuda/core';
import { add, matmul, mul, sum, topK } from 'async-cuda/library';
import {
  OpGraph,
  allOf,
  parallel,
  policyOf,
  setDevelopmentMode,
  value,
  withContext,
} from 'async-cuda/ops';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';

import { allModes, failure, testDevice, turns } from '../core/test-device.js';
import { someOf } from '../random-runs.js';

someOf(1, describe)(allModes)('Ownership (%s)', (mode) => {
  let device: Device;
  beforeAll(async () => {
    device = await Device.open(testDevice, { thread: mode });
  });
  afterAll(() => device.close());
  const live = async (): Promise<number> => (await device.stats()).live.buffers;
  afterEach(async () => {
    expect(await live(), 'buffers that the test left open').toBe(0);
  });

  test('a chain keeps only the memory that the next step needs', async () => {
    const seen: Tensor[] = [];
    let most = 0;
    let chain = device.zeros(f32, [16]);
    for (let i = 0; i < 50; i++) {
      chain = chain.andThen((x) => {
        seen.push(x as Tensor);
        most = Math.max(most, seen.filter((each) => !each.isClosed).length);
        return add(x, 1) as typeof chain;
      });
    }
    expect([...(await chain.andThen((x) => x.read()))]).toEqual(Array(16).fill(50));
    expect({
      most,
      steps: seen.length,
      open: seen.filter((each) => !each.isClosed).length,
    }).toEqual({ most: 1, steps: 50, open: 0 });
  });

  test('memory is closed before a queued copy has reached the host', async () => {
    let made: Tensor | undefined;
    const running = device
      .ones(f32, [8])
      .andThen((x) => {
        made = x as Tensor;
        return x.read();
      })
      .runOn(policyOf(device).nextStream());
    expect(made?.isClosed).toBe(true);
    expect([...(await running)]).toEqual(Array(8).fill(1));
  });

  test('arrays, plain objects, Maps and Sets pass their contents on, others do not', async () => {
    class Holder {
      readonly tensor: Tensor;
      constructor(tensor: Tensor) {
        this.tensor = tensor;
      }
    }
    const held = async (wrap: (x: Tensor) => unknown): Promise<boolean> => {
      let made: Tensor | undefined;
      await device.ones(f32, [1]).map((x) => {
        made = x as Tensor;
        return wrap(x as Tensor);
      });
      const open = !made!.isClosed;
      made!.close();
      return open;
    };
    expect(await held((x) => [[x]])).toBe(true);
    expect(await held((x) => ({ a: { b: x } }))).toBe(true);
    expect(await held((x) => Object.assign(Object.create(null) as object, { x }))).toBe(true);
    expect(await held((x) => new Map([['x', x]]))).toBe(true);
    expect(await held((x) => new Set([x]))).toBe(true);
    expect(await held((x) => x.buffer)).toBe(true);
    expect(await held((x) => new Holder(x))).toBe(false);
    expect(
      await held((x) => ({
        get x() {
          return x;
        },
      })),
    ).toBe(false);
    expect(await held((x) => () => x)).toBe(false);
    const round: unknown[] = [];
    round.push(round);
    expect(await held(() => round)).toBe(false);
  });

  test('a view without its owner owns the memory; the last closed one frees it', async () => {
    const view = await device.arange(i32, 6).map((x) => x.reshape([2, 3]));
    expect({ view: view.isView, live: await live() }).toEqual({ view: false, live: 1 });
    view.close();
    expect({ closed: view.isClosed, live: await live() }).toEqual({ closed: true, live: 0 });

    const [low, high] = await device
      .arange(i32, 6)
      .map((x) => [x.slice([0, 3]), x.slice([3, 6])] as const);
    low.close();
    low.close();
    expect([low.isClosed, high.isClosed, await live()]).toEqual([true, false, 1]);
    expect(await failure(() => low.read())).toMatchObject({ code: 'ERR_CUDA_DISPOSED' });
    expect([...(await high.read())]).toEqual([3, 4, 5]);
    high.close();

    // A single one that is passed on is the only owner.
    const last = await device
      .arange(i32, 6)
      .map((x) => [x.slice([0, 3]), x.slice([3, 6])] as const)
      .map(([, second]) => second);
    last.close();
    expect(await live()).toBe(0);

    const [whole, part] = await device.arange(i32, 6).map((x) => [x, x.slice([0, 3])] as const);
    expect(part.isView).toBe(true);
    part.close();
    expect(await live()).toBe(1);
    whole.close();
  });

  test('the operation owns what its context allocates, and not device.alloc’s', async () => {
    let mine: DeviceBuffer<'f32'> | undefined;
    const given = await withContext((context) => {
      const scratch = context.alloc(coreF32, 4);
      const kept = context.alloc(coreF32, 4);
      mine = context.device.alloc(coreF32, 4);
      scratch.fill(context.stream, 1);
      kept.copyFrom(context.stream, scratch);
      return value(kept.slice(1, 3));
    }, device);
    expect([given.isView, await live()]).toEqual([false, 2]);
    expect([...(await given.read(policyOf(device).nextStream()))]).toEqual([1, 1]);
    given.close();
    mine!.close();
  });

  test('keep excludes memory from what the run closes', async () => {
    const cache: { weights?: Tensor } = {};
    const total = await device
      .ones(f32, [4])
      .andThen((x) => {
        cache.weights = keep(x) as Tensor;
        return sum(x);
      })
      .andThen((s) => s.item());
    expect([total, cache.weights!.isClosed, await live()]).toEqual([4, false, 1]);
    cache.weights!.close();

    // The same holds for a run that fails, and for a view.
    let view: Tensor | undefined;
    await failure(() =>
      device.ones(f32, [4]).andThen((x) => {
        view = keep(x.reshape([2, 2])) as Tensor;
        throw new Error('mine');
      }),
    );
    expect([view!.isView, view!.isClosed]).toEqual([false, false]);
    view!.close();

    // Closing a view that the run passes on, or another view that was kept, does not close what was
    // kept.
    let whole: Tensor | undefined;
    const row = await device.arange(f32, 8).map((x) => {
      whole = keep(x) as Tensor;
      return x.slice([0, 4]);
    });
    expect(row.isView).toBe(true);
    row.close();
    expect(whole!.isClosed).toBe(false);
    whole!.close();
    let low: Tensor | undefined;
    let high: Tensor | undefined;
    await device
      .arange(f32, 8)
      .tap((x) => {
        low = keep(x.slice([0, 4])) as Tensor;
        high = keep(x.slice([4, 8])) as Tensor;
      })
      .map(() => undefined);
    low!.close();
    expect([...(await high!.read())]).toEqual([4, 5, 6, 7]);
    high!.close();

    class Model {}
    expect(await failure(() => device.ones(f32, [1]).map(() => keep(new Model())))).toMatchObject({
      argument: 'given',
    });
    expect(
      await failure(() =>
        device
          .ones(f32, [1])
          .map((x) => keep(x))
          .capture(),
      ),
    ).toMatchObject({ code: 'ERR_CUDA_CAPTURE' });
  });

  test('a tensor of an ended step is refused, with the remedy', async () => {
    let early: Tensor<'f32'> | undefined;
    const error = await failure(() =>
      device
        .ones(f32, [4])
        .andThen((x) => {
          early = x;
          return mul(x, 2);
        })
        .andThen((y) => add(y, early!)),
    );
    expect(error).toMatchObject({ code: 'ERR_CUDA_DISPOSED' });
    expect(error.message).toMatch(
      /received it has ended.*Use it within that callback.*return it with the result.*keep\(x\)/s,
    );
  });

  test('development mode finds it in a capture, where it would work', async () => {
    const op = (): ReturnType<typeof mul> => {
      let early: Tensor<'f32'> | undefined;
      return device
        .ones(f32, [4])
        .andThen((x) => {
          early = x;
          return mul(x, 2);
        })
        .andThen((y) => add(y, early!)) as never;
    };
    const graph = await op().capture();
    await graph.replay();
    expect([...(await (graph.output as Tensor<'f32'>).read())]).toEqual([3, 3, 3, 3]);
    await graph.close();
    setDevelopmentMode(true);
    try {
      expect(await failure(() => op().capture())).toMatchObject({
        code: 'ERR_CUDA_DISPOSED',
        message: expect.stringContaining('keep(x)') as string,
      });
      await using nested = await device
        .ones(f32, [4])
        .andThen((x) => mul(x, 2).andThen((y) => add(y, x)))
        .capture();
      await nested.replay();
      expect([...(await nested.output.read())]).toEqual([3, 3, 3, 3]);
    } finally {
      setDevelopmentMode(false);
    }
  });

  test('operands that fail, and operations after them, leave nothing open', async () => {
    const wrong = device.zeros(f32, [5]) as never;
    const copies = kernel('copies', { y: output(f32), x: inout(f32) }, ({ y, x }, gpu) => {
      const i = gpu.globalId.x;
      if (i < y.length) y[i] = x[i]!;
    });
    for (const op of [
      add(device.zeros(f32, [3]), wrong),
      matmul(device.zeros(f32, [3, 4]), device.zeros(f32, [3, 4]) as never),
      copies({ y: device.zeros(f32, [4]), x: device.zeros(u8, [4]) as never }),
      zip(device.zeros(f32, [4]), device.zeros(u8, [2 ** 46])),
      parallel(
        device.zeros(f32, [4]),
        device.zeros(f32, [4]).andThen(() => {
          throw new Error('mine');
        }),
      ),
      allOf([
        device.zeros(f32, [4]).andThen((x) => x.read().andThen(() => x.dup())),
        device.zeros(f32, [4]).map(() => {
          throw new Error('mine');
        }),
      ]),
    ]) {
      await failure(() => op);
      await device.finished();
      for (let i = 0; i < 100 && (await live()) > 0; i++) await turns(1);
      expect(await live(), String(op)).toBe(0);
    }
  });

  test('the value of Running.value belongs to the caller, also where the run fails', async () => {
    const stream = policyOf(device).nextStream();
    const running = zip(device.ones(f32, [4]), device.zeros(u8, [2 ** 46])).runOn(stream);
    const [first, second] = running.value;
    await failure(() => running);
    expect(first.isClosed).toBe(false);
    first.close();
    second.close();
    const other = zip(device.ones(f32, [4]), device.zeros(u8, [2 ** 46])).runOn(stream);
    await failure(() => other);
  });

  test('an abort closes the result of the run, unless it is awaited elsewhere', async () => {
    const controller = new AbortController();
    const aborted = device.ones(f32, [1 << 16]).run({ signal: controller.signal });
    controller.abort(new Error('enough'));
    await expect(aborted).rejects.toThrow('enough');
    expect(await live()).toBe(0);

    const second = new AbortController();
    const running = device.ones(f32, [1 << 16]).runOn(policyOf(device).nextStream());
    const given = running.then((x) => x);
    const waiting = running.finished({ signal: second.signal });
    second.abort(new Error('enough'));
    await expect(waiting).rejects.toThrow('enough');
    const x = await given;
    expect(x.isClosed).toBe(false);
    x.close();
  });

  test('close() closes the memory of a shared operation and refuses later runs', async () => {
    const shared = device.ones(f32, [4]).shared();
    const doubled = await shared.andThen((x) => mul(x, 2).andThen((y) => y.read()));
    expect([[...doubled], await live()]).toEqual([[2, 2, 2, 2], 1]);
    expect(await sum(shared).andThen((s) => s.item())).toBe(4);
    shared.close();
    expect(await failure(() => shared)).toMatchObject({
      code: 'ERR_CUDA_DISPOSED',
      message: expect.stringContaining('shared()') as string,
    });
    // One that fails leaves nothing open, and rejects every run with the same error.
    const failing = zip(device.ones(f32, [4]), device.zeros(u8, [2 ** 46])).shared();
    expect(await failure(() => failing)).toMatchObject({ code: 'ERR_CUDA_OUT_OF_MEMORY' });
    expect(await failure(() => failing)).toMatchObject({ code: 'ERR_CUDA_OUT_OF_MEMORY' });
  });

  test('a shared operation is independent of the run that needs it first', async () => {
    for (const first of [
      (shared: DeviceOp<Tensor<'f32'>>) =>
        shared.andThen((w) => w.read()).andThen(() => device.zeros(u8, [2 ** 46])),
      (shared: DeviceOp<Tensor<'f32'>>) =>
        shared
          .andThen((w) => w.read())
          .map(() => {
            throw new Error('mine');
          }),
      (shared: DeviceOp<Tensor<'f32'>>) =>
        shared.andThen(() => {
          throw new Error('mine');
        }),
      (shared: DeviceOp<Tensor<'f32'>>) => zip(shared, device.zeros(u8, [2 ** 46])),
    ]) {
      const shared = device
        .ones(f32, [4])
        .andThen((x) => add(x, 1))
        .shared();
      await failure(() => first(shared as never));
      expect([...(await shared.andThen((w) => w.read()))]).toEqual([2, 2, 2, 2]);
      shared.close();
    }
    const controller = new AbortController();
    const shared = device
      .ones(f32, [1 << 16])
      .andThen((x) => add(x, 1))
      .shared();
    const aborted = shared.andThen((x) => x.read()).run({ signal: controller.signal });
    controller.abort(new Error('enough'));
    await expect(aborted).rejects.toThrow('enough');
    await turns(5);
    expect((await shared.andThen((x) => x.read()))[0]).toBe(2);
    shared.close();
  });

  test('an abort ends a loop of the host before its next step', async () => {
    const controller = new AbortController();
    let turnsTaken = 0;
    const endless = device
      .ones(f32, [4])
      .repeatWhile(
        () => device.full(u8, [1], 1),
        (x) => {
          turnsTaken++;
          return x.copyFrom(add(x, 1));
        },
      )
      .run({ signal: controller.signal });
    while (turnsTaken < 3) await turns(1);
    controller.abort(new Error('enough'));
    await expect(endless).rejects.toThrow('enough');
    for (let i = 0; i < 200 && (await live()) > 0; i++) await turns(1);
    const taken = turnsTaken;
    await turns(20);
    expect(turnsTaken).toBe(taken);
  });

  test('closing the result of a graph does not affect the graph', async () => {
    const graph = await device
      .ones(f32, [2])
      .andThen((x) => add(x, 1))
      .capture();
    for (let i = 0; i < 2; i++) {
      using y = await graph.replay();
      expect([...(await y.read())]).toEqual([2, 2]);
    }
    await graph.close();
    expect(graph.output.isClosed).toBe(true);
  });

  test('a context allocates in its callback only; closed tensors cannot be kept', async () => {
    let context: OpContext | undefined;
    let closed: Tensor | undefined;
    await device.ones(f32, [1]).withContext((given, x) => {
      context = given;
      closed = x as Tensor;
      return x.read();
    });
    expect(await failure(() => context!.alloc(coreF32, 4))).toMatchObject({
      code: 'ERR_CUDA_INVALID_ARGUMENT',
      message: expect.stringContaining('callback') as string,
    });
    expect(await failure(() => keep(closed!))).toMatchObject({ code: 'ERR_CUDA_DISPOSED' });
  });

  test('large values are searched for tensors only as far as needed', async () => {
    const words = new Map(Array.from({ length: 200_000 }, (_, i) => [String(i), { i }]));
    const holes: unknown[] = [];
    holes[2 ** 31] = 1;
    const started = performance.now();
    const { x } = await device
      .ones(f32, [4])
      .map((each) => ({ x: each, words, holes }))
      .andThen(({ x: each }) => add(each, 1).map((more) => ({ x: more, holes, words })));
    expect(performance.now() - started).toBeLessThan(5000);
    x.close();
  });

  test('each part of unzip() is passed on once, with its memory', async () => {
    const [a, b] = zip(device.full(f32, [2], 1), device.full(f32, [2], 2)).unzip();
    const first = await a;
    expect(await live()).toBe(2);
    expect([...(await b.andThen((x) => x.read()))]).toEqual([2, 2]);
    expect(await live()).toBe(1);
    expect(await failure(() => b)).toMatchObject({
      code: 'ERR_CUDA_DISPOSED',
      message: expect.stringContaining('given once') as string,
    });
    // As long as it is open others can use it, and do not close it.
    expect([...(await a.andThen((x) => x.read()))]).toEqual([1, 1]);
    expect(first.isClosed).toBe(false);
    first.close();
  });

  test('closing a result of several tensors closes all of them', async () => {
    const best = await topK(device.arange(f32, 8), 2);
    expect([...(await best.values.read())]).toEqual([7, 6]);
    best.close();
    expect([best.values.isClosed, best.indices.isClosed]).toEqual([true, true]);
    const twice = kernel('twice', { y: inout(f32) }, ({ y }, gpu) => {
      const i = gpu.globalId.x;
      if (i < y.length) y[i] = y[i]! * 2;
    });
    {
      using result = await twice({ y: device.ones(f32, [4]) });
      expect([...(await result.y.read())]).toEqual([2, 2, 2, 2]);
    }
    using mine = await device.ones(f32, [4]);
    const passed = await twice({ y: mine });
    passed.close();
    expect(mine.isClosed).toBe(false);
  });

  test('iterations of a loop keep no memory', async () => {
    let turnsLeft = 20;
    let most = 0;
    const x = await device.zeros(f32, [4]).repeatWhile(
      () => device.full(u8, [1], turnsLeft-- > 0 ? 1 : 0),
      (given) =>
        add(given, 1).andThen((more) =>
          given.copyFrom(more).tap(() => {
            most++;
          }),
        ),
    );
    expect([[...(await x.read())], most, await live()]).toEqual([[20, 20, 20, 20], 20, 1]);
    x.close();
  });

  test('a graph owns its allocations, and reparam frees the earlier ones', async () => {
    const target = await device.zeros(f32, [4]);
    const graph = await target.copyFrom(mul(device.ones(f32, [4]), 2)).capture();
    const held = await live();
    for (let i = 3; i < 8; i++) {
      await graph.reparam(target.copyFrom(mul(device.ones(f32, [4]), i)));
      await graph.replay();
      expect([...(await target.read())]).toEqual([i, i, i, i]);
      expect(await live()).toBe(held);
    }
    await graph.close();
    target.close();
    expect(graph).toBeInstanceOf(OpGraph);
  });
});

test('closing a device waits for runs whose kernels are being compiled', async () => {
  const device = await Device.open(testDevice);
  const slow = kernel('slow', { y: output(f32) }, ({ y }, gpu) => {
    const i = gpu.globalId.x;
    if (i < y.length) y[i] = Math.sqrt(i);
  });
  const running = slow({ y: device.zeros(f32, [16]) })
    .andThen(({ y }) => y.read())
    .then((values) => values.length);
  const later = sum(device.ones(f32, [1000]))
    .andThen((s) => s.item())
    .then((each) => each);
  const closed = device.close();
  expect(await failure(() => device.zeros(f32, [1]))).toMatchObject({ code: 'ERR_CUDA_DISPOSED' });
  expect([await running, await later]).toEqual([16, 1000]);
  await closed;
});

test('a run that a device did not wait for rejects since the device was closed', async () => {
  const device = await Device.open(testDevice);
  const slow = kernel('slow', { y: output(f32) }, ({ y }, gpu) => {
    const i = gpu.globalId.x;
    if (i < y.length) y[i] = Math.cos(i);
  });
  const running = slow({ y: device.zeros(f32, [16]) }).andThen(({ y }) => y.read());
  const failed = failure(() => running);
  await turns(0);
  await device.close({ timeout: 0 });
  expect(await failed).toMatchObject({ code: 'ERR_CUDA_DEVICE_CLOSED' });
});
