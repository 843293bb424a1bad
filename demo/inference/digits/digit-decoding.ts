/** What the model's outputs mean: digits and their boxes, in pixels of the photograph. */
import type { Placement } from 'async-cuda/images';

import { suppressNonMaxima } from './non-maximum-suppression.js';
import type { Box, Detection } from './non-maximum-suppression.js';

/** Pixels of the model's input, along each side. */
export const INPUT_SIZE = 256;
/** Cells of its outputs, along each side: each stands for 4 × 4 pixels. */
export const CELLS = 64;
/** Its scores, one map for each. */
export const LABELS = ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9'] as const;

const STRIDE = INPUT_SIZE / CELLS;
/** What is less sure is no digit. */
export const LEAST_SCORE = 0.42;
const MOST_OVERLAP = 0.3;
/**
 * Numbers of a candidate, and where among them its digit, its score and the distances to its sides
 * are. The first is its cell.
 */
export const NUMBERS = 7;
export const DIGIT = 1;
export const SCORE = 2;
export const SIDES = 3;
/**
 * Candidates that overlaps are looked at of: far more than there is room for, so that noise costs
 * no time.
 */
const MOST_CANDIDATES = 512;

/** Extents of a picture. */
export interface Extent {
  readonly width: number;
  readonly height: number;
}

/**
 * The digits of one photograph.
 *
 * @param candidates seven numbers for each cell that is sure enough, in any order: the cell; its
 *   digit, that with the greatest score (the others' boxes would be the same); the score, from 0 to
 *   1: that the digit's middle lies in the cell; and from the cell's middle the distances to the
 *   left, the top, the right and the bottom of the digit, in pixels of the input
 * @param placement where the photograph lies in the input
 */
export function decodeDigits(
  candidates: Float32Array,
  placement: Placement,
  photograph: Extent,
): Detection[] {
  const best = Array.from({ length: candidates.length / NUMBERS }, (_, i) => i * NUMBERS)
    .sort(
      (a, b) => candidates[b + SCORE]! - candidates[a + SCORE]! || candidates[a]! - candidates[b]!,
    )
    .slice(0, MOST_CANDIDATES);
  const detections = best.map((at) => ({
    label: LABELS[candidates[at + DIGIT]!]!,
    score: candidates[at + SCORE]!,
    box: boxOf(candidates, at),
  }));
  return suppressNonMaxima(detections, MOST_OVERLAP)
    .map(({ label, score, box }) => ({
      label,
      score,
      box: onPhotograph(box, placement, photograph),
    }))
    .filter(({ box }) => box.right > box.left && box.bottom > box.top);
}

// Functions of their own, not made anew for each candidate: a compiler that keeps their names gives
// each of them its name, which took half of all this.

function boxOf(candidates: Float32Array, at: number): Box {
  const cell = candidates[at]!;
  const x = ((cell % CELLS) + 0.5) * STRIDE;
  const y = (Math.floor(cell / CELLS) + 0.5) * STRIDE;
  return {
    left: x - candidates[at + SIDES]!,
    top: y - candidates[at + SIDES + 1]!,
    right: x + candidates[at + SIDES + 2]!,
    bottom: y + candidates[at + SIDES + 3]!,
  };
}

/** A box of the model's input, on the photograph that was put into it. */
function onPhotograph(box: Box, { left, top, width, height }: Placement, photograph: Extent): Box {
  return {
    left: within(((box.left - left) * photograph.width) / width, photograph.width),
    top: within(((box.top - top) * photograph.height) / height, photograph.height),
    right: within(((box.right - left) * photograph.width) / width, photograph.width),
    bottom: within(((box.bottom - top) * photograph.height) / height, photograph.height),
  };
}

function within(value: number, extent: number): number {
  return Math.min(extent, Math.max(0, value));
}
