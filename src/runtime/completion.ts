/**
 * How the JavaScript thread observes the device's progress. Each stream and each transfer has a
 * slot in page-locked memory into which the device writes increasing fence values, and this file
 * reads the slots.
 *
 * At first it reads them from setImmediate, without delay (8 µs from launch to await, measured).
 * When nothing has moved for a millisecond the runtime thread watches the slots, and this thread
 * sleeps (`completion/watch.ts`): a long kernel costs no core.
 */
import { setImmediate } from 'node:timers';

import {
  HOT_MS,
  NAP_FROM_MS,
  NEAR_AFTER_MS,
  isFarFromEnd,
  isNapLong,
  isNearEnd,
  nearAfter,
  untilExpectedEnd,
} from './completion/expected-end.js';
import { blockUntil } from './completion/blocking.js';
import type { CompletionHost } from './completion/host.js';
import { CompletionSlot } from './completion/slot.js';
import { Watch } from './completion/watch.js';
import { SLOT_AWAITED, SLOT_FENCE, SLOT_STREAM, SLOT_WORDS, WORD } from './layout.js';
import type { SharedState } from './layout.js';
import { pauseProcessor } from './pause.js';
import { peek } from './shared-words.js';

export { CompletionSlot };

/**
 * How long `wait` spins on a slot before it lets the event loop turn: short waits end sooner that
 * way.
 */
const SPIN_MS = 0.02;
/** Reads of the slot before the clock is read. */
const SPIN_LOOKS = 500;
/**
 * The time that awaits may take that end at once in one turn of the event loop, all together. A
 * chain of them runs from microtask to microtask, and without a limit timers, sockets and replies
 * would not get their turn.
 */
const TURN_MS = 0.2;
/**
 * Awaits between two readings of the clock for that limit, where they and the code between them are
 * short enough; otherwise each await reads it.
 */
const TURN_LOOKS = 8;
/**
 * A wait that took no longer than this the last time is spun for until it ends, where the event
 * loop has no other work and this turn of it has so much time left. A turn of the loop meanwhile
 * evicts most of the library's code from the processor's first-level cache, and the wait would end
 * several microtasks later (1 µs of the 57 of a graph, H200).
 */
const LONG_SPIN_MS = 0.1;
/** A turn of the event loop that takes longer than this has had other work in it. */
const BUSY_TURN_MS = 0.02;
/** After a spin that did not see its fence, this many waits do not spin. */
const SPIN_PAUSE = 32;
/**
 * {@link HOT_MS} where the device's own threads use all cores: reading the slots would take half of
 * one core's time.
 */
const CROWDED_HOT_MS = 0.1;

/**
 * Pauses of the processor between two turns of the event loop, some 50 ns each; the second number
 * applies where the end is expected to be far off.
 */
const PAUSES = 20;
const FAR_PAUSES = 200;

