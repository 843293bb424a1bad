/**
 * A recording as a file of Chrome's trace-event format, which Perfetto (ui.perfetto.dev) and
 * chrome://tracing open:
 * https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
 *
 * Process 1 is JavaScript: its calls on one track, its waits on others. Process 2 is the device: a
 * track for each stream, and its memory. An arrow leads from each call to the work that it queued.
 */
import { writeFile } from 'node:fs/promises';

import { VERSION } from '../runtime/version.js';
import { checkPath } from '../ground/arguments.js';
import type { FenceMessage, GraphMessage, MemoryMessage, OperationMessage } from './channels.js';
import type { PoolStatistics } from './pool.js';
import type { Held } from './queued-operation.js';

/** A stream that was used while the trace was recorded. */
export interface RecordedStream {
  /**
   * The number, in the order of the first operations. Unlike {@link OperationMessage.stream} it is
   * unique.
   */
  readonly number: number;
  readonly title: string;
}

/**
 * An operation and its times, in milliseconds of `performance.now()`. The device's times are NaN
 * where they were not measured.
 */
export interface RecordedOperation {
  readonly message: OperationMessage;
  readonly stream: RecordedStream;
  /** The time of the call. */
  readonly begun: number;
  ended?: number;
  /** The description of work that holds its stream. */
  readonly held: Held | undefined;
  /** The time of the device. */
  start: number;
  end: number;
}

/** A wait of JavaScript. It has no end where it lasted beyond the recording. */
export interface RecordedWait {
  readonly begin: FenceMessage;
  end: FenceMessage | undefined;
}

/** @internal */
export interface Recorded {
  readonly device: string;
  readonly begun: number;
  readonly ended: number;
  readonly slack: number;
  readonly operations: readonly RecordedOperation[];
  readonly waits: readonly RecordedWait[];
  readonly graphs: readonly GraphMessage[];
  readonly memories: readonly MemoryMessage[];
  readonly pools: readonly ({ readonly time: number } & PoolStatistics)[];
  readonly streams: readonly RecordedStream[];
  readonly dropped: number;
}

/** One line of a trace. Times are microseconds from the beginning of the recording. */
export interface TraceEvent {
  /**
   * `X`: a span. `i`: a moment. `b`, `e`: ends of a span that others may overlap. `s`, `f`: ends of
   * an arrow. `C`: numbers. `M`: names.
   */
  readonly ph: 'X' | 'i' | 'b' | 'e' | 's' | 'f' | 'C' | 'M';
  readonly name: string;
  readonly cat?: string;
  readonly pid: number;
  readonly tid: number;
  readonly ts?: number;
  readonly dur?: number;
  readonly id?: number;
  readonly bp?: 'e';
  readonly s?: 't';
  readonly args?: Readonly<Record<string, unknown>>;
}

/** The result of {@link Trace.toJSON}: an object of Chrome's trace-event format. */
export interface TraceJson {
  readonly traceEvents: readonly TraceEvent[];
  readonly displayTimeUnit: 'ns';
  readonly otherData: {
    /** The library's name and version. */
    readonly recorder: string;
    readonly device: string;
    /** The time at which the recording began: ISO 8601. */
    readonly begun: string;
    readonly durationMicroseconds: number;
    /** The number of entries beyond {@link TraceOptions.limit}, which were dropped. */
    readonly dropped: number;
    /**
     * The number of operations without times of the device: it was lost, or too many were under
     * way.
     */
    readonly unmeasured: number;
    /**
     * The greatest shift of the device's times against JavaScript's; null where the two could not
     * be compared.
     */
    readonly clockSlackMicroseconds: number | null;
  };
}

const JAVASCRIPT = 1;
const DEVICE = 2;
const CALLS = 1;
/** The track of the device itself, apart from its streams. */
const WHOLE_DEVICE = 0;
/** Lines that are written at a time. */
const CHUNK = 1000;

/**
 * A finished recording. Made by {@link TraceRecording.stop}.
 *
 * @example
 * ```ts no-run
 * const recording = recordTrace(device);
 * using x = device.alloc(f32, 4);
 * await x.fill(device.stream, 1);
 * const trace = await recording.stop();
 * await trace.write('trace.json'); // https://ui.perfetto.dev opens it
 * ```
 */
