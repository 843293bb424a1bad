/**
 * The events of the driver that record the operations of one stream in turn, while several streams
 * are in use. Other streams wait for an operation by the event that covers it.
 */
import { OP } from '../runtime/commands.js';
import { createEvent, destroyEvent, endAnnouncement } from './driver-events.js';
import type { Stream } from './stream.js';

/** The number of events of a stream, and of its last operations that have one of their own. */
const EVENTS = 32;
const CU_EVENT_DISABLE_TIMING = 2;

export class StreamEvents {
  private readonly stream: Stream;
  /** The events. Operation `mark` has the one at `mark % EVENTS`, which is made when it is used. */
  private readonly handles: (number | undefined)[] = [];
  /** The operation after which each event was last recorded. It covers all work up to there. */
  private readonly marks: number[] = [];
  /** Events that streams of other devices wait for, by the operation that they cover. */
  private readonly lent = new Map<number, number>();
  private destroyed = false;

  constructor(stream: Stream) {
    this.stream = stream;
  }

  /** The event of operation `mark`, whose command records it after itself. */
  next(mark: number): number {
    const event = this.handleAt(mark);
    this.marks[mark % EVENTS] = mark;
    return event;
  }

  private handleAt(mark: number): number {
    const at = mark % EVENTS;
    let event = this.handles[at];
    if (event === undefined) {
      event = createEvent(this.stream.runtime, CU_EVENT_DISABLE_TIMING);
      this.handles[at] = event;
    }
    return event;
  }

  /**
   * Records an event after all work queued so far; returns the operation up to which it covers the
   * work.
   */
  recordAll(): number {
    const { stream } = this;
    if (stream.isClosed) return stream.mark;
    const event = this.handleAt(stream.mark + 1);
    const body = stream.begin(OP.record, 5, 0);
    stream.runtime.ring.memory[body] = event;
    const mark = stream.commit();
    this.marks[mark % EVENTS] = mark;
    return mark;
  }

  /**
   * Called before an operation of several parts. Earlier work gets an event of its own, unless it
   * is known to have ended, so that a later wait for it does not wait for the operation.
   */
  separate(): void {
    const { stream } = this;
    const { mark } = stream;
    if (
      !stream.shared.multi ||
      stream.capturing !== undefined ||
      this.covered(mark) >= mark ||
      stream.hasPassed(mark)
    )
      return;
    this.recordAll();
  }

  /**
   * The operation up to which the event of operation `mark` covers the stream's work: `mark` or a
   * later one, or an earlier one where the event was not recorded after `mark`.
   */
  covered(mark: number): number {
    return this.marks[mark % EVENTS] ?? 0;
  }

  /** The event that covers the work up to `mark`, a result of {@link covered}. */
  covering(mark: number): number {
    return this.handles[mark % EVENTS] ?? this.lent.get(mark)!;
  }

  /** The event is not recorded again until {@link loanEnded}; another one replaces it. */
  lend(mark: number, event: number): void {
    this.lent.set(mark, event);
    if (this.handles[mark % EVENTS] === event) this.handles[mark % EVENTS] = undefined;
  }

  /** No stream of another device waits for the event any more. */
  loanEnded(mark: number, event: number): void {
    const at = mark % EVENTS;
    const { runtime } = this.stream;
    this.lent.delete(mark);
    if (runtime.lost !== undefined) return;
    if (!this.destroyed && this.handles[at] === undefined && this.marks[at] === mark) {
      endAnnouncement(runtime, event);
      this.handles[at] = event;
    } else destroyEvent(runtime, event);
  }

  /** Destroys the events. Those that are lent are destroyed when their loans end. */
  destroy(): void {
    this.destroyed = true;
    const { runtime } = this.stream;
    for (const event of this.handles) if (event !== undefined) destroyEvent(runtime, event);
  }
}
