/**
 * The runtime thread's loop: it decodes, lets a polled device work, watches slots for the
 * JavaScript thread, and sleeps.
 *
 * It spins for a short time after the last command, dozes where commands come often, and then
 * sleeps on the doorbell. While the JavaScript thread has requested a watch, it reads the awaited
 * slots at growing intervals, and queries the driver about streams whose fences are overdue: a
 * stream that met a fault never writes its slot.
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
import type { PatchedDriver } from './fallbacks.js';

/**
 * How long the thread spins for more commands before it sleeps. Waking it costs 30 to 40 µs
 * (measured).
 */
const SPIN_MS = 0.1;
/**
 * The same for a CPU device: at the end of a grid the JavaScript thread sleeps, takes 60 µs to wake
 * and 40 to launch the next one.
 */
const POLLED_SPIN_MS = 0.25;
/**
 * Where commands come again within this time of its falling asleep it spins longer, up to this
 * time. After a pause of a millisecond a processor's caches are cold: the JavaScript thread takes 7
 * to 30 µs for a driver call that takes 3 on a thread which has not slept (measured).
 */
const MAX_SPIN_MS = 2;
/**
 * While launches are awaited one after the other the JavaScript thread makes them itself, a
 * microsecond sooner. The runtime thread dozes meanwhile, and for this long after the last: it
 * leaves the ring alone and polls the doorbell, so that waking it takes no time.
 */
const DOZE_MS = 0.1;
/**
 * If that lasts longer than this, the thread sleeps: where processors are hyperthreads, a spinning
 * thread slows the one that launches (by a tenth, measured). A burst then has to wake it, once per
 * this time.
 */
const DOZE_LIMIT_MS = 2;
/** How long it sleeps between two checks whether that still lasts. */
const RECHECK_MS = 5;
/**
 * How long the thread watches without sleeping: a copy of 256 MiB takes 5 ms, and a sleep of 50 µs,
 * which wakes after 100, would be two percent of that.
 */
const BUSY_WATCH_MS = 6;
/**
 * Where all streams of a polled device wait for the host, the device waits for other threads of
 * this process, which ring the doorbell, and need the processors: a model's run of 5.5 ms took 12
 * ms on two cores while this thread spun.
 */
const WAITING_SPIN_MS = 0.05;
/**
 * After work of other threads that took longer than {@link LONG_HOLD_MS} the JavaScript thread has
 * slept, and other threads use its processor: once woken, it waits for one, which may be that on
 * which this thread spins for its next commands. Linux lets a thread run until its time slice ends,
 * which is milliseconds (a model's run of 6.4 ms took 9 in one of ten cases). So after
 * {@link UNPAUSED_SPIN_MS} of spinning this thread pauses for {@link SPIN_SLEEP_MS} between reads,
 * 60 µs in practice.
 */
const LONG_HOLD_MS = 1;
const UNPAUSED_SPIN_MS = 0.05;
const SPIN_SLEEP_MS = 0.01;
/**
 * The length of a sleep while all streams that wait here are held, in case the doorbell is missed.
 */
const HELD_MS = 5;
/**
 * Number of reads of the ring before the thread sleeps, some microseconds, and the length of its
 * first sleep.
 */