/** Waits of the JavaScript thread for fences of a device, and for conditions in the tables. */
export class Completion {
  private readonly shared: SharedState;
  private readonly host: CompletionHost;
  private readonly hotMs: number;
  private readonly watch: Watch;
  /**
   * Slots with waits. It is an array, since iterating over a set makes garbage, and each turn of
   * the event loop does that several times.
   */
  private readonly active: CompletionSlot[] = [];
  /** The promise rejected by {@link rejectAll} that may become an unhandled rejection. */
  loud: Promise<void> | undefined = undefined;
  /** The library's own waits, which programs do not see: {@link loud} where there is no other. */
  readonly bystanders = new WeakSet<Promise<void>>();
  private readonly conditions: {
    test: () => boolean;
    resolve: () => void;
    reject: (reason: unknown) => void;
  }[] = [];
  /** The `reject` functions of the promises of {@link orEnd}. */
  private readonly hostWork = new Set<(reason: unknown) => void>();
  private readonly tickBound = (): void => this.tick();
  private readonly lookBound = (): void => this.lookNear();
  private scheduled = false;
  private lastMove = -0;
  private posted = 0;
  private pumping = false;
  private spinPause = 0;
  /** When the last wait ended as expected (see {@link lookNear}); 0 where it ended otherwise. */
  private nearEnd = -0;
  /** Whether this thread may spin for waits up to {@link LONG_SPIN_MS}. */
  private readonly looksLong: boolean;
  /**
   * The time at which the next turn was requested; whether a turn has been late since the last wait
   * began; and whether none had been late before that.
   */
  private scheduledAt = -0;
  private turnWasLong = false;
  private loopIsFree = false;
  private turnMarked = false;
  private turnStart = -0;
  private turnWaits = 0;
  /** The number of the await that reads the clock next. */
  private turnLook = 1;
  private turnOver = false;
  /** Awaits that have ended and continue with the next turn. */
  private deferred: (() => void)[] = [];
  /**
   * The slot whose awaits end while this thread spins for it. Where several loops of the program
   * await at once it is the slot of one of them: spinning for the others would delay it, and their
   * slots are settled meanwhile.
   */
  private owner: CompletionSlot | undefined = undefined;
  private ownerSeen = false;
  /** Whether {@link settleOthers} is pending; and whether it ran, so that other waits continue. */
  private othersDue = false;
  private othersContinue = false;
  private readonly settleOthers = (): void => {
    this.othersDue = false;
    const { active } = this;
    for (let i = 0; i < active.length; i++) {
      if (!this.settle(active[i]!)) continue;
      this.lastMove = performance.now();
      this.othersContinue = true;
    }
  };
  private readonly newTurn = (): void => {
    this.turnMarked = false;
    this.turnOver = false;
    this.turnWaits = 0;
    this.turnLook = 1;
    this.renewOwner();
    // All of them continue at once: the first one alone would take the whole turn.
    const { deferred } = this;
    if (deferred.length === 0) return;
    this.deferred = [];
    for (const resolve of deferred) resolve();
  };

  constructor(shared: SharedState, host: CompletionHost) {
    this.shared = shared;
    this.host = host;
    this.hotMs = host.crowded ? CROWDED_HOT_MS : HOT_MS;
    this.looksLong = host.turn === undefined && !host.crowded;
    this.watch = new Watch(shared.control, {
      wake: () => host.wake(),
      look: () => this.schedule(),
      woken: () => {
        if (this.active.length !== 0 || this.conditions.length !== 0) this.start();
        else this.readMessages();
      },
      isOver: () => host.lost() !== undefined,
    });
    if (host.turn === undefined) this.watch.arm();
  }

  /** Whether the device has passed fence `seq`. */
  passed(slot: CompletionSlot, seq: number): boolean {
    if (((slot.seen - seq) | 0) >= 0) return true;
    this.see(slot);
    return ((slot.seen - seq) | 0) >= 0;
  }

  /**
   * Whether the device itself has written the last fence that was seen to be passed, so that it has
   * reached the work after that fence.
   */
  isWritten(slot: CompletionSlot): boolean {
    return ((peek(this.shared.slots, slot.index * SLOT_WORDS + SLOT_FENCE) - slot.seen) | 0) >= 0;
  }

  /** Returns the last fence that counts as passed. */
  private fenceOf(slot: CompletionSlot): number {
    const value = Atomics.load(this.shared.slots, slot.index * SLOT_WORDS + SLOT_FENCE);
    const { earlyWords } = slot;
    if (earlyWords === undefined || ((value - slot.earlySeq) | 0) >= 0) return value;
    return ((Atomics.load(earlyWords, slot.earlyAt) - slot.earlyValue) | 0) >= 0
      ? slot.earlySeq
      : value;
  }

  /**
   * Records how far the device has come. A fence that was seen to be passed stays passed, whatever
   * the slot contains later.
   */
  private see(slot: CompletionSlot): number {
    const value = this.fenceOf(slot);
    if (((value - slot.seen) | 0) > 0) slot.seen = value;
    return slot.seen;
  }

