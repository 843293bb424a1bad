import * as fc from '../../../test/fast-check.js';
import { expect, test } from 'vitest';

import { editDistance } from './edit-distance.js';

test.each([
  ['', '', 0],
  ['abc', '', 3],
  ['kitten', 'sitting', 3],
  ['flaw', 'lawn', 2],
  ['a😀b', 'ab', 1],
])('%j and %j are %i apart', (a, b, distance) => {
  expect(editDistance(a, b)).toBe(distance);
});

test(
  'is a distance: 0 for the same alone, as far both ways, and no further by way of a third',
  { tags: 'random' },
  () => {
    const text = fc.string({ unit: fc.constantFrom('a', 'b', 'c'), maxLength: 8 });
    fc.assert(
      fc.property(text, text, text, (a, b, c) => {
        expect(editDistance(a, b) === 0).toBe(a === b);
        expect(editDistance(a, b)).toBe(editDistance(b, a));
        expect(editDistance(a, c)).toBeLessThanOrEqual(editDistance(a, b) + editDistance(b, c));
      }),
    );
  },
);
