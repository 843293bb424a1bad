/**
 * The runtime thread's loop: decode, let a polled device work, watch slots for the JS thread,
 * sleep.
 *
 * It spins for a short time after the last command, dozes where commands come often, and then
 * sleeps on the doorbell. While the JS thread has asked it to watch, it looks at the awaited slots
 * at growing intervals, and asks the driver about streams whose fences are overdue: a stream that
 * met a fault never writes its slot.
 */
import { isPolled } from '../../driver/driver.js';
import type { Driver, PolledDriver } from '../../driver/driver.js';
import { CUresult } from '../../ground/result.js';
import type { Decoder } from '../decoder.js';
import { describeFailure } from '../failure.js';
import {
  ISSUED_CAPTURING,
  ISSUED_STRIDE,
  SLOT_AWAITED,
  SLOT_FENCE,
  SLOT_STREAM,
  SLOT_WORDS,
  STATE,
  WORD,
  isFault,
  wakeJs,
} from '../layout.js';
import type { SharedState } from '../layout.js';
import { pauseProcessor, sleepFor } from '../pause.js';
import { peek } from '../shared-words.js';
import type { MendedDriver } from './fallbacks.js';

/**
 * How long the thread looks for more commands before it sleeps. Waking it costs 30 to 40 µs
 * (measured).
 */
const SPIN_MS = 0.1;
/**
 * The same for a CPU device: at the end of a grid the JS thread sleeps, takes 60 µs to wake and 40
 * to launch the next one.
 */
const POLLED_SPIN_MS = 0.25;
/**
 * Where commands come again within this time of its falling asleep it looks longer, up to as long
 * as that. After a pause of a millisecond a processor's caches are cold: the JS thread takes 7 to
 * 30 µs for a driver call that takes 3 on a thread which has not slept (measured).
 */
const MAX_SPIN_MS = 2;
/**
 * While one launch is awaited after the other the JS thread makes them itself, a microsecond
 * sooner. The thread dozes meanwhile, and for so long after the last: it leaves the ring alone and
 * looks at the doorbell, so that waking it takes no time.
 */
const DOZE_MS = 0.1;
/**
 * Where that goes on for longer than this it sleeps: where processors are halves of cores, a thread
 * that looks for something takes from the one that launches (a tenth of its speed, measured). A
 * burst then has to wake it, once in so long.
 */
const DOZE_LIMIT_MS = 2;
/** How long it sleeps between two looks at whether that still goes on. */
const BESIDE_MS = 5;
/**
 * How long the thread watches without sleeping: a copy of 256 MiB takes 5 ms, and a sleep of 50 µs,
 * which wakes after 100, would be two percent of that.
 */
const BUSY_WATCH_MS = 6;
/**
 * A polled device all of whose streams wait for the host waits for other threads of this process,
 * which ring the bell, and need the processors: a model's run of 5.5 ms took 12 ms on two cores
 * while this thread looked on.
 */
const WAITING_SPIN_MS = 0.05;
/**
 * After work of other threads that took longer than this the JS thread has slept, and its processor
 * is theirs: woken, it waits for one, which may be that from which this thread looks for what it
 * queues next. Linux lets a thread go on until its time is up, which is milliseconds (a model's run
 * of 6.4 ms took 9 in one of ten cases). So past some time this thread looks with pauses of so long
 * then, 60 µs in truth.
 */
const LONG_HOLD_MS = 1;
const BREATHLESS_MS = 0.05;
const BREATH_MS = 0.01;
/** A sleep while all streams that wait here are held, should the bell ever be missed. */
const HELD_MS = 5;
/**
 * Looks at the ring before the thread sleeps, some microseconds, and the length of its first sleep.
 */
const LAST_LOOKS = 200;
const GLANCE_MS = MAX_SPIN_MS;
/** Looks at the doorbell between two looks at the clock. */
const DOZE_LOOKS = 25;
/** Looks at the ring between two looks at everything else; a few microseconds. */
const SPIN_LOOKS = 40;
/** Each takes some 30 ns. */
const PAUSES = 2;
/** Length of one turn of a polled device: short, so that the ring is looked at again soon. */
const POLL_BUDGET_US = 200;
/** A device that was idle for so long releases the memory that its pool keeps. */
const IDLE_MS = 2000;
/** A fence is overdue when nothing moved for this long; then the driver is asked. */
const OVERDUE_MS = 1;

