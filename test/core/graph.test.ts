/** Graphs: work recorded once and launched again. */
import { f32, i32, input, inout, u32 } from 'async-cuda/core';
import type { Graph, Kernel, Stream } from 'async-cuda/core';
import { beforeAll, describe, expect, test } from 'vitest';

import { ELEMENTWISE } from './kernels/elementwise.js';
import { failure, onDeviceInEachMode, openTestDevice, stillPending } from './test-device.js';

const N = 64;
const GRID = { grid: 1, block: N } as const;

onDeviceInEachMode('Graph', (host) => {
  let add1: Kernel;
  let absorb: Kernel;
  let stream: Stream;

  beforeAll(async () => {
    const module = await host.load(ELEMENTWISE);
    add1 = module.kernel('add1');
    absorb = module.kernel('absorb', [inout(i32), input(i32), u32]);
    stream = host.device.createStream();
  });

  test('captured work does not run until the graph is launched', async () => {
    using buffer = host.device.alloc(i32, N);
    buffer.fill(stream, 1);
    await using graph = await stream.capture(() => {
      add1.launch(stream, GRID, buffer, N);
    });
    expect((await buffer.read(stream))[0]).toBe(1);
    await graph.launch(stream);
    expect((await buffer.read(stream))[N - 1]).toBe(2);
  });

  test('each launch runs it again', async () => {
    using buffer = host.device.alloc(i32, N);
    buffer.fill(stream, 0);
    await using graph = await stream.capture(() => {
      add1.launch(stream, GRID, buffer, N);
      add1.launch(stream, GRID, buffer, N);
    });
    for (let i = 0; i < 50; i++) graph.launch(stream);
    expect((await buffer.read(stream))[0]).toBe(100);
  });

  test('records fills, copies between buffers, and copies from and to pinned memory', async () => {
    using a = host.device.alloc(i32, N);
    using b = host.device.alloc(i32, N);
    await using source = await host.device.pinned(i32, N);
    await using target = await host.device.pinned(i32, N);
    await using graph = await stream.capture(() => {
      a.write(stream, source);
      b.fill(stream, 7);
      absorb.launch(stream, GRID, b, a, N);
      a.copyFrom(stream, b);
      a.read(stream, target);
    });
    for (const value of [5, -3]) {
      source.view().fill(value);
      await graph.launch(stream);
      expect([...target.view()]).toEqual(Array(N).fill(7 * 31 + value));
    }
  });

  test('has the value that the captured function returned', async () => {
    using buffer = host.device.alloc(i32, N);
    await using graph = (await stream.capture(() => {
      buffer.fill(stream, 1);
      return 'done' as unknown as void;
    })) as Graph<string>;
    expect(graph.output).toBe('done');
  });

  test('an empty capture is a graph of no nodes', async () => {
    await using graph = await stream.capture(() => undefined);
    expect(await graph.nodeCount()).toBe(0);
    await graph.launch(stream);
  });

  test('names the kinds of its nodes', async () => {
    using a = host.device.alloc(i32, N);
    using b = host.device.alloc(i32, N);
    await using graph = await stream.capture(() => {
      a.fill(stream, 1);
      b.copyFrom(stream, a);
      add1.launch(stream, GRID, b, N);
    });
    expect((await graph.nodeTypes()).sort()).toEqual(['kernel', 'memcpy', 'memset']);
    expect(await graph.nodeCount()).toBe(3);
  });

  test('is written as DOT text for Graphviz', async () => {
    using a = host.device.alloc(i32, N);
    await using graph = await stream.capture(() => {
      a.fill(stream, 1);
      add1.launch(stream, GRID, a, N);
    });
    const dot = await graph.dot();
    expect(dot).toMatch(/^digraph/);
    expect(dot).toContain('->');
    expect((await graph.dot({ verbose: true })).length).toBeGreaterThanOrEqual(dot.length);
  });

  test('another stream joins through an event and back', async () => {
    using other = host.device.createStream();
    using a = host.device.alloc(i32, N);
    using b = host.device.alloc(i32, N);
    using forked = host.device.createEvent();
    using joined = host.device.createEvent();
    await using graph = await stream.capture(() => {
      a.fill(stream, 3);
      stream.record(forked);
      other.wait(forked);
      b.fill(other, 4);
      other.record(joined);
      add1.launch(stream, GRID, a, N);
      stream.wait(joined);
      absorb.launch(stream, GRID, a, b, N);
    });
    a.fill(stream, 0);
    b.fill(stream, 0);
    graph.launch(stream);
    expect((await a.read(stream))[0]).toBe(4 * 31 + 4);
  });

  test('another stream joins through stream.wait(stream)', async () => {
    using other = host.device.createStream();
    using a = host.device.alloc(i32, N);
    await using graph = await stream.capture(() => {
      a.fill(stream, 3);
      other.wait(stream);
      add1.launch(other, GRID, a, N);
    });
    expect((await graph.nodeTypes()).sort()).toEqual(['kernel', 'memset']);
    graph.launch(stream);
    expect((await a.read(stream))[0]).toBe(4);
  });

  test('tracking orders the streams of a capture', async () => {
    using other = host.device.createStream();
    using a = host.device.alloc(i32, N);
    using b = host.device.alloc(i32, N);
    using forked = host.device.createEvent();
    await using graph = await stream.capture(() => {
      stream.record(forked);
      other.wait(forked);
      for (let i = 0; i < 10; i++) {
        a.fill(stream, i);
        absorb.launch(other, GRID, b, a, N);
      }
    });
    let expected = 1;
    for (let i = 0; i < 10; i++) expected = (Math.imul(expected, 31) + i) | 0;
    b.fill(host.stream, 1);
    graph.launch(stream);
    expect((await b.read(stream))[N - 1]).toBe(expected);
  });

  test('a launch and conflicting work on other streams wait for each other', async () => {
    using other = host.device.createStream();
    using a = host.device.alloc(i32, N);
    await using graph = await stream.capture(() => {
      add1.launch(stream, GRID, a, N);
    });
    let goOn!: () => void;
    const called = new Promise<void>((begun) => {
      void other.call(() => {
        begun();
        return new Promise<void>((resolve) => (goOn = resolve));
      });
    });
    a.fill(other, 10);
    const launched = graph.launch(stream);
    const read = a.read(host.stream);
    expect(await stillPending(launched)).toBe(true);
    // On a busy machine the call may begin later than that.
    await called;
    goOn();
    await launched;
    expect((await read)[0]).toBe(11);
  });

  test('launches on different streams run one after the other', async () => {
    using other = host.device.createStream();
    using a = host.device.alloc(i32, N);
    a.fill(stream, 0);
    await using graph = await stream.capture(() => {
      add1.launch(stream, GRID, a, N);
    });
    for (let i = 0; i < 40; i++) graph.launch(i % 2 === 0 ? stream : other);
    expect((await a.read(host.stream))[0]).toBe(40);
  });

  test('can be uploaded ahead of its first launch', async () => {
    using a = host.device.alloc(i32, N);
    a.fill(stream, 1);
    await using graph = await stream.capture(() => {
      add1.launch(stream, GRID, a, N);
    });
    await graph.upload(stream);
    await graph.launch(stream);
    expect((await a.read(stream))[0]).toBe(2);
  });

  test('update takes another graph’s parameters', async () => {
    using a = host.device.alloc(i32, N);
    using b = host.device.alloc(i32, N);
    await using graph = await stream.capture(() => {
      a.fill(stream, 1);
      add1.launch(stream, GRID, a, N);
    });
    await using other = await stream.capture(() => {
      b.fill(stream, 5);
      add1.launch(stream, GRID, b, 1);
    });
    a.fill(stream, 0);
    b.fill(stream, 0);
    await graph.update(other);
    await graph.launch(stream);
    expect((await a.read(stream))[0]).toBe(0);
    expect([...(await b.read(stream))].slice(0, 2)).toEqual([6, 5]);
  });

  test('update refuses a graph of another shape, and leaves the graph as it was', async () => {
    using a = host.device.alloc(i32, N);
    await using graph = await stream.capture(() => {
      a.fill(stream, 1);
    });
    await using other = await stream.capture(() => {
      a.fill(stream, 2);
      add1.launch(stream, GRID, a, N);
    });
    expect(await failure(() => graph.update(other))).toMatchObject({ code: 'ERR_CUDA_CAPTURE' });
    await graph.launch(stream);
    expect((await a.read(stream))[0]).toBe(1);
  });

  test('the stream works as before after a capture', async () => {
    using a = host.device.alloc(i32, N);
    await using graph = await stream.capture(() => {
      a.fill(stream, 2);
    });
    a.fill(stream, 9);
    expect((await a.read(stream))[0]).toBe(9);
    await graph.launch(stream);
    expect((await a.read(stream))[0]).toBe(2);
  });

  test('work queued on other streams before a capture goes on during it', async () => {
    using a = host.device.alloc(i32, N);
    using b = host.device.alloc(i32, N);
    b.fill(host.stream, 3);
    let read!: PromiseLike<Int32Array>;
    await using graph = await stream.capture(() => {
      a.fill(stream, 2);
      read = host.stream.finished().then(() => b.read(host.stream));
    });
    expect((await read)[0]).toBe(3);
    expect(await graph.nodeCount()).toBe(1);
  });

  describe('of a stream that has not joined', () => {
    const refusals: [string, (other: Stream) => unknown][] = [
      ['a fill', (other) => scratch().fill(other, 3)],
      ['a launch', (other) => add1.launch(other, GRID, scratch(), N)],
      ['a write', (other) => scratch().write(other, new Int32Array(N))],
      ['a read', (other) => scratch().read(other)],
      ['a copy', (other) => scratch().slice(0, 1).copyFrom(other, scratch().slice(1, 2))],
      ['call', (other) => other.call(() => 1)],
      ['record', (other) => other.record()],
      ['waiting for another that has not joined', (other) => other.wait(host.stream)],
    ];
    let lazily: ReturnType<typeof host.device.alloc<'i32'>> | undefined;
    const scratch = (): ReturnType<typeof host.device.alloc<'i32'>> =>
      (lazily ??= host.device.alloc(i32, N));

    test.each(refusals)(
      '%s is refused, with the stream’s name and how to join',
      async (_, call) => {
        using other = host.device.createStream({ label: 'other' });
        scratch().fill(other, 5);
        let error!: Awaited<ReturnType<typeof failure>>;
        await using graph = await stream.capture(() => {
          try {
            call(other);
          } catch (thrown) {
            error = thrown as typeof error;
          }
        });
        expect(error).toMatchObject({ code: 'ERR_CUDA_CAPTURE' });
        expect(error.message).toContain("stream 'other' has not joined");
        expect(error.message).toContain('stream.wait(');
        expect(error.message).toContain("unjoined: 'run'");
        expect(await graph.nodeCount()).toBe(0);
        expect((await scratch().read(other))[N - 1]).toBe(5);
      },
    );

    test('work on a stream that was made in the function is refused until it joins', async () => {
      let refused: unknown;
      await using graph = await stream.capture(() => {
        using other = host.device.createStream();
        try {
          scratch().fill(other, 1);
        } catch (error) {
          refused = error;
        }
      });
      expect(refused).toMatchObject({ code: 'ERR_CUDA_CAPTURE' });
      await using joined = await stream.capture(() => {
        const other = host.device.createStream();
        other.wait(stream);
        scratch().fill(other, 1);
      });
      expect([await graph.nodeCount(), await joined.nodeCount()]).toEqual([0, 1]);
    });

    test('work that throws in the function and is not caught ends the capture', async () => {
      await expect(
        stream.capture(() => {
          scratch().fill(host.stream, 1);
        }),
      ).rejects.toMatchObject({ code: 'ERR_CUDA_CAPTURE' });
      await scratch().fill(host.stream, 2);
    });

    test("work runs at once with { unjoined: 'run' }", async () => {
      using b = host.device.alloc(i32, N);
      await using graph = await stream.capture(
        () => {
          scratch().fill(stream, 2);
          b.fill(host.stream, 3);
        },
        { unjoined: 'run' },
      );
      expect((await b.read(host.stream))[0]).toBe(3);
      expect(await graph.nodeCount()).toBe(1);
    });

    test('memory can be allocated and freed', async () => {
      let kept: ReturnType<typeof host.device.alloc<'i32'>>;
      await using graph = await stream.capture(() => {
        kept = host.device.alloc(i32, N);
        kept.fill(stream, 8);
        host.device.alloc(i32, N).close();
      });
      await graph.launch(stream);
      expect((await kept!.read(stream))[0]).toBe(8);
      kept!.close();
    });

    test('the stream works as before after the capture', async () => {
      using other = host.device.createStream();
      await using graph = await stream.capture(() => {
        expect(() => scratch().fill(other, 1)).toThrow('has not joined');
        other.wait(stream);
        scratch().fill(other, 4);
      });
      scratch().fill(other, 6);
      scratch().fill(host.stream, 7);
      expect((await scratch().read(other))[0]).toBe(7);
      expect(await graph.nodeCount()).toBe(1);
    });

    test('unknown options and values are refused', async () => {
      expect(
        await failure(() => stream.capture(() => undefined, { unjoind: 'run' } as never)),
      ).toMatchObject({ argument: 'options.unjoind' });
      expect(
        await failure(() => stream.capture(() => undefined, { unjoined: true } as never)),
      ).toMatchObject({ argument: 'options.unjoined' });
    });
  });

  test('closing a buffer that a capture does not use is not part of the graph', async () => {
    const other = host.device.alloc(i32, N, { stream });
    other.fill(stream, 1);
    using a = host.device.alloc(i32, N);
    await using graph = await stream.capture(() => {
      a.fill(stream, 2);
      other.close();
    });
    expect(await graph.nodeTypes()).toEqual(['memset']);
    graph.launch(stream);
    await graph.launch(stream);
  });

  test('a stream that has joined can queue thousands of launches', async () => {
    using other = host.device.createStream();
    using a = host.device.alloc(i32, N);
    await using graph = await stream.capture(() => {
      a.fill(stream, 0);
      other.wait(stream);
      for (let i = 0; i < 2000; i++) add1.launch(other, GRID, a, N);
    });
    expect(await graph.nodeCount()).toBe(2001);
    await graph.launch(stream);
    expect((await a.read(stream))[0]).toBe(2000);
  });

  test('update affects only later launches, also while earlier ones are held', async () => {
    using a = host.device.alloc(i32, N);
    using b = host.device.alloc(i32, N);
    a.fill(stream, 0);
    b.fill(stream, 0);
    await using graph = await stream.capture(() => {
      add1.launch(stream, GRID, a, N);
    });
    await using other = await stream.capture(() => {
      add1.launch(stream, GRID, b, N);
    });
    let goOn!: () => void;
    void stream.call(() => new Promise<void>((resolve) => (goOn = resolve)));
    graph.launch(stream);
    const updated = graph.update(other);
    expect(await stillPending(updated)).toBe(true);
    expect(await failure(() => graph.launch(stream))).toMatchObject({ code: 'ERR_CUDA_CAPTURE' });
    goOn();
    await updated;
    graph.launch(stream);
    expect([(await a.read(stream))[0], (await b.read(stream))[0]]).toEqual([1, 1]);
  });

  test('after an update the replaced buffers can be closed', async () => {
    const a = host.device.alloc(i32, N);
    using b = host.device.alloc(i32, N);
    await using graph = await stream.capture(() => {
      a.fill(stream, 1);
    });
    await using other = await stream.capture(() => {
      b.fill(stream, 2);
    });
    await graph.update(other);
    a.close();
    await graph.launch(stream);
    expect((await b.read(stream))[0]).toBe(2);
  });

  describe('in capture', () => {
    test.each([
      ['writing a plain array', () => buffer().write(stream, new Int32Array(N))],
      ['reading to a plain array', () => buffer().read(stream)],
      ['allocating', () => host.device.alloc(i32, 1, { stream })],
      ['call', () => stream.call(() => 1)],
      ['sync', () => stream.finished()],
      ['close', () => stream.close()],
      ['capture', () => stream.capture(() => undefined)],
    ])('%s is refused, and the capture goes on', async (_, call) => {
      let refused!: ReturnType<typeof failure>;
      await using graph = await stream.capture(() => {
        buffer().fill(stream, 4);
        refused = failure(call);
      });
      expect((await refused).code).toBe('ERR_CUDA_CAPTURE');
      expect(await graph.nodeTypes()).toEqual(['memset']);
    });

    test('waiting for a stream outside the capture is refused', async () => {
      let refused!: ReturnType<typeof failure>;
      await using graph = await stream.capture(() => {
        refused = failure(() => stream.wait(host.stream));
      });
      expect((await refused).code).toBe('ERR_CUDA_CAPTURE');
      expect(await graph.nodeCount()).toBe(0);
    });

    test('a stream that is being captured cannot join another capture', async () => {
      using other = host.device.createStream();
      let refused!: ReturnType<typeof failure>;
      const inner: Promise<Graph>[] = [];
      await using graph = await stream.capture(() => {
        inner.push(
          other.capture(() => {
            refused = failure(() => other.wait(stream));
          }) as Promise<Graph>,
        );
      });
      expect((await refused).code).toBe('ERR_CUDA_CAPTURE');
      await (await inner[0]!).close();
      expect(await graph.nodeCount()).toBe(0);
    });

    let shared: ReturnType<typeof host.device.alloc<'i32'>> | undefined;
    const buffer = (): ReturnType<typeof host.device.alloc<'i32'>> =>
      (shared ??= host.device.alloc(i32, N));

    test('awaiting captured work is refused', async () => {
      using a = host.device.alloc(i32, N);
      let awaited!: Promise<unknown>;
      await using graph = await stream.capture(() => {
        awaited = failure(() => a.fill(stream, 1).finished());
      });
      expect(await awaited).toMatchObject({ code: 'ERR_CUDA_CAPTURE' });
      await graph.launch(stream);
    });

    test('an error of the function ends the capture and is thrown', async () => {
      const boom = new Error('boom');
      await expect(
        stream.capture(() => {
          throw boom;
        }),
      ).rejects.toBe(boom);
      await stream.finished();
    });

    test('an async function is refused, with the remedy', async () => {
      const error = await failure(() => stream.capture((async () => undefined) as never));
      expect(error).toMatchObject({ argument: 'body' });
      expect(error.message).toContain('Remove async');
      await stream.finished();
    });

    test('a value that is not a function is refused', async () => {
      expect(await failure(() => stream.capture(5 as never))).toMatchObject({ argument: 'body' });
    });

    test('closing a buffer frees it after the launches', async () => {
      const a = host.device.alloc(i32, N, { stream });
      await using graph = await stream.capture(() => {
        a.fill(stream, 1);
        a.close();
      });
      expect(await failure(() => graph.launch(stream))).toMatchObject({
        code: 'ERR_CUDA_DISPOSED',
      });
    });
  });

  test('a launch with a closed buffer is an error with that reason', async () => {
    const a = host.device.alloc(i32, N);
    await using graph = await stream.capture(() => {
      a.fill(stream, 1);
    });
    a.close();
    const error = await failure(() => graph.launch(stream));
    expect(error.code).toBe('ERR_CUDA_DISPOSED');
    expect(error.message).toContain('capture it again');
  });

  test('closing it waits for its launches', async () => {
    using a = host.device.alloc(i32, N);
    const graph = await stream.capture(() => {
      a.fill(stream, 8);
    });
    graph.launch(stream);
    await graph.close();
    await graph.close();
    expect((await a.read(stream))[0]).toBe(8);
  });

  test('a closed one refuses everything', async () => {
    const graph = await stream.capture(() => undefined);
    await graph.close();
    for (const call of [
      () => graph.launch(stream),
      () => graph.nodeTypes(),
      () => graph.dot(),
      () => graph.update(graph),
      () => graph.upload(stream),
    ]) {
      expect(await failure(call)).toMatchObject({ code: 'ERR_CUDA_DISPOSED' });
    }
  });

  test('refuses a stream of another device', async () => {
    await using graph = await stream.capture(() => undefined);
    const other = await openTestDevice({ thread: host.mode }, 'cpu:3');
    expect(await failure(() => graph.launch(other.stream))).toMatchObject({ argument: 'stream' });
    expect(await failure(() => graph.launch({} as never))).toMatchObject({ argument: 'stream' });
    await other.close();
  });

  test('closing the device closes its graphs', async () => {
    const device = await openTestDevice({ thread: host.mode });
    const buffer = device.alloc(f32, 4);
    const graph = await device.stream.capture(() => {
      buffer.fill(device.stream, 1);
    });
    graph.launch(device.stream);
    await device.close();
    expect(await failure(() => graph.launch(host.stream))).toMatchObject({
      code: 'ERR_CUDA_DISPOSED',
    });
  });

  test('hundreds of graphs can be made and closed', async () => {
    using a = host.device.alloc(i32, N);
    a.fill(stream, 0);
    for (let i = 0; i < 200; i++) {
      await using graph = await stream.capture(() => {
        add1.launch(stream, GRID, a, N);
      });
      graph.launch(stream);
    }
    expect((await a.read(stream))[0]).toBe(200);
  });
});
