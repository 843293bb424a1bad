/**
 * Freed memory that is not reused for some time, so that later accesses to it are found. The oldest
 * is released first when there is too much of it, and all of it where memory is short.
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

  /** Releases all ranges. Returns whether there were any. */
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
