/** A blocked event loop is seen, a free one turns often. */
import { setTimeout } from 'node:timers/promises';

import { expect, test } from 'vitest';

import { EventLoopStall } from './event-loop-stall.js';

function block(milliseconds: number): void {
  const end = performance.now() + milliseconds;
  while (performance.now() < end);
}

test('a stall between two turns counts', async () => {
  const stall = new EventLoopStall();
  await setTimeout(5);
  block(40);
  await setTimeout(5);
  expect(stall.stop().longest).toBeGreaterThanOrEqual(40);
});

test('a stall that goes on until the end counts', () => {
  const stall = new EventLoopStall();
  block(20);
  expect(stall.stop().longest).toBeGreaterThanOrEqual(20);
});

test('while the program waits, the loop turns many times a millisecond', async () => {
  const stall = new EventLoopStall();
  await setTimeout(100);
  expect(stall.stop().samples).toBeGreaterThan(100);
});
