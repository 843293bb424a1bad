/** What a server has done, for its metrics. */
import { type IntervalHistogram, monitorEventLoopDelay } from 'node:perf_hooks';

/** How often the event loop is looked at; a timer is late by its delay. */
const LOOP_RESOLUTION_MS = 1;

/** The counts of one thread. */
export interface Counted {
  /** How many requests ended with each status of HTTP. */
  readonly statuses: readonly (readonly [status: number, requests: number])[];
  /** From the first byte to the answer, of all of them. */
  readonly seconds: number;
  /** The longest delay of the thread's event loop since the last read, in seconds. */
  readonly loopDelay: number;
}

export class Counts {
  /** Requests under way, in memory that all threads of a server share. */
  readonly shared: SharedArrayBuffer;
  private readonly underWay: Int32Array;
  private readonly statuses = new Map<number, number>();
  private seconds = 0;
  private readonly loop: IntervalHistogram = monitorEventLoopDelay({
    resolution: LOOP_RESOLUTION_MS,
  });

  /** @param shared another thread's, to count requests under way together with it */
  constructor(shared = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)) {
    this.shared = shared;
    this.underWay = new Int32Array(shared);
    this.loop.enable();
  }

  /** The requests in flight on all threads. */
  get inFlight(): number {
    return Atomics.load(this.underWay, 0);
  }

  /** Whether there is room for one more request, which then {@link leave}s. */
  enter(most: number): boolean {
    if (Atomics.add(this.underWay, 0, 1) < most) return true;
    this.leave();
    return false;
  }

  leave(): void {
    Atomics.sub(this.underWay, 0, 1);
  }

  answered(status: number, seconds: number): void {
    this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1);
    this.seconds += seconds;
  }

  take(): Counted {
    const loopDelay = Math.max(0, this.loop.max / 1e9 - LOOP_RESOLUTION_MS / 1000);
    this.loop.reset();
    return { statuses: [...this.statuses], seconds: this.seconds, loopDelay };
  }

  close(): void {
    this.loop.disable();
  }
}