export class ThreadLoop {
  private readonly decoder: Decoder;
  private readonly shared: SharedState;
  private readonly driver: Driver;
  private readonly polled: PolledDriver | undefined;
  private readonly seen: Int32Array;
  private lastWork = 0;
  private lastMove = 0;
  /**
   * Since when all streams have been held, 0 where they are not; and how long they were when they
   * were last.
   */
  private heldSince = 0;
  private heldMs = 0;
  private lastProbe = 0;
  private watching = false;
  private readonly leastSpinMs: number;
  private spinMs: number;
  /** Whether it dozes before it sleeps. */
  private yields = false;

  constructor(decoder: Decoder) {
    this.decoder = decoder;
    this.shared = decoder.shared;
    this.driver = decoder.driver;
    this.polled = isPolled(decoder.driver) ? decoder.driver : undefined;
    this.spinMs = this.leastSpinMs = this.polled === undefined ? SPIN_MS : POLLED_SPIN_MS;
    this.seen = new Int32Array(this.shared.slots.length / SLOT_WORDS);
  }

  /** Decodes and lets the device work once. Returns whether there may be more to do at once. */
  turn(): boolean {
    let busy = this.decoder.drain();
    if (this.decoder.parking.count !== 0 && this.decoder.resumeParked()) busy = true;
    if (this.decoder.announcements.waiting) this.decoder.announcements.poll();
    if (this.polled !== undefined && peek(this.shared.control, WORD.lost) === 0) {
      try {
        if (this.polled.poll(POLL_BUDGET_US)) busy = true;
      } catch (error) {
        this.decoder.failures.lose({
          id: this.decoder.failures.next(),
          root: 0,
          stream: -1,
          ...describeFailure(error, 'poll'),
        });
      }
    }
    return busy;
  }

  /** Runs until the JS thread asks it to stop; `last` is done before that thread is told. */
  run(last: () => void): void {
    const { control } = this.shared;
    while (Atomics.load(control, WORD.stop) === 0) {
      const busy = this.turn();
      const now = performance.now();
      if (busy) this.lastWork = now;
      const watch = peek(control, WORD.watch) === 1;
      if (watch) this.look(now);
      else this.watching = false;
      // When launches are awaited one at a time, the JS thread issues them itself: that is faster.
      this.yields = this.decoder.fences.hot && this.mayYield(watch);
      this.decoder.fences.hot = false;
      if (busy && !this.yields) continue;
      const held = this.decoder.parking.onlyHeld;
      const waits =
        this.polled?.waits !== undefined && (held || (!this.isOwing && this.polled.waits()));
      if (!waits || !held) this.heldSince = 0;
      else if (this.heldSince === 0) this.heldSince = now;
      else this.heldMs = now - this.heldSince;
      if (
        (now - this.lastWork < (waits ? Math.min(this.spinMs, WAITING_SPIN_MS) : this.spinMs) &&
          !this.yields) ||
        (watch && !waits && now - this.lastMove < BUSY_WATCH_MS && this.awaited())
      ) {
        if (watch && this.heldMs > LONG_HOLD_MS && now - this.lastWork > BREATHLESS_MS)
          sleepFor(BREATH_MS);
        // Only the ring is looked at most of the time: it is what the next command waits for.
        else for (let i = 0; i < SPIN_LOOKS && !this.decoder.hasWork; i++) this.pause();
        continue;
      }
      const owes = (this.polled as Partial<MendedDriver> | undefined)?.owes === true;
      if (watch) this.sleep(waits && held ? HELD_MS : this.watchInterval(now));
      else if (this.isOwing || owes)
        this.sleep(held && !owes && !this.decoder.announcements.waiting ? HELD_MS : 0.2);
      else this.rest();
    }
    if (!isFault(Atomics.load(control, WORD.lost))) this.decoder.text?.end();
    last();
    Atomics.store(control, WORD.stop, 2);
    Atomics.notify(control, WORD.stop);
  }

  /**
   * Some 50 ns: a ring that is looked at without a pause keeps its cache line from the JS thread,
   * which is writing into it (a launch took that thread 0.4 instead of 0.1 µs, measured).
   */
  private pause(): void {
    for (let i = 0; i < PAUSES; i++) pauseProcessor();
  }

  /** Whether there is something that this thread has to look at from time to time. */
  private get isOwing(): boolean {
    return this.decoder.parking.count !== 0 || this.decoder.announcements.waiting;
  }

