/** Conversion of images to other dtypes, with a factor and a summand. */
import { checkOptions, invalid } from '../ground/arguments.js';
import type { DType } from '../core/index.js';
import type { DeviceOp, OrOp } from '../ops/index.js';
import type { Tensor } from '../tensor/index.js';
import { checkChannelNumbers, forChannels } from './channel-numbers.js';
import type { ChannelNumbers } from './channel-numbers.js';
import { imageOperation } from './engine.js';
import { IMAGE_NAMES, imageOf, imageOfResult, resultFor } from './image.js';
import type { ImageName } from './image.js';
import { channelNumbers, eachChannel } from './per-channel.js';
import { addPixels } from './pixel-kernel.js';
import { packed } from './pixel-runs.js';
import type { EngineOptions, ImageOperation } from './implementation.js';
import type { Rescaling } from './parameters.js';

/** Options of {@link rescale}. */
export interface RescaleOptions<E extends ImageName = ImageName> extends EngineOptions {
  /** A factor for all channels, or one for each. Default: 1. */
  readonly scale?: ChannelNumbers;
  /** Added after the scale. Default: 0. */
  readonly offset?: ChannelNumbers;
  /** Where the result is written. Default: a new tensor. */
  readonly out?: OrOp<Tensor<E>>;
}

const scaled = eachChannel((x, _y, scale, offset) => x * scale + offset);

const rescales: ImageOperation<Rescaling> = {
  name: 'rescale',
  own: {
    queue(work, { images: [image], results: [out], parameters: { scales, offsets } }) {
      addPixels(
        work,
        { key: 'rescale', f: scaled, numbers: channelNumbers(scales, offsets) },
        [packed(image!)],
        packed(imageOfResult(out!)),
      );
    },
  },
};

/** @throws CudaArgumentError for a dtype that images do not have */
export function checkImageDType(
  argument: string,
  dtype: unknown,
  names: readonly ImageName[] = IMAGE_NAMES,
): asserts dtype is DType<ImageName> {
  const name = (dtype as { name?: unknown } | undefined)?.name;
  if (typeof name !== 'string' || !(names as readonly string[]).includes(name))
    throw invalid(
      argument,
      `one of ${names.join(', ')}`,
      dtype,
      typeof dtype === 'string'
        ? `Import ${dtype} from 'async-cuda' and pass it without quotes.`
        : '',
    );
}

/**
 * Converts an image to another dtype: each element becomes x · scale + offset, in f32 with one
 * rounding, and is then rounded to the dtype; integers to nearest, ties to even, saturated, NaN as
 * 0. `rescale(image, u8, { scale: 255 })` makes bytes of floats from 0 to 1.
 *
 * @param dtype the dtype of the result: u8, u16, f16 or f32
 * @throws CudaArgumentError for a dtype that images do not have, and a list whose length is not the
 *   number of channels; at the call, or when run where an operation gives the image
 *
 * @example
 * ```ts
 * using image = await device.tensor(f32, [0, 0.2, 1], [1, 1, 3]);
 * using bytes = await rescale(image, u8, { scale: 255 });
 * console.log((await bytes.read()).join(' ')); // 0 51 255
 * ```
 */
export function rescale<E extends ImageName>(
  image: OrOp<Tensor<ImageName>>,
  dtype: DType<E>,
  options: RescaleOptions<NoInfer<E>> = {},
): DeviceOp<Tensor<E, number[]>> {
  checkImageDType('dtype', dtype);
  checkOptions('options', options, ['scale', 'offset', 'engine', 'out']);
  const { scale = 1, offset = 0, out } = options;
  checkChannelNumbers('options.scale', scale);
  checkChannelNumbers('options.offset', offset);
  return imageOperation(
    rescales,
    [image, out],
    options,
    ([given, into]) => {
      const read = imageOf('rescale', 'image', given);
      const parameters = {
        scales: forChannels('options.scale', scale, read.channels),
        offsets: forChannels('options.offset', offset, read.channels),
      };
      return {
        images: [read],
        results: [resultFor('rescale', read, { dtype: dtype.name }, into)],
        parameters,
      };
    },
    ([result]) => result,
  ) as never;
}
