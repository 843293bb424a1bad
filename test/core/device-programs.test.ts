/** Random programs of two devices, compared with a model that runs them in order. */
import { i32, inout, u32 } from 'async-cuda/core';
import type { CoreDevice, DeviceBuffer, Event, Stream } from 'async-cuda/core';
import * as fc from '../fast-check.js';
import { describe, expect, test } from 'vitest';

import { onPairs } from './device-pair.js';
import { ELEMENTWISE } from './kernels/elementwise.js';
import { WAITING } from './kernels/waiting.js';
import { range } from './test-device.js';

onPairs('Programs of two devices', (pair) => {
  describe('Any program', () => {
    const DEVICES = 2;
    const STREAMS = 3;
    const BUFFERS = 2;
    type Step =
      | { kind: 'fill'; device: number; stream: number; buffer: number; value: number }
      | { kind: 'add1' | 'read' | 'renew'; device: number; stream: number; buffer: number }
      | {
          kind: 'copy';
          device: number;
          stream: number;
          buffer: number;
          from: number;
          across: boolean;
        }
      | { kind: 'delay'; device: number; stream: number; rounds: number }
      | { kind: 'wait'; device: number; stream: number; on: number; event: boolean }
      | { kind: 'restart'; device: number; stream: number };
    const device = fc.nat(DEVICES - 1);
    const stream = fc.nat(STREAMS - 1);
    const buffer = fc.nat(BUFFERS - 1);
    const step: fc.Arbitrary<Step> = fc.oneof(
      {
        weight: 3,
        arbitrary: fc.record({
          kind: fc.constant('fill' as const),
          device,
          stream,
          buffer,
          value: fc.integer({ min: -99, max: 99 }),
        }),
      },
      {
        weight: 5,
        arbitrary: fc.record({
          kind: fc.constantFrom('add1' as const, 'read' as const),
          device,
          stream,
          buffer,
        }),
      },
      {
        weight: 8,
        arbitrary: fc.record({
          kind: fc.constant('copy' as const),
          device,
          stream,
          buffer,
          from: buffer,
          across: fc.boolean(),
        }),
      },
      {
        weight: 2,
        arbitrary: fc.record({
          kind: fc.constant('delay' as const),
          device,
          stream,
          rounds: fc.nat(20_000),
        }),
      },
      {
        weight: 2,
        arbitrary: fc.record({
          kind: fc.constant('wait' as const),
          device,
          stream,
          on: stream,
          event: fc.boolean(),
        }),
      },
      {
        weight: 1,
        arbitrary: fc.record({ kind: fc.constant('restart' as const), device, stream }),
      },
      {
        weight: 1,
        arbitrary: fc.record({ kind: fc.constant('renew' as const), device, stream, buffer }),
      },
    );

    async function check(steps: readonly Step[], length: number): Promise<void> {
      const devices: CoreDevice[] = [pair.a, pair.b];
      const modules = await Promise.all(devices.map((each) => pair.load(each, ELEMENTWISE)));
      const waiting = await Promise.all(devices.map((each) => pair.load(each, WAITING)));
      const add1 = modules.map((module) => module.kernel('add1', [inout(i32), u32]));
      const spin = waiting.map((module) => module.kernel('spin'));
      const streams: Stream[][] = devices.map((each) =>
        range(STREAMS).map(() => each.createStream()),
      );
      const buffers: DeviceBuffer<'i32'>[][] = devices.map((each) =>
        range(BUFFERS).map(() => each.alloc(i32, length)),
      );
      const delays = devices.map((each) => range(STREAMS).map(() => each.alloc(u32, 32)));
      const events: Event[] = devices.map((each) => each.createEvent());
      const model = devices.map(() => range(BUFFERS).map(() => new Int32Array(length)));
      for (const [i, row] of buffers.entries())
        for (const each of row) each.fill(devices[i]!.stream, 0);
      const shape = { grid: Math.ceil(length / 128), block: 128 };
      const reads: { got: PromiseLike<Int32Array>; expected: Int32Array }[] = [];
      for (const next of steps) {
        const { device: d } = next;
        const on = streams[d]![next.stream]!;
        switch (next.kind) {
          case 'fill':
            buffers[d]![next.buffer]!.fill(on, next.value);
            model[d]![next.buffer]!.fill(next.value);
            break;
          case 'add1':
            add1[d]!.launch(on, shape, buffers[d]![next.buffer]!, length);
            model[d]![next.buffer] = model[d]![next.buffer]!.map((x) => x + 1);
            break;
          case 'read':
            reads.push({
              got: buffers[d]![next.buffer]!.read(on),
              expected: model[d]![next.buffer]!.slice(),
            });
            break;
          case 'copy': {
            const from = next.across ? 1 - d : d;
            if (from === d && next.from === next.buffer) break;
            buffers[d]![next.buffer]!.copyFrom(on, buffers[from]![next.from]!);
            model[d]![next.buffer] = model[from]![next.from]!.slice();
            break;
          }
          case 'delay':
            spin[d]!.launch(on, { grid: 1, block: 32 }, delays[d]![next.stream]!, 1, next.rounds);
            break;
          case 'wait': {
            const other = streams[1 - d]![next.on]!;
            on.wait(next.event ? other.record(events[1 - d]) : other);
            break;
          }
          case 'restart':
            on.close();
            streams[d]![next.stream] = devices[d]!.createStream();
            break;
          case 'renew':
            buffers[d]![next.buffer]!.close();
            buffers[d]![next.buffer] = devices[d]!.alloc(i32, length, { stream: on });
            buffers[d]![next.buffer]!.fill(streams[d]![(next.stream + 1) % STREAMS]!, 7);
            model[d]![next.buffer]!.fill(7);
            break;
        }
      }
      for (const [d, row] of buffers.entries()) {
        for (const [i, each] of row.entries())
          reads.push({ got: each.read(streams[d]![i]!), expected: model[d]![i]!.slice() });
      }
      const results = await Promise.all(reads.map(({ got }) => got));
      results.forEach((values, i) => expect(values).toEqual(reads[i]!.expected));
      for (const each of [...buffers.flat(), ...delays.flat(), ...streams.flat(), ...events])
        each.close();
    }

    const runs = 30;

    test('small buffers: gives the sequential result', { tags: 'random' }, async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(step, { maxLength: 60 }), (steps) => check(steps, 16)),
        { numRuns: runs },
      );
    });

    test(
      'buffers that are copied in steps: gives the sequential result',
      { tags: 'random' },
      async () => {
        await fc.assert(
          fc.asyncProperty(fc.array(step, { maxLength: 25 }), (steps) => check(steps, 300_000)),
          { numRuns: Math.ceil(runs / 10) },
        );
      },
    );

    test('long programs: gives the sequential result', { tags: 'random' }, async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 300, maxLength: 400 }), (steps) =>
          check(
            steps.filter(({ kind }) => kind !== 'delay'),
            8,
          ),
        ),
        { numRuns: Math.ceil(runs / 10) },
      );
    });
  });
});
