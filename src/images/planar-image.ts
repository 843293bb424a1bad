/**
 * Planar images, as networks take them: tensors of [channels, height, width] or [images, channels,
 * height, width].
 */
import { DTYPES } from '../core/index.js';
import type { DType } from '../core/index.js';
import { invalid } from '../ground/arguments.js';
import { checkTensor } from '../library/operation.js';
import type { KernelTensor } from '../tensor/index.js';
import { CHANNELS, IMAGE_NAMES, MOST_EXTENT } from './image.js';
import type { Channels, Image, ImageName, NewTensor } from './image.js';

/** A planar image. Its `rowPitch` is the pitch of rows within a plane. */
export interface PlanarImage extends Image {
  readonly planePitch: number;
}

/**
 * Checks a tensor and gives it as a planar image: pixels of a row are adjacent; rows, planes and
 * images may have any pitch.
 *
 * @throws CudaArgumentError for what is no planar image; CudaDisposedError
 */
export function planarImageOf(operation: string, argument: string, value: unknown): PlanarImage {
  checkTensor(operation, argument, value);
  const { dtype, shape, strides, rank } = value;
  const wanted = `a planar image, for ${operation}(…)`;
  if (!(IMAGE_NAMES as readonly string[]).includes(dtype.name))
    throw invalid(argument, `${wanted}: a Tensor of ${IMAGE_NAMES.join(', ')}`, value);
  if (rank !== 3 && rank !== 4)
    throw invalid(
      argument,
      `${wanted}: a Tensor of [channels, height, width] or [images, channels, height, width]`,
      value,
      rank === 2 ? 'Write unsqueeze(0) for one channel.' : '',
    );
  const [channels, height, width] = shape.slice(-3) as [number, number, number];
  const batch = rank === 4 ? shape[0]! : 1;
  if (!(CHANNELS as readonly number[]).includes(channels))
    throw invalid(
      argument,
      `${wanted}: 1, 3 or 4 planes`,
      value,
      (CHANNELS as readonly number[]).includes(shape.at(-1)!)
        ? 'Its channels come last: it is a packed image.'
        : '',
    );
  if (batch === 0) throw invalid(argument, `${wanted}: at least one image in the batch`, value);
  if (height === 0 || width === 0)
    throw invalid(argument, `${wanted}: at least one row and one column`, value);
  if (height > MOST_EXTENT || width > MOST_EXTENT)
    throw invalid(argument, `${wanted}: at most ${MOST_EXTENT} rows and columns`, value);
  const [planes, rows, columns] = strides.slice(-3) as [number, number, number];
  const rowPitch = height === 1 ? width : rows;
  const planePitch = channels === 1 ? height * rowPitch : planes;
  const imagePitch = batch === 1 ? channels * planePitch : strides[0]!;
  if ((width > 1 && columns !== 1) || rowPitch < 0 || planePitch < 0 || imagePitch < 0)
    throw invalid(
      argument,
      `${wanted}: a view in which the pixels of a row are adjacent, and rows follow one another`,
      value,
      'Make it contiguous() first.',
    );
  return {
    tensor: value,
    dtype: dtype as DType<ImageName>,
    batch,
    height,
    width,
    channels: channels as Channels,
    batched: rank === 4,
    rowPitch,
    planePitch,
    imagePitch,
  };
}

/** `resultFor` for a planar result. @throws CudaArgumentError for an `out` of another form */
export function planarResultFor(
  operation: string,
  image: Pick<Image, 'batch' | 'batched' | 'height' | 'width'>,
  dtypeName: ImageName,
  channels: Channels,
  out: unknown,
): NewTensor | KernelTensor {
  const dtype = DTYPES[dtypeName];
  const { batch, batched, height, width } = image;
  const shape = [...(batched ? [batch] : []), channels, height, width];
  if (out === undefined) return { dtype, shape };
  const given = planarImageOf(operation, 'options.out', out);
  if (
    given.dtype !== dtype ||
    given.batch !== batch ||
    given.channels !== channels ||
    given.height !== height ||
    given.width !== width
  ) {
    throw invalid(
      'options.out',
      `a Tensor of ${dtype.name} and [${shape.join(', ')}], for ${operation}(…)`,
      given.tensor,
    );
  }
  given.tensor.checkWritable(`options.out of ${operation}(…)`);
  return given.tensor;
}
