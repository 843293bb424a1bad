/**
 * Frames of YUV 4:2:0 in one tensor: luma, and two chroma channels of half its width and height.
 */
import { u8 } from '../core/index.js';
import { CudaArgumentError } from '../core/index.js';
import { invalid } from '../ground/arguments.js';
import { checkTensor } from '../library/operation.js';
import type { KernelTensor } from '../tensor/index.js';
import { MOST_EXTENT } from './image.js';
import type { Image, NewTensor } from './image.js';

/**
 * `i420` (yuv420p) has a plane of Y, one of U and one of V. `nv12` has a plane of Y, and one with
 * pairs of U and V.
 */
export type YuvFormat = 'i420' | 'nv12';

/** A frame as an image of one channel: its rows are those of luma, and half as many of chroma. */
export interface YuvFrame extends Image {
  /** Rows of luma. */
  readonly rows: number;
}

/**
 * Checks a tensor and gives it as a frame: [rows · 3/2, columns] of u8, or a batch of them.
 *
 * @throws CudaArgumentError for what is no frame, also for odd sizes; CudaDisposedError
 */
export function yuvFrameOf(
  operation: string,
  argument: string,
  format: YuvFormat,
  value: unknown,
): YuvFrame {
  checkTensor(operation, argument, value);
  const wanted = `a frame of ${format}, for ${operation}(…)`;
  if (value.dtype !== u8) throw invalid(argument, `${wanted}: a Tensor of u8`, value);
  const { rank, shape, strides } = value;
  if (rank !== 2 && rank !== 3)
    throw invalid(
      argument,
      `${wanted}: a Tensor of [height · 3/2, width] or [images, height · 3/2, width]`,
      value,
      'Write reshape([…]): the rows of chroma follow those of luma.',
    );
  const [height, width] = shape.slice(-2) as [number, number];
  const batch = rank === 3 ? shape[0]! : 1;
  if (batch === 0) throw invalid(argument, `${wanted}: at least one frame in the batch`, value);
  if (height === 0 || width === 0)
    throw invalid(argument, `${wanted}: at least two rows and two columns`, value);
  if (width % 2 !== 0)
    throw invalid(
      argument,
      `${wanted}: an even number of columns, since two share their chroma`,
      value,
    );
  if (height % 3 !== 0)
    throw invalid(
      argument,
      `${wanted}: an even number of rows of luma and half as many of chroma, in all a ` +
        'multiple of 3',
      value,
    );
  if (height > MOST_EXTENT * 1.5 || width > MOST_EXTENT)
    throw invalid(argument, `${wanted}: at most ${MOST_EXTENT} rows and columns`, value);
  const rowPitch = strides.at(-2)!;
  const imagePitch = batch === 1 ? height * rowPitch : strides[0]!;
  if (
    strides.at(-1) !== 1 ||
    rowPitch < width ||
    imagePitch < 0 ||
    (format === 'i420' && rowPitch !== width)
  ) {
    throw invalid(
      argument,
      format === 'i420'
        ? `${wanted}: rows without gaps between them`
        : `${wanted}: a view in which the elements of a row are adjacent, and rows follow ` +
            'one another',
      value,
      'Make it contiguous() first.',
    );
  }
  return {
    tensor: value,
    dtype: u8,
    batch,
    height,
    width,
    channels: 1,
    batched: rank === 3,
    rowPitch,
    imagePitch,
    rows: (height / 3) * 2,
  };
}

/**
 * Gives the place of the frame of an image.
 *
 * @throws CudaArgumentError for an image of odd sizes, and an `out` of another form
 */
export function yuvResultFor(
  operation: string,
  argument: string,
  format: YuvFormat,
  { batch, batched, height, width }: Image,
  out: unknown,
): NewTensor | KernelTensor {
  if (height % 2 !== 0 || width % 2 !== 0) {
    throw new CudaArgumentError(
      argument,
      `${argument}: expected an even number of rows and columns, for ${operation}(…), since ` +
        `2 × 2 pixels share their chroma, got ${width} × ${height}. Cut it with crop(…).`,
    );
  }
  const shape = [...(batched ? [batch] : []), (height / 2) * 3, width];
  if (out === undefined) return { dtype: u8, shape };
  const given = yuvFrameOf(operation, 'options.out', format, out);
  if (given.batch !== batch || given.rows !== height || given.width !== width)
    throw invalid(
      'options.out',
      `a Tensor of u8 and [${shape.join(', ')}], for ${operation}(…)`,
      given.tensor,
    );
  given.tensor.checkWritable(`options.out of ${operation}(…)`);
  return given.tensor;
}
