/** From a line's straightened picture to where it lies on the photograph. */
import type { TurnedRectangle } from './smallest-rectangle.js';

/**
 * The matrix that takes pixels of a picture of `width` × `height` to those of the photograph that
 * the rectangle covers, both counted from the middle of the first pixel: for `warpAffine(…, {
 * inverse: true })`.
 */
export function lineMatrix(
  { x, y, width: along, height: across, angle }: TurnedRectangle,
  width: number,
  height: number,
): [[number, number, number], [number, number, number]] {
  const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
  const [u, v] = [along / width, across / height];
  // Of the picture's middle, which is the rectangle's.
  const [middleX, middleY] = [(width - 1) / 2, (height - 1) / 2];
  return [
    [u * cos, -v * sin, x - 0.5 - u * cos * middleX + v * sin * middleY],
    [u * sin, v * cos, y - 0.5 - u * sin * middleX - v * cos * middleY],
  ];
}
