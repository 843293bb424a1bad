import * as fc from '../../../test/fast-check.js';
import { expect, test } from 'vitest';

import { areaOf, intersectionOverUnion, suppressNonMaxima } from './non-maximum-suppression.js';
import type { Box, Detection } from './non-maximum-suppression.js';

const boxes: fc.Arbitrary<Box> = fc
  .record({
    left: fc.integer({ min: -20, max: 60 }),
    top: fc.integer({ min: -20, max: 60 }),
    width: fc.nat({ max: 40 }),
    height: fc.nat({ max: 40 }),
  })
  .map(({ left, top, width, height }) => ({
    left,
    top,
    right: left + width,
    bottom: top + height,
  }));
const detections: fc.Arbitrary<Detection[]> = fc.array(
  fc.record({
    label: fc.constantFrom('0', '1', '2'),
    score: fc.double({ min: 0, max: 1, noNaN: true }),
    box: boxes,
  }),
  { maxLength: 30 },
);

test('boxes of whole pixels share as many as are counted one by one', { tags: 'random' }, () => {
  fc.assert(
    fc.property(boxes, boxes, (a, b) => {
      const inside = (box: Box, x: number, y: number): boolean =>
        x >= box.left && x < box.right && y >= box.top && y < box.bottom;
      let both = 0;
      let either = 0;
      for (let y = -20; y < 100; y++) {
        for (let x = -20; x < 100; x++) {
          if (inside(a, x, y) && inside(b, x, y)) both++;
          if (inside(a, x, y) || inside(b, x, y)) either++;
        }
      }
      expect(intersectionOverUnion(a, b)).toBe(either === 0 ? 0 : both / either);
    }),
    { numRuns: 50 },
  );
});

test(
  'kept boxes do not overlap, and dropped ones overlap a better kept one',
  { tags: 'random' },
  () => {
    fc.assert(
      fc.property(detections, fc.double({ min: 0, max: 1, noNaN: true }), (given, overlap) => {
        const kept = suppressNonMaxima(given, overlap);
        expect(kept.map(({ score }) => score)).toEqual(
          kept.map(({ score }) => score).sort((a, b) => b - a),
        );
        kept.forEach((a, i) =>
          kept
            .slice(i + 1)
            .forEach((b) =>
              expect(intersectionOverUnion(a.box, b.box)).toBeLessThanOrEqual(overlap),
            ),
        );
        for (const detection of given) {
          if (kept.includes(detection)) continue;
          expect(
            kept.some(
              ({ score, box }) =>
                score >= detection.score && intersectionOverUnion(box, detection.box) > overlap,
            ),
          ).toBe(true);
        }
        expect(suppressNonMaxima(kept, overlap)).toEqual(kept);
      }),
    );
  },
);

test('a box without an area overlaps nothing', () => {
  const empty = { left: 5, top: 5, right: 5, bottom: 9 };
  expect(areaOf(empty)).toBe(0);
  expect(intersectionOverUnion(empty, empty)).toBe(0);
});
