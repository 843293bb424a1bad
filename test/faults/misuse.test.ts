/** Misuse by programs: it is an error that names the fault, or harmless. */
import { readFileSync } from 'node:fs';

import { CoreDevice, f32, i32, input, inout, output, struct, u32, u8 } from 'async-cuda/core';
import type {
  CudaError,
  Event,
  Graph,
  Kernel,
  ManagedBuffer,
  MemoryPool,
  Module,
  PinnedBuffer,
  Stream,
} from 'async-cuda/core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { ELEMENTWISE } from '../core/kernels/elementwise.js';
import {
  allModes,
  failure,
  onDevice,
  openTestDevice,
  testDevice,
  turns,
} from '../core/test-device.js';
import { runProgram } from './program.js';
import { someOf } from '../random-runs.js';

/** It takes some ten milliseconds and more to compile. */
const LARGE = readFileSync(new URL('../ptx/samples/sm_80/k18_math.ptx', import.meta.url), 'utf8');

onDevice('Wrong arguments', (host) => {
  let stream: Stream;
  let module: Module;
  let kernel: Kernel;
  let graph: Graph;
  let pool: MemoryPool;
  let event: Event;
  let pinned: PinnedBuffer<'i32'>;
  let managed: ManagedBuffer<'i32'>;
  let buffer: ReturnType<typeof host.device.alloc<'i32'>>;
  let image: ReturnType<typeof host.device.alloc2D<'i32'>>;
  let words: ReturnType<typeof host.device.alloc<'u32'>>;
  let elsewhere: CoreDevice;
  let wrong: [string, unknown][];

  beforeAll(async () => {
    stream = host.device.createStream();
    module = await host.load(ELEMENTWISE);
    kernel = module.kernel('add1');
    buffer = host.device.alloc(i32, 64);
    buffer.fill(stream, 0);
    image = host.device.alloc2D(i32, { width: 8, height: 8 });
    words = await host.device.allocPlain(u32, 64);
    words.fill(stream, 0);
    graph = await stream.capture(() => {
      buffer.fill(stream, 1);
    });
    pool = await host.device.createPool();
    event = host.device.createEvent();
    pinned = await host.device.pinned(i32, 64);
    managed = await host.device.managed(i32, 64);
    elsewhere = await openTestDevice({ thread: host.mode }, 'cpu:4');
    const closedStream = host.device.createStream();
    closedStream.close();
    const closed = host.device.alloc(i32, 64);
    closed.close();
    const detached = new Int32Array(64);
    structuredClone(detached.buffer, { transfer: [detached.buffer] });
    wrong = [
      ['NaN', NaN],
      ['-5', -5],
      ['1.5', 1.5],
      ['Infinity', Infinity],
      ['2^53', 2 ** 53],
      ['a bigint', 5n],
      ['a string', 'abc'],
      ['an empty string', ''],
      ['a symbol', Symbol('x')],
      ['an array', [1, 'two', null]],
      ['an object', { nonsense: 1 }],
      ['a bare object', Object.assign(Object.create(null) as object, { nonsense: 1 })],
      ['a promise', Promise.resolve(1)],
      ['a signal', new AbortController().signal],
      ['a closed stream', closedStream],
      ['a stream of another device', elsewhere.stream],
      ['a closed buffer', closed],
      ['a buffer of another device', elsewhere.alloc(f32, 64)],
      ['a detached array', detached],
      ['an array of another type', new Float32Array(64)],
      ['a DataView', new DataView(new ArrayBuffer(256))],
      [
        'what throws when it is shown',
        {
          [Symbol.for('nodejs.util.inspect.custom')]: () => {
            throw new Error('shown');
          },
          toString: () => {
            throw new Error('shown');
          },
          nonsense: 1,
        },
      ],
    ];
  });

  afterAll(async () => {
    await elsewhere.close();
  });

  const shape = { grid: 1, block: 1 } as const;
  const cube = { width: 4, height: 4, depth: 4 };
  const ints = (): Int32Array => new Int32Array(64);
  type Any = never;
  /** `may` lists the calls that are allowed. */
  const calls: [string, (value: Any) => unknown, ...string[]][] = [
    ['Device.open, name', (v) => CoreDevice.open(v)],
    ['Device.open, options', (v) => CoreDevice.open(testDevice, v)],
    ['Device.open, thread', (v) => CoreDevice.open(testDevice, { thread: v })],
    ['Device.open, memoryBytes', (v) => CoreDevice.open('cpu', { memoryBytes: v })],
    ['limit', (v) => host.device.limit(v)],
    ['setLimit, value', (v) => host.device.setLimit('stackSize', v)],
    ['createStream', (v) => host.device.createStream(v)],
    ['createStream, priority', (v) => host.device.createStream({ priority: v }).close(), '-5'],
    ['createStream, blocking', (v) => host.device.createStream({ blocking: v })],
    [
      'createStream, label',
      (v) => host.device.createStream({ label: v }).close(),
      'a string',
      'an empty string',
    ],
    ['createEvent', (v) => host.device.createEvent(v)],
    ['createEvent, timing', (v) => host.device.createEvent({ timing: v })],
    ['alloc, dtype', (v) => host.device.alloc(v, 1)],
    ['alloc, length', (v) => host.device.alloc(i32, v)],
    ['alloc, options', (v) => host.device.alloc(i32, 1, v)],
    ['alloc, stream', (v) => host.device.alloc(i32, 1, { stream: v })],
    ['alloc, pool', (v) => host.device.alloc(i32, 1, { pool: v })],
    [
      'alloc, label',
      (v) => host.device.alloc(i32, 1, { label: v }).close(),
      'a string',
      'an empty string',
    ],
    ['allocPlain, dtype', (v) => host.device.allocPlain(v, 1)],
    ['allocPlain, length', (v) => host.device.allocPlain(i32, v)],
    ['allocPlain, options', (v) => host.device.allocPlain(i32, 1, v)],
    [
      'allocPlain, label',
      async (v) => (await host.device.allocPlain(i32, 1, { label: v })).close(),
      'a string',
      'an empty string',
    ],
    ['alloc2D, size', (v) => host.device.alloc2D(i32, v)],
    ['alloc2D, no size', () => host.device.alloc2D(i32, undefined as never)],
    ['alloc2D, width', (v) => host.device.alloc2D(i32, { width: v, height: 1 })],
    ['alloc2D, channels', (v) => host.device.alloc2D(i32, { width: 1, height: 1, channels: v })],
    ['pinned, dtype', (v) => host.device.pinned(v, 1)],
    ['pinned, length', (v) => host.device.pinned(i32, v)],
    ['managed, length', (v) => host.device.managed(i32, v)],
    ['createPool', (v) => host.device.createPool(v)],
    ['createPool, maxBytes', (v) => host.device.createPool({ maxBytes: v })],
    ['trim', (v) => pool.trim(v)],
    ['setReleaseThreshold', (v) => pool.setReleaseThreshold(v), 'Infinity'],
    ['loadModule', (v) => host.device.loadModule(v)],
    ['loadModule, options', (v) => host.device.loadModule(ELEMENTWISE, v)],
    ['loadModule, maxRegisters', (v) => host.device.loadModule(ELEMENTWISE, { maxRegisters: v })],
    ['loadModule, debug', (v) => host.device.loadModule(ELEMENTWISE, { debug: v })],
    ['kernel, name', (v) => module.kernel(v)],
    ['kernel, signature', (v) => module.kernel('add1', v)],
    ['kernel, elements', (v) => module.kernel('add1', [v, v])],
    ['global', (v) => module.global(v)],
    ['input', (v) => input(v)],
    ['output', (v) => output(v)],
    ['inout', (v) => inout(v)],
    ['struct', (v) => struct(v)],
    ['struct, alignment', (v) => struct(4, v)],
    ['launch, stream', (v) => kernel.launch(v, shape, buffer, 64)],
    ['launch, options', (v) => kernel.launch(stream, v, buffer, 64)],
    ['launch, grid', (v) => kernel.launch(stream, { grid: v, block: 1 }, buffer, 64)],
    ['launch, grid y', (v) => kernel.launch(stream, { grid: [1, v], block: 1 }, buffer, 64)],
    ['launch, block', (v) => kernel.launch(stream, { grid: 1, block: v }, buffer, 64)],
    ['launch, shared', (v) => kernel.launch(stream, { ...shape, sharedBytes: v }, buffer, 64)],
    ['launch, cooperative', (v) => kernel.launch(stream, { ...shape, cooperative: v }, buffer, 64)],
    ['launch, cluster', (v) => kernel.launch(stream, { ...shape, cluster: v }, buffer, 64)],
    ['launch, priority', (v) => kernel.launch(stream, { ...shape, priority: v }, buffer, 64), '-5'],
    ['launch, number', (v) => kernel.launch(stream, shape, buffer, v), '-5'],
    ['maxActiveBlocks', (v) => kernel.maxActiveBlocks(v)],
    ['suggestBlockSize', (v) => kernel.suggestBlockSize(v)],
    ['suggestBlockSize, limit', (v) => kernel.suggestBlockSize({ limit: v })],
    ['availableShared', (v) => kernel.availableShared(v, 32)],
    ['write, stream', (v) => buffer.write(v, ints())],
    ['write', (v) => buffer.write(stream, v)],
    ['writeBits', (v) => buffer.writeBits(stream, v)],
    ['read, stream', (v) => buffer.read(v)],
    ['read, options', (v) => buffer.read(stream, v)],
    ['read, into', (v) => buffer.read(stream, { into: v })],
    ['readBits, into', (v) => buffer.readBits(stream, { into: v })],
    ['fill, stream', (v) => buffer.fill(v, 1)],
    ['fill', (v) => buffer.fill(stream, v), '-5'],
    ['copyFrom', (v) => buffer.copyFrom(stream, v)],
    ['slice', (v) => buffer.slice(v), '-5'],
    ['reinterpret', (v) => buffer.reinterpret(v)],
    [
      'chunks, stream',
      async (v) => {
        for await (const chunk of buffer.chunks(v)) expect(chunk).toBeDefined();
      },
    ],
    [
      'chunks, options',
      async (v) => {
        for await (const chunk of buffer.chunks(stream, v)) expect(chunk).toBeDefined();
      },
    ],
    [
      'chunks, length',
      async (v) => {
        for await (const chunk of buffer.chunks(stream, { length: v })) expect(chunk).toBeDefined();
      },
    ],
    ['writable, chunk', (v) => buffer.writable(stream).getWriter().write(v)],
    ['image.write', (v) => image.write(stream, v)],
    ['image.read, into', (v) => image.read(stream, { into: v })],
    ['image.fill', (v) => image.fill(stream, v), '-5'],
    ['image.copyFrom', (v) => image.copyFrom(stream, v)],
    ['crop', (v) => image.crop(v)],
    ['crop, width', (v) => image.crop({ x: 0, y: 0, width: v, height: 1 })],
    ['box', (v) => buffer.box(v)],
    ['box, no layout', () => buffer.box(undefined as never)],
    ['box, width', (v) => buffer.box({ width: v, height: 1, depth: 1 })],
    ['box, rowStride', (v) => buffer.box({ width: 1, height: 1, depth: 1, rowStride: v })],
    ['image.box', (v) => image.box(v)],
    ['image.box, height', (v) => image.box({ height: v })],
    ['box.write', (v) => buffer.box(cube).write(stream, v)],
    ['box.write, stream', (v) => buffer.box(cube).write(v, ints())],
    ['box.read, options', (v) => buffer.box(cube).read(stream, v)],
    ['box.read, into', (v) => buffer.box(cube).read(stream, { into: v })],
    ['box.copyFrom', (v) => buffer.box(cube).copyFrom(stream, v)],
    ['box.crop', (v) => buffer.box(cube).crop(v)],
    ['box.crop, no area', () => buffer.box(cube).crop(undefined as never)],
    [
      'box.crop, z',
      (v) => buffer.box(cube).crop({ x: 0, y: 0, z: v, width: 1, height: 1, depth: 1 }),
    ],
    ['copyTo', (v) => buffer.copyTo(stream, v)],
    ['writeValue', (v) => stream.writeValue(v, 0, 1)],
    ['writeValue, index', (v) => stream.writeValue(words, v, 1)],
    ['writeValue, value', (v) => stream.writeValue(words, 0, v)],
    ['waitValue', (v) => stream.waitValue(v, 0, 0)],
    ['waitValue, value', (v) => stream.waitValue(words, 0, v)],
    ['waitValue, condition', (v) => stream.waitValue(words, 0, 0, v)],
    [
      'createPool, releaseThreshold',
      async (v) => (await host.device.createPool({ releaseThreshold: v })).close(),
      'Infinity',
    ],
    ['setReuse', (v) => pool.setReuse(v)],
    ['setReuse, nothing', () => pool.setReuse(undefined as never)],
    ['setReuse, allowOpportunistic', (v) => pool.setReuse({ allowOpportunistic: v })],
    ['canAccessPeer', (v) => host.device.canAccessPeer(v)],
    ['enablePeerAccess', (v) => host.device.enablePeerAccess(v)],
    ['disablePeerAccess', (v) => host.device.disablePeerAccess(v)],
    ['pinned.slice', (v) => pinned.slice(v), '-5'],
    ['prefetch, stream', (v) => managed.prefetch(v)],
    ['prefetch, to', (v) => managed.prefetch(stream, v)],
    ['sync', (v) => stream.finished(v)],
    ['sync, signal', (v) => stream.finished({ signal: v }), 'a signal'],
    ['record', (v) => stream.record(v)],
    ['wait', (v) => stream.wait(v), 'a closed stream', 'a stream of another device'],
    ['call', (v) => stream.call(v)],
    ['capture', (v) => stream.capture(v)],
    ['capture, options', (v) => stream.capture(() => undefined, v)],
    ['event.sync', (v) => event.finished(v)],
    ['elapsed', (v) => event.elapsed(v)],
    ['graph.launch', (v) => graph.launch(v)],
    ['graph.update', (v) => graph.update(v)],
    ['graph.upload', (v) => graph.upload(v)],
    ['graph.dot', (v) => graph.dot(v)],
    ['pending.wait', (v) => buffer.fill(stream, 1).finished(v)],
    ['device.finished', (v) => host.device.finished(v)],
    ['device.close, options', (v) => later(v)],
    ['device.close, timeout', (v) => later({ timeout: v }), '1.5'],
  ];

  /** A device for calls of `close`: it stays open where one is refused. */
  let closing: CoreDevice | undefined;
  afterAll(() => closing?.close());

  async function later(options: { timeout: number }): Promise<void> {
    closing ??= await openTestDevice({ thread: host.mode }, 'cpu:6');
    await closing.close(options);
    closing = undefined;
  }

  test.each(calls)('%s', async (_, call, ...may) => {
    const odd: string[] = [];
    for (const [what, value] of wrong) {
      let error: CudaError | undefined;
      try {
        const result = await call(value as never);
        if (result instanceof CoreDevice) await result.close();
      } catch (thrown) {
        error = thrown as CudaError;
      }
      const right = may.includes(what);
      if (
        error === undefined
          ? !right
          : right || !/^ERR_CUDA_(?!INTERNAL|DRIVER)/.test(error.code ?? '')
      ) {
        odd.push(
          `${what}: ` +
            `${error === undefined ? 'accepted' : `${error.name} ${error.code}: ${error.message}`}`,
        );
      }
    }
    expect(odd).toEqual([]);
    expect((await buffer.read(stream)).length).toBe(64);
    await turns(3);
    host.errors.length = 0;
  });
});

