/** Panels keep proportions and brightness, and the picture can be drawn for images of any shape. */
import { expect, test } from 'vitest';

import { drawMontage } from './montage.js';
import { noise } from './noise.js';
import { referenceStages } from './reference.js';
import { fitWithin } from './resize.js';

test('small images grow by a whole factor', () => {
  expect(fitWithin({ width: 2, height: 1, data: Uint8Array.of(1, 2, 3, 4, 5, 6) }, 5)).toEqual({
    width: 4,
    height: 2,
    data: Uint8Array.of(1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6, 1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6),
  });
});

test('large images shrink to the mean of the pixels that each one covers', () => {
  const grey = [0, 30, 90, 60, 90, 150];
  const image = {
    width: 3,
    height: 2,
    data: Uint8Array.from(grey.flatMap((level) => [level, level, level])),
  };
  const { width, height, data } = fitWithin(image, 2);
  expect([width, height]).toEqual([2, 1]);
  // The middle column counts half on either side: (0 + 60 + (30 + 90) / 2) / 3 and (90 + 150 + (30
  // + 90) / 2) / 3.
  expect([...data]).toEqual([40, 40, 40, 100, 100, 100]);
});

test.each([
  [1, 1],
  [3, 700],
  [2000, 9],
  [601, 599],
])('a picture of %i x %i pixels can be drawn', (width, height) => {
  const image = noise(width, height);
  const times = [
    { name: 'grey', stream: 'A', start: 0, end: 1 },
    { name: 'histogram', stream: 'B', start: 1, end: 2 },
  ] as const;
  const picture = drawMontage(
    image,
    { ...referenceStages(image), times },
    { title: 'title', subtitle: 'subtitle' },
  );
  expect(picture.width).toBeGreaterThanOrEqual(3 * 540);
  expect(picture.data.length).toBe(picture.width * picture.height * 3);
});
