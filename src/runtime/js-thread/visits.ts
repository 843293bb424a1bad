/**
 * How the JavaScript thread gets commands executed: it wakes the runtime thread where that sleeps,
 * or takes the decoder from it and executes the commands itself (it then *visits*). Waking the
 * thread costs 30 to 40 µs, the driver calls themselves a tenth of that.
 */
import type { Driver } from '../../driver/driver.js';
import { FLAG_HOT, FLAG_SHORT, OP } from '../commands.js';
import type { Completion, CompletionSlot } from '../completion.js';
import { Decoder } from '../decoder.js';
import type { DecoderHost } from '../decoder/host.js';
import { STATE, WORD } from '../layout.js';
import type { SharedState } from '../layout.js';
import type { OpenReply, ProviderConfig } from '../messages.js';
import type { RingWriter } from '../ring-writer.js';
import { peek } from '../shared-words.js';
import { makeCurrent } from './current-context.js';
import type { Local } from './local.js';

/**
 * The kind of a graph launch that takes the driver no longer than a kernel's, which its record's
 * flag marks.
 */
const SHORT_GRAPH = OP.graphLaunch | (FLAG_SHORT << 8);
/**
 * A turn of the event loop that queues more than this is a burst: the sleeping thread is woken for
 * it.
 */
const VISIT_WORDS = 64;
/**
 * Number of commands of one turn that this thread executes as they come, while the other sleeps.
 * More are a burst.
 */
const VISITS = 4;
/**
 * After a pause of this length a driver call takes several times as long on this thread as on one
 * that has not slept.
 */
const COLD_MS = 0.6;

/** The interface of the runtime that the visits belong to. */
export interface VisitsHost {
  readonly config: ProviderConfig;
  readonly info: OpenReply;
  readonly shared: SharedState;
  readonly ring: RingWriter;
  readonly completion: Completion;
  readonly local: Local | undefined;
}

export class Visits {
  /** The JavaScript thread's own decoder, for launches after the thread was idle. */
  decoder: Decoder | undefined = undefined;
  private readonly config: ProviderConfig;
  private readonly info: OpenReply;
  private readonly shared: SharedState;
  private readonly control: Int32Array;
  private readonly ring: RingWriter;
  private readonly completion: Completion;
  private readonly local: Local | undefined;
  private settleScheduled = false;
  /** Number of commands of this turn that have been executed on this thread, or were to be. */
  private visits = 0;
  /** The position in the ring after the first of them. */
  private visitedAt = 0;
  /** Whether the last turn of several commands was a burst: the next one may be. */
  private bursts = false;
  private cold = true;
  private lastVisit = 0;

  constructor({ config, info, shared, ring, completion, local }: VisitsHost) {
    this.config = config;
    this.info = info;
    this.shared = shared;
    this.control = shared.control;
    this.ring = ring;
    this.completion = completion;
    this.local = local;
  }

  /** Opens the decoder of this thread, for a GPU. */
  open(driver: Driver, host: DecoderHost): void {
    this.decoder = new Decoder(driver, this.shared, this.info.slotsAddress, true, host, true);
  }

  /**
   * Writes a fence on `stream` and returns its value. A fence that is awaited at once is announced
   * by the wait.
   */
  fence(slot: CompletionSlot, stream: number, flags: number, waitedFor: boolean): number {
    slot.issued = (slot.issued + 1) | 0;
    if (waitedFor && this.fenceHere(slot, stream)) return slot.issued;
    const { ring } = this;
    const body = ring.begin(
      OP.fence,
      waitedFor && this.completion.isOnlyOneHot ? flags | FLAG_HOT : flags,
      6,
      0,
      stream,
      0,
    );
    const { memory } = ring;
    memory[body] = slot.index;
    memory[body + 1] = slot.issued;
    if (waitedFor) ring.show();
    else ring.commit();
    return slot.issued;
  }

