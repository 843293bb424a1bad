/** Resizing of images. */
import { i32, i64 } from '../core/index.js';
import type { KernelDType } from '../core/index.js';
import { checkOptions, invalid } from '../ground/arguments.js';
import { deviceFunction, input, output, struct } from '../kernels/index.js';
import type { Usable } from '../kernels/index.js';
import type { Work } from '../library/operation.js';
import { wordOf } from '../library/words.js';
import type { DeviceOp, OrOp } from '../ops/index.js';
import type { KernelTensor, Tensor } from '../tensor/index.js';
import { imageOperation } from './engine.js';
import { BLOCK, inLaunches, rowsOfThread, separate } from './image-launch.js';
import {
  checkExtent,
  checkImageList,
  flat,
  imageOf,
  imageOfResult,
  imagesOf,
  isWideSpan,
  resultFor,
} from './image.js';
import type { Image, ImageName } from './image.js';
import { proportionsOf } from './proportions.js';
import { queueResample } from './resampling.js';
import type { ResampleFilter } from './resampling.js';
import { fitsFours, queueFours } from './resize-fours.js';
import * as kernels from './resize-kernels.js';
import { RESIZE_FILTERS, STORES_OF_MEANS, checkFilter } from './sampling.js';
import type { ResizeFilter } from './sampling.js';
import { inGroups, sourceParams } from './several-sources.js';
import type { Implementation, EngineOptions, ImageOperation } from './implementation.js';
import type { ResizeParameters } from './parameters.js';

/** Options of {@link resize}. */
export interface ResizeOptions<D extends ImageName = ImageName> extends EngineOptions {
  /** Columns and rows of the result. Default: those of `out`. */
  readonly width?: number;
  readonly height?: number;
  /** Default: linear. */
  readonly filter?: ResizeFilter;
  /** Where the result is written, such as a region of a larger image. Default: a new tensor. */
  readonly out?: OrOp<Tensor<D>>;
}

/** The implementation by our kernels. */
export const ownResize: Implementation<ResizeParameters> = {
  queue(work, { images, results, parameters }) {
    queueResize(work, images[0]!, imageOfResult(results[0]!), parameters.filter);
  },
};

const resizes: ImageOperation<ResizeParameters> = { name: 'resize', own: ownResize };

/**
 * Resizes an image, or each of a batch. It gives a new contiguous tensor of the same dtype, or
 * `out`. Pixels are areas: the middle of column d of the result is at exactly (d + 0.5) · from / to
 * - 0.5 of the source, and rows likewise; beyond the edges the outermost pixels are repeated.
 * `linear` (the default), `cubic` and `lanczos3` weight the 2, 4 and 6 pixels around that place
 * along each axis; `nearest` takes the pixel that the place lies in; `area` takes the mean of the
 * part of the source that the pixel covers, with each pixel of the source by its share. Sums are in
 * f32; integers are rounded to nearest, ties to even, and saturated.
 *
 * @throws CudaArgumentError for what is no image, a size that is missing or outside 1 to 32768, an
 *   `out` of another form, and an engine that does not have the operation; at the call, or when run
 *   where operations give the operands
 *
 * @example
 * ```ts
 * using image = await device.tensor(u8, [0, 100], [1, 2, 1]);
 * using wide = await resize(image, { width: 4, height: 1 });
 * console.log((await wide.read()).join(' ')); // 0 25 75 100
 * ```
 */
export function resize<D extends ImageName>(
  image: OrOp<Tensor<D>>,
  options: ResizeOptions<NoInfer<D>>,
): DeviceOp<Tensor<D, number[]>> {
  if (options === undefined)
    throw invalid('options', 'an object with width and height, or out', options);
  checkOptions('options', options, ['width', 'height', 'filter', 'out', 'engine']);
  const { filter = 'linear' } = options;
  checkFilter('options.filter', filter, RESIZE_FILTERS);
  return imageOperation(
    resizes,
    [image, options.out],
    options,
    ([given, out]) => {
      const read = imageOf('resize', 'image', given);
      const like = out === undefined ? undefined : imageOf('resize', 'options.out', out);
      const { width = like?.width, height = like?.height } = options;
      checkExtent('options.width', width);
      checkExtent('options.height', height);
      return {
        images: [read],
        results: [resultFor('resize', read, { width, height }, out)],
        parameters: { filter },
      };
    },
    ([result]) => result,
  ) as never;
}

/** Filters that take one launch; the others take several passes. */
type PlainFilter = Exclude<ResizeFilter, ResampleFilter>;

function isPlain(filter: ResizeFilter): filter is PlainFilter {
  return filter === 'nearest' || filter === 'linear';
}

