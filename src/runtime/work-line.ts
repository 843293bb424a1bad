/**
 * Work of the host, passed to a thread through shared memory: the JavaScript thread writes the work
 * that is ready to begin, one entry after the other, and a thread executes the entries in that
 * order and lets their streams continue by itself. The JavaScript thread is involved again only
 * where an entry fails.
 */
import { SLOT_HOLD, SLOT_WORDS, SLOTS_BYTES, WORD, wakeJs } from './layout.js';

/** Numbers that an entry contains for the thread that executes it. */
export const LINE_ARGS = 8;
/**
 * The numbers before them: the slot of the stream's holds, and the value of the one that it
 * releases.
 */
const ENTRY_NUMBERS = 2 + LINE_ARGS;
/** Number of entries that are written and not finished. A power of two. */
export const LINE_CAPACITY = 1024;

/** Words of a line, 64 bytes apart. */
const LINE = {
  /**
   * Entries written, increasing. The JavaScript thread writes it; the other thread sleeps on it.
   */
  head: 0,
  /** Entries that are finished. The thread writes it. */
  done: 16,
  /** One of {@link TAKER}. */
  taker: 32,
} as const;
const ENTRIES_OFFSET = 192;

const TAKER = {
  /** No thread attends to the line. */
  away: 0,
  /** A thread attends to the line, or was requested to. */
  there: 1,
} as const;

/**
 * How long a thread spins for more before it sleeps: waking it takes longer than the pauses between
 * entries that are awaited one by one.
 */
const SPIN_MS = 0.1;
const SPIN_LOOKS = 100;
/**
 * How long it then sleeps before it leaves: requesting a thread again costs the JavaScript thread a
 * message.
 */
const LINGER_MS = 4;
/**
 * After this long it leaves after the current entry, whether there are more or not: other lines and
 * requests may wait for a thread.
 */
const STAY_MS = 50;

/** The memory that a thread needs to attend to a line. */
export interface LineMemory {
  readonly line: SharedArrayBuffer;
  readonly control: SharedArrayBuffer;
  /**
   * The memory in which holds are released; undefined where another thread cannot reach it: the
   * JavaScript thread releases them then.
   */
  readonly slots: { readonly buffer: SharedArrayBuffer; readonly offset: number } | undefined;
}

/** The writing end of a line. */
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

  /** The number of entries that were written. */
  get written(): number {
    return this.head;
  }

  /** The number of written entries that are finished. */
  get done(): number {
    return Atomics.load(this.words, LINE.done);
  }

  /** The words; the word of {@link done} reaches {@link written} when all entries are finished. */
  get progress(): Int32Array {
    return this.words;
  }

  static readonly progressAt: number = LINE.done;

  /**
   * Writes an entry; the caller has ensured that there is room. Returns whether a thread has to be
   * requested to attend to the line.
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
   * Whether a thread has to be requested to attend to the line, because the last one has left it
   * with entries.
   */
  isLeft(): boolean {
    const { words } = this;
    return (
      this.done !== this.head &&
      Atomics.compareExchange(words, LINE.taker, TAKER.away, TAKER.there) === TAKER.away
    );
  }

  /** Withdraws the entry that failed and those after it, when the thread has left at it. */
  takeBack(): void {
    this.head = this.done;
    Atomics.store(this.words, LINE.head, this.head);
    Atomics.store(this.words, LINE.taker, TAKER.away);
  }
}

/**
 * Executes the entries of the line, until none has come for a while or other lines need the thread.
 *
 * @param execute is called with the entries, and where the numbers of the current one begin; an
 *   exception ends this at that entry
 */
export function takeFrom(
  { line, control, slots }: LineMemory,
  execute: (entries: Float64Array, at: number) => void,
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
      execute(entries, at + 2);
      done = (done + 1) | 0;
      Atomics.store(words, LINE.done, done);
      if (holds === undefined) wakeJs(state);
      else {
        // No commands were sent past the hold, which would have to come first.
        Atomics.store(holds, entries[at]! * SLOT_WORDS + SLOT_HOLD, entries[at + 1]!);
        Atomics.add(state, WORD.doorbell, 1);
        Atomics.notify(state, WORD.doorbell);
      }
      if (performance.now() < until) continue;
      Atomics.store(words, LINE.taker, TAKER.away);
      return;
    }
  } while (hasMore(words, done));
}

/** Whether another entry comes. If not, the line has no thread. */
function hasMore(words: Int32Array, done: number): boolean {
  const begun = performance.now();
  do {
    for (let i = 0; i < SPIN_LOOKS; i++) if (Atomics.load(words, LINE.head) !== done) return true;
  } while (performance.now() - begun < SPIN_MS);
  Atomics.wait(words, LINE.head, done, LINGER_MS);
  if (Atomics.load(words, LINE.head) !== done) return true;
  Atomics.store(words, LINE.taker, TAKER.away);
  // An entry was written meanwhile: the first thread to change the word attends to it.
  return (
    Atomics.load(words, LINE.head) !== done &&
    Atomics.compareExchange(words, LINE.taker, TAKER.away, TAKER.there) === TAKER.away
  );
}
