import * as fc from '../../../test/fast-check.js';
import { expect, test } from 'vitest';

import type { Point } from '../photograph.js';
import { convexHull, cornersOf, smallestRectangle } from './smallest-rectangle.js';

const point = fc.record({
  x: fc.integer({ min: -50, max: 50 }),
  y: fc.integer({ min: -50, max: 50 }),
});
const points = fc.array(point, { minLength: 1, maxLength: 30 });

/** Area of the rectangle around the points whose sides are turned by the angle. */
function areaAt(all: readonly Point[], angle: number): number {
  const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
  const spread = (values: readonly number[]): number => Math.max(...values) - Math.min(...values);
  return (
    spread(all.map(({ x, y }) => x * cos + y * sin)) *
    spread(all.map(({ x, y }) => y * cos - x * sin))
  );
}

test('corners go clockwise from where width and height begin', () => {
  expect(cornersOf({ x: 10, y: 20, width: 6, height: 4, angle: 0 })).toEqual([
    { x: 7, y: 18 },
    { x: 13, y: 18 },
    { x: 13, y: 22 },
    { x: 7, y: 22 },
  ]);
  const [first, second] = cornersOf({ x: 0, y: 0, width: 6, height: 4, angle: Math.PI / 2 });
  expect([first.x, first.y, second.x, second.y].map(Math.round)).toEqual([2, -3, 2, 3]);
});

test('a hull has the outermost points in order, without those on its edges', () => {
  const square = [
    { x: 0, y: 0 },
    { x: 4, y: 0 },
    { x: 4, y: 4 },
    { x: 0, y: 4 },
  ];
  expect(convexHull([...square, { x: 2, y: 2 }, { x: 2, y: 0 }, { x: 4, y: 1 }])).toEqual(square);
  expect(
    convexHull([
      { x: 1, y: 1 },
      { x: 1, y: 1 },
    ]),
  ).toEqual([{ x: 1, y: 1 }]);
});

test('every point lies inside the hull', { tags: 'random' }, () => {
  fc.assert(
    fc.property(points, (all) => {
      const hull = convexHull(all);
      for (const { x, y } of all) {
        for (const [i, a] of hull.entries()) {
          const b = hull[(i + 1) % hull.length]!;
          expect((b.x - a.x) * (y - a.y) - (b.y - a.y) * (x - a.x)).toBeGreaterThanOrEqual(0);
        }
      }
    }),
  );
});

test('a rectangle is found again, however it is turned', { tags: 'random' }, () => {
  const rectangle = fc.record({
    x: fc.double({ min: -100, max: 100, noNaN: true }),
    y: fc.double({ min: -100, max: 100, noNaN: true }),
    width: fc.double({ min: 1, max: 100, noNaN: true }),
    height: fc.double({ min: 1, max: 100, noNaN: true }),
    angle: fc.double({ min: -0.7, max: 0.7, noNaN: true }),
  });
  fc.assert(
    fc.property(rectangle, (given) => {
      const found = smallestRectangle(cornersOf(given));
      for (const name of ['x', 'y', 'width', 'height', 'angle'] as const)
        expect(found[name]).toBeCloseTo(given[name], 5);
    }),
  );
});

test(
  'it holds every point, no angle gives a smaller one, and it is turned by at most an eighth',
  { tags: 'random' },
  () => {
    fc.assert(
      fc.property(points, (all) => {
        const found = smallestRectangle(all);
        const [cos, sin] = [Math.cos(found.angle), Math.sin(found.angle)];
        for (const { x, y } of all) {
          expect(Math.abs((x - found.x) * cos + (y - found.y) * sin)).toBeLessThanOrEqual(
            found.width / 2 + 1e-9,
          );
          expect(Math.abs((y - found.y) * cos - (x - found.x) * sin)).toBeLessThanOrEqual(
            found.height / 2 + 1e-9,
          );
        }
        for (let degree = 0; degree < 90; degree++)
          expect(found.width * found.height).toBeLessThanOrEqual(
            areaAt(all, (degree * Math.PI) / 180) + 1e-6,
          );
        expect(found.angle).toBeGreaterThan(-Math.PI / 4 - 1e-9);
        expect(found.angle).toBeLessThanOrEqual(Math.PI / 4 + 1e-9);
      }),
    );
  },
);
