/**
 * From R'G'B' to Y'CbCr and back, as ITU-R BT.601 and BT.709 define them for 8 bits, as factors for
 * numbers from 0 to 255.
 */
import { LUMA } from './luma.js';
import type { LumaMatrix } from './luma.js';

/**
 * `limited`: luma from 16 to 235 and chroma from 16 to 240, as video has it. `full`: 0 to 255, as
 * JPEG does.
 */
export type YuvRange = 'limited' | 'full';

const SPANS: Readonly<
  Record<YuvRange, { readonly black: number; readonly luma: number; readonly chroma: number }>
> = {
  limited: { black: 16, luma: 219 / 255, chroma: 224 / 255 },
  full: { black: 0, luma: 1, chroma: 1 },
};

/**
 * R = y + rv · v, G = y + gu · u + gv · v, B = y + bu · u, where y = Y · scale + offset and u, v
 * are those of the frame less 128.
 */
export function fromYuv(
  matrix: LumaMatrix,
  range: YuvRange,
): readonly [scale: number, offset: number, rv: number, gu: number, gv: number, bu: number] {
  const [kr, kg, kb] = LUMA[matrix];
  const { black, luma, chroma } = SPANS[range];
  const [rv, bu] = [(2 * (1 - kr)) / chroma, (2 * (1 - kb)) / chroma];
  return [1 / luma, -black / luma + 0, rv, (-kb / kg) * bu, (-kr / kg) * rv, bu];
}

/** Factors of R, G and B in Y (and what is added), U and V (to which 128 is added). */
export function toYuv(
  matrix: LumaMatrix,
  range: YuvRange,
): {
  readonly black: number;
  readonly y: readonly number[];
  readonly u: readonly number[];
  readonly v: readonly number[];
} {
  const [kr, kg, kb] = LUMA[matrix];
  const { black, luma, chroma } = SPANS[range];
  const [ub, vr] = [chroma / 2 / (1 - kb), chroma / 2 / (1 - kr)];
  return {
    black,
    y: [kr * luma, kg * luma, kb * luma],
    u: [-kr * ub, -kg * ub, chroma / 2],
    v: [chroma / 2, -kg * vr, -kb * vr],
  };
}
