/**
 * How JavaScript learns that the device got somewhere: each stream and each transfer has a slot in
 * page-locked memory into which the device writes growing fence values, and this file looks at the
 * slots.
 *
 * At first it looks from setImmediate, without delay (8 µs from launch to await, measured). When
 * nothing has moved for a millisecond it hands the watch to the runtime thread and sleeps, with a
 * slow timer as backstop; a long kernel costs no core. Timers are taken at load, so that fake
 * timers in a user's tests don't hang us.
 */
import { clearTimeout, setImmediate, setTimeout } from 'node:timers';

import { SLOT_AWAITED, SLOT_FENCE, SLOT_STREAM, SLOT_WORDS, STATE, WORD } from './layout.js';
import type { SharedState } from './layout.js';
import { pauseProcessor, sleepFor } from './pause.js';
import { peek } from './shared-words.js';

/**
 * How long `wait` looks at a slot itself before it lets the event loop turn: what is short ends
 * sooner that way.
 */
const SPIN_MS = 0.02;
/** Looks before the clock is asked. */
const SPIN_LOOKS = 500;
/**
 * Awaits that end at once in one turn of the event loop, all of them together: a chain of them runs
 * from microtask to microtask, and timers, sockets and replies would never get their turn.
 */
const TURN_MS = 0.2;
/**
 * Awaits between two looks at the clock for that, where they and what comes between them are short
 * enough; else each looks.
 */
const TURN_LOOKS = 8;
/**
 * What took no longer than this the last time is looked for until it ends, where nothing else wants
 * the event loop and this turn of it has so much time left. Going round the loop meanwhile leaves
 * little of the library's code in the processor's first cache, and ends several microtasks later
 * (of a graph's 57 µs one, H200).
 */
const LONG_SPIN_MS = 0.1;
/** A turn of the event loop that takes longer than this has had other things to do. */
const BUSY_TURN_MS = 0.02;
/** After a spin that was in vain, this many waits don't spin. */
const SPIN_PAUSE = 32;
/** After this long without a completion the runtime thread watches. */
const HOT_MS = 1;
/**
 * And where the device's own threads want all cores: looking would take one of them half of its
 * time.
 */
const CROWDED_HOT_MS = 0.1;
/**
 * There the JS thread rather naps: it sleeps in a turn of its event loop, for no longer than it may
 * spin in one ({@link LONG_SPIN_MS}), so that the loop goes on turning. It leaves the processor to
 * the others until then, and from the end of a grid it takes 65 µs to whoever awaits it, 100 where
 * the loop is woken. What took longer than this the last time is awaited so, from the start until
 * it should have ended, where that is soon: each nap's end takes the processor for some 10 µs (a
 * grid of two threads took 1.70 ms with naps, 1.60 without).
 */
const NAP_MS = 0.1;
const NAP_FROM_MS = 0.1;
const NAP_UNTIL_MS = 0.75;
/**
 * It watches until so long before the end that is expected: being woken takes 50 µs, which is one
 * percent of a copy of 256 MiB. The same time after the expected end it watches again.
 */
const EXPECTED_MS = 1;
/** The backstop while it does: a lost wake-up costs no more than this. */
const BACKSTOP_MS = 50;

/**
 * What is awaited again and again takes as long as it took before. Around that time a turn of the
 * event loop looks at the slot without pause: from so long before the expected end, until so long
 * after it, in milliseconds.
 */
const NEAR_BEFORE_MS = 0.004;
const NEAR_AFTER_MS = 0.006;
/**
 * What takes long varies by more: both grow by this part of it, until it is too long to be expected
 * that well.
 */
const NEAR_PART = 0.003;
const NEAR_LIMIT_MS = 5;
const nearBefore = (took: number): number => NEAR_BEFORE_MS + NEAR_PART * took;
const nearAfter = (took: number): number => NEAR_AFTER_MS + NEAR_PART * took;

/**
 * Of some 50 ns each; and where the end is expected to be further off than so many milliseconds.
 */
