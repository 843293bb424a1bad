/**
 * Memory that streams use, and who used it last. Every use on another stream waits for what it conflicts with: a read
 * for the last writer, a write for the last writer and for every reader since. All readers are kept, not only the last.
 */
import { ACCESS_WRITE } from '../runtime/commands.js';
import type { CaptureScope } from './capture.js';
import type { Stream } from './stream.js';

/** One stream's latest use: all that it had queued up to operation `mark`. */
export interface Use {
  stream: Stream;
  mark: number;
}

export class Resource {
  /** Handle in the runtime's table. */
  handle: number;
  writer: Stream | undefined;
  writerMark = 0;
  /** Streams that have read since the last write. */
  readonly readers: Use[] = [];
  disposed = false;
  /** The capture that used it last. */
  scope: CaptureScope | undefined;

  constructor(handle: number) {
    this.handle = handle;
  }

  /** Makes `stream` wait for what this access conflicts with. Called before the command is written. */
  order(stream: Stream, access: number): void {
    const { writer, readers } = this;
    if (writer !== undefined && writer !== stream) stream.waitFor(writer, this.writerMark);
    if ((access & ACCESS_WRITE) === 0) return;
    for (let i = 0; i < readers.length; i++) {
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
    if (this.writer !== stream) this.writer = stream;
    this.writerMark = mark;
    if (this.readers.length !== 0) this.readers.length = 0;
  }

  private read(stream: Stream, mark: number): void {
    const { readers } = this;
    for (let i = 0; i < readers.length; i++) {
      const reader = readers[i]!;
      if (reader.stream === stream) {
        reader.mark = mark;
        return;
      }
    }
    readers.push({ stream, mark });
  }

  /** Whether every use has been seen to be over. */
  get idle(): boolean {
    if (this.writer !== undefined && !this.writer.hasPassed(this.writerMark)) return false;
    return this.readers.every((reader) => reader.stream.hasPassed(reader.mark));
  }

  /** Resolves when every use so far is over, whether it succeeded or not. */
  async settled(): Promise<void> {
    const uses: Use[] = [...this.readers];
    if (this.writer !== undefined) uses.push({ stream: this.writer, mark: this.writerMark });
    await Promise.all(uses.map((use) => use.stream.passed(use.mark)));
  }
}
