/**
 * Bodies of requests, in memory that is used again. A new buffer for each would be the garbage
 * collector's, and a busy server's is seldom done with them. All threads share it: what reads a
 * body may be another one.
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

/** A body that has been coming for so long may be cut for another one: milliseconds. */
const SLOW_MS = 2000;

/** The memory for bodies was full, and this one had been coming for longest. */
export class BodyCutError extends Error {
  override name = 'BodyCutError';
  readonly statusCode = 408;
}

/** The memory for bodies is full, of such as came a moment ago. */
export class BodiesFullError extends Error {
  override name = 'BodiesFullError';
  readonly statusCode = 503;
  /** Milliseconds. */
  readonly retryAfter = 1000;
}

/** A body that is being received: its stream, and the bytes of its buffer. */
interface Receiving {
  readonly request: Readable;
  /** On the clock of `performance.now()`. */
  readonly since: number;
  bytes: number;
}

export class Bodies {
  private readonly limit: number;
  private readonly mostKept: number;
  private readonly mostReceiving: number;
  private readonly free = new Map<number, SharedArrayBuffer[]>();
  private kept = 0;
  /** The oldest first. */
  private readonly receiving = new Set<Receiving>();
  private receivingBytes = 0;

  /**
   * @param limit bytes of a body, at most
   * @param mostKept bytes of buffers, at most, that are kept while no body is in them
   * @param mostReceiving bytes of buffers, at most, of bodies that are being received: past it slow
   *   ones are cut, and where there are none new ones are refused
   */
  constructor(limit: number, mostKept: number, mostReceiving = Infinity) {
    this.limit = limit;
    this.mostKept = mostKept;
    this.mostReceiving = mostReceiving;
  }

  /**
   * Reads a request to its end, which begins its memory. `length` is its Content-Length, if it has
   * one.
   *
   * @throws BodyTooLargeError; rejects where the connection is cut, with BodyCutError where that
   *   was for its memory; BodiesFullError
   */
  async read(
    request: Readable,
    length: number | undefined,
  ): Promise<Uint8Array<SharedArrayBuffer>> {
    if (length !== undefined && length > this.limit) throw this.tooLarge();
    // Not all that a request claims at once: it may never send it.
    let buffer = this.take(Math.min(length ?? LEAST_BYTES, MOST_CLAIMED_BYTES));
    let end = 0;
    const body: Receiving = { request, since: performance.now(), bytes: 0 };
    this.receiving.add(body);
    try {
      this.grow(body, buffer.length);
      for await (const chunk of request as AsyncIterable<Buffer>) {
        if (end + chunk.length > this.limit) throw this.tooLarge();
        if (end + chunk.length > buffer.length) {
          const larger = this.take(Math.max(end + chunk.length, 2 * buffer.length));
          buffer.copy(larger, 0, 0, end);
          this.give(buffer.buffer);
          buffer = larger;
          this.grow(body, larger.length);
        }
        chunk.copy(buffer, end);
        end += chunk.length;
      }
    } catch (error) {
      this.give(buffer.buffer);
      throw error;
    } finally {
      this.receiving.delete(body);
      this.receivingBytes -= body.bytes;
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

  /**
   * The buffer of the body has so many bytes now. @throws BodiesFullError where there is no memory
   * for it
   */
  private grow(body: Receiving, bytes: number): void {
    this.receivingBytes += bytes - body.bytes;
    body.bytes = bytes;
    for (const oldest of this.receiving) {
      if (this.receivingBytes <= this.mostReceiving) return;
      if (performance.now() - oldest.since < SLOW_MS)
        throw new BodiesFullError('the memory for bodies is full');
      this.receiving.delete(oldest);
      this.receivingBytes -= oldest.bytes;
      oldest.bytes = 0;
      oldest.request.destroy(
        new BodyCutError('the memory for bodies is full, and this one has been coming for longest'),
      );
    }
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
