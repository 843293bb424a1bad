/** Mirrored images, and images turned by quarters: pixels move unchanged. */
import { i32, i64 } from '../core/index.js';
import { checkInteger, checkOptions, invalid } from '../ground/arguments.js';
import { input, output } from '../kernels/index.js';
import type { Work } from '../library/operation.js';
import { wordOf } from '../library/words.js';
import type { DeviceOp, OrOp } from '../ops/index.js';
import type { Tensor } from '../tensor/index.js';
import { imageOperation } from './engine.js';
import { BLOCK, inLaunches, separate } from './image-launch.js';
import { flat, imageOf, imageOfResult, isWideSpan, resultFor } from './image.js';
import type { Image, ImageName } from './image.js';
import { turns } from './move-kernels.js';
import type { EngineOptions, ImageOperation } from './implementation.js';
import type { Flip, MirrorParameters, QuarterParameters } from './parameters.js';
const FLIPS: readonly Flip[] = ['horizontal', 'vertical', 'both'];

/** Options of {@link mirror} and {@link rotateQuarters}. */
export interface MoveOptions<D extends ImageName = ImageName> extends EngineOptions {
  /** Where the result is written. Default: a new tensor. */
  readonly out?: OrOp<Tensor<D>>;
}

/**
 * A turn: the corner of the image that becomes the first pixel, and whether rows become columns.
 */
interface Turning {
  readonly bottom: boolean;
  readonly right: boolean;
  readonly turned: boolean;
}

const QUARTERS: readonly Turning[] = [
  { bottom: false, right: false, turned: false },
  { bottom: false, right: true, turned: true },
  { bottom: true, right: true, turned: false },
  { bottom: true, right: false, turned: true },
];

/** The block for turned images: reads along columns use the same sectors again. */
const TILE = [32, 8] as const;

function queueTurn(work: Work, given: Image, out: Image, { bottom, right, turned }: Turning): void {
  const image = separate(work, given, out);
  const { channels, rowPitch } = image;
  const wide = isWideSpan([image, out]);
  const element = wordOf(image.dtype);
  const block = turned ? TILE : ([BLOCK, 1] as const);
  const launch = turns.member(
    `${element.name}_${channels}${turned ? '_tiles' : ''}${wide ? '_wide' : ''}`,
    () => {
      const whole = wide ? i64 : i32;
      return {
        signature: {
          out: output(element),
          x: input(element),
          width: i32,
          height: i32,
          outRow: whole,
          outImage: whole,
          inImage: whole,
          first: whole,
          stepRow: whole,
          stepColumn: whole,
        },
        uses: { C: channels },
        block,
      };
    },
  );
  const down = bottom ? -rowPitch : rowPitch;
  const across = right ? -channels : channels;
  const first =
    (bottom ? (image.height - 1) * rowPitch : 0) + (right ? (image.width - 1) * channels : 0);
  const seen = (each: Image): unknown => flat(each).reinterpret(element);
  inLaunches([image, out], ([x, to]) => {
    work.add(
      launch(
        {
          out: seen(to!),
          x: seen(x!),
          width: out.width,
          height: out.height,
          outRow: out.rowPitch,
          outImage: out.imagePitch,
          inImage: image.imagePitch,
          first,
          stepRow: turned ? across : down,
          stepColumn: turned ? down : across,
        },
        {
          grid: [Math.ceil(out.width / block[0]), Math.ceil(out.height / block[1]), x!.batch],
          ...(wide ? { index: 'i64' } : {}),
        },
      ),
    );
  });
}

const mirrors: ImageOperation<MirrorParameters> = {
  name: 'mirror',
  own: {
    queue(work, { images, results, parameters: { flip } }) {
      queueTurn(work, images[0]!, imageOfResult(results[0]!), {
        bottom: flip !== 'horizontal',
        right: flip !== 'vertical',
        turned: false,
      });
    },
  },
};

const quarterTurns: ImageOperation<QuarterParameters> = {
  name: 'rotateQuarters',
  own: {
    queue(work, { images, results, parameters: { quarters } }) {
      queueTurn(work, images[0]!, imageOfResult(results[0]!), QUARTERS[quarters]!);
    },
  },
};

/**
 * Mirrors an image. It gives a new contiguous tensor, or `out`.
 *
 * @throws CudaArgumentError for what is no image, an `out` of another form, and an engine that does
 *   not have the operation; at the call, or when run where operations give the operands
 *
 * @example
 * ```ts
 * using image = await device.tensor(u8, [10, 20, 30], [1, 3, 1]);
 * using mirrored = await mirror(image, 'horizontal');
 * console.log((await mirrored.read()).join(' ')); // 30 20 10
 * ```
 */
export function mirror<D extends ImageName>(
  image: OrOp<Tensor<D>>,
  flip: Flip,
  options: MoveOptions<NoInfer<D>> = {},
): DeviceOp<Tensor<D, number[]>> {
  checkOptions('options', options, ['out', 'engine']);
  if (!FLIPS.includes(flip)) throw invalid('flip', `one of ${FLIPS.join(', ')}`, flip);
  return imageOperation(
    mirrors,
    [image, options.out],
    options,
    ([given, out]) => {
      const read = imageOf('mirror', 'image', given);
      return {
        images: [read],
        results: [resultFor('mirror', read, {}, out)],
        parameters: { flip },
      };
    },
    ([result]) => result,
  ) as never;
}

/**
 * Turns an image by quarters of a turn, counter-clockwise; negative ones are clockwise. Pixels are
 * copied unchanged. For an odd number of quarters the result has as many columns as the image has
 * rows.
 *
 * @throws CudaArgumentError as {@link mirror} does
 *
 * @example
 * ```ts
 * using image = await device.tensor(u8, [10, 20, 30], [1, 3, 1]);
 * using turned = await rotateQuarters(image, 1);
 * console.log(turned.shape, (await turned.read()).join(' ')); // [ 3, 1, 1 ] 30 20 10
 * ```
 */
export function rotateQuarters<D extends ImageName>(
  image: OrOp<Tensor<D>>,
  quarters: number,
  options: MoveOptions<NoInfer<D>> = {},
): DeviceOp<Tensor<D, number[]>> {
  checkOptions('options', options, ['out', 'engine']);
  checkInteger('quarters', quarters, -1e6, 1e6, 'quarters of a turn');
  const turned = ((quarters % 4) + 4) % 4;
  return imageOperation(
    quarterTurns,
    [image, options.out],
    options,
    ([given, out]) => {
      const read = imageOf('rotateQuarters', 'image', given);
      const size = turned % 2 === 0 ? {} : { width: read.height, height: read.width };
      return {
        images: [read],
        results: [resultFor('rotateQuarters', read, size, out)],
        parameters: { quarters: turned },
      };
    },
    ([result]) => result,
  ) as never;
}
