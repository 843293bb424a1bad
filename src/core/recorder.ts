/**
 * Records the work of a device, as a trace: the call that queued each operation, and the time at
 * which the device ran it.
 *
 * While a trace is recorded, two events surround each operation that takes time. Their times are
 * read when the stream has passed them. Everything else comes from the messages of the channels.
 */
import { setImmediate } from 'node:timers';

import { CudaError } from '../ground/errors.js';
import { checkInteger, checkOptions, invalid } from '../ground/arguments.js';
import { allocated, enqueued, fenced, freed, graphed } from './channels.js';
import type { FenceMessage, GraphMessage, MemoryMessage, OperationMessage } from './channels.js';
import { CoreDevice } from './device.js';
import { DeviceClock } from './device-clock.js';
import type { Recorder, SharedDevice } from './open-devices.js';
import type { PoolStatistics } from './pool.js';
import { TAKES_TIME } from './queued-operation.js';
import type { Held } from './queued-operation.js';
import type { Stream } from './stream.js';
import { Trace } from './trace.js';
import type { RecordedOperation, RecordedStream, RecordedWait } from './trace.js';
import { createEvent, destroyEvent, recordEvent } from './driver-events.js';

/** Options of {@link recordTrace}. */
export interface TraceOptions {
  /**
   * Entries that are kept: operations, waits, changes of memory. Later entries are counted and
   * dropped. An entry takes about half a kilobyte. Default 100,000.
   */
  limit?: number;
}

const DEFAULT_LIMIT = 100_000;
const MOST_ENTRIES = 10_000_000;
/** Operations of a stream after which their times are read. */
const READ_AFTER = 256;
/** The most operations whose times are not read yet; further ones are not measured. */
const MOST_UNREAD = 1 << 15;

/** An operation with events whose times are not read yet. */
interface Unread {
  readonly entry: RecordedOperation;
  readonly start: number;
  readonly end: number;
  /** The operation's number on the stream. */
  readonly mark: number;
}

/**
 * Begins to record the work of the device, of all Devices that are open on it, until
 * {@link TraceRecording.stop}. Meanwhile operations cost about two microseconds more, and events
 * surround them. cuEventRecord, cuEventElapsedTime
 *
 * @example
 * ```ts
 * await using recording = recordTrace(device, { limit: 1000 });
 * using x = device.alloc(f32, 4);
 * await x.fill(device.stream, 1);
 * const trace = await recording.stop();
 * console.log(trace.dropped); // 0
 * ```
 * @throws CudaError with code ERR_CUDA_INVALID_ARGUMENT where the device is being recorded already
 */
export function recordTrace(device: CoreDevice, options: TraceOptions = {}): TraceRecording {
  if (!(device instanceof CoreDevice)) throw invalid('device', 'a Device', device);
  device.check();
  checkOptions('options', options, ['limit']);
  const { limit = DEFAULT_LIMIT } = options;
  checkInteger('options.limit', limit, 1, MOST_ENTRIES, 'entries');
  if (device.shared.recorder !== undefined) {
    throw new CudaError(
      'ERR_CUDA_INVALID_ARGUMENT',
      `recordTrace: ${device.toString()} is being recorded already. Stop that recording first.`,
    );
  }
  return new TraceRecording(device, limit);
}

/**
 * A recording that runs until {@link stop}. Made by {@link recordTrace}.
 *
 * @example
 * ```ts
 * const recording = recordTrace(device);
 * using x = device.alloc(f32, 4);
 * await x.fill(device.stream, 1);
 * const { traceEvents } = (await recording.stop()).toJSON();
 * console.log(traceEvents.length > 0); // true
 * ```
 */
export class TraceRecording implements AsyncDisposable {
  private readonly device: CoreDevice;
  private readonly recording: Recording;
  private stopping: Promise<Trace> | undefined = undefined;

  /** @internal */
  constructor(device: CoreDevice, limit: number) {
    this.device = device;
    this.recording = new Recording(device, limit);
    device.objects.own(this);
  }

