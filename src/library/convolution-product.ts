/** Convolutions as products on tensor cores: layouts, the choice of tiles, and the launch. */
import { beginsAt } from '../tensor/alignment.js';
import { Tensor } from '../tensor/index.js';
import type { KernelTensor } from '../tensor/index.js';
import { layoutOf, span } from '../tensor/layout.js';
import { finishArguments, finishForm } from './finish.js';
import type { Finish } from './finish.js';
import { Pixels } from '../kernels/pixels.js';
import type { PixelWindow } from '../core/tensor-map.js';
import type { Work } from './operation.js';
import { WIDE_FROM } from './product.js';
import { warpGroupConvolution } from './warp-group-convolution.js';
import { warpGroupPixels } from './warp-group-pixels.js';
import { COPY_ALIGNMENT, isByWarpGroups, oneOf, planFor } from './warp-group-matmul.js';
import type { WarpGroupPlan } from './warp-group-product.js';
import { LINE_BYTES, factorBytes } from './warp-group-tiles.js';

/** How weights are placed on images. */
export interface Placement {
  readonly down: number;
  readonly across: number;
  readonly top: number;
  readonly left: number;
  readonly dilationDown: number;
  readonly dilationAcross: number;
  readonly groups: number;
}

type Four = readonly [number, number, number, number];

/** Result channels, and elements of the common dimension, from which on tiles are worth it. */
const LEAST_RESULTS = 16;
const LEAST_DEPTHS = 16;

/** Elements of 16 bytes, at most. */
const MOST_RUN = 8;

/**
 * Whether warp groups compute the convolution of images [image, channel, row, column] with weights
 * [result, channel, row, column], where tensor cores may.
 */
export function isByProduct(
  x: KernelTensor,
  weights: KernelTensor,
  out: KernelTensor,
  { groups }: Placement,
): boolean {
  const [results, channels, rows, columns] = weights.shape as unknown as Four;
  const depths = channels * rows * columns;
  return (
    groups === 1 &&
    results >= LEAST_RESULTS &&
    depths >= LEAST_DEPTHS &&
    isByWarpGroups(x.device, x.dtype, [out.size, depths * MOST_RUN]) &&
    // A copy of the images has whole runs of channels.
    Math.max(reachOf(x), (x.size / channels) * (channels + MOST_RUN)) < WIDE_FROM
  );
}

/** Elements from the first to the last one in memory. */
function reachOf({ layout }: KernelTensor): number {
  const { start, end } = span(layout);
  return end - start;
}

/**
 * Queues the convolution. Images are [image, row, column, channel]; `weights` [result, row, column,
 * channel]; `out` is contiguous.
 */
export function convolveByProduct(
  work: Work,
  givenX: KernelTensor,
  givenWeights: KernelTensor,
  out: KernelTensor,
  placement: Placement,
  finish: Finish,
  given?: WarpGroupPlan,
): void {
  const x = inRuns(work, givenX, false);
  const weights = inRuns(work, givenWeights, true);
  const [, height, width, channels] = x.shape as unknown as Four;
  const [results, rows, columns] = weights.shape as unknown as Four;
  const [images, outHeight, outWidth] = out.shape as unknown as Four;
  const depths = rows * columns * channels;
  const pixels = images * outHeight * outWidth;
  const { multiprocessorCount } = out.device.properties;
  const window = windowOf(x, weights, out, placement);
  // Copies of pixels bring whole lines of channels.
  const line = LINE_BYTES / x.dtype.bytes;
  const multiplied = window ? rows * columns * Math.ceil(channels / line) * line : depths;
  const plan = given ?? planFor(pixels, results, multiplied, 1, multiprocessorCount, x.dtype, [1]);
  const launch = (window ? warpGroupPixels : warpGroupConvolution)({
    plan,
    dtype: x.dtype,
    out: out.dtype,
    copied: (results * out.dtype.bytes) % COPY_ALIGNMENT === 0 && beginsAt(out, COPY_ALIGNMENT),
    finish: finishForm(finish),
  });
  const tiles = Math.ceil(pixels / plan.rows) * Math.ceil(results / plan.columns);
  const [imageStride, rowStride, columnStride] = x.layout.strides as unknown as Four;
  const { down, across, top, left, dilationDown, dilationAcross } = placement;
  const factors = window
    ? {
        x: new Pixels(x, window),
        weights: weights
          .reshape([results, rows * columns, channels] as never)
          .permute([1, 0, 2] as never),
        rows,
      }
    : {
        x: new Tensor(x.buffer, layoutOf([reachOf(x)], [1], x.layout.offset), false),
        weights: weights.reshape([results, depths] as never),
        ...{ imageStride, rowStride, columnStride, height, width, depths },
      };
  work.add(
    launch(
      {
        out: out.reshape([1, pixels, results] as never),
        ...factors,
        ...finishArguments(finish, oneOf(x)),
        ...{ channels, columns, outHeight, outWidth, pixels, results },
        ...{ down, across, top, left, dilationDown, dilationAcross },
      },
      { grid: Math.min(multiprocessorCount, tiles), sharedBytes: factorBytes(plan) },
    ),
  );
}

