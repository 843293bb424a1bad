/**
 * A reader of byte streams in pieces of any size. It reads the stream's next chunk when the last
 * one is used up.
 */
import { invalid } from '../../ground/arguments.js';
import { unlessAborted } from '../../core/aborting.js';
import { isBytes } from '../../ground/other-realms.js';

/** A Readable, a ReadableStream, or another async iterable of bytes. */
export type ByteStream = AsyncIterable<Uint8Array>;

export class ByteReader {
  private readonly iterator: AsyncIterator<Uint8Array>;
  private readonly stream: ByteStream;
  private readonly closing = new AbortController();
  private readonly outer: AbortSignal | undefined;
  private readonly stop = (): void => {
    this.closing.abort(this.outer!.reason);
  };
  private chunk: Uint8Array = new Uint8Array();
  private at = 0;

  constructor(stream: ByteStream, signal: AbortSignal | undefined) {
    this.stream = stream;
    this.outer = signal;
    if (signal?.aborted === true) this.stop();
    signal?.addEventListener('abort', this.stop, { once: true });
    this.iterator = stream[Symbol.asyncIterator]();
  }

  /**
   * Fills the target. Gives the number of bytes, which is smaller than the target's at the end of
   * the stream only.
   */
  async fill(target: Uint8Array): Promise<number> {
    let filled = 0;
    while (filled < target.length) {
      if (this.at === this.chunk.length) {
        const next: IteratorResult<Uint8Array, unknown> = await unlessAborted(
          this.closing.signal,
          () => this.iterator.next(),
        );
        if (next.done === true) break;
        const { value } = next;
        if (!isBytes(value))
          throw invalid(
            'options.raw',
            'a stream of bytes',
            value,
            'A Readable must have no encoding.',
          );
        this.chunk = value;
        this.at = 0;
      }
      const piece = this.chunk.subarray(this.at, this.at + target.length - filled);
      target.set(piece, filled);
      filled += piece.length;
      this.at += piece.length;
    }
    return filled;
  }

  /** Ends the stream, and calls that wait for it: a Readable is destroyed. */
  close(): void {
    this.outer?.removeEventListener('abort', this.stop);
    this.closing.abort();
    const { destroy } = this.stream as { destroy?: unknown };
    if (typeof destroy === 'function') (this.stream as unknown as { destroy(): void }).destroy();
    // A generator that is running ends after that, which is not waited for.
    else this.iterator.return?.()?.catch(() => undefined);
  }
}
