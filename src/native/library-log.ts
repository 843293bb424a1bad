/**
 * The messages of a library during a call. They arrive on another thread than the calling one, and
 * become part of the error that the call ends with. Their bytes lie in shared memory; messages are
 * recorded while the log is open.
 */

/** Largest number of bytes of one call's messages; the rest is dropped. */
const MOST_BYTES = 8192;
/** Words before the bytes: whether the log is open, and the length. */
const OPEN = 0;
const LENGTH = 1;
const HEAD = 8;

const encoder = new TextEncoder();

export class LibraryLog {
  readonly buffer: SharedArrayBuffer;
  private readonly words: Int32Array;
  private readonly bytes: Uint8Array;

  constructor(buffer = new SharedArrayBuffer(HEAD + MOST_BYTES)) {
    this.buffer = buffer;
    this.words = new Int32Array(buffer, 0, 2);
    this.bytes = new Uint8Array(buffer, HEAD);
  }

  /** Begins to record messages, and drops the earlier ones. */
  open(): void {
    Atomics.store(this.words, LENGTH, 0);
    Atomics.store(this.words, OPEN, 1);
  }

  close(): void {
    Atomics.store(this.words, OPEN, 0);
  }

  /** Records a message, while the log is open. */
  add(message: string): void {
    if (Atomics.load(this.words, OPEN) === 0) return;
    const length = Atomics.load(this.words, LENGTH);
    const bytes = encoder.encode(length === 0 ? message : `\n${message}`);
    const taken = bytes.subarray(0, this.bytes.length - length);
    this.bytes.set(taken, length);
    Atomics.store(this.words, LENGTH, length + taken.length);
  }

  /** All messages since {@link open}, one per line. */
  get text(): string {
    // Buffer.from copies the bytes, since decoders do not accept shared memory.
    return Buffer.from(this.bytes.subarray(0, Atomics.load(this.words, LENGTH))).toString('utf8');
  }
}
