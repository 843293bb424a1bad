import * as fc from '../../../test/fast-check.js';
import { expect, test } from 'vitest';

import { decodeSteps } from './ctc-decoding.js';

const characters = ['', 'a', 'b', 'c', ' '];

test('steps that see the same are one character, but for a step of none between them', () => {
  expect(
    decodeSteps([0, 1, 1, 2, 0, 2, 2, 0], [0, 0.5, 0.9, 0.7, 0, 0.6, 0.1, 0], characters),
  ).toEqual({ text: 'abb', score: 0.6 });
});

test('spaces around the text are left out, those in it are not', () => {
  expect(decodeSteps([4, 1, 4, 2, 4], [1, 1, 1, 1, 1], characters).text).toBe('a b');
});

test('an empty text has the score 0', () => {
  expect(decodeSteps([0, 0, 0], [1, 1, 1], characters)).toEqual({ text: '', score: 0 });
  expect(decodeSteps([], [], characters)).toEqual({ text: '', score: 0 });
});

test('a text is read again from any steps that stand for it', { tags: 'random' }, () => {
  const step = fc.record({
    seen: fc.integer({ min: 1, max: 3 }),
    times: fc.integer({ min: 1, max: 4 }),
    nones: fc.integer({ min: 0, max: 3 }),
  });
  fc.assert(
    fc.property(fc.array(step), (steps) => {
      const classes = steps.flatMap(({ seen, times, nones }, i) => [
        ...Array<number>(times).fill(seen),
        ...Array<number>(Math.max(nones, steps[i + 1]?.seen === seen ? 1 : 0)).fill(0),
      ]);
      const { text, score } = decodeSteps(
        classes,
        classes.map(() => 0.5),
        characters,
      );
      expect(text).toBe(steps.map(({ seen }) => characters[seen]).join(''));
      expect(score).toBe(steps.length === 0 ? 0 : 0.5);
    }),
  );
});
