/**
 * Freed memory that is not given out again for some time, so that whoever still uses it is found.
 * The oldest goes first when there is too much of it, and all of it where memory is short.
 */
import type { Range } from '../memory/arena.js';

const MOST_BYTES = 256 * 2 ** 20;
const MOST_RANGES = 4096;

export class Quarantine {
  private readonly ranges: Range[] = [];
  bytes = 0;

  /** Keeps the range; `release` is called with those that have been here for long enough. */
  keep(range: Range, capacity: number, release: (range: Range) => void): void {
    this.ranges.push(range);
    this.bytes += range.bytes;
    while (this.bytes > Math.min(MOST_BYTES, capacity / 4) || this.ranges.length > MOST_RANGES)
      this.drop(release);
  }

  /** Returns whether there was any. */
  empty(release: (range: Range) => void): boolean {
    const any = this.ranges.length > 0;
    while (this.ranges.length > 0) this.drop(release);
    return any;
  }

  private drop(release: (range: Range) => void): void {
    const range = this.ranges.shift()!;
    this.bytes -= range.bytes;
    release(range);
  }
}
