import { expect, test } from 'vitest';

import { FreeGate } from './free-gate.js';
import type { Stream } from './stream.js';

/** A stream that waits for a value until `pass` is called. */
class Waiting {
  readonly log: string[] = [];
  readonly transferSlot = {};
  over = false;
  private holds = 0;
  private waiting: (() => void)[] = [];
  readonly runtime = {
    nextHold: () => ++this.holds,
    reached: () => Promise.resolve(),
    release: (_slot: unknown, value: number) => this.log.push(`release ${value}`),
  };

  hold(_slot: unknown, value: number): void {
    this.log.push(`hold ${value}`);
  }

  hasPassed(): boolean {
    return this.over;
  }

  passedLater(): Promise<void> {
    return new Promise((resolve) => this.waiting.push(resolve));
  }

  pass(): void {
    this.over = true;
    for (const resolve of this.waiting.splice(0)) resolve();
  }

  get stream(): Stream {
    return this as unknown as Stream;
  }
}

/** A free that ends when `end` is called. */
class Free {
  called = false;
  end: () => void = () => undefined;

  readonly call = (): Promise<void> => {
    this.called = true;
    return new Promise((resolve) => (this.end = resolve));
  };
}

const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('a free runs at once where no stream waits, and holds later waits', async () => {
  const [gate, first, second, free] = [new FreeGate(), new Waiting(), new Waiting(), new Free()];
  const freed = gate.free(free.call);
  expect(free.called).toBe(true);
  gate.hold(first.stream);
  gate.entered(first.stream, 1);
  await settle();
  expect(first.log).toEqual(['hold 1']);
  free.end();
  await freed;
  await settle();
  expect(first.log).toEqual(['hold 1', 'release 1']);
  gate.hold(second.stream);
  expect(second.log).toEqual([]);
});

test('a free is put off until every stream, later waiters too, has gone on', async () => {
  const [gate, first, second, free] = [new FreeGate(), new Waiting(), new Waiting(), new Free()];
  gate.entered(first.stream, 1);
  // The code that ends the wait may await this.
  await gate.free(free.call);
  gate.hold(second.stream);
  gate.entered(second.stream, 1);
  first.pass();
  await settle();
  expect([free.called, second.log]).toEqual([false, []]);
  let drained = false;
  const end = gate.drained().then(() => (drained = true));
  second.pass();
  await settle();
  expect([free.called, drained]).toEqual([true, false]);
  free.end();
  await end;
});
