/** Recording of a device's work as a trace. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { CudaDeviceLostError, i32, labelled, recordTrace } from 'async-cuda/core';
import type { Kernel, Trace, TraceEvent, TraceJson } from 'async-cuda/core';
import { beforeAll, expect, test } from 'vitest';

import { ELEMENTWISE } from './kernels/elementwise.js';
import { FAULTING } from './kernels/faulting.js';
import { WAITING } from './kernels/waiting.js';
import { Gate, onCpu, onDevice, openTestDevice, stillPending } from './test-device.js';

const N = 64;
const GRID = { grid: 1, block: N } as const;
const JAVASCRIPT = 1;
const DEVICE = 2;

interface Span {
  readonly name: string;
  readonly track: string;
  readonly from: number;
  readonly to: number;
}

/** Checks what Perfetto requires of a trace; returns its events. */
function checked(trace: Trace): readonly TraceEvent[] {
  // As a file has it.
  const json = JSON.parse(JSON.stringify(trace)) as TraceJson;
  const { traceEvents: events, otherData } = json;
  const named = new Set(
    events
      .filter(({ ph, name }) => ph === 'M' && name === 'thread_name')
      .map(({ pid, tid }) => `${pid} ${tid}`),
  );
  const processes = new Set(
    events.filter(({ ph, name }) => ph === 'M' && name === 'process_name').map(({ pid }) => pid),
  );
  expect(processes).toEqual(new Set([JAVASCRIPT, DEVICE]));
  for (const event of events) {
    expect(named, `the track of ${JSON.stringify(event)}`).toContain(`${event.pid} ${event.tid}`);
    if (event.ph === 'M') continue;
    expect(event.ts, JSON.stringify(event)).toBeGreaterThanOrEqual(0);
    if (event.ph === 'X') expect(event.dur, JSON.stringify(event)).toBeGreaterThanOrEqual(0);
  }
  const times = events.filter(({ ph }) => ph !== 'M').map(({ ts }) => ts!);
  expect(times).toEqual([...times].sort((a, b) => a - b));
  for (const [begin, end] of [
    ['s', 'f'],
    ['b', 'e'],
  ] as const) {
    const keys = (ph: string): string[] =>
      events
        .filter((event) => event.ph === ph)
        .map(({ cat, id, name }) => `${cat} ${id} ${name}`)
        .sort();
    expect(keys(end)).toEqual(keys(begin));
    expect(new Set(keys(begin)).size).toBe(keys(begin).length);
    for (const from of events.filter(({ ph }) => ph === begin)) {
      const to = events.find(
        ({ ph, cat, id, name }) =>
          ph === end && cat === from.cat && id === from.id && name === from.name,
      )!;
      expect(to.ts).toBeGreaterThanOrEqual(from.ts!);
    }
  }
  // Both ends of an arrow are in a span.
  for (const { ph, ts, pid, tid } of events) {
    if (ph !== 's' && ph !== 'f') continue;
    expect(
      events.some(
        (span) =>
          span.ph === 'X' &&
          span.pid === pid &&
          span.tid === tid &&
          span.ts! <= ts! &&
          ts! <= span.ts! + span.dur!,
      ),
    ).toBe(true);
  }
  for (const track of tracks(events)) {
    const spans = spansOf(events).filter((span) => span.track === track);
    for (let i = 1; i < spans.length; i++)
      expect(spans[i]!.from, `spans of ${track}`).toBeGreaterThanOrEqual(spans[i - 1]!.to);
  }
  expect(otherData.dropped).toBe(trace.dropped);
  return events;
}

function tracks(events: readonly TraceEvent[]): Set<string> {
  return new Set(spansOf(events).map(({ track }) => track));
}

/** The device's work, by the titles of its tracks. */
function spansOf(events: readonly TraceEvent[]): Span[] {
  const titles = new Map(
    events
      .filter(({ name, pid }) => name === 'thread_name' && pid === DEVICE)
      .map(({ tid, args }) => [tid, args!['name'] as string]),
  );
  return events
    .filter(({ ph, pid }) => ph === 'X' && pid === DEVICE)
    .map(({ name, tid, ts, dur }) => ({
      name,
      track: titles.get(tid)!,
      from: ts!,
      to: ts! + dur!,
    }));
}

/** PTX that takes a while to load. */
function longKernel(instructions: number): string {
  const body = Array.from(
    { length: instructions },
    (_, i) => `mad.lo.u32 %r${i % 7}, %r${(i * 3) % 7}, ${i + 3}, %r${(i * 5) % 7};`,
  );
  return `
.version 7.0
.target sm_70
.address_size 64

.visible .entry long(.param .u64 out)
{
  .reg .u32 %r<7>;
  .reg .u64 %rd<1>;
  ${Array.from({ length: 7 }, (_, i) => `mov.u32 %r${i}, ${i === 0 ? '%tid.x' : i};`).join('\n  ')}
  ${body.join('\n  ')}
  ld.param.u64 %rd0, [out];
  st.global.u32 [%rd0], %r1;
  ret;
}
`;
}

