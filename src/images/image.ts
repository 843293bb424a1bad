/**
 * What an image is: a tensor of [height, width, channels], or a batch of them, [images, height,
 * width, channels]. Channels and the pixels of a row lie close; rows and images may be any distance
 * apart, so that a region is a view and a padded row is no obstacle.
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
 * Rows and columns of an image: products of two sizes, and of a size and a position, are counted in
 * 32 bits.
 */
export const MOST_EXTENT = 2 ** 15;
/**
 * Elements from which on 32 bits do not count those of a span, with what threads behind its end
 * would count.
 */
export const WIDE_FROM = 2 ** 31 - 2 ** 17;

/** A tensor of an image or a batch, read and checked. Distances are in elements. */
export interface Image {
  readonly tensor: KernelTensor;
  readonly dtype: DType<ImageName>;
  /** Images; 1 where the tensor has three axes. */
  readonly batch: number;
  readonly height: number;
  readonly width: number;
  readonly channels: Channels;
  /** Whether the tensor has four axes, and so has what is made of it. */
  readonly batched: boolean;
  /** From one row to the next; of an image of one row: width · channels. */
  readonly rowPitch: number;
  /** From one image to the next; where there is one: height · rowPitch. */
  readonly imagePitch: number;
}

/**
 * The tensor as an image.
 *
 * @param operation what takes it, for errors
 * @param argument its name, for errors
 * @throws CudaArgumentError for what is no tensor, another dtype, rank or number of channels, an
 *   empty batch, an empty image, and where pixels of a row do not lie close; CudaDisposedError
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
        ? 'Planes come first here: permute them behind, and make it contiguous().'
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
      `${wanted()}: a view in which the pixels of a row lie close, channels within them, and ` +
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

/** A tensor that is to be allocated. */
export interface NewTensor {
  readonly dtype: KernelDType;
  readonly shape: readonly number[];
}

/** How an image that is made differs from the one that it is made of. */
export interface ImageChanges {
  readonly height?: number;
  readonly width?: number;
  readonly channels?: Channels;
  readonly dtype?: ImageName;
}

/**
 * Where the result goes: to `out`, a tensor or view that was given and is checked, or to a new
 * contiguous tensor with as many axes as `image` has.
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

/** Rows or columns that an image is to have. */
export function checkExtent(argument: string, value: unknown): asserts value is number {
  checkInteger(argument, value, 1, MOST_EXTENT, 'pixels');
}

/** @throws CudaArgumentError for what is no list of images, or an empty one */
export function checkImageList(
  operation: string,
  images: unknown,
): asserts images is readonly unknown[] {
  if (!Array.isArray(images) || images.length === 0)
    throw invalid('images', `a list of at least one image, for ${operation}(…)`, images);
}

/**
 * Images of whichever sizes, for an operation that makes a batch of them.
 *
 * @param single what takes a batch that is one tensor already, for errors
 * @throws CudaArgumentError for what are no images, batches, and images of different dtypes or
 *   channels
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

/** Two images that are to be of one dtype. @throws CudaArgumentError */
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

/** A fresh image's description, of a result that {@link imageOf} would take. */
export function imageOfResult(tensor: KernelTensor): Image {
  return imageOf('image', 'result', tensor);
}

/**
 * The memory from an image's first element to its last as one run of elements, whatever lies
 * between rows: kernels that are passed it with pitches index it themselves.
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
 * Whether 32 bits do not count the elements of one of the spans: pitches are then i64, and so is
 * what is computed with them.
 */
export function isWideSpan(images: readonly Image[]): boolean {
  return images.some((image) => flat(image).size >= WIDE_FROM);
}
