/** Images with a border, and images that are fitted into a frame (letterbox). */
import { f32, i32, i64 } from '../core/index.js';
import { checkInteger, checkOptions, invalid } from '../ground/arguments.js';
import { deviceFunction, input, output } from '../kernels/index.js';
import type { Usable } from '../kernels/index.js';
import type { Gpu } from '../library/kernel-family.js';
import type { Work } from '../library/operation.js';
import type { DeviceOp, OrOp } from '../ops/index.js';
import type { Tensor } from '../tensor/index.js';
import { Results } from '../tensor/results.js';
import type { Closing } from '../tensor/results.js';
import { BORDERS, INDICES } from './border.js';
import type { Border } from './border.js';
import { crop } from './crop.js';
import type { Region } from './crop.js';
import { imageOperation } from './engine.js';
import { BLOCK, inLaunches, separate } from './image-launch.js';
import {
  MOST_EXTENT,
  checkExtent,
  flat,
  imageOf,
  imageOfResult,
  isWideSpan,
  resultFor,
} from './image.js';
import type { Image, ImageName } from './image.js';
import { letterboxPlacement } from './letterbox-placement.js';
import { borders, paints } from './move-kernels.js';
import { queueResize } from './resizing.js';
import { RESIZE_FILTERS, checkColor, checkFilter } from './sampling.js';
import type { ResizeFilter } from './sampling.js';
import type { EngineOptions, ImageOperation } from './implementation.js';
import type { BorderParameters, LetterboxParameters } from './parameters.js';

/** Options of {@link copyBorder}. */
export interface BorderOptions<D extends ImageName = ImageName> extends EngineOptions {
  /**
   * Columns and rows of border. Default: 0; with `out`, the rest of its columns on the right, and
   * of its rows at the bottom.
   */
  readonly left?: number;
  readonly top?: number;
  readonly right?: number;
  readonly bottom?: number;
  /** The border's pixels. Default: constant. */
  readonly border?: Border;
  /**
   * The colour of the constant border: one number for all channels, or one for each. Default: 0.
   */
  readonly color?: number | readonly number[];
  /** Where the result goes. Default: a new tensor. */
  readonly out?: OrOp<Tensor<D>>;
}

const COLORS: Readonly<Record<ImageName, Usable>> = {
  u8: deviceFunction((value: number, gpu: Gpu): number => gpu.i32(value)),
  u16: deviceFunction((value: number, gpu: Gpu): number => gpu.i32(value)),
  f16: (value: number): number => value,
  f32: (value: number): number => value,
};

const bordering: ImageOperation<BorderParameters> = {
  name: 'copyBorder',
  own: {
    queue(work, { images, results, parameters: { left, top, border, color } }) {
      const out = imageOfResult(results[0]!);
      const image = separate(work, images[0]!, out);
      const { dtype, channels } = image;
      const wide = isWideSpan([image, out]);
      const launch = borders.member(
        `${border}_${dtype.name}_${channels}${wide ? '_wide' : ''}`,
        () => {
          const whole = wide ? i64 : i32;
          return {
            signature: {
              out: output(dtype),
              x: input(dtype),
              width: i32,
              outRow: whole,
              outImage: whole,
              columns: i32,
              rows: i32,
              inRow: whole,
              inImage: whole,
              left: i32,
              top: i32,
              f0: f32,
              f1: f32,
              f2: f32,
              f3: f32,
            },
            uses: {
              C: channels,
              CONSTANT: border === 'constant',
              at: INDICES[border],
              color: COLORS[dtype.name],
            },
            block: BLOCK,
          };
        },
      );
      inLaunches([image, out], ([x, to]) => {
        work.add(
          launch(
            {
              out: flat(to!),
              x: flat(x!),
              width: out.width,
              outRow: out.rowPitch,
              outImage: out.imagePitch,
              columns: image.width,
              rows: image.height,
              inRow: image.rowPitch,
              inImage: image.imagePitch,
              left,
              top,
              ...numbersOf(color),
            },
            {
              grid: [Math.ceil(out.width / BLOCK), out.height, x!.batch],
              ...(wide ? { index: 'i64' } : {}),
            },
          ),
        );
      });
    },
  },
};

function numbersOf([f0 = 0, f1 = 0, f2 = 0, f3 = 0]: readonly number[]): Readonly<
  Record<string, number>
> {
  return { f0, f1, f2, f3 };
}

