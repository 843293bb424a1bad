/**
 * The staging area: page-locked segments through which plain typed arrays are copied. The driver
 * never gets the address of a typed array, which can be detached, resized or moved to another
 * thread at any time.
 *
 * Small copies share a segment and get their place at once. Large copies take segments one by one,
 * as they become free.
 */
import { STAGING_SEGMENTS, STAGING_SEGMENT_BYTES } from '../runtime/layout.js';
import { CopyCrew } from '../runtime/copy-crew.js';
import { nativeCopy } from '../runtime/native-copy.js';
import type { Runtime } from '../runtime/runtime.js';
import type { Decoder, Encoder } from './host-codec.js';
import type { Stream } from './stream.js';
import { TurnBudget } from './turn-budget.js';

/** Places begin at multiples of this, so that every element type is aligned. */
const ALIGN = 16;
/**
 * The least size of a copy that several cores share. V8 may keep smaller arrays on its own heap,
 * where the address is not usable.
 */
const CREW_BYTES = 1 << 14;
/**
 * The least size of a copy that is timed: for smaller ones the call takes longer than the copying.
 */
const TIMED_BYTES = 1 << 14;

export interface Segment {
  readonly index: number;
  /** Byte offset within the staging area. */
  readonly offset: number;
  used: number;
  /** The number of copies that JavaScript has not yet taken out. */
  readers: number;
  /** Device work that reads or writes the segment. */
  readonly uses: SegmentUses;
}

/**
 * The last operation of each stream. It is not a Map: clearing a Map makes a new table, which would
 * happen thousands of times a second.
 */
class SegmentUses {
  private readonly streams: (Stream | undefined)[] = [];
  private readonly marks: number[] = [];
  private count = 0;

  set(stream: Stream, mark: number): void {
    let at = 0;
    while (at < this.count && this.streams[at] !== stream) at++;
    this.streams[at] = stream;
    this.marks[at] = mark;
    if (at === this.count) this.count++;
  }

  clear(): void {
    while (this.count > 0) this.streams[--this.count] = undefined;
  }

  /** Whether JavaScript has seen the end of all of them. */
  get over(): boolean {
    for (let i = 0; i < this.count; i++)
      if (!this.streams[i]!.hasPassed(this.marks[i]!)) return false;
    return true;
  }

  each(visit: (stream: Stream, mark: number) => void): void {
    for (let i = 0; i < this.count; i++) visit(this.streams[i]!, this.marks[i]!);
  }
}

/**
 * Reads of one device whose bytes JavaScript has not taken out of staging yet. The end of the
 * device's work may be seen before that: the reads resolve at the next poll, and wait for a turn of
 * the event loop. Staging memory must outlive all of them.
 */
export class ReadsUnderway {
  private count = 0;
  private readonly waiting: (() => void)[] = [];

  begin(): void {
    this.count++;
  }

  end(): void {
    if (--this.count > 0) return;
    for (const resolve of this.waiting.splice(0)) resolve();
  }

  /** Resolves when there are no such reads. */
  async over(): Promise<void> {
    while (this.count > 0) await new Promise<void>((resolve) => this.waiting.push(resolve));
  }
}

export interface Place {
  segment: Segment;
  /** Byte offset within the staging area. */
  offset: number;
}

export class Staging {
  /** Handle of the staging area. */
  readonly handle: number;
  readonly bytes: Uint8Array;
  readonly turns = new TurnBudget();
  /** Copies out of staging on the thread pool, where native code is available. */
  readonly copyOut: ReturnType<typeof nativeCopy>;
  /** Copies of plain bytes by several cores, where there are enough cores. */
  readonly crew: CopyCrew | undefined;
  private readonly runtime: Runtime;
  private readonly free: Segment[] = [];
  /** Full segments, whose device work may not have ended. */
  private readonly full: Segment[] = [];
  private current: Segment | undefined = undefined;
  private readonly waiting: ((segment: Segment) => void)[] = [];

  constructor(runtime: Runtime) {
    this.runtime = runtime;
    this.handle = runtime.handles.adopt(runtime.info.stagingAddress);
    // V8 copies to and from shared memory word by word (9.5 GB/s on the host of an H200), and plain
    // memory with memmove (13.5 GB/s). So the same bytes are mapped as plain memory, where this
    // thread has a driver that can do it.
    const { staging } = runtime.shared;
    this.bytes =
      runtime.config.provider === 'libcuda' && !runtime.isInline
        ? (runtime.driver?.hostView(runtime.info.stagingAddress, staging.length) ?? staging)
        : staging;
    this.crew =
      runtime.config.provider === 'libcuda' && !runtime.isInline
        ? CopyCrew.share(runtime.config.koffiPath)
        : undefined;
    this.copyOut =
      runtime.config.provider === 'libcuda' ? nativeCopy(runtime.config.koffiPath) : undefined;
    for (let index = STAGING_SEGMENTS - 1; index >= 0; index--) {
      this.free.push({
        index,
        offset: index * STAGING_SEGMENT_BYTES,
        used: 0,
        readers: 0,
        uses: new SegmentUses(),
      });
    }
  }

