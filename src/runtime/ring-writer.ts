/**
 * The JS thread's end of the ring: reserve a record, fill it in, commit it. Never blocks: what does not fit waits in a
 * queue on this side and follows, in order, as the decoder makes room.
 */
import { OP, RECORD_EVENT, RECORD_HEAD, RECORD_ROOT, RECORD_STREAM } from './commands.js';
import { RING_WORDS, STATE, WORD } from './layout.js';
import type { SharedState } from './layout.js';

const MASK = RING_WORDS - 1;
/** The length of a record is 16 bits. */
export const MAX_RECORD_WORDS = 0xffff;

export class RingWriter {
  /** Where the record that is being written goes. */
  memory: Int32Array;
  /** Where it begins in `memory`. */
  at = 0;
  private readonly ring: Int32Array;
  private readonly control: Int32Array;
  private readonly scratch = new Int32Array(MAX_RECORD_WORDS);
  private readonly onSleeping: () => void;
  private head: number;
  private knownTail: number;
  private words = 0;
  private overflow: Int32Array[] = [];
  private overflowNext = 0;

  /** `onSleeping` is called after a commit that finds the runtime thread asleep. */
  constructor(shared: SharedState, onSleeping: () => void) {
    this.ring = shared.ring;
    this.control = shared.control;
    this.memory = shared.ring;
    this.head = Atomics.load(this.control, WORD.head);
    this.knownTail = this.head;
    this.onSleeping = onSleeping;
  }

  /** Begins a record of `words` words and writes its first four. Returns where its body begins in {@link memory}. */
  begin(op: number, flags: number, words: number, root: number, stream: number, event: number): number {
    const start = this.head & MASK;
    const room = RING_WORDS - start;
    const need = room < words ? words + room : words;
    let memory = this.ring;
    let at = start;
    if (this.overflow.length !== 0 || !this.fits(need)) {
      memory = this.scratch;
      at = 0;
    } else if (room < words) {
      memory[start] = OP.pad | (room << 16);
      this.head = (this.head + room) | 0;
      at = 0;
    }
    this.memory = memory;
    this.at = at;
    this.words = words;
    memory[at + RECORD_HEAD] = op | (flags << 8) | (words << 16);
    memory[at + RECORD_ROOT] = root;
    memory[at + RECORD_STREAM] = stream;
    memory[at + RECORD_EVENT] = event;
    return at + 4;
  }

  /** Makes the record visible to the decoder. */
  commit(): void {
    if (this.memory !== this.ring) {
      this.overflow.push(this.scratch.slice(0, this.words));
      this.flush();
    } else {
      this.head = (this.head + this.words) | 0;
      Atomics.store(this.control, WORD.head, this.head);
    }
    if (Atomics.load(this.control, WORD.state) === STATE.sleeping) this.onSleeping();
  }

  /** Moves what waits on this side into the ring as far as there is room. Returns whether all of it is there. */
  flush(): boolean {
    while (this.overflowNext < this.overflow.length) {
      const record = this.overflow[this.overflowNext]!;
      const start = this.head & MASK;
      const room = RING_WORDS - start;
      const need = room < record.length ? record.length + room : record.length;
      if (!this.fits(need)) {
        if (this.overflowNext > 4096) {
          this.overflow = this.overflow.slice(this.overflowNext);
          this.overflowNext = 0;
        }
        return false;
      }
      let at = start;
      if (room < record.length) {
        this.ring[start] = OP.pad | (room << 16);
        at = 0;
        this.head = (this.head + room) | 0;
      }
      this.ring.set(record, at);
      this.head = (this.head + record.length) | 0;
      Atomics.store(this.control, WORD.head, this.head);
      this.overflowNext++;
    }
    this.overflow = [];
    this.overflowNext = 0;
    return true;
  }

  /** Records that wait on this side. */
  get waiting(): number {
    return this.overflow.length - this.overflowNext;
  }

  /** Whether everything written so far has been decoded. */
  get drained(): boolean {
    return this.overflow.length === 0 && Atomics.load(this.control, WORD.tail) === this.head;
  }

  /** Words that are written and not decoded. */
  get pendingWords(): number {
    return (this.head - Atomics.load(this.control, WORD.tail)) >>> 0;
  }

  private fits(words: number): boolean {
    if (((this.head - this.knownTail) >>> 0) + words <= RING_WORDS) return true;
    this.knownTail = Atomics.load(this.control, WORD.tail);
    return ((this.head - this.knownTail) >>> 0) + words <= RING_WORDS;
  }
}

/** Writes a 64-bit integer, low half first. */
export function putInt64(memory: Int32Array, at: number, value: number): void {
  memory[at] = value | 0;
  memory[at + 1] = (value / 4294967296) | 0;
}
