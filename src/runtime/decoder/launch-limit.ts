/**
 * The number of unfinished launches that a stream may have on a GPU.
 *
 * The driver blocks at 1,021 (measured, driver 580). So the device writes a marker after every
 * {@link MARKER_INTERVAL}th launch, and a launch that would begin the last of such an interval
 * waits while {@link MARKERS_OUTSTANDING} markers are outstanding: a stream has at most 639
 * unfinished launches (four intervals and all but one of the next), which leaves room for copies
 * and waits.
 */
import type { Driver } from '../../driver/driver.js';
import {
  ISSUED_CAPTURING,
  ISSUED_LAUNCHES,
  ISSUED_MARKERS,
  ISSUED_STRIDE,
  SLOT_MARKER,
  SLOT_WORDS,
  unmadeBy,
} from '../layout.js';
import type { SharedState } from '../layout.js';
import { peek } from '../shared-words.js';

export const MARKER_INTERVAL = 128;
export const MARKERS_OUTSTANDING = 4;

export class LaunchLimit {
  private readonly driver: Driver;
  private readonly shared: SharedState;
  private readonly issued: Int32Array;
  private readonly slots: Int32Array;
  /** The device address of slot 0. */
  private readonly slotsAddress: number;
  /** False for a CPU device, which has no such limit. */
  private readonly limits: boolean;

  constructor(driver: Driver, shared: SharedState, slotsAddress: number, limits: boolean) {
    this.driver = driver;
    this.shared = shared;
    this.issued = shared.issued;
    this.slots = shared.slots;
    this.slotsAddress = slotsAddress;
    this.limits = limits;
  }

  /** The number of the stream's markers that the device has not reached. */
  outstanding(stream: number): number {
    return (
      (this.issued[stream * ISSUED_STRIDE + ISSUED_MARKERS]! -
        peek(this.slots, stream * SLOT_WORDS + SLOT_MARKER)) |
      0
    );
  }

  /** Whether `launches` further launches have to wait. */
  isReached(stream: number, launches: number): boolean {
    const { issued } = this;
    const base = stream * ISSUED_STRIDE;
    const before = issued[base + ISSUED_LAUNCHES]! & (MARKER_INTERVAL - 1);
    return (
      before + launches >= MARKER_INTERVAL &&
      this.limits &&
      issued[base + ISSUED_CAPTURING] !== 1 &&
      this.outstanding(stream) >= MARKERS_OUTSTANDING
    );
  }

  /** Counts a launch that was issued. The marker follows the last launch of an interval. */
  count(stream: number): void {
    const { issued } = this;
    const base = stream * ISSUED_STRIDE;
    const launches = (issued[base + ISSUED_LAUNCHES]! + 1) | 0;
    issued[base + ISSUED_LAUNCHES] = launches;
    if (
      (launches & (MARKER_INTERVAL - 1)) === 0 &&
      this.limits &&
      issued[base + ISSUED_CAPTURING] !== 1
    )
      this.mark(stream);
  }

  /** Whether the next marker may follow a launch for which `isReached` was not called. */
  mayMark(stream: number): boolean {
    return (
      this.limits &&
      unmadeBy(this.shared, stream) === 0 &&
      this.issued[stream * ISSUED_STRIDE + ISSUED_CAPTURING] !== 1 &&
      this.outstanding(stream) < MARKERS_OUTSTANDING
    );
  }

  /** Queues the stream's next marker after its queued work. */
  mark(stream: number): void {
    const { issued } = this;
    const base = stream * ISSUED_STRIDE + ISSUED_MARKERS;
    const marker = (issued[base]! + 1) | 0;
    issued[base] = marker;
    this.driver.cuStreamWriteValue32(
      this.shared.streams[stream]!,
      this.slotsAddress + stream * SLOT_WORDS * 4 + SLOT_MARKER * 4,
      marker >>> 0,
      0,
    );
  }
}
