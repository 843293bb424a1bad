/** The elements of an operation's list as operations. */
import { CudaArgumentError } from '../core/index.js';
import type { DeviceOp } from './device-op.js';

/**
 * Returns the element at index `at` of an operation's value, for the method with that name. In
 * TypeScript the operation's type ensures that the value is a list.
 */
export function valueAt(values: unknown, at: number, method: string): unknown {
  if (Array.isArray(values) && values.length > 0) return values.at(at);
  throw new CudaArgumentError(
    'values',
    `${method}: there is no value; the operation's value is ` +
      `${Array.isArray(values) ? 'an empty list' : 'not a list'}. Call it on an operation whose ` +
      `value is a list: zip(a, b).${method}().`,
  );
}

/** A list of operations that has as many elements as are destructured. */
export function parts(part: (index: number) => DeviceOp<unknown>): DeviceOp<unknown>[] {
  const made: DeviceOp<unknown>[] = [];
  const at = (index: number): DeviceOp<unknown> => (made[index] ??= part(index));
  return new Proxy(made, {
    get(target, key, receiver): unknown {
      if (key === Symbol.iterator)
        return function* every(): Generator<DeviceOp<unknown>> {
          for (let index = 0; ; index++) yield at(index);
        };
      return typeof key === 'string' && /^\d+$/.test(key)
        ? at(Number(key))
        : Reflect.get(target, key, receiver);
    },
  });
}
