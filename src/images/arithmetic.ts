/** Sums, differences and products of images, and of images and constants, with saturation. */
import { CudaArgumentError } from '../core/index.js';
import { checkOptions, invalid } from '../ground/arguments.js';
import { DeviceOp } from '../ops/index.js';
import type { OrOp } from '../ops/index.js';
import { Tensor } from '../tensor/index.js';
import { checkChannelNumbers, forChannels } from './channel-numbers.js';
import type { ChannelNumbers } from './channel-numbers.js';
import { imageOperation } from './engine.js';
import { checkSameForm, imageOf, imageOfResult, resultFor } from './image.js';
import type { Image, ImageName } from './image.js';
import { channelNumbers, eachChannel } from './per-channel.js';
import type { ElementFunction } from './per-channel.js';
import { addPixels } from './pixel-kernel.js';
import { packed } from './pixel-runs.js';
import type { EngineOptions, ImageOperation } from './implementation.js';
import type { Arithmetic } from './parameters.js';

/** Options of operations on two images. */
export interface ArithmeticOptions<D extends ImageName = ImageName> extends EngineOptions {
  /** Where the result is written. Default: a new tensor. */
  readonly out?: OrOp<Tensor<D>>;
}

/** Options of {@link multiplyImages}. */
export interface MultiplyOptions<D extends ImageName = ImageName> extends ArithmeticOptions<D> {
  /** A factor of each product: with 1/255 an element of 255 of u8 stands for 1. Default: 1. */
  readonly scale?: number;
}

/** @throws CudaArgumentError for images of different sizes, numbers, dtypes or channels */
export function checkAlike(
  operation: string,
  argument: string,
  image: Image,
  like: Image,
  likeArgument: string,
): void {
  checkSameForm(operation, argument, image, like, likeArgument);
  checkSameSize(operation, argument, image, like, likeArgument);
}

/** @throws CudaArgumentError for images of different sizes or numbers */
export function checkSameSize(
  operation: string,
  argument: string,
  image: Image,
  like: Image,
  likeArgument: string,
): void {
  if (image.batch === like.batch && image.height === like.height && image.width === like.width)
    return;
  const size = ({ batch, batched, height, width }: Image): string =>
    `${batched ? `${batch} of ` : ''}${width} × ${height}`;
  throw new CudaArgumentError(
    argument,
    `${argument}: expected ${like.batched ? 'images' : 'an image'} of the size of ` +
      `${likeArgument}, ${size(like)} pixels, for ${operation}(…), got ${size(image)}.`,
  );
}

type Name = 'add' | 'subtract' | 'multiply' | 'difference';

const FUNCTIONS: Readonly<
  Record<Name, readonly [image: ElementFunction, constant: ElementFunction]>
> = {
  add: [(x, y, _a, _b) => x + y, (x, _y, a, _b) => x + a],
  subtract: [(x, y, _a, _b) => x - y, (x, _y, a, _b) => x - a],
  multiply: [(x, y, a, _b) => x * y * a, (x, _y, a, _b) => x * a],
  difference: [(x, y, _a, _b) => Math.abs(x - y), (x, _y, a, _b) => Math.abs(x - a)],
};

function operationOf(name: Name): ImageOperation<Arithmetic> {
  const [ofImages, ofConstants] = FUNCTIONS[name].map((f) => eachChannel(f)) as [
    ReturnType<typeof eachChannel>,
    ReturnType<typeof eachChannel>,
  ];
  return {
    name,
    own: {
      queue(work, { images: [x, y], results: [out], parameters: { constants, scale } }) {
        const into = packed(imageOfResult(out!));
        if (y === undefined)
          addPixels(
            work,
            {
              key: `${name}_constant`,
              f: ofConstants,
              numbers: channelNumbers(constants!.map((each) => each * scale)),
            },
            [packed(x!)],
            into,
          );
        else
          addPixels(
            work,
            { key: name, f: ofImages, numbers: channelNumbers([scale, scale, scale, scale]) },
            [packed(x!), packed(y)],
            into,
          );
      },
    },
  };
}

