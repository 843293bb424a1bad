/**
 * Brings an image to the size of a panel: averages areas to shrink, repeats pixels a whole number
 * of times to enlarge.
 */
import type { Image } from './image.js';

/**
 * The image within a box of `size` × `size` pixels, its proportions kept. Small images grow by a
 * whole factor, so that every pixel stays a square.
 */
export function fitWithin(image: Image, size: number): Image {
  const longest = Math.max(image.width, image.height);
  return longest > size
    ? shrink(image, size / longest)
    : enlarge(image, Math.floor(size / longest));
}

function enlarge(image: Image, factor: number): Image {
  if (factor === 1) return image;
  const width = image.width * factor;
  const height = image.height * factor;
  const data = new Uint8Array(width * height * 3);
  for (let y = 0, to = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const from = (Math.floor(y / factor) * image.width + Math.floor(x / factor)) * 3;
      data[to++] = image.data[from]!;
      data[to++] = image.data[from + 1]!;
      data[to++] = image.data[from + 2]!;
    }
  }
  return { width, height, data };
}

/** Every pixel is the mean of the area that it stands for, its border pixels counted in part. */
function shrink(image: Image, scale: number): Image {
  const width = Math.max(1, Math.round(image.width * scale));
  const height = Math.max(1, Math.round(image.height * scale));
  const columns = areas(image.width, width);
  const rows = areas(image.height, height);
  const data = new Uint8Array(width * height * 3);
  let to = 0;
  for (const row of rows) {
    for (const column of columns) {
      const sum = [0, 0, 0];
      for (let y = 0; y < row.weights.length; y++) {
        for (let x = 0; x < column.weights.length; x++) {
          const weight = row.weights[y]! * column.weights[x]!;
          const from = ((row.first + y) * image.width + column.first + x) * 3;
          for (let channel = 0; channel < 3; channel++)
            sum[channel]! += weight * image.data[from + channel]!;
        }
      }
      for (const value of sum) data[to++] = Math.round(value);
    }
  }
  return { width, height, data };
}

interface Area {
  readonly first: number;
  readonly weights: readonly number[];
}

/**
 * For each of `to` places on a line: the places among `from` that it covers, with weights that add
 * up to one.
 */
function areas(from: number, to: number): Area[] {
  const step = from / to;
  return Array.from({ length: to }, (_, i) => {
    const start = i * step;
    const end = Math.min((i + 1) * step, from);
    const first = Math.floor(start);
    const last = Math.max(Math.ceil(end) - 1, first);
    const weights = Array.from(
      { length: last - first + 1 },
      (_, k) => (Math.min(first + k + 1, end) - Math.max(first + k, start)) / (end - start),
    );
    return { first, weights };
  });
}
