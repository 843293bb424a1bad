/** Ranges of 32-bit integers, as far as their operations show them. */
import { resolve } from './function.js';
import type { Value } from './function.js';

export type Range = readonly [number, number];

export const anySigned: Range = [-(2 ** 31), 2 ** 31 - 1];

const fits = (low: number, high: number): Range =>
  low >= anySigned[0] && high <= anySigned[1] ? [low, high] : anySigned;

/** Gives the signed range. It follows `depth` operations, so that the time is linear. */
export function rangeOf(start: Value, depth = 6): Range {
  const value = resolve(start);
  if (value.type !== 'b32') return anySigned;
  if (value.constant !== undefined) return [value.constant as number, value.constant as number];
  if (value.range !== undefined) return value.range;
  if (depth === 0) return anySigned;
  const of = (index: number): Range => rangeOf(value.args[index]!, depth - 1);
  switch (value.op) {
    case 'add': {
      const [a, b] = [of(0), of(1)];
      return fits(a[0] + b[0], a[1] + b[1]);
    }
    case 'sub': {
      const [a, b] = [of(0), of(1)];
      return fits(a[0] - b[1], a[1] - b[0]);
    }
    case 'mul': {
      const [a, b] = [of(0), of(1)];
      const corners = [a[0] * b[0], a[0] * b[1], a[1] * b[0], a[1] * b[1]];
      return fits(Math.min(...corners), Math.max(...corners));
    }
    case 'and': {
      const [a, b] = [of(0), of(1)];
      if (a[0] >= 0 || b[0] >= 0)
        return [0, Math.min(a[0] >= 0 ? a[1] : Infinity, b[0] >= 0 ? b[1] : Infinity)];
      return anySigned;
    }
    case 'or':
    case 'xor': {
      const [a, b] = [of(0), of(1)];
      // No bit is above the highest of either operand.
      return a[0] >= 0 && b[0] >= 0
        ? [0, 2 ** (32 - Math.clz32(Math.max(a[1], b[1]))) - 1]
        : anySigned;
    }
    case 'shl': {
      const by = resolve(value.args[1]!).constant;
      if (typeof by !== 'number' || by < 0 || by > 31) return anySigned;
      const a = of(0);
      return fits(a[0] * 2 ** by, a[1] * 2 ** by);
    }
    case 'shr': {
      const by = resolve(value.args[1]!).constant;
      if (typeof by !== 'number') return anySigned;
      const a = of(0);
      if (a[0] >= 0 || value.as === 's32') return [a[0] >> (by & 31), a[1] >> (by & 31)];
      return (by & 31) === 0 ? anySigned : [0, 0xffffffff >>> (by & 31)];
    }
    case 'rem': {
      const [a, b] = [of(0), of(1)];
      if (a[0] < 0 || b[0] <= 0) return anySigned;
      return [0, Math.min(a[1], b[1] - 1)];
    }
    case 'div': {
      const [a, b] = [of(0), of(1)];
      return a[0] >= 0 && b[0] > 0 ? [0, Math.floor(a[1] / b[0])] : anySigned;
    }
    case 'min': {
      const [a, b] = [of(0), of(1)];
      return value.as === 's32' ? [Math.min(a[0], b[0]), Math.min(a[1], b[1])] : anySigned;
    }
    case 'max': {
      const [a, b] = [of(0), of(1)];
      return value.as === 's32' ? [Math.max(a[0], b[0]), Math.max(a[1], b[1])] : anySigned;
    }
    case 'select': {
      const [a, b] = [of(1), of(2)];
      return [Math.min(a[0], b[0]), Math.max(a[1], b[1])];
    }
    case 'narrow':
      return value.detail === 'u8'
        ? [0, 255]
        : value.detail === 'u16'
          ? [0, 65535]
          : value.detail === 's8'
            ? [-128, 127]
            : [-32768, 32767];
    case 'popc':
    case 'clz':
      return [0, 64];
    default:
      return anySigned;
  }
}