  private mayYield(watch: boolean): boolean {
    return this.polled === undefined && !watch && !this.isOwing && !this.decoder.hasWork;
  }

  /**
   * Whether any awaited slot moved since it was last looked at; wakes the JS thread if so, probes
   * if not.
   */
  look(now: number): void {
    const { control, slots } = this.shared;
    if (!this.watching) {
      this.watching = true;
      this.lastMove = now;
      this.lastProbe = 0;
    }
    const used = Atomics.load(control, WORD.slotsUsed);
    let moved = false;
    for (let slot = 0; slot < used; slot++) {
      const value = Atomics.load(slots, slot * SLOT_WORDS + SLOT_FENCE);
      if (value === this.seen[slot]) continue;
      this.seen[slot] = value;
      moved = true;
    }
    if (moved) {
      this.lastMove = now;
      wakeJs(control);
    } else if (now - this.lastProbe >= Math.max(OVERDUE_MS, this.watchInterval(now))) {
      this.lastProbe = now;
      this.probe(used);
    }
  }

  /** Whether a fence is owed, by a stream that is not held. */
  private awaited(): boolean {
    const { control, slots } = this.shared;
    const used = Atomics.load(control, WORD.slotsUsed);
    for (let base = 0; base < used * SLOT_WORDS; base += SLOT_WORDS) {
      if (
        ((Atomics.load(slots, base + SLOT_AWAITED) - Atomics.load(slots, base + SLOT_FENCE)) | 0) >
          0 &&
        !this.decoder.parking.isHeld(slots[base + SLOT_STREAM]!)
      )
        return true;
    }
    return false;
  }

  /** Asks the driver about every stream that owes a fence. */
  probe(used: number): void {
    const { control, slots, streams, issued } = this.shared;
    if (Atomics.load(control, WORD.lost) !== 0) return;
    for (let slot = 0; slot < used; slot++) {
      const base = slot * SLOT_WORDS;
      if (
        ((Atomics.load(slots, base + SLOT_AWAITED) - Atomics.load(slots, base + SLOT_FENCE)) | 0) <=
        0
      )
        continue;
      const stream = slots[base + SLOT_STREAM]!;
      if (issued[stream * ISSUED_STRIDE + ISSUED_CAPTURING] === 1) continue;
      const handle = streams[stream]!;
      // The slot's next stream is awaited already, and its making is still in the ring.
      if (handle === 0) continue;
      const result = this.driver.cuStreamQuery(handle);
      if (result === CUresult.CUDA_SUCCESS || result === CUresult.CUDA_ERROR_NOT_READY) continue;
      this.decoder.failures.lose({
        id: this.decoder.failures.next(),
        root: 0,
        stream,
        ...this.describeFault(handle, result),
      });
      return;
    }
    if (!this.decoder.peers.stuck(performance.now())) return;
    this.decoder.failures.lose({
      id: this.decoder.failures.next(),
      root: 0,
      stream: -1,
      result: CUresult.CUDA_ERROR_DEVICE_UNAVAILABLE,
      resultName: 'CUDA_ERROR_DEVICE_UNAVAILABLE',
      call: 'cuStreamWaitEvent',
      message: 'a stream waits for work of another device that was lost, and so for ever.',
    });
  }

  private describeFault(stream: number, result: CUresult): ReturnType<typeof describeFailure> {
    try {
      // On a stream that met a fault this returns at once, with whatever the provider can say about
      // it.
      this.driver.cuStreamSynchronize(stream);
    } catch (error) {
      return describeFailure(error, 'cuStreamSynchronize');
    }
    return {
      result,
      resultName: '',
      call: 'cuStreamQuery',
      message: `cuStreamQuery returned ${result}`,
    };
  }

  /**
   * Longer waits are looked at less often, 0.2 percent late at most: a long kernel must cost no
   * core.
   */
  private watchInterval(now: number): number {
    const waited = now - this.lastMove;
    return Math.min(5, Math.max(0.05, waited * 0.002));
  }

  /**
   * Whether a record waits that the JS thread does not carry out. A record that has just been written
   * is the JS thread's, which wakes this thread where that is better: taking the record would make
   * that thread wait until this one is awake (30 instead of 12 µs).
   */
  private overlooked(): boolean {
    const { control } = this.shared;
    for (let looks = 0; looks < LAST_LOOKS; looks++) {
      if (!this.decoder.hasWork || Atomics.load(control, WORD.state) !== STATE.sleeping)
        return false;
    }
    return true;
  }

