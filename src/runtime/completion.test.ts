/**
 * When the JavaScript thread spins for the end of a wait, when it lets the event loop turn, and
 * when the runtime thread watches for it.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';

import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';

import { Completion, CompletionSlot } from './completion.js';
import { PINNED_BYTES, SLOT_WORDS, WORD, createShared, viewShared, wakeJs } from './layout.js';
import type { SharedState } from './layout.js';

const MICROSECOND = 1e-3;

/**
 * A clock that advances by a microsecond at each reading, and a device that writes its fences by
 * it.
 */
class Simulation {
  readonly shared: SharedState = viewShared(
    createShared({ buffer: new SharedArrayBuffer(PINNED_BYTES), byteOffset: 0 }),
  );
  readonly slot = new CompletionSlot(0, 0);
  readonly completion: Completion;
  private time = 1;
  private readonly due: { at: number; seq: number }[] = [];
  /** The progress of a thread of the host: its word, and when it stores it. */
  readonly progress = new Int32Array(new SharedArrayBuffer(8));
  private readonly doneAt: { at: number; value: number }[] = [];

  constructor(crowded = false) {
    vi.spyOn(performance, 'now').mockImplementation(() => {
      this.pass(MICROSECOND);
      return this.time;
    });
    this.completion = new Completion(this.shared, {
      crowded,
      turn: undefined,
      messages: () => undefined,
      flush: () => true,
      wake: () => undefined,
      lost: () => undefined,
    });
  }

  pass(ms: number): void {
    this.time += ms;
    for (const { at, seq } of this.due)
      if (at <= this.time) Atomics.store(this.shared.slots, this.slot.index * SLOT_WORDS, seq);
    for (const { at, value } of this.doneAt)
      if (at <= this.time) Atomics.store(this.progress, 1, value);
  }

  /**
   * Issues work of a thread that ends after `ms`; the device reaches the fence after it after
   * `written`. Returns the fence.
   */
  issueToThread(ms: number, written: number): number {
    const { slot } = this;
    const seq = this.issue(written);
    slot.earlyWords = this.progress;
    slot.earlyAt = 1;
    slot.earlyValue = this.doneAt.length + 1;
    slot.earlySeq = seq;
    this.doneAt.push({ at: this.time + ms, value: slot.earlyValue });
    return seq;
  }

  get now(): number {
    return this.time;
  }

  /** Issues work that ends after `ms`. Returns its fence. */
  issue(ms: number): number {
    const seq = ++this.slot.issued;
    this.due.push({ at: this.time + ms, seq });
    return seq;
  }

  /** Whether work of `ms` ends during the spin; otherwise waits until it has ended. */
  async endsAtOnce(ms: number): Promise<boolean> {
    const seq = this.issue(ms);
    if (this.completion.spin(this.slot, seq)) return this.completion.mayEndNow();
    await this.completion.wait(this.slot, seq, 0, false);
    return false;
  }
}

let simulation: Simulation;

beforeEach(() => {
  simulation = new Simulation();
});

afterEach(() => {
  vi.restoreAllMocks();
});

describe('work of a thread of the host', () => {
  test.each([0.005, 0.05, 0.5])(
    'that takes %d ms is over when its thread has stored its word, before the device writes',
    async (ms) => {
      const { completion, slot } = simulation;
      for (let i = 0; i < 5; i++) {
        const begun = simulation.now;
        const seq = simulation.issueToThread(ms, 20);
        await completion.wait(slot, seq, 0);
        expect(simulation.now - begun).toBeGreaterThanOrEqual(ms);
        expect(simulation.now - begun).toBeLessThan(20);
        expect(completion.passed(slot, seq)).toBe(true);
        expect(completion.isWritten(slot)).toBe(false);
      }
      simulation.pass(100);
      expect(completion.isWritten(slot)).toBe(true);
    },
  );

  test('does not affect the work that was queued after it', async () => {
    const { completion, slot } = simulation;
    const first = simulation.issueToThread(0.01, 1);
    const second = simulation.issue(0.6);
    simulation.pass(0.3);
    expect(completion.passed(slot, first)).toBe(true);
    expect(completion.passed(slot, second)).toBe(false);
    await completion.wait(slot, second, 0);
    expect(completion.isWritten(slot)).toBe(true);
  });

  test('that was seen to be over stays so, whatever is waited for next', () => {
    const { completion, slot } = simulation;
    const first = simulation.issueToThread(0.01, 50);
    simulation.pass(0.02);
    expect(completion.passed(slot, first)).toBe(true);
    const second = simulation.issueToThread(10, 60);
    expect(completion.passed(slot, second)).toBe(false);
    expect(completion.passed(slot, first)).toBe(true);
    simulation.pass(10);
    expect(completion.passed(slot, second)).toBe(true);
  });

  test('whose thread never stores its word is over when the device reaches the fence', async () => {
    const { completion, slot } = simulation;
    const seq = simulation.issueToThread(Infinity, 0.3);
    await completion.wait(slot, seq, 0);
    expect(completion.isWritten(slot)).toBe(true);
  });

  test('ends the waits before it, too, in their order', async () => {
    const { completion, slot } = simulation;
    const ended: string[] = [];
    const before = completion
      .wait(slot, simulation.issue(30), 0, false)
      .then(() => ended.push('before'));
    const own = completion
      .wait(slot, simulation.issueToThread(0.2, 40), 0, false)
      .then(() => ended.push('own'));
    await Promise.all([before, own]);
    expect(ended).toEqual(['before', 'own']);
    expect(simulation.now).toBeLessThan(20);
  });
});

