/**
 * Keeps the best of overlapping boxes: a detector finds the same object several times, in
 * neighbouring cells.
 */

/**
 * In pixels of a picture; `right` and `bottom` are the first column and row that do not belong to
 * it.
 */
export interface Box {
  readonly left: number;
  readonly top: number;
  readonly right: number;
  readonly bottom: number;
}

/** What a detector has found. */
export interface Detection {
  readonly label: string;
  /** From 0 to 1. */
  readonly score: number;
  readonly box: Box;
}

export function areaOf({ left, top, right, bottom }: Box): number {
  return Math.max(0, right - left) * Math.max(0, bottom - top);
}

/** The area that two boxes share, by the area that they cover together: 0 to 1. */
export function intersectionOverUnion(a: Box, b: Box): number {
  const width = Math.min(a.right, b.right) - Math.max(a.left, b.left);
  const height = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
  // Most have nothing in common.
  if (!(width > 0 && height > 0)) return 0;
  const shared = width * height;
  return shared / (areaOf(a) + areaOf(b) - shared);
}

/**
 * The detections without those that overlap a better one by more than `overlap` (intersection over
 * union), best first. Labels do not matter: two digits do not lie in one place.
 */
export function suppressNonMaxima(detections: readonly Detection[], overlap: number): Detection[] {
  const kept: Detection[] = [];
  for (const detection of [...detections].sort(byScore)) {
    if (!overlapsAny(kept, detection.box, overlap)) kept.push(detection);
  }
  return kept;
}

// Functions of their own, not made anew for each detection, as in digit-decoding.ts.

function byScore(a: Detection, b: Detection): number {
  return b.score - a.score;
}

function overlapsAny(kept: readonly Detection[], box: Box, overlap: number): boolean {
  for (const each of kept) if (intersectionOverUnion(each.box, box) > overlap) return true;
  return false;
}
