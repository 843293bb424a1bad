/**
 * Images: tensors of [height, width, channels], or batches of them, [images, height, width,
 * channels]. Channels and the pixels of a row are adjacent; rows and images may have any pitch, so
 * that regions and images with padded rows are views.
 */
import { DTYPES } from '../core/index.js';
import type { KernelDType, DType } from '../core/index.js';
import { checkInteger, invalid } from '../ground/arguments.js';
import { checkTensor } from '../library/operation.js';
import { Tensor } from '../tensor/index.js';
import type { KernelTensor } from '../tensor/index.js';
import { layoutOf } from '../tensor/layout.js';
import { showShape } from '../tensor/shape.js';

/** dtypes of images. */
export type ImageName = 'u8' | 'u16' | 'f16' | 'f32';
/** Channels of a pixel. */
export type Channels = 1 | 3 | 4;

export const IMAGE_NAMES: readonly ImageName[] = ['u8', 'u16', 'f16', 'f32'];
export const CHANNELS: readonly Channels[] = [1, 3, 4];
/**
 * Rows and columns that an image has at most: products of two sizes, and of a size and a position,
 * fit in 32 bits.
 */
export const MOST_EXTENT = 2 ** 15;
/**
 * Elements of a span from which on indices, also those of threads after its end, do not fit in 32
 * bits.
 */
export const WIDE_FROM = 2 ** 31 - 2 ** 17;

/** A tensor of an image or a batch, read and checked. Distances are in elements. */
export interface Image {
  readonly tensor: KernelTensor;
  readonly dtype: DType<ImageName>;
  /** The number of images; 1 where the tensor has three axes. */
  readonly batch: number;
  readonly height: number;
  readonly width: number;
  readonly channels: Channels;
  /** Whether the tensor has four axes, and so results have four. */
  readonly batched: boolean;
  /** The pitch of rows; for an image of one row it is width · channels. */
  readonly rowPitch: number;
  /** The pitch of images; for one image it is height · rowPitch. */
  readonly imagePitch: number;
}

/**
 * Checks a tensor and gives it as an image.
 *
 * @param operation the operation's name, for errors
 * @param argument the argument's name, for errors
 * @throws CudaArgumentError for what is no tensor, another dtype, rank or number of channels, an
 *   empty batch, an empty image, and where pixels of a row are not adjacent; CudaDisposedError
 */
export function imageOf(operation: string, argument: string, value: unknown): Image {
  checkTensor(operation, argument, value);
  const { dtype, shape, strides, rank } = value;
  const wanted = (): string => `an image, for ${operation}(…)`;
  if (!(IMAGE_NAMES as readonly string[]).includes(dtype.name)) {
    throw invalid(
      argument,
      `${wanted()}: a Tensor of ${IMAGE_NAMES.join(', ')}`,
      value,
      `Convert it with convert(${dtype.name === 'f64' || dtype.name === 'bf16' ? 'f32' : 'u8'}).`,
    );
  }
  if (rank !== 3 && rank !== 4) {
    throw invalid(
      argument,
      `${wanted()}: a Tensor of [height, width, channels] or [images, height, width, channels]`,
      value,
      rank === 2 ? 'Write unsqueeze(-1) for one channel.' : '',
    );
  }
  const height = shape[rank - 3]!;
  const width = shape[rank - 2]!;
  const channels = shape[rank - 1]!;
  const batch = rank === 4 ? shape[0]! : 1;
  if (!(CHANNELS as readonly number[]).includes(channels)) {
    throw invalid(
      argument,
      `${wanted()}: 1, 3 or 4 channels in the last axis`,
      value,
      (CHANNELS as readonly number[]).includes(shape.at(-3)!)
        ? 'Its planes come first: write toPacked(…).'
        : '',
    );
  }
  if (batch === 0) throw invalid(argument, `${wanted()}: at least one image in the batch`, value);
  if (height === 0 || width === 0)
    throw invalid(argument, `${wanted()}: at least one row and one column`, value);
  if (height > MOST_EXTENT || width > MOST_EXTENT)
    throw invalid(
      argument,
      `${wanted()}: at most ${MOST_EXTENT} rows and columns`,
      value,
      'Cut it into parts with crop(…).',
    );
  const rowPitch = height === 1 ? width * channels : strides[rank - 3]!;
  const imagePitch = batch === 1 ? height * rowPitch : strides[0]!;
  if (
    (channels > 1 && strides[rank - 1] !== 1) ||
    (width > 1 && strides[rank - 2] !== channels) ||
    rowPitch < 0 ||
    imagePitch < 0
  ) {
    throw invalid(
      argument,
      `${wanted()}: a view in which the pixels of a row are adjacent, channels within them, and ` +
        'rows follow one another',
      `strides ${showShape(strides)} of ${showShape(shape)}`,
      'Make it contiguous() first.',
    );
  }
  return {
    tensor: value,
    dtype: dtype as DType<ImageName>,
    batch,
    height,
    width,
    channels: channels as Channels,
    batched: rank === 4,
    rowPitch,
    imagePitch,
  };
}

