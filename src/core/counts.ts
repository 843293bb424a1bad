/** Counts of queued work, for {@link CoreDevice.stats}. */
import type { CopyDirection } from './channels.js';

/** Copies of one direction. */
export interface CopyCount {
  /** Copies; each may consist of several commands. */
  readonly count: number;
  /** Bytes. */
  readonly bytes: number;
}

const NO_OPERATION = -1;

/** Copies by direction. */
export class CopyCounts {
  readonly hostToDevice = { count: 0, bytes: 0 };
  readonly deviceToHost = { count: 0, bytes: 0 };
  readonly deviceToDevice = { count: 0, bytes: 0 };
  readonly peer = { count: 0, bytes: 0 };
  /** The operation that was counted last: an operation's copy may consist of several commands. */
  private operation = NO_OPERATION;

  add(direction: CopyDirection, bytes: number, operation: number): void {
    const counted = this[direction];
    if (operation !== this.operation) counted.count++;
    counted.bytes += bytes;
    this.operation = operation;
  }

  /** Adds the counts of `other`. */
  merge(other: CopyCounts): void {
    for (const direction of ['hostToDevice', 'deviceToHost', 'deviceToDevice', 'peer'] as const) {
      this[direction].count += other[direction].count;
      this[direction].bytes += other[direction].bytes;
    }
  }
}
