/** The order and number of channels, and channels as planes. */
import { CudaArgumentError } from '../core/index.js';
import { checkOptions, invalid } from '../ground/arguments.js';
import { deviceFunction } from '../kernels/index.js';
import type { DeviceFunction, GpuWith } from '../kernels/index.js';
import type { KernelArray } from '../library/kernel-family.js';
import type { DeviceOp, OrOp } from '../ops/index.js';
import type { Tensor } from '../tensor/index.js';
import { imageOperation } from './engine.js';
import { CHANNELS, imageOf, imageOfResult, resultFor } from './image.js';
import type { Channels, ImageName } from './image.js';
import { planarImageOf, planarResultFor } from './planar-image.js';
import { addPixels } from './pixel-kernel.js';
import { packed, planes } from './pixel-runs.js';
import { WHITE } from './rounding.js';
import type { EngineOptions, ImageOperation } from './implementation.js';
import type { ChannelOrder } from './parameters.js';

/** Options of operations on channels. */
export interface ChannelOptions<D extends ImageName = ImageName> extends EngineOptions {
  /** Where the result is written. Default: a new tensor. */
  readonly out?: OrOp<Tensor<D>>;
}

const functions = new Map<string, DeviceFunction>();

function inOrder(order: readonly number[]): DeviceFunction {
  const key = order.join('');
  let f = functions.get(key);
  if (f === undefined) {
    const uses = { A: order[0]!, B: order[1] ?? 0, C: order[2] ?? 0, D: order[3] ?? 0 };
    f = deviceFunction(
      (
        made: KernelArray<number>,
        from: KernelArray<number>,
        _: KernelArray<number>,
        _p: KernelArray<number>,
        gpu: GpuWith<typeof uses>,
      ) => {
        made[0] = from[gpu.A]!;
        made[1] = from[gpu.B]!;
        made[2] = from[gpu.C]!;
        made[3] = from[gpu.D]!;
      },
      { uses },
    );
    functions.set(key, f);
  }
  return f;
}

const moving = (order: readonly number[]): { key: string; f: DeviceFunction; moves: true } => ({
  key: `channels_${order.join('')}`,
  f: inOrder(order),
  moves: true,
});
const AS_THEY_ARE = [0, 1, 2, 3];

const orders: ImageOperation<ChannelOrder> = {
  name: 'orderChannels',
  own: {
    queue(work, { images: [image], results: [out], parameters: { order } }) {
      addPixels(work, moving(order), [packed(image!)], packed(imageOfResult(out!)));
    },
  },
};

/**
 * Selects channels: channel `order[c]` of the image becomes channel c. `[2, 1, 0]` exchanges red
 * and blue, `[0, 1, 2]` drops alpha, `[0]` selects the first channel, and `[0, 0, 0]` repeats it.
 * Elements are copied unchanged.
 *
 * @param order 1, 3 or 4 numbers of channels, from 0 on
 * @throws CudaArgumentError for a channel that the image does not have, and another length; at the
 *   call, or when run where an operation gives the image
 *
 * @example
 * ```ts
 * using image = await device.tensor(u8, [10, 20, 30], [1, 1, 3]);
 * using bgr = await orderChannels(image, [2, 1, 0]);
 * console.log((await bgr.read()).join(' ')); // 30 20 10
 * ```
 */
export function orderChannels<D extends ImageName>(
  image: OrOp<Tensor<D>>,
  order: readonly number[],
  options: ChannelOptions<NoInfer<D>> = {},
): DeviceOp<Tensor<D, number[]>> {
  checkOptions('options', options, ['engine', 'out']);
  if (
    !(Array.isArray as (value: unknown) => boolean)(order) ||
    !(CHANNELS as readonly number[]).includes(order.length)
  )
    throw invalid('order', '1, 3 or 4 numbers of channels', order);
  return imageOperation(
    orders,
    [image, options.out],
    options,
    ([given, into]) => {
      const read = imageOf('orderChannels', 'image', given);
      order.forEach((channel, index) => {
        if (!Number.isInteger(channel) || channel < 0 || channel >= read.channels)
          throw invalid(
            `order[${index}]`,
            `a channel of the image, from 0 to ${read.channels - 1}`,
            channel,
          );
      });
      return {
        images: [read],
        results: [resultFor('orderChannels', read, { channels: order.length as Channels }, into)],
        parameters: { order: [...order] },
      };
    },
    ([result]) => result,
  ) as never;
}

/** Options of {@link addAlpha}. */
export interface AddAlphaOptions<D extends ImageName = ImageName> extends ChannelOptions<D> {
  /** The alpha of every pixel. Default: white, which is 255 for u8, 65535 for u16, 1 for floats. */
  readonly alpha?: number;
}

const withAlpha = deviceFunction(
  (
    made: KernelArray<number>,
    from: KernelArray<number>,
    _: KernelArray<number>,
    p: KernelArray<number>,
  ) => {
    made[0] = from[0]!;
    made[1] = from[1]!;
    made[2] = from[2]!;
    made[3] = p[0]!;
  },
);

