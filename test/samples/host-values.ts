/** Inputs: the same on every machine and at every run. */

/** Zeros, subnormals, the ends of the range, what rounds and what does not, infinities, NaN. */
export const SPECIAL_F32: readonly number[] = [
  0,
  -0,
  1,
  -1,
  Infinity,
  -Infinity,
  NaN,
  2 ** -149,
  -(2 ** -149),
  2 ** -126 - 2 ** -149,
  2 ** -126,
  -(2 ** -126),
  3.4028234663852886e38,
  -3.4028234663852886e38,
  1 + 2 ** -23,
  1 - 2 ** -24,
  0.5,
  2,
  16777216,
  16777215,
  2147483648,
  -2147483648,
  4294967296,
  9.223372036854775807e18,
  1.8446744073709552e19,
  65504,
  65520,
  2 ** -24,
  127.5,
  -128.5,
  3.3895313892515355e38,
];
export const SPECIAL_F64: readonly number[] = [
  0,
  -0,
  1,
  -1,
  Infinity,
  -Infinity,
  NaN,
  Number.MIN_VALUE,
  -Number.MIN_VALUE,
  2 ** -1022,
  2 ** -1022 - Number.MIN_VALUE,
  Number.MAX_VALUE,
  -Number.MAX_VALUE,
  1 + Number.EPSILON,
  1 - Number.EPSILON / 2,
  2 ** 52,
  2 ** 53,
  2 ** 31,
  -(2 ** 31),
  2 ** 63,
  -(2 ** 63),
  2 ** 64,
  0.5,
  2.5,
  -1.5,
];
export const SPECIAL_I32: readonly number[] = [
  0, 1, -1, 2, -2, 2147483647, -2147483648, 2147483646, -2147483647, 65535, 65536, -65536, 255,
  0x55555555, 0x33333333,
];
/**
 * Zeros, subnormals, one, the largest, infinities and NaNs of f16; the same words are as telling in
 * bf16.
 */
export const SPECIAL_WORDS: readonly number[] = [
  0, 0x8000, 0x3c00, 0xbc00, 0x0001, 0x8001, 0x03ff, 0x0400, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e01,
  0xffff, 0x3f80, 0xbf80, 0x7f7f, 0xff7f, 0x7f80, 0xff80, 0x007f, 0x0080,
];

export class Values {
  private state: number;

  constructor(seed: number) {
    this.state = seed >>> 0;
  }

  /** 32 random bits (Mulberry32). */
  word(): number {
    this.state = (this.state + 0x6d2b79f5) >>> 0;
    let t = this.state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return (t ^ (t >>> 14)) >>> 0;
  }

  /** From 0 to 1. */
  unit(): number {
    return this.word() / 2 ** 32;
  }

  below(limit: number): number {
    return Math.floor(this.unit() * limit);
  }

  floats(length: number, low: number, high: number): Float32Array {
    return Float32Array.from({ length }, () => low + this.unit() * (high - low));
  }

  doubles(length: number, low: number, high: number): Float64Array {
    return Float64Array.from(
      { length },
      () => low + (this.unit() + this.unit() * 2 ** -32) * (high - low),
    );
  }

  /** Whole numbers as floats: their sums are exact in any order while they stay below 2^24. */
  wholeFloats(length: number, low: number, high: number): Float32Array {
    return Float32Array.from({ length }, () => low + this.below(high - low + 1));
  }

  integers(length: number, low: number, high: number): Int32Array {
    return Int32Array.from({ length }, () => low + this.below(high - low + 1));
  }

  bytes(length: number): Uint8Array {
    return Uint8Array.from({ length }, () => this.word());
  }

  words(length: number): Uint32Array {
    return Uint32Array.from({ length }, () => this.word());
  }

  longs(length: number): BigUint64Array {
    return new BigUint64Array(this.words(length * 2).buffer);
  }

  /** Any bits, specials, and ordinary values, a third each. */
  wildFloats(length: number): Float32Array {
    const any = new Float32Array(this.words(length).buffer);
    return Float32Array.from({ length }, (_, i) =>
      this.oneOf([any[i]!, this.one(SPECIAL_F32), this.unit() * 16 - 8]),
    );
  }

  wildDoubles(length: number): Float64Array {
    const any = new Float64Array(this.longs(length).buffer);
    return Float64Array.from({ length }, (_, i) =>
      this.oneOf([any[i]!, this.one(SPECIAL_F64), this.unit() * 16 - 8]),
    );
  }

  wildIntegers(length: number): Int32Array {
    return Int32Array.from({ length }, () =>
      this.oneOf([this.word() | 0, this.one(SPECIAL_I32), this.below(2000) - 1000]),
    );
  }

  /** 16-bit words: any, and the special ones. */
  wildHalves(length: number): Uint16Array {
    return Uint16Array.from({ length }, () =>
      this.oneOf([
        this.word() & 0xffff,
        this.one(SPECIAL_WORDS),
        0x3800 + this.below(0x1000) + (this.word() & 0x8000),
      ]),
    );
  }

  one(choices: readonly number[]): number {
    return choices[this.below(choices.length)]!;
  }

  private oneOf(choices: readonly number[]): number {
    return this.one(choices);
  }
}