/** The specialisation of a kernel. */
interface Made {
  readonly key: string;
  /** The dtype of elements in the kernel. */
  readonly element: KernelDType;
  /** Rows of one thread. */
  readonly rows: number;
  readonly uses: Readonly<Record<string, Usable>>;
  readonly seen: (image: Image) => KernelTensor;
}

function madeFor(filter: PlainFilter, { dtype, channels, height }: Image): Made {
  const rows = rowsOfThread(height);
  const element = filter === 'nearest' ? wordOf(dtype) : dtype;
  return {
    key: `${filter}_${element.name}_${channels}_${rows}`,
    element,
    rows,
    uses: {
      ROWS: rows,
      pixels: deviceFunction(kernels[filter] as never, {
        uses: {
          C: channels,
          ROWS: rows,
          ...(filter === 'nearest' ? {} : { store: STORES_OF_MEANS[dtype.name] }),
        },
      }),
    },
    seen: filter === 'nearest' ? (image) => flat(image).reinterpret(element) : flat,
  };
}

/** A size. */
type Extents = Pick<Image, 'width' | 'height'>;

/** The sizes and pitches of a source, as arguments of a kernel. */
function sizesOf(image: Image, out: Extents): Readonly<Record<string, number>> {
  return {
    columns: image.width,
    rows: image.height,
    inRow: image.rowPitch,
    ...proportionsOf(image, out),
  };
}

/**
 * Queues the kernel for one image or a batch.
 *
 * @param byFours whether `linear` takes four pixels at a time where the images permit it: by
 *   default on GPUs only, for the reason in resize-fours.ts
 */
export function queueResize(
  work: Work,
  given: Image,
  out: Image,
  filter: ResizeFilter,
  byFours = out.tensor.device.kind === 'cuda',
): void {
  const image = separate(work, given, out);
  if (!isPlain(filter)) {
    queueResample(work, image, out, filter);
    return;
  }
  if (byFours && filter === 'linear' && fitsFours(image, out)) {
    queueFours(work, image, out, proportionsOf(image, out));
    return;
  }
  const wide = isWideSpan([image, out]);
  const { key, element, rows, uses, seen } = madeFor(filter, out);
  const launch = kernels.resizes.member(`${key}${wide ? '_wide' : ''}`, () => {
    const whole = wide ? i64 : i32;
    return {
      signature: {
        out: output(element),
        x: input(element),
        width: i32,
        outRow: whole,
        outImage: whole,
        columns: i32,
        rows: i32,
        inRow: whole,
        inImage: whole,
        fromX: i32,
        toX: i32,
        fromY: i32,
        toY: i32,
      },
      uses,
      block: BLOCK,
    };
  });
  const sizes = {
    width: out.width,
    outRow: out.rowPitch,
    outImage: out.imagePitch,
    inImage: image.imagePitch,
    ...sizesOf(image, out),
  };
  inLaunches([image, out], ([x, to]) => {
    work.add(
      launch(
        { out: seen(to!), x: seen(x!), ...sizes },
        {
          grid: [Math.ceil(out.width / BLOCK), out.height / rows, x!.batch],
          ...(wide ? { index: 'i64' } : {}),
        },
      ),
    );
  });
}

/** Options of {@link resizeBatch}. */
export interface ResizeBatchOptions<D extends ImageName = ImageName> extends ResizeOptions<D> {
  /**
   * A size for each image, in place of `width` and `height`. Each image then has a tensor of its
   * own.
   */
  readonly sizes?: readonly { readonly width: number; readonly height: number }[];
}

const batches: ImageOperation<ResizeParameters> = {
  name: 'resizeBatch',
  own: {
    queue(work, { images, results, parameters: { filter } }) {
      const outs = results.map(imageOfResult);
      if (outs.length === 1 && outs[0]!.batched && isPlain(filter))
        queueSeveral(work, images, outs[0]!, filter);
      else
        images.forEach((image, n) => {
          queueResize(work, image, outs.length === 1 ? imageAt(outs[0]!, n) : outs[n]!, filter);
        });
    },
  },
};

/**
 * Resizes images of any sizes, of one dtype and number of channels, as {@link resize} does. With
 * `width` and `height` it gives a batch, a tensor of [images, height, width, channels], by one
 * launch for every eight of them (cubic, lanczos3 and area: three or more launches for each); with
 * `sizes` it gives a list of tensors.
 *
 * @throws CudaArgumentError for an empty list, images of different dtypes or channels, another
 *   number of sizes, and as {@link resize} does
 *
 * @example
 * ```ts
 * using small = await device.zeros(u8, [20, 30, 3]);
 * using large = await device.zeros(u8, [480, 640, 3]);
 * using batch = await resizeBatch([small, large], { width: 64, height: 64 });
 * console.log(batch.shape); // [ 2, 64, 64, 3 ]
 * ```
 */