  /**
   * Spins on a slot for a few microseconds, where spinning has succeeded lately. Returns whether
   * the fence has passed.
   */
  spin(slot: CompletionSlot, seq: number): boolean {
    if (this.passed(slot, seq)) return true;
    return slot.waiters.length === 0 && this.lookAt(slot, seq);
  }

  /**
   * As {@link spin}, for a slot with one wait, which is awaited now. It resolves the wait if it
   * ends soon.
   */
  spinFor(slot: CompletionSlot, seq: number): void {
    const { waiters } = slot;
    if (this.turnOver || waiters.length !== 1 || waiters[0]!.seq !== seq || !this.lookAt(slot, seq))
      return;
    // This settles all waits, including this one.
    this.mayEndNow();
  }

  private lookAt(slot: CompletionSlot, seq: number): boolean {
    if (this.owner !== undefined && this.owner !== slot) return false;
    if (this.othersContinue) {
      this.othersContinue = false;
      return false;
    }
    if (slot.vain === seq) return false;
    const { took } = slot;
    if (this.host.crowded && took > NAP_FROM_MS) return false;
    const long = this.looksLong && took > SPIN_MS && took <= LONG_SPIN_MS;
    if (long) {
      if (!this.hasTimeFor(took)) return false;
    } else if (this.spinPause > 0) {
      this.spinPause--;
      return false;
    }
    let seen = (seq - 1) | 0;
    let start = 0;
    let now = 0;
    for (let i = 0; i < SPIN_LOOKS && ((seen - seq) | 0) < 0; i++) seen = this.fenceOf(slot);
    if (((seen - seq) | 0) < 0) {
      start = performance.now();
      now = start;
      const limit = long ? took + NEAR_AFTER_MS : SPIN_MS;
      while (((seen - seq) | 0) < 0 && now - start < limit) {
        for (let i = 0; i < 32 && ((seen - seq) | 0) < 0; i++) seen = this.fenceOf(slot);
        now = performance.now();
      }
    }
    if (((seen - seq) | 0) < 0) {
      slot.vain = seq;
      slot.vainSince = start;
      if (!long) this.spinPause = SPIN_PAUSE;
      this.owner = undefined;
      return false;
    }
    slot.seen = seen;
    // A wait that ends at once is no measure of the longer waits of its slot.
    if (long) slot.took = now - start;
    this.owner = slot;
    this.ownerSeen = true;
    return true;
  }

  /**
   * Whether this turn of the event loop has time for a wait of `took` milliseconds, and the loop
   * has had no other work lately.
   */
  private hasTimeFor(took: number): boolean {
    if (!this.loopIsFree || this.active.length !== 0 || this.conditions.length !== 0) return false;
    if (!this.turnMarked) {
      this.markTurn();
      // The await that is spun for is the first of the turn: its duration is no measure of what the
      // program does between two awaits.
      this.turnWaits = -1;
      return true;
    }
    return performance.now() - this.turnStart + took < TURN_MS;
  }

  private markTurn(): void {
    this.turnMarked = true;
    this.turnStart = performance.now();
    setImmediate(this.newTurn);
  }

  /** Whether an await has ended within this turn of the event loop. */
  get hot(): boolean {
    return this.turnMarked;
  }

  /**
   * Whether awaits end one after the other while this thread spins for them, and there are no other
   * waits.
   */
  get isOnlyOneHot(): boolean {
    return (
      (this.turnMarked || this.endedNear) &&
      this.active.length === 0 &&
      this.conditions.length === 0
    );
  }

  /** Whether an await has ended within this turn of the event loop, and there are no waits. */
  get isOnlyOneInTurn(): boolean {
    return this.turnMarked && this.active.length === 0;
  }

  private get endedNear(): boolean {
    return this.nearEnd !== 0 && performance.now() - this.nearEnd < NEAR_AFTER_MS;
  }

