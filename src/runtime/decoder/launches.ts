/**
 * The fast paths of launches, which most programs take: several plain launches that are adjacent in
 * the ring, and one that is awaited at once. All other launches go through `Decoder.dispatch`.
 */
import type { Driver } from '../../driver/driver.js';
import { PlainBatch } from '../../driver/launch-batch.js';
import type { LaunchBatch } from '../../driver/launch-batch.js';
import {
  GRID_PACKED,
  HANDLE_MASK,
  LINE_HANDLE_MASK,
  LINE_PACKED,
  LINE_WORD_SHIFT,
  OP,
  RECORD_BODY,
  RECORD_EVENT,
  RECORD_ROOT,
  RECORD_STREAM,
} from '../commands.js';
import { ISSUED_CAPTURING, ISSUED_LAUNCHES, ISSUED_STRIDE, RING_WORDS, WORD } from '../layout.js';
import type { SharedState } from '../layout.js';
import { peek } from '../shared-words.js';
import type { TrailingEvent } from './trailing-event.js';
import type { Failures } from './failures.js';
import { MARKERS_OUTSTANDING, MARKER_INTERVAL } from './launch-limit.js';
import type { LaunchLimit } from './launch-limit.js';

const RING_MASK = RING_WORDS - 1;
/** The number of 32-bit words in a cache line. */
const LINE_WORDS = 16;
const TWO32 = 4294967296;

export class Launches {
  /** The result of reading ahead in the ring: without a use of it V8 would remove the reads. */
  ahead = 0;
  private readonly driver: Driver;
  private readonly limit: LaunchLimit;
  private readonly failures: Failures;
  private readonly trailing: TrailingEvent;
  /** Whether this is the JavaScript thread's decoder, which must not wait for markers. */
  private readonly visiting: boolean;
  private readonly ring: Int32Array;
  private readonly control: Int32Array;
  private readonly values: Float64Array;
  private readonly failure: Int32Array;
  private readonly issued: Int32Array;
  private readonly streams: Float64Array;
  private readonly parked: ReadonlyMap<number, unknown>;
  private readonly failedRoots: ReadonlyMap<number, number>;
  private readonly batch: LaunchBatch;
  /** The place of each launch of the batch in the ring. */
  private readonly batchAt: Int32Array;

  constructor(
    driver: Driver,
    shared: SharedState,
    limit: LaunchLimit,
    failures: Failures,
    trailing: TrailingEvent,
    parked: ReadonlyMap<number, unknown>,
    visiting: boolean,
  ) {
    this.driver = driver;
    this.limit = limit;
    this.failures = failures;
    this.trailing = trailing;
    this.visiting = visiting;
    this.ring = shared.ring;
    this.control = shared.control;
    this.values = shared.values;
    this.failure = shared.failure;
    this.issued = shared.issued;
    this.streams = shared.streams;
    this.parked = parked;
    this.failedRoots = failures.roots;
    this.batch = driver.launchBatch?.() ?? new PlainBatch(driver);
    this.batchAt = new Int32Array(this.batch.capacity);
  }

  /**
   * Executes the adjacent plain launches from position `first` on, as far as they need not wait.
   * All of them are prepared before the first is made. Returns the position after the last one;
   * `first` where `Decoder.dispatch` has to handle that one.
   */
  runLines(first: number): number {
    const { ring, batch, batchAt, issued, parked, failedRoots, limit } = this;
    if (this.isLost) return first;
    const { capacity } = batch;
    let position = first;
    let at = first & RING_MASK;
    let header = ring[at]!;
    let count = 0;
    /** The stream whose marker is due, or -1. */
    let marked = -1;
    do {
      const stream = ring[at + RECORD_STREAM]!;
      const base = stream * ISSUED_STRIDE + ISSUED_LAUNCHES;
      const launches = issued[base]!;
      const due = (launches & (MARKER_INTERVAL - 1)) === MARKER_INTERVAL - 1;
      if (due && !limit.mayMark(stream)) break;
      if (parked.size !== 0 && parked.has(stream)) break;
      // A captured launch may have to wait for its memory.
      if (issued[stream * ISSUED_STRIDE + ISSUED_CAPTURING] === 1) break;
      if (failedRoots.size !== 0 && failedRoots.has(ring[at + RECORD_ROOT]!)) break;
      if (this.visiting && limit.outstanding(stream) >= MARKERS_OUTSTANDING) break;
      if (!this.prepareLine(at, header, count)) break;
      issued[base] = launches + 1;
      batchAt[count++] = at;
      position = (position + (header >>> 16)) | 0;
      at = position & RING_MASK;
      // A marker follows the last launch of a batch.
      if (due) marked = stream;
      if (due || count === capacity) break;
      header = peek(ring, at);
    } while (isLine(header));

    for (let i = 0; i < count; i++) {
      // The cache lines of the next records move from the other core while the driver works.
      this.ahead ^= ring[(position + i * LINE_WORDS) & RING_MASK]!;
      try {
        batch.run(i);
      } catch (error) {
        at = batchAt[i]!;
        this.failures.fail(error, ring[at]! & 0xff, ring, at);
        if (marked !== -1) issued[marked * ISSUED_STRIDE + ISSUED_LAUNCHES]!--;
        // The following launches may use the memory that this one would have written.
        this.recordTrailing(at);
        return (first + ((at - first) & RING_MASK) + (ring[at]! >>> 16)) | 0;
      }
      this.recordTrailing(batchAt[i]!);
    }
    if (marked !== -1) {
      try {
        limit.mark(marked);
      } catch (error) {
        this.failures.failWithout(error, OP.launch, marked);
      }
    }
    return position;
  }

