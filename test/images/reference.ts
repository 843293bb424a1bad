/** Geometry in doubles, written like its definitions: the reference for the kernels. */
import { f16, f32, u16, u8 } from 'async-cuda';
import { expect } from 'vitest';

import { range } from '../core/test-device.js';

export type Border = 'constant' | 'replicate' | 'reflect' | 'reflect101' | 'wrap';
export type Filter = 'nearest' | 'linear' | 'cubic' | 'lanczos3' | 'area';

/** An image on the host. */
export interface Picture {
  readonly height: number;
  readonly width: number;
  readonly channels: number;
  readonly values: readonly number[];
}

export const DTYPES = [u8, u16, f16, f32] as const;
export const CHANNELS = [1, 3, 4] as const;

/** Unordered numbers of the whole range, exact in each dtype. */
export function picture(
  dtype: { readonly name: string },
  height: number,
  width: number,
  channels: number,
  seed = 1,
): Picture {
  const most = dtype.name === 'u16' ? 65536 : 256;
  let state = seed;
  const next = (): number => {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    return (state >>> 8) % most;
  };
  return {
    height,
    width,
    channels,
    values: range(height * width * channels).map(() =>
      dtype.name.startsWith('f') ? next() / 32 - 3 : next(),
    ),
  };
}

const sinc = (t: number): number => (t === 0 ? 1 : Math.sin(Math.PI * t) / (Math.PI * t));
const KERNELS: Readonly<Record<string, { readonly reach: number; weight(t: number): number }>> = {
  linear: { reach: 1, weight: (t) => Math.max(0, 1 - Math.abs(t)) },
  cubic: {
    reach: 2,
    weight: (t) => {
      const s = Math.abs(t);
      return s < 1
        ? 1.5 * s ** 3 - 2.5 * s ** 2 + 1
        : s < 2
          ? -0.5 * s ** 3 + 2.5 * s ** 2 - 4 * s + 2
          : 0;
    },
  },
  lanczos3: { reach: 3, weight: (t) => (Math.abs(t) < 3 ? sinc(t) * sinc(t / 3) : 0) },
};

/** Pixels along an axis, with weights. */
export type Taps = readonly { readonly at: number; readonly weight: number }[];

export function tapsAt(filter: Filter, position: number): Taps {
  if (filter === 'nearest') return [{ at: Math.floor(position + 0.5), weight: 1 }];
  const { reach, weight } = KERNELS[filter]!;
  const first = Math.floor(position) - reach + 1;
  const taps = range(2 * reach).map((k) => ({
    at: first + k,
    weight: weight(position - first - k),
  }));
  const sum = filter === 'lanczos3' ? taps.reduce((all, tap) => all + tap.weight, 0) : 1;
  return taps.map((tap) => ({ at: tap.at, weight: tap.weight / sum }));
}

function tapsOfResize(filter: Filter, index: number, from: number, to: number): Taps {
  if (filter === 'nearest')
    return [{ at: Math.floor(((2 * index + 1) * from) / (2 * to)), weight: 1 }];
  if (filter !== 'area') return tapsAt(filter, ((2 * index + 1) * from - to) / (2 * to));
  const [begin, end] = [index * from, (index + 1) * from];
  return range(from)
    .map((at) => ({
      at,
      weight: Math.max(0, Math.min(end, (at + 1) * to) - Math.max(begin, at * to)) / from,
    }))
    .filter(({ weight }) => weight > 0);
}

/** The index that replaces one outside of the image; undefined where the border is a colour. */
export function inside(border: Border, index: number, extent: number): number | undefined {
  if (index >= 0 && index < extent) return index;
  const turn = (period: number): number => ((index % period) + period) % period;
  if (border === 'constant') return undefined;
  if (border === 'replicate') return Math.min(Math.max(index, 0), extent - 1);
  if (border === 'wrap') return turn(extent);
  if (border === 'reflect') {
    const at = turn(2 * extent);
    return at < extent ? at : 2 * extent - 1 - at;
  }
  if (extent === 1) return 0;
  const at = turn(2 * extent - 2);
  return at < extent ? at : 2 * extent - 2 - at;
}

/** The sum of the weighted taps. */
export function sampled(
  given: Picture,
  rows: Taps,
  columns: Taps,
  channel: number,
  border: Border = 'replicate',
  color: readonly number[] = [0, 0, 0, 0],
): number {
  let sum = 0;
  for (const { at: y, weight: wy } of rows) {
    for (const { at: x, weight: wx } of columns) {
      const [row, column] = [inside(border, y, given.height), inside(border, x, given.width)];
      sum +=
        wy *
        wx *
        (row === undefined || column === undefined
          ? color[channel]!
          : given.values[(row * given.width + column) * given.channels + channel]!);
    }
  }
  return sum;
}

/** Computes each element of an image of this size. */
export function each(
  height: number,
  width: number,
  channels: number,
  value: (row: number, column: number, channel: number) => number,
): Picture {
  return {
    height,
    width,
    channels,
    values: range(height).flatMap((row) =>
      range(width).flatMap((column) =>
        range(channels).map((channel) => value(row, column, channel)),
      ),
    ),
  };
}

export function resized(given: Picture, width: number, height: number, filter: Filter): Picture {
  const rows = range(height).map((row) => tapsOfResize(filter, row, given.height, height));
  const columns = range(width).map((column) => tapsOfResize(filter, column, given.width, width));
  return each(height, width, given.channels, (row, column, channel) =>
    sampled(given, rows[row]!, columns[column]!, channel),
  );
}

/**
 * Compares elements with unrounded expectations: integers are the nearest one, or the next one
 * where it is nearly a tie.
 */
export function compare(
  dtype: { readonly name: string },
  given: ArrayLike<number>,
  { values }: Picture,
  slack = 1,
): void {
  expect(given.length).toBe(values.length);
  const [low, high] =
    dtype.name === 'u8' ? [0, 255] : dtype.name === 'u16' ? [0, 65535] : [-Infinity, Infinity];
  const most =
    dtype.name === 'u8' ? 0.501 : dtype.name === 'u16' ? 0.6 : dtype.name === 'f16' ? 1e-3 : 2e-4;
  // Half a unit in the last place.
  const rounding = dtype.name === 'f16' ? 2 ** -11 : 0;
  let worst = 0;
  for (let i = 0; i < values.length; i++) {
    const value = Math.min(Math.max(values[i]!, low), high);
    // NaN does not match.
    const off = Math.abs(given[i]! - value) - rounding * Math.abs(value);
    worst = off <= worst ? worst : off;
  }
  expect(worst).toBeLessThan(most * slack);
}
