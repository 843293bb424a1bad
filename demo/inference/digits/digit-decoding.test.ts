import { letterboxPlacement } from 'async-cuda/npp';
import { expect, test } from 'vitest';

import { CELLS, INPUT_SIZE, decodeDigits } from './digit-decoding.js';

const cells = CELLS * CELLS;
const whole = { left: 0, top: 0, width: INPUT_SIZE, height: INPUT_SIZE };
const square = { width: INPUT_SIZE, height: INPUT_SIZE };

/** Outputs in which each of `marks` says that a digit is there. */
function outputs(marks: readonly { digit: number; x: number; y: number; score: number; sides: readonly [number, number, number, number] }[]): [Float32Array, Int32Array, Float32Array] {
  const scores = new Float32Array(cells);
  const digits = new Int32Array(cells);
  const distances = new Float32Array(4 * cells);
  for (const { digit, x, y, score, sides } of marks) {
    scores[y * CELLS + x] = score;
    digits[y * CELLS + x] = digit;
    sides.forEach((side, i) => (distances[i * cells + y * CELLS + x] = side));
  }
  return [scores, digits, distances];
}

test('a box is as far from the middle of its cell as the model says', () => {
  const [scores, digits, distances] = outputs([{ digit: 7, x: 10, y: 20, score: 0.75, sides: [5, 8, 6, 9] }]);
  expect(decodeDigits(scores, digits, distances, whole, square)).toEqual([{ label: '7', score: 0.75, box: { left: 37, top: 74, right: 48, bottom: 91 } }]);
});

test('of neighbouring cells that say the same the best is left, and of two digits in one place', () => {
  const [scores, digits, distances] = outputs([
    { digit: 3, x: 10, y: 10, score: 0.5, sides: [10, 10, 10, 10] },
    { digit: 3, x: 11, y: 10, score: 0.9, sides: [14, 10, 6, 10] },
    { digit: 8, x: 10, y: 11, score: 0.6, sides: [10, 14, 10, 6] },
    { digit: 1, x: 40, y: 10, score: 0.45, sides: [4, 10, 4, 10] },
  ]);
  expect(decodeDigits(scores, digits, distances, whole, square).map(({ label, score }) => [label, Math.fround(score)])).toEqual([['3', Math.fround(0.9)], ['1', Math.fround(0.45)]]);
});

test('what is not sure enough is nothing', () => {
  const [scores, digits, distances] = outputs([{ digit: 3, x: 10, y: 10, score: 0.41, sides: [10, 10, 10, 10] }]);
  expect(decodeDigits(scores, digits, distances, whole, square)).toEqual([]);
});

test('boxes are in pixels of the photograph, and stay on it', () => {
  const photograph = { width: 512, height: 256 };
  const placement = letterboxPlacement(photograph, square);
  expect(placement).toEqual({ left: 0, top: 64, width: 256, height: 128 });
  const [scores, digits, distances] = outputs([{ digit: 2, x: 0, y: 16, score: 1, sides: [10, 10, 10, 10] }]);
  // The cell's middle is (2, 66) of the input, (4, 4) of the photograph.
  expect(decodeDigits(scores, digits, distances, placement, photograph)).toEqual([{ label: '2', score: 1, box: { left: 0, top: 0, right: 24, bottom: 24 } }]);
});

test('a box around the photograph, outside of it, is none', () => {
  const photograph = { width: 512, height: 256 };
  const [scores, digits, distances] = outputs([{ digit: 2, x: 30, y: 5, score: 1, sides: [5, 5, 5, 5] }]);
  expect(decodeDigits(scores, digits, distances, letterboxPlacement(photograph, square), photograph)).toEqual([]);
});
