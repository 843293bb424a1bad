/** Captures while streams are held: what they wait for, and what is queued after them. */
import { f32, graphIf, i32, prepareConditions, u32 } from 'async-cuda/core';
import type {
  CoreDevice,
  DeviceBuffer,
  Event,
  Graph,
  Kernel,
  Pending,
  Stream,
} from 'async-cuda/core';
import { beforeAll, describe, expect, test } from 'vitest';

import { failure, onDevice, stillPending } from './test-device.js';

/** `put` writes 333 to its argument. */
const PUT = `.version 7.0
.target sm_70
.address_size 64
.visible .entry put(.param .u64 word) {
  .reg .b64 %a; .reg .b32 %r;
  ld.param.u64 %a, [word]; cvta.to.global.u64 %a, %a; mov.u32 %r, 333; st.global.u32 [%a], %r; ret;
}`;
const ONE = { grid: 1, block: 1 } as const;
/** More than is copied at the call: the stream is held until the runtime thread has taken it. */
const LARGE = 1 << 20;

/** Holds the stream until the function that is returned is called. */
function heldBack(stream: Stream): () => void {
  let goOn!: () => void;
  void stream.call(() => new Promise<void>((resolve) => (goOn = resolve)));
  return () => {
    // The host function is called when the stream reaches it.
    const poll = (): void => {
      if (goOn === undefined) setImmediate(poll);
      else goOn();
    };
    poll();
  };
}

/** Conditional nodes came with CUDA 12.4. */
function hasConditions(device: CoreDevice): boolean {
  const [major, minor] = device.properties.driverVersion.split('.').map(Number);
  return device.kind === 'cpu' || major! * 100 + minor! >= 1204;
}

