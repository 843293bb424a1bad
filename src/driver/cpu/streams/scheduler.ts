/**
 * Chooses the stream that runs next. All devices of a driver share one scheduler, since one thread
 * does their work.
 *
 * Every stream that has work gets its turn in each round, those of higher priority first and for
 * more steps, so that a kernel that spins on another stream's result never keeps that stream from
 * running. Turns are counted in steps of work, not in time, and a step that the time slice
 * interrupted is continued: the order of work depends on the calls that were made, not on the time
 * of `poll`. Where other threads run blocks, too, it depends on them as well.
 */
import type { Schedule } from '../schedule.js';
import { Slice, STEP } from './operation.js';
import type { Stream } from './stream.js';

export class Scheduler {
  readonly slice: Slice;
  private readonly schedule: Schedule | undefined;
  /** Streams that have work, by priority. */
  private busy: Stream[] = [];
  /**
   * The index of the current turn's stream, and the number of its steps that are left (0: not
   * begun).
   */
  private turn = 0;
  private stepsLeft = 0;
  /** The stream whose operation is running. */
  current: Stream | undefined = undefined;
  /** The number of operations that have ended so far. */
  completions = 0;

  constructor(now: () => number, schedule: Schedule | undefined) {
    this.slice = new Slice(now);
    this.schedule = schedule;
  }

  /** The streams that have work now. */
  get streams(): readonly Stream[] {
    return this.busy;
  }

  /** A stream that was empty has got work. */
  wake(stream: Stream): void {
    const busy = this.busy;
    let at = busy.length;
    while (at > 0 && busy[at - 1]!.priority > stream.priority) at--;
    if (at === busy.length) {
      busy.push(stream);
    } else {
      busy.splice(at, 0, stream);
      // The current stream keeps its turn, and a turn that has not begun goes to the new stream.
      if (at < this.turn || (at === this.turn && this.stepsLeft > 0)) this.turn++;
    }
  }

  /** Removes streams whose queues were dropped. */
  sweep(): void {
    this.busy = this.busy.filter((stream) => !stream.idle);
    this.turn = 0;
    this.stepsLeft = 0;
  }

  get hasWork(): boolean {
    return this.busy.length > 0;
  }

  /** See {@link PolledDriver.poll}. */
  run(budgetMicroseconds: number): boolean {
    if (this.busy.length === 0) return false;
    const slice = this.slice;
    slice.begin(budgetMicroseconds / 1000);
    /** Turns in a row that made no progress. */
    let fruitless = 0;
    for (;;) {
      if (this.turn >= this.busy.length) this.turn = 0;
      if (this.stepsLeft === 0 && this.schedule !== undefined && fruitless === 0)
        this.turn = this.schedule.next(this.busy.length);
      const stream = this.busy[this.turn]!;
      if (this.stepsLeft === 0) this.stepsLeft = 1 << -stream.priority;
      this.current = stream;
      let outcome = stream.head!.step(slice);
      if (stream.context.checker?.stop() === true) outcome = STEP.fault;
      switch (outcome) {
        case STEP.done:
          fruitless = 0;
          this.completions++;
          stream.context.checker?.completes(stream);
          slice.moved = slice.time;
          stream.advance();
          if (stream.idle) {
            this.retire(stream);
            if (this.busy.length === 0) return false;
          } else {
            this.endStep();
          }
          break;
        case STEP.more:
          fruitless = 0;
          this.endStep();
          break;
        case STEP.paused:
          return true;
        case STEP.blocked:
          this.stepsLeft = 0;
          this.turn++;
          if (++fruitless < this.busy.length) continue;
          if (!slice.rest()) return false;
          fruitless = 0;
          break;
        default:
          if (this.busy.length === 0) return false;
          fruitless = 0;
      }
      if (slice.expired()) return true;
    }
  }

  private endStep(): void {
    if (--this.stepsLeft === 0) this.turn++;
  }

  private retire(stream: Stream): void {
    this.busy.splice(this.turn, 1);
    this.stepsLeft = 0;
    if (stream.destroyed) stream.context.streams.delete(stream);
  }
}
