/** Images of another size. */
import { i32, i64 } from '../core/index.js';
import { checkOptions } from '../core/arguments.js';
import { input, output } from '../launch/index.js';
import type { Work } from '../library/operation.js';
import { wordOf } from '../library/words.js';
import type { DeviceOp, OrOp } from '../ops/index.js';
import type { Tensor } from '../tensor/index.js';
import { imageOperation } from './engine.js';
import type { Carrier, EngineOptions, ImageOperation } from './engine.js';
import { BLOCK, inLaunches, rowsOfThread, separate } from './image-launch.js';
import { checkExtent, flat, imageOf, imageOfResult, isWideSpan, resultFor } from './image.js';
import type { Image, ImageName } from './image.js';
import * as kernels from './resize-kernels.js';
import { RESIZE_FILTERS, STORES, STORES_OF_MEANS, TAPS, WEIGHTS, checkFilter } from './sampling.js';
import type { ResizeFilter } from './sampling.js';

/** What {@link resize} takes. */
export interface ResizeOptions<D extends ImageName = ImageName> extends EngineOptions {
  /** Columns and rows of the result; left out, those of `out`. */
  readonly width?: number;
  readonly height?: number;
  /** Default: linear. */
  readonly filter?: ResizeFilter;
  /** Where the result goes, a region of a larger image, say. Default: a new tensor. */
  readonly out?: OrOp<Tensor<D>>;
}

/** How a resize is to be done. */
export interface ResizeParameters {
  readonly filter: ResizeFilter;
}

/** Our kernels' row. */
export const ownResize: Carrier<ResizeParameters> = {
  queue(work, { images, results, parameters }) { queueResize(work, images[0]!, imageOfResult(results[0]!), parameters.filter); },
};

const resizes: ImageOperation<ResizeParameters> = { name: 'resize', own: ownResize };

/**
 * The image, or each of a batch, in another size: a new contiguous tensor of the same dtype, or `out`. Pixels are areas: the middle of
 * column d of the result lies at (d + 0.5) · from / to - 0.5 of the source, and so with rows, exactly; beyond the edges the outermost pixels
 * count on. `linear` (the default), `cubic` and `lanczos3` weigh the 2, 4 and 6 pixels about it along each axis; `nearest` takes the one
 * it lies in; `area` takes the mean of what the pixel covers, each pixel of the source by its share. Sums are in f32; integers are
 * rounded to nearest, ties to even, and kept in range.
 *
 * @throws CudaArgumentError for what is no image, a size that is missing or outside of 1 to 32768, an `out` of another form, and an engine
 * that lacks it; at the call, or when it is run where operations give the operands
 */
export function resize<D extends ImageName>(image: OrOp<Tensor<D>>, options: ResizeOptions<NoInfer<D>>): DeviceOp<Tensor<D, number[]>> {
  checkOptions('options', options, ['width', 'height', 'filter', 'out', 'engine']);
  const { filter = 'linear' } = options;
  checkFilter('options.filter', filter, RESIZE_FILTERS);
  return imageOperation(resizes, [image, options.out], options, ([given, out]) => {
    const read = imageOf('resize', 'image', given);
    const like = out === undefined ? undefined : imageOf('resize', 'options.out', out);
    const { width = like?.width, height = like?.height } = options;
    checkExtent('options.width', width);
    checkExtent('options.height', height);
    return { images: [read], results: [resultFor('resize', read, { width, height }, out)], parameters: { filter } };
  }, ([result]) => result) as never;
}

/** Queues the kernel for one image or a batch of one size. */
export function queueResize(work: Work, given: Image, out: Image, filter: ResizeFilter): void {
  const image = separate(work, given, out);
  const { dtype, channels } = image;
  const [fromX, toX] = reduced(image.width, out.width);
  const [fromY, toY] = reduced(image.height, out.height);
  const wide = isWideSpan([image, out]);
  const single = filter === 'nearest';
  const rows = filter === 'nearest' || filter === 'linear' ? rowsOfThread(out.height) : 1;
  const element = single ? wordOf(dtype) : dtype;
  const family = filter === 'cubic' || filter === 'lanczos3' ? kernels.taps : kernels[filter];
  const launch = family.member(`${filter}_${element.name}_${channels}_${rows}${wide ? '_wide' : ''}`, () => {
    const whole = wide ? i64 : i32;
    return {
      signature: {
        out: output(element), x: input(element), width: i32, outRow: whole, outImage: whole, columns: i32, rows: i32, inRow: whole, inImage: whole,
        fromX: i32, toX: i32, fromY: i32, toY: i32, mostX: i32, mostY: i32,
      },
      uses: {
        C: channels, ROWS: rows,
        ...(single ? {} : { store: (filter === 'linear' || filter === 'area' ? STORES_OF_MEANS : STORES)[dtype.name] }),
        ...(filter === 'area' ? { sums: arrays[channels] } : {}),
        ...(filter === 'cubic' || filter === 'lanczos3' ? { TAPS: TAPS[filter], NORMALISED: filter === 'lanczos3', weight: WEIGHTS[filter], weightsOfColumns: arrays[TAPS[filter] as 4 | 6], weightsOfRows: arrays[TAPS[filter] as 4 | 6] } : {}),
      },
      block: BLOCK,
    };
  });
  const sizes = {
    width: out.width, outRow: out.rowPitch, outImage: out.imagePitch, columns: image.width, rows: image.height, inRow: image.rowPitch, inImage: image.imagePitch,
    fromX, toX, fromY, toY, mostX: covered(fromX, toX), mostY: covered(fromY, toY),
  };
  const seen = single ? (each: Image): unknown => flat(each).reinterpret(element as never) : flat;
  inLaunches([image, out], ([x, to]) => {
    work.add(launch({ out: seen(to!), x: seen(x!), ...sizes }, { grid: [Math.ceil(out.width / BLOCK), out.height / rows, x!.batch], ...(wide ? { index: 'i64' } : {}) }));
  });
}

const arrays = {
  1: (gpu: kernels.ResizeGpu) => gpu.local.f32(1), 3: (gpu: kernels.ResizeGpu) => gpu.local.f32(3), 4: (gpu: kernels.ResizeGpu) => gpu.local.f32(4), 6: (gpu: kernels.ResizeGpu) => gpu.local.f32(6),
} as const;

/** Both without their greatest common divisor. */
function reduced(from: number, to: number): readonly [number, number] {
  let [a, b] = [from, to];
  while (b !== 0) [a, b] = [b, a % b];
  return [from / a, to / a];
}

/** Most pixels of the source, `to` long, that lie under `from`: one more than fit where it may begin within one. */
function covered(from: number, to: number): number {
  return to === 1 ? from : Math.floor((from - 2) / to) + 2;
}
