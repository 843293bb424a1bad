/**
 * The JavaScript thread's end of the ring: reserve a record, fill it in, commit it. It never
 * blocks: records that do not fit wait in a queue on this side and follow, in order, as the decoder
 * makes room.
 *
 * There is no shared head: the decoder reads the first word of the place of the next record, which
 * is zero until the record is complete. A head that one thread writes and the other polls costs a
 * cache miss per command (measured: 0.15 to 0.2 µs per launch instead of 0.08).
 */
import { LENGTHS, OP, RECORD_BODY, RECORD_EVENT, RECORD_ROOT, RECORD_STREAM } from './commands.js';
import { RING_WORDS, STATE, WORD } from './layout.js';
import type { SharedState } from './layout.js';
import { RecordQueue } from './record-queue.js';
import { peek, release } from './shared-words.js';

export { putInt64 } from './commands.js';

/** scripts/build.mjs defines it: the lengths of records are checked in development only. */
declare const ASYNC_CUDA_BUILT: boolean;

const MASK = RING_WORDS - 1;
/** A record that is too short would be written over by the next one. */
function checkLength(op: number, words: number): void {
  const least = RECORD_BODY + LENGTHS[op]!;
  if (words >= least) return;
  const name = Object.entries(OP).find(([, number]) => number === op)?.[0];
  throw new Error(`begin(OP.${name}, ${words}): the record has ${least} words or more, by its row`);
}

/** Number of records that are moved at once. */
const FLUSH_LIMIT = 500;
/** The length of a record has 16 bits. */
export const MAX_RECORD_WORDS = 0xffff;

export class RingWriter {
  /** The memory that the current record is written to. */
  memory: Int32Array;
  /** The same words as 32-bit floats. */
  floats: Float32Array;
  private readonly ring: Int32Array;
  private readonly ringFloats: Float32Array;
  private readonly control: Int32Array;
  private readonly onSleeping: () => void;
  private readonly onOverflow: () => void;
  /** The position after the last record, in words, increasing, wrapping at 2^32. */
  private head: number;
  private knownTail: number;
  private at = 0;
  private header = 0;
  private words = 0;
  private readonly overflow = new RecordQueue();

  /**
   * `onSleeping` is called after a commit that finds the runtime thread asleep, `onOverflow` when a
   * record has to wait on this side; the callee then ensures that {@link flush} is called until no
   * record waits.
   */
  constructor(shared: SharedState, onSleeping: () => void, onOverflow: () => void) {
    this.ring = shared.ring;
    this.control = shared.control;
    this.memory = shared.ring;
    this.ringFloats = new Float32Array(
      shared.ring.buffer,
      shared.ring.byteOffset,
      shared.ring.length,
    );
    this.floats = this.ringFloats;
    this.head = Atomics.load(this.control, WORD.tail);
    this.knownTail = this.head;
    this.onSleeping = onSleeping;
    this.onOverflow = onOverflow;
  }

  /**
   * Begins a record of `words` words and writes its first four. Returns where its body begins in
   * {@link memory}.
   */
  begin(
    op: number,
    flags: number,
    words: number,
    root: number,
    stream: number,
    event: number,
  ): number {
    if (typeof ASYNC_CUDA_BUILT === 'undefined') checkLength(op, words);
    const at = this.head & MASK;
    this.words = words;
    this.header = op | (flags << 8) | (words << 16);
    if (
      this.memory !== this.ring ||
      at + words > RING_WORDS ||
      ((this.head - this.knownTail) >>> 0) + words >= RING_WORDS
    ) {
      return this.beginElsewhere(words, root, stream, event);
    }
    this.at = at;
    const { memory } = this;
    memory[at + RECORD_ROOT] = root;
    memory[at + RECORD_STREAM] = stream;
    memory[at + RECORD_EVENT] = event;
    return at + RECORD_BODY;
  }

