/** Geometry by NPP: sizes, maps and projections. */
import type { Border } from '../border.js';
import { imageOfResult } from '../image.js';
import type { Image } from '../image.js';
import type { Filter, ResizeFilter } from '../sampling.js';
import { nppName } from './functions.js';
import type { Npp } from './library.js';
import { addCalls, formOf, numbersFor, pixels, sizeOf, stepOf, wholeOf } from './step.js';
import type { MemoryPlace, Stream } from '../../core/index.js';
import { PLANAR_FORM } from './planes.js';
import type { Implementation, Description } from '../implementation.js';
import type {
  BorderParameters,
  LetterboxParameters,
  Flip,
  MirrorParameters,
  QuarterParameters,
  ResizeParameters,
  RemapParameters,
  SamplingParameters,
  WarpParameters,
} from '../parameters.js';

/** NppiInterpolationMode */
const MODES: Readonly<Record<ResizeFilter, number>> = {
  nearest: 1,
  linear: 2,
  cubic: 4,
  area: 8,
  lanczos3: 16,
};
const USUAL = { u8: [1, 3, 4], u16: [1, 3, 4], f32: [1, 3, 4] } as const;

function range(count: number): number[] {
  return Array.from({ length: count }, (_, i) => i);
}

const RESIZED = { ...USUAL, f16: [1, 3, 4] } as const;

function lacksOfResize(
  image: Image,
  width: number,
  height: number,
  filter: ResizeFilter,
): string | undefined {
  if (filter === 'area' && (width > image.width || height > image.height))
    return "no filter 'area' where an image grows";
  return image.width < 2 || image.height < 2 ? 'no image of one row or column' : undefined;
}

function sizeOfResult(result: {
  readonly shape: readonly number[];
}): [width: number, height: number] {
  const [height, width] = result.shape.slice(-3) as [number, number, number];
  return [width, height];
}

/** Resizes image `i` of one batch into image `j` of another, or into a region of it. */
function resizeOne(
  npp: Npp,
  stream: Stream,
  from: Image,
  i: number,
  to: Image,
  j: number,
  filter: ResizeFilter,
  region = wholeOf(to),
): void {
  npp.call(stream, nppName('Resize', formOf(from)), [
    pixels(from, i),
    stepOf(from),
    sizeOf(from),
    wholeOf(from),
    pixels(to, j),
    stepOf(to),
    sizeOf(to),
    region,
    MODES[filter],
  ]);
}

/**
 * There is one call for each image: nppiResizeBatch gives other results, which depend on the memory
 * around an image.
 */
export const nppResize: Implementation<ResizeParameters> = {
  takes: RESIZED,
  lacks: ({ images: [image], results: [result], parameters: { filter } }) =>
    lacksOfResize(image!, ...sizeOfResult(result!), filter),
  queue(work, { images: [image], results: [result], parameters: { filter } }) {
    const [from, to] = [image!, imageOfResult(result!)];
    addCalls(work, from, (npp, { stream }) => {
      for (const i of range(from.batch)) resizeOne(npp, stream, from, i, to, i, filter);
    });
  },
};

export const nppResizeBatch: Implementation<ResizeParameters> = {
  takes: RESIZED,
  lacks({ images, results, parameters: { filter } }) {
    return images
      .map((image, i) =>
        lacksOfResize(image, ...sizeOfResult(results[results.length === 1 ? 0 : i]!), filter),
      )
      .find((lack) => lack !== undefined);
  },
  queue(work, { images, results, parameters: { filter } }) {
    const outs = results.map(imageOfResult);
    const together = outs.length === 1 && images.length > 1;
    addCalls(work, images[0]!, (npp, { stream }) => {
      images.forEach((image, i) => {
        resizeOne(npp, stream, image, 0, together ? outs[0]! : outs[i]!, together ? i : 0, filter);
      });
    });
  },
};

export const nppLetterbox: Implementation<LetterboxParameters> = {
  takes: USUAL,
  lacks: ({ images: [image], parameters: { region, filter } }) =>
    lacksOfResize(image!, region.width, region.height, filter),
  queue(work, { images: [image], results: [result], parameters: { region, filter, color } }) {
    const [from, to] = [image!, imageOfResult(result!)];
    addCalls(work, from, (npp, { stream }) => {
      for (const i of range(from.batch)) {
        fill(npp, stream, to, i, color);
        resizeOne(npp, stream, from, i, to, i, filter, [
          region.x,
          region.y,
          region.width,
          region.height,
        ]);
      }
    });
  },
};

const BORDER_COPIES: Readonly<Partial<Record<Border, string>>> = {
  constant: 'CopyConstBorder',
  replicate: 'CopyReplicateBorder',
  wrap: 'CopyWrapBorder',
};

export const nppCopyBorder: Implementation<BorderParameters> = {
  takes: USUAL,
  lacks: ({ parameters: { border } }) =>
    BORDER_COPIES[border] === undefined ? `no border '${border}'` : undefined,
  queue(work, { images: [image], results: [result], parameters: { left, top, border, color } }) {
    const [from, to] = [image!, imageOfResult(result!)];
    addCalls(work, from, (npp, { stream }) => {
      for (const i of range(from.batch)) {
        npp.call(stream, nppName(BORDER_COPIES[border]!, formOf(from)), [
          pixels(from, i),
          stepOf(from),
          sizeOf(from),
          pixels(to, i),
          stepOf(to),
          sizeOf(to),
          top,
          left,
          ...(border === 'constant' ? [numbersFor(from, color)] : []),
        ]);
      }
    });
  },
};

