/**
 * f16, bf16 and the two f8 formats to f32 and from doubles, as the GPU's conversions give them: to
 * nearest, ties to even; f16 and bf16 overflow to infinity (`cvt.rn`), the f8 formats saturate
 * (`cvt.rn.satfinite`). A NaN becomes the one that PTX gives, without its sign: 0x7fff, and 0x7f in
 * the f8 formats.
 */
export type NarrowStorage = 'f16' | 'bf16' | 'f8e4m3' | 'f8e5m2';

interface Format {
  readonly exponentBits: number;
  readonly fractionBits: number;
  /** Largest code of a finite number. */
  readonly largest: number;
  /** What a number beyond `largest` becomes. */
  readonly overflow: number;
  /** f8e4m3 has none; f8e5m2 has one, though conversions never give it. */
  readonly infinity: number | undefined;
  readonly nan: number;
}

const FORMATS: Readonly<Record<NarrowStorage, Format>> = {
  f16: {
    exponentBits: 5,
    fractionBits: 10,
    largest: 0x7bff,
    overflow: 0x7c00,
    infinity: 0x7c00,
    nan: 0x7fff,
  },
  bf16: {
    exponentBits: 8,
    fractionBits: 7,
    largest: 0x7f7f,
    overflow: 0x7f80,
    infinity: 0x7f80,
    nan: 0x7fff,
  },
  f8e4m3: {
    exponentBits: 4,
    fractionBits: 3,
    largest: 0x7e,
    overflow: 0x7e,
    infinity: undefined,
    nan: 0x7f,
  },
  f8e5m2: {
    exponentBits: 5,
    fractionBits: 2,
    largest: 0x7b,
    overflow: 0x7b,
    infinity: 0x7c,
    nan: 0x7f,
  },
};

const double = new DataView(new ArrayBuffer(8));

/** The nearest integer; of two the even one. */
function toEven(value: number): number {
  const below = Math.floor(value);
  const rest = value - below;
  return rest > 0.5 || (rest === 0.5 && below % 2 !== 0) ? below + 1 : below;
}

/** Bits of the number nearest to `value` in the format. */
export function narrowBits(storage: NarrowStorage, value: number): number {
  const { exponentBits, fractionBits, largest, overflow, nan } = FORMATS[storage];
  if (Number.isNaN(value)) return nan;
  double.setFloat64(0, value);
  const high = double.getUint32(0);
  const sign = (high >>> 31) << (exponentBits + fractionBits);
  const bias = (1 << (exponentBits - 1)) - 1;
  const exponent = Math.max(((high >>> 20) & 0x7ff) - 1023, 1 - bias);
  // Scaling by a power of two is exact: the formats' least numbers are far above the least f64. The
  // hidden bit counts as one of the exponent.
  const code =
    toEven(Math.abs(value) * 2 ** (fractionBits - exponent)) +
    ((exponent + bias - 1) << fractionBits);
  return sign | (code > largest ? overflow : code);
}

function widen(code: number, { exponentBits, fractionBits, largest, infinity }: Format): number {
  const magnitude = code & ((1 << (exponentBits + fractionBits)) - 1);
  const sign = magnitude === code ? 1 : -1;
  if (magnitude > largest) return magnitude === infinity ? sign * Infinity : NaN;
  const bias = (1 << (exponentBits - 1)) - 1;
  const exponent = magnitude >>> fractionBits;
  const fraction = magnitude & ((1 << fractionBits) - 1);
  if (exponent === 0) return sign * fraction * 2 ** (1 - bias - fractionBits);
  return sign * ((1 << fractionBits) + fraction) * 2 ** (exponent - bias - fractionBits);
}

const tables = new Map<NarrowStorage, Float32Array>();

/** Every number of the format by its bits. */
export function wideValues(storage: NarrowStorage): Float32Array {
  let table = tables.get(storage);
  if (table === undefined) {
    const format = FORMATS[storage];
    table = Float32Array.from(
      { length: 1 << (1 + format.exponentBits + format.fractionBits) },
      (_, code) => widen(code, format),
    );
    tables.set(storage, table);
  }
  return table;
}

/**
 * Bits of `value` as the host writes it to a device: as a kernel does, but that what is too large
 * for an f8 stays to be seen. It becomes infinity in f8e5m2 and NaN in f8e4m3, which has no
 * infinity.
 */
export function hostBits(storage: NarrowStorage, value: number): number {
  const { largest, overflow, infinity, nan } = FORMATS[storage];
  const bits = narrowBits(storage, value);
  // The only one of the largest codes that is rounded from a number half a step or more above it.
  const magnitude = Math.abs(value);
  const most = wideValues(storage)[largest]!;
  const halfStep = (most - wideValues(storage)[largest - 1]!) / 2;
  const isBeyond =
    overflow === largest &&
    (infinity === undefined ? magnitude > most + halfStep : magnitude >= most + halfStep);
  return isBeyond ? (bits - largest) | (infinity ?? nan) : bits;
}

/** What is read after a kernel has written `value`. */
export function narrowed(storage: NarrowStorage, value: number): number {
  return wideValues(storage)[narrowBits(storage, value)]!;
}

/** What is read after the host has written `value`. */
export function hostValue(storage: NarrowStorage, value: number): number {
  return wideValues(storage)[hostBits(storage, value)]!;
}

export function isNarrow(storage: string): storage is NarrowStorage {
  return storage in FORMATS;
}