  /** As {@link begin}, at the end of the ring, or where the last record did not fit. */
  private beginElsewhere(words: number, root: number, stream: number, event: number): number {
    const start = this.head & MASK;
    const room = RING_WORDS - start;
    let at = 0;
    if (this.overflow.length !== 0 || !this.fits(room < words ? words + room : words)) {
      const block = this.overflow.reserve(words);
      this.memory = block.words;
      this.floats = block.floats;
      at = block.used;
    } else {
      this.memory = this.ring;
      this.floats = this.ringFloats;
      if (room < words) this.pad(start, room);
      else at = start;
    }
    this.at = at;
    const { memory } = this;
    memory[at + RECORD_ROOT] = root;
    memory[at + RECORD_STREAM] = stream;
    memory[at + RECORD_EVENT] = event;
    return at + RECORD_BODY;
  }

  /** Makes the record visible to the decoder, and ensures that it is decoded. */
  commit(): void {
    this.show();
    this.announce();
  }

  /** Ensures that the records which {@link show} has made visible are decoded. */
  announce(): void {
    if (peek(this.control, WORD.state) === STATE.sleeping) this.onSleeping();
  }

  /**
   * Makes the record visible to the decoder, for a caller that then decodes it or wakes the thread.
   */
  show(): void {
    if (this.memory === this.ring) this.publish(this.at, this.header, this.words);
    else this.spill();
  }

  /** Whether no record waits before the one that was begun last. */
  get isAlone(): boolean {
    return this.memory === this.ring && peek(this.control, WORD.tail) === this.head;
  }

  /** Command and flags of the record that was begun last. */
  get kind(): number {
    return this.header & 0xffff;
  }

  /** The index of the record that was begun last. */
  get place(): number {
    return this.at;
  }

  /**
   * Ends a record that was alone in the ring and was executed without being visible. Only the
   * thread that has the decoder may call this.
   */
  skip(): void {
    this.ring[(this.at + this.words) & MASK] = 0;
    this.head = (this.head + this.words) | 0;
    release(this.control, WORD.tail, this.head);
  }

  private spill(): void {
    this.overflow.append(this.words, this.header);
    if (this.overflow.length === 1) this.onOverflow();
  }

  /**
   * Moves waiting records into the ring as far as there is room, and no more at once than takes a
   * fraction of a millisecond. Returns whether all of them are there.
   */
  flush(): boolean {
    const { overflow, ring } = this;
    for (let moved = 0; overflow.length > 0; moved++) {
      if (moved === FLUSH_LIMIT) return false;
      const { memory, at: from } = overflow;
      const header = memory[from]!;
      const words = header >>> 16;
      const start = this.head & MASK;
      const room = RING_WORDS - start;
      if (!this.fits(room < words ? words + room : words)) return false;
      let at = start;
      if (room < words) {
        this.pad(start, room);
        at = 0;
      }
      for (let i = 1; i < words; i++) ring[at + i] = memory[from + i]!;
      overflow.shift();
      this.publish(at, header, words);
    }
    return true;
  }

  /** The number of records that wait on this side. */
  get waiting(): number {
    return this.overflow.length;
  }

  /** The position after the last record that is in the ring. */
  get position(): number {
    return this.head;
  }

  /** Whether everything written so far has been decoded. */
  get drained(): boolean {
    return this.overflow.length === 0 && peek(this.control, WORD.tail) === this.head;
  }

  /** The number of words that are written and not decoded. */
  get pendingWords(): number {
    return (this.head - peek(this.control, WORD.tail)) >>> 0;
  }

  /** Fills the end of the ring, so that the next record begins at its start. */
  private pad(start: number, room: number): void {
    this.publish(start, OP.pad | (room << 16), room);
  }

  /**
   * The place of the next header is cleared before this one is visible. An atomic store would wait
   * until the other core has released the cache line (15 to 30 ns of 110 for a launch, measured).
   */
  private publish(at: number, header: number, words: number): void {
    this.ring[(at + words) & MASK] = 0;
    this.head = (this.head + words) | 0;
    release(this.ring, at, header);
  }

  /** It needs one word more than the record, for the cleared header after it. */
  private fits(words: number): boolean {
    if (((this.head - this.knownTail) >>> 0) + words < RING_WORDS) return true;
    this.knownTail = Atomics.load(this.control, WORD.tail);
    return ((this.head - this.knownTail) >>> 0) + words < RING_WORDS;
  }
}