describe('work of 50 microseconds', () => {
  test('is waited for in the event loop the first time, and spun for from then on', async () => {
    expect(await simulation.endsAtOnce(0.05)).toBe(false);
    await nextTurn();
    for (let i = 0; i < 10; i++) {
      expect(await simulation.endsAtOnce(0.05)).toBe(true);
      await nextTurn();
    }
  });

  test('is spun for no longer than a fifth of a millisecond in one turn', async () => {
    await simulation.endsAtOnce(0.05);
    await nextTurn();
    const ends: boolean[] = [];
    // None of these lets the event loop turn, unless it returns false.
    for (let i = 0; i < 4; i++) ends.push(await simulation.endsAtOnce(0.05));
    expect(ends).toEqual([true, true, true, false]);
    await nextTurn();
    expect(await simulation.endsAtOnce(0.05)).toBe(true);
  });

  test('is not spun for where the program is slower between its awaits', async () => {
    await simulation.endsAtOnce(0.022);
    await nextTurn();
    const ends = [await simulation.endsAtOnce(0.022)];
    for (let i = 0; i < 2; i++) {
      const seq = simulation.issue(0.2);
      simulation.pass(0.3);
      ends.push(
        simulation.completion.passed(simulation.slot, seq) && simulation.completion.mayEndNow(),
      );
    }
    expect(ends).toEqual([true, false, false]);
  });

  test('is waited for in the event loop while that has other work', async () => {
    let busy = true;
    const other = (): void => {
      simulation.pass(0.03);
      if (busy) setImmediate(other);
    };
    setImmediate(other);
    try {
      for (let i = 0; i < 5; i++) {
        expect(await simulation.endsAtOnce(0.09)).toBe(false);
        await nextTurn();
      }
    } finally {
      busy = false;
    }
    await nextTurn();
    expect(await simulation.endsAtOnce(0.05)).toBe(false);
    await nextTurn();
    expect(await simulation.endsAtOnce(0.05)).toBe(true);
  });

  test('is waited for in the event loop beside other waits and if all cores are used', async () => {
    vi.restoreAllMocks();
    simulation = new Simulation(true);
    for (let i = 0; i < 3; i++) {
      expect(await simulation.endsAtOnce(0.05)).toBe(false);
      await nextTurn();
    }
    vi.restoreAllMocks();
    simulation = new Simulation();
    await simulation.endsAtOnce(0.05);
    const other = simulation.completion.until(() => false);
    other.catch(() => undefined);
    for (let i = 0; i < 3; i++) expect(await simulation.endsAtOnce(0.05)).toBe(false);
    simulation.completion.rejectAll(new Error('over'));
    await expect(other).rejects.toThrow('over');
  });

  test('that takes longer once is waited for, and spun for again when it is short', async () => {
    await simulation.endsAtOnce(0.05);
    await nextTurn();
    expect(await simulation.endsAtOnce(0.3)).toBe(false);
    await nextTurn();
    // It took 0.3 ms the last time.
    expect(await simulation.endsAtOnce(0.05)).toBe(false);
    await nextTurn();
    expect(await simulation.endsAtOnce(0.05)).toBe(true);
  });
});

