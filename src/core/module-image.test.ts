import { expect, test } from 'vitest';

import { shareImage } from './module-image.js';
import { TurnBudget } from './turn-budget.js';

test.each([0, 1, 2, 3])(
  'text arrives whole, whatever characters its slices end in (shifted by %i)',
  async (shift) => {
    const text = ' '.repeat(shift) + 'aé€😀'.repeat(200_000);
    const shared = await shareImage(text, new TurnBudget());
    expect(shared).toBeInstanceOf(Uint8Array);
    expect(Buffer.from(shared as Uint8Array).toString('utf8') === text).toBe(true);
  },
);

test('bytes arrive as they are', async () => {
  const bytes = Uint8Array.from({ length: 1_000_003 }, (_, i) => i % 251);
  expect(Buffer.compare((await shareImage(bytes, new TurnBudget())) as Uint8Array, bytes)).toBe(0);
});

test('a small image is not copied', async () => {
  expect(await shareImage('.version 7.0', new TurnBudget())).toBe('.version 7.0');
});

test('a byte order mark before text or bytes is left out', async () => {
  expect(await shareImage('\ufeff.version 7.0', new TurnBudget())).toBe('.version 7.0');
  expect(
    Buffer.from(
      (await shareImage(
        new TextEncoder().encode('\ufeff.version 7.0'),
        new TurnBudget(),
      )) as Uint8Array,
    ).toString(),
  ).toBe('.version 7.0');
});
