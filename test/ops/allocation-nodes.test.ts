/** Memory that graphs allocate by nodes at each launch. */
import { f32, i32, inout, u32 } from 'async-cuda/core';
import type { CoreDevice, DeviceBuffer, Kernel, Stream } from 'async-cuda/core';
import { OpGraph, setDefaultDevice, value } from 'async-cuda/ops';
import { full, prepare, tensor, zeros } from 'async-cuda/tensor';
import { beforeAll, expect, test } from 'vitest';

import { collectGarbage } from '../core/garbage.js';
import { ELEMENTWISE } from '../core/kernels/elementwise.js';
import { failure, onCpu, onDevice, openTestDevice } from '../core/test-device.js';

const N = 64;
const GRID = { grid: 1, block: N } as const;

onDevice('nodes that allocate', (host) => {
  const device = (): CoreDevice => host.device;
  let stream: Stream;
  let add1: Kernel;
  let supported = false;
  beforeAll(async () => {
    setDefaultDevice(device());
    stream = device().createStream({ label: 'recorded' });
    add1 = (await host.load(ELEMENTWISE)).kernel('add1', [inout(i32), u32]);
    await prepare(device(), i32, f32);
    supported = device().properties.memoryPools;
    if (!supported)
      console.warn('the device has no memory pools: what allocates by nodes is not tested');
  });

  test('level 3: a buffer that is closed in the capture is freed by a node', async ({ skip }) => {
    skip(!supported);
    using target = device().alloc(i32, N);
    let kept: DeviceBuffer<'i32'> | undefined;
    await using graph = await stream.capture(
      () => {
        const passing = device().alloc(i32, N, { stream });
        kept = device().alloc(i32, N, { stream, label: 'kept' });
        passing.fill(stream, 5);
        kept.copyFrom(stream, passing);
        passing.close();
        add1.launch(stream, GRID, kept, N);
        target.copyFrom(stream, kept);
      },
      { allocate: 'nodes' },
    );
    expect((await graph.nodeTypes()).sort()).toEqual([
      'kernel',
      'memAlloc',
      'memAlloc',
      'memFree',
      'memcpy',
      'memcpy',
      'memset',
    ]);
    expect((await failure(() => kept!.read(stream))).message).toContain(
      'once the graph has been launched',
    );
    for (let i = 0; i < 3; i++) graph.launch(stream);
    expect((await kept!.read(stream))[7]).toBe(6);
    expect((await target.read(stream))[7]).toBe(6);
    // Other work may use it until the next launch, which waits for that work.
    const other = device().createStream();
    for (let i = 0; i < 5; i++) {
      add1.launch(other, GRID, kept!, N);
      target.copyFrom(other, kept!);
      graph.launch(stream);
    }
    expect([(await kept!.read(other))[0], (await target.read(other))[0]]).toEqual([6, 6]);
    other.close();
  });

  test('memory that was allocated before a conditional node can be used after it', async ({
    skip,
  }) => {
    skip(!supported);
    using condition = await tensor(device(), i32, [1]);
    using two = await full(device(), f32, [4], 2);
    const op = two
      .dup()
      .when(
        () => condition,
        (x) => x.fill(7),
      )
      .andThen((x) => x.dup());
    await using graph = await op.capture(stream, { allocate: 'nodes' });
    const result = await graph.replay();
    expect([...(await result.read())]).toEqual([7, 7, 7, 7]);
  });

  test('level 3: without the option it is refused, with how to allow it', async () => {
    const error = await failure(() =>
      stream.capture(() => {
        device().alloc(i32, N, { stream });
      }),
    );
    expect([error.code, error.message]).toEqual([
      'ERR_CUDA_CAPTURE',
      expect.stringContaining("{ allocate: 'nodes' }"),
    ]);
    expect(
      (await failure(() => stream.capture(() => undefined, { allocate: 'all' as never }))).message,
    ).toContain("options.allocate: expected 'refuse' or 'nodes'");
  });

  test('an operation has the same result; memory that use() closes is freed by a node', async ({
    skip,
  }) => {
    skip(!supported);
    const op = full(device(), f32, [N], 2)
      .andThen((x) => x.convert(i32))
      .andThen((x) => x.dup())
      .andThen((x) =>
        x
          .dup()
          .andThen((copy) => copy.fill(7))
          .map(() => x),
      );
    await using owned = await op.capture();
    await using nodes = await op.capture(undefined, { allocate: 'nodes' });
    expect(
      (await owned.nodeTypes()).filter(
        (type) => type.startsWith('mem') && type !== 'memset' && type !== 'memcpy',
      ),
    ).toEqual([]);
    const types = await nodes.nodeTypes();
    expect([
      types.filter((type) => type === 'memAlloc').length,
      types.filter((type) => type === 'memFree').length,
    ]).toEqual([4, 3]);
    for (const graph of [owned, nodes, nodes, owned]) {
      const x = await graph.replay();
      expect([...(await x.read())]).toEqual(Array(N).fill(2));
    }
    const scoped = await OpGraph.scope(stream, ({ record }) => record(op), { allocate: 'nodes' });
    expect([...(await (await scoped.replay()).read())]).toEqual(Array(N).fill(2));
    await scoped.close();
    expect((await failure(() => scoped.output.read())).code).toBe('ERR_CUDA_DISPOSED');
  });

  test('the graph has the contents that host arrays had at the capture', async ({ skip }) => {
    skip(!supported);
    const source = Int32Array.from({ length: N }, (_, i) => i);
    const op = tensor(device(), i32, source).andThen((x) => x.dup());
    await using graph = await op.capture(stream, { allocate: 'nodes' });
    source.fill(-1);
    for (let i = 0; i < 2; i++)
      expect([...(await (await graph.replay()).read())].slice(0, 4)).toEqual([0, 1, 2, 3]);
  });

  test('bodies of conditional nodes can allocate', async ({ skip }) => {
    skip(!supported || device().runtime.info.conditionalNodes === 'none');
    using state = await tensor(device(), i32, [1, 0]);
    const op = value(state).when(
      (x) => x.slice([0, 1]),
      (x) => full(device(), i32, [2], 9).andThen((nine) => x.copyFrom(nine)),
    );
    await using graph = await op.capture(stream, { allocate: 'nodes' });
    await graph.replay();
    expect([...(await state.read())]).toEqual([9, 9]);
  });

  test('its use by another graph, and update, are refused', async ({ skip }) => {
    skip(!supported);
    const op = zeros(device(), i32, [N]);
    await using graph = await op.capture(stream, { allocate: 'nodes' });
    const x = await graph.replay();
    expect((await failure(() => x.fill(1).capture())).message).toContain(
      'allocated by a node of another graph',
    );
    const error = await failure(() => graph.reparam(op));
    expect([error.code, error.message]).toEqual([
      'ERR_CUDA_CAPTURE',
      expect.stringContaining('graphs that allocate by nodes cannot be updated'),
    ]);
    expect(
      (await failure(() => op.capture(stream, { allocate: 'yes' as never }))).message,
    ).toContain("options.allocate: expected 'graph' or 'nodes'");
    expect((await x.read())[0]).toBe(0);
  });

  test('a launch and a capture that fail leave nothing allocated', async ({ skip }) => {
    skip(!supported);
    const { handles } = device().runtime;
    const fail = async (): Promise<void> => {
      const inner = device().alloc(i32, N);
      inner.fill(stream, 0);
      const graph = await stream.capture(
        () => {
          const made = device().alloc(i32, N, { stream });
          made.copyFrom(stream, inner);
        },
        { allocate: 'nodes' },
      );
      inner.close();
      expect((await failure(() => graph.launch(stream))).code).toBe('ERR_CUDA_DISPOSED');
      await graph.close();
      expect(
        (
          await failure(() =>
            stream.capture(
              () => {
                device().alloc(i32, N, { stream });
                throw new Error('of mine');
              },
              { allocate: 'nodes' },
            ),
          )
        ).message,
      ).toBe('of mine');
      await device().finished();
    };
    // Streams create their events as they need them.
    for (let i = 0; i < 40; i++) await fail();
    // Otherwise garbage of earlier tests would be collected during this one.
    await collectGarbage();
    const before = handles.count;
    for (let i = 0; i < 10; i++) await fail();
    expect(handles.count).toBe(before);
    expect(host.errors).toEqual([]);
  });

  test.runIf(onCpu)('memory is freed when the graph is closed', async () => {
    const free = async (): Promise<number> => {
      await device().finished();
      return (await device().memoryInfo()).free;
    };
    const make = async (): Promise<void> => {
      await using graph = await zeros(device(), i32, [1 << 18])
        .andThen((x) => x.dup())
        .capture(stream, { allocate: 'nodes' });
      await graph.replay();
    };
    await make();
    const before = await free();
    for (let i = 0; i < 5; i++) await make();
    expect(await free()).toBeGreaterThanOrEqual(before - 65536);
  });
});

test('a device without pools refuses it', async () => {
  process.env['ASYNC_CUDA_WITHOUT'] = 'pools';
  const device = await openTestDevice().finally(() => {
    delete process.env['ASYNC_CUDA_WITHOUT'];
  });
  const error = await failure(() =>
    zeros(device, i32, [4]).capture(device.createStream(), { allocate: 'nodes' }),
  );
  expect([error.code, error.message]).toEqual([
    'ERR_CUDA_UNSUPPORTED',
    expect.stringContaining('memory pools'),
  ]);
  await device.close();
});