onDevice('Traces', (host) => {
  let add1: Kernel;
  let hold: Kernel;
  let gate: Gate;

  beforeAll(async () => {
    add1 = (await host.load(ELEMENTWISE)).kernel('add1');
    const waiting = await host.load(WAITING);
    hold = waiting.kernel('hold');
    gate = await Gate.of(waiting);
  });

  test('each operation is a span on its stream’s track, with an arrow from its call', async () => {
    const { device } = host;
    using stream = device.createStream({ label: 'work' });
    using buffer = device.alloc(i32, N, { stream, label: 'numbers' });
    await buffer.fill(stream, 0);
    const recording = recordTrace(device);
    await buffer.write(stream, new Int32Array(N).fill(1));
    labelled('increment', () => add1.launch(stream, GRID, buffer, N));
    add1.launch(stream, GRID, buffer, N);
    expect((await buffer.read(stream))[0]).toBe(3);
    const events = checked(await recording.stop());
    expect(spansOf(events).map(({ name, track }) => `${track}: ${name}`)).toEqual([
      "stream 'work': buffer 'numbers'.write",
      "stream 'work': increment",
      "stream 'work': add1",
      "stream 'work': buffer 'numbers'.read",
    ]);
    expect(events.filter(({ ph }) => ph === 's')).toHaveLength(4);
    const calls = events.filter(({ ph, pid }) => ph === 'X' && pid === JAVASCRIPT);
    expect(calls.map(({ name, cat }) => [cat, name])).toEqual([
      ['copy', "buffer 'numbers'.write"],
      ['launch', 'increment'],
      ['launch', 'add1'],
      ['copy', "buffer 'numbers'.read"],
    ]);
    expect(calls[1]!.args).toMatchObject({
      name: 'add1',
      stream: 'work',
      grid: '1×1×1',
      block: `${N}×1×1`,
    });
    expect(events.some(({ ph, cat }) => ph === 'b' && cat === 'wait')).toBe(true);
  });

  test('spans of streams overlap where their work does', async () => {
    const { device } = host;
    using slow = device.createStream({ label: 'slow' });
    using quick = device.createStream({ label: 'quick' });
    using a = device.alloc(i32, 1, { stream: slow });
    using b = device.alloc(i32, N, { stream: quick });
    await gate.shut();
    await device.finished();
    const recording = recordTrace(device);
    const held = hold.launch(slow, { grid: 1, block: 1 }, a);
    await add1.launch(quick, GRID, b, N);
    await gate.open();
    await held;
    const spans = spansOf(checked(await recording.stop()));
    const [long] = spans.filter(({ name }) => name === 'hold');
    const [short] = spans.filter(({ name }) => name === 'add1');
    expect(long!.track).toBe("stream 'slow'");
    expect(short!.track).toBe("stream 'quick'");
    expect(short!.from).toBeGreaterThan(long!.from);
    expect(short!.to).toBeLessThan(long!.to);
  });

  test('work that waits for another stream begins when that has ended', async () => {
    const { device } = host;
    using first = device.createStream({ label: 'first' });
    using second = device.createStream({ label: 'second' });
    using buffer = device.alloc(i32, N, { stream: first });
    await buffer.fill(first, 0);
    const recording = recordTrace(device);
    add1.launch(first, GRID, buffer, N);
    await add1.launch(second, GRID, buffer, N);
    const [before, after] = spansOf(checked(await recording.stop()));
    expect([before!.track, after!.track]).toEqual(["stream 'first'", "stream 'second'"]);
    expect(after!.from).toBeGreaterThanOrEqual(before!.to);
  });

  test('transfers that hold their stream, and host functions, have one span each', async () => {
    const { device } = host;
    const long = 1 << 20;
    using stream = device.createStream();
    using buffer = device.alloc(i32, long, { stream });
    const recording = recordTrace(device);
    await buffer.write(stream, new Int32Array(long));
    const slept = 20;
    await stream.call(() => new Promise((resolve) => setTimeout(resolve, slept)));
    await buffer.read(stream);
    const spans = spansOf(checked(await recording.stop()));
    expect(spans.map(({ name }) => name)).toEqual([
      `buffer i32[${long}].write`,
      'stream.call',
      `buffer i32[${long}].read`,
    ]);
    // Timers may fire a millisecond early, and the end of the earlier work is as exact as the
    // comparison of the clocks.
    expect(spans[1]!.to - spans[1]!.from).toBeGreaterThan(slept * 0.8 * 1000);
  });

  test('a host function that the runtime thread runs late has its own time', async () => {
    const { device } = host;
    using stream = device.createStream();
    await stream.finished();
    const recording = recordTrace(device);
    // The thread is in a call by now.
    const loading = device.loadModule(longKernel(20_000));
    await new Promise((resolve) => setTimeout(resolve, 5));
    let took = 0;
    await stream.call(async () => {
      const began = performance.now();
      await new Promise((resolve) => setTimeout(resolve, 20));
      took = performance.now() - began;
    });
    await (await loading).close();
    const [span] = spansOf(checked(await recording.stop()));
    expect(span!.name).toBe('stream.call');
    expect(span!.to - span!.from).toBeGreaterThan(took * 1000 * 0.99);
  });

  test('a capture is on no track, and each launch of the graph is one span', async () => {
    const { device } = host;
    using stream = device.createStream();
    using buffer = device.alloc(i32, N, { stream });
    await buffer.fill(stream, 0);
    const recording = recordTrace(device);
    await using graph = await stream.capture(() => {
      for (let i = 0; i < 4; i++) add1.launch(stream, GRID, buffer, N);
    });
    for (let i = 0; i < 3; i++) labelled(`replay ${i}`, () => graph.launch(stream));
    expect((await buffer.read(stream))[0]).toBe(12);
    const events = checked(await recording.stop());
    expect(
      spansOf(events)
        .map(({ name }) => name)
        .slice(0, 3),
    ).toEqual(['replay 0', 'replay 1', 'replay 2']);
    expect(
      events.filter(({ ph, cat }) => ph === 'b' && cat === 'graph').map(({ name }) => name),
    ).toEqual(['capture graph', 'instantiate graph']);
    expect(
      events.filter(({ cat, args }) => cat === 'launch' && args?.['captured'] === true),
    ).toHaveLength(4);
  });

  test('the bytes in use are counted at each allocation and free', async () => {
    const { device } = host;
    const recording = recordTrace(device);
    const { memory } = await device.stats();
    const one = device.alloc(i32, N);
    const two = device.alloc(i32, 2 * N);
    one.close();
    two.close();
    const counters = checked(await recording.stop()).filter(
      ({ ph, name }) => ph === 'C' && name === 'memory in use',
    );
    expect(counters.map(({ args }) => (args!['bytes'] as number) - memory.inUse)).toEqual([
      4 * N,
      12 * N,
      8 * N,
      0,
    ]);
  });

  test('thousands of operations on several streams are measured in order', async () => {
    const { device } = host;
    const streams = [0, 1, 2].map((i) => device.createStream({ label: `${i}` }));
    const buffers = streams.map((stream) => device.alloc(i32, N, { stream }));
    const recording = recordTrace(device);
    for (let i = 0; i < 600; i++) {
      streams.forEach((stream, k) => add1.launch(stream, GRID, buffers[k]!, N));
      if (i % 100 === 0) await device.finished();
    }
    const trace = await recording.stop();
    const json = trace.toJSON();
    expect(json.otherData).toMatchObject({ dropped: 0, unmeasured: 0 });
    const spans = spansOf(json.traceEvents);
    expect(spans).toHaveLength(1800);
    for (const { label } of streams) {
      const own = spans.filter(({ track }) => track === `stream '${label}'`);
      expect(own).toHaveLength(600);
      for (let i = 1; i < own.length; i++)
        expect(own[i]!.from).toBeGreaterThanOrEqual(own[i - 1]!.to);
    }
    for (const buffer of buffers) buffer.close();
    for (const stream of streams) stream.close();
  });

  test('events after the limit are counted and dropped', async () => {
    const { device, stream } = host;
    using buffer = device.alloc(i32, N);
    await buffer.fill(stream, 0);
    const recording = recordTrace(device, { limit: 10 });
    for (let i = 0; i < 25; i++) add1.launch(stream, GRID, buffer, N);
    await stream.finished();
    const trace = await recording.stop();
    expect(trace.dropped).toBe(16);
    expect(spansOf(checked(trace))).toHaveLength(10);
    expect(trace.toString()).toMatch(/^Trace\(10 operations on 1 streams of .*, 16 dropped\)$/);
  });

  test('the file contains what toJSON returns', async () => {
    const { device, stream } = host;
    using buffer = device.alloc(i32, N);
    const recording = recordTrace(device);
    for (let i = 0; i < 300; i++) add1.launch(stream, GRID, buffer, N);
    const trace = await recording.stop();
    const folder = await mkdtemp(join(tmpdir(), 'async-cuda-trace-'));
    try {
      const path = join(folder, 'trace.json');
      await trace.write(path);
      expect(JSON.parse(await readFile(path, 'utf8'))).toEqual(JSON.parse(JSON.stringify(trace)));
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  test('stop waits for the recorded work, and returns the same trace again', async () => {
    const { device } = host;
    using stream = device.createStream();
    using buffer = device.alloc(i32, 1, { stream });
    await gate.shut();
    const recording = recordTrace(device);
    hold.launch(stream, { grid: 1, block: 1 }, buffer);
    const stopped = recording.stop();
    expect(await stillPending(stopped)).toBe(true);
    await gate.open();
    const trace = await stopped;
    expect(spansOf(checked(trace)).map(({ name }) => name)).toEqual(['hold']);
    expect(await recording.stop()).toBe(trace);
  });

  test('waits count towards the limit', async () => {
    const { device, stream } = host;
    using buffer = device.alloc(i32, N);
    const recording = recordTrace(device, { limit: 4 });
    for (let i = 0; i < 20; i++) await buffer.fill(stream, i);
    const trace = await recording.stop();
    const kept = checked(trace).filter(
      ({ ph, pid }) => pid === JAVASCRIPT && (ph === 'X' || ph === 'b'),
    );
    expect(kept).toHaveLength(4);
    expect(trace.dropped).toBeGreaterThanOrEqual(16);
  });

  test('after stop another recording can begin, but not two at once', async () => {
    const { device, stream } = host;
    using buffer = device.alloc(i32, N);
    const recording = recordTrace(device);
    expect(() => recordTrace(device)).toThrow('is being recorded already');
    await recording.stop();
    await add1.launch(stream, GRID, buffer, N);
    const again = recordTrace(device);
    expect(spansOf(checked(await again.stop()))).toEqual([]);
  });

  test('a closed stream keeps its track, also where its number is used again', async () => {
    const { device } = host;
    using buffer = device.alloc(i32, N);
    await buffer.fill(device.stream, 0);
    const recording = recordTrace(device);
    for (const label of ['a', 'b', 'c']) {
      const stream = device.createStream({ label });
      await add1.launch(stream, GRID, buffer, N);
      stream.close();
    }
    expect(spansOf(checked(await recording.stop())).map(({ track }) => track)).toEqual([
      "stream 'a'",
      "stream 'b'",
      "stream 'c'",
    ]);
  });

  test('a launch that is refused at the call has no span; the next one has its own', async () => {
    const { device, stream } = host;
    using buffer = device.alloc(i32, N);
    await buffer.fill(stream, 0);
    const recording = recordTrace(device);
    expect(() => add1.launch(stream, GRID, buffer, 'no number' as never)).toThrow('args[1]');
    using event = stream.record();
    expect(() => add1.launch(stream, GRID, buffer, 'no number' as never)).toThrow('args[1]');
    await event.finished();
    await add1.launch(stream, GRID, buffer, N);
    expect(spansOf(checked(await recording.stop())).map(({ name }) => name)).toEqual(['add1']);
  });

  test('wrong options and devices are refused', () => {
    expect(() => recordTrace(host.device, { limit: 0 })).toThrow('options.limit');
    expect(() => recordTrace(host.device, { length: 3 } as never)).toThrow('length');
    expect(() => recordTrace(3 as never)).toThrow('device');
  });
});

onDevice('Traces of a device of their own', (host) => {
  test('a device that is closed ends its recording', async () => {
    const device = await openTestDevice({ thread: host.mode });
    const module = await device.loadModule(ELEMENTWISE);
    const buffer = device.alloc(i32, N);
    const recording = recordTrace(device);
    module.kernel('add1').launch(device.stream, GRID, buffer, N);
    await device.close();
    expect(spansOf(checked(await recording.stop())).map(({ name }) => name)).toEqual(['add1']);
  });

  // A lost GPU cannot be used again in the process.
  test.runIf(onCpu)(
    'the trace of a lost device has its past work, and unfinished work without times',
    async () => {
      const device = await openTestDevice({ thread: host.mode });
      const module = await device.loadModule(FAULTING);
      const { stream } = device;
      using buffer = device.alloc(i32, N);
      const recording = recordTrace(device);
      await buffer.fill(stream, 1);
      await expect(
        module.kernel('write_null').launch(stream, { grid: 1, block: 1 }),
      ).rejects.toBeInstanceOf(CudaDeviceLostError);
      const trace = await recording.stop();
      const events = checked(trace);
      expect(trace.toJSON().otherData.unmeasured).toBeGreaterThanOrEqual(1);
      expect(
        events.filter(({ name, pid }) => name === 'write_null' && pid === JAVASCRIPT),
      ).toHaveLength(1);
      expect(
        events.find(
          ({ ph, cat, args }) => ph === 'b' && cat === 'wait' && args?.['failed'] === true,
        ),
      ).toBeDefined();
      await device.close();
    },
  );
});
