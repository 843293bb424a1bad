/** Alpha blending of images. */
import { CudaArgumentError } from '../core/index.js';
import { checkBoolean, checkOptions, invalid } from '../ground/arguments.js';
import { deviceFunction } from '../kernels/index.js';
import type { DeviceFunction, GpuWith } from '../kernels/index.js';
import type { KernelArray } from '../library/kernel-family.js';
import type { DeviceOp, OrOp } from '../ops/index.js';
import type { Tensor } from '../tensor/index.js';
import { checkSameSize } from './arithmetic.js';
import { imageOperation } from './engine.js';
import { imageOf, imageOfResult, resultFor } from './image.js';
import type { ImageName } from './image.js';
import { addPixels } from './pixel-kernel.js';
import { packed } from './pixel-runs.js';
import { WHITE } from './rounding.js';
import type { EngineOptions, ImageOperation } from './implementation.js';
import type { Blending } from './parameters.js';

/** Options of {@link blend}. */
export interface BlendOptions<D extends ImageName = ImageName> extends EngineOptions {
  /** Whether colours of images with alpha are premultiplied by it. Default: false. */
  readonly premultiplied?: boolean;
  /** From 0 to 1: a factor of the front's alpha. Default: 1. */
  readonly opacity?: number;
  /** Where the result is written. Default: a new tensor. */
  readonly out?: OrOp<Tensor<D>>;
}

function blendOf(
  frontAlpha: boolean,
  backAlpha: boolean,
  premultiplied: boolean,
  white: number,
): DeviceFunction {
  const uses = {
    FRONT_ALPHA: frontAlpha,
    BACK_ALPHA: backAlpha,
    PREMULTIPLIED: premultiplied,
    WHITE: white,
    SHARE: 1 / white,
  };
  return deviceFunction(
    (
      made: KernelArray<number>,
      front: KernelArray<number>,
      back: KernelArray<number>,
      p: KernelArray<number>,
      gpu: GpuWith<typeof uses>,
    ) => {
      const opacity = p[0]!;
      const above = gpu.FRONT_ALPHA ? front[3]! * gpu.f32(gpu.SHARE) * opacity : opacity;
      const through = 1 - above;
      if (gpu.PREMULTIPLIED) {
        gpu.unroll(4);
        for (let c = 0; c < 4; c++) made[c] = front[c]! * opacity + back[c]! * through;
        if (!gpu.FRONT_ALPHA) made[3] = gpu.f32(gpu.WHITE) * opacity + back[3]! * through;
      } else {
        const below = gpu.BACK_ALPHA ? back[3]! * gpu.f32(gpu.SHARE) * through : through;
        const alpha = above + below;
        const share = gpu.BACK_ALPHA ? (alpha > 0 ? 1 / alpha : 0) : 1;
        gpu.unroll(4);
        for (let c = 0; c < 4; c++) made[c] = (front[c]! * above + back[c]! * below) * share;
        if (gpu.BACK_ALPHA) made[3] = alpha * gpu.f32(gpu.WHITE);
      }
    },
    { uses },
  );
}

const functions = new Map<string, DeviceFunction>();

const blends: ImageOperation<Blending> = {
  name: 'blend',
  own: {
    queue(work, { images: [front, back], results: [out], parameters: { premultiplied, opacity } }) {
      const white = WHITE[back!.dtype.name];
      const key =
        `blend_${front!.channels}${back!.channels}${premultiplied ? '_premultiplied' : ''}_` +
        `${white}`;
      let f = functions.get(key);
      if (f === undefined)
        functions.set(
          key,
          (f = blendOf(front!.channels === 4, back!.channels === 4, premultiplied, white)),
        );
      addPixels(
        work,
        { key, f, numbers: [opacity] },
        [packed(front!), packed(back!)],
        packed(imageOfResult(out!)),
      );
    },
  },
};

/**
 * Blends the front over the back. It gives an image with the channels of the back. Each image has 3
 * or 4 channels, of which the fourth is alpha, or both have 1. M is white: 255 for u8, 65535 for
 * u16, 1 for floats. a = front alpha / M · opacity (opacity for a front without alpha), and b =
 * back alpha / M · (1 - a) (1 - a for a back without alpha):
 *
 * - straight: colour (F · a + B · b) / (a + b), 0 where a + b is 0; alpha M · (a + b)
 * - premultiplied: every channel F · opacity + B · (1 - a), with M as the alpha of a front without
 *   alpha
 *
 * Elements are computed in f32 and rounded once; integers to nearest, ties to even, saturated.
 *
 * @throws CudaArgumentError for images of different sizes or dtypes, numbers of channels that
 *   cannot be blended, an opacity outside 0 to 1; at the call, or when run where operations give
 *   the images
 *
 * @example
 * ```ts
 * using front = await device.tensor(u8, [200, 200, 200], [1, 1, 3]);
 * using back = await device.tensor(u8, [100, 0, 200], [1, 1, 3]);
 * using mixed = await blend(front, back, { opacity: 0.5 });
 * console.log((await mixed.read()).join(' ')); // 150 100 200
 * ```
 */
export function blend<D extends ImageName>(
  front: OrOp<Tensor<D>>,
  back: OrOp<Tensor<NoInfer<D>>>,
  options: BlendOptions<NoInfer<D>> = {},
): DeviceOp<Tensor<D, number[]>> {
  checkOptions('options', options, ['premultiplied', 'opacity', 'engine', 'out']);
  const { premultiplied = false, opacity = 1, out } = options;
  checkBoolean('options.premultiplied', premultiplied);
  if (typeof opacity !== 'number' || !(opacity >= 0 && opacity <= 1))
    throw invalid('options.opacity', 'a number from 0 to 1', opacity);
  return imageOperation(
    blends,
    [front, back, out],
    options,
    ([first, second, into]) => {
      const above = imageOf('blend', 'front', first);
      const below = imageOf('blend', 'back', second);
      if (above.dtype !== below.dtype)
        throw invalid(
          'back',
          `an image of ${above.dtype.name}, as front is`,
          below.tensor,
          `Convert it with rescale(back, ${above.dtype.name}).`,
        );
      checkSameSize('blend', 'back', below, above, 'front');
      if (below.channels !== above.channels && (above.channels === 1 || below.channels === 1)) {
        throw new CudaArgumentError(
          'back',
          'back: expected an image of ' +
            `${above.channels === 1 ? '1 channel' : '3 or 4 channels'}, beside a front of ` +
            `${above.channels}, got ${below.channels}. Convert one of them with ` +
            'convertColor(…).',
        );
      }
      return {
        images: [above, below],
        results: [resultFor('blend', below, {}, into)],
        parameters: { premultiplied, opacity },
      };
    },
    ([result]) => result,
  ) as never;
}
