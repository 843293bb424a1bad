/**
 * Events: points in a stream that other streams, or JavaScript, can wait for, and between which
 * time is measured.
 */
import { CudaDisposedError, CudaError } from '../ground/errors.js';
import { checkBoolean, checkOptions, checkSignal, invalid } from '../ground/arguments.js';
import type { CaptureScope } from './capture.js';
import type { CoreDevice } from './device.js';
import { abortable, recordedError } from './pending.js';
import type { WaitOptions } from './pending.js';
import type { Stream } from './stream.js';
import { createEvent, destroyEvent, takenBack } from './driver-events.js';

/** What {@link CoreDevice.createEvent} takes. */
export interface EventOptions {
  /**
   * Whether {@link Event.elapsed} can be asked of it; costs a little more on the device. Default
   * true.
   */
  timing?: boolean;
}

const CU_EVENT_DISABLE_TIMING = 2;

/**
 * A point in a stream. Made by {@link CoreDevice.createEvent} or {@link Stream.record}. cuEventCreate
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
  /** Whether {@link elapsed} can be asked of it. */
  readonly timing: boolean;
  /**
   * Another one after a record while streams of other devices wait for the one before. @internal
   */
  handle: number;
  /** The capture in which it was recorded last. @internal */
  scope: CaptureScope | undefined = undefined;
  private stream: Stream | undefined = undefined;
  private mark = 0;
  private closed = false;
  /** Closed, and past its last record. */
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
   * Whether the point has been reached, as far as JavaScript has seen. An event that was never
   * recorded has been; one that was recorded in a capture is not, whenever the graph is launched.
   */
  get reached(): boolean {
    return this.scope === undefined && this.isPast;
  }

  private get isPast(): boolean {
    return this.stream === undefined || this.stream.hasPassed(this.mark);
  }

  /**
   * Waits, without blocking, until the point is reached. Rejects with code ERR_CUDA_CAPTURE for one
   * in a capture.
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
   *   where they are of two devices: each has a clock of its own
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

  /** Queues the event's end; never waits. cuEventDestroy */
  close(): void {
    if (this.closed) return;
    this.closed = true;
    // While its stream is captured nobody can wait for it.
    const scope = this.scope ?? this.stream?.captureScope;
    if (
      scope?.defer(() => {
        this.end();
      }) !== true
    )
      this.end();
  }

  /**
   * Queues the end behind the last record: while that is with a parked stream it names the handle,
   * also where the stream was closed.
   */
  private end(): void {
    const { runtime } = this.device;
    if (runtime.lost !== undefined) return;
    const passed = this.stream === undefined ? Promise.resolve() : this.stream.passed(this.mark);
    passed.then(
      () => {
        this.ended = true;
        // Lent, it is destroyed when it is given back.
        if (!this.device.shared.loans.knows(this.handle)) destroyEvent(runtime, this.handle);
      },
      () => undefined,
    );
  }

  /** {@link close}, for `using`. */
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
   * Makes the event fit to be recorded on `stream`: streams of other devices that wait for it wait
   * for the last record, and a record that is held on another stream would come after this one, and
   * be the last. @internal
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
    // Behind the record, in the order of its stream.
    if (!last.isClosed) destroyEvent(runtime, before, last.slot.index);
    else
      last.passed(this.mark).then(
        () => {
          destroyEvent(runtime, before);
        },
        () => undefined,
      );
  }

  /** Nobody of another device waits for `handle` any more, which was this event's. @internal */
  givenBack(handle: number): void {
    const { runtime } = this.device;
    if (runtime.lost !== undefined) return;
    if (handle === this.handle && !this.ended) takenBack(runtime, handle);
    else destroyEvent(runtime, handle);
  }

  /** Whether it was ever recorded. @internal */
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
