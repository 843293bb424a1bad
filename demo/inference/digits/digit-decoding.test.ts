import { letterboxPlacement } from 'async-cuda/images';
import { expect, test } from 'vitest';

import { CELLS, INPUT_SIZE, decodeDigits } from './digit-decoding.js';

const whole = { left: 0, top: 0, width: INPUT_SIZE, height: INPUT_SIZE };
const square = { width: INPUT_SIZE, height: INPUT_SIZE };

/** Candidates, as the device finds them. */
function candidates(
  marks: readonly {
    digit: number;
    x: number;
    y: number;
    score: number;
    sides: readonly [number, number, number, number];
  }[],
): Float32Array {
  return Float32Array.from(
    marks.flatMap(({ digit, x, y, score, sides }) => [y * CELLS + x, digit, score, ...sides]),
  );
}

test('the sides of a box have the model’s distances from the middle of its cell', () => {
  const found = candidates([{ digit: 7, x: 10, y: 20, score: 0.75, sides: [5, 8, 6, 9] }]);
  expect(decodeDigits(found, whole, square)).toEqual([
    { label: '7', score: 0.75, box: { left: 37, top: 74, right: 48, bottom: 91 } },
  ]);
});

test('the best of neighbouring cells, and of two digits in one place, is kept', () => {
  const found = candidates([
    { digit: 3, x: 10, y: 10, score: 0.5, sides: [10, 10, 10, 10] },
    { digit: 3, x: 11, y: 10, score: 0.9, sides: [14, 10, 6, 10] },
    { digit: 8, x: 10, y: 11, score: 0.6, sides: [10, 14, 10, 6] },
    { digit: 1, x: 40, y: 10, score: 0.45, sides: [4, 10, 4, 10] },
  ]);
  expect(
    decodeDigits(found, whole, square).map(({ label, score }) => [label, Math.fround(score)]),
  ).toEqual([
    ['3', Math.fround(0.9)],
    ['1', Math.fround(0.45)],
  ]);
});

test('the order in which candidates come changes nothing', () => {
  const marks = Array.from({ length: 700 }, (_, i) => ({
    digit: i % 10,
    x: (7 * i) % CELLS,
    y: (3 * i) % CELLS,
    score: 0.5 + (i % 20) / 50,
    sides: [3, 4, 5, 6] as const,
  }));
  const found = decodeDigits(candidates(marks), whole, square);
  expect(found.length).toBeGreaterThan(20);
  expect(decodeDigits(candidates(marks.reverse()), whole, square)).toEqual(found);
});

test('boxes are in pixels of the photograph, and stay on it', () => {
  const photograph = { width: 512, height: 256 };
  const placement = letterboxPlacement(photograph, square);
  expect(placement).toEqual({ left: 0, top: 64, width: 256, height: 128 });
  const found = candidates([{ digit: 2, x: 0, y: 16, score: 1, sides: [10, 10, 10, 10] }]);
  // The cell's middle is (2, 66) of the input, (4, 4) of the photograph.
  expect(decodeDigits(found, placement, photograph)).toEqual([
    { label: '2', score: 1, box: { left: 0, top: 0, right: 24, bottom: 24 } },
  ]);
});

test('a box around the photograph, outside of it, is none', () => {
  const photograph = { width: 512, height: 256 };
  const found = candidates([{ digit: 2, x: 30, y: 5, score: 1, sides: [5, 5, 5, 5] }]);
  expect(decodeDigits(found, letterboxPlacement(photograph, square), photograph)).toEqual([]);
});
