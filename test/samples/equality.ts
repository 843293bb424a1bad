/**
 * When two outputs are equal: bit for bit, or within a number of units in the last place. NaNs are
 * equal to each other: the PTX ISA leaves their payloads open.
 */
import type { HostArray } from './sample-case.js';

export type Format = 'f16' | 'bf16' | 'f32' | 'f64' | 'integer';

/** `ulps` of the larger of the two values, or of `floor` where that is larger. */
export interface Near {
  readonly ulps: number;
  /** The magnitude of what was added or subtracted on the way: cancellation leaves its error. */
  readonly floor: number;
}

export type Equality = 'bits' | Near;

export function near(ulps: number, floor = 0): Near {
  return { ulps, floor };
}

const FORMATS = {
  f16: { bytes: 2, fraction: 10, least: -14, nan: 0x7fff, infinity: 0x7c00 },
  bf16: { bytes: 2, fraction: 7, least: -126, nan: 0x7fff, infinity: 0x7f80 },
  f32: { bytes: 4, fraction: 23, least: -126, nan: 0x7fffffff, infinity: 0x7f800000 },
  f64: {
    bytes: 8,
    fraction: 52,
    least: -1022,
    nan: 0x7fffffffffffffffn,
    infinity: 0x7ff0000000000000n,
  },
} as const;

export function formatOf(values: HostArray, words?: Format): Format {
  if (values instanceof Float32Array) return 'f32';
  if (values instanceof Float64Array) return 'f64';
  return words ?? 'integer';
}

/** The bytes, with every NaN replaced by the one that GPUs give. */
export function canonicalBytes(values: HostArray, format: Format): Uint8Array {
  const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength).slice();
  if (format === 'f64') {
    const { nan, infinity } = FORMATS.f64;
    const words = new BigUint64Array(bytes.buffer);
    words.forEach((word, i) => {
      if (BigInt.asUintN(63, word) > infinity) words[i] = nan;
    });
  } else if (format !== 'integer') {
    const { nan, infinity, bytes: size } = FORMATS[format];
    const words = size === 2 ? new Uint16Array(bytes.buffer) : new Uint32Array(bytes.buffer);
    words.forEach((word, i) => {
      if ((word & nan) > infinity) words[i] = nan;
    });
  }
  return bytes;
}

/** Numbers of the format from its words. */
export function numbersOf(
  values: HostArray,
  format: Format,
): ArrayLike<number> | ArrayLike<bigint> {
  if (format !== 'f16' && format !== 'bf16') return values;
  return Float64Array.from(values as Uint16Array, (word) =>
    format === 'f16' ? halfValue(word) : bfloatValue(word),
  );
}

function halfValue(word: number): number {
  const exponent = (word >> 10) & 31;
  const fraction = word & 1023;
  const magnitude =
    exponent === 31
      ? fraction === 0
        ? Infinity
        : NaN
      : exponent === 0
        ? fraction * 2 ** -24
        : (1024 + fraction) * 2 ** (exponent - 25);
  return word & 0x8000 ? -magnitude : magnitude;
}

function bfloatValue(word: number): number {
  return new Float32Array(Uint32Array.of(word << 16).buffer)[0]!;
}

function ulp(magnitude: number, format: Exclude<Format, 'integer'>): number {
  const { fraction, least } = FORMATS[format];
  // log2 is off by one next to a power of two: there either unit will do.
  const exponent = magnitude === 0 ? least : Math.max(Math.floor(Math.log2(magnitude)), least);
  return 2 ** (exponent - fraction);
}

function equal(
  a: number | bigint,
  b: number | bigint,
  equality: Equality,
  format: Format,
): boolean {
  if (Object.is(a, b)) return true;
  if (
    equality === 'bits' ||
    typeof a === 'bigint' ||
    typeof b === 'bigint' ||
    !Number.isFinite(a) ||
    !Number.isFinite(b)
  )
    return false;
  const difference = Math.abs(a - b);
  if (format === 'integer') return difference <= equality.ulps;
  return (
    difference <= equality.ulps * ulp(Math.max(Math.abs(a), Math.abs(b), equality.floor), format)
  );
}

/** What is different, in words; undefined where nothing is. */
export function difference(
  actual: ArrayLike<number | bigint>,
  wanted: ArrayLike<number | bigint>,
  equality: Equality,
  format: Format,
): string | undefined {
  if (actual.length !== wanted.length) return `${actual.length} elements, not ${wanted.length}`;
  const different: number[] = [];
  for (let i = 0; i < wanted.length; i++)
    if (!equal(actual[i]!, wanted[i]!, equality, format)) different.push(i);
  if (different.length === 0) return undefined;
  const bound =
    equality === 'bits'
      ? ''
      : ` within ${equality.ulps} ulp${equality.floor > 0 ? ` of ${equality.floor}` : ''}`;
  const some = different
    .slice(0, 5)
    .map((i) => `[${i}] is ${show(actual[i]!)}, not ${show(wanted[i]!)}`);
  return `${different.length} of ${wanted.length} elements differ${bound}: ${some.join('; ')}`;
}

function show(value: number | bigint): string {
  return Object.is(value, -0) ? '-0' : String(value);
}