onDevice('a capture beside held streams', (host) => {
  let put: Kernel;
  let a: Stream;
  let b: Stream;
  /** Memory that no work of these tests may change. */
  let bystander: DeviceBuffer<'u32'>;

  beforeAll(async () => {
    put = (await host.load(PUT)).kernel('put');
    [a, b] = [host.device.createStream({ label: 'a' }), host.device.createStream({ label: 'b' })];
    bystander = host.device.alloc(u32, 4);
    // From the second stream on, operations record events.
    await bystander.fill(a, 1);
    await bystander.fill(b, 1);
  });

  const untouched = async (): Promise<void> => {
    expect([...(await bystander.read(a))]).toEqual([1, 1, 1, 1]);
  };

  describe('of memory whose allocation is held on another stream', () => {
    const recorded: [string, (x: DeviceBuffer<'u32'>) => void, (values: Uint32Array) => void][] = [
      [
        'a kernel',
        (x) => {
          put.launch(a, ONE, x);
        },
        (values) => {
          expect(values[0]).toBe(333);
        },
      ],
      [
        'a kernel on a part',
        (x) => {
          put.launch(a, ONE, x.slice(16384));
        },
        (values) => {
          expect(values[16384]).toBe(333);
        },
      ],
      [
        'a kernel with attributes',
        (x) => {
          put.launch(a, { ...ONE, cooperative: true }, x.slice(16384));
        },
        (values) => {
          expect(values[16384]).toBe(333);
        },
      ],
      [
        'a kernel of several dimensions',
        (x) => {
          put.launch(a, { grid: [1, 1], block: [1, 1] }, x.slice(16384));
        },
        (values) => {
          expect(values[16384]).toBe(333);
        },
      ],
      [
        'a fill',
        (x) => {
          x.slice(8, 16).fill(a, 5);
        },
        (values) => {
          expect([...values.slice(7, 17)]).toEqual([9, 5, 5, 5, 5, 5, 5, 5, 5, 9]);
        },
      ],
      [
        'a copy to it',
        (x) => {
          x.slice(8, 12).copyFrom(a, bystander);
        },
        (values) => {
          expect([...values.slice(7, 13)]).toEqual([9, 1, 1, 1, 1, 9]);
        },
      ],
      [
        'a copy of boxes',
        (x) => {
          x.slice(8, 12)
            .box({ width: 2, height: 2, depth: 1 })
            .copyFrom(a, bystander.box({ width: 2, height: 2, depth: 1 }));
        },
        (values) => {
          expect([...values.slice(7, 13)]).toEqual([9, 1, 1, 1, 1, 9]);
        },
      ],
    ];

    test.each(recorded)('%s uses it', async (_, record, check) => {
      const goOn = heldBack(b);
      using x = host.device.alloc(u32, 1 << 15, { stream: b });
      x.fill(b, 9);
      const captured = a.capture(() => {
        record(x);
      });
      expect(await stillPending(captured)).toBe(true);
      goOn();
      await using graph = await captured;
      await graph.launch(a);
      check(await x.read(a));
      await untouched();
    });

    test('a copy reads it', async () => {
      using y = host.device.alloc(u32, 4);
      const goOn = heldBack(b);
      using x = host.device.alloc(u32, 64, { stream: b });
      x.fill(b, 9);
      const captured = a.capture(() => {
        y.copyFrom(a, x.slice(0, 4));
      });
      goOn();
      await using graph = await captured;
      await graph.launch(a);
      expect([...(await y.read(a))]).toEqual([9, 9, 9, 9]);
    });

    test('a copy within an image reads it', async () => {
      using y = host.device.alloc2D(f32, { width: 3, height: 2 });
      await y.fill(a, 1);
      const goOn = heldBack(host.stream);
      using x = host.device.alloc2D(f32, { width: 3, height: 2 });
      x.fill(host.stream, 4);
      const captured = a.capture(() => {
        y.copyFrom(a, x);
      });
      goOn();
      await using graph = await captured;
      await graph.launch(a);
      expect([...(await y.read(a))]).toEqual([4, 4, 4, 4, 4, 4]);
    });

    test('a conditional node reads it', async (context) => {
      if (!hasConditions(host.device)) context.skip();
      await prepareConditions(host.device);
      using y = host.device.alloc(u32, 4);
      await y.fill(a, 1);
      const goOn = heldBack(b);
      using decides = host.device.alloc(u32, 1, { stream: b });
      decides.fill(b, 1);
      const captured = a.capture((stream) => {
        graphIf(stream, decides, (within) => {
          y.fill(within, 42);
        });
      });
      goOn();
      await using graph = await captured;
      await graph.launch(a);
      expect([...(await y.read(a))]).toEqual([42, 42, 42, 42]);
    });

    test('another graph can be uploaded to its stream meanwhile', async () => {
      using y = host.device.alloc(u32, 4);
      await using other = await a.capture(() => {
        y.fill(a, 3);
      });
      await a.finished();
      const goOn = heldBack(b);
      using x = host.device.alloc(u32, 64, { stream: b });
      const captured = a.capture(() => {
        x.fill(a, 5);
      });
      await stillPending(captured);
      const uploaded = other.upload(a);
      await stillPending(uploaded);
      goOn();
      await using graph = await captured;
      await uploaded;
      await graph.launch(a);
      expect((await x.read(a))[63]).toBe(5);
    });

    test('it follows a large upload on the device’s stream', async () => {
      using large = host.device.alloc(u32, LARGE);
      large.write(host.stream, new Uint32Array(LARGE));
      using x = host.device.alloc(u32, 1 << 15);
      x.fill(host.stream, 0);
      await using graph = await a.capture(() => {
        put.launch(a, ONE, x.slice(16384));
      });
      await graph.launch(a);
      expect((await x.read(a))[16384]).toBe(333);
      expect((await large.read(a))[0]).toBe(0);
      await untouched();
    });

    test('a buffer that is closed in the capture stays until the graph is closed', async () => {
      const goOn = heldBack(b);
      const x = host.device.alloc(u32, 64, { stream: b });
      const captured = a.capture(() => {
        x.fill(a, 5);
        x.close();
      });
      goOn();
      await using graph = await captured;
      expect(await failure(() => graph.launch(a))).toMatchObject({ code: 'ERR_CUDA_DISPOSED' });
      await untouched();
    });
  });

  describe('that another stream has joined', () => {
    const holds: [string, () => Stream, boolean][] = [
      ['the first stream is held by a call', () => a, false],
      ['the other is held by a call', () => b, false],
      ['the first stream is held by an upload', () => a, true],
      ['the other is held by an upload', () => b, true],
    ];

    describe.each(holds)('where %s', (_, of, uploads) => {
      const hold = (): { large: DeviceBuffer<'u32'> | undefined; goOn: () => void } => {
        if (!uploads) return { large: undefined, goOn: heldBack(of()) };
        const large = host.device.alloc(u32, LARGE);
        large.write(of(), new Uint32Array(LARGE));
        return { large, goOn: () => undefined };
      };

      test('later work of the other runs, and is not part of the graph', async () => {
        using x = host.device.alloc(u32, 4);
        using y = host.device.alloc(u32, 4);
        using z = host.device.alloc(u32, 4);
        for (const buffer of [x, y, z]) await buffer.fill(a, 1);
        const { large, goOn } = hold();
        const captured = a.capture(() => {
          b.wait(a);
          x.fill(b, 2);
          y.fill(a, 3);
        });
        z.fill(b, 7);
        const read = z.read(b);
        const synced = b.finished();
        goOn();
        await using graph = await captured;
        expect([...(await read)]).toEqual([7, 7, 7, 7]);
        await synced;
        expect((await x.read(b))[0]).toBe(1);
        expect(await graph.nodeTypes()).toEqual(['memset', 'memset']);
        await graph.launch(a);
        expect([(await x.read(b))[0], (await y.read(b))[0], (await z.read(b))[0]]).toEqual([
          2, 3, 7,
        ]);
        large?.close();
      });

      test('a stream that waits for the other waits for its later work', async () => {
        using c = host.device.createStream();
        using x = host.device.alloc(u32, 4);
        using y = host.device.alloc(u32, 4);
        await x.fill(a, 1);
        await y.fill(a, 1);
        const { large, goOn } = hold();
        const captured = a.capture(() => {
          b.wait(a);
          x.fill(b, 2);
        });
        c.wait(b);
        y.fill(c, 66);
        const read = y.read(c);
        goOn();
        await using graph = await captured;
        expect((await read)[0]).toBe(66);
        expect(await graph.nodeCount()).toBe(1);
        large?.close();
      });

      test('a function that throws leaves both streams as they were', async () => {
        using x = host.device.alloc(u32, 4);
        using z = host.device.alloc(u32, 4);
        await x.fill(a, 1);
        await z.fill(a, 1);
        const { large, goOn } = hold();
        const captured = failure(() =>
          a.capture(() => {
            b.wait(a);
            x.fill(b, 2);
            throw new Error('of the function');
          }),
        );
        z.fill(b, 7);
        const read = z.read(b);
        goOn();
        expect((await captured).message).toBe('of the function');
        expect((await read)[0]).toBe(7);
        expect((await x.read(b))[0]).toBe(1);
        large?.close();
      });

      test('a second capture after the first makes another graph', async () => {
        using x = host.device.alloc(u32, 4);
        await x.fill(a, 1);
        const { large, goOn } = hold();
        const first = a.capture(() => {
          b.wait(a);
          x.fill(b, 2);
        });
        const second = b.capture(() => {
          a.wait(b);
          x.fill(a, 3);
        });
        goOn();
        await using one = await first;
        await using two = await second;
        two.launch(a);
        await one.launch(b);
        expect((await x.read(a))[0]).toBe(2);
        large?.close();
      });
    });

    test('a stream that joined a conditional node’s body goes on after it', async (context) => {
      if (!hasConditions(host.device)) context.skip();
      await prepareConditions(host.device);
      using decides = host.device.alloc(u32, 1);
      using x = host.device.alloc(u32, 4);
      using z = host.device.alloc(u32, 4);
      await decides.fill(a, 1);
      await x.fill(a, 1);
      await z.fill(a, 1);
      const goOn = heldBack(a);
      const captured = a.capture(
        (stream) => {
          graphIf(stream, decides, (within) => {
            b.wait(within);
            x.fill(b, 2);
          });
        },
        { unjoined: 'run' },
      );
      z.fill(b, 7);
      const read = z.read(b);
      goOn();
      await using graph = await captured;
      expect((await read)[0]).toBe(7);
      await graph.launch(a);
      expect((await x.read(a))[0]).toBe(2);
    });
  });

  describe('waiting for an event that is no part of it', () => {
    test('that was recorded outside is refused, with the remedy', async () => {
      using x = host.device.alloc(u32, 4);
      await x.fill(a, 1);
      using outside = b.record();
      let refused!: ReturnType<typeof failure>;
      await using graph = await a.capture(() => {
        refused = failure(() => {
          a.wait(outside);
        });
        x.fill(a, 2);
      });
      const error = await refused;
      expect(error.code).toBe('ERR_CUDA_CAPTURE');
      expect(error.message).toContain('before the capture');
      await graph.launch(a);
      expect((await x.read(a))[0]).toBe(2);
    });

    test('that was recorded in an earlier capture is refused', async () => {
      using event = host.device.createEvent();
      await using first = await a.capture(() => {
        a.record(event);
      });
      let refused!: ReturnType<typeof failure>;
      await using second = await a.capture(() => {
        refused = failure(() => {
          a.wait(event);
        });
      });
      expect((await refused).code).toBe('ERR_CUDA_CAPTURE');
      expect((await first.nodeCount()) + (await second.nodeCount())).toBe(0);
    });
  });

  describe('awaited when it is over', () => {
    test('captured work and its events reject: nothing has run', async () => {
      using x = host.device.alloc(u32, 4);
      await x.fill(a, 1);
      using event = host.device.createEvent();
      let fill!: Pending;
      let launch!: Pending;
      await using graph = await a.capture(() => {
        fill = x.fill(a, 2);
        launch = put.launch(a, ONE, x);
        a.record(event);
      });
      await a.finished();
      expect(event.reached).toBe(false);
      for (const wait of [
        async () => fill,
        () => fill.finished(),
        async () => launch,
        () => event.finished(),
      ]) {
        const error = await failure(wait);
        expect(error.code).toBe('ERR_CUDA_CAPTURE');
        expect(error.message).toContain('graph.launch(stream)');
      }
      expect((await x.read(a))[0]).toBe(1);
      await graph.launch(a);
      expect((await x.read(a))[0]).toBe(333);
    });

    test('an event that is recorded again outside works as any other', async () => {
      using event = host.device.createEvent();
      await using _graph: Graph = await a.capture(() => {
        a.record(event);
      });
      a.record(event);
      await event.finished();
      expect(event.reached).toBe(true);
      b.wait(event);
      await b.finished();
    });

    test('an event recorded in a held capture may be closed at once', async () => {
      using x = host.device.alloc(i32, 4);
      const goOn = heldBack(a);
      let event!: Event;
      const captured = a.capture(() => {
        x.fill(a, 2);
        event = a.record();
        event.close();
      });
      goOn();
      await using graph = await captured;
      await graph.launch(a);
      expect((await x.read(a))[0]).toBe(2);
    });
  });
});
