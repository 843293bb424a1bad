/**
 * Every stage of the pipeline in plain TypeScript, one pixel after the other.
 *
 * It defines the result: integer where the kernel is integer, f32 with the kernel's roundings in
 * the kernel's order elsewhere. A device that disagrees in one byte is wrong.
 */
import { fmaf } from './fma.js';
import { BLUR_RADIUS, gaussianWeights } from './gaussian.js';
import type { Image } from './image.js';

/** What the pipeline computes, all `height` × `width` bytes but the histogram. */
export interface StageImages {
  readonly grey: Uint8Array;
  readonly blurred: Uint8Array;
  readonly edges: Uint8Array;
  /** How many pixels of `grey` have each of the 256 levels. */
  readonly histogram: Uint32Array;
  readonly equalised: Uint8Array;
}

export function referenceStages(image: Image): StageImages {
  const { width, height } = image;
  const grey = greyOf(image.data);
  const blurred = blurColumns(blurRows(grey, width, height), width, height);
  const edges = sobel(blurred, width, height);
  const histogram = histogramOf(grey);
  const equalised = grey.map(lookUp(equaliseTable(histogram, grey.length)));
  return { grey, blurred, edges, histogram, equalised };
}

export function greyOf(rgb: Uint8Array): Uint8Array {
  const grey = new Uint8Array(rgb.length / 3);
  for (let i = 0; i < grey.length; i++) {
    grey[i] = (77 * rgb[3 * i]! + 150 * rgb[3 * i + 1]! + 29 * rgb[3 * i + 2]! + 128) >> 8;
  }
  return grey;
}

export function blurRows(grey: Uint8Array, width: number, height: number): Float32Array {
  const weights = gaussianWeights();
  const out = new Float32Array(grey.length);
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      let sum = 0;
      for (let k = 0; k < weights.length; k++) {
        sum = fmaf(weights[k]!, grey[y * width + clamp(x + k - BLUR_RADIUS, width)]!, sum);
      }
      out[y * width + x] = sum;
    }
  }
  return out;
}

export function blurColumns(rows: Float32Array, width: number, height: number): Uint8Array {
  const weights = gaussianWeights();
  const out = new Uint8Array(rows.length);
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      let sum = 0;
      for (let k = 0; k < weights.length; k++) {
        sum = fmaf(weights[k]!, rows[clamp(y + k - BLUR_RADIUS, height) * width + x]!, sum);
      }
      out[y * width + x] = Math.min(roundToEven(sum), 255);
    }
  }
  return out;
}

export function sobel(grey: Uint8Array, width: number, height: number): Uint8Array {
  const out = new Uint8Array(grey.length);
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const at = (dx: number, dy: number): number =>
        grey[clamp(y + dy, height) * width + clamp(x + dx, width)]!;
      const gx = at(1, -1) + 2 * at(1, 0) + at(1, 1) - at(-1, -1) - 2 * at(-1, 0) - at(-1, 1);
      const gy = at(-1, 1) + 2 * at(0, 1) + at(1, 1) - at(-1, -1) - 2 * at(0, -1) - at(1, -1);
      // Rounding sqrt to f64 and then to f32 gives the correctly rounded f32: 53 ≥ 2 × 24 + 2.
      out[y * width + x] = Math.min(roundToEven(Math.fround(Math.sqrt(gx * gx + gy * gy))), 255);
    }
  }
  return out;
}

export function histogramOf(grey: Uint8Array): Uint32Array {
  const bins = new Uint32Array(256);
  for (const level of grey) bins[level]!++;
  return bins;
}

export function equaliseTable(histogram: Uint32Array, count: number): Uint8Array {
  const darkest = histogram.find((pixels) => pixels > 0) ?? count;
  const range = count - darkest;
  let cumulative = 0;
  return Uint8Array.from(histogram, (pixels, level) => {
    cumulative += pixels;
    const above = Math.max(cumulative - darkest, 0);
    // Exact: 255 × count stays below 2^53, and the quotient of two such integers is never rounded
    // up to the next one.
    return range === 0 ? level : Math.floor((255 * above + Math.floor(range / 2)) / range);
  });
}

function lookUp(table: Uint8Array): (level: number) => number {
  return (level) => table[level]!;
}

/** The nearest coordinate inside the image. */
function clamp(coordinate: number, size: number): number {
  return Math.min(Math.max(coordinate, 0), size - 1);
}

/** To the nearest integer, ties to the even one, as `cvt.rni` does; for values from 0 to 2^31. */
function roundToEven(value: number): number {
  const floor = Math.floor(value);
  const fraction = value - floor;
  return fraction > 0.5 || (fraction === 0.5 && floor % 2 === 1) ? floor + 1 : floor;
}
