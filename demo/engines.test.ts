/**
 * What the engines make is what the operations give, and the contact sheet has room for either
 * number of engines.
 */
import { expect, test } from 'vitest';

import { onDevice } from '../test/core/test-device.js';
import { drawContactSheet } from './contact-sheet.js';
import { compareEngines } from './engines.js';
import type { Comparison, Made } from './engines.js';
import { noise } from './noise.js';

const made = (width: number, height: number, level: number): Made => ({
  image: { width, height, data: new Uint8Array(width * height * 3).fill(level) },
  time: 1,
});

onDevice('Engines of the demo', (host) => {
  test('each operation is made by each engine that is there', async () => {
    const { operations, npp, reason } = await compareEngines(host.device, noise(40, 30));
    expect(
      operations.map(({ title, own: { image } }) => [title, image.width, image.height]),
    ).toEqual([
      ['resize', 20, 15],
      ['resize', 20, 15],
      ['letterbox', 640, 640],
      ['gaussianFilter', 40, 30],
      ['boxFilter', 40, 30],
    ]);
    for (const { own } of operations)
      expect(own.image.data.some((value, i) => value !== own.image.data[i % 3])).toBe(true);
    if (npp === undefined) {
      expect(reason).toMatch(/NPP/);
      expect(operations.every(({ npp: theirs }) => theirs === undefined)).toBe(true);
    } else
      for (const { npp: theirs } of operations)
        expect(theirs).toMatchObject({ time: expect.any(Number) as number });
  }, 60_000);

  test('a large photograph is made smaller first', async () => {
    const { operations } = await compareEngines(host.device, noise(2000, 20));
    expect([operations[3]!.own.image.width, operations[3]!.own.image.height]).toEqual([1024, 10]);
  }, 60_000);
});

test('the sheet has a row for each engine, and one for the differences', () => {
  const row = { title: 'resize', note: 'linear', own: made(300, 200, 100) };
  const none: Comparison = { operations: [row, row], npp: undefined, reason: 'not found' };
  const both: Comparison = {
    operations: [
      { ...row, npp: made(300, 200, 103), largest: 3, mean: 3 },
      { ...row, npp: 'npp has no such filter' },
    ],
    npp: '13.0.1',
    reason: undefined,
  };
  const [one, three] = [none, both].map((comparison) =>
    drawContactSheet(comparison, { title: 'title', subtitle: 'subtitle' }),
  ) as [ReturnType<typeof drawContactSheet>, ReturnType<typeof drawContactSheet>];
  expect(three.width).toBe(one.width);
  expect(three.height).toBe(56 + 132 + 3 * (44 + 200 + 74 + 28) + 28);
  // 3 steps, sixteen times, beside grey.
  const at = (56 + 132 + 2 * 346 + 44 + 100) * three.width + 56 + 160;
  expect([...three.data.subarray(at * 3, at * 3 + 3)]).toEqual([176, 176, 176]);
});