export function resizeBatch<D extends ImageName>(
  images: readonly OrOp<Tensor<D>>[],
  options: ResizeBatchOptions<NoInfer<D>> & {
    readonly sizes: readonly { readonly width: number; readonly height: number }[];
  },
): DeviceOp<Tensor<D, number[]>[]>;
export function resizeBatch<D extends ImageName>(
  images: readonly OrOp<Tensor<D>>[],
  options: ResizeBatchOptions<NoInfer<D>>,
): DeviceOp<Tensor<D, number[]>>;
export function resizeBatch(images: readonly unknown[], options: ResizeBatchOptions): never {
  if (options === undefined)
    throw invalid('options', 'an object with width and height, sizes, or out', options);
  checkOptions('options', options, ['width', 'height', 'sizes', 'filter', 'out', 'engine']);
  const { filter = 'linear', sizes } = options;
  checkFilter('options.filter', filter, RESIZE_FILTERS);
  checkImageList('resizeBatch', images);
  const count = images.length;
  if (sizes !== undefined) {
    const list: unknown = sizes;
    if (!Array.isArray(list) || list.length !== count)
      throw invalid('options.sizes', `${count} sizes { width, height }, one for each image`, sizes);
    if (options.width !== undefined || options.height !== undefined || options.out !== undefined)
      throw invalid(
        'options.sizes',
        'sizes, or width, height and out',
        options,
        'Leave one of them out.',
      );
    list.forEach((size: { width: unknown; height: unknown } | undefined, n) => {
      checkExtent(`options.sizes[${n}].width`, size?.width);
      checkExtent(`options.sizes[${n}].height`, size?.height);
    });
  }
  return imageOperation(
    batches,
    [...images, options.out],
    options,
    (values) => {
      const read = imagesOf('resizeBatch', 'resize', values.slice(0, count));
      if (sizes !== undefined)
        return {
          images: read,
          results: sizes.map(({ width, height }, n) =>
            resultFor('resizeBatch', read[n]!, { width, height }, undefined),
          ),
          parameters: { filter },
        };
      const out = values[count];
      const like = out === undefined ? undefined : imageOf('resizeBatch', 'options.out', out);
      const { width = like?.width, height = like?.height } = options;
      checkExtent('options.width', width);
      checkExtent('options.height', height);
      return {
        images: read,
        results: [
          resultFor(
            'resizeBatch',
            { ...read[0]!, batch: count, batched: true },
            { width, height },
            out,
          ),
        ],
        parameters: { filter },
      };
    },
    (results) => (sizes === undefined ? results[0] : results),
  ) as never;
}

/** One image of a batch. */
function imageAt(batch: Image, n: number): Image {
  return batch.batched
    ? imageOfResult(
        (batch.tensor as { slice(...indices: unknown[]): unknown }).slice(n) as KernelTensor,
      )
    : batch;
}

const SOURCE = struct({
  columns: i32,
  rows: i32,
  inRow: i32,
  fromX: i32,
  toX: i32,
  fromY: i32,
  toY: i32,
});

/** Queues kernels, each of which reads several images. */
function queueSeveral(work: Work, given: readonly Image[], out: Image, filter: PlainFilter): void {
  const images = given.map((image) => separate(work, image, out));
  const { key, element, rows, uses, seen } = madeFor(filter, out);
  if (isWideSpan([...images, out])) {
    images.forEach((image, n) => {
      queueResize(work, image, imageAt(out, n), filter);
    });
    return;
  }
  const launch = kernels.severals.member(key, () => ({
    signature: {
      out: output(element),
      width: i32,
      outRow: i32,
      outImage: i32,
      ...sourceParams(element, SOURCE),
    },
    uses,
    block: BLOCK,
  }));
  inGroups(
    images.map(seen),
    images.map((image) => sizesOf(image, out)),
    (args, first, count) => {
      const to = imageOfResult(
        (out.tensor as { slice(...indices: unknown[]): unknown }).slice([
          first,
          first + count,
        ]) as KernelTensor,
      );
      work.add(
        launch(
          {
            out: seen(to),
            width: out.width,
            outRow: out.rowPitch,
            outImage: out.imagePitch,
            ...args,
          },
          { grid: [Math.ceil(out.width / BLOCK), out.height / rows, count] },
        ),
      );
    },
  );
}
