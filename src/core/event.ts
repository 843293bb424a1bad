/**
 * Events: points in a stream that other streams, or JavaScript, can wait for, and between which
 * time is measured.
 */
import { OP } from '../runtime/commands.js';
import { CudaDisposedError, CudaError } from '../ground/errors.js';
import { checkBoolean, checkOptions, checkSignal, invalid } from '../ground/arguments.js';
import type { CaptureScope } from './capture.js';
import type { CoreDevice } from './device.js';
import { abortable, recordedError } from './pending.js';
import type { WaitOptions } from './pending.js';
import type { Stream } from './stream.js';
import { createEvent, destroyEvent, endAnnouncement } from './driver-events.js';

/** Options of {@link CoreDevice.createEvent}. */
export interface EventOptions {
  /**
   * Whether {@link Event.elapsed} works with the event. Timing costs a little more on the device.
   * Default true.
   */
  timing?: boolean;
}

const CU_EVENT_DISABLE_TIMING = 2;

/**
 * A point in a stream. Made by {@link CoreDevice.createEvent} or {@link Stream.record}.
 * cuEventCreate
 *
 * @example
 * ```ts
 * using x = device.alloc(f32, 1 << 16);
 * using start = device.stream.record();
 * x.fill(device.stream, 1);
 * using end = device.stream.record();
 * console.log((await start.elapsed(end)) > 0); // true
 * ```
 */
export class Event implements Disposable {
  readonly device: CoreDevice;
  /** Whether {@link elapsed} works with the event. */
  readonly timing: boolean;
  /**
   * The handle of the driver's event. It changes at a record while streams of other devices wait
   * for the record before. @internal
   */
  handle: number;
  /** The capture of the last record. @internal */
  scope: CaptureScope | undefined = undefined;
  private stream: Stream | undefined = undefined;
  private mark = 0;
  private closed = false;
  /** Whether the event is closed, and past its last record. */
  private ended = false;

  /** @internal */
  constructor(device: CoreDevice, options: EventOptions) {
    checkOptions('options', options, ['timing']);
    checkBoolean('options.timing', options.timing);
    device.check();
    this.device = device;
    this.timing = options.timing ?? true;
    this.handle = createEvent(device.runtime, this.timing ? 0 : CU_EVENT_DISABLE_TIMING);
  }

  /**
   * Whether JavaScript has seen that the point was reached. An event that was never recorded counts
   * as reached. An event that was recorded in a capture never does.
   */
  get reached(): boolean {
    return this.scope === undefined && this.isPast;
  }

  private get isPast(): boolean {
    return this.stream === undefined || this.stream.hasPassed(this.mark);
  }

  /**
   * Waits, without blocking, until the point is reached. Rejects with code ERR_CUDA_CAPTURE for an
   * event that was recorded in a capture.
   */
  finished(options: WaitOptions = {}): Promise<void> {
    checkOptions('options', options, ['signal']);
    const { signal } = options;
    checkSignal(signal);
    this.check();
    if (this.scope !== undefined) return Promise.reject(recordedError('the event'));
    const passed = this.stream === undefined ? Promise.resolve() : this.stream.passed(this.mark);
    return signal === undefined ? passed : abortable(passed, signal);
  }

  /**
   * Milliseconds on the device from this event to `end`, with a resolution of about half a
   * microsecond. Waits for both. cuEventElapsedTime
   *
   * @throws CudaArgumentError where one of them was never recorded or does not measure time, or
   *   where they belong to two devices: each device has its own clock
   */
  async elapsed(end: Event): Promise<number> {
    this.check();
    if (!(end instanceof Event)) throw invalid('end', 'an Event', end);
    end.check();
    if (end.device.runtime !== this.device.runtime) {
      throw invalid(
        'end',
        `an event of ${this.device.shared.name}`,
        `${end.toString()} of ${end.device.shared.name}`,
        'Each device has a clock of its own: record both events on one device, whose streams ' +
          'can wait for the other with stream.wait(event).',
      );
    }
    for (const [name, event] of [
      ['this event', this],
      ['end', end],
    ] as const) {
      if (!event.timing)
        throw invalid(
          name,
          'an event with timing',
          event.toString(),
          'Make it with device.createEvent({ timing: true }).',
        );
      if (event.stream === undefined)
        throw invalid(
          name,
          'an event that was recorded',
          event.toString(),
          'Call stream.record(event) first.',
        );
      if (event.scope !== undefined) {
        throw new CudaError(
          'ERR_CUDA_CAPTURE',
          `${name} was recorded inside a capture and has no time of its own`,
        );
      }
    }
    await Promise.all([this, end].map(async (event) => event.finished()));
    const { values } = this.device.runtime.shared;
    return this.device.runtime.call('elapsed', values[this.handle]!, values[end.handle]!);
  }

