/**
 * What a library says while it is being called, for whoever made the call: its messages arrive on
 * another thread than the one that called, and are to be part of the error that the call ends with.
 * The bytes lie in shared memory; a message counts while it is open.
 */

/** Of one call; what goes beyond is left out. */
const MOST_BYTES = 8192;
/** Words in front of the bytes: whether it is open, and the length. */
const OPEN = 0;
const LENGTH = 1;
const HEAD = 8;

const encoder = new TextEncoder();

export class SaidText {
  readonly buffer: SharedArrayBuffer;
  private readonly words: Int32Array;
  private readonly bytes: Uint8Array;

  constructor(buffer = new SharedArrayBuffer(HEAD + MOST_BYTES)) {
    this.buffer = buffer;
    this.words = new Int32Array(buffer, 0, 2);
    this.bytes = new Uint8Array(buffer, HEAD);
  }

  /** From here on messages are taken down; what stood there is gone. */
  open(): void {
    Atomics.store(this.words, LENGTH, 0);
    Atomics.store(this.words, OPEN, 1);
  }

  close(): void {
    Atomics.store(this.words, OPEN, 0);
  }

  /** Takes a message down, where it is open. */
  add(message: string): void {
    if (Atomics.load(this.words, OPEN) === 0) return;
    const length = Atomics.load(this.words, LENGTH);
    const bytes = encoder.encode(length === 0 ? message : `\n${message}`);
    const taken = bytes.subarray(0, this.bytes.length - length);
    this.bytes.set(taken, length);
    Atomics.store(this.words, LENGTH, length + taken.length);
  }

  /** Everything since {@link open}, a line for each message. */
  get text(): string {
    // Decoders take no shared memory: Buffer.from copies.
    return Buffer.from(this.bytes.subarray(0, Atomics.load(this.words, LENGTH))).toString('utf8');
  }
}