  /**
   * Ends the current command, of the slot's stream, and writes a fence after it that is awaited at
   * once. Returns its value.
   */
  commitWithFence(slot: CompletionSlot): number {
    const { ring, decoder } = this;
    const { kind } = ring;
    if (
      decoder === undefined ||
      (kind !== OP.launchLine && kind !== SHORT_GRAPH) ||
      !ring.isAlone ||
      !this.mayTakeOver(0)
    )
      return this.showWithFence(slot);
    const op = kind & 0xff;
    const { launches } = decoder;
    this.cold = this.isCold();
    try {
      this.makeCurrent(decoder.driver);
      if (launches.runAlone(ring.place, op)) {
        ring.skip();
        slot.issued = (slot.issued + 1) | 0;
        decoder.fences.now(slot.index, slot.index, slot.issued, !this.cold);
        launches.recordTrailing(ring.place);
        launches.rehearse(ring.place, op);
        return slot.issued;
      }
    } finally {
      this.giveBack();
    }
    return this.showWithFence(slot);
  }

  /** As {@link commitWithFence}, through the ring. */
  private showWithFence(slot: CompletionSlot): number {
    const { ring, decoder } = this;
    ring.show();
    if (decoder === undefined || !decoder.runsNext || !this.mayTakeOver(VISIT_WORDS)) {
      ring.announce();
      return this.fence(slot, slot.index, 0, true);
    }
    this.cold = this.isCold();
    let fenced = false;
    try {
      this.makeCurrent(decoder.driver);
      decoder.drain();
      fenced = ring.drained;
      if (fenced) {
        slot.issued = (slot.issued + 1) | 0;
        decoder.fences.now(slot.index, slot.index, slot.issued, !this.cold);
      }
    } finally {
      this.giveBack();
    }
    return fenced ? slot.issued : this.fence(slot, slot.index, 0, true);
  }

  /**
   * Is called when a wait begins: executes the commands in the ring on this thread where that is
   * faster.
   */
  beforeWait(): void {
    this.visits = 0;
    this.takeOver();
  }

  /**
   * As {@link beforeWait} and `Completion.wait`, where the end is near. Returns whether the fence
   * has passed already; otherwise the caller waits.
   */
  passesSoon(slot: CompletionSlot, seq: number): boolean {
    this.visits = 0;
    if (!this.ring.drained || this.local !== undefined) this.takeOver();
    const { completion } = this;
    if (!completion.isOnlyOneInTurn) return completion.spin(slot, seq) && completion.mayEndNow();
    // It is called before the spin, since this thread only waits until then.
    const may = completion.mayEndNow();
    return completion.spin(slot, seq) && may;
  }

  /** Wakes the runtime thread if it sleeps. */
  wakeNow(): void {
    if (peek(this.control, WORD.state) === STATE.sleeping) this.wake();
  }

  /** As {@link wakeNow}, also where the thread has just fallen asleep. */
  wake(): void {
    if (
      Atomics.compareExchange(this.control, WORD.state, STATE.sleeping, STATE.running) ===
      STATE.sleeping
    )
      this.ringBell();
  }

  private ringBell(): void {
    const { control } = this;
    Atomics.add(control, WORD.doorbell, 1);
    // A thread that still dozes reads the doorbell before it sleeps.
    if (Atomics.load(control, WORD.dozing) === 0) Atomics.notify(control, WORD.doorbell);
  }