const PAUSES = 20;
const FAR_PAUSES = 200;
const FAR_MS = 0.05;

/**
 * A thread that blocks looks so many times between two looks for messages, for so long without a
 * pause where the device does not want its processor, and then sleeps so long between looks: twice
 * that, in truth, which a graph of a millisecond feels.
 */
const LOOKS_PER_MESSAGE = 64;
const BLOCKED_LOOK_MS = 20;
const BLOCKED_PAUSE_MS = 0.05;

interface Waiter {
  seq: number;
  /** When the wait began. */
  start: number;
  resolve: () => void;
  reject: (reason: unknown) => void;
  promise: Promise<void>;
}

/**
 * A row of fence values that one stream writes.
 *
 * Fields that hold milliseconds begin as -0, here and in {@link Completion}: V8 keeps 0 as a small
 * integer, and the first time that is no whole number would change the shape of all objects of the
 * class, and end all code that was compiled for it.
 */
export class CompletionSlot {
  readonly index: number;
  /** The last fence value given out. */
  issued: number;
  /** The last one seen. */
  seen: number;
  /** In the order of their values. */
  readonly waiters: Waiter[] = [];
  /**
   * Where else it shows that fence `earlySeq` may be taken for passed: all that is in front of it
   * is over once word `earlyAt` of these has come to `earlyValue`. The host knows of its own work
   * before the device has written a fence behind it (13 µs, H100).
   */
  earlyWords: Int32Array | undefined = undefined;
  earlyAt = 0;
  earlyValue = 0;
  earlySeq = 0;
  /** How long the last wait took, milliseconds, of those that did not end at once. */
  took = -0;
  /** The last fence that was looked for in vain, and from when on, milliseconds. */
  vain: number;
  vainSince = -0;

  constructor(index: number, value: number) {
    this.index = index;
    this.issued = value;
    this.seen = value;
    this.vain = value;
  }
}

export interface CompletionHost {
  /** Whether the device computes on as many threads as there are cores. */
  readonly crowded: boolean;
  /** Decodes and polls on this thread, where the runtime has no thread of its own. */
  turn: (() => boolean) | undefined;
  /** Reads messages; called whenever the posted counter moved. */
  messages(): void;
  /** Moves overflowing commands on; returns whether none are left. */
  flush(): boolean;
  /** Wakes the runtime thread if it sleeps. */
  wake(): void;
  /** The error that everything in flight rejects with, once the device is lost or closed. */
  lost(): Error | undefined;
}

