/**
 * Resizing by weighted sums of many pixels: tables of weights, then a pass along rows and one along
 * columns for each strip.
 */
import { f32, i32, i64 } from '../core/index.js';
import { deviceFunction, input, output } from '../kernels/index.js';
import type { DeviceFunction, GpuWith } from '../kernels/index.js';
import type { Launchable } from '../library/kernel-family.js';
import type { Work } from '../library/operation.js';
import type { KernelTensor } from '../tensor/index.js';
import { BLOCK, MOST_IMAGES } from './image-launch.js';
import { WIDE_FROM, flat, imageOfResult, isWideSpan } from './image.js';
import type { Image } from './image.js';
import * as kernels from './resample-kernels.js';
import { STORES, STORES_OF_MEANS, TAPS, WEIGHTS } from './sampling.js';

/** Filters that are done so. */
export type ResampleFilter = 'cubic' | 'lanczos3' | 'area';

/**
 * Elements of the lines between the two passes: 32 MiB, which a GPU's second level of cache holds.
 */
const MOST_LINES = 2 ** 23;
/** Longest windows that have kernels of their own, whose loops are unrolled. */
const UNROLLED = 8;
/** Lines and rows of one thread: a column's weights are read once for so many lines. */
const LINES = 16;
const ROWS = 4;

/** An axis of the source and of the result. */
interface Axis {
  readonly extent: number;
  readonly size: number;
  /** `extent` and `size` without their common divisor. */
  readonly from: number;
  readonly to: number;
  /** Pixels of a window. */
  readonly taps: number;
}

function axisOf(filter: ResampleFilter, extent: number, size: number): Axis {
  let [a, b] = [extent, size];
  while (b !== 0) [a, b] = [b, a % b];
  const [from, to] = [extent / a, size / a];
  // Most pixels, `to` long, that lie under `from`: one more than fit where it may begin within one.
  const reach =
    filter !== 'area' ? TAPS[filter] : to === 1 ? from : Math.floor((from - 2) / to) + 2;
  return { extent, size, from, to, taps: Math.min(reach, extent) };
}

/** The first pixel of a row's window, as the tables have it. */
function startOf(filter: ResampleFilter, { extent, from, to, taps }: Axis, index: number): number {
  const first =
    filter === 'area'
      ? Math.floor((index * from) / to)
      : Math.floor(((2 * index + 1) * from - to) / (2 * to)) - TAPS[filter] / 2 + 1;
  return Math.max(Math.min(first, extent - taps), 0);
}

/**
 * Queues what makes `out` of an image or a batch that shares no memory with it.
 *
 * @param mostLines elements of the lines between the passes, where one row needs no more
 */
export function queueResample(
  work: Work,
  image: Image,
  out: Image,
  filter: ResampleFilter,
  mostLines = MOST_LINES,
): void {
  const x = axisOf(filter, image.width, out.width);
  const y = axisOf(filter, image.height, out.height);
  const { channels, width } = out;
  const elements = width * channels;
  const starts = work.temporary(i32, [width + out.height]);
  const weights = work.temporary(f32, [x.taps * width + y.taps * out.height]);
  const axes = { tapsX: x.taps, tapsY: y.taps };
  work.add(
    tablesOf(filter)(
      {
        starts,
        weights,
        width,
        height: out.height,
        columns: image.width,
        rows: image.height,
        fromX: x.from,
        toX: x.to,
        fromY: y.from,
        toY: y.to,
        ...axes,
      },
      { grid: Math.ceil((width + out.height) / BLOCK) },
    ),
  );

  // Of an image that becomes much lower most rows are read by none of the result's.
  const picked = y.taps * out.height < image.height;
  const startOfRow = (row: number): number => startOf(filter, y, row);
  const linesOf = (first: number, end: number): number =>
    picked ? (end - first) * y.taps : startOfRow(end - 1) + y.taps - startOfRow(first);
  const all = linesOf(0, out.height) * elements;
  const images = Math.max(1, Math.min(image.batch, MOST_IMAGES, Math.floor(mostLines / all)));
  const height = all <= mostLines ? out.height : heightOfStrip(y, picked, mostLines / elements);
  const most = Math.min(
    all,
    (picked ? height * y.taps : Math.ceil((height * y.from) / y.to) + y.taps) * elements,
  );
  const lines = work.temporary(f32, [images * most]);

  const wide = isWideSpan([image, out]) || lines.size >= WIDE_FROM;
  const { across, down } = passes(filter, out, x, y, picked, wide);
  const options = wide ? { index: 'i64' as const } : {};
  const blocks = Math.ceil(elements / BLOCK);
  for (let n = 0; n < image.batch; n += images) {
    const [source, result] = [image, out].map((each) =>
      part(each, n, Math.min(n + images, image.batch)),
    ) as [Image, Image];
    for (let firstRow = 0; firstRow < out.height; firstRow += height) {
      const end = Math.min(firstRow + height, out.height);
      const count = linesOf(firstRow, end);
      const both = {
        starts,
        weights,
        width,
        elements,
        count,
        firstLine: picked ? 0 : startOf(filter, y, firstRow),
        firstRow,
        ...axes,
      };
      const between = lines.slice([0, source.batch * count * elements]);
      work.add(
        across(
          {
            ...both,
            lines: between,
            x: flat(source),
            inRow: source.rowPitch,
            inImage: source.imagePitch,
          },
          { grid: [blocks, Math.ceil(count / LINES), source.batch], ...options },
        ),
      );
      work.add(
        down(
          {
            ...both,
            lines: between,
            out: flat(result),
            outRow: result.rowPitch,
            outImage: result.imagePitch,
            rows: end - firstRow,
            whole: x.from * y.from,
          },
          { grid: [blocks, Math.ceil((end - firstRow) / ROWS), source.batch], ...options },
        ),
      );
    }
  }
}