const LAST_LOOKS = 200;
const GLANCE_MS = MAX_SPIN_MS;
/** Reads of the doorbell between two readings of the clock. */
const DOZE_LOOKS = 25;
/** Reads of the ring between two checks of everything else; a few microseconds. */
const SPIN_LOOKS = 40;
/** Each pause takes some 30 ns. */
const PAUSES = 2;
/** The length of one turn of a polled device: short, so that the ring is read again soon. */
const POLL_BUDGET_US = 200;
/** A device that was idle for this long releases the unused memory of its pool. */
const IDLE_MS = 2000;
/** A fence is overdue when nothing moved for this long; then the driver is queried. */
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
   * Since when all streams have been held, 0 where they are not; and how long they were held the
   * last time.
   */
  private heldSince = 0;
  private heldMs = 0;
  private lastProbe = 0;
  private watching = false;
  private readonly leastSpinMs: number;
  private spinMs: number;
  /** Whether the thread dozes before it sleeps. */
  private yields = false;

  constructor(decoder: Decoder) {
    this.decoder = decoder;
    this.shared = decoder.shared;
    this.driver = decoder.driver;
    this.polled = isPolled(decoder.driver) ? decoder.driver : undefined;
    this.spinMs = this.leastSpinMs = this.polled === undefined ? SPIN_MS : POLLED_SPIN_MS;
    this.seen = new Int32Array(this.shared.slots.length / SLOT_WORDS);
  }

  /** Decodes, and lets the device work, once. Returns whether there may be more to do at once. */
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

  /**
   * Runs until the JavaScript thread requests a stop; `last` runs before that thread is notified.
   */
  run(last: () => void): void {
    const { control } = this.shared;
    while (Atomics.load(control, WORD.stop) === 0) {
      const busy = this.turn();
      const now = performance.now();
      if (busy) this.lastWork = now;
      const watch = peek(control, WORD.watch) === 1;
      if (watch) this.look(now);
      else this.watching = false;
      // While launches are awaited one at a time the JavaScript thread issues them itself, which is
      // faster.
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
        if (watch && this.heldMs > LONG_HOLD_MS && now - this.lastWork > UNPAUSED_SPIN_MS)
          sleepFor(SPIN_SLEEP_MS);
        // Most of the time only the ring is read, because the next command is waited for there.
        else for (let i = 0; i < SPIN_LOOKS && !this.decoder.hasWork; i++) this.pause();
        continue;
      }
      const owes = (this.polled as Partial<PatchedDriver> | undefined)?.owes === true;
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
   * Pauses for some 50 ns: reading the ring without a pause takes its cache line from the
   * JavaScript thread, which writes to it (a launch took that thread 0.4 instead of 0.1 µs,
   * measured).
   */
  private pause(): void {
    for (let i = 0; i < PAUSES; i++) pauseProcessor();
  }

  /** Whether there is state that this thread has to poll. */
  private get isOwing(): boolean {
    return this.decoder.parking.count !== 0 || this.decoder.announcements.waiting;
  }

  private mayYield(watch: boolean): boolean {
    return this.polled === undefined && !watch && !this.isOwing && !this.decoder.hasWork;
  }

  /**
   * Checks whether an awaited slot moved since it was last read; wakes the JavaScript thread if so,
   * probes if not.
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

  /** Whether a fence is outstanding, on a stream that is not held. */
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

  /** Queries the driver about every stream with an outstanding fence. */
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
      // The slot's next stream is awaited already, and the command that creates it is still in the
      // ring.
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
      // On a stream that met a fault this returns at once, with what the provider reports about it.
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
   * Longer waits are polled less often, and seen 0.2 percent late at most: a long kernel must not
   * cost a core.
   */
  private watchInterval(now: number): number {
    const waited = now - this.lastMove;
    return Math.min(5, Math.max(0.05, waited * 0.002));
  }

  /**
   * Whether a record waits that the JavaScript thread does not execute. A record that has just been
   * written belongs to that thread, which wakes this one where that is better: taking the record
   * would make that thread wait until this one is awake (30 instead of 12 µs).
   */
  private overlooked(): boolean {
    const { control } = this.shared;
    for (let looks = 0; looks < LAST_LOOKS; looks++) {
      if (!this.decoder.hasWork || Atomics.load(control, WORD.state) !== STATE.sleeping)
        return false;
    }
    return true;
  }

  /** Sleeps until there is work. */
  private rest(): void {
    const { control } = this.shared;
    if (!this.decoder.shortages.keepsFreed) {
      this.sleep(Infinity);
      return;
    }
    const tail = Atomics.load(control, WORD.tail);
    // The JavaScript thread may have decoded commands meanwhile.
    if (this.sleep(IDLE_MS) && Atomics.load(control, WORD.tail) === tail && !this.decoder.hasWork)
      this.decoder.shortages.rest();
  }

  /** Returns whether it slept for all of `timeout` milliseconds. */
  private sleep(timeout: number): boolean {
    const { control } = this.shared;
    const resting = timeout >= IDLE_MS;
    const bell = Atomics.load(control, WORD.doorbell);
    Atomics.store(control, WORD.state, STATE.sleeping);
    // The words are read after the state is set: a thread that writes them reads the state
    // afterwards. A record may become visible a little later than that, since its header is a plain
    // store on x86; store buffers empty within a microsecond.
    let work =
      Atomics.load(control, WORD.stop) !== 0 ||
      (resting && Atomics.load(control, WORD.watch) === 1);
    if (!work && timeout === HELD_MS) work = this.decoder.parking.mayAnyContinue;
    for (let looks = 0; looks < LAST_LOOKS && !work; looks++) work = this.decoder.hasWork;
    if (!work && resting) {
      if (this.yields) this.doze(bell);
      // A record that takes longer than that to become visible is seen after this sleep.
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
   * Polls the doorbell until the JavaScript thread has executed no commands for some time, or
   * sleeps until then.
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
      // It is read no more often than that, because the JavaScript thread writes it.
      const position = Atomics.load(control, WORD.tail);
      if (position === tail || now - begun >= DOZE_LIMIT_MS) break;
      tail = position;
      last = now;
    }
    Atomics.store(control, WORD.dozing, 0);
    let position = Atomics.load(control, WORD.tail);
    while (
      position !== tail &&
      Atomics.wait(control, WORD.doorbell, bell, RECHECK_MS) === 'timed-out'
    ) {
      tail = position;
      position = Atomics.load(control, WORD.tail);
    }
  }

  /** Sleeps a little. Returns whether commands come so often that spinning for them is better. */
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
