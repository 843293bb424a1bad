/** Conversions between the types of registers. */
import type { ValueType } from '../tree.js';
import { isFloat, isWide, numberOf, registerOf } from './builder.js';
import type { Builder } from './builder.js';
import type { Value } from './function.js';
import { rangeOf } from './ranges.js';

export function convert(b: Builder, value: Value, from: ValueType, to: ValueType): Value {
  if (from === to) return value;
  if (to === 'bool')
    return b.make('compare', 'pred', [value, b.constant(value.type, 0)], 'ne', numberOf[from]);
  const register = registerOf[to];
  if (from === 'bool') {
    const flag = b.make('select', register === 'b64' ? 'b32' : register, [
      value,
      b.constant(register === 'b64' ? 'b32' : register, 1),
      b.constant(register === 'b64' ? 'b32' : register, 0),
    ]);
    return register === 'b64' ? b.make('extend', 'b64', [flag], '', 'u32') : flag;
  }
  if (!isFloat(from) && !isFloat(to)) {
    if (isWide(from) === isWide(to)) return value;
    return isWide(to)
      ? b.make('extend', 'b64', [value], '', numberOf[from])
      : b.make('truncate', 'b32', [value]);
  }
  const converted = b.make('convert', register, [value], `${numberOf[to]}.${numberOf[from]}`);
  // cvt gives 0 for NaN only from f32 to 32 bits.
  if (
    !isFloat(from) ||
    isFloat(to) ||
    (from === 'f32' && !isWide(to)) ||
    converted.constant !== undefined
  )
    return converted;
  return b.make('select', register, [
    b.make('compare', 'pred', [value, value], 'nan', numberOf[from]),
    b.constant(register, 0),
    converted,
  ]);
}

/** f32 holds all integers up to this one. */
const EXACT_IN_F32 = 2 ** 24;

/**
 * Converts to f32 rounded to odd: towards zero, then with the last bit set where digits were lost,
 * which converting back shows.
 */
export function convertToOdd(b: Builder, value: Value, from: ValueType, to: ValueType): Value {
  const [low, high] = isFloat(from) ? [-Infinity, Infinity] : rangeOf(value);
  if (low >= -EXACT_IN_F32 && high <= EXACT_IN_F32 && (low >= 0 || from === 'i32'))
    return convert(b, value, from, to);
  const number = numberOf[from];
  const cut = b.make('convert', 'f32', [value], `f32.${number}.rz`);
  const back = b.make('convert', value.type, [cut], `${number}.f32`);
  const inexact = b.make('compare', 'pred', [back, value], 'ne', number);
  const bits = b.make('bits', 'b32', [cut]);
  return b.make('bits', 'f32', [
    b.make('select', 'b32', [inexact, b.make('or', 'b32', [bits, b.constant('b32', 1)]), bits]),
  ]);
}
