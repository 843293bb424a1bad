/**
 * Cross-stream tracking: on whichever streams work is queued, the results are those of the same
 * calls one after the other. The programs are random and contain no waits.
 */
import { i32, input, inout, u32 } from 'async-cuda/core';
import type { DeviceBuffer, Graph, Kernel, PinnedBuffer, Stream } from 'async-cuda/core';
import * as fc from '../fast-check.js';
import { beforeAll, describe, expect, test } from 'vitest';

import { ELEMENTWISE } from './kernels/elementwise.js';
import { WAITING } from './kernels/waiting.js';
import { Gate, onDevice, stillPending } from './test-device.js';

const STREAMS = 4;
const BUFFERS = 3;

type Step =
  | { kind: 'write' | 'fill' | 'pinnedIn'; stream: number; buffer: number; value: number }
  | { kind: 'add1' | 'read' | 'pinnedOut' | 'addHalf'; stream: number; buffer: number }
  | { kind: 'absorb' | 'copy'; stream: number; buffer: number; from: number }
  | { kind: 'delay'; stream: number; rounds: number }
  | { kind: 'graph'; stream: number }
  | { kind: 'restart'; stream: number }
  | { kind: 'renew'; stream: number; buffer: number; value: number };

const stream = fc.nat(STREAMS - 1);
const buffer = fc.nat(BUFFERS - 1);
const value = fc.integer({ min: -1000, max: 1000 });

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constantFrom('write' as const, 'fill' as const, 'pinnedIn' as const),
      stream,
      buffer,
      value,
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constantFrom(
        'add1' as const,
        'read' as const,
        'pinnedOut' as const,
        'addHalf' as const,
      ),
      stream,
      buffer,
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constantFrom('absorb' as const, 'copy' as const),
      stream,
      buffer,
      from: buffer,
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('delay' as const), stream, rounds: fc.nat(20_000) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('graph' as const), stream }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('restart' as const), stream }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('renew' as const), stream, buffer, value }),
  },
);