  /**
   * Ends the recording, and returns the trace once all recorded work has ended. Closing the device
   * ends the recording, too. The trace of a lost device contains what was known by then.
   */
  stop(): Promise<Trace> {
    if (this.stopping === undefined) {
      this.device.objects.disown(this);
      this.stopping = this.recording.end();
    }
    return this.stopping;
  }

  /** Calls {@link stop}, at the end of the device. */
  async close(): Promise<void> {
    await this.stop();
  }

  /** Calls {@link stop}, for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}

/**
 * A subscriber makes the channels' messages. The recorder itself receives those of its device
 * directly.
 */
const CHANNELS = [enqueued, allocated, freed, fenced, graphed];

class Recording implements Recorder {
  private readonly device: CoreDevice;
  private readonly shared: SharedDevice;
  private readonly limit: number;
  private readonly clock: DeviceClock;
  private readonly begun = performance.now();
  private readonly comparing: Promise<void>;
  private readonly operations: RecordedOperation[] = [];
  private readonly waits = new Map<number, RecordedWait>();
  private readonly graphs: GraphMessage[] = [];
  private readonly memories: MemoryMessage[] = [];
  private readonly pools: ({ time: number } & PoolStatistics)[] = [];
  private readonly streams = new Map<Stream, RecordedStream>();
  private dropped = 0;
  /** An operation that has begun and is not queued yet. */
  private started: { stream: Stream; event: number; begun: number } | undefined = undefined;
  private readonly unread = new Map<Stream, Unread[]>();
  private unreadCount = 0;
  /** Events that are not in use. */
  private readonly spare: number[] = [];
  /** Streams whose times are being read. */
  private readonly reading = new Map<Stream, Promise<void>>();
  private readonly listen = (): void => undefined;

  constructor(device: CoreDevice, limit: number) {
    this.device = device;
    this.shared = device.shared;
    this.limit = limit;
    this.clock = new DeviceClock(device);
    this.comparing = this.clock.compare().catch(ignore);
    void this.recordPool();
    this.shared.recorder = this;
    for (const channel of CHANNELS) channel.subscribe(this.listen);
  }

  before(stream: Stream, op: number): void {
    // The operation that began last was refused.
    if (this.started !== undefined) this.spare.push(this.started.event);
    this.started = undefined;
    if (!TAKES_TIME.has(op) || this.count >= this.limit || this.unreadCount >= MOST_UNREAD) return;
    const event = this.spare.pop() ?? createEvent(stream.runtime, 0);
    this.started = { stream, event, begun: performance.now() };
    recordEvent(stream, event);
  }

  operation(stream: Stream, message: OperationMessage, held: Held | undefined): void {
    const { started } = this;
    this.started = undefined;
    if (this.isFull()) {
      if (started !== undefined) this.spare.push(started.event);
      return;
    }
    let recorded = this.streams.get(stream);
    if (recorded === undefined) {
      recorded = { number: this.streams.size + 1, title: stream.title };
      this.streams.set(stream, recorded);
    }
    const measured = started !== undefined && started.stream === stream && !message.captured;
    const entry: RecordedOperation = {
      message,
      stream: recorded,
      begun: measured ? started.begun : message.time,
      start: NaN,
      end: NaN,
      held,
    };
    this.operations.push(entry);
    if (!measured) {
      if (started !== undefined) this.spare.push(started.event);
      return;
    }
    const end = this.spare.pop() ?? createEvent(stream.runtime, 0);
    recordEvent(stream, end);
    entry.ended = performance.now();
    let unread = this.unread.get(stream);
    if (unread === undefined) this.unread.set(stream, (unread = []));
    unread.push({ entry, start: started.event, end, mark: stream.mark });
    this.unreadCount++;
    if (unread.length === READ_AFTER) setImmediate(() => void this.read(stream));
  }

  memory(message: MemoryMessage): void {
    if (!this.isFull()) this.memories.push(message);
  }

  wait(message: FenceMessage): void {
    if (message.phase !== 'wait') {
      const recorded = this.waits.get(message.fence);
      if (recorded !== undefined) recorded.end = message;
    } else if (!this.isFull()) this.waits.set(message.fence, { begin: message, end: undefined });
  }

  graph(message: GraphMessage): void {
    if (!this.isFull()) this.graphs.push(message);
  }

