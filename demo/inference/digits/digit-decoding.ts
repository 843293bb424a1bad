/** What the model's outputs mean: digits and their boxes, in pixels of the photograph. */
import type { Placement } from 'async-cuda/npp';

import { suppressNonMaxima } from './non-maximum-suppression.js';
import type { Box, Detection } from './non-maximum-suppression.js';

/** Pixels of the model's input, along each side. */
export const INPUT_SIZE = 256;
/** Cells of its outputs, along each side: each stands for 4 × 4 pixels. */
export const CELLS = 64;
/** Its scores, one map for each. */
export const LABELS = ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9'] as const;

const STRIDE = INPUT_SIZE / CELLS;
const LEAST_SCORE = 0.42;
const MOST_OVERLAP = 0.3;
/** Candidates that overlaps are looked at of: far more than there is room for, so that noise costs no time. */
const MOST_CANDIDATES = 512;

/** Extents of a picture. */
export interface Extent {
  readonly width: number;
  readonly height: number;
}

/**
 * The digits of one photograph.
 *
 * @param scores of {@link CELLS}² cells the greatest of all digits, from 0 to 1: that its middle lies in the cell. The others' boxes would be the same
 * @param digits which digit that is
 * @param distances 4 maps: from the cell's middle to the left, the top, the right and the bottom of the digit, in pixels of the input
 * @param placement where the photograph lies in the input
 */
export function decodeDigits(scores: Float32Array, digits: ArrayLike<number>, distances: Float32Array, placement: Placement, photograph: Extent): Detection[] {
  const cells = CELLS * CELLS;
  const found: number[] = [];
  for (let cell = 0; cell < cells; cell++) if (scores[cell]! >= LEAST_SCORE) found.push(cell);
  found.sort((a, b) => scores[b]! - scores[a]!);
  const candidates = found.slice(0, MOST_CANDIDATES).map((cell) => ({ label: LABELS[digits[cell]!]!, score: scores[cell]!, box: boxOf(cell, distances) }));
  return suppressNonMaxima(candidates, MOST_OVERLAP)
    .map(({ label, score, box }) => ({ label, score, box: onPhotograph(box, placement, photograph) }))
    .filter(({ box }) => box.right > box.left && box.bottom > box.top);
}

// Functions of their own, not made anew for each candidate: a compiler that keeps their names gives each of them its name, which took half of all this.

function boxOf(cell: number, distances: Float32Array): Box {
  const cells = CELLS * CELLS;
  const x = ((cell % CELLS) + 0.5) * STRIDE;
  const y = (Math.floor(cell / CELLS) + 0.5) * STRIDE;
  return { left: x - distances[cell]!, top: y - distances[cells + cell]!, right: x + distances[2 * cells + cell]!, bottom: y + distances[3 * cells + cell]! };
}

/** A box of the model's input, on the photograph that was put into it. */
function onPhotograph(box: Box, { left, top, width, height }: Placement, photograph: Extent): Box {
  return {
    left: within(((box.left - left) * photograph.width) / width, photograph.width), top: within(((box.top - top) * photograph.height) / height, photograph.height),
    right: within(((box.right - left) * photograph.width) / width, photograph.width), bottom: within(((box.bottom - top) * photograph.height) / height, photograph.height),
  };
}

function within(value: number, extent: number): number {
  return Math.min(extent, Math.max(0, value));
}
