/**
 * Work of the host, handed to a thread through shared memory: the JS thread writes what is ready to
 * begin, one behind the other, and the thread carries it out in that order and lets its stream go
 * on by itself. The JS thread is asked again only where something fails.
 */
import { SLOT_HOLD, SLOT_WORDS, SLOTS_BYTES, WORD, wakeJs } from './layout.js';

/** Numbers that an entry carries for whoever carries it out. */
export const LINE_ARGS = 8;
/** In front of them: the slot of the stream's holds, and the value of the one that it releases. */
const ENTRY_NUMBERS = 2 + LINE_ARGS;
/** Entries that are written and not over. A power of two. */
export const LINE_CAPACITY = 1024;

/** Words of a line, 64 bytes apart. */
const LINE = {
  /** Entries written, ever growing. JS writes; the thread sleeps on it. */
  head: 0,
  /** Entries that are over. The thread writes. */
  done: 16,
  /** One of {@link TAKER}. */
  taker: 32,
} as const;
const ENTRIES_OFFSET = 192;

const TAKER = {
  /** No thread sees to the line. */
  away: 0,
  /** One does, or was told to. */
  there: 1,
} as const;

/**
 * How long a thread looks for more before it sleeps: waking it takes longer than what is awaited
 * one by one leaves between.
 */
const SPIN_MS = 0.1;
const SPIN_LOOKS = 100;
/** And how long it sleeps before it goes: telling it anew costs the JS thread a message. */
const LINGER_MS = 4;
/**
 * After so long it goes behind the entry at hand, whatever comes: other lines and requests may wait
 * for a thread.
 */
const STAY_MS = 50;

/** What a thread needs to see to a line. */
export interface LineMemory {
  readonly line: SharedArrayBuffer;
  readonly control: SharedArrayBuffer;
  /**
   * Where holds are released; undefined where another thread cannot reach that: the JS thread does
   * it then.
   */
  readonly slots: { readonly buffer: SharedArrayBuffer; readonly offset: number } | undefined;
}

/** The writing end. */
export class LineWriter {
  readonly memory: SharedArrayBuffer;
  private readonly words: Int32Array;
  private readonly entries: Float64Array;
  private head = 0;

  constructor() {
    this.memory = new SharedArrayBuffer(ENTRIES_OFFSET + LINE_CAPACITY * ENTRY_NUMBERS * 8);
    this.words = new Int32Array(this.memory, 0, ENTRIES_OFFSET / 4);
    this.entries = new Float64Array(this.memory, ENTRIES_OFFSET);
  }

  /** Entries that were written. */
  get written(): number {
    return this.head;
  }

  /** Entries that are over, of those that were written. */
  get done(): number {
    return Atomics.load(this.words, LINE.done);
  }

  /** Of the words, the one that comes to {@link written} when all that was written is over. */
  get progress(): Int32Array {
    return this.words;
  }

  static readonly progressAt: number = LINE.done;

  /**
   * For whoever knows that there is room. Returns whether a thread has to be told to see to the
   * line.
   */
  write(slot: number, hold: number, args: Float64Array): boolean {
    const { words, entries } = this;
    let at = (this.head & (LINE_CAPACITY - 1)) * ENTRY_NUMBERS;
    entries[at++] = slot;
    entries[at++] = hold;
    for (let i = 0; i < LINE_ARGS; i++) entries[at + i] = args[i]!;
    this.head = (this.head + 1) | 0;
    Atomics.store(words, LINE.head, this.head);
    if (Atomics.compareExchange(words, LINE.taker, TAKER.away, TAKER.there) === TAKER.away)
      return true;
    Atomics.notify(words, LINE.head);
    return false;
  }

  /**
   * Whether a thread has to be told to see to the line, since the one that did has left it with
   * entries.
   */
  isLeft(): boolean {
    const { words } = this;
    return (
      this.done !== this.head &&
      Atomics.compareExchange(words, LINE.taker, TAKER.away, TAKER.there) === TAKER.away
    );
  }

  /**
   * The thread has left at an entry that failed: what was written behind it, and itself, is as if
   * it had not been.
   */
  takeBack(): void {
    this.head = this.done;
    Atomics.store(this.words, LINE.head, this.head);
    Atomics.store(this.words, LINE.taker, TAKER.away);
  }
}

/**
 * Carries out what is written into the line, until nothing has come for a while or it is others'
 * turn.
 *
 * @param carryOut is given the entries, and where the numbers of the one at hand begin; what it
 *   throws ends this at that entry
 */
export function takeFrom(
  { line, control, slots }: LineMemory,
  carryOut: (entries: Float64Array, at: number) => void,
): void {
  const words = new Int32Array(line, 0, ENTRIES_OFFSET / 4);
  const entries = new Float64Array(line, ENTRIES_OFFSET);
  const state = new Int32Array(control);
  const holds =
    slots === undefined ? undefined : new Int32Array(slots.buffer, slots.offset, SLOTS_BYTES / 4);
  let done = Atomics.load(words, LINE.done);
  const until = performance.now() + STAY_MS;
  do {
    while (Atomics.load(words, LINE.head) !== done) {
      const at = (done & (LINE_CAPACITY - 1)) * ENTRY_NUMBERS;
      carryOut(entries, at + 2);
      done = (done + 1) | 0;
      Atomics.store(words, LINE.done, done);
      if (holds === undefined) wakeJs(state);
      else {
        // Nothing was sent past the hold, which would have to come first.
        Atomics.store(holds, entries[at]! * SLOT_WORDS + SLOT_HOLD, entries[at + 1]!);
        Atomics.add(state, WORD.doorbell, 1);
        Atomics.notify(state, WORD.doorbell);
      }
      if (performance.now() < until) continue;
      Atomics.store(words, LINE.taker, TAKER.away);
      return;
    }
  } while (comesMore(words, done));
}

/** Whether something comes; where nothing does, the line is nobody's. */
function comesMore(words: Int32Array, done: number): boolean {
  const begun = performance.now();
  do {
    for (let i = 0; i < SPIN_LOOKS; i++) if (Atomics.load(words, LINE.head) !== done) return true;
  } while (performance.now() - begun < SPIN_MS);
  Atomics.wait(words, LINE.head, done, LINGER_MS);
  if (Atomics.load(words, LINE.head) !== done) return true;
  Atomics.store(words, LINE.taker, TAKER.away);
  // Written meanwhile: whoever is first to say so sees to it.
  return (
    Atomics.load(words, LINE.head) !== done &&
    Atomics.compareExchange(words, LINE.taker, TAKER.away, TAKER.there) === TAKER.away
  );
}