  async end(): Promise<Trace> {
    const ended = performance.now();
    for (const channel of CHANNELS) channel.unsubscribe(this.listen);
    if (this.shared.recorder === this) this.shared.recorder = undefined;
    try {
      await Promise.all([...this.unread.keys()].map((stream) => this.readAll(stream)));
      await this.comparing;
      await this.clock.compare();
      await this.recordPool();
      if (this.started !== undefined) this.spare.push(this.started.event);
      for (const event of this.spare) destroyEvent(this.shared.runtime, event);
    } catch {
      // The device was lost or closed: the remaining operations have no times.
    }
    const { clock, device } = this;
    const calls = this.operations
      .filter(({ start }) => !Number.isNaN(start))
      .map(({ start, begun }) => ({ device: start, js: begun }));
    const { toJs, slack } = clock.alignment(calls);
    const ends = new Map<RecordedStream, number>();
    for (const operation of this.operations) {
      operation.start = toJs(operation.start);
      operation.end = toJs(operation.end);
      if (Number.isNaN(operation.end)) continue;
      // Work of the host may begin before the device reaches the event that marks its beginning,
      // but not before the work ahead has ended.
      const begun = Math.max(
        operation.held?.begun ?? Infinity,
        ends.get(operation.stream) ?? -Infinity,
      );
      if (begun < operation.start) operation.start = begun;
      ends.set(operation.stream, operation.end);
    }
    clock.close();
    return new Trace({
      device: `${device.kind}:${device.ordinal} ${device.name}`,
      begun: this.begun,
      ended,
      slack,
      operations: this.operations,
      waits: [...this.waits.values()],
      graphs: this.graphs,
      memories: this.memories,
      pools: this.pools,
      streams: [...this.streams.values()],
      dropped: this.dropped,
    });
  }

  private get count(): number {
    return this.operations.length + this.waits.size + this.graphs.length + this.memories.length;
  }

  private isFull(): boolean {
    if (this.count < this.limit) return false;
    this.dropped++;
    return true;
  }

  /** Reads the times of a stream that are available, one reading at a time. */
  private read(stream: Stream): Promise<void> {
    let reading = this.reading.get(stream);
    if (reading === undefined) {
      reading = this.readOnce(stream).finally(() => this.reading.delete(stream));
      this.reading.set(stream, reading);
      reading.catch(ignore);
    }
    return reading;
  }

  private async readAll(stream: Stream): Promise<void> {
    while (this.unread.get(stream)!.length > 0) await this.read(stream);
    await this.reading.get(stream);
  }

  private async readOnce(stream: Stream): Promise<void> {
    const unread = this.unread.get(stream)!.splice(0);
    const last = unread[unread.length - 1];
    if (last === undefined) return;
    await this.passed(stream, last.mark);
    await this.recordPool();
    const times = await this.clock.times(unread.flatMap(({ start, end }) => [start, end]));
    unread.forEach(({ entry, start, end }, i) => {
      entry.start = times[2 * i]!;
      entry.end = times[2 * i + 1]!;
      this.spare.push(start, end);
    });
    this.unreadCount -= unread.length;
    if (this.unread.get(stream)!.length >= READ_AFTER) setImmediate(() => void this.read(stream));
  }

  /**
   * Waits until a stream has passed an operation. Each fence that covers an operation was written
   * after its second event.
   */
  private async passed(stream: Stream, mark: number): Promise<void> {
    if (stream.hasPassed(mark)) return;
    // A capture lasts for one turn at most.
    while (stream.capturing !== undefined) await new Promise((resolve) => setImmediate(resolve));
    const passed = stream.waitAfter(mark, false);
    stream.runtime.completion.bystanders.add(passed);
    await passed;
  }

  /** Records the statistics of the device's own pool. */
  private async recordPool(): Promise<void> {
    if (!this.shared.pools || this.device.closing) return;
    try {
      const pool = await this.device.pool();
      this.pools.push({ time: performance.now(), ...(await pool.statistics()) });
    } catch {
      // The device is being closed, or was lost: the numbers are of no use any more.
    }
  }
}

function ignore(): void {
  // Other users of the device are notified of the failure.
}