onDevice('Cross-stream tracking', (host) => {
  let add1: Kernel;
  let absorb: Kernel;
  let spin: Kernel;

  beforeAll(async () => {
    const module = await host.load(ELEMENTWISE);
    add1 = module.kernel('add1', [inout(i32), u32]);
    absorb = module.kernel('absorb', [inout(i32), input(i32), u32]);
    spin = (await host.load(WAITING)).kernel('spin');
  });

  /**
   * Runs the program on the device and, step by step, on plain arrays; compares everything that was
   * read.
   */
  async function check(steps: readonly Step[], length: number): Promise<void> {
    const { device } = host;
    const streams: Stream[] = Array.from({ length: STREAMS }, () => device.createStream());
    const buffers: DeviceBuffer<'i32'>[] = Array.from({ length: BUFFERS }, (_, i) =>
      device.alloc(i32, length, { stream: streams[i % STREAMS]! }),
    );
    const model = Array.from({ length: BUFFERS }, () => new Int32Array(length));
    const delays = Array.from({ length: STREAMS }, () => device.alloc(u32, 32));
    const pinned: PinnedBuffer<'i32'> = await device.pinned(i32, length);
    const grid = { grid: Math.ceil(length / 128), block: 128 };
    buffers.forEach((target, i) => target.fill(streams[(i + 1) % STREAMS]!, 0));
    // One graph over two of the buffers: absorbs 0 into 1.
    const graph: Graph = (await streams[0]!.capture((captured) => {
      absorb.launch(captured, grid, buffers[1]!, buffers[0]!, length);
    })) as Graph;
    let graphIsGood = true;
    const reads: { got: PromiseLike<Int32Array>; expected: Int32Array; at: number }[] = [];

    for (const [at, next] of steps.entries()) {
      const on = streams[next.stream]!;
      switch (next.kind) {
        case 'write':
          buffers[next.buffer]!.write(
            on,
            model[next.buffer]!.map((_, i) => next.value + i),
          );
          model[next.buffer] = model[next.buffer]!.map((_, i) => next.value + i);
          break;
        case 'fill':
          buffers[next.buffer]!.fill(on, next.value);
          model[next.buffer]!.fill(next.value);
          break;
        case 'pinnedIn':
          // Through the page-locked buffer, which every stream shares: a copy from another buffer
          // fills it first.
          buffers[(next.buffer + 1) % BUFFERS]!.read(on, pinned);
          buffers[next.buffer]!.write(streams[(next.stream + 1) % STREAMS]!, pinned);
          model[next.buffer] = model[(next.buffer + 1) % BUFFERS]!.slice();
          break;
        case 'add1':
          add1.launch(on, grid, buffers[next.buffer]!, length);
          model[next.buffer] = model[next.buffer]!.map((x) => x + 1);
          break;
        case 'addHalf': {
          const half = length >> 1;
          add1.launch(on, grid, buffers[next.buffer]!.slice(half), length - half);
          model[next.buffer] = model[next.buffer]!.map((x, i) => (i >= half ? x + 1 : x));
          break;
        }
        case 'read':
          reads.push({
            got: buffers[next.buffer]!.read(on),
            expected: model[next.buffer]!.slice(),
            at,
          });
          break;
        case 'pinnedOut':
          buffers[next.buffer]!.read(on, pinned);
          break;
        case 'absorb': {
          if (next.from === next.buffer) break;
          const from = model[next.from]!;
          absorb.launch(on, grid, buffers[next.buffer]!, buffers[next.from]!, length);
          model[next.buffer] = model[next.buffer]!.map((x, i) => (Math.imul(x, 31) + from[i]!) | 0);
          break;
        }
        case 'copy':
          if (next.from === next.buffer) break;
          buffers[next.buffer]!.copyFrom(on, buffers[next.from]!);
          model[next.buffer] = model[next.from]!.slice();
          break;
        case 'delay':
          spin.launch(on, { grid: 1, block: 32 }, delays[next.stream]!, 1, next.rounds);
          break;
        case 'graph':
          if (!graphIsGood) break;
          graph.launch(on);
          model[1] = model[1]!.map((x, i) => (Math.imul(x, 31) + model[0]![i]!) | 0);
          break;
        case 'restart':
          on.close();
          streams[next.stream] = device.createStream();
          break;
        case 'renew':
          buffers[next.buffer]!.close();
          if (next.buffer < 2) graphIsGood = false;
          buffers[next.buffer] = device.alloc(i32, length, { stream: on });
          buffers[next.buffer]!.fill(streams[(next.stream + 1) % STREAMS]!, next.value);
          model[next.buffer]!.fill(next.value);
          break;
      }
    }
    buffers.forEach((target, i) => {
      reads.push({
        got: target.read(streams[i % STREAMS]!),
        expected: model[i]!.slice(),
        at: steps.length,
      });
    });
    const results = await Promise.all(reads.map((read) => read.got));
    reads.forEach(({ expected, at }, i) => {
      if (Buffer.compare(Buffer.from(results[i]!.buffer), Buffer.from(expected.buffer)) !== 0) {
        expect({ at, values: [...results[i]!.subarray(0, 4)] }).toEqual({
          at,
          values: [...expected.subarray(0, 4)],
        });
        expect(results[i]).toEqual(expected);
      }
    });
    await graph.close();
    for (const each of [...buffers, ...delays]) each.close();
    for (const each of streams) each.close();
    await pinned.close();
  }

  const runs = 200;

  test('small buffers: any program gives the sequential result', { tags: 'random' }, async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), (steps) => check(steps, 16)),
      { numRuns: runs },
    );
  });

  test(
    'buffers that travel in slices: any program gives the sequential result',
    { tags: 'random' },
    async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(step, { maxLength: 25 }), (steps) => check(steps, 20_000)),
        { numRuns: Math.ceil(runs / 4) },
      );
    },
  );

  test(
    'long programs: more operations than a stream has events for',
    { tags: 'random' },
    async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 400, maxLength: 600 }), (steps) =>
          check(
            steps.filter((each) => each.kind !== 'delay'),
            8,
          ),
        ),
        { numRuns: Math.ceil(runs / 10) },
      );
    },
  );

  describe('with a stream that is held up', () => {
    let gate: Gate;
    let hold: Kernel;

    beforeAll(async () => {
      gate = await Gate.of(await host.load(WAITING));
      hold = (await host.load(WAITING)).kernel('hold', [inout(i32)]);
    });

    test('readers on several streams do not wait for one another', async () => {
      const readers = [
        host.device.createStream(),
        host.device.createStream(),
        host.device.createStream(),
      ];
      using slow = host.device.alloc(i32, 1);
      using shared = host.device.alloc(i32, 4);
      using sink = host.device.alloc(i32, 4);
      slow.fill(readers[0]!, 0);
      sink.fill(readers[0]!, 0);
      shared.fill(host.stream, 5);
      hold.launch(readers[0]!, { grid: 1, block: 1 }, slow);
      absorb.launch(readers[0]!, { grid: 1, block: 4 }, sink, shared, 4);
      expect((await shared.read(readers[1]!))[0]).toBe(5);
      expect((await shared.read(readers[2]!))[3]).toBe(5);
      await gate.open();
      expect((await sink.read(readers[1]!))[0]).toBe(5);
      await gate.shut();
      for (const reader of readers) reader.close();
    });

    test('a writer waits for every reader, not only for the last', async () => {
      using first = host.device.createStream();
      using second = host.device.createStream();
      using writer = host.device.createStream();
      using slow = host.device.alloc(i32, 1);
      using shared = host.device.alloc(i32, 4);
      using sink = host.device.alloc(i32, 4);
      slow.fill(first, 0);
      sink.fill(first, 0);
      shared.fill(host.stream, 5);
      hold.launch(first, { grid: 1, block: 1 }, slow);
      absorb.launch(first, { grid: 1, block: 4 }, sink, shared, 4);
      await shared.read(second);
      const written = shared.fill(writer, 9);
      expect(await stillPending(written)).toBe(true);
      await gate.open();
      await written;
      await gate.shut();
      expect((await sink.read(second))[0]).toBe(5);
    });

    test('a wait includes the work that it must and nothing queued later', async () => {
      using first = host.device.createStream();
      using second = host.device.createStream();
      using slow = host.device.alloc(i32, 1);
      using shared = host.device.alloc(i32, 4);
      slow.fill(first, 0);
      // Both streams are in use, so that operations record their events.
      await Promise.all([first.finished(), second.record().finished()]);
      shared.fill(first, 5);
      hold.launch(first, { grid: 1, block: 1 }, slow);
      expect((await shared.read(second))[0]).toBe(5);
      await gate.open();
      await first.finished();
      await gate.shut();
    });

    test('closing a buffer waits for its readers on other streams', async () => {
      using first = host.device.createStream();
      using slow = host.device.alloc(i32, 1);
      using sink = host.device.alloc(i32, 1024);
      const shared = host.device.alloc(i32, 1024);
      slow.fill(first, 0);
      sink.fill(first, 0);
      shared.fill(host.stream, 5);
      hold.launch(first, { grid: 1, block: 1 }, slow);
      absorb.launch(first, { grid: 8, block: 128 }, sink, shared, 1024);
      shared.close();
      // The next allocation may have the same address.
      const next = Array.from({ length: 8 }, () => host.device.alloc(i32, 1024));
      const filled = next.map((each) => each.fill(host.stream, 77));
      await gate.open();
      expect((await sink.read(first)).every((x) => x === 5)).toBe(true);
      await Promise.all(filled);
      await gate.shut();
      for (const each of next) each.close();
    });
  });
});
