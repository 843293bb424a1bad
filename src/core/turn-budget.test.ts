import { performance } from 'node:perf_hooks';
import { setImmediate } from 'node:timers/promises';

import { expect, test } from 'vitest';

import { TurnBudget } from './turn-budget.js';

const HUGE = 1e12;

function spend(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
}

test('copies larger than a turn allows are made one per turn, in order', async () => {
  const budget = new TurnBudget();
  expect(budget.take(HUGE)).toBe(undefined);
  const order: number[] = [];
  const taken = [0, 1, 2].map((i) => budget.take(HUGE)!.then(() => order.push(i)));
  const seen: number[] = [];
  for (let turn = 0; turn < 3; turn++) {
    await setImmediate();
    seen.push(order.length);
  }
  await Promise.all(taken);
  expect(order).toEqual([0, 1, 2]);
  for (let turn = 1; turn < 3; turn++) expect(seen[turn]! - seen[turn - 1]!).toBeLessThanOrEqual(1);
});

test('small copies share a turn', () => {
  const budget = new TurnBudget();
  for (let i = 0; i < 10; i++) expect(budget.take(1000)).toBe(undefined);
  expect(budget.fits(1000)).toBe(true);
  expect(budget.fits(HUGE)).toBe(false);
});

test('a large copy is made in parts that are as large as the rate allows', () => {
  const budget = new TurnBudget();
  const parts = (bytes: number): number[] => {
    const found = [];
    for (let left = bytes; left > 0; left -= found.at(-1)!) found.push(budget.part(left));
    return found;
  };
  const whole = parts(1 << 20);
  expect(whole.length).toBe(1);
  // A megabyte has repeatedly taken a millisecond.
  for (let i = 0; i < 20; i++) budget.took(1 << 20, 1);
  const slow = parts(1 << 20);
  expect(slow.length).toBeGreaterThan(3);
  expect(slow.reduce((sum, bytes) => sum + bytes)).toBe(1 << 20);
  expect(slow.slice(0, -1).every((bytes) => bytes % 65536 === 0)).toBe(true);
  expect(budget.part(5)).toBe(5);
});

test('a turn that other work has made long copies nothing more, the next one does', async () => {
  const budget = new TurnBudget();
  void budget.take(1);
  // The budget's own callback comes first, and begins the turn.
  await setImmediate();
  spend(2);
  expect(budget.fits(1)).toBe(false);
  const late = budget.take(1);
  expect(late).toBeInstanceOf(Promise);
  await late;
});

test('the duration of a turn without a copy is not known', async () => {
  const budget = new TurnBudget();
  void budget.take(1);
  await setImmediate();
  await setImmediate();
  spend(2);
  expect(budget.fits(1)).toBe(true);
  expect(budget.take(1)).toBe(undefined);
});

/**
 * Turns that pass until as many copies have gone as take 2.4 ms, where other work takes so many
 * milliseconds of each turn.
 */
async function turnsDuring(ms: number): Promise<number> {
  const budget = new TurnBudget();
  const cost = budget.part(1e12) / 2;
  let left = 40;
  void budget.take(cost);
  const copies = Array.from({ length: left }, () =>
    Promise.resolve(budget.take(cost)).then(() => left--),
  );
  let turns = 0;
  for (; left > 0; turns++) {
    await setImmediate();
    spend(ms);
  }
  await Promise.all(copies);
  return turns;
}

test('turns that other work makes long copy more, the same part of each', async () => {
  const short = await turnsDuring(0);
  expect(short).toBeGreaterThan(15);
  expect(await turnsDuring(4)).toBeLessThan(short / 2);
});
