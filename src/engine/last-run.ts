/**
 * How far somebody's runs have been queued: whoever may run one at a time, or gives back what they
 * use, looks for the end of the last.
 */
import type { Stream } from '../core/index.js';

/** What was queued on a stream, as whoever waits for its end has it. */
export interface QueuedRun {
  readonly stream: Stream;
  readonly isOver: boolean;
  /** Resolves when it is over, also where the device is lost. */
  ended(): Promise<void>;
}

/** A run that is commands of its stream, and nothing else. */
export class LastRun implements QueuedRun {
  readonly stream: Stream;
  private upTo: number;

  /**
   * `last`, which is nobody else's, moved on to a later run; or another one where that was on
   * another stream.
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

  /** The operation of the stream that it ends with. */
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