  /** Sleeps until there is something to do. */
  private rest(): void {
    const { control } = this.shared;
    if (!this.decoder.shortages.keepsFreed) {
      this.sleep(Infinity);
      return;
    }
    const tail = Atomics.load(control, WORD.tail);
    // The JS thread may have worked the ring meanwhile.
    if (this.sleep(IDLE_MS) && Atomics.load(control, WORD.tail) === tail && !this.decoder.hasWork)
      this.decoder.shortages.rest();
  }

  /** Returns whether it slept for all of `timeout` milliseconds. */
  private sleep(timeout: number): boolean {
    const { control } = this.shared;
    const resting = timeout >= IDLE_MS;
    const bell = Atomics.load(control, WORD.doorbell);
    Atomics.store(control, WORD.state, STATE.sleeping);
    // Looked at after the state is set: a thread that writes these looks at the state afterwards. A
    // record may show a little later than that, since its header is a plain store on x86; store
    // buffers empty within a microsecond.
    let work =
      Atomics.load(control, WORD.stop) !== 0 ||
      (resting && Atomics.load(control, WORD.watch) === 1);
    if (!work && timeout === HELD_MS) work = this.decoder.parking.mayAnyGoOn;
    for (let looks = 0; looks < LAST_LOOKS && !work; looks++) work = this.decoder.hasWork;
    if (!work && resting) {
      if (this.yields) this.doze(bell);
      // And if a record ever took longer to show, then this is how long.
      work = this.glance(bell) || this.overlooked();
    }
    const expired = !work && Atomics.wait(control, WORD.doorbell, bell, timeout) === 'timed-out';
    if (
      Atomics.compareExchange(control, WORD.state, STATE.sleeping, STATE.running) === STATE.inline
    ) {
      Atomics.store(control, WORD.shutOut, 1);
      while (
        Atomics.compareExchange(control, WORD.state, STATE.sleeping, STATE.running) === STATE.inline
      ) {
        Atomics.wait(control, WORD.state, STATE.inline, 1);
      }
      Atomics.store(control, WORD.shutOut, 0);
    }
    if (resting && !expired) this.lastWork = performance.now();
    return expired;
  }

  /**
   * Looks at the doorbell until the JS thread has done nothing itself for some time, or sleeps
   * until then.
   */
  private doze(bell: number): void {
    const { control } = this.shared;
    let tail = Atomics.load(control, WORD.tail);
    const begun = performance.now();
    let last = begun;
    Atomics.store(control, WORD.dozing, 1);
    for (;;) {
      for (let looks = 0; looks < DOZE_LOOKS; looks++) {
        if (Atomics.load(control, WORD.doorbell) === bell) {
          this.pause();
          continue;
        }
        Atomics.store(control, WORD.dozing, 0);
        return;
      }
      const now = performance.now();
      if (now - last < DOZE_MS) continue;
      // Looked at no more often than that: the JS thread writes it.
      const position = Atomics.load(control, WORD.tail);
      if (position === tail || now - begun >= DOZE_LIMIT_MS) break;
      tail = position;
      last = now;
    }
    Atomics.store(control, WORD.dozing, 0);
    let position = Atomics.load(control, WORD.tail);
    while (
      position !== tail &&
      Atomics.wait(control, WORD.doorbell, bell, BESIDE_MS) === 'timed-out'
    ) {
      tail = position;
      position = Atomics.load(control, WORD.tail);
    }
  }

  /** Sleeps a little. Returns whether commands come so often that it is better to look for them. */
  private glance(bell: number): boolean {
    const { control } = this.shared;
    if (Atomics.load(control, WORD.doorbell) !== bell) return true;
    const tail = Atomics.load(control, WORD.tail);
    if (Atomics.wait(control, WORD.doorbell, bell, GLANCE_MS) !== 'timed-out') {
      this.spinMs = Math.min(MAX_SPIN_MS, this.spinMs * 4);
      return true;
    }
    if (Atomics.load(control, WORD.tail) !== tail) {
      this.spinMs = MAX_SPIN_MS;
      return true;
    }
    this.spinMs = Math.max(this.leastSpinMs, this.spinMs / 4);
    return false;
  }
}
