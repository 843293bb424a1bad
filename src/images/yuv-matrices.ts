/**
 * Matrices from R'G'B' to Y'CbCr and back, by ITU-R BT.601 and BT.709 for 8 bits, as factors of
 * numbers from 0 to 255.
 */
import { LUMA } from './luma.js';
import type { LumaMatrix } from './luma.js';

/**
 * `limited` is luma from 16 to 235 and chroma from 16 to 240, as in video. `full` is 0 to 255, as
 * in JPEG.
 */
export type YuvRange = 'limited' | 'full';

const SPANS: Readonly<
  Record<YuvRange, { readonly black: number; readonly luma: number; readonly chroma: number }>
> = {
  limited: { black: 16, luma: 219 / 255, chroma: 224 / 255 },
  full: { black: 0, luma: 1, chroma: 1 },
};

/**
 * Gives the factors of R = y + rv · v, G = y + gu · u + gv · v, B = y + bu · u, where y = Y · scale
 * + offset, and u and v are U - 128 and V - 128.
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

/** Gives the factors of R, G and B in Y (and its summand), U and V (to which 128 is added). */
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