  /**
   * Executes the launch at `at` with no command before it: a `launchLine`, or a `graphLaunch` that
   * takes the driver a short time. The record need not have been published; its event is left to
   * {@link recordTrailing}. Returns false, and has done nothing, where `Decoder.drain` has to
   * handle it.
   *
   * A launch that is awaited at once takes this path, directly after driver calls, which leave none
   * of this code and data in the processor's first-level cache. So it does only what is needed:
   * from the call to the driver's it takes 0.3 instead of 0.4 µs (H200).
   */
  runAlone(at: number, op: number): boolean {
    const { ring, issued } = this;
    const stream = ring[at + RECORD_STREAM]!;
    const base = stream * ISSUED_STRIDE + ISSUED_LAUNCHES;
    const launches = issued[base]!;
    if (
      (launches & (MARKER_INTERVAL - 1)) === MARKER_INTERVAL - 1 ||
      this.isLost ||
      this.parked.size !== 0 ||
      this.failedRoots.size !== 0 ||
      this.limit.outstanding(stream) >= MARKERS_OUTSTANDING ||
      !(op === OP.launchLine ? this.prepareLine(at, op, 0) : this.mayLaunchGraph(at))
    )
      return false;
    issued[base] = launches + 1;
    try {
      if (op === OP.launchLine) this.batch.run(0);
      else this.driver.cuGraphLaunch(this.values[ring[at + RECORD_BODY]!]!, this.streams[stream]!);
    } catch (error) {
      this.failures.fail(error, op, ring, at);
    }
    return true;
  }

  /**
   * Records the event of a launch. After {@link runAlone} this happens after the launch's fence,
   * while the device works.
   */
  recordTrailing(at: number): void {
    const { ring } = this;
    const event = ring[at + RECORD_EVENT]!;
    if (event !== 0)
      this.trailing.record(event, ring[at + RECORD_STREAM]!, ring[at + RECORD_ROOT]!);
  }

  /**
   * Repeats, without effect, what {@link runAlone} does before the driver's call: the driver calls
   * after it have evicted its code and data from the processor's first-level cache, and until the
   * launch ends there is time to load them again.
   */
  rehearse(at: number, op: number): void {
    if (op === OP.launchLine) this.prepareLine(at, op, 0);
    else this.mayLaunchGraph(at);
  }

  private get isLost(): boolean {
    return peek(this.control, WORD.lost) !== 0;
  }

  /** Whether the contents of all memory that the graph at `at` uses are defined. */
  private mayLaunchGraph(at: number): boolean {
    const { ring, failure } = this;
    const refs = at + RECORD_BODY + 2;
    const end = refs + ring[refs - 1]!;
    for (let ref = refs; ref < end; ref++)
      if (failure[ring[ref]! & HANDLE_MASK] !== 0) return false;
    return true;
  }

  /**
   * Prepares the plain launch at `at` as number `count` of the batch. Returns false where an
   * operand is undefined, or is not plain memory of this device.
   */
  private prepareLine(at: number, header: number, count: number): boolean {
    const { ring, batch, failure, values } = this;
    const { words } = batch;
    const body = at + RECORD_BODY;
    const grid = (header & 0xff) === OP.launchGrid;
    const head = body + (grid ? GRID_PACKED : LINE_PACKED);
    const packed = ring[head]!;
    const paramBytes = packed >>> 16;
    const paramWords = (paramBytes + 3) >>> 2;
    const refs = head + 1;
    const params = refs + (packed & 0xffff);
    const target = count * batch.stride;
    for (let i = 0; i < paramWords; i++) words[target + i] = ring[params + i]!;
    for (let ref = refs; ref < params; ref++) {
      const word = ring[ref]!;
      const handle = word & LINE_HANDLE_MASK;
      if (failure[handle] !== 0) return false;
      const place = target + (word >>> LINE_WORD_SHIFT);
      const address = values[handle]! + (words[place]! >>> 0) + words[place + 1]! * TWO32;
      words[place] = address | 0;
      words[place + 1] = (address / TWO32) | 0;
    }
    const func = values[ring[body]!]!;
    const shared = ring[head - 1]!;
    const hStream = this.streams[ring[at + RECORD_STREAM]!]!;
    return grid
      ? batch.prepare(
          count,
          func,
          ring[body + 1]!,
          ring[body + 2]!,
          ring[body + 3]!,
          ring[body + 4]!,
          ring[body + 5]!,
          ring[body + 6]!,
          shared,
          hStream,
          paramBytes,
        )
      : batch.prepare(
          count,
          func,
          ring[body + 1]!,
          1,
          1,
          ring[body + 2]!,
          1,
          1,
          shared,
          hStream,
          paramBytes,
        );
  }
}

/** Whether it is the header of a launch that {@link Launches.runLines} can make. */
export function isLine(header: number): boolean {
  const word = header & 0xffff;
  return word === OP.launchLine || word === OP.launchGrid;
}
