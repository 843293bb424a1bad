import { letterboxPlacement } from 'async-cuda/images';
import { describe, expect, test } from 'vitest';

import { cornersOf } from './smallest-rectangle.js';
import type { TurnedRectangle } from './smallest-rectangle.js';
import type { Region } from './connected-regions.js';
import { MAP_WHITE, directionsOf, grown, textBoxes, textSearch } from './text-boxes.js';

const map = { width: 160, height: 96 };
const whole = { left: 0, top: 0, ...map };

/** A map in which the rectangles are text, with the given scores. */
function mapWith(...texts: readonly (TurnedRectangle & { readonly sure: number })[]): Uint8Array {
  const values = new Uint8Array(map.width * map.height);
  for (const { x, y, width, height, angle, sure } of texts) {
    const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
    for (let i = 0; i < values.length; i++) {
      const [dx, dy] = [(i % map.width) + 0.5 - x, Math.floor(i / map.width) + 0.5 - y];
      if (Math.abs(dx * cos + dy * sin) <= width / 2 && Math.abs(dy * cos - dx * sin) <= height / 2)
        values[i] = Math.round(sure * MAP_WHITE);
    }
  }
  return values;
}

/** The boxes of a map that arrives a few rows at a time. */
function regionsOf(values: Uint8Array): Region[] {
  const search = textSearch(map.width);
  for (let row = 0; row < map.height; row += 7)
    search.add(values.subarray(row * map.width, (row + 7) * map.width));
  return search.regions();
}

const rest = (): Promise<void> => Promise.resolve();
const line = { x: 80, y: 48, width: 60, height: 10, angle: 0, sure: 0.9 };

test('a box is grown by as much as the model was trained to shrink it', () => {
  // 1.8 · 60 · 10 / (2 · (60 + 10)) on each side
  const distance = 1080 / 140;
  expect(grown({ x: 1, y: 2, width: 60, height: 10, angle: 0.1 })).toEqual({
    x: 1,
    y: 2,
    width: 60 + 2 * distance,
    height: 10 + 2 * distance,
    angle: 0.1,
  });
});

test('a line is the region of the map, with the mean of the map as its score', async () => {
  const [box, ...more] = await textBoxes(regionsOf(mapWith(line)), whole, map, rest);
  const { width, height } = grown(line);
  expect(more).toEqual([]);
  expect(box).toMatchObject({ x: 80, y: 48, width, height, angle: 0 });
  expect(box!.score).toBeCloseTo(0.9, 2);
});

test.each([-0.5, -0.2, 0.3, 0.7])('a line that is turned by %f is found so', async (angle) => {
  const [box] = await textBoxes(regionsOf(mapWith({ ...line, angle })), whole, map, rest);
  const expected = grown(line);
  expect(box!.angle).toBeCloseTo(angle, 1);
  expect(Math.hypot(box!.x - 80, box!.y - 48)).toBeLessThan(1);
  // Its corners are those of pixels, which reach beyond a turned edge.
  expect(Math.abs(box!.width - expected.width)).toBeLessThan(4);
  expect(Math.abs(box!.height - expected.height)).toBeLessThan(4);
});

test('uncertain regions and specks are left out; lines are in order from the top', async () => {
  const boxes = await textBoxes(
    regionsOf(
      mapWith(
        { ...line, y: 80 },
        { ...line, y: 15 },
        { ...line, y: 40, sure: 0.5 },
        { ...line, x: 10, y: 60, width: 2, height: 2 },
        { ...line, x: 50, y: 60, width: 40, sure: 0.29 },
      ),
    ),
    whole,
    map,
    rest,
  );
  expect(boxes.map(({ y }) => y)).toEqual([15, 80]);
});

test('boxes are in pixels of the photograph', async () => {
  const photograph = { width: 320, height: 160 };
  const placement = letterboxPlacement(photograph, map);
  expect(placement).toEqual({ left: 0, top: 8, width: 160, height: 80 });
  const [box] = await textBoxes(regionsOf(mapWith(line)), placement, photograph, rest);
  const { width, height } = grown(line);
  expect(box).toMatchObject({ x: 160, y: 80, width: 2 * width, height: 2 * height, angle: 0 });
});

describe('the direction of a line', () => {
  test('is along its width', () => {
    expect(directionsOf(line)).toEqual([line]);
  });

  test('a tall box may read down or up: the same rectangle, with its width along the line', () => {
    const tall = { x: 5, y: 6, width: 10, height: 60, angle: 0.1 };
    const [upright, down, up] = directionsOf(tall);
    expect(upright).toEqual(tall);
    expect([down!.width, down!.height, up!.width, up!.height]).toEqual([60, 10, 60, 10]);
    const rounded = (rectangle: TurnedRectangle): string[] =>
      cornersOf(rectangle).map(({ x, y }) => `${x.toFixed(6)} ${y.toFixed(6)}`);
    const [topLeft, topRight, bottomRight, bottomLeft] = rounded(tall);
    // Read downwards a line begins at the top, its letters' tops to the right.
    expect(rounded(down!)).toEqual([topRight, bottomRight, bottomLeft, topLeft]);
    expect(rounded(up!)).toEqual([bottomLeft, topLeft, topRight, bottomRight]);
  });
});