  /** Whether an await may still end within this turn of the event loop. */
  mayEndNow(): boolean {
    if (this.active.length !== 0 && !this.othersDue && this.anyPassed()) {
      this.othersDue = true;
      // The await that ends now continues first, so that its next launch does not queue after those
      // of the others. Two microtasks are as many as that await takes.
      queueMicrotask(() => queueMicrotask(this.settleOthers));
    }
    if (!this.turnMarked) {
      this.markTurn();
      return true;
    }
    if (!this.turnOver && ++this.turnWaits === this.turnLook) this.lookAtClock();
    return !this.turnOver;
  }

  /**
   * A program may run for long between its awaits: the pace of the turn so far determines when the
   * clock is read next.
   */
  private lookAtClock(): void {
    const { turnWaits } = this;
    const spent = performance.now() - this.turnStart;
    this.turnOver = spent >= TURN_MS;
    this.turnLook = turnWaits + (spent * TURN_LOOKS < TURN_MS * turnWaits ? TURN_LOOKS : 1);
  }

  /**
   * Resolves at once where the await may end within this turn of the event loop, otherwise with the
   * next turn. Messages that were posted before have been read.
   */
  end(): Promise<void> {
    this.readMessages();
    if (this.mayEndNow()) return Promise.resolve();
    return new Promise((resolve) => {
      this.deferred.push(resolve);
    });
  }

  /** Reads failures that were posted before the fence that has just been seen. */
  catchUp(): void {
    this.readMessages();
  }

  /**
   * Resolves when the device has passed fence `seq`, which `stream` writes. `spin`: whether to spin
   * for it first.
   */
  wait(slot: CompletionSlot, seq: number, stream: number, spin = true): Promise<void> {
    const last = slot.waiters[slot.waiters.length - 1];
    if (last !== undefined && last.seq === seq) return last.promise;
    if (spin ? this.spin(slot, seq) : this.passed(slot, seq)) {
      this.readMessages();
      return this.end();
    }
    const lost = this.host.lost();
    if (lost !== undefined) return Promise.reject(lost);
    this.publishAwaited(slot, seq, stream);
    let resolve!: () => void;
    let reject!: (reason: unknown) => void;
    const promise = new Promise<void>((yes, no) => {
      resolve = yes;
      reject = no;
    });
    // An earlier point may be waited for again while a later one is.
    const { waiters } = slot;
    let at = waiters.length;
    while (at > 0 && ((waiters[at - 1]!.seq - seq) | 0) > 0) at--;
    waiters.splice(at, 0, {
      seq,
      start: slot.vain === seq ? slot.vainSince : performance.now(),
      resolve,
      reject,
      promise,
    });
    if (!this.active.includes(slot)) this.active.push(slot);
    this.start();
    return promise;
  }

  /**
   * As {@link wait}, but blocks the thread: no other code of this program runs meanwhile, and
   * transfers that are under way do not continue.
   */
  block(slot: CompletionSlot, seq: number, stream: number): void {
    this.publishAwaited(slot, seq, stream);
    this.blockUntil(() => this.passed(slot, seq));
    this.readMessages();
  }

  /**
   * Blocks the thread until `test` holds.
   * @throws the error that everything in flight rejects with, where the device is lost meanwhile
   */
  blockUntil(test: () => boolean): void {
    blockUntil(this.host, () => this.readMessages(), test);
  }

  /**
   * Publishes the fence that is waited for: the runtime thread queries the driver about overdue
   * ones.
   */
  private publishAwaited(slot: CompletionSlot, seq: number, stream: number): void {
    const { slots } = this.shared;
    const base = slot.index * SLOT_WORDS;
    slots[base + SLOT_STREAM] = stream;
    if (((seq - peek(slots, base + SLOT_AWAITED)) | 0) > 0)
      Atomics.store(slots, base + SLOT_AWAITED, seq);
  }

  /** Resolves when `test` holds, which reads words that the decoder writes into the tables. */
  until(test: () => boolean): Promise<void> {
    if (test()) return Promise.resolve();
    const lost = this.host.lost();
    if (lost !== undefined) return Promise.reject(lost);
    return new Promise((resolve, reject) => {
      this.conditions.push({ test, resolve, reject });
      this.start();
    });
  }