/**
 * The kernels of the two passes.
 *
 * @param picked most rows of the source are read by none of the result's
 */
function passes(
  filter: ResampleFilter,
  { dtype, channels }: Image,
  x: Axis,
  y: Axis,
  picked: boolean,
  wide: boolean,
): { across: Launchable; down: Launchable } {
  const whole = wide ? i64 : i32;
  const suffix = `${picked ? '_picked' : ''}${wide ? '_wide' : ''}`;
  const strip = {
    starts: input(i32),
    weights: input(f32),
    width: i32,
    elements: i32,
    count: whole,
    firstLine: i32,
    firstRow: i32,
    tapsX: i32,
    tapsY: i32,
  };
  const [tapsX, tapsY] = [x.taps <= UNROLLED ? x.taps : 0, y.taps <= UNROLLED ? y.taps : 0];
  const across = kernels.across.member(`${dtype.name}_${channels}_${tapsX}${suffix}`, () => ({
    signature: { ...strip, lines: output(f32), x: input(dtype), inRow: whole, inImage: whole },
    uses: {
      C: channels,
      ROWS: LINES,
      TAPS: tapsX,
      PICKED: picked,
      weightsOfColumn: zeros(Math.max(1, tapsX)),
    },
    block: BLOCK,
  }));
  const means = filter === 'area';
  const down = kernels.down.member(
    `${means ? 'mean_' : ''}${dtype.name}_${tapsY}${suffix}`,
    () => ({
      signature: {
        ...strip,
        lines: input(f32),
        out: output(dtype),
        outRow: whole,
        outImage: whole,
        rows: i32,
        whole: f32,
      },
      uses: {
        ROWS,
        TAPS: tapsY,
        PICKED: picked,
        DIVIDED: means,
        store: (means ? STORES_OF_MEANS : STORES)[dtype.name],
      },
      block: BLOCK,
    }),
  );
  return { across, down };
}

/** Rows of the result whose lines are so many, or one. */
function heightOfStrip({ from, to, taps }: Axis, picked: boolean, lines: number): number {
  return Math.max(1, Math.floor(picked ? lines / taps : ((lines - taps - 1) * to) / from));
}

/** Images [first, end) of a batch. */
function part(image: Image, first: number, end: number): Image {
  return end - first === image.batch
    ? image
    : imageOfResult(
        (image.tensor as { slice(...indices: unknown[]): unknown }).slice([
          first,
          end,
        ]) as KernelTensor,
      );
}

/** Zeros of a thread. */
function zeros(LENGTH: number): DeviceFunction {
  const uses = { LENGTH };
  return deviceFunction((gpu: GpuWith<typeof uses>) => gpu.local.f32(gpu.LENGTH), {
    uses,
  }) as DeviceFunction;
}

function tablesOf(filter: ResampleFilter): Launchable {
  return kernels.tables.member(filter, () => ({
    signature: {
      starts: output(i32),
      weights: output(f32),
      width: i32,
      height: i32,
      columns: i32,
      rows: i32,
      fromX: i32,
      toX: i32,
      fromY: i32,
      toY: i32,
      tapsX: i32,
      tapsY: i32,
    },
    uses: {
      window:
        filter === 'area'
          ? deviceFunction(kernels.covered as never)
          : deviceFunction(kernels.filtered as never, {
              uses: {
                TAPS: TAPS[filter],
                NORMALISED: filter === 'lanczos3',
                weight: WEIGHTS[filter],
                distances: zeros(TAPS[filter]),
              },
            }),
    },
    block: BLOCK,
  }));
}