/** The description of a tensor that is allocated later. */
export interface NewTensor {
  readonly dtype: KernelDType;
  readonly shape: readonly number[];
}

/** Properties of a result that differ from those of the image that it is made of. */
export interface ImageChanges {
  readonly height?: number;
  readonly width?: number;
  readonly channels?: Channels;
  readonly dtype?: ImageName;
}

/**
 * Gives the place of the result: `out`, a tensor or view that is checked here, or a new contiguous
 * tensor with as many axes as `image` has.
 *
 * @throws CudaArgumentError where `out` is no image of that size, number, dtype and channels, or
 *   must not be written
 */
export function resultFor(
  operation: string,
  image: Image,
  changes: ImageChanges,
  out: unknown,
): NewTensor | KernelTensor {
  const { height = image.height, width = image.width, channels = image.channels } = changes;
  const dtype = changes.dtype === undefined ? image.dtype : DTYPES[changes.dtype];
  const { batch } = image;
  if (out === undefined)
    return {
      dtype,
      shape: image.batched ? [batch, height, width, channels] : [height, width, channels],
    };
  const given = imageOf(operation, 'options.out', out);
  if (
    given.dtype !== dtype ||
    given.batch !== batch ||
    given.height !== height ||
    given.width !== width ||
    given.channels !== channels
  ) {
    throw invalid(
      'options.out',
      `a Tensor of ${dtype.name} and [${image.batched ? `${batch}, ` : ''}${height}, ` +
        `${width}, ${channels}], for ${operation}(…)`,
      given.tensor,
    );
  }
  given.tensor.checkWritable(`options.out of ${operation}(…)`);
  return given.tensor;
}

/** Checks a number of rows or columns of a result. */
export function checkExtent(argument: string, value: unknown): asserts value is number {
  checkInteger(argument, value, 1, MOST_EXTENT, 'pixels');
}

/** @throws CudaArgumentError for a value that is no list, and for an empty list */
export function checkImageList(
  operation: string,
  images: unknown,
): asserts images is readonly unknown[] {
  if (!Array.isArray(images) || images.length === 0)
    throw invalid('images', `a list of at least one image, for ${operation}(…)`, images);
}

/**
 * Checks images of any sizes, for an operation that makes a batch of them.
 *
 * @param single the operation that takes a batch, for errors
 * @throws CudaArgumentError for values that are no images, batches, and images of different dtypes
 *   or channels
 */
export function imagesOf(
  operation: string,
  single: string,
  values: readonly unknown[],
): readonly Image[] {
  const images = values.map((value, n) => {
    const image = imageOf(operation, `images[${n}]`, value);
    if (image.batch !== 1)
      throw invalid(
        `images[${n}]`,
        `one image, for ${operation}(…)`,
        value,
        `A batch takes ${single}(…).`,
      );
    return image;
  });
  [...images].forEach((image, n) => {
    checkSameForm(operation, `images[${n}]`, image, images[0]!, 'images[0]');
  });
  return images;
}

/** @throws CudaArgumentError for images of different dtypes or numbers of channels */
export function checkSameForm(
  operation: string,
  argument: string,
  image: Image,
  like: Image,
  likeArgument: string,
): void {
  if (image.dtype === like.dtype && image.channels === like.channels) return;
  throw invalid(
    argument,
    `an image of ${like.dtype.name} with ${like.channels} ` +
      `${like.channels === 1 ? 'channel' : 'channels'} as ${likeArgument} is, for ` +
      `${operation}(…)`,
    image.tensor,
    image.dtype === like.dtype ? '' : `Convert it with convert(${like.dtype.name}).`,
  );
}

/** Gives a result as an image. */
export function imageOfResult(tensor: KernelTensor): Image {
  return imageOf('image', 'result', tensor);
}

/**
 * Gives the memory from an image's first element to its last as a tensor with one axis, with the
 * gaps between rows: kernels index it by pitches.
 */
export function flat({
  tensor,
  batch,
  height,
  width,
  channels,
  rowPitch,
  imagePitch,
}: Image): KernelTensor {
  const length = (batch - 1) * imagePitch + (height - 1) * rowPitch + width * channels;
  return new Tensor(tensor.buffer, layoutOf([length], [1], tensor.layout.offset), false);
}

/**
 * Whether indices of one of the spans do not fit in 32 bits: pitches are then i64, and so are
 * numbers that are computed of them.
 */
export function isWideSpan(images: readonly Image[]): boolean {
  return images.some((image) => flat(image).size >= WIDE_FROM);
}
