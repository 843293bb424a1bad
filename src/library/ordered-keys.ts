/**
 * Elements as unsigned integers in whose order they are sorted. What is sorted are the words of
 * elements, which keep their bits; keys are computed where words are compared. -0 and +0 have one
 * key, so has every NaN, which comes last in either direction.
 */
import { FLOAT_LIMITS } from '../ground/dtype.js';
import type { KernelDType } from '../ground/dtype.js';
import { deviceFunction } from '../kernels/index.js';
import type { DeviceFunction, GpuWith, Usable } from '../kernels/index.js';
import { CASTS } from './reduction-kernels.js';

/** What keys are in a kernel. */
export type KeyType = 'u32' | 'u64';

export function keyTypeOf({ bytes }: KernelDType): KeyType {
  return bytes === 8 ? 'u64' : 'u32';
}

/**
 * A device function from the word of an element, as `wordOf` has it, to its key of as many bits.
 */
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
    // Of signed ones the sign's bit is turned.
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
    // What is above it is NaN: the bits of infinity, of f8e4m3 those of its greatest number.
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

/** The greatest key, of what stands behind the end. */
export const LAST_KEY: Readonly<Record<KeyType, Usable>> = {
  u32: (gpu: { u32(value: number): number }): number => gpu.u32(0xffffffff),
  u64: (gpu: { u64(value: number): number }): number => gpu.u64(-1),
};
