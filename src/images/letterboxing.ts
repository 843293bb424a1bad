/** Input of networks from photographs in one pass: letterboxed, normalised, as planes. */
import { CudaArgumentError, f16 } from '../core/index.js';
import type { DType } from '../core/index.js';
import { checkOptions } from '../ground/arguments.js';
import type { DeviceOp, OrOp } from '../ops/index.js';
import type { KernelTensor, Tensor } from '../tensor/index.js';
import { checkChannelNumbers, forChannels } from './channel-numbers.js';
import type { ChannelNumbers } from './channel-numbers.js';
import { imageOperation } from './engine.js';
import {
  checkExtent,
  checkImageList,
  imageOf,
  imageOfResult,
  imagesOf,
  resultFor,
} from './image.js';
import type { Image, ImageName, NewTensor } from './image.js';
import { MOST_IMAGES } from './image-launch.js';
import { letterboxPlacement } from './letterbox-placement.js';
import { addLetterbox, addLetterboxes } from './letterboxing-kernel.js';
import type { LetterboxNumbers } from './letterboxing-kernel.js';
import {
  NORMALISATION,
  NORMALISED,
  checkNormalisation,
  checkOrder,
  factorsOf,
} from './normalising.js';
import type { Normalisation, NormalisedName } from './normalising.js';
import { packed, planes } from './pixel-runs.js';
import type { PixelLayout } from './pixel-runs.js';
import { planarResultFor } from './planar-image.js';
import { checkImageDType } from './rescaling.js';
import type { EngineOptions, ImageOperation } from './implementation.js';
import type { Normalising, TensorOrder } from './parameters.js';
import type { Placement } from './letterboxing-pixels.js';

/** Options of {@link letterboxNormalise} and {@link letterboxNormaliseBatch}. */
export interface LetterboxNormaliseOptions<E extends NormalisedName = NormalisedName>
  extends Normalisation, EngineOptions {
  /** Columns and rows of the result. */
  readonly width: number;
  readonly height: number;
  /**
   * The colour around the image, in the image's numbers, which is normalised like pixels: one
   * number for all channels, or one for each. Default: 0.
   */
  readonly color?: ChannelNumbers;
  /** f16 or f32. Default: f16. */
  readonly dtype?: DType<E>;
  /** Default: nchw. */
  readonly order?: TensorOrder;
  /** Where the result is written. Default: a new tensor. */
  readonly out?: OrOp<Tensor<E>>;
}

/** Parameters of an engine. */
export interface LetterboxNormalising extends Normalising {
  /** One placement for all images of a batch, or one for each image. */
  readonly placements: readonly Placement[];
  /** The result's numbers around the image, for each channel. */
  readonly pads: readonly number[];
}

const letterboxes: ImageOperation<LetterboxNormalising> = {
  name: 'letterboxNormalise',
  own: {
    queue(work, { images: [image], results: [out], parameters }) {
      addLetterbox(work, image!, layoutOf(out!, parameters), parameters.placements[0]!, parameters);
    },
  },
};

const batches: ImageOperation<LetterboxNormalising> = {
  name: 'letterboxNormaliseBatch',
  own: {
    queue(work, { images, results: [out], parameters }) {
      addLetterboxes(work, images, layoutOf(out!, parameters), parameters.placements, parameters);
    },
  },
};

function layoutOf(out: KernelTensor, { order }: Normalising): PixelLayout {
  return order === 'nchw' ? planes(out) : packed(imageOfResult(out));
}

/** Checks the options of both, except for what depends on the images. */
function checked<E extends NormalisedName>(
  options: LetterboxNormaliseOptions<E>,
): Required<Pick<LetterboxNormaliseOptions<E>, 'width' | 'height' | 'color' | 'dtype' | 'order'>> {
  checkOptions('options', options, [
    'width',
    'height',
    'color',
    ...NORMALISATION,
    'dtype',
    'order',
    'engine',
    'out',
  ]);
  const { width, height, color = 0, dtype = f16 as never, order = 'nchw' } = options ?? {};
  checkExtent('options.width', width);
  checkExtent('options.height', height);
  checkImageDType('options.dtype', dtype, NORMALISED);
  checkOrder('options.order', order);
  checkChannelNumbers('options.color', color);
  checkNormalisation(options);
  return { width, height, color, dtype, order };
}

/**
 * Describes the result for images of the form of `image`, and the numbers of channels. `batch` is
 * the image, or describes the batch that is made.
 */
