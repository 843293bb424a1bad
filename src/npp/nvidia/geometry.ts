/** Geometry by NPP: sizes, maps and projections. */
import type { Carrier, Description } from '../engine.js';
import { imageOfResult } from '../image.js';
import type { Image } from '../image.js';
import type { ResizeParameters } from '../resizing.js';
import type { Filter, ResizeFilter } from '../sampling.js';
import type { RemapParameters, SamplingParameters, WarpParameters } from '../warping.js';
import { nppName } from './functions.js';
import type { Npp } from './library.js';
import { addCalls, formOf, numbersFor, pixels, sizeOf, stepOf, wholeOf } from './step.js';
import type { Stream } from '../../core/index.js';

/** NppiInterpolationMode */
const MODES: Readonly<Record<ResizeFilter, number>> = { nearest: 1, linear: 2, cubic: 4, area: 8, lanczos3: 16 };
const USUAL = { u8: [1, 3, 4], u16: [1, 3, 4], f32: [1, 3, 4] } as const;

function range(count: number): number[] {
  return Array.from({ length: count }, (_, i) => i);
}

export const nppResize: Carrier<ResizeParameters> = {
  takes: { ...USUAL, f16: [1, 3, 4] },
  lacks({ images: [image], results: [result], parameters: { filter } }) {
    const [height, width] = result!.shape.slice(-3) as [number, number, number];
    if (filter === 'area' && (width > image!.width || height > image!.height)) return "no filter 'area' where an image grows";
    return image!.width < 2 || image!.height < 2 ? 'no image of one row or column' : undefined;
  },
  queue(work, { images: [image], results: [result], parameters: { filter } }) {
    const [from, to] = [image!, imageOfResult(result!)];
    addCalls(work, from, (npp, { stream }) => {
      for (const i of range(from.batch)) {
        npp.call(stream, nppName('Resize', formOf(from)), [
          pixels(from, i), stepOf(from), sizeOf(from), wholeOf(from), pixels(to, i), stepOf(to), sizeOf(to), wholeOf(to), MODES[filter],
        ]);
      }
    });
  },
};

/** NPP leaves pixels alone that come from outside of the image: they are given the colour before. */
function fill(npp: Npp, stream: Stream, to: Image, index: number, color: readonly number[]): void {
  npp.call(stream, nppName('Set', formOf(to)), [numbersFor(to, color), pixels(to, index), stepOf(to), sizeOf(to)]);
}

function lacksOfSampling({ parameters: { filter, border } }: Description<SamplingParameters>, filters: readonly Filter[]): string | undefined {
  if (!filters.includes(filter)) return `no filter '${filter}'`;
  return border === 'constant' ? undefined : `no border '${border}'`;
}

export const nppRemap: Carrier<RemapParameters> = {
  takes: USUAL,
  lacks: (description) => lacksOfSampling(description, ['nearest', 'linear', 'cubic', 'lanczos3']),
  queue(work, { images: [image], results: [result], parameters: { filter, color, mapX, mapY } }) {
    const [from, to] = [image!, imageOfResult(result!)];
    addCalls(work, from, (npp, { stream }) => {
      for (const i of range(from.batch)) {
        fill(npp, stream, to, i, color);
        npp.call(stream, nppName('Remap', formOf(from)), [
          pixels(from, i), sizeOf(from), stepOf(from), wholeOf(from), pixels(mapX, i), stepOf(mapX), pixels(mapY, i), stepOf(mapY), pixels(to, i), stepOf(to), sizeOf(to), MODES[filter],
        ]);
      }
    });
  },
};

/** The matrix leads from the result to the image, counted in pixels from the middle of the first one, as that of NPP's functions "Back". */
function warp(name: 'WarpAffineBack' | 'WarpPerspectiveBack', rows: 2 | 3): Carrier<WarpParameters> {
  return {
    takes: USUAL,
    lacks: (description) => lacksOfSampling(description, ['nearest', 'linear', 'cubic']),
    queue(work, { images: [image], results: [result], parameters: { filter, color, matrix } }) {
      const [from, to] = [image!, imageOfResult(result!)];
      addCalls(work, from, (npp, { stream }) => {
        for (const i of range(from.batch)) {
          fill(npp, stream, to, i, color);
          npp.call(stream, nppName(name, formOf(from)), [
            pixels(from, i), sizeOf(from), stepOf(from), wholeOf(from), pixels(to, i), stepOf(to), wholeOf(to), Float64Array.from(matrix.slice(0, rows * 3)), MODES[filter],
          ]);
        }
      });
    },
  };
}

export const nppWarpAffine = warp('WarpAffineBack', 2);
export const nppWarpPerspective = warp('WarpPerspectiveBack', 3);
