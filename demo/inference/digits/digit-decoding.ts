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
 * @param scores 10 maps of {@link CELLS}² cells, from 0 to 1: that the middle of this digit lies in the cell
 * @param distances 4 maps: from the cell's middle to the left, the top, the right and the bottom of the digit, in pixels of the input
 * @param placement where the photograph lies in the input
 */
export function decodeDigits(scores: Float32Array, distances: Float32Array, placement: Placement, photograph: Extent): Detection[] {
  const cells = CELLS * CELLS;
  const found = placesOf(scores, LABELS.length * cells).sort((a, b) => scores[b]! - scores[a]!);
  const candidates = found.slice(0, MOST_CANDIDATES).map((at) => {
    const score = scores[at]!;
    const cell = at % cells;
    const x = ((cell % CELLS) + 0.5) * STRIDE;
    const y = (Math.floor(cell / CELLS) + 0.5) * STRIDE;
    const side = (i: number): number => distances[i * cells + cell]!;
    return { label: LABELS[Math.floor(at / cells)]!, score, box: { left: x - side(0), top: y - side(1), right: x + side(2), bottom: y + side(3) } };
  });
  return suppressNonMaxima(candidates, MOST_OVERLAP)
    .map(({ label, score, box }) => ({ label, score, box: onPhotograph(box, placement, photograph) }))
    .filter(({ box }) => box.right > box.left && box.bottom > box.top);
}

/** Where scores are that count. Of 40,960 a few dozen are: the loop that passes over the others is all that takes time. */
function placesOf(scores: Float32Array, end: number): number[] {
  const places: number[] = [];
  for (let at = 0; at < end; at++) if (scores[at]! >= LEAST_SCORE) places.push(at);
  return places;
}

/** A box of the model's input, on the photograph that was put into it. */
function onPhotograph(box: Box, { left, top, width, height }: Placement, photograph: Extent): Box {
  const column = (x: number): number => Math.min(photograph.width, Math.max(0, ((x - left) * photograph.width) / width));
  const row = (y: number): number => Math.min(photograph.height, Math.max(0, ((y - top) * photograph.height) / height));
  return { left: column(box.left), top: row(box.top), right: column(box.right), bottom: row(box.bottom) };
}