export class Completion {
  private readonly shared: SharedState;
  private readonly host: CompletionHost;
  private readonly hotMs: number;
  /**
   * Slots that somebody waits for. An array: walking a set makes garbage, and each turn of the
   * event loop walks it several times.
   */
  private readonly active: CompletionSlot[] = [];
  /**
   * Of the promises that {@link rejectAll} rejected, the one that may become an unhandled
   * rejection.
   */
  loud: Promise<void> | undefined = undefined;
  /**
   * Waits of the library's own, whose rejection nobody sees: {@link loud} where there is no other.
   */
  readonly bystanders = new WeakSet<Promise<void>>();
  private readonly conditions: {
    test: () => boolean;
    resolve: () => void;
    reject: (reason: unknown) => void;
  }[] = [];
  /** Of {@link orEnd}. */
  private readonly hostWork = new Set<(reason: unknown) => void>();
  private readonly tickBound = (): void => this.tick();
  private readonly lookBound = (): void => this.lookNear();
  private scheduled = false;
  private lastMove = -0;
  private posted = 0;
  private wakeSeen = 0;
  private backstop: ReturnType<typeof setTimeout> | undefined = undefined;
  private pumping = false;
  private spinPause = 0;
  /** When the last wait ended as expected (see {@link lookNear}); 0 where it ended otherwise. */
  private nearEnd = -0;
  /**
   * Whether this thread may wait for what is not quite near by looking for it. See
   * {@link LONG_SPIN_MS}.
   */
  private readonly looksLong: boolean;
  /**
   * When the next turn was asked for, whether one has been late since the last wait began, and
   * whether none was before that.
   */
  private scheduledAt = -0;
  private turnWasLong = false;
  private loopIsFree = false;
  private turnMarked = false;
  private turnStart = -0;
  private turnWaits = 0;
  /** The await that looks at the clock next. */
  private turnLook = 1;
  private turnOver = false;
  /** Awaits that have ended and go on with the next turn. */
  private deferred: (() => void)[] = [];
  /**
   * The slot whose awaits end while this thread looks at it. Where several loops await at once it
   * is one of them: looking for the others would hold it up, and it sees to them on its way.
   */
  private owner: CompletionSlot | undefined = undefined;
  private ownerSeen = false;
  /**
   * Whether {@link settleOthers} is to be called; and whether it has been, so that they are about
   * to go on.
   */
  private othersDue = false;
  private othersGoOn = false;
  private readonly settleOthers = (): void => {
    this.othersDue = false;
    const { active } = this;
    for (let i = 0; i < active.length; i++) {
      if (!this.settle(active[i]!)) continue;
      this.lastMove = performance.now();
      this.othersGoOn = true;
    }
  };
  private readonly newTurn = (): void => {
    this.turnMarked = false;
    this.turnOver = false;
    this.turnWaits = 0;
    this.turnLook = 1;
    this.renewOwner();
    // All of them at once: whoever went first would take the whole turn.
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
    if (host.turn === undefined) this.armWake();
  }

  /** Whether the device has passed fence `seq`. */
  passed(slot: CompletionSlot, seq: number): boolean {
    if (((slot.seen - seq) | 0) >= 0) return true;
    this.see(slot);
    return ((slot.seen - seq) | 0) >= 0;
  }

  /**
   * Whether the device itself has written the last fence that was seen to be passed: what is behind
   * it, it has come to.
   */
  isWritten(slot: CompletionSlot): boolean {
    return ((peek(this.shared.slots, slot.index * SLOT_WORDS + SLOT_FENCE) - slot.seen) | 0) >= 0;
  }

  /** The last fence that may be taken for passed. */
  private fenceOf(slot: CompletionSlot): number {
    const value = Atomics.load(this.shared.slots, slot.index * SLOT_WORDS + SLOT_FENCE);
    const { earlyWords } = slot;
    if (earlyWords === undefined || ((value - slot.earlySeq) | 0) >= 0) return value;
    return ((Atomics.load(earlyWords, slot.earlyAt) - slot.earlyValue) | 0) >= 0
      ? slot.earlySeq
      : value;
  }

  /**
   * Takes note of how far the device has come. What it was seen to have passed it has passed,
   * whatever it has written since.
   */
  private see(slot: CompletionSlot): number {
    const value = this.fenceOf(slot);
    if (((value - slot.seen) | 0) > 0) slot.seen = value;
    return slot.seen;
  }

  /**
   * Looks at a slot for a few microseconds, where that has been worth it lately. Returns whether
   * the fence has passed.
   */
  spin(slot: CompletionSlot, seq: number): boolean {
    if (this.passed(slot, seq)) return true;
    return slot.waiters.length === 0 && this.lookAt(slot, seq);
  }

  /**
   * As {@link spin}, for the only wait of its slot, which is awaited now: ends it where it ends
   * soon.
   */
  spinFor(slot: CompletionSlot, seq: number): void {
    const { waiters } = slot;
    if (this.turnOver || waiters.length !== 1 || waiters[0]!.seq !== seq || !this.lookAt(slot, seq))
      return;
    // Sees to everybody who waits, as to this one.
    this.mayEndNow();
  }

