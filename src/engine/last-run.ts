/**
 * How far the runs of a context have been queued. Code that allows one run at a time, or frees what
 * runs use, waits for the end of the last one.
 */
import type { Stream } from '../core/index.js';

/** Work that was queued on a stream, for code that waits for its end. */
export interface QueuedRun {
  readonly stream: Stream;
  readonly isOver: boolean;
  /** Resolves when the work is over, also where the device is lost. */
  ended(): Promise<void>;
}

/** A run that consists of commands of its stream only. */
export class LastRun implements QueuedRun {
  readonly stream: Stream;
  private upTo: number;

  /**
   * Returns `last`, which only this caller holds, moved on to a later run, or a new one if `last`
   * was on another stream.
   */
  static latest(last: QueuedRun | undefined, stream: Stream, mark: number): LastRun {
    if (!(last instanceof LastRun) || last.stream !== stream) return new LastRun(stream, mark);
    last.upTo = mark;
    return last;
  }

  private constructor(stream: Stream, mark: number) {
    this.stream = stream;
    this.upTo = mark;
  }

  /** The stream's operation that the run ends with. */
  get mark(): number {
    return this.upTo;
  }

  get isOver(): boolean {
    return this.stream.isClosed || this.stream.hasPassed(this.mark);
  }

  async ended(): Promise<void> {
    if (!this.isOver) await this.stream.passed(this.mark).catch(ignore);
  }
}

function ignore(): void {
  // The device is lost: nothing runs any more.
}
