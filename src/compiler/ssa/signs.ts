/**
 * Floats that are known not to be above zero, as far as their operations show it: branches of
 * Math's functions on the sign are then decided.
 */
import { resolve } from './function.js';
import type { Value } from './function.js';

/** The values of which each value is the maximum. */
const joined = new WeakMap<Value, ReadonlySet<Value>>();

/** The limit of their number: a maximum has two for each element of the thread and of its warp. */
const MOST = 512;

/** The values that `max` joined in a value: it is at least as great as each, or NaN. */
function joinedIn(greatest: Value): ReadonlySet<Value> {
  const known = joined.get(greatest);
  if (known) return known;
  const found = new Set<Value>([greatest]);
  for (const value of found) {
    if (value.op !== 'max' || found.size > MOST) continue;
    for (const arg of value.args) found.add(resolve(arg));
  }
  joined.set(greatest, found);
  return found;
}

/** Whether the value is zero of either sign, above it, or NaN. */
function isNeverNegative(start: Value, depth: number): boolean {
  const value = resolve(start);
  if (value.constant !== undefined) return (value.constant as number) >= 0;
  if (depth === 0) return false;
  const [a, b] = value.args.map(resolve);
  switch (value.op) {
    case 'abs':
    case 'sqrt':
      return true;
    case 'mul':
      return a === b || (isNeverNegative(a!, depth - 1) && isNeverNegative(b!, depth - 1));
    case 'max':
      return isNeverNegative(a!, depth - 1) || isNeverNegative(b!, depth - 1);
    default:
      return false;
  }
}

/**
 * Whether the value is zero of either sign, below it, or NaN. It follows `depth` operations, so
 * that the time is linear.
 */
export function isNeverPositive(start: Value, depth = 4): boolean {
  const value = resolve(start);
  if (value.type !== 'f32' && value.type !== 'f64') return false;
  if (value.constant !== undefined) return (value.constant as number) <= 0;
  if (depth === 0) return false;
  const [a, b] = value.args.map(resolve);
  switch (value.op) {
    // Infinity less infinity is NaN.
    case 'sub':
      return joinedIn(b!).has(a!);
    case 'neg':
      return isNeverNegative(a!, depth - 1);
    case 'mul':
      return (
        (isNeverPositive(a!, depth - 1) && isNeverNegative(b!, depth - 1)) ||
        (isNeverNegative(a!, depth - 1) && isNeverPositive(b!, depth - 1))
      );
    case 'min':
      return isNeverPositive(a!, depth - 1) || isNeverPositive(b!, depth - 1);
    case 'max':
      return isNeverPositive(a!, depth - 1) && isNeverPositive(b!, depth - 1);
    default:
      return false;
  }
}