export class Trace {
  /** The number of entries beyond {@link TraceOptions.limit}, which were dropped. */
  readonly dropped: number;
  private readonly recorded: Recorded;

  /** @internal */
  constructor(recorded: Recorded) {
    this.recorded = recorded;
    this.dropped = recorded.dropped;
  }

  /**
   * The trace as an object of Chrome's trace-event format: `JSON.stringify(trace)` is the file's
   * text.
   */
  toJSON(): TraceJson {
    return { traceEvents: this.events(), ...this.rest() };
  }

  /**
   * Writes the file, which Perfetto opens. It is written in pieces, so that the whole text is never
   * in memory.
   */
  async write(path: string): Promise<void> {
    checkPath('path', path);
    await writeFile(path, this.text());
  }

  toString(): string {
    const { operations, streams, device } = this.recorded;
    return (
      `Trace(${operations.length} operations on ${streams.length} streams of ` +
      `${device}${this.dropped === 0 ? '' : `, ${this.dropped} dropped`})`
    );
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return this.toString();
  }

  private *text(): Generator<string> {
    const events = this.events();
    yield '{"traceEvents":[\n';
    for (let at = 0; at < events.length; at += CHUNK) {
      const last = at + CHUNK >= events.length;
      yield `${events
        .slice(at, at + CHUNK)
        .map((event) => JSON.stringify(event))
        .join(',\n')}${last ? '\n' : ',\n'}`;
    }
    yield `],${JSON.stringify(this.rest()).slice(1)}\n`;
  }

  private rest(): Omit<TraceJson, 'traceEvents'> {
    const { device, begun, ended, dropped, slack, operations } = this.recorded;
    return {
      displayTimeUnit: 'ns',
      otherData: {
        recorder: `async-cuda ${VERSION}`,
        device,
        begun: new Date(performance.timeOrigin + begun).toISOString(),
        durationMicroseconds: microseconds(ended - begun),
        dropped,
        unmeasured: operations.filter(isUnmeasured).length,
        clockSlackMicroseconds: Number.isFinite(slack) ? microseconds(slack / 2) : null,
      },
    };
  }

  private events(): TraceEvent[] {
    const { recorded } = this;
    const timed = [
      ...operationEvents(recorded),
      ...waitEvents(recorded),
      ...graphEvents(recorded),
      ...memoryEvents(recorded),
    ];
    timed.sort((a, b) => a.ts! - b.ts!);
    return [...nameEvents(recorded), ...timed];
  }
}

/** The names of processes and tracks, and their order. */
function nameEvents({ device, streams }: Recorded): TraceEvent[] {
  const name = (
    ph: string,
    pid: number,
    tid: number,
    args: Record<string, unknown>,
  ): TraceEvent => ({ ph: 'M', name: ph, pid, tid, args });
  const track = (pid: number, tid: number, title: string): TraceEvent[] => [
    name('thread_name', pid, tid, { name: title }),
    name('thread_sort_index', pid, tid, { sort_index: tid }),
  ];
  return [
    name('process_name', JAVASCRIPT, CALLS, { name: 'JavaScript' }),
    name('process_sort_index', JAVASCRIPT, CALLS, { sort_index: JAVASCRIPT }),
    name('process_name', DEVICE, WHOLE_DEVICE, { name: device }),
    name('process_sort_index', DEVICE, WHOLE_DEVICE, { sort_index: DEVICE }),
    ...track(JAVASCRIPT, CALLS, 'calls'),
    ...track(DEVICE, WHOLE_DEVICE, 'memory'),
    ...streams.flatMap(({ number, title }) => track(DEVICE, number, title)),
  ];
}