  /** Copies part of a host array, at most a segment, to staging. The time counts for this turn. */
  encode(source: Encoder, from: number, bytes: number, at: number): void {
    const start = bytes >= TIMED_BYTES ? performance.now() : 0;
    if (this.crew !== undefined && source.plain !== undefined && bytes > CREW_BYTES) {
      this.crew.copyIn(this.runtime.info.stagingAddress + at, source.plain(from, bytes));
    } else source.encode(from, bytes, this.bytes.subarray(at, at + bytes));
    if (bytes >= TIMED_BYTES) this.turns.took(bytes * source.cost, performance.now() - start);
  }

  /** Copies part of staging to a host array. */
  decode(target: Decoder, to: number, bytes: number, at: number): void {
    const start = performance.now();
    if (this.crew !== undefined && target.plain !== undefined && bytes > CREW_BYTES) {
      this.crew.copyOut(target.plain(to, bytes), this.runtime.info.stagingAddress + at);
    } else target.decode(to, this.bytes.subarray(at, at + bytes));
    if (bytes >= TIMED_BYTES) this.turns.took(bytes * target.cost, performance.now() - start);
  }

  /** A place for a small copy; undefined where there is none at present. */
  place(bytes: number): Place | undefined {
    const size = Math.ceil(bytes / ALIGN) * ALIGN;
    if (this.current !== undefined && this.current.used + size > STAGING_SEGMENT_BYTES) {
      this.full.push(this.current);
      this.current = undefined;
    }
    if (this.current === undefined) {
      // Segments are reclaimed first: the last one used may still be in the processor's caches.
      this.reclaim();
      if (this.free.length <= 2) this.fenceFull();
      // Small copies may be queued after a large one. If they had all segments, each side would
      // wait for the other.
      if (this.free.length <= 2) return undefined;
      this.current = this.free.pop()!;
    }
    const segment = this.current;
    const offset = segment.offset + segment.used;
    segment.used += size;
    return { segment, offset };
  }

  /** A whole segment for part of a large copy. {@link release} returns it. */
  acquire(): Promise<Segment> | Segment {
    if (this.waiting.length === 0) {
      if (this.free.length === 0) {
        this.reclaim();
        this.fenceFull();
      }
      // One segment is kept for small copies, so that a large one does not hold them up.
      if (this.free.length > 1) return this.free.pop()!;
    }
    const promise = new Promise<Segment>((resolve) => this.waiting.push(resolve));
    this.watchFull();
    return promise;
  }

  release(segment: Segment): void {
    segment.used = 0;
    segment.uses.clear();
    const next = this.free.length >= 1 ? this.waiting.shift() : undefined;
    if (next !== undefined) next(segment);
    else this.free.push(segment);
  }

  /** Reclaims full segments whose work has ended. */
  private reclaim(): void {
    for (let i = 0; i < this.full.length; i++) {
      const segment = this.full[i]!;
      if (segment.readers !== 0) continue;
      if (!segment.uses.over) continue;
      this.full.splice(i--, 1);
      segment.used = 0;
      segment.uses.clear();
      this.free.push(segment);
    }
  }

  /**
   * Writes fences for the segments' streams: without one, and without a waiter, the end of their
   * work is never seen.
   */
  private fenceFull(): void {
    for (const segment of this.full) {
      segment.uses.each((stream, mark) => {
        if (!stream.isClosed && stream.capturing === undefined && !stream.hasPassed(mark))
          stream.fenceAt(mark);
      });
    }
  }

  /** Small copies may have all segments. A large copy then waits for their streams. */
  private watchFull(): void {
    for (const segment of this.full) {
      segment.uses.each((stream, mark) => {
        stream.passed(mark).then(
          () => this.serve(),
          () => undefined,
        );
      });
    }
  }

  private serve(): void {
    this.reclaim();
    this.fenceFull();
    while (this.waiting.length > 0 && this.free.length > 1) this.waiting.shift()!(this.free.pop()!);
  }
}