function arithmetic(
  definition: ImageOperation<Arithmetic>,
  image: unknown,
  other: unknown,
  options: MultiplyOptions,
): DeviceOp<unknown> {
  const { name } = definition;
  const { scale = 1, out } = options;
  if (typeof scale !== 'number' || !Number.isFinite(scale))
    throw invalid('options.scale', 'a number that is finite', scale);
  const isImage = other instanceof Tensor || other instanceof DeviceOp;
  if (!isImage) {
    if (typeof other !== 'number' && !Array.isArray(other))
      throw invalid('other', 'an image, a number or a list of one for each channel', other);
    checkChannelNumbers('other', other);
  }
  return imageOperation(
    definition,
    [image, isImage ? other : undefined, out],
    options,
    ([given, second, into]) => {
      const x = imageOf(name, 'image', given);
      const y = isImage ? imageOf(name, 'other', second) : undefined;
      if (y !== undefined) checkAlike(name, 'other', y, x, 'image');
      const constants = isImage ? undefined : forChannels('other', other, x.channels);
      return {
        images: y === undefined ? [x] : [x, y],
        results: [resultFor(name, x, {}, into)],
        parameters: { constants, scale },
      };
    },
    ([result]) => result,
  );
}

/**
 * A function of two images of one size, dtype and number of channels, or of an image and a number
 * for all channels or one for each. It gives an image like the first. Elements are computed in f32
 * and rounded once; integers to nearest, ties to even, saturated.
 *
 * @throws CudaArgumentError for images that differ, and a list of numbers whose length is not the
 *   number of channels; at the call, or when run where operations give the images
 */
export type ImageArithmetic = <D extends ImageName>(
  image: OrOp<Tensor<D>>,
  other: OrOp<Tensor<NoInfer<D>>> | ChannelNumbers,
  options?: ArithmeticOptions<NoInfer<D>>,
) => DeviceOp<Tensor<D, number[]>>;

function plain(name: Exclude<Name, 'multiply'>): ImageArithmetic {
  const definition = operationOf(name);
  return ((image: unknown, other: unknown, options: ArithmeticOptions = {}) => {
    checkOptions('options', options, ['engine', 'out']);
    return arithmetic(definition, image, other, options);
  }) as ImageArithmetic;
}

/**
 * Adds: image + other. See {@link ImageArithmetic}.
 *
 * @example
 * ```ts
 * using image = await device.tensor(u8, [10, 100, 200], [1, 1, 3]);
 * using brighter = await addImages(image, 100);
 * console.log((await brighter.read()).join(' ')); // 110 200 255
 * ```
 */
export const addImages = plain('add');
/**
 * Subtracts: image - other. See {@link ImageArithmetic}.
 *
 * @example
 * ```ts
 * using image = await device.tensor(u8, [10, 100, 200], [1, 1, 3]);
 * using darker = await subtractImages(image, [0, 50, 255]);
 * console.log((await darker.read()).join(' ')); // 10 50 0
 * ```
 */
export const subtractImages = plain('subtract');
/**
 * Gives the magnitude of image - other. See {@link ImageArithmetic}.
 *
 * @example
 * ```ts
 * using a = await device.tensor(u8, [10, 20, 30], [1, 1, 3]);
 * using b = await device.tensor(u8, [15, 5, 30], [1, 1, 3]);
 * using apart = await difference(a, b);
 * console.log((await apart.read()).join(' ')); // 5 15 0
 * ```
 */
export const difference = plain('difference');

const products = operationOf('multiply');

/**
 * Multiplies: image · other · scale. See {@link ImageArithmetic}.
 *
 * @example
 * ```ts
 * using image = await device.tensor(u8, [10, 100, 200], [1, 1, 3]);
 * using halved = await multiplyImages(image, 0.5);
 * console.log((await halved.read()).join(' ')); // 5 50 100
 * ```
 */
export function multiplyImages<D extends ImageName>(
  image: OrOp<Tensor<D>>,
  other: OrOp<Tensor<NoInfer<D>>> | ChannelNumbers,
  options: MultiplyOptions<NoInfer<D>> = {},
): DeviceOp<Tensor<D, number[]>> {
  checkOptions('options', options, ['scale', 'engine', 'out']);
  return arithmetic(products, image, other, options) as never;
}
