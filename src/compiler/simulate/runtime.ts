/** The functions that generated code takes from the runtime by name. */
import * as exact from './exact-arithmetic.js';
import { roundToOdd } from '../round-to-odd.js';
import { Failure } from './failure.js';
import { kernelValue } from '../../ground/narrow-floats.js';

/** The runtime: functions of the language, not of the thread. */
export const RUNTIME = {
  ...exact,
  narrowed: kernelValue,
  roundToOdd,
  divisor: <T extends number | bigint>(value: T, site: number): T => {
    // eslint-disable-next-line eqeqeq -- of either type
    if (value == 0)
      throw new Failure(
        'division',
        'an integer was divided by zero, whose result on a device is undefined',
        'Compare the divisor with 0 before, or divide floats.',
        site,
      );
    return value;
  },
  fround: Math.fround,
  imul: Math.imul,
  asI64: (value: bigint): bigint => BigInt.asIntN(64, value),
  asU64: (value: bigint): bigint => BigInt.asUintN(64, value),
  /** The lower 32 bits, signed. */
  asI32Bits: (value: bigint): bigint => BigInt.asIntN(32, value),
  absI64: (value: bigint): bigint => BigInt.asIntN(64, value < 0n ? -value : value),
};

export const RUNTIME_NAMES: ReadonlySet<string> = new Set(Object.keys(RUNTIME));
