/** Regions of images, as views. */
import { checkInteger, checkOptions, invalid } from '../ground/arguments.js';
import type { Tensor } from '../tensor/index.js';
import { imageOf } from './image.js';
import type { ImageName } from './image.js';

/** A rectangle of pixels; x counts columns from the left, y rows from the top. */
export interface Region {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/**
 * Gives the view of a rectangle of an image, or of each image of a batch. It copies nothing, and is
 * closed with its image. Operations take it like any image, also as `out`.
 *
 * @throws CudaArgumentError where the region is empty or not inside the image
 *
 * @example
 * ```ts
 * using image = await device.zeros(u8, [480, 640, 3]);
 * const region = crop(image, { x: 100, y: 50, width: 320, height: 240 });
 * console.log(region.shape, region.isView); // [ 240, 320, 3 ] true
 * ```
 */
export function crop<D extends ImageName>(image: Tensor<D>, region: Region): Tensor<D, number[]> {
  const { height, width, batched } = imageOf('crop', 'image', image);
  checkRegion('region', region, { width, height });
  const rows = [region.y, region.y + region.height] as const;
  const columns = [region.x, region.x + region.width] as const;
  const indices = batched ? [[null, null], rows, columns] : [rows, columns];
  return (image as unknown as { slice(...indices: unknown[]): unknown }).slice(
    ...indices,
  ) as Tensor<D, number[]>;
}

/** @throws CudaArgumentError for a rectangle that is not inside an image of this size */
export function checkRegion(
  argument: string,
  region: unknown,
  { width, height }: { readonly width: number; readonly height: number },
): asserts region is Region {
  checkOptions(argument, region, ['x', 'y', 'width', 'height']);
  if (region === undefined) throw invalid(argument, 'a region { x, y, width, height }', region);
  const given = region as Region;
  checkInteger(`${argument}.x`, given.x, 0, width - 1, 'pixels');
  checkInteger(`${argument}.y`, given.y, 0, height - 1, 'pixels');
  checkInteger(
    `${argument}.width`,
    given.width,
    1,
    width - given.x,
    `pixels; the image has ${width} columns`,
  );
  checkInteger(
    `${argument}.height`,
    given.height,
    1,
    height - given.y,
    `pixels; the image has ${height} rows`,
  );
}