/**
 * NppiAxis: the axis about which the image is mirrored, so that a horizontal axis exchanges top and
 * bottom.
 */
const AXES: Readonly<Record<Flip, number>> = { vertical: 0, horizontal: 1, both: 2 };

/** The mirroring before the transposition, by quarters. */
const MIRRORS: readonly Flip[] = ['both', 'horizontal', 'both', 'vertical'];

export const nppMirror: Implementation<MirrorParameters> = {
  takes: USUAL,
  queue(work, { images: [image], results: [result], parameters: { flip } }) {
    const [from, to] = [image!, imageOfResult(result!)];
    addCalls(work, from, (npp, { stream }) => {
      for (const i of range(from.batch))
        npp.call(stream, nppName('Mirror', formOf(from)), [
          pixels(from, i),
          stepOf(from),
          pixels(to, i),
          stepOf(to),
          sizeOf(to),
          AXES[flip],
        ]);
    });
  },
};

/** A quarter of a turn is a mirrored transposition; f16 are moved as u16. */
export const nppRotateQuarters: Implementation<QuarterParameters> = {
  queue(work, { images: [image], results: [result], parameters: { quarters } }) {
    const [from, to] = [image!, imageOfResult(result!)];
    const form = `${PLANAR_FORM[from.dtype.name]}_C${from.channels}R`;
    const turned = quarters % 2 === 1;
    const between = turned
      ? imageOfResult(
          work.temporary(from.dtype, [from.batch, from.height, from.width, from.channels]),
        )
      : to;
    addCalls(work, from, (npp, { stream }) => {
      for (const i of range(from.batch)) {
        const [source, middle, target] = [from, between, to].map(
          (each) => [pixels(each, i), stepOf(each)] as const,
        ) as [
          readonly [MemoryPlace, number],
          readonly [MemoryPlace, number],
          readonly [MemoryPlace, number],
        ];
        if (quarters === 0)
          npp.call(stream, nppName('Copy', form), [...source, ...target, sizeOf(from)]);
        else
          npp.call(stream, nppName('Mirror', form), [
            ...source,
            ...middle,
            sizeOf(from),
            AXES[MIRRORS[quarters]!],
          ]);
        if (turned)
          npp.call(stream, nppName('Transpose', form), [...middle, ...target, sizeOf(from)]);
      }
    });
  },
};

/**
 * NPP does not write pixels that come from outside the image: they are filled with the colour
 * first.
 */
function fill(npp: Npp, stream: Stream, to: Image, index: number, color: readonly number[]): void {
  npp.call(stream, nppName('Set', formOf(to)), [
    numbersFor(to, color),
    pixels(to, index),
    stepOf(to),
    sizeOf(to),
  ]);
}

function lacksOfSampling(
  { parameters: { filter, border } }: Description<SamplingParameters>,
  filters: readonly Filter[],
): string | undefined {
  if (!filters.includes(filter)) return `no filter '${filter}'`;
  return border === 'constant' ? undefined : `no border '${border}'`;
}

export const nppRemap: Implementation<RemapParameters> = {
  takes: USUAL,
  lacks: (description) => lacksOfSampling(description, ['nearest', 'linear', 'cubic', 'lanczos3']),
  queue(work, { images: [image], results: [result], parameters: { filter, color, mapX, mapY } }) {
    const [from, to] = [image!, imageOfResult(result!)];
    addCalls(work, from, (npp, { stream }) => {
      for (const i of range(from.batch)) {
        fill(npp, stream, to, i, color);
        npp.call(stream, nppName('Remap', formOf(from)), [
          pixels(from, i),
          sizeOf(from),
          stepOf(from),
          wholeOf(from),
          pixels(mapX, i),
          stepOf(mapX),
          pixels(mapY, i),
          stepOf(mapY),
          pixels(to, i),
          stepOf(to),
          sizeOf(to),
          MODES[filter],
        ]);
      }
    });
  },
};

/**
 * The matrix maps places of the result to places of the image, counted in pixels from the middle of
 * the first one, as in NPP's functions "Back".
 */
function warp(
  name: 'WarpAffineBack' | 'WarpPerspectiveBack',
  rows: 2 | 3,
): Implementation<WarpParameters> {
  return {
    takes: USUAL,
    lacks: (description) => lacksOfSampling(description, ['nearest', 'linear', 'cubic']),
    queue(work, { images: [image], results: [result], parameters: { filter, color, matrix } }) {
      const [from, to] = [image!, imageOfResult(result!)];
      addCalls(work, from, (npp, { stream }) => {
        for (const i of range(from.batch)) {
          fill(npp, stream, to, i, color);
          npp.call(stream, nppName(name, formOf(from)), [
            pixels(from, i),
            sizeOf(from),
            stepOf(from),
            wholeOf(from),
            pixels(to, i),
            stepOf(to),
            wholeOf(to),
            Float64Array.from(matrix.slice(0, rows * 3)),
            MODES[filter],
          ]);
        }
      });
    },
  };
}

export const nppWarpAffine = warp('WarpAffineBack', 2);
export const nppWarpPerspective = warp('WarpPerspectiveBack', 3);