  private lookAt(slot: CompletionSlot, seq: number): boolean {
    if (this.owner !== undefined && this.owner !== slot) return false;
    if (this.othersGoOn) {
      this.othersGoOn = false;
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
    // What else ends at once says nothing of what is waited for longer.
    if (long) slot.took = now - start;
    this.owner = slot;
    this.ownerSeen = true;
    return true;
  }

  /**
   * Whether this turn of the event loop has time for a wait of `took` milliseconds, and nobody else
   * has wanted the loop lately.
   */
  private hasTimeFor(took: number): boolean {
    if (!this.loopIsFree || this.active.length !== 0 || this.conditions.length !== 0) return false;
    if (!this.turnMarked) {
      this.markTurn();
      // The await that is looked for is the turn's first: how soon it ends says nothing of what the
      // program does between two.
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

  /** Whether some await has ended within this turn of the event loop. */
  get hot(): boolean {
    return this.turnMarked;
  }

  /**
   * Whether one await ends after the other while this thread looks for it, and nothing else is
   * waited for.
   */
  get isOnlyOneHot(): boolean {
    return (
      (this.turnMarked || this.endedNear) &&
      this.active.length === 0 &&
      this.conditions.length === 0
    );
  }

  /** Whether some await has ended within this turn of the event loop, and nothing is waited for. */
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
      // Whoever is told now goes first: his next launch is not behind what they queue. Two
      // microtasks, as for him.
      queueMicrotask(() => queueMicrotask(this.settleOthers));
    }
    if (!this.turnMarked) {
      this.markTurn();
      return true;
    }
    if (!this.turnOver && ++this.turnWaits === this.turnLook) this.lookAtClock();
    return !this.turnOver;
  }

  /** A program may work for long between its awaits: the first one in a turn tells the pace. */
  private lookAtClock(): void {
    const { turnWaits } = this;
    const spent = performance.now() - this.turnStart;
    this.turnOver = spent >= TURN_MS;
    this.turnLook = turnWaits + (spent * TURN_LOOKS < TURN_MS * turnWaits ? TURN_LOOKS : 1);
  }

  /**
   * Resolved where the await may end within this turn, else with the next. What was posted before
   * it has been read.
   */
  end(): Promise<void> {
    this.readMessages();
    if (this.mayEndNow()) return Promise.resolve();
    return new Promise((resolve) => {
      this.deferred.push(resolve);
    });
  }

  /** Takes in failures that were posted before the fence that has just been seen. */
  catchUp(): void {
    this.readMessages();
  }

  /**
   * Resolves when the device has passed fence `seq`, which `stream` writes; looks for it at once,
   * or not (`spin`).
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
    this.tellAwaited(slot, seq, stream);
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
   * As {@link wait}, but the thread stands still until then: nothing else happens in this program
   * meanwhile, not even a transfer that is under way.
   */
  block(slot: CompletionSlot, seq: number, stream: number): void {
    this.tellAwaited(slot, seq, stream);
    this.blockUntil(() => this.passed(slot, seq));
    this.readMessages();
  }

  /**
   * The thread stands still until `test` holds. @throws what everything in flight rejects with,
   * where the device is lost meanwhile
   */
  blockUntil(test: () => boolean): void {
    const start = performance.now();
    const lookMs = this.host.crowded ? HOT_MS : BLOCKED_LOOK_MS;
    for (let turns = 0; !test(); turns++) {
      if (this.host.turn !== undefined) {
        this.host.turn();
        continue;
      }
      const flushed = this.host.flush();
      if (turns === 0 || !flushed) this.host.wake();
      if (turns % LOOKS_PER_MESSAGE === 0) this.readMessages();
      const lost = this.host.lost();
      if (lost !== undefined) throw lost;
      // The end of something short is looked for; past that the processor is better left to others.
      if (flushed && performance.now() - start > lookMs) sleepFor(BLOCKED_PAUSE_MS);
    }
  }

  /** Tells the runtime thread which fence is waited for: it looks after those that are overdue. */
  private tellAwaited(slot: CompletionSlot, seq: number, stream: number): void {
    const { slots } = this.shared;
    const base = slot.index * SLOT_WORDS;
    slots[base + SLOT_STREAM] = stream;
    if (((seq - peek(slots, base + SLOT_AWAITED)) | 0) > 0)
      Atomics.store(slots, base + SLOT_AWAITED, seq);
  }

  /** Resolves when `test` holds; for what the decoder writes into the tables. */
  until(test: () => boolean): Promise<void> {
    if (test()) return Promise.resolve();
    const lost = this.host.lost();
    if (lost !== undefined) return Promise.reject(lost);
    return new Promise((resolve, reject) => {
      this.conditions.push({ test, resolve, reject });
      this.start();
    });
  }

  /** Looks now. */
  kick(): void {
    this.start();
  }

  /** Inline mode: works now, so that what takes no time is complete before the caller looks. */
  pump(): void {
    if (this.host.turn === undefined || this.pumping) return;
    this.pumping = true;
    try {
      this.host.turn();
    } finally {
      this.pumping = false;
    }
  }

  /** Rejects whatever is in flight and not yet passed. */
  rejectAll(error: Error): void {
    for (const slot of this.active) {
      this.settle(slot);
      for (const waiter of slot.waiters) {
        // One unhandled rejection says it all.
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
    this.watchNoMore();
  }

  /**
   * As `work` of the host ends, which the device waits for; or as {@link rejectAll} has it, where
   * that comes first.
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
    this.watchNoMore();
    this.schedule();
  }

  /** While the runtime thread watches it keeps a core busy, and wakes this one for every fence. */
  private watchNoMore(): void {
    if (this.backstop !== undefined) clearTimeout(this.backstop);
    this.backstop = undefined;
    if (peek(this.shared.control, WORD.watch) === 1)
      Atomics.store(this.shared.control, WORD.watch, 0);
  }

  private schedule(): void {
    if (this.scheduled) return;
    this.scheduled = true;
    this.scheduledAt = performance.now();
    setImmediate(this.tickBound);
  }

  /** Nobody owns the looking for longer than a turn in which he did not need it. */
  private renewOwner(): void {
    if (!this.ownerSeen) this.owner = undefined;
    this.ownerSeen = false;
  }

  /**
   * Whether somebody who waits for a turn of the event loop need wait no more: he is not left
   * behind by those who end within this one.
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

  /** Whether the only wait there is is expected to end within some microseconds. */
  private isNear(): boolean {
    if (this.active.length !== 1 || this.host.turn !== undefined) return false;
    const slot = this.active[0]!;
    const first = slot.waiters[0];
    if (first === undefined || slot.took > (this.host.crowded ? HOT_MS : NEAR_LIMIT_MS))
      return false;
    const late = performance.now() - first.start - slot.took;
    return late >= -nearBefore(slot.took) && late < nearAfter(slot.took);
  }

  /**
   * Waits those microseconds, and sees to what has ended. A microtask behind the tick: whoever
   * waited goes on from there, with nothing of the event loop between.
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
    // What was posted before the fence was written: failures, and what kernels have printed.
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
      this.watchNoMore();
      return;
    }
    const now = performance.now();
    if (moved) this.lastMove = now;
    if (this.host.turn !== undefined) {
      if (busy || now - this.lastMove < this.hotMs) this.schedule();
      else this.sleep(1);
    } else if (flushed && this.napsNow(now)) {
      this.nap();
      if (this.anyPassed()) this.look();
      else this.schedule();
    } else if (!flushed || this.isHot(now) || this.untilExpected(now) === 0) {
      this.pause(now);
      this.schedule();
    } else this.watch(now);
  }

  /**
   * About a microsecond between two turns of the event loop, less where the wait ends: turns
   * without a pause keep busy a core whose other thread may be the runtime thread's, or the one
   * that the wait is for. Ten where the end is further off, and nobody else has wanted the event
   * loop since the wait began.
   */
  private pause(now: number): void {
    const slot = this.active.length === 1 ? this.active[0] : undefined;
    const first = slot?.waiters[0];
    const isFar =
      first !== undefined && !this.turnWasLong && first.start + slot!.took - now > FAR_MS;
    const pauses = isFar ? FAR_PAUSES : PAUSES;
    for (let i = 0; i < pauses; i++) {
      pauseProcessor();
      if (first !== undefined && ((this.fenceOf(slot!) - first.seq) | 0) >= 0) return;
    }
  }

  /** Whether something has ended, or a wait has begun, so lately that the next end may be near. */
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
   * Whether the only wait there is wants the device's threads to have this one's processor, and is
   * expected to end soon.
   */
  private napsNow(now: number): boolean {
    if (
      !this.host.crowded ||
      this.active.length !== 1 ||
      this.conditions.length !== 0 ||
      this.turnWasLong
    )
      return false;
    const { took, waiters } = this.active[0]!;
    return (
      took > NAP_FROM_MS &&
      took < NAP_UNTIL_MS &&
      waiters.length !== 0 &&
      now - waiters[0]!.start < 2 * took
    );
  }

  /** Sleeps until the runtime thread sees a fence, or for a moment. */
  private nap(): void {
    const { control } = this.shared;
    const slot = this.active[0]!;
    Atomics.store(control, WORD.nap, 1);
    Atomics.store(control, WORD.watch, 1);
    if (Atomics.load(control, WORD.state) === STATE.sleeping) this.host.wake();
    // Looked at after the flags are set: the runtime thread looks at them after each fence.
    if (((this.fenceOf(slot) - slot.waiters[0]!.seq) | 0) < 0)
      Atomics.wait(control, WORD.nap, 1, NAP_MS);
    Atomics.store(control, WORD.nap, 0);
    this.scheduledAt = performance.now();
    this.wakeSeen = Atomics.load(control, WORD.wake);
  }

  /**
   * How long it takes, in milliseconds, until the end of some wait is near, as long as the wait
   * before took; 0 where one is.
   */
  private untilExpected(now: number): number {
    let least = Infinity;
    if (this.host.crowded) return least;
    const { active } = this;
    for (let i = 0; i < active.length; i++) {
      const { took, waiters } = active[i]!;
      // What takes half of that may take all of it the next time.
      if (took < HOT_MS / 2 || waiters.length === 0) continue;
      const left = waiters[0]!.start + took - now;
      if (left > EXPECTED_MS) least = Math.min(least, left - EXPECTED_MS);
      else if (left > -EXPECTED_MS) return 0;
    }
    return least;
  }

  /** Leaves it to the runtime thread to look. */
  private watch(now: number): void {
    const { control } = this.shared;
    Atomics.store(control, WORD.watch, 1);
    if (Atomics.load(control, WORD.state) === STATE.sleeping) this.host.wake();
    // What the thread did before it saw the flag, it did not tell.
    if (Atomics.load(control, WORD.wake) !== this.wakeSeen) {
      this.wakeSeen = Atomics.load(control, WORD.wake);
      this.schedule();
      return;
    }
    this.sleep(this.conditions.length > 0 ? 1 : Math.min(BACKSTOP_MS, this.untilExpected(now)));
  }

  private sleep(ms: number): void {
    if (this.backstop !== undefined) clearTimeout(this.backstop);
    this.backstop = setTimeout(() => {
      this.backstop = undefined;
      this.schedule();
    }, ms);
  }

  /**
   * Always armed: failures that nobody awaits arrive this way too. It keeps no process alive; the
   * backstop does.
   */
  private armWake(): void {
    const { control } = this.shared;
    const value = Atomics.load(control, WORD.wake);
    const result = Atomics.waitAsync(control, WORD.wake, value);
    const again = (): void => {
      this.wakeSeen = Atomics.load(control, WORD.wake);
      if (this.host.lost() === undefined) this.armWake();
      if (this.active.length !== 0 || this.conditions.length !== 0) this.start();
      else this.readMessages();
    };
    if (result.async) void result.value.then(again);
    else again();
  }
}

function ignore(): void {
  // Its twin was rejected with the same error.
}
