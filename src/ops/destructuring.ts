/** Operations as elements of the list that another operation gives. */
import { CudaArgumentError } from '../core/index.js';
import type { DeviceOp } from './device-op.js';

/**
 * What a method takes out of a list; types know that it is one where they know what the operation
 * gives.
 */
export function valueAt(values: unknown, at: number, method: string): unknown {
  if (Array.isArray(values) && values.length > 0) return values.at(at);
  throw new CudaArgumentError(
    'values',
    `${method}: there is no value; the operation gives ` +
      `${Array.isArray(values) ? 'an empty list' : 'none, being no list'}. Call it on one that ` +
      `gives a list: zip(a, b).${method}().`,
  );
}

/** As many operations as are destructured. */
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
