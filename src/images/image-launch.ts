/** Launches over images: blocks are along rows, images of a batch along z. */
import type { Work } from '../library/operation.js';
import type { KernelTensor } from '../tensor/index.js';
import { flat, imageOfResult } from './image.js';
import type { Image } from './image.js';

/** Threads of a block, along a row. */
export const BLOCK = 128;
/** Blocks along z that a grid has at most. */
export const MOST_IMAGES = 65535;

/** Gives the number of rows for each thread, a divisor of the height. */
export function rowsOfThread(height: number): number {
  return height % 4 === 0 ? 4 : height % 2 === 0 ? 2 : 1;
}

/** Calls `launch` for parts of the batches of at most {@link MOST_IMAGES} images. */
export function inLaunches(
  images: readonly Image[],
  launch: (parts: readonly Image[]) => void,
): void {
  const { batch } = images[0]!;
  for (let first = 0; first < batch; first += MOST_IMAGES) {
    launch(
      first === 0 && batch <= MOST_IMAGES
        ? images
        : images.map((image) =>
            imageOfResult(
              (image.tensor as { slice(...indices: unknown[]): unknown }).slice([
                first,
                Math.min(first + MOST_IMAGES, batch),
              ]) as KernelTensor,
            ),
          ),
    );
  }
}

/**
 * Gives the image, or a copy where its rows lie between those of the result, as for two regions of
 * one image: the check of a launch compares spans of memory.
 */
export function separate(work: Work, image: Image, out: Image): Image {
  if (image.tensor.buffer.memory !== out.tensor.buffer.memory) return image;
  const [a, b] = [image, out].map((each) => {
    const start = each.tensor.buffer.byteOffset + each.tensor.layout.offset * each.dtype.bytes;
    return { start, end: start + flat(each).byteLength };
  }) as [{ start: number; end: number }, { start: number; end: number }];
  if (a.start >= b.end || b.start >= a.end) return image;
  const copy = work.temporary(image.tensor.dtype, [...image.tensor.shape]);
  work.add(copy.copyFrom(image.tensor));
  return imageOfResult(copy);
}
