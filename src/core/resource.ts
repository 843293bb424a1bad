/**
 * Memory that streams use, and who used it last. Every use on another stream waits for what it
 * conflicts with: a read for the last writer, a write for the last writer and for every reader
 * since. All readers are kept, not only the last.
 */
import { ACCESS_WRITE } from '../runtime/commands.js';
import type { CaptureScope } from './capture.js';
import type { Stream } from './stream.js';

/**
 * Readers from which on it is looked whether some are over: what a program only reads, on a stream
 * for each request, would have all of them.
 */
const MOST_READERS = 16;

/** One stream's latest use: all that it had queued up to operation `mark`. */
export interface Use {
  stream: Stream;
  mark: number;
}

export class Resource {
  /** Handle in the runtime's table. */
  handle: number;
  writer: Stream | undefined = undefined;
  writerMark = 0;
  /**
   * The last read on the writer's own stream, which is no reader: where reads and writes of one
   * stream alternate none is kept.
   */
  private ownRead = 0;
  /**
   * Other streams that have read since the last write: so many of them. What is behind them is used
   * again.
   */
  readonly readers: Use[] = [];
  readerCount = 0;
  /** How many there may be before it is looked again. */
  private mostReaders = MOST_READERS;
  /** Uses that nothing is ordered with, for which the memory must be kept all the same. */
  private readonly kept: Use[] = [];
  disposed = false;
  /**
   * Whether each access asks it: who used it is kept by another resource, or it is not always
   * there.
   */
  readonly elsewhere: boolean;
  /** The capture that used it last. */
  scope: CaptureScope | undefined = undefined;
  /**
   * Graphs that use it, and what frees it once there are none, where everybody else has forgotten
   * it.
   */
  private graphs = 0;
  private unused: (() => void) | undefined = undefined;

  constructor(handle: number, elsewhere = false) {
    this.handle = handle;
    this.elsewhere = elsewhere;
  }

  /** Whether it is memory that a graph's launches use: what decides a conditional node is not. */
  get isMemory(): boolean {
    return true;
  }

  /** What is ordered within a capture: itself, or that which it is another name of. */
  get identity(): Resource {
    return this;
  }

  /** Throws where it cannot be part of a capture. */
  checkScope(_scope: CaptureScope, _access: number): void {}

  /**
   * Makes `stream` wait for what this access conflicts with. Called before the command is written.
   */
  order(stream: Stream, access: number): void {
    const { writer, readers, readerCount } = this;
    const writes = (access & ACCESS_WRITE) !== 0;
    if (writer !== undefined && writer !== stream)
      stream.waitFor(writer, writes ? this.writersLast : this.writerMark);
    if (!writes) return;
    for (let i = 0; i < readerCount; i++) {
      const reader = readers[i]!;
      if (reader.stream !== stream) stream.waitFor(reader.stream, reader.mark);
    }
  }

  /** Remembers the access. Called after the command is written. */
  used(stream: Stream, access: number, mark: number): void {
    if ((access & ACCESS_WRITE) === 0) {
      this.read(stream, mark);
      return;
    }
    if (this.writer !== stream) {
      this.writer = stream;
      this.ownRead = 0;
    }
    this.writerMark = mark;
    if (this.readerCount === 0) return;
    this.readerCount = 0;
    // The first one stays: where reads and writes alternate each would make an array's store and an
    // object anew.
    if (this.readers.length > 1) this.readers.length = 1;
  }

  private read(stream: Stream, mark: number): void {
    if (this.writer === stream) {
      this.ownRead = mark;
      return;
    }
    const { readers, readerCount } = this;
    for (let i = 0; i < readerCount; i++) {
      const reader = readers[i]!;
      if (reader.stream === stream) {
        reader.mark = mark;
        return;
      }
    }
    if (readerCount >= this.mostReaders) this.forgetReaders();
    const again = readers[this.readerCount++];
    if (again === undefined) {
      readers.push({ stream, mark });
      return;
    }
    again.stream = stream;
    again.mark = mark;
  }

  /** Those whose reads are known to be over: nothing waits for them. */
  private forgetReaders(): void {
    const { readers, readerCount } = this;
    let left = 0;
    for (let i = 0; i < readerCount; i++) {
      const reader = readers[i]!;
      // What a capture has recorded is not over by what its stream has done.
      if (reader.stream.captureScope === undefined && reader.stream.hasPassed(reader.mark))
        continue;
      readers[i] = readers[left]!;
      readers[left++] = reader;
    }
    this.readerCount = left;
    readers.length = left;
    this.mostReaders = Math.max(MOST_READERS, 2 * left);
  }

  /** The last use on the writer's stream. */
  private get writersLast(): number {
    return Math.max(this.writerMark, this.ownRead);
  }

  /** Remembers a use that nothing but the memory's end waits for. */
  keep(stream: Stream, mark: number): void {
    const known = this.kept.find((use) => use.stream === stream);
    if (known === undefined) this.kept.push({ stream, mark });
    else known.mark = mark;
  }

  /** Makes `stream` wait for everything that uses the memory. */
  orderEnd(stream: Stream): void {
    // Not what a derived class makes of it: the end of memory is no use of it.
    Resource.prototype.order.call(this, stream, ACCESS_WRITE);
    for (const use of this.kept) if (use.stream !== stream) stream.waitFor(use.stream, use.mark);
  }

  /** A graph uses it: it stays until {@link letGoOfGraph}, unless it is closed. */
  keepForGraph(): void {
    this.graphs++;
  }

  letGoOfGraph(): void {
    this.graphs--;
    if (this.graphs > 0) return;
    const { unused } = this;
    this.unused = undefined;
    unused?.();
  }

  /**
   * Nobody but graphs can reach it any more: returns whether there are some, and calls `free` once
   * there are none.
   */
  leftToGraphs(free: () => void): boolean {
    if (this.graphs === 0) return false;
    this.unused = free;
    return true;
  }

  /** Whether every use has been seen to be over. */
  get idle(): boolean {
    return this.uses.every(
      ({ stream, mark }) => stream.runtime.lost !== undefined || stream.hasPassed(mark),
    );
  }

  /**
   * Resolves when every use so far is over, whether it succeeded or not. What a lost device did
   * with it is over.
   */
  async settled(): Promise<void> {
    await Promise.all(
      this.uses.map(async ({ stream, mark }) => {
        try {
          await stream.passed(mark);
        } catch (error) {
          if (stream.runtime.lost === undefined) throw error;
        }
      }),
    );
  }

  /**
   * Whoever uses it is ordered with what has used the other one, which is the same memory and is
   * used no more.
   */
  protected takeUses(other: Resource): void {
    this.writer = other.writer;
    this.writerMark = other.writerMark;
    this.ownRead = other.ownRead;
    this.readers.push(...other.readers.slice(0, other.readerCount));
    this.readerCount = other.readerCount;
    this.kept.push(...other.kept);
  }

  /** Whether graphs use it. */
  get isUsedByGraphs(): boolean {
    return this.graphs > 0;
  }

  private get uses(): Use[] {
    const uses: Use[] = [...this.readers.slice(0, this.readerCount), ...this.kept];
    if (this.writer !== undefined) uses.push({ stream: this.writer, mark: this.writersLast });
    return uses;
  }
}
