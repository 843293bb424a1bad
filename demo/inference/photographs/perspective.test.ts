import * as fc from '../../../test/fast-check.js';
import { expect, test } from 'vitest';

import { perspective, project } from './perspective.js';

const square = [
  { x: 0, y: 0 },
  { x: 1, y: 0 },
  { x: 1, y: 1 },
  { x: 0, y: 1 },
];

test('the matrix takes each point to the other one', { tags: 'random' }, () => {
  // Each corner anywhere near one of a square: no three lie on a line.
  const near = fc.tuple(
    ...square.map(({ x, y }) =>
      fc.record({
        x: fc.double({ min: x - 0.2, max: x + 0.2, noNaN: true }),
        y: fc.double({ min: y - 0.2, max: y + 0.2, noNaN: true }),
      }),
    ),
  );
  fc.assert(
    fc.property(near, near, (from, to) => {
      const matrix = perspective(from, to);
      for (const [i, point] of from.entries()) {
        const { x, y } = project(matrix, point);
        expect(x).toBeCloseTo(to[i]!.x, 8);
        expect(y).toBeCloseTo(to[i]!.y, 8);
      }
    }),
  );
});

test('of a parallelogram it is affine: halves stay halves', () => {
  const matrix = perspective(square, [
    { x: 2, y: 3 },
    { x: 6, y: 5 },
    { x: 5, y: 9 },
    { x: 1, y: 7 },
  ]);
  expect(project(matrix, { x: 0.5, y: 0.5 })).toEqual({
    x: expect.closeTo(3.5) as number,
    y: expect.closeTo(6) as number,
  });
});