/**
 * Copies an image into a border. It gives a new contiguous tensor that is `left` + `right` columns
 * wider and `top` + `bottom` rows higher, or `out`, whose size gives `right` and `bottom`.
 *
 * @throws CudaArgumentError where the image does not fit into `out` at `left` and `top`, for an
 *   unknown border or a colour that the dtype does not have, and as {@link resize} does
 *
 * @example
 * ```ts
 * using image = await device.tensor(u8, [10, 20, 30], [1, 3, 1]);
 * using framed = await copyBorder(image, { left: 2, right: 1, border: 'replicate' });
 * console.log((await framed.read()).join(' ')); // 10 10 10 20 30 30
 * ```
 */
export function copyBorder<D extends ImageName>(
  image: OrOp<Tensor<D>>,
  options: BorderOptions<NoInfer<D>>,
): DeviceOp<Tensor<D, number[]>> {
  if (options === undefined)
    throw invalid('options', 'an object with left, top, right and bottom, or out', options);
  checkOptions('options', options, [
    'left',
    'top',
    'right',
    'bottom',
    'border',
    'color',
    'out',
    'engine',
  ]);
  const { left = 0, top = 0, right, bottom, border = 'constant', color = 0 } = options;
  for (const [name, value] of Object.entries({ left, top, right: right ?? 0, bottom: bottom ?? 0 }))
    checkInteger(`options.${name}`, value, 0, MOST_EXTENT, 'pixels');
  checkFilter('options.border', border, BORDERS);
  return imageOperation(
    bordering,
    [image, options.out],
    options,
    ([given, out]) => {
      const read = imageOf('copyBorder', 'image', given);
      const like = out === undefined ? undefined : imageOf('copyBorder', 'options.out', out);
      const width =
        like === undefined || right !== undefined ? left + read.width + (right ?? 0) : like.width;
      const height =
        like === undefined || bottom !== undefined
          ? top + read.height + (bottom ?? 0)
          : like.height;
      if (width < left + read.width)
        throw invalid(
          'options.out',
          `at least ${left + read.width} columns, for an image of ${read.width} at ` +
            `options.left ${left}`,
          width,
        );
      if (height < top + read.height)
        throw invalid(
          'options.out',
          `at least ${top + read.height} rows, for an image of ${read.height} at options.top ` +
            `${top}`,
          height,
        );
      checkExtent('options.width', width);
      checkExtent('options.height', height);
      return {
        images: [read],
        results: [resultFor('copyBorder', read, { width, height }, out)],
        parameters: {
          left,
          top,
          border,
          color: checkColor('options.color', color, read.dtype.name, read.channels),
        },
      };
    },
    ([result]) => result,
  ) as never;
}

/**
 * Copies an image into a border of one colour: {@link copyBorder} with the constant border.
 *
 * @example
 * ```ts
 * using image = await device.tensor(u8, [10, 20, 30], [1, 3, 1]);
 * using framed = await copyConstantBorder(image, { left: 2, right: 1, color: 7 });
 * console.log((await framed.read()).join(' ')); // 7 7 10 20 30 7
 * ```
 */
export function copyConstantBorder<D extends ImageName>(
  image: OrOp<Tensor<D>>,
  options: Omit<BorderOptions<NoInfer<D>>, 'border'>,
): DeviceOp<Tensor<D, number[]>> {
  checkOptions('options', options, ['left', 'top', 'right', 'bottom', 'color', 'out', 'engine']);
  return copyBorder(image, { ...options, border: 'constant' });
}

/** Options of {@link letterbox}. */
export interface LetterboxOptions<D extends ImageName = ImageName> extends EngineOptions {
  /** Columns and rows of the frame. Default: those of `out`. */
  readonly width?: number;
  readonly height?: number;
  /** Default: linear. */
  readonly filter?: ResizeFilter;
  /** The colour around the image: one number for all channels, or one for each. Default: 0. */
  readonly color?: number | readonly number[];
  /** Where the result goes. Default: a new tensor. */
  readonly out?: OrOp<Tensor<D>>;
}

/** The result of {@link letterbox}. Closing it closes the image, unless that is `out`. */
export interface Letterboxed<D extends ImageName = ImageName> extends Closing {
  readonly image: Tensor<D, number[]>;
  /** The part of the frame that the image covers. */
  readonly region: Region;
  /**
   * Columns and rows of the frame for each of the image: column x of the image is at column
   * `region.x + x * scaleX` of the frame.
   */
  readonly scaleX: number;
  readonly scaleY: number;
}