  /**
   * Is called when a command was written while the thread sleeps. The first few of a turn are
   * executed here: an await of them is shorter, and the device has begun while this thread
   * continues to compute. More are a burst, for which the doorbell is rung: they are executed by
   * the thread once it is awake, or by this one when they are awaited, whichever comes first.
   */
  onSleeping(): void {
    const { decoder, ring } = this;
    if (decoder === undefined || ring.waiting !== 0 || ring.pendingWords > VISIT_WORDS) {
      this.wake();
      return;
    }
    const first = this.visits === 0;
    if (first) this.cold = this.isCold();
    // Waking a thread that only dozes takes no time: it executes bursts, and commands that are
    // executed sooner there.
    if (peek(this.control, WORD.dozing) === 1 && (!first || this.cold || !decoder.runsNext)) {
      this.wake();
      return;
    }
    if (first) {
      this.visits = 1;
      this.visitedAt = ring.position;
      this.takeOver();
      if (ring.drained) return;
    } else if (this.visits < VISITS && !this.cold && !this.bursts && decoder.runsNext) {
      this.visits++;
      this.takeOver();
    } else this.ringBell();
    if (this.settleScheduled) return;
    this.settleScheduled = true;
    // The first microtask runs before the one in which `await` requests the fence, the second after
    // it.
    queueMicrotask(() =>
      queueMicrotask(() => {
        this.settleScheduled = false;
        this.bursts = ((ring.position - this.visitedAt) | 0) > VISIT_WORDS;
        this.visits = 0;
        if (!ring.drained) this.wakeNow();
      }),
    );
  }

  /**
   * Executes the queued commands at once, where the thread sleeps: more will follow, and the device
   * can begin.
   */
  hurry(): void {
    if (this.local === undefined) this.takeOver();
  }

  /** Makes the device's context current on this thread. */
  makeCurrent(driver: Driver): void {
    if (this.config.provider === 'libcuda') makeCurrent(driver, this.info.context);
  }

  /**
   * Runs one turn of the loop that a runtime thread would run, in inline mode. Returns whether it
   * did work.
   */
  localTurn(): boolean {
    const { local } = this;
    if (local === undefined) return false;
    this.makeCurrent(local.decoder.driver);
    const busy = local.loop.turn();
    if (!busy) local.loop.look(performance.now());
    return busy;
  }

  /**
   * Whether this thread has not executed commands for so long that its processor's caches have lost
   * the code and data for it.
   */
  private isCold(): boolean {
    if (this.completion.hot) return false;
    const now = performance.now();
    const cold = now - this.lastVisit > COLD_MS;
    this.lastVisit = now;
    return cold;
  }

  /** Takes the decoder from the sleeping thread, and executes the commands in the ring. */
  private takeOver(): void {
    if (this.local !== undefined) {
      this.completion.pump();
      return;
    }
    if (peek(this.control, WORD.state) !== STATE.sleeping) return;
    const { decoder } = this;
    if (decoder === undefined || !this.mayTakeOver(VISIT_WORDS * 2)) {
      this.wake();
      return;
    }
    try {
      this.makeCurrent(decoder.driver);
      decoder.drain();
      decoder.fences.settle(!this.cold);
    } finally {
      this.giveBack();
    }
    if (!this.ring.drained) this.wakeNow();
  }

  /**
   * Takes the decoder, where the thread sleeps, no stream is parked, and no more than `words` words
   * wait.
   */
  private mayTakeOver(words: number): boolean {
    const { control, ring } = this;
    return (
      ring.waiting === 0 &&
      ring.pendingWords <= words &&
      peek(control, WORD.parked) === 0 &&
      Atomics.compareExchange(control, WORD.state, STATE.sleeping, STATE.inline) === STATE.sleeping
    );
  }

  private giveBack(): void {
    const { control } = this;
    Atomics.store(control, WORD.state, STATE.sleeping);
    if (peek(control, WORD.shutOut) === 1) Atomics.notify(control, WORD.state);
  }

  /**
   * Writes a fence through the driver itself, where the thread sleeps and no command is queued
   * before it.
   */
  private fenceHere(slot: CompletionSlot, stream: number): boolean {
    const { decoder } = this;
    if (decoder === undefined || !this.mayTakeOver(0)) return false;
    try {
      this.makeCurrent(decoder.driver);
      decoder.fences.now(slot.index, stream, slot.issued, this.completion.hot || !this.cold);
    } finally {
      this.giveBack();
    }
    return true;
  }
}