onDevice('Misuse', (host) => {
  test('an array of a subclass, or of another realm, is taken by its elements', async () => {
    using buffer = host.device.alloc(i32, 4);
    class Mine extends Int32Array {}
    await buffer.write(host.stream, Mine.of(1, 2, 3, 4));
    expect([...(await buffer.read(host.stream))]).toEqual([1, 2, 3, 4]);
    const liar = new Uint8Array(16);
    Object.defineProperty(liar, 'constructor', { value: Int32Array });
    expect(await failure(() => buffer.write(host.stream, liar as never))).toMatchObject({
      argument: 'source',
    });
    const bare = Object.setPrototypeOf(new Uint8Array(16), null) as never;
    expect(await failure(() => buffer.write(host.stream, bare))).toMatchObject({
      argument: 'source',
    });
  });

  test('a call that returns work of its own stream is an error, not a deadlock', async () => {
    using buffer = host.device.alloc(i32, 4);
    const error = await failure(() => host.stream.call(() => buffer.fill(host.stream, 1) as never));
    expect(error.code).toBe('ERR_CUDA_INVALID_ARGUMENT');
    expect(error.message).toContain('waits for the function');
    expect((await buffer.read(host.stream))[0]).toBe(1);
  });

  test('a call can throw any value, and return a thenable', async () => {
    await expect(
      host.stream.call(() => {
        // eslint-disable-next-line @typescript-eslint/only-throw-error -- the value is passed on
        throw undefined;
      }),
    ).rejects.toBe(undefined);
    expect(
      await host.stream.call(
        () => ({ then: (resolve: (value: number) => void) => resolve(42) }) as never,
      ),
    ).toBe(42);
  });

  test('iterators can be left early, by an error, or by closing the buffer', async () => {
    const buffer = host.device.alloc(i32, 10_000);
    buffer.fill(host.stream, 1);
    for await (const chunk of buffer.chunks(host.stream, { length: 100 })) {
      expect(chunk.length).toBe(100);
      break;
    }
    const thrown = new Error('midway');
    await expect(
      (async () => {
        for await (const chunk of buffer.chunks(host.stream, { length: 100 }))
          if (chunk.length > 0) throw thrown;
      })(),
    ).rejects.toBe(thrown);
    await expect(
      (async () => {
        for await (const chunk of buffer.chunks(host.stream, { length: 100 }))
          if (chunk.length > 0) buffer.close();
      })(),
    ).rejects.toMatchObject({ code: 'ERR_CUDA_DISPOSED' });
  });

  test('a kernel of a closed module refuses everything', async () => {
    const module = await host.device.loadModule(ELEMENTWISE);
    const kernel = module.kernel('add1');
    await module.close();
    for (const call of [
      () => kernel.maxActiveBlocks(32),
      () => kernel.suggestBlockSize(),
      () => kernel.availableShared(1, 32),
    ]) {
      expect(await failure(call)).toMatchObject({ code: 'ERR_CUDA_DISPOSED' });
    }
  });

  test('the time between events of two devices is refused', async () => {
    await using other = await openTestDevice({ thread: host.mode }, 'cpu:5');
    using start = host.stream.record();
    using end = other.stream.record();
    expect(await failure(() => start.elapsed(end))).toMatchObject({ argument: 'end' });
  });

  test('close waits for an earlier close, and everything else is refused', async () => {
    const device = await openTestDevice({ thread: host.mode }, 'cpu:5');
    const buffer = device.alloc(u8, 1 << 20);
    const written = buffer.write(device.stream, new Uint8Array(1 << 20));
    const first = device.close();
    const refused: (() => unknown)[] = [
      () => device.alloc(i32, 1),
      () => device.createStream(),
      () => buffer.fill(device.stream, 1),
      () => device.stream.finished(),
      () => device.loadModule(ELEMENTWISE),
      () => device.pinned(i32, 1),
      () => device.memoryInfo(),
    ];
    for (const call of refused)
      expect(await failure(call)).toMatchObject({ code: 'ERR_CUDA_DISPOSED' });
    await device.close();
    expect(device.isClosed).toBe(true);
    await Promise.all([first, written]);
  });

  test('a failure that causes an awaited one is not reported by itself', async () => {
    const device = await openTestDevice({ thread: host.mode }, 'cpu:5');
    const errors: CudaError[] = [];
    device.on('error', (error) => errors.push(error));
    const huge = device.alloc(f32, 2 ** 46);
    const y = device.alloc(f32, 4);
    // It is compiled at once after the allocation, unlike `loadModule`, and no later command is
    // decoded before that.
    const loaded = device.runtime.call('loadModule', LARGE, {}, 0, {});
    y.copyFrom(device.stream, huge.slice(0, 4)).catch(() => undefined);
    const error = await failure(() => y.read(device.stream));
    expect(error).toMatchObject({
      code: 'ERR_CUDA_UNDEFINED_CONTENTS',
      cause: { code: 'ERR_CUDA_OUT_OF_MEMORY' },
    });
    await loaded;
    await turns(3);
    expect(errors).toEqual([]);
    device.alloc(f32, 2 ** 46).close();
    await device.stream.finished();
    await expect.poll(() => errors).toMatchObject([{ code: 'ERR_CUDA_OUT_OF_MEMORY' }]);
    await device.close();
  });

  test('a pool that is closed before its buffers is freed with the device', async () => {
    const device = await openTestDevice({ thread: host.mode }, 'cpu:5');
    const errors: CudaError[] = [];
    device.on('error', (error) => errors.push(error));
    const pool = await device.createPool();
    device.alloc(i32, 4, { pool });
    const closed = pool.close();
    await device.close();
    await closed;
    expect(errors).toEqual([]);
  });

  test('a stream beyond the limit is refused', async () => {
    const streams: Stream[] = [];
    const error = await failure(() => {
      for (;;) streams.push(host.device.createStream());
    });
    expect(error).toMatchObject({ name: 'CudaOutOfMemoryError', code: 'ERR_CUDA_OUT_OF_MEMORY' });
    expect(streams.length).toBeGreaterThan(1000);
    using buffer = host.device.alloc(i32, 4);
    buffer.fill(streams.at(-1)!, 3);
    expect((await buffer.read(streams[500]!))[0]).toBe(3);
    for (const stream of streams) stream.close();
    await host.device.finished();
    await turns(20);
    using again = host.device.createStream();
    buffer.fill(again, 4);
    expect((await buffer.read(again))[0]).toBe(4);
  });

  test('listeners of a device can queue work and close it', async () => {
    const device = await openTestDevice({ thread: host.mode }, 'cpu:5');
    const buffer = device.alloc(i32, 4);
    const told = new Promise<number>((resolve, reject) => {
      device.once('error', () => {
        buffer.fill(device.stream, 8);
        buffer
          .read(device.stream)
          .then(async (values) => {
            await device.close();
            resolve(values[0]!);
          })
          .catch(reject);
      });
    });
    device.alloc(i32, 2 ** 45).close();
    await device.stream.finished();
    expect(await told).toBe(8);
  });
});

someOf(1, describe)(allModes)('Listeners that throw (%s)', (mode) => {
  test('are uncaught exceptions, without any other effect', { tags: 'thorough' }, async () => {
    const ended = await runProgram('listeners', { args: [mode] });
    expect({ code: ended.code, stderr: ended.stderr }).toEqual({ code: 0, stderr: '' });
    expect(ended.result).toEqual({
      uncaught: ['thrown on error', 'thrown on lost'],
      heard: ['error', 'lost'],
      value: 5,
      lost: 'ERR_CUDA_DEVICE_LOST',
    });
  });
});
