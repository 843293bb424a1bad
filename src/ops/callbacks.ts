/** The results that callbacks of operations may return, and their checks. */
import { invalid } from '../ground/arguments.js';
import type { DeviceOp } from './device-op.js';

/**
 * The type of a callback's result: no Promise, which would not be awaited, and no operation, which
 * would run by accident.
 */
export type Plain<U> =
  U extends PromiseLike<unknown>
    ? 'return a DeviceOp from andThen(), not from here; await a Promise before the operation'
    : U;

/**
 * The type of a result that may be an operation as well. The message is in an object: a string type
 * would keep literals from being widened.
 */
export type PlainOrOp<U> =
  U extends DeviceOp<unknown>
    ? U
    : U extends PromiseLike<unknown>
      ? { error: 'return a value or a DeviceOp: a Promise is not awaited' }
      : U;

/** The result of a callback. Throws for a Promise, which would not be awaited. */
export function synchronous<U>(argument: string, what: string, result: U): U {
  if (!isThenable(result)) return result;
  (result as PromiseLike<unknown>).then(undefined, ignore);
  throw invalid(
    argument,
    `a callback that returns ${what}`,
    result,
    'Callbacks are synchronous: the work is being queued, and a Promise is not awaited.',
  );
}

export function isThenable(value: unknown): boolean {
  return typeof (value as { then?: unknown } | null | undefined)?.then === 'function';
}

export function checkCallback(method: string, callback: unknown, name = 'callback'): void {
  if (typeof callback !== 'function') throw invalid(`${method}(${name})`, 'a function', callback);
}

export function ignore(): void {
  // The error describes the mistake; the promise's own end does not matter.
}