const alphas: ImageOperation<{ readonly alpha: number }> = {
  name: 'addAlpha',
  own: {
    takes: { u8: [3], u16: [3], f16: [3], f32: [3] },
    queue(work, { images: [image], results: [out], parameters: { alpha } }) {
      addPixels(
        work,
        { key: 'alpha', f: withAlpha, numbers: [alpha] },
        [packed(image!)],
        packed(imageOfResult(out!)),
      );
    },
  },
};

/**
 * Adds a fourth channel, with one value for all pixels, to an image of three channels.
 *
 * @throws CudaArgumentError for an image of another number of channels; at the call, or when run
 *   where an operation gives the image
 *
 * @example
 * ```ts
 * using image = await device.tensor(u8, [10, 20, 30], [1, 1, 3]);
 * using rgba = await addAlpha(image);
 * console.log((await rgba.read()).join(' ')); // 10 20 30 255
 * ```
 */
export function addAlpha<D extends ImageName>(
  image: OrOp<Tensor<D>>,
  options: AddAlphaOptions<NoInfer<D>> = {},
): DeviceOp<Tensor<D, number[]>> {
  checkOptions('options', options, ['alpha', 'engine', 'out']);
  const { alpha, out } = options;
  if (alpha !== undefined && (typeof alpha !== 'number' || !Number.isFinite(alpha)))
    throw invalid('options.alpha', 'a number that is finite', alpha);
  return imageOperation(
    alphas,
    [image, out],
    options,
    ([given, into]) => {
      const read = imageOf('addAlpha', 'image', given);
      if (read.channels !== 3) {
        const fix =
          read.channels === 1 ? " Write convertColor(image, { from: 'grey', to: 'rgba' })." : '';
        throw new CudaArgumentError(
          'image',
          'image: expected an image of 3 channels, for addAlpha(…), got ' +
            `${read.channels}.${fix}`,
        );
      }
      return {
        images: [read],
        results: [resultFor('addAlpha', read, { channels: 4 }, into)],
        parameters: { alpha: alpha ?? WHITE[read.dtype.name] },
      };
    },
    ([result]) => result,
  ) as never;
}

const toPlanes: ImageOperation<object> = {
  name: 'toPlanar',
  own: {
    queue(work, { images: [image], results: [out] }) {
      addPixels(work, moving(AS_THEY_ARE), [packed(image!)], planes(out!));
    },
  },
};

/**
 * Converts packed channels to planes: [H, W, C] becomes [C, H, W], and [N, H, W, C] becomes [N, C,
 * H, W]. Elements are copied unchanged.
 *
 * @throws CudaArgumentError for what is no image; at the call, or when run where an operation gives
 *   the image
 *
 * @example
 * ```ts
 * using image = await device.tensor(u8, [1, 2, 3, 4, 5, 6], [1, 2, 3]);
 * using planar = await toPlanar(image);
 * console.log(planar.shape, (await planar.read()).join(' ')); // [ 3, 1, 2 ] 1 4 2 5 3 6
 * ```
 */
export function toPlanar<D extends ImageName>(
  image: OrOp<Tensor<D>>,
  options: ChannelOptions<NoInfer<D>> = {},
): DeviceOp<Tensor<D, number[]>> {
  checkOptions('options', options, ['engine', 'out']);
  return imageOperation(
    toPlanes,
    [image, options.out],
    options,
    ([given, into]) => {
      const read = imageOf('toPlanar', 'image', given);
      return {
        images: [read],
        results: [planarResultFor('toPlanar', read, read.dtype.name, read.channels, into)],
        parameters: {},
      };
    },
    ([result]) => result,
  ) as never;
}

const ofPlanes: ImageOperation<object> = {
  name: 'toPacked',
  own: {
    queue(work, { images: [image], results: [out] }) {
      addPixels(work, moving(AS_THEY_ARE), [planes(image!.tensor)], packed(imageOfResult(out!)));
    },
  },
};

/**
 * Converts planes to packed channels: [C, H, W] becomes [H, W, C], and [N, C, H, W] becomes [N, H,
 * W, C]. Elements are copied unchanged.
 *
 * @throws CudaArgumentError for a tensor that does not have 1, 3 or 4 planes, or whose pixels of a
 *   row are not adjacent; at the call, or when run where an operation gives the tensor
 *
 * @example
 * ```ts
 * using planar = await device.tensor(u8, [1, 2, 3, 4, 5, 6], [3, 1, 2]);
 * using image = await toPacked(planar);
 * console.log(image.shape, (await image.read()).join(' ')); // [ 1, 2, 3 ] 1 3 5 2 4 6
 * ```
 */
export function toPacked<D extends ImageName>(
  planar: OrOp<Tensor<D>>,
  options: ChannelOptions<NoInfer<D>> = {},
): DeviceOp<Tensor<D, number[]>> {
  checkOptions('options', options, ['engine', 'out']);
  return imageOperation(
    ofPlanes,
    [planar, options.out],
    options,
    ([given, into]) => {
      const read = planarImageOf('toPacked', 'planar', given);
      return { images: [read], results: [resultFor('toPacked', read, {}, into)], parameters: {} };
    },
    ([result]) => result,
  ) as never;
}
