/** Normalisation of images for networks: scale, mean and deviation. */
import { CudaArgumentError, f32 } from '../core/index.js';
import type { DType } from '../core/index.js';
import { checkOptions, invalid } from '../ground/arguments.js';
import type { DeviceOp, OrOp } from '../ops/index.js';
import type { Tensor } from '../tensor/index.js';
import { checkChannelNumbers, forChannels } from './channel-numbers.js';
import type { ChannelNumbers } from './channel-numbers.js';
import { imageOperation } from './engine.js';
import { imageOf, imageOfResult, resultFor } from './image.js';
import type { Image, ImageName } from './image.js';
import { planarResultFor } from './planar-image.js';
import { channelNumbers, eachChannel } from './per-channel.js';
import { addPixels } from './pixel-kernel.js';
import { packed, planes } from './pixel-runs.js';
import { checkImageDType } from './rescaling.js';
import { WHITE } from './rounding.js';
import type { EngineOptions, ImageOperation } from './implementation.js';
import type { Normalising, TensorOrder } from './parameters.js';
/** dtypes of normalised images. */
export type NormalisedName = 'f16' | 'f32';

/** Numbers of a normalisation: one for all channels, or one for each. */
export interface Normalisation {
  /**
   * Default: 1 / white, so that white becomes 1; white is 255 for u8, 65535 for u16, 1 for floats.
   */
  readonly scale?: ChannelNumbers;
  /** Subtracted after the scale. Default: 0. */
  readonly mean?: ChannelNumbers;
  /** The divisor after that. Default: 1. */
  readonly deviation?: ChannelNumbers;
}

/** Options of {@link normalise}. */
export interface NormaliseOptions<E extends NormalisedName = NormalisedName>
  extends Normalisation, EngineOptions {
  /** f16 or f32. Default: f32. */
  readonly dtype?: DType<E>;
  /** Default: nchw. */
  readonly order?: TensorOrder;
  /** Where the result is written. Default: a new tensor. */
  readonly out?: OrOp<Tensor<E>>;
}

export const NORMALISATION = ['scale', 'mean', 'deviation'] as const;
export const NORMALISED: readonly NormalisedName[] = ['f16', 'f32'];
const ORDERS: readonly TensorOrder[] = ['nchw', 'nhwc'];

/** @throws CudaArgumentError for values that are no numbers, and a deviation of 0 */
export function checkNormalisation({ scale, mean, deviation }: Normalisation): void {
  if (scale !== undefined) checkChannelNumbers('options.scale', scale);
  if (mean !== undefined) checkChannelNumbers('options.mean', mean);
  if (deviation !== undefined)
    checkChannelNumbers('options.deviation', deviation, {
      what: 'not 0',
      test: (value) => value !== 0,
    });
}

/**
 * Gives factors and summands for each channel.
 *
 * @throws CudaArgumentError for a list whose length is not the number of channels
 */
export function factorsOf(
  { scale, mean = 0, deviation = 1 }: Normalisation,
  { channels, dtype }: Image,
): { readonly factors: readonly number[]; readonly summands: readonly number[] } {
  const scales = forChannels('options.scale', scale ?? 1 / WHITE[dtype.name], channels);
  const means = forChannels('options.mean', mean, channels);
  const deviations = forChannels('options.deviation', deviation, channels);
  return {
    factors: scales.map((each, c) => each / deviations[c]!),
    summands: means.map((each, c) => -each / deviations[c]! + 0),
  };
}

/** @throws CudaArgumentError for an unknown order */
export function checkOrder(argument: string, order: unknown): asserts order is TensorOrder {
  if (!(ORDERS as readonly unknown[]).includes(order))
    throw invalid(argument, `one of ${ORDERS.join(', ')}`, order);
}

const scaled = eachChannel((x, _y, factor, summand) => x * factor + summand);

const normalisations: ImageOperation<Normalising> = {
  name: 'normalise',
  own: {
    queue(work, { images: [image], results: [out], parameters: { factors, summands, order } }) {
      addPixels(
        work,
        { key: 'normalise', f: scaled, numbers: channelNumbers(factors, summands) },
        [packed(image!)],
        order === 'nchw' ? planes(out!) : packed(imageOfResult(out!)),
      );
    },
  },
};

/**
 * Normalises an image: each element becomes (x · scale - mean) / deviation. It gives a tensor of
 * f16 or f32: [N, C, H, W] for a batch and [C, H, W] for an image, or in the image's order with
 * `order: 'nhwc'`. It takes one pass over the image. Elements are computed as x · f + s with one
 * rounding in f32, where f = scale / deviation and s = -mean / deviation are rounded to f32; f16 is
 * then rounded to nearest, ties to even.
 *
 * @throws CudaArgumentError for another dtype, a deviation of 0, and a list whose length is not the
 *   number of channels; at the call, or when run where an operation gives the image
 *
 * @example
 * ```ts
 * using image = await device.tensor(u8, [0, 255, 255, 0, 255, 255], [1, 2, 3]);
 * using input = await normalise(image, { scale: 1, mean: [0, 55, 5], deviation: 2 });
 * console.log(input.shape, (await input.read()).join(' ')); // [ 3, 1, 2 ] 0 0 100 100 125 125
 * ```
 */
export function normalise<E extends NormalisedName = 'f32'>(
  image: OrOp<Tensor<ImageName>>,
  options: NormaliseOptions<E> = {},
): DeviceOp<Tensor<E, number[]>> {
  checkOptions('options', options, [...NORMALISATION, 'dtype', 'order', 'engine', 'out']);
  const { dtype = f32, order = 'nchw', out } = options;
  checkImageDType('options.dtype', dtype, NORMALISED);
  checkOrder('options.order', order);
  checkNormalisation(options);
  return imageOperation(
    normalisations,
    [image, out],
    options,
    ([given, into]) => {
      const read = imageOf('normalise', 'image', given);
      const { name } = dtype;
      const result =
        order === 'nchw'
          ? planarResultFor('normalise', read, name, read.channels, into)
          : resultFor('normalise', read, { dtype: name }, into);
      const parameters = { ...factorsOf(options, read), order };
      if (parameters.factors.some((each) => !Number.isFinite(Math.fround(each))))
        throw new CudaArgumentError(
          'options.scale',
          'options.scale: expected numbers whose quotients with options.deviation f32 has.',
        );
      return { images: [read], results: [result], parameters };
    },
    ([result]) => result,
  ) as never;
}
