/** What the library publishes on diagnostics channels. */
import { channel, subscribe, unsubscribe } from 'node:diagnostics_channel';

import { i32, labelled } from 'async-cuda/core';
import type {
  FenceMessage,
  GraphMessage,
  Kernel,
  MemoryMessage,
  OperationMessage,
  Stream,
} from 'async-cuda/core';
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';

import { ELEMENTWISE } from './kernels/elementwise.js';
import { onDeviceInEachMode, testDevice } from './test-device.js';

const N = 64;
const GRID = { grid: 1, block: N } as const;

/** The messages of one channel while a test runs. */
class Listener<M> {
  readonly messages: M[] = [];
  private readonly name: string;
  private readonly listen = (message: unknown): void => {
    this.messages.push(message as M);
  };

  constructor(name: string) {
    this.name = `async-cuda:${name}`;
    subscribe(this.name, this.listen);
  }

  end(): void {
    unsubscribe(this.name, this.listen);
  }
}

onDeviceInEachMode('Channels', (host) => {
  let add1: Kernel;
  let stream: Stream;
  let listeners: { end(): void }[] = [];

  const listen = <M = OperationMessage>(name: string): M[] => {
    const listener = new Listener<M>(name);
    listeners.push(listener);
    return listener.messages;
  };

  beforeAll(async () => {
    add1 = (await host.load(ELEMENTWISE)).kernel('add1');
    stream = host.device.createStream({ label: 'work' });
  });
  beforeEach(() => {
    listeners = [];
  });
  afterEach(() => {
    for (const listener of listeners) listener.end();
  });

  test('a launch is published with its kernel, grid, block and memory', async () => {
    using buffer = host.device.alloc(i32, N, { stream });
    const launches = listen('launch');
    const all = listen('enqueue');
    const before = performance.now();
    await add1.launch(stream, { grid: [1, 2], block: [N, 1, 1], sharedBytes: 16 }, buffer, 0);
    expect(launches).toHaveLength(1);
    const [launch] = launches;
    expect(launch).toMatchObject({
      kind: 'launch',
      device: `${testDevice}:0`,
      streamLabel: 'work',
      name: 'add1',
      label: undefined,
      captured: false,
      grid: [1, 2, 1],
      block: [N, 1, 1],
      sharedBytes: 16,
    });
    expect(launch!.memory).toHaveLength(1);
    expect(launch!.operation).toBeGreaterThan(0);
    expect(launch!.time).toBeGreaterThanOrEqual(before);
    expect(all).toContain(launch);
  });

  test('launches of every form are published, also by compiled launch code', async () => {
    using buffer = host.device.alloc(i32, N, { stream });
    const launches = listen('launch');
    const shapes = [
      { grid: 3, block: N },
      { grid: [3, 2], block: N },
      { grid: [3, 2, 1], block: [8, 4, 2], cooperative: true },
    ] as const;
    // No elements: threads of more than one dimension would all add to the same ones.
    for (const shape of shapes) await add1.launch(stream, shape, buffer, 0);
    expect(launches.map(({ grid, block }) => [grid, block])).toEqual([
      [
        [3, 1, 1],
        [N, 1, 1],
      ],
      [
        [3, 2, 1],
        [N, 1, 1],
      ],
      [
        [3, 2, 1],
        [8, 4, 2],
      ],
    ]);
    for (let i = 0; i < 600; i++) add1.launch(stream, GRID, buffer, N);
    await stream.finished();
    expect(launches).toHaveLength(603);
    expect(launches.at(-1)).toEqual({
      ...launches[3],
      time: launches.at(-1)!.time,
      operation: launches.at(-1)!.operation,
    });
  });

  test('launches that are awaited one after the other are each published', async () => {
    using buffer = host.device.alloc(i32, N, { stream });
    const launches = listen('launch');
    for (let i = 0; i < 20; i++) await add1.launch(stream, GRID, buffer, N);
    expect(launches).toHaveLength(20);
  });

  test('copies have their direction and bytes, whether small or holding the stream', async () => {
    const long = 1 << 20;
    using small = host.device.alloc(i32, N, { stream, label: 'small' });
    using other = host.device.alloc(i32, N, { stream });
    using large = host.device.alloc(i32, long, { stream });
    await using pinned = await host.device.pinned(i32, N);
    const copies = listen('copy');
    await small.write(stream, new Int32Array(N));
    await small.read(stream);
    await other.copyFrom(stream, small);
    await other.read(stream, pinned);
    await large.write(stream, new Int32Array(long));
    await large.read(stream);
    const told = copies.map(({ direction, bytes }) => `${direction} ${bytes}`);
    expect(told.slice(0, 4)).toEqual([
      `hostToDevice ${N * 4}`,
      `deviceToHost ${N * 4}`,
      `deviceToDevice ${N * 4}`,
      `deviceToHost ${N * 4}`,
    ]);
    expect(told.slice(4)).toEqual([`hostToDevice ${long * 4}`, `deviceToHost ${long * 4}`]);
    expect(copies[0]!.name).toBe("buffer 'small'.write");
    expect(copies[4]!.name).toBe(`buffer i32[${long}].write`);
  });

  test('copies in two and three dimensions have the number of bytes moved', async () => {
    using image = host.device.alloc2D(i32, { width: 5, height: 7 }, { stream });
    using buffer = host.device.alloc(i32, 2 * 3 * 4, { stream });
    const copies = listen('copy');
    await image.write(stream, new Int32Array(35));
    await buffer.box({ width: 2, height: 3, depth: 4 }).write(stream, new Int32Array(24));
    expect(copies.map(({ bytes }) => bytes)).toEqual([35 * 4, 24 * 4]);
  });

  test('everything that is queued on a stream is published on enqueue', async () => {
    const all = listen('enqueue');
    const buffer = host.device.alloc(i32, N, { stream });
    buffer.fill(stream, 3);
    using event = stream.record();
    stream.wait(event);
    await stream.call(() => undefined);
    buffer.close();
    await stream.finished();
    expect(all.map(({ kind }) => kind)).toEqual([
      'alloc',
      'fill',
      'record',
      'wait',
      'call',
      'free',
    ]);
    expect(all[1]!.bytes).toBe(N * 4);
    expect(all[0]!.memory).toEqual(all[1]!.memory);
    expect(new Set(all.map(({ stream: number }) => number)).size).toBe(1);
  });

  test('allocations and frees are published, with the bytes in use', async () => {
    const made = listen<MemoryMessage>('alloc');
    const given = listen<MemoryMessage>('free');
    const buffer = host.device.alloc(i32, N, { stream, label: 'mine' });
    const pinned = await host.device.pinned(i32, N);
    const plain = await host.device.allocPlain(i32, N);
    expect(made.map(({ kind, bytes, label }) => [kind, bytes, label])).toEqual([
      ['device', N * 4, 'mine'],
      ['pinned', N * 4, undefined],
      ['plain', N * 4, undefined],
    ]);
    expect(made[2]!.bytesInUse).toBe(made[0]!.bytesInUse + N * 4);
    buffer.close();
    await pinned.close();
    plain.close();
    expect(given.map(({ kind, memory }) => [kind, memory])).toEqual(
      made.map(({ kind, memory }) => [kind, memory]),
    );
    expect(given[2]!.bytesInUse).toBe(made[0]!.bytesInUse - N * 4);
  });

  test('a wait is published at its start and its end', async () => {
    using buffer = host.device.alloc(i32, N, { stream });
    const fences = listen<FenceMessage>('fence');
    add1.launch(stream, GRID, buffer, N);
    await stream.finished();
    await buffer.read(stream);
    expect(fences.length).toBeGreaterThanOrEqual(4);
    const begun = fences.filter(({ phase }) => phase === 'wait');
    const ended = fences.filter(({ phase }) => phase === 'passed');
    expect(ended.map(({ fence }) => fence)).toEqual(begun.map(({ fence }) => fence));
    for (const end of ended) expect(end.duration).toBeGreaterThanOrEqual(0);
  });

  test('captures, instantiations and launches of graphs are published', async () => {
    using buffer = host.device.alloc(i32, N, { stream });
    const graphs = listen<OperationMessage | GraphMessage>('graph');
    const launches = listen('launch');
    await using graph = await stream.capture(() => {
      add1.launch(stream, GRID, buffer, N);
    });
    await graph.launch(stream);
    expect(graphs.map((message) => ('phase' in message ? message.phase : message.kind))).toEqual([
      'capture',
      'instantiate',
      'graph',
    ]);
    expect((graphs[2] as OperationMessage).memory).toEqual(launches[0]!.memory);
    expect(launches.map(({ captured }) => captured)).toEqual([true]);
    expect((graphs[1] as GraphMessage).duration).toBeGreaterThan(0);
  });

  test('what is queued within labelled() has that label, the innermost one', async () => {
    using buffer = host.device.alloc(i32, N, { stream });
    const all = listen('enqueue');
    const given = labelled('outer', () => {
      buffer.fill(stream, 1);
      labelled('inner', () => add1.launch(stream, GRID, buffer, N));
      expect(() =>
        labelled('failing', () => {
          throw new Error('on the way');
        }),
      ).toThrow('on the way');
      return add1.launch(stream, GRID, buffer, N);
    });
    await given;
    add1.launch(stream, GRID, buffer, N);
    await stream.finished();
    expect(all.map(({ label }) => label)).toEqual(['outer', 'inner', 'outer', undefined]);
  });

  test('a listener may queue work', async () => {
    using buffer = host.device.alloc(i32, N, { stream });
    using copy = host.device.alloc(i32, N, { stream });
    await buffer.fill(stream, 0);
    let nested = false;
    const listener = (): void => {
      if (nested) return;
      nested = true;
      copy.copyFrom(stream, buffer);
    };
    subscribe('async-cuda:launch', listener);
    await add1.launch(stream, GRID, buffer, N);
    unsubscribe('async-cuda:launch', listener);
    expect((await copy.read(stream))[0]).toBe(1);
  });

  test('nothing is published without a listener', async () => {
    using buffer = host.device.alloc(i32, N, { stream });
    const launches = listen('launch');
    await add1.launch(stream, GRID, buffer, N);
    for (const listener of listeners) listener.end();
    await add1.launch(stream, GRID, buffer, N);
    expect(launches).toHaveLength(1);
    expect(channel('async-cuda:launch').hasSubscribers).toBe(false);
  });
});

describe('labelled', () => {
  test('takes a text and a function', () => {
    expect(() => labelled(3 as never, () => 1)).toThrow('label');
    expect(() => labelled('a', 3 as never)).toThrow('body');
  });
});
