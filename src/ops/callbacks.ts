/** What callbacks of operations may return, and the checks of it. */
import { invalid } from '../ground/arguments.js';
import type { DeviceOp } from './device-op.js';

/** What a callback must not return: it would be waited for by nobody, or run by accident. */
export type Plain<U> =
  U extends PromiseLike<unknown>
    ? 'return a DeviceOp from andThen(), not from here; a Promise is awaited before the operation is made'
    : U;

/**
 * The same where an operation may be returned as well. A string that says so would keep literals
 * from being widened.
 */
export type PlainOrOp<U> =
  U extends DeviceOp<unknown>
    ? U
    : U extends PromiseLike<unknown>
      ? { error: 'return a value or a DeviceOp: nobody waits for a Promise' }
      : U;

/** What a callback returned, unless that is on its way only: nobody would wait for it. */
export function synchronous<U>(argument: string, what: string, result: U): U {
  if (!isThenable(result)) return result;
  (result as PromiseLike<unknown>).then(undefined, ignore);
  throw invalid(
    argument,
    `a callback that returns ${what}`,
    result,
    'Callbacks are synchronous: the work is being queued, and nothing is waited for.',
  );
}

export function isThenable(value: unknown): boolean {
  return typeof (value as { then?: unknown } | null | undefined)?.then === 'function';
}

export function checkCallback(method: string, callback: unknown, name = 'callback'): void {
  if (typeof callback !== 'function') throw invalid(`${method}(${name})`, 'a function', callback);
}

export function ignore(): void {
  // The error says what is wrong; how the promise ends is beside the point.
}