function operationEvents({ operations, begun }: Recorded): TraceEvent[] {
  const events: TraceEvent[] = [];
  /** The end of each track so far: rounding must not make spans of one track overlap. */
  const ends = new Map<number, number>();
  operations.forEach((operation, i) => {
    const { message, stream } = operation;
    const { kind: cat } = message;
    const name = message.label ?? message.name;
    const args = argumentsOf(message);
    const called = microseconds(operation.begun - begun);
    if (operation.ended === undefined || isUnmeasured(operation)) {
      events.push({ ph: 'i', s: 't', name, cat, pid: JAVASCRIPT, tid: CALLS, ts: called, args });
      return;
    }
    const start = Math.max(microseconds(operation.start - begun), ends.get(stream.number) ?? 0);
    const end = Math.max(microseconds(operation.end - begun), start);
    ends.set(stream.number, end);
    const arrow = { name: 'queued', cat: 'queued', id: i + 1 } as const;
    events.push(
      {
        ph: 'X',
        name,
        cat,
        pid: JAVASCRIPT,
        tid: CALLS,
        ts: called,
        dur: microseconds(operation.ended - operation.begun),
        args,
      },
      { ph: 's', ...arrow, pid: JAVASCRIPT, tid: CALLS, ts: called },
      {
        ph: 'X',
        name,
        cat,
        pid: DEVICE,
        tid: stream.number,
        ts: start,
        dur: rounded(end - start),
        args,
      },
      { ph: 'f', bp: 'e', ...arrow, pid: DEVICE, tid: stream.number, ts: start },
    );
  });
  return events;
}

/** Waits that last beyond the recording end with it. */
function waitEvents({ waits, begun, ended }: Recorded): TraceEvent[] {
  return waits.flatMap(({ begin, end }): TraceEvent[] => {
    const about = {
      name: `wait for ${begin.streamLabel ?? `stream ${begin.stream}`}`,
      cat: 'wait',
      id: begin.fence,
      pid: JAVASCRIPT,
      tid: CALLS,
    };
    const from = microseconds(begin.time - begun);
    const to = Math.max(from, microseconds((end?.time ?? ended) - begun));
    return [
      { ph: 'b', ...about, ts: from, args: { failed: end?.phase === 'failed' } },
      { ph: 'e', ...about, ts: to },
    ];
  });
}

function graphEvents({ graphs, begun }: Recorded): TraceEvent[] {
  return graphs.flatMap(({ phase, time, duration }, i): TraceEvent[] => {
    const about = { name: `${phase} graph`, cat: 'graph', id: i + 1, pid: JAVASCRIPT, tid: CALLS };
    return [
      { ph: 'b', ...about, ts: microseconds(time - begun) },
      { ph: 'e', ...about, ts: microseconds(time + duration - begun) },
    ];
  });
}

function memoryEvents({ memories, pools, begun }: Recorded): TraceEvent[] {
  const count = (name: string, time: number, args: Record<string, number>): TraceEvent => ({
    ph: 'C',
    name,
    pid: DEVICE,
    tid: WHOLE_DEVICE,
    ts: microseconds(time - begun),
    args,
  });
  return [
    ...memories.map(({ kind, time, bytesInUse }) =>
      count(kind === 'pinned' ? 'page-locked memory' : 'memory in use', time, {
        bytes: bytesInUse,
      }),
    ),
    ...pools.map(({ time, used, reserved }) => count('memory pool', time, { used, reserved })),
  ];
}

function argumentsOf({
  name,
  operation,
  streamLabel,
  captured,
  memory,
  grid,
  block,
  sharedBytes,
  bytes,
  direction,
  graph,
}: OperationMessage): Record<string, unknown> {
  return {
    name,
    operation,
    ...(streamLabel === undefined ? {} : { stream: streamLabel }),
    ...(captured ? { captured } : {}),
    ...(grid === undefined ? {} : { grid: grid.join('×') }),
    ...(block === undefined ? {} : { block: block.join('×') }),
    ...(sharedBytes === undefined || sharedBytes === 0 ? {} : { sharedBytes }),
    ...(bytes === undefined ? {} : { bytes }),
    ...(direction === undefined ? {} : { direction }),
    ...(graph === undefined ? {} : { graph }),
    ...(memory.length === 0 ? {} : { memory: memory.join(' ') }),
  };
}

function isUnmeasured({ ended, start, end }: RecordedOperation): boolean {
  return ended !== undefined && (Number.isNaN(start) || Number.isNaN(end));
}

/** Milliseconds as microseconds, rounded to a nanosecond. */
function microseconds(milliseconds: number): number {
  return rounded(milliseconds * 1e3);
}

function rounded(value: number): number {
  return Math.round(value * 1e3) / 1e3;
}