describe('work of half a millisecond where the device uses all cores', () => {
  /** The longest duration of each nap, in milliseconds. */
  let naps: number[];
  /** Simulates a nap: it ends when the device has reached the fence, or its time is over. */
  const sleep =
    vi.fn<
      (words: Int32Array, word: number, value: number, timeout: number) => 'ok' | 'timed-out'
    >();
  let control: Int32Array;

  beforeEach(() => {
    vi.restoreAllMocks();
    simulation = new Simulation(true);
    ({ control } = simulation.shared);
    naps = [];
    sleep.mockReset().mockImplementation((words, word, value, timeout) => {
      expect(words).toBe(control);
      expect(word).toBe(WORD.nap);
      expect(Atomics.load(words, word)).toBe(value);
      expect(Atomics.load(words, WORD.watch)).toBe(1);
      naps.push(timeout);
      const { slots } = simulation.shared;
      const before = Atomics.load(slots, 0);
      for (let slept = 0; slept < timeout; slept += 0.01) {
        simulation.pass(0.01);
        if (Atomics.load(slots, 0) === before) continue;
        wakeJs(words);
        return 'ok';
      }
      return 'timed-out';
    });
    vi.spyOn(Atomics, 'wait').mockImplementation(sleep as never);
  });

  /** The duration is not known the first time: the runtime thread watches for the end. */
  async function theFirstTime(): Promise<void> {
    const ended = simulation.endsAtOnce(0.5);
    while (Atomics.load(control, WORD.watch) === 0) await nextTurn();
    expect(naps).toEqual([]);
    simulation.pass(0.5);
    wakeJs(control);
    expect(await ended).toBe(false);
  }

  test('is napped for once its duration is known, 0.1 ms in one turn', async () => {
    await theFirstTime();
    for (let i = 0; i < 5; i++) {
      naps = [];
      await nextTurn();
      let turns = 0;
      const count = (): void => void turns++;
      const counted = setImmediate(count);
      expect(await simulation.endsAtOnce(0.5)).toBe(false);
      clearImmediate(counted);
      expect(naps).toEqual([0.1, 0.1, 0.1, 0.1, 0.1]);
      expect(turns).toBe(1);
    }
    expect(Atomics.load(control, WORD.nap)).toBe(0);
    expect(Atomics.load(control, WORD.watch)).toBe(0);
  });

  test('is not napped for while the event loop has other work', async () => {
    await theFirstTime();
    let busy = true;
    const other = (): void => {
      simulation.pass(0.05);
      if (busy) setImmediate(other);
    };
    setImmediate(other);
    await nextTurn();
    // The event loop is not woken here.
    const ended = simulation.endsAtOnce(0.5);
    while (Atomics.load(control, WORD.watch) === 0) await nextTurn();
    simulation.pass(1);
    wakeJs(control);
    await ended.finally(() => {
      busy = false;
    });
    expect(naps).toEqual([]);
  });

  test('is not napped for where there are other waits', async () => {
    await theFirstTime();
    const other = simulation.completion.until(() => false);
    other.catch(() => undefined);
    const ended = simulation.endsAtOnce(0.5);
    while (Atomics.load(control, WORD.watch) === 0) await nextTurn();
    simulation.pass(0.5);
    wakeJs(control);
    await ended;
    expect(naps).toEqual([]);
    simulation.completion.rejectAll(new Error('over'));
    await expect(other).rejects.toThrow('over');
  });

  test(
    'that takes ten times as long once is napped for no longer than twice the known ' +
      'duration, and then watched for',
    async () => {
      await theFirstTime();
      await nextTurn();
      const ended = simulation.endsAtOnce(5);
      for (let i = 0; i < 20; i++) await nextTurn();
      // It naps for twice half a millisecond, a tenth at a time.
      expect(naps.length).toBeGreaterThanOrEqual(9);
      expect(naps.length).toBeLessThanOrEqual(11);
      expect(Atomics.load(control, WORD.watch)).toBe(1);
      simulation.pass(5);
      wakeJs(control);
      await ended;
    },
  );
});

test('a nap is ended directly; the event loop is woken only where no thread naps', async () => {
  const { control } = simulation.shared;
  const loop = Atomics.waitAsync(control, WORD.wake, 0);
  let woken = false;
  void (loop.value as Promise<string>).then(() => (woken = true));
  Atomics.store(control, WORD.nap, 1);
  wakeJs(control);
  await nextTurn();
  expect(Atomics.load(control, WORD.nap)).toBe(0);
  expect(Atomics.load(control, WORD.wake)).toBe(1);
  expect(woken).toBe(false);
  wakeJs(control);
  await loop.value;
  expect(Atomics.load(control, WORD.wake)).toBe(2);
});

test('short work is spun for at once', async () => {
  for (let i = 0; i < 20; i++) expect(await simulation.endsAtOnce(0.008)).toBe(true);
});

test(
  'a program that works for long between its awaits waits in the event loop from the ' +
    'second one on',
  async () => {
    await simulation.endsAtOnce(0.001);
    await nextTurn();
    for (let i = 0; i < 5; i++) {
      expect(await simulation.endsAtOnce(0.001)).toBe(true);
      simulation.pass(0.3);
      expect(await simulation.endsAtOnce(0.001)).toBe(false);
      await nextTurn();
    }
  },
);

test('the runtime thread watches for long work, and stops once there are no waits', async () => {
  const { control } = simulation.shared;
  // The second one is expected to take as long as the first: towards its end this thread spins
  // itself, and is not woken.
  for (const wakes of [true, false]) {
    const ended = simulation.completion.wait(simulation.slot, simulation.issue(40), 0);
    while (Atomics.load(control, WORD.watch) === 0) {
      simulation.pass(0.1);
      await nextTurn();
    }
    simulation.pass(wakes ? 50 : 39.5);
    if (wakes) wakeJs(control);
    await ended;
    await nextTurn();
    expect(Atomics.load(control, WORD.watch)).toBe(0);
  }
});