/**
 * Limits of copies of pixels (CUDA driver API, cuTensorMapEncodeIm2col): corners of a window, how
 * far a copy is moved from its pixels, and steps.
 */
const MOST_CORNER = 127;
const MOST_OFFSET = 255;
const MOST_STEP = 8;

/** The window of copies of pixels; undefined where they cannot read the images, or gain little. */
function windowOf(
  x: KernelTensor,
  weights: KernelTensor,
  out: KernelTensor,
  { down, across, top, left, dilationDown, dilationAcross }: Placement,
): PixelWindow | undefined {
  const [, height, width, channels] = x.shape as unknown as Four;
  const [, rows, columns] = weights.shape as unknown as Four;
  const [, outHeight, outWidth] = out.shape as unknown as Four;
  // The pixels of the first weight end after the last result's.
  const upper = [
    (outHeight - 1) * down - top + 1 - height,
    (outWidth - 1) * across - left + 1 - width,
  ] as const;
  const isWithin =
    Math.max(down, across) <= MOST_STEP &&
    Math.max(top, left, ...upper.map(Math.abs)) <= MOST_CORNER &&
    Math.max((rows - 1) * dilationDown, (columns - 1) * dilationAcross) <= MOST_OFFSET &&
    // A map has no stride of zero.
    x.layout.strides.slice(0, 3).every((stride, axis) => stride > 0 || x.shape[axis] === 1);
  // Half of a line at least is not zeros.
  return isWithin && channels * x.dtype.bytes * 2 >= LINE_BYTES
    ? { lower: [-top, -left], upper, steps: [down, across] }
    : undefined;
}

/**
 * Gives the tensor, or a copy, whose channels are adjacent, in runs of 16 bytes; with `dense`, all
 * of it is contiguous. A copy's channels after the last one are zeros.
 */
function inRuns(work: Work, tensor: KernelTensor, dense: boolean): KernelTensor {
  const { shape, strides } = tensor.layout;
  const run = COPY_ALIGNMENT / tensor.dtype.bytes;
  const channels = shape[3]!;
  const isInRuns =
    strides[3] === 1 &&
    channels % run === 0 &&
    beginsAt(tensor, COPY_ALIGNMENT) &&
    strides.slice(0, 3).every((stride) => stride >= 0 && stride % run === 0);
  if (isInRuns && (!dense || tensor.isContiguous)) return tensor;
  const more = Math.ceil(channels / run) * run;
  const copy = work.temporary(tensor.dtype, [
    ...shape.slice(0, 3),
    more,
  ]) as unknown as KernelTensor;
  if (more !== channels) work.add((copy as unknown as Tensor<'f32'>).fill(0));
  const part = new Tensor(
    copy.buffer,
    layoutOf([...shape], copy.layout.strides, copy.layout.offset),
    false,
  ) as unknown as KernelTensor;
  work.add(part.copyFrom(tensor));
  return copy;
}
