/** Orientations of pictures, by EXIF. */
import type { DeviceOp } from '../../ops/index.js';
import type { Tensor } from '../../tensor/index.js';
import { mirror, rotateQuarters } from '../mirroring.js';
import type { Orientation } from './jpeg-header.js';

/**
 * The steps for each orientation: first the picture is mirrored (left and right exchanged), then
 * turned by quarters, counter-clockwise. EXIF 2.3, tag 0x0112.
 */
const TURNS: Readonly<Record<Orientation, readonly [mirrored: boolean, quarters: number]>> = {
  1: [false, 0],
  2: [true, 0],
  3: [false, 2],
  4: [true, 2],
  5: [true, 1],
  6: [false, 3],
  7: [true, 3],
  8: [false, 1],
};

/** Makes a new image in the orientation in which a viewer shows the picture. */
export function upright(
  image: Tensor<'u8', number[]>,
  orientation: Orientation,
): DeviceOp<Tensor<'u8', number[]>> {
  const [mirrored, quarters] = TURNS[orientation];
  const engine = { engine: 'own' } as const;
  if (!mirrored) return rotateQuarters(image, quarters, engine);
  const exchanged = mirror(image, 'horizontal', engine);
  return quarters === 0
    ? exchanged
    : exchanged.andThen((each) => rotateQuarters(each, quarters, engine));
}
