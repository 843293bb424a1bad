/**
 * Bodies of requests, in memory that is used again. A new buffer for each would be the garbage collector's, and a busy server's is seldom done with them.
 * All threads share it: what reads a body may be another one.
 */
import type { Readable } from 'node:stream';

/** Buffers are powers of two of bytes, from this on. */
const LEAST_BYTES = 1 << 16;
const MOST_CLAIMED_BYTES = 1 << 20;

/** The body is larger than the server takes. */
export class BodyTooLargeError extends Error {
  override name = 'BodyTooLargeError';
  readonly statusCode = 413;
}

export class Bodies {
  private readonly limit: number;
  private readonly mostKept: number;
  private readonly free = new Map<number, SharedArrayBuffer[]>();
  private kept = 0;

  /**
   * @param limit bytes of a body, at most
   * @param mostKept bytes of buffers, at most, that are kept while nobody has them
   */
  constructor(limit: number, mostKept: number) {
    this.limit = limit;
    this.mostKept = mostKept;
  }

  /**
   * Reads a request to its end, which begins its memory. `length` is what it says of itself, if it does.
   *
   * @throws BodyTooLargeError; rejects where the connection is cut
   */
  async read(request: Readable, length: number | undefined): Promise<Uint8Array<SharedArrayBuffer>> {
    if (length !== undefined && length > this.limit) throw this.tooLarge();
    // Not all that a request claims at once: it may never send it.
    let buffer = this.take(Math.min(length ?? LEAST_BYTES, MOST_CLAIMED_BYTES));
    let end = 0;
    try {
      for await (const chunk of request as AsyncIterable<Buffer>) {
        if (end + chunk.length > this.limit) throw this.tooLarge();
        if (end + chunk.length > buffer.length) {
          const larger = this.take(Math.max(end + chunk.length, 2 * buffer.length));
          buffer.copy(larger, 0, 0, end);
          this.give(buffer.buffer);
          buffer = larger;
        }
        chunk.copy(buffer, end);
        end += chunk.length;
      }
    } catch (error) {
      this.give(buffer.buffer);
      throw error;
    }
    return buffer.subarray(0, end);
  }

  /** Others may have the memory of a body: nothing reads it any more. */
  give(memory: SharedArrayBuffer): void {
    if (this.kept + memory.byteLength > this.mostKept) return;
    const free = this.free.get(memory.byteLength) ?? [];
    this.free.set(memory.byteLength, free);
    free.push(memory);
    this.kept += memory.byteLength;
  }

  private tooLarge(): BodyTooLargeError {
    return new BodyTooLargeError(`the body is larger than ${this.limit} bytes`);
  }

  private take(bytes: number): Buffer<SharedArrayBuffer> {
    const size = Math.max(LEAST_BYTES, 2 ** Math.ceil(Math.log2(bytes)));
    const found = this.free.get(size)?.pop();
    if (found !== undefined) this.kept -= size;
    return Buffer.from(found ?? new SharedArrayBuffer(size));
  }
}
