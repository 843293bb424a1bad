/** The place of an image in a letterbox. */
import { checkInteger, invalid } from '../ground/arguments.js';
import type { Placement } from './letterboxing-pixels.js';

/**
 * Gives the place of an image in a letterbox: as large as possible with its aspect ratio, in the
 * middle. The scale is the smaller of `width` / image width and `height` / image height. Sizes are
 * rounded to the nearest pixel, and are at least 1. Where margins differ, the one on the left or at
 * the top is a pixel smaller.
 *
 * @throws CudaArgumentError for a width or a height that is no whole number of at least 1
 *
 * @example
 * ```ts
 * const place = letterboxPlacement({ width: 1920, height: 1080 }, { width: 640, height: 640 });
 * console.log(place); // { left: 0, top: 140, width: 640, height: 360 }
 * ```
 */
export function letterboxPlacement(
  image: { readonly width: number; readonly height: number },
  box: { readonly width: number; readonly height: number },
): Placement {
  for (const [argument, size] of [
    ['image', image],
    ['box', box],
  ] as const) {
    if (typeof size !== 'object' || (size as unknown) === null)
      throw invalid(argument, 'an object with width and height', size);
    checkInteger(`${argument}.width`, size.width, 1, Number.MAX_SAFE_INTEGER, 'pixels');
    checkInteger(`${argument}.height`, size.height, 1, Number.MAX_SAFE_INTEGER, 'pixels');
  }
  // Products of integers are exact; quotients would be rounded.
  const wide = image.width * box.height >= image.height * box.width;
  const width = wide
    ? box.width
    : Math.max(1, Math.round((image.width * box.height) / image.height));
  const height = wide
    ? Math.max(1, Math.round((image.height * box.width) / image.width))
    : box.height;
  return {
    left: Math.floor((box.width - width) / 2),
    top: Math.floor((box.height - height) / 2),
    width,
    height,
  };
}
