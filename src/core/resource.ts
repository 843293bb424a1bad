/**
 * Memory that streams use, and its last uses. Every use on another stream waits for the uses it
 * conflicts with: a read for the last writer, a write for the last writer and for every reader
 * since. All readers are recorded, not only the last.
 */
import { ACCESS_WRITE } from '../runtime/commands.js';
import type { CaptureScope } from './capture.js';
import type { Stream } from './stream.js';

/**
 * The number of readers from which on ended ones are dropped. Memory that a program only reads, on
 * a stream for each request, would keep all of them.
 */
const MOST_READERS = 16;

/** The latest use of one stream: all that it had queued up to operation `mark`. */
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
   * The last read on the writer's own stream. It is not among the readers, so that no reader is
   * recorded where reads and writes of one stream alternate.
   */
  private ownRead = 0;
  /**
   * Other streams that have read since the last write; the first `readerCount` entries. The entries
   * after them are reused.
   */
  readonly readers: Use[] = [];
  readerCount = 0;
  /** The number of readers at which ended ones are dropped next. */
  private mostReaders = MOST_READERS;
  /** Uses that order nothing, but must end before the memory is freed. */
  private readonly kept: Use[] = [];
  disposed = false;
  /**
   * Whether each access calls this object: another resource records the uses, or the memory is not
   * always available.
   */
  readonly elsewhere: boolean;
  /** The capture that used it last. */
  scope: CaptureScope | undefined = undefined;
  /**
   * The number of graphs that use it, and the function that frees it once there are none, where no
   * other object can reach it.
   */
  private graphs = 0;
  private unused: (() => void) | undefined = undefined;

  constructor(handle: number, elsewhere = false) {
    this.handle = handle;
    this.elsewhere = elsewhere;
  }

  /**
   * Whether it is memory that a graph's launches use. The condition of a conditional node is not.
   */
  get isMemory(): boolean {
    return true;
  }

  /** The resource that is ordered within a capture: this one, or the one of the same memory. */
  get identity(): Resource {
    return this;
  }

  /** Throws where it cannot be part of a capture. */
  checkScope(_scope: CaptureScope, _access: number): void {}

  /**
   * Makes `stream` wait for the uses that this access conflicts with. It is called before the
   * command is written.
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

  /** Records the access. It is called after the command is written. */
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
    // The first entry stays: where reads and writes alternate, each would allocate an array's store
    // and an object.
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
    if (readerCount >= this.mostReaders) this.dropEndedReaders();
    const again = readers[this.readerCount++];
    if (again === undefined) {
      readers.push({ stream, mark });
      return;
    }
    again.stream = stream;
    again.mark = mark;
  }

  /** Drops readers whose reads have ended. */
  private dropEndedReaders(): void {
    const { readers, readerCount } = this;
    let left = 0;
    for (let i = 0; i < readerCount; i++) {
      const reader = readers[i]!;
      // A recorded read has not ended when its stream has passed the mark.
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

  /** Records a use that only the memory's end waits for. */
  keep(stream: Stream, mark: number): void {
    const known = this.kept.find((use) => use.stream === stream);
    if (known === undefined) this.kept.push({ stream, mark });
    else known.mark = mark;
  }

  /** Makes `stream` wait for all uses of the memory. */
  orderEnd(stream: Stream): void {
    // This calls the base class's method: the end of memory is not a use of it.
    Resource.prototype.order.call(this, stream, ACCESS_WRITE);
    for (const use of this.kept) if (use.stream !== stream) stream.waitFor(use.stream, use.mark);
  }

  /** A graph uses the memory. It stays until {@link releaseFromGraph}, unless it is closed. */
  keepForGraph(): void {
    this.graphs++;
  }

  releaseFromGraph(): void {
    this.graphs--;
    if (this.graphs > 0) return;
    const { unused } = this;
    this.unused = undefined;
    unused?.();
  }

  /**
   * Called when only graphs can reach the memory any more. Returns whether there are any, and calls
   * `free` once there are none.
   */
  freeAfterGraphs(free: () => void): boolean {
    if (this.graphs === 0) return false;
    this.unused = free;
    return true;
  }

  /** Whether JavaScript has seen the end of every use. */
  get idle(): boolean {
    return this.uses.every(
      ({ stream, mark }) => stream.runtime.lost !== undefined || stream.hasPassed(mark),
    );
  }

  /**
   * Resolves when every use so far has ended, with success or not. Uses by a lost device count as
   * ended.
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

  /** Takes over the uses of another resource, which is the same memory and is not used any more. */
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
