/**
 * From the detection's map to boxes around lines of text, as differentiable binarisation has it
 * (Liao, Wan, Yao, Chen and Bai, 2020): the model marks the middle of each line, shrunk, so that
 * neighbours do not touch; its box is grown back.
 */
import type { Placement } from 'async-cuda/images';

import type { Point, Size } from '../photograph.js';
import { RegionSearch } from './connected-regions.js';
import type { Region } from './connected-regions.js';
import { smallestRectangle } from './smallest-rectangle.js';
import type { TurnedRectangle } from './smallest-rectangle.js';

/** What stands for 1 in a map of bytes. */
export const MAP_WHITE = 255;
/** Above this score a pixel counts as text. */
const TEXT_THRESHOLD = 0.3;
/** What is below this in the mean is no line. */
const LEAST_SCORE = 0.6;
/** Pixels of the map, along the shorter side, before it is grown: less is noise. */
const LEAST_SIDE = 3;
/**
 * By how much a box is grown: this · area / perimeter on each side. The model was trained to shrink
 * by what this undoes.
 */
const GROWTH = 1.8;
/** A box that is this much taller than wide holds a line that runs down or up. */
const TALL = 1.5;

/** Where a line of text is: its width lies along the line, unless that is upright. */
export interface TextBox extends TurnedRectangle {
  /** The mean of the map over it, 0 to 1. */
  readonly score: number;
}

/**
 * Where text is on a map of `width` values a row, from 0 to {@link MAP_WHITE}: how likely the pixel
 * belongs to text.
 */
export function textSearch(width: number): RegionSearch {
  return new RegionSearch(width, TEXT_THRESHOLD * MAP_WHITE);
}

/**
 * The lines of text on one photograph, in pixels of it, from the top to the bottom.
 *
 * @param regions of {@link textSearch}
 * @param placement where the photograph lies in the map
 * @param rest is awaited after each: large ones take a millisecond
 */
export async function textBoxes(
  regions: readonly Region[],
  placement: Placement,
  photograph: Size,
  rest: () => Promise<void>,
): Promise<TextBox[]> {
  const boxes: TextBox[] = [];
  for (const region of regions) {
    const rectangle = smallestRectangle(outline(region));
    const score = region.sum / region.area / MAP_WHITE;
    if (score >= LEAST_SCORE && Math.min(rectangle.width, rectangle.height) >= LEAST_SIDE)
      boxes.push({ ...onPhotograph(grown(rectangle), placement, photograph), score });
    await rest();
  }
  return boxes.sort((a, b) => a.y - b.y || a.x - b.x);
}

/** The corners of its outermost pixels: all that its hull can be made of. */
function outline({ runs }: Region): Point[] {
  return runs.flatMap(({ y, start, end }) => [
    { x: start, y },
    { x: end, y },
    { x: start, y: y + 1 },
    { x: end, y: y + 1 },
  ]);
}

/** Larger by the same distance on all sides. */
export function grown(rectangle: TurnedRectangle): TurnedRectangle {
  const { width, height } = rectangle;
  const distance = (GROWTH * width * height) / (2 * (width + height));
  return { ...rectangle, width: width + 2 * distance, height: height + 2 * distance };
}

/**
 * A letterbox keeps proportions but for the rounding of its size to pixels, which is smaller than
 * the boxes are exact.
 */
function onPhotograph(
  rectangle: TurnedRectangle,
  placement: Placement,
  photograph: Size,
): TurnedRectangle {
  const [scaleX, scaleY] = [
    photograph.width / placement.width,
    photograph.height / placement.height,
  ];
  const scale = (scaleX + scaleY) / 2;
  return {
    x: (rectangle.x - placement.left) * scaleX,
    y: (rectangle.y - placement.top) * scaleY,
    width: rectangle.width * scale,
    height: rectangle.height * scale,
    angle: rectangle.angle,
  };
}

/**
 * The ways in which a box's line may run: along its width, and, where it is tall, down or up, which
 * only its reading decides: it may also be a single "1". Each is the same rectangle with its width
 * along the line.
 */
export function directionsOf(box: TurnedRectangle): TurnedRectangle[] {
  const { width, height, angle } = box;
  if (height < TALL * width) return [box];
  return [
    box,
    ...[1, -1].map((quarter) => ({
      ...box,
      width: height,
      height: width,
      angle: angle + (quarter * Math.PI) / 2,
    })),
  ];
}
