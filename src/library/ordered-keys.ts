/**
 * Sort keys: unsigned integers in whose order elements are sorted. The words of elements are moved,
 * with all their bits; keys are computed where words are compared. -0 and +0 have the same key, and
 * so have all NaN, which come last in either direction.
 */
import { FLOAT_LIMITS } from '../ground/dtype.js';
import type { KernelDType } from '../ground/dtype.js';
import { deviceFunction } from '../kernels/index.js';
import type { DeviceFunction, GpuWith, Usable } from '../kernels/index.js';
import { CASTS } from './reduction-kernels.js';

/** The type of keys in a kernel. */
export type KeyType = 'u32' | 'u64';

export function keyTypeOf({ bytes }: KernelDType): KeyType {
  return bytes === 8 ? 'u64' : 'u32';
}

/** Gives a device function from the word of an element (see `wordOf`) to its key. */
export function keyOf(dtype: KernelDType, descending: boolean): DeviceFunction {
  const wide = dtype.bytes === 8;
  const constant = (value: bigint): number | bigint => (wide ? value : Number(value));
  const bits = BigInt(dtype.bytes * 8);
  const [ALL, SIGN] = [constant(2n ** bits - 1n), constant(2n ** (bits - 1n))];
  const cast = CASTS[keyTypeOf(dtype)] as (value: number) => number;
  if (dtype.kind === 'bool') {
    // Every byte but 0 is true.
    const uses = { cast, TURNED: descending ? 1 : 0 };
    return deviceFunction(
      (word: number, gpu: GpuWith<typeof uses>): number =>
        gpu.cast(word) === gpu.cast(0) ? gpu.cast(gpu.TURNED) : gpu.cast(1 - gpu.TURNED),
      { uses },
    ) as DeviceFunction;
  }
  if (dtype.kind !== 'float') {
    // The sign bit of signed integers is inverted.
    const TURNED = constant(
      (dtype.kind === 'signed' ? 2n ** (bits - 1n) : 0n) ^ (descending ? 2n ** bits - 1n : 0n),
    );
    const uses = { cast, TURNED };
    return deviceFunction(
      (word: number, gpu: GpuWith<typeof uses>): number => gpu.cast(word) ^ gpu.cast(gpu.TURNED),
      { uses },
    ) as DeviceFunction;
  }
  const uses = {
    cast,
    ALL,
    SIGN,
    MAGNITUDE: constant(2n ** (bits - 1n) - 1n),
    // Magnitudes above it are NaN: these are the bits of infinity, in f8e4m3 of its greatest
    // number.
    GREATEST: constant(FLOAT_LIMITS[dtype.name]!.topBits),
    DESCENDING: descending,
  };
  return deviceFunction(
    (word: number, gpu: GpuWith<typeof uses>): number => {
      const all = gpu.cast(gpu.ALL);
      const sign = gpu.cast(gpu.SIGN);
      const given = gpu.cast(word);
      const magnitude = given & gpu.cast(gpu.MAGNITUDE);
      const signed = magnitude === 0 ? magnitude : given;
      const key = (signed & sign) !== 0 ? signed ^ all : signed | sign;
      return magnitude > gpu.cast(gpu.GREATEST) ? all : gpu.DESCENDING ? key ^ all : key;
    },
    { uses },
  ) as DeviceFunction;
}

/** The greatest key, for places after the end. */
export const LAST_KEY: Readonly<Record<KeyType, Usable>> = {
  u32: (gpu: { u32(value: number): number }): number => gpu.u32(0xffffffff),
  u64: (gpu: { u64(value: number): number }): number => gpu.u64(-1),
};
