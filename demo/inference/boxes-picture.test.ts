import { expect, test } from 'vitest';

import { Canvas } from '../canvas.js';
import { drawBoxes } from './boxes-picture.js';

test('a box is drawn along its corners, and nothing inside of it', () => {
  const image = new Canvas(720, 200, [0, 0, 0]);
  const titles = { title: 'title', subtitle: 'subtitle' };
  const [plain, drawn] = [
    [],
    [
      {
        label: 'x',
        score: 1,
        corners: [
          { x: 50, y: 100 },
          { x: 150, y: 60 },
          { x: 170, y: 110 },
          { x: 70, y: 150 },
        ],
      },
    ],
  ].map((found) => drawBoxes([{ name: 'name', image, found }], titles));
  expect([drawn!.width, drawn!.height]).toEqual([plain!.width, plain!.height]);
  // Where the photograph lies: the first black pixel of the plain picture, as the background is not
  // black.
  const corner =
    plain!.data.findIndex(
      (_, i) =>
        i % 3 === 0 && plain!.data[i] === 0 && plain!.data[i + 1] === 0 && plain!.data[i + 2] === 0,
    ) / 3;
  const [left, top] = [corner % plain!.width, Math.floor(corner / plain!.width)];
  const changed = (x: number, y: number): boolean =>
    [0, 1, 2].some((channel) => {
      const at = ((top + y) * plain!.width + left + x) * 3 + channel;
      return plain!.data[at] !== drawn!.data[at];
    });
  for (const [x, y] of [
    [50, 100],
    [100, 80],
    [150, 60],
    [160, 85],
    [170, 110],
    [120, 130],
    [70, 150],
    [60, 125],
  ] as const)
    expect(changed(x, y), `${x}, ${y}`).toBe(true);
  for (const [x, y] of [
    [110, 105],
    [80, 105],
    [140, 90],
    [20, 180],
    [250, 150],
  ] as const)
    expect(changed(x, y), `${x}, ${y}`).toBe(false);
});