const letterboxes: ImageOperation<LetterboxParameters> = {
  name: 'letterbox',
  own: {
    queue(work, { images, results, parameters: { region, filter, color } }) {
      const out = imageOfResult(results[0]!);
      const part = (x: number, y: number, width: number, height: number): Image | undefined =>
        width === 0 || height === 0
          ? undefined
          : imageOfResult(crop(out.tensor as never, { x, y, width, height }));
      const right = region.x + region.width;
      const below = region.y + region.height;
      const bars = [
        part(0, 0, out.width, region.y),
        part(0, below, out.width, out.height - below),
        part(0, region.y, region.x, region.height),
        part(right, region.y, out.width - right, region.height),
      ];
      for (const bar of bars) if (bar !== undefined) queuePaint(work, bar, color);
      queueResize(work, images[0]!, part(region.x, region.y, region.width, region.height)!, filter);
    },
  },
};

/** Fills an image with a colour. */
function queuePaint(work: Work, out: Image, color: readonly number[]): void {
  const { dtype, channels } = out;
  const wide = isWideSpan([out]);
  const launch = paints.member(`${dtype.name}_${channels}${wide ? '_wide' : ''}`, () => {
    const whole = wide ? i64 : i32;
    return {
      signature: {
        out: output(dtype),
        width: i32,
        outRow: whole,
        outImage: whole,
        f0: f32,
        f1: f32,
        f2: f32,
        f3: f32,
      },
      uses: { C: channels, color: COLORS[dtype.name] },
      block: BLOCK,
    };
  });
  inLaunches([out], ([to]) => {
    work.add(
      launch(
        {
          out: flat(to!),
          width: out.width,
          outRow: out.rowPitch,
          outImage: out.imagePitch,
          ...numbersOf(color),
        },
        {
          grid: [Math.ceil(out.width / BLOCK), out.height, to!.batch],
          ...(wide ? { index: 'i64' } : {}),
        },
      ),
    );
  });
}

/**
 * Fits an image, or each of a batch, into a frame: as large as possible with its aspect ratio, in
 * the middle, with a colour around it. It gives the frame and the part that the image covers, by
 * {@link letterboxPlacement}, so that places in the frame can be mapped to the image: x = (frame's
 * x - region.x) / scaleX.
 *
 * @throws CudaArgumentError as {@link resize} and {@link copyBorder} do
 *
 * @example
 * ```ts
 * using image = await device.full(u8, [1, 2, 1], 50);
 * using boxed = await letterbox(image, { width: 2, height: 3 });
 * console.log((await boxed.image.read()).join(' ')); // 0 0 50 50 0 0
 * console.log(boxed.region, boxed.scaleX); // { x: 0, y: 1, width: 2, height: 1 } 1
 * ```
 */
export function letterbox<D extends ImageName>(
  image: OrOp<Tensor<D>>,
  options: LetterboxOptions<NoInfer<D>>,
): DeviceOp<Letterboxed<D>> {
  if (options === undefined)
    throw invalid('options', 'an object with width and height, or out', options);
  checkOptions('options', options, ['width', 'height', 'filter', 'color', 'out', 'engine']);
  const { filter = 'linear', color = 0 } = options;
  checkFilter('options.filter', filter, RESIZE_FILTERS);
  return imageOperation(
    letterboxes,
    [image, options.out],
    options,
    ([given, out]) => {
      const read = imageOf('letterbox', 'image', given);
      const like = out === undefined ? undefined : imageOf('letterbox', 'options.out', out);
      const { width = like?.width, height = like?.height } = options;
      checkExtent('options.width', width);
      checkExtent('options.height', height);
      const { left, top, width: inner, height: high } = letterboxPlacement(read, { width, height });
      const region = { x: left, y: top, width: inner, height: high };
      return {
        images: [read],
        results: [resultFor('letterbox', read, { width, height }, out)],
        parameters: {
          region,
          filter,
          color: checkColor('options.color', color, read.dtype.name, read.channels),
        },
      };
    },
    ([result], { images, parameters: { region } }) =>
      new Results(
        ['image', 'region', 'scaleX', 'scaleY'],
        [result, region, region.width / images[0]!.width, region.height / images[0]!.height],
        options.out === undefined ? ['image'] : [],
      ),
  ) as never;
}
