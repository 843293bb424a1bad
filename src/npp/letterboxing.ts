/** What a network takes of photographs, in one pass: resized with a letterbox, normalised, in planes. */
import { CudaArgumentError, f16 } from '../core/index.js';
import type { DType } from '../core/index.js';
import { checkOptions } from '../core/arguments.js';
import type { DeviceOp, OrOp } from '../ops/index.js';
import type { Tensor } from '../tensor/index.js';
import { checkChannelNumbers, forChannels } from './channel-numbers.js';
import type { ChannelNumbers } from './channel-numbers.js';
import { imageOperation } from './engine.js';
import type { EngineOptions, ImageOperation } from './engine.js';
import { checkExtent, imageOf, imageOfResult, resultFor } from './image.js';
import type { ImageName } from './image.js';
import { letterboxPlacement } from './letterbox-placement.js';
import { addLetterbox } from './letterboxing-kernel.js';
import type { Placement } from './letterboxing-kernel.js';
import { NORMALISATION, NORMALISED, checkNormalisation, checkOrder, factorsOf } from './normalising.js';
import type { Normalisation, NormalisedName, Normalising, TensorOrder } from './normalising.js';
import { packed, planes } from './pixel-runs.js';
import { planarResultFor } from './planar-image.js';
import { checkImageDType } from './rescaling.js';

/** What {@link letterboxNormalise} takes. */
export interface LetterboxNormaliseOptions<E extends NormalisedName = NormalisedName> extends Normalisation, EngineOptions {
  /** Columns and rows of the result. */
  readonly width: number;
  readonly height: number;
  /** What is around the image, in the image's numbers: it is normalised as pixels are. One for all channels, or one for each. Default: 0. */
  readonly color?: ChannelNumbers;
  /** f16 or f32. Default: f16. */
  readonly dtype?: DType<E>;
  /** Default: nchw. */
  readonly order?: TensorOrder;
  /** Where it is written. Default: a new tensor. */
  readonly out?: OrOp<Tensor<E>>;
}

/** What an engine is told. */
export interface LetterboxNormalising extends Normalising {
  readonly placement: Placement;
  /** Of the result, around the image. */
  readonly pads: readonly number[];
}

const letterboxes: ImageOperation<LetterboxNormalising> = {
  name: 'letterboxNormalise',
  own: {
    queue(work, { images: [image], results: [out], parameters }) {
      addLetterbox(work, image!, parameters.order === 'nchw' ? planes(out!) : packed(imageOfResult(out!)), parameters.placement, parameters);
    },
  },
};

/**
 * An image, or each of a batch, resized with its proportions into the middle of `width` × `height`, normalised, as [C, H, W] or
 * [N, C, H, W] of f16: one launch for the batch, each pixel written once. Where it lies is said at {@link letterboxPlacement}; pixels
 * are weighed linearly, at the positions of `resize(image, { width, height })` of the size that it has there (half-pixel centres; beyond
 * the edges the outermost pixels count on), without rounding between the steps: Σ weight · x, then as {@link normalise}. Around it is
 * `color`, normalised too.
 *
 * @throws CudaArgumentError for sizes and numbers that are outside of their range, another dtype; at the call, or when it is run where an
 * operation gives the image
 */
export function letterboxNormalise<E extends NormalisedName = 'f16'>(image: OrOp<Tensor<ImageName>>, options: LetterboxNormaliseOptions<E>): DeviceOp<Tensor<E, number[]>> {
  checkOptions('options', options, ['width', 'height', 'color', ...NORMALISATION, 'dtype', 'order', 'engine', 'out']);
  const { width, height, color = 0, dtype = f16, order = 'nchw', out } = ((options) ?? {});
  checkExtent('options.width', width);
  checkExtent('options.height', height);
  checkImageDType('options.dtype', dtype, NORMALISED);
  checkOrder('options.order', order);
  checkChannelNumbers('options.color', color);
  checkNormalisation(options);
  return imageOperation(letterboxes, [image, out], options, ([given, into]) => {
    const read = imageOf('letterboxNormalise', 'image', given);
    const { name } = dtype;
    const box = { batch: read.batch, batched: read.batched, height, width };
    const result = order === 'nchw' ? planarResultFor('letterboxNormalise', box, name, read.channels, into) : resultFor('letterboxNormalise', read, { height, width, dtype: name }, into);
    const { factors, summands } = factorsOf(options, read);
    const pads = forChannels('options.color', color, read.channels).map((each, c) => each * factors[c]! + summands[c]!);
    if (read.batch > 65535) throw new CudaArgumentError('image', `image: expected at most 65535 images in a batch, for letterboxNormalise(…), got ${read.batch}.`);
    return { images: [read], results: [result], parameters: { factors, summands, pads, order, placement: letterboxPlacement(read, box) } };
  }, ([result]) => result) as never;
}