  /** Queues the destruction of the event, and never waits. cuEventDestroy */
  close(): void {
    if (this.closed) return;
    this.closed = true;
    // While its stream is captured JavaScript cannot wait for it.
    const scope = this.scope ?? this.stream?.captureScope;
    if (
      scope?.defer(() => {
        this.end();
      }) !== true
    )
      this.end();
  }

  /**
   * Queues the destruction after the last record. While the record is queued on a held stream it
   * names the handle, also where the stream was closed.
   */
  private end(): void {
    const { runtime } = this.device;
    if (runtime.lost !== undefined) return;
    const passed = this.stream === undefined ? Promise.resolve() : this.stream.passed(this.mark);
    passed.then(
      () => {
        this.ended = true;
        // An event that streams of other devices wait for is destroyed when their waits have ended.
        if (!this.device.shared.loans.has(this.handle)) destroyEvent(runtime, this.handle);
      },
      () => undefined,
    );
  }

  /** Calls {@link close}, for `using`. */
  [Symbol.dispose](): void {
    this.close();
  }

  toString(): string {
    return (
      `Event(${this.timing ? 'timing' : 'no timing'}) on ` +
      `${this.device.name}${this.closed ? ', closed' : ''}`
    );
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return this.toString();
  }

  /** @internal */
  check(): void {
    if (this.closed)
      throw new CudaDisposedError(
        'event: used after it was closed. Make another with device.createEvent().',
      );
    this.device.check();
  }

  /**
   * Prepares the event for a record on `stream`. It gets another event of the driver in two cases:
   * streams of other devices wait for the last record; or the last record is held on another
   * stream, and would come after the new one. @internal
   */
  renew(stream: Stream): void {
    const { shared, runtime } = this.device;
    const before = this.handle;
    const isLent = shared.loans.isLent(before);
    const last = this.stream;
    const isAhead = last !== undefined && last !== stream && !this.isPast;
    if (!isLent && !isAhead) return;
    this.handle = createEvent(runtime, this.timing ? 0 : CU_EVENT_DISABLE_TIMING);
    if (isLent || last === undefined) return;
    // The destruction comes after the record, in the order of its stream.
    if (!last.isClosed) destroyEvent(runtime, before, last.slot.index);
    else
      last.passed(this.mark).then(
        () => {
          destroyEvent(runtime, before);
        },
        () => undefined,
      );
  }

  /** No other device waits any more for `handle`, which was this event's. @internal */
  loanEnded(handle: number): void {
    const { runtime } = this.device;
    if (runtime.lost !== undefined) return;
    if (handle === this.handle && !this.ended) endAnnouncement(runtime, handle);
    else destroyEvent(runtime, handle);
  }

  /** Whether the event was ever recorded. @internal */
  get isRecorded(): boolean {
    return this.stream !== undefined;
  }

  /** @internal */
  recorded(stream: Stream, mark: number): void {
    this.stream = stream;
    this.mark = mark;
    this.scope = stream.captureScope;
  }
}

/** {@link Stream.record} */
export function recordOn(stream: Stream, event: Event | undefined): Event {
  if (event !== undefined && !(event instanceof Event)) throw invalid('event', 'an Event', event);
  const target = event ?? new Event(stream.device, {});
  target.check();
  if (target.device.runtime !== stream.runtime)
    throw invalid('event', `an event of ${stream.device.title}`, event);
  target.renew(stream);
  const body = stream.begin(OP.record, 5, stream.nextRoot());
  stream.runtime.ring.memory[body] = target.handle;
  const mark = stream.commit();
  target.recorded(stream, mark);
  return target;
}
