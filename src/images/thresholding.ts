/** Thresholds: elements above a limit, or the others, are replaced. */
import { checkOptions, invalid } from '../ground/arguments.js';
import type { DeviceOp, OrOp } from '../ops/index.js';
import type { Tensor } from '../tensor/index.js';
import { checkChannelNumbers, forChannels } from './channel-numbers.js';
import type { ChannelNumbers } from './channel-numbers.js';
import { imageOperation } from './engine.js';
import { imageOf, imageOfResult, resultFor } from './image.js';
import type { ImageName } from './image.js';
import { channelNumbers, eachChannel } from './per-channel.js';
import type { ElementFunction } from './per-channel.js';
import { addPixels } from './pixel-kernel.js';
import { packed } from './pixel-runs.js';
import { WHITE } from './rounding.js';
import type { EngineOptions, ImageOperation } from './implementation.js';
import type { ThresholdKind, Thresholding } from './parameters.js';

/** Options of {@link threshold}. */
export interface ThresholdOptions<D extends ImageName = ImageName> extends EngineOptions {
  /** Default: binary. */
  readonly kind?: ThresholdKind;
  /**
   * The value that binary kinds write besides 0. Default: white, which is 255 for u8, 65535 for
   * u16, 1 for floats.
   */
  readonly value?: ChannelNumbers;
  /** Where the result is written. Default: a new tensor. */
  readonly out?: OrOp<Tensor<D>>;
}

const FUNCTIONS: Readonly<Record<ThresholdKind, ElementFunction>> = {
  binary: (x, _y, limit, value) => (x > limit ? value : 0),
  binaryInverse: (x, _y, limit, value) => (x > limit ? 0 : value),
  toZero: (x, _y, limit, _value) => (x > limit ? x : 0),
  toZeroInverse: (x, _y, limit, _value) => (x > limit ? 0 : x),
  truncate: (x, _y, limit, _value) => (x > limit ? limit : x),
};
const KINDS = Object.keys(FUNCTIONS) as ThresholdKind[];
const ofPixels = Object.fromEntries(
  KINDS.map((kind) => [kind, eachChannel(FUNCTIONS[kind])]),
) as Record<ThresholdKind, ReturnType<typeof eachChannel>>;

const thresholds: ImageOperation<Thresholding> = {
  name: 'threshold',
  own: {
    queue(work, { images: [image], results: [out], parameters: { kind, limits, values } }) {
      addPixels(
        work,
        { key: `threshold_${kind}`, f: ofPixels[kind], numbers: channelNumbers(limits, values) },
        [packed(image!)],
        packed(imageOfResult(out!)),
      );
    },
  },
};

/**
 * Compares elements with a limit, which is one for all channels or one for each. The result for an
 * element x is:
 *
 * - binary: `value` where x > limit, else 0; binaryInverse: 0 and `value`
 * - toZero: x where x > limit, else 0; toZeroInverse: 0 and x
 * - truncate: limit where x > limit, else x
 *
 * Limits and values are rounded to f32; as integers they are rounded to nearest, ties to even, and
 * saturated.
 *
 * @throws CudaArgumentError for an unknown kind, and a list whose length is not the number of
 *   channels; at the call, or when run where an operation gives the image
 *
 * @example
 * ```ts
 * using image = await device.tensor(u8, [10, 100, 200], [1, 3, 1]);
 * using mask = await threshold(image, 99);
 * console.log((await mask.read()).join(' ')); // 0 255 255
 * ```
 */
export function threshold<D extends ImageName>(
  image: OrOp<Tensor<D>>,
  limit: ChannelNumbers,
  options: ThresholdOptions<NoInfer<D>> = {},
): DeviceOp<Tensor<D, number[]>> {
  checkOptions('options', options, ['kind', 'value', 'engine', 'out']);
  const { kind = 'binary', value, out } = options;
  checkChannelNumbers('limit', limit);
  if (!KINDS.includes(kind)) throw invalid('options.kind', `one of ${KINDS.join(', ')}`, kind);
  if (value !== undefined) checkChannelNumbers('options.value', value);
  return imageOperation(
    thresholds,
    [image, out],
    options,
    ([given, into]) => {
      const read = imageOf('threshold', 'image', given);
      const limits = forChannels('limit', limit, read.channels);
      const values = forChannels('options.value', value ?? WHITE[read.dtype.name], read.channels);
      return {
        images: [read],
        results: [resultFor('threshold', read, {}, into)],
        parameters: { kind, limits, values },
      };
    },
    ([result]) => result,
  ) as never;
}
