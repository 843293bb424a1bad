/**
 * Measures how long the event loop was held up: a chain of `setImmediate` callbacks notes the time,
 * and the longest gap between two of them is the longest stall. `monitorEventLoopDelay` cannot see
 * below its timer's millisecond.
 *
 * The chain keeps one core busy while it runs, so it is a tool for demonstrations, not for
 * production.
 */
import { performance } from 'node:perf_hooks';

export class EventLoopStall {
  #last = performance.now();
  #longest = 0;
  #samples = 0;
  #next: NodeJS.Immediate;

  constructor() {
    this.#next = setImmediate(this.#sample);
  }

  readonly #sample = (): void => {
    this.#note();
    this.#next = setImmediate(this.#sample);
  };

  #note(): void {
    const now = performance.now();
    this.#longest = Math.max(this.#longest, now - this.#last);
    this.#last = now;
    this.#samples++;
  }

  /**
   * Ends the measurement: the longest stall in milliseconds, and the number of turns of the loop.
   */
  stop(): { longest: number; samples: number } {
    clearImmediate(this.#next);
    this.#note();
    return { longest: this.#longest, samples: this.#samples };
  }
}
