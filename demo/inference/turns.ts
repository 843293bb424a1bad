/** Long work of the host in turns of the event loop. */
import { performance } from 'node:perf_hooks';
import { setImmediate } from 'node:timers/promises';

import { type Device, type DeviceOp, allOf, value } from 'async-cuda';
import { operation } from 'async-cuda/ops';

/** How long one turn may be worked. */
const TURN_MS = 1;

/**
 * What the host makes of values that the device has given: from time to time it awaits `rest`, so
 * that others have their turn.
 */
export function inTurns<T>(
  device: Device,
  work: (rest: () => Promise<void>) => Promise<T>,
): DeviceOp<T> {
  return operation(device, ({ stream }) =>
    stream.call(async () => {
      let begun = performance.now();
      return work(async () => {
        if (performance.now() - begun < TURN_MS) return;
        await setImmediate();
        begun = performance.now();
      });
    }),
  );
}

/**
 * One operation after the other, `most` of them queued in one turn. Each is made when its turn has
 * come.
 */
export function someInATurn(
  device: Device,
  parts: readonly (() => DeviceOp<unknown>)[],
  most: number,
): DeviceOp<unknown> {
  const turns = Array.from({ length: Math.ceil(parts.length / most) }, (_, i) =>
    parts.slice(i * most, (i + 1) * most),
  );
  return turns.reduce<DeviceOp<unknown>>((before, some, i) => {
    const behind = i === 0 ? before : before.andThen(() => inTurns(device, () => setImmediate()));
    return behind.andThen(() => allOf(some.map((part) => part())));
  }, value(undefined));
}
