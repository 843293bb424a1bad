/**
 * The handover of the watch: while the JavaScript thread sleeps, the runtime thread reads the slots
 * and wakes it, through `Atomics.waitAsync` in the event loop or through `Atomics.notify` in a nap.
 * A slow timer is the backstop, and keeps the process alive. The timer functions are imported at
 * load, so that fake timers in a user's tests do not hang the library.
 */
import { clearTimeout, setTimeout } from 'node:timers';

import { STATE, WORD } from '../layout.js';
import { peek } from '../shared-words.js';

/**
 * The longest nap. It is no longer than the JavaScript thread may spin in one turn of its event
 * loop, so that the loop keeps turning. From the end of a grid to the code that awaits it takes 65
 * µs with a nap, and 100 where the loop is woken.
 */
const NAP_MS = 0.1;
/** The longest sleep: a lost wake-up costs no more than this. */
const BACKSTOP_MS = 50;

export interface WatchHost {
  /** Wakes the runtime thread if it sleeps. */
  wake(): void;
  /** The JavaScript thread has to read the slots, in a turn of its event loop that comes soon. */
  look(): void;
  /** The runtime thread has woken the JavaScript thread: something has moved. */
  woken(): void;
  /** Whether the device was lost or closed: then the JavaScript thread is not woken any more. */
  isOver(): boolean;
}

export class Watch {
  private readonly control: Int32Array;
  private readonly host: WatchHost;
  private wakeSeen = 0;
  private backstop: ReturnType<typeof setTimeout> | undefined = undefined;

  constructor(control: Int32Array, host: WatchHost) {
    this.control = control;
    this.host = host;
  }

  /**
   * Ends the watch. While the runtime thread watches it keeps a core busy, and wakes the JavaScript
   * thread at each fence.
   */
  end(): void {
    if (this.backstop !== undefined) clearTimeout(this.backstop);
    this.backstop = undefined;
    if (peek(this.control, WORD.watch) === 1) Atomics.store(this.control, WORD.watch, 0);
  }

  /**
   * Leaves the slots to the runtime thread, and sleeps in the event loop for `ms` milliseconds at
   * most.
   */
  begin(ms: number): void {
    const { control, host } = this;
    Atomics.store(control, WORD.watch, 1);
    if (Atomics.load(control, WORD.state) === STATE.sleeping) host.wake();
    // The runtime thread does not report what it did before it saw the flag.
    if (Atomics.load(control, WORD.wake) !== this.wakeSeen) {
      this.wakeSeen = Atomics.load(control, WORD.wake);
      host.look();
      return;
    }
    this.sleep(Math.min(BACKSTOP_MS, ms));
  }

  /** Reads the slots again in `ms` milliseconds. */
  sleep(ms: number): void {
    if (this.backstop !== undefined) clearTimeout(this.backstop);
    this.backstop = setTimeout(() => {
      this.backstop = undefined;
      this.host.look();
    }, ms);
  }

  /**
   * Sleeps within this turn of the event loop until the runtime thread sees a fence, or for a
   * moment. It does not sleep where `passed` returns true.
   */
  nap(passed: () => boolean): void {
    const { control } = this;
    Atomics.store(control, WORD.nap, 1);
    Atomics.store(control, WORD.watch, 1);
    if (Atomics.load(control, WORD.state) === STATE.sleeping) this.host.wake();
    // `passed` is called after the flags are set: the runtime thread reads them after each fence.
    if (!passed()) Atomics.wait(control, WORD.nap, 1, NAP_MS);
    Atomics.store(control, WORD.nap, 0);
    this.wakeSeen = Atomics.load(control, WORD.wake);
  }

  /**
   * Listens for wake-ups. It always does, because failures that no code awaits arrive this way,
   * too. It does not keep the process alive; the backstop does.
   */
  arm(): void {
    const { control, host } = this;
    const value = Atomics.load(control, WORD.wake);
    const result = Atomics.waitAsync(control, WORD.wake, value);
    const again = (): void => {
      this.wakeSeen = Atomics.load(control, WORD.wake);
      if (!host.isOver()) this.arm();
      host.woken();
    };
    if (result.async) void result.value.then(again);
    else again();
  }
}