function describe(
  name: string,
  options: LetterboxNormaliseOptions,
  { width, height, color, dtype, order }: ReturnType<typeof checked>,
  image: Image,
  batch: Image,
  into: unknown,
): { readonly result: NewTensor | KernelTensor; readonly numbers: LetterboxNumbers } {
  const box = { batch: batch.batch, batched: batch.batched, height, width };
  const result =
    order === 'nchw'
      ? planarResultFor(name, box, dtype.name, image.channels, into)
      : resultFor(name, batch, { height, width, dtype: dtype.name }, into);
  const { factors, summands } = factorsOf(options, image);
  return {
    result,
    numbers: {
      factors,
      summands,
      pads: forChannels('options.color', color, image.channels).map(
        (each, c) => each * factors[c]! + summands[c]!,
      ),
    },
  };
}

/**
 * Letterboxes and normalises an image, or each of a batch, to `width` × `height`. It gives [C, H,
 * W] or [N, C, H, W] of f16, by one launch for the batch, which writes each pixel once. The image
 * lies at {@link letterboxPlacement}. Pixels are weighted linearly, at the places of a linear
 * {@link resize} to the size that the image has there (half-pixel centres; beyond the edges the
 * outermost pixels are repeated). The sum Σ weight · x is normalised as {@link normalise} does,
 * without rounding in between. Around the image is `color`, which is normalised too.
 *
 * @throws CudaArgumentError for sizes and numbers outside their range, and another dtype; at the
 *   call, or when run where an operation gives the image
 *
 * @example
 * ```ts
 * using image = await device.full(u8, [1, 2, 3], 255);
 * using input = await letterboxNormalise(image, { width: 2, height: 3 });
 * console.log(input.dtype.name, input.shape); // f16 [ 3, 3, 2 ]
 * console.log((await input.slice(0).read()).join(' ')); // 0 0 1 1 0 0
 * ```
 */
export function letterboxNormalise<E extends NormalisedName = 'f16'>(
  image: OrOp<Tensor<ImageName>>,
  options: LetterboxNormaliseOptions<E>,
): DeviceOp<Tensor<E, number[]>> {
  const known = checked(options);
  return imageOperation(
    letterboxes,
    [image, options.out],
    options,
    ([given, into]) => {
      const read = imageOf('letterboxNormalise', 'image', given);
      const { result, numbers } = describe('letterboxNormalise', options, known, read, read, into);
      if (read.batch > MOST_IMAGES)
        throw new CudaArgumentError(
          'image',
          `image: expected at most ${MOST_IMAGES} images in a batch, for ` +
            `letterboxNormalise(…), got ${read.batch}.`,
        );
      return {
        images: [read],
        results: [result],
        parameters: {
          ...numbers,
          order: known.order,
          placements: [letterboxPlacement(read, known)],
        },
      };
    },
    ([result]) => result,
  ) as never;
}

/**
 * Letterboxes and normalises images of any sizes, of one dtype and number of channels, as
 * {@link letterboxNormalise} does. It gives a batch, a tensor of [images, C, H, W] (or [images, H,
 * W, C]), by one launch for every eight images.
 *
 * @throws CudaArgumentError for an empty list, batches in it, images of different dtypes or
 *   channels, and as {@link letterboxNormalise} does
 *
 * @example
 * ```ts
 * using first = await device.zeros(u8, [480, 640, 3]);
 * using second = await device.zeros(u8, [1080, 1920, 3]);
 * using input = await letterboxNormaliseBatch([first, second], { width: 64, height: 64 });
 * console.log(input.shape); // [ 2, 3, 64, 64 ]
 * ```
 */
export function letterboxNormaliseBatch<E extends NormalisedName = 'f16'>(
  images: readonly OrOp<Tensor<ImageName>>[],
  options: LetterboxNormaliseOptions<E>,
): DeviceOp<Tensor<E, number[]>> {
  const known = checked(options);
  checkImageList('letterboxNormaliseBatch', images);
  const count = images.length;
  return imageOperation(
    batches,
    [...images, options.out],
    options,
    (values) => {
      const read = imagesOf(
        'letterboxNormaliseBatch',
        'letterboxNormalise',
        values.slice(0, count),
      );
      const { result, numbers } = describe(
        'letterboxNormaliseBatch',
        options,
        known,
        read[0]!,
        { ...read[0]!, batch: count, batched: true },
        values[count],
      );
      return {
        images: read,
        results: [result],
        parameters: {
          ...numbers,
          order: known.order,
          placements: read.map((image) => letterboxPlacement(image, known)),
        },
      };
    },
    ([result]) => result,
  ) as never;
}
