/** Planar images for NPP: a list with the address of each plane. */
import type { MemoryPlace } from '../../core/index.js';
import type { ImageName } from '../image.js';
import type { PlanarImage } from '../planar-image.js';
import { pixels } from './step.js';
import type { Element } from './functions.js';

/** The element types by which planes are moved: NPP has no functions for f16. */
export const PLANAR_FORM: Readonly<Record<ImageName, Element>> = {
  u8: '8u',
  u16: '16u',
  f16: '16u',
  f32: '32f',
};

/** The first pixel of each plane of image `index`. */
export function planesOf(image: PlanarImage, index: number): MemoryPlace[] {
  const { buffer, byteOffset } = pixels(image, index);
  return Array.from({ length: image.channels }, (_, plane) => ({
    buffer,
    byteOffset: byteOffset! + plane * image.planePitch * image.dtype.bytes,
  }));
}