  /** Reads the slots in the next turn of the event loop. */
  kick(): void {
    this.start();
  }

  /**
   * Executes commands now, in inline mode, so that short work is complete before the caller looks.
   */
  pump(): void {
    if (this.host.turn === undefined || this.pumping) return;
    this.pumping = true;
    try {
      this.host.turn();
    } finally {
      this.pumping = false;
    }
  }

  /** Rejects all waits in flight whose fences have not passed. */
  rejectAll(error: Error): void {
    for (const slot of this.active) {
      this.settle(slot);
      for (const waiter of slot.waiters) {
        // One unhandled rejection is enough.
        if (this.loud === undefined || this.bystanders.has(this.loud)) this.loud = waiter.promise;
        else waiter.promise.catch(ignore);
        waiter.reject(error);
      }
      slot.waiters.length = 0;
    }
    this.active.length = 0;
    for (const condition of this.conditions.splice(0)) condition.reject(error);
    for (const reject of this.hostWork) reject(error);
    this.hostWork.clear();
    this.watch.end();
  }

  /**
   * Settles as `work` of the host does, which the device waits for. It rejects with the error of
   * {@link rejectAll} if that comes first.
   */
  orEnd<T>(work: PromiseLike<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.hostWork.add(reject);
      Promise.resolve(work)
        .finally(() => this.hostWork.delete(reject))
        .then(resolve, reject);
    });
  }

  private start(): void {
    this.lastMove = performance.now();
    this.turnWasLong = false;
    this.watch.end();
    this.schedule();
  }

  private schedule(): void {
    if (this.scheduled) return;
    this.scheduled = true;
    this.scheduledAt = performance.now();
    setImmediate(this.tickBound);
  }

  /** A slot that no spin used during a whole turn of the event loop is no longer the owner. */
  private renewOwner(): void {
    if (!this.ownerSeen) this.owner = undefined;
    this.ownerSeen = false;
  }

  /**
   * Whether a wait has ended that was left to a turn of the event loop, so that waits which end
   * within this turn do not overtake it for long.
   */
  private anyPassed(): boolean {
    const { active } = this;
    for (let i = 0; i < active.length; i++) {
      const slot = active[i]!;
      const first = slot.waiters[0];
      if (first !== undefined && this.passed(slot, first.seq)) return true;
    }
    return false;
  }

  /** Whether there is one wait only, and it is expected to end within some microseconds. */
  private isNear(): boolean {
    return (
      this.active.length === 1 &&
      this.host.turn === undefined &&
      isNearEnd(this.active[0]!, this.host.crowded)
    );
  }

  /**
   * Spins for those microseconds, then settles the waits that have ended. It runs in a microtask
   * after the tick, so that the awaiting code continues from there without other code of the event
   * loop in between.
   */
  private lookNear(): void {
    const slot = this.active[0];
    const first = slot?.waiters[0];
    if (this.active.length === 1 && slot !== undefined && first !== undefined) {
      const until = first.start + slot.took + nearAfter(slot.took);
      let passed = false;
      do {
        for (let i = 0; i < 32 && !passed; i++)
          passed = ((this.fenceOf(slot) - first.seq) | 0) >= 0;
      } while (!passed && performance.now() < until);
      this.nearEnd = passed ? performance.now() : 0;
    }
    this.look();
  }

  private settle(slot: CompletionSlot): boolean {
    const { waiters } = slot;
    const value = this.see(slot);
    if (waiters.length === 0 || ((value - waiters[0]!.seq) | 0) < 0) return false;
    // Failures, and the output of kernels, were posted before the fence was written.
    this.readMessages();
    let done = 0;
    while (done < waiters.length && ((value - waiters[done]!.seq) | 0) >= 0)
      waiters[done++]!.resolve();
    if (done === 0) return false;
    slot.took = performance.now() - waiters[0]!.start;
    this.loopIsFree = !this.turnWasLong;
    waiters.splice(0, done);
    return true;
  }

  private readMessages(): void {
    const posted = peek(this.shared.control, WORD.posted);
    if (posted === this.posted) return;
    this.posted = posted;
    this.host.messages();
  }

  private tick(): void {
    this.scheduled = false;
    if (performance.now() - this.scheduledAt > BUSY_TURN_MS) this.turnWasLong = true;
    if (!this.turnMarked) this.renewOwner();
    if (this.isNear()) queueMicrotask(this.lookBound);
    else {
      this.nearEnd = 0;
      this.look();
    }
  }

  private look(): void {
    let busy = false;
    if (this.host.turn !== undefined && !this.pumping) busy = this.host.turn();
    this.readMessages();
    const flushed = this.host.flush();
    let moved = false;
    const { active } = this;
    for (let i = 0; i < active.length;) {
      const slot = active[i]!;
      if (this.settle(slot)) moved = true;
      if (slot.waiters.length === 0) active.splice(i, 1);
      else i++;
    }
    for (let i = 0; i < this.conditions.length;) {
      const condition = this.conditions[i]!;
      if (condition.test()) {
        this.conditions.splice(i, 1);
        condition.resolve();
        moved = true;
      } else i++;
    }
    const lost = this.host.lost();
    if (lost !== undefined) {
      this.rejectAll(lost);
      return;
    }
    if (
      this.active.length === 0 &&
      this.conditions.length === 0 &&
      flushed &&
      !(this.host.turn !== undefined && busy)
    ) {
      this.watch.end();
      return;
    }
    const now = performance.now();
    if (moved) this.lastMove = now;
    if (this.host.turn !== undefined) {
      if (busy || now - this.lastMove < this.hotMs) this.schedule();
      else this.watch.sleep(1);
    } else if (flushed && this.napsNow(now)) {
      const slot = active[0]!;
      const { seq } = slot.waiters[0]!;
      this.watch.nap(() => ((this.fenceOf(slot) - seq) | 0) >= 0);
      this.scheduledAt = performance.now();
      if (this.anyPassed()) this.look();
      else this.schedule();
    } else if (!flushed || this.isHot(now) || this.untilExpected(now) === 0) {
      this.pause(now);
      this.schedule();
    } else this.watch.begin(this.conditions.length > 0 ? 1 : this.untilExpected(now));
  }

  /**
   * Pauses for about a microsecond between two turns of the event loop, or less if the wait ends.
   * Turns without a pause load a core whose other hardware thread may run the runtime thread, or
   * the work that is waited for. The pause is ten microseconds where the end is further off and the
   * event loop has had no other work since the wait began.
   */
  private pause(now: number): void {
    const slot = this.active.length === 1 ? this.active[0] : undefined;
    const first = slot?.waiters[0];
    const isFar = slot !== undefined && !this.turnWasLong && isFarFromEnd(slot, now);
    const pauses = isFar ? FAR_PAUSES : PAUSES;
    for (let i = 0; i < pauses; i++) {
      pauseProcessor();
      if (first !== undefined && ((this.fenceOf(slot!) - first.seq) | 0) >= 0) return;
    }
  }

  /** Whether a wait has ended or begun so lately that the next end may be near. */
  private isHot(now: number): boolean {
    if (
      this.host.crowded &&
      this.conditions.length === 0 &&
      this.active.every(({ took }) => took > NAP_FROM_MS)
    )
      return false;
    return now - this.lastMove < this.hotMs;
  }

  /**
   * Whether the device's threads need this thread's processor, there is one wait only, and its end
   * is expected soon.
   */
  private napsNow(now: number): boolean {
    return (
      this.host.crowded &&
      this.active.length === 1 &&
      this.conditions.length === 0 &&
      !this.turnWasLong &&
      isNapLong(this.active[0]!, now)
    );
  }

  /** Returns how long until the end of some wait is near: see {@link untilExpectedEnd}. */
  private untilExpected(now: number): number {
    return this.host.crowded ? Infinity : untilExpectedEnd(this.active, now);
  }
}

function ignore(): void {
  // Another wait was rejected with the same error.
}
