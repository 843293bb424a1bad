/**
 * The staging area: page-locked segments that plain typed arrays are copied through. A typed array
 * never reaches the driver by its address, since it can be detached, resized or moved to another
 * thread at any time.
 *
 * Small copies share a segment and take their place at once; large ones take segments one by one,
 * as they come free.
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
 * From this size on a copy goes to the crew; below it an array may lie where its address is no
 * help.
 */
const CREW_BYTES = 1 << 14;
/** Copies of fewer say nothing of how fast memory is: the call takes longer than the copying. */
const TIMED_BYTES = 1 << 14;

export interface Segment {
  readonly index: number;
  /** Byte offset within the staging area. */
  readonly offset: number;
  used: number;
  /** Copies that JavaScript has yet to take out. */
  readers: number;
  /** Device work that reads or writes the segment. */
  readonly uses: SegmentUses;
}

/**
 * Streams, and each one's last operation. Not a map: emptying one makes a new table, thousands of
 * times a second.
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

  /** Whether all of it has been seen to be over. */
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
 * Reads of one device that JavaScript has not taken out of staging yet. The work of the device may
 * be seen to be over before them: they are told with the next look, and wait for a turn of the
 * event loop. Staging memory outlasts all of them.
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

  /** Resolves when there is none. */
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
  /** Copies out on the thread pool, where there is one to be had. */
  readonly copyOut: ReturnType<typeof nativeCopy>;
  /** Copies of plain bytes by several cores, where there are enough. */
  readonly crew: CopyCrew | undefined;
  private readonly runtime: Runtime;
  private readonly free: Segment[] = [];
  /** Full segments, whose device work may not be over. */
  private readonly full: Segment[] = [];
  private current: Segment | undefined = undefined;
  private readonly waiting: ((segment: Segment) => void)[] = [];

  constructor(runtime: Runtime) {
    this.runtime = runtime;
    this.handle = runtime.handles.adopt(runtime.info.stagingAddress);
    // V8 copies to and from shared memory word by word (9.5 GB/s on the host of an H200), and plain
    // memory with memmove (13.5): so the same bytes, seen as plain memory, where there is a driver
    // on this thread to ask for that.
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

  /**
   * Copies part of a host array into staging; at most a segment. Adds to what this turn has spent.
   */
  encode(source: Encoder, from: number, bytes: number, at: number): void {
    const start = bytes >= TIMED_BYTES ? performance.now() : 0;
    if (this.crew !== undefined && source.plain !== undefined && bytes > CREW_BYTES) {
      this.crew.copyIn(this.runtime.info.stagingAddress + at, source.plain(from, bytes));
    } else source.encode(from, bytes, this.bytes.subarray(at, at + bytes));
    if (bytes >= TIMED_BYTES) this.turns.took(bytes * source.cost, performance.now() - start);
  }

  /** Copies part of staging into a host array. */
  decode(target: Decoder, to: number, bytes: number, at: number): void {
    const start = performance.now();
    if (this.crew !== undefined && target.plain !== undefined && bytes > CREW_BYTES) {
      this.crew.copyOut(target.plain(to, bytes), this.runtime.info.stagingAddress + at);
    } else target.decode(to, this.bytes.subarray(at, at + bytes));
    if (bytes >= TIMED_BYTES) this.turns.took(bytes * target.cost, performance.now() - start);
  }

  /** A place for a small copy, undefined where there is none at present. */
  place(bytes: number): Place | undefined {
    const size = Math.ceil(bytes / ALIGN) * ALIGN;
    if (this.current !== undefined && this.current.used + size > STAGING_SEGMENT_BYTES) {
      this.full.push(this.current);
      this.current = undefined;
    }
    if (this.current === undefined) {
      // What was used last may still be in the processor's caches.
      this.reclaim();
      if (this.free.length <= 2) this.fenceFull();
      // Small copies may be queued behind a large one: were all segments theirs, it would wait for
      // them, and they for it.
      if (this.free.length <= 2) return undefined;
      this.current = this.free.pop()!;
    }
    const segment = this.current;
    const offset = segment.offset + segment.used;
    segment.used += size;
    return { segment, offset };
  }

  /** A whole segment for part of a large copy. To be given back. */
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

  /** Takes back full segments whose work is over. */
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

  /** Nothing would ever be seen to be over if nobody else awaited these streams. */
  private fenceFull(): void {
    for (const segment of this.full) {
      segment.uses.each((stream, mark) => {
        if (!stream.isClosed && stream.capturing === undefined && !stream.hasPassed(mark))
          stream.fenceAt(mark);
      });
    }
  }

  /** Small copies may hold all segments; then a large one waits for their streams. */
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
