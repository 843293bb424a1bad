/** Filters by NPP. Of the borders it has `replicate` only. */
import { f32 } from '../../core/index.js';
import type { LibraryArgument } from '../../core/index.js';
import type { Work } from '../../library/operation.js';
import { imageOfResult } from '../image.js';
import type { Image } from '../image.js';
import { nppName } from './functions.js';
import { addCalls, formOf, pixels, sizeOf, stepOf } from './step.js';
import type { Implementation, Description } from '../implementation.js';
import type { SeparableFiltering } from '../parameters.js';

const USUAL = { u8: [1, 3, 4], u16: [1, 3, 4], f32: [1, 3, 4] } as const;
/** NPP_BORDER_REPLICATE */
const REPLICATE = 2;

function lacksOfBorder({
  parameters: { border },
}: Description<SeparableFiltering>): string | undefined {
  return border === 'replicate' ? undefined : `no border '${border}', but 'replicate',`;
}

function addFilter(
  work: Work,
  from: Image,
  to: Image,
  name: string,
  more: readonly LibraryArgument[],
): void {
  addCalls(work, from, (npp, { stream }) => {
    for (let i = 0; i < from.batch; i++) {
      npp.call(stream, nppName(name, formOf(from)), [
        pixels(from, i),
        stepOf(from),
        sizeOf(from),
        [0, 0],
        pixels(to, i),
        stepOf(to),
        sizeOf(to),
        ...more,
      ]);
    }
  });
}

/**
 * u8 of one channel is not taken: with five weights, NPP 13's result had errors of up to 14 on an
 * H200; other forms have none.
 */
export const nppGaussianFilter: Implementation<SeparableFiltering> = {
  takes: { ...USUAL, u8: [3, 4] },
  lacks: (description) =>
    lacksOfBorder(description) ??
    (description.parameters.weights.length < 2 ? 'no radius of 0' : undefined),
  queue(work, { images: [image], results: [result], parameters: { weights } }) {
    const all = [...weights.slice(1).reverse(), ...weights];
    const taps = work.temporary(f32, [all.length]);
    work.add(taps.write(Float32Array.from(all)));
    addFilter(work, image!, imageOfResult(result!), 'FilterGaussAdvancedBorder', [
      all.length,
      { buffer: taps.buffer, byteOffset: taps.layout.offset * f32.bytes },
      REPLICATE,
    ]);
  },
};

export const nppBoxFilter: Implementation<SeparableFiltering> = {
  takes: USUAL,
  lacks: lacksOfBorder,
  queue(work, { images: [image], results: [result], parameters: { weights } }) {
    const radius = weights.length - 1;
    addFilter(work, image!, imageOfResult(result!), 'FilterBoxBorder', [
      [2 * radius + 1, 2 * radius + 1],
      [radius, radius],
      REPLICATE,
    ]);
  },
};
