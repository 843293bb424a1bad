/**
 * The amount that JavaScript copies in one turn of the event loop. A copy beyond it waits for a
 * later turn, in the order of the requests, so that many transfers at once block the loop no longer
 * than one.
 */
import { performance } from 'node:perf_hooks';
import { setImmediate } from 'node:timers';

/**
 * Milliseconds of copying in one turn. A collection of young garbage takes another 0.3 to 0.7 ms,
 * and a turn is to stay below a millisecond.
 */
const TURN_MS = 0.12;
/**
 * Where turns take longer, because of other work, copying gets this part of a turn; otherwise a
 * busy server would copy less per second the busier it is. MOST_MS is the limit in milliseconds.
 */
const TURN_SHARE = 1 / 8;
const MOST_MS = 0.5;
/** Passing a copy of a megabyte on to a later turn makes it take twice as long. */
const FIRST_SHARE = 2;
/** Parts of larger copies have this many bytes, or a multiple. */
const PART_BYTES = 1 << 16;
/** The initial estimate of bytes copied per millisecond: 10 GB/s. */
const FIRST_RATE = 1e7;
/**
 * Limits of the estimated rate: memory that has to be mapped first is slow, and memory in a cache
 * is fast.
 */
const MIN_RATE = 2e6;
const MAX_RATE = 6e7;

export class TurnBudget {
  private rate = FIRST_RATE;
  private spent = 0;
  private scheduled = false;
  /** The time at which this turn began; 0 where it is not known. */
  private began = -0;
  /** Milliseconds of copying in this turn. */
  private allowed = TURN_MS;
  private readonly waiting: { cost: number; resolve: () => void }[] = [];

  /** The limit in bytes of plain copying. */
  private get limit(): number {
    return this.rate * this.allowed;
  }

  /**
   * The number of bytes to copy in one turn, of `bytes` that are left of a plain copy. The last
   * part may be a little larger than the others.
   */
  part(bytes: number): number {
    const share = Math.max(PART_BYTES, Math.floor(this.limit / PART_BYTES) * PART_BYTES);
    return bytes <= share * 1.25 ? bytes : share;
  }

  /**
   * Whether a copy of this cost fits into this turn, made at once. The first copy of a turn may be
   * larger than its share.
   */
  fits(cost: number): boolean {
    return (
      this.waiting.length === 0 &&
      this.spent + cost <= (this.spent === 0 ? this.limit * FIRST_SHARE : this.limit) &&
      !this.isLate
    );
  }

  /** Whether this turn has used its time without a copy, by other work or a collection. */
  private get isLate(): boolean {
    return this.began !== 0 && performance.now() - this.began > TURN_MS;
  }

  /** Counts a copy that is made at once. */
  spend(cost: number): void {
    this.schedule();
    this.spent += cost;
  }

  /** Records the duration of a copy. */
  took(cost: number, ms: number): void {
    if (ms <= 0) return;
    const rate = Math.min(MAX_RATE, Math.max(MIN_RATE, cost / ms));
    // A slower rate is taken over at once, a faster one gradually.
    this.rate = rate < this.rate ? (this.rate + rate) / 2 : this.rate + (rate - this.rate) / 8;
  }

  /** Undefined where the copy may be made now; else a promise that resolves when it may. */
  take(cost: number): Promise<void> | undefined {
    this.schedule();
    if (
      this.waiting.length === 0 &&
      (this.spent === 0 || this.spent + cost <= this.limit) &&
      !this.isLate
    ) {
      this.spent += cost;
      return undefined;
    }
    return new Promise((resolve) => {
      this.waiting.push({ cost, resolve });
    });
  }

  /** Called in the next turn. Where nothing was copied in this one, its beginning is not known. */
  private readonly ended = (): void => {
    if (this.scheduled) return;
    this.began = 0;
    this.allowed = TURN_MS;
  };

  private schedule(): void {
    if (this.scheduled) return;
    this.scheduled = true;
    setImmediate(() => {
      this.scheduled = false;
      this.spent = 0;
      const now = performance.now();
      // The beginning of the last turn is known: this turn followed it without a pause.
      if (this.began !== 0)
        this.allowed = Math.min(MOST_MS, Math.max(TURN_MS, (now - this.began) * TURN_SHARE));
      this.began = now;
      setImmediate(this.ended);
      let next = this.waiting[0];
      while (next !== undefined && (this.spent === 0 || this.spent + next.cost <= this.limit)) {
        this.spent += next.cost;
        this.waiting.shift();
        next.resolve();
        next = this.waiting[0];
      }
      if (this.waiting.length > 0) this.schedule();
    });
  }
}
