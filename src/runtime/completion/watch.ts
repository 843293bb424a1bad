/**
 * The handover of the watch: while the JS thread sleeps, the runtime thread looks at the slots and
 * wakes it, through `Atomics.waitAsync` in the event loop or through `Atomics.notify` in a nap. A
 * slow timer is the backstop, and keeps the process alive. Timers are taken at load, so that fake
 * timers in a user's tests don't hang the library.
 */
import { clearTimeout, setTimeout } from 'node:timers';

import { STATE, WORD } from '../layout.js';
import { peek } from '../shared-words.js';

/**
 * The longest nap: no longer than the JS thread may spin in one turn of its event loop, so that the
 * loop goes on turning. From the end of a grid it takes 65 µs to the code that awaits it, 100 where
 * the loop is woken.
 */
const NAP_MS = 0.1;
/** The longest sleep: a lost wake-up costs no more than this. */
const BACKSTOP_MS = 50;

export interface WatchHost {
  /** Wakes the runtime thread if it sleeps. */
  wake(): void;
  /** The JS thread is to look at the slots, in a turn of its event loop that comes soon. */
  look(): void;
  /** The runtime thread has woken the JS thread: something moved. */
  woken(): void;
  /** Whether the device was lost or closed: then nothing wakes the JS thread any more. */
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

  /** While the runtime thread watches it keeps a core busy, and wakes the JS thread at each fence. */
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
    // What the thread did before it saw the flag, it did not report.
    if (Atomics.load(control, WORD.wake) !== this.wakeSeen) {
      this.wakeSeen = Atomics.load(control, WORD.wake);
      host.look();
      return;
    }
    this.sleep(Math.min(BACKSTOP_MS, ms));
  }

  /** Looks again in `ms` milliseconds. */
  sleep(ms: number): void {
    if (this.backstop !== undefined) clearTimeout(this.backstop);
    this.backstop = setTimeout(() => {
      this.backstop = undefined;
      this.host.look();
    }, ms);
  }

  /**
   * Sleeps within this turn of the event loop until the runtime thread sees a fence, or for a
   * moment. Not where `passed` says that the fence is there.
   */
  nap(passed: () => boolean): void {
    const { control } = this;
    Atomics.store(control, WORD.nap, 1);
    Atomics.store(control, WORD.watch, 1);
    if (Atomics.load(control, WORD.state) === STATE.sleeping) this.host.wake();
    // Asked after the flags are set: the runtime thread looks at them after each fence.
    if (!passed()) Atomics.wait(control, WORD.nap, 1, NAP_MS);
    Atomics.store(control, WORD.nap, 0);
    this.wakeSeen = Atomics.load(control, WORD.wake);
  }

  /**
   * Listens for wake-ups. Always: failures that nothing awaits arrive this way too. It keeps no
   * process alive; the backstop does.
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
