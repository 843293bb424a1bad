/** Long work of the host in turns of the event loop. */
import { performance } from 'node:perf_hooks';
import { setImmediate } from 'node:timers/promises';

import type { Device, DeviceOp } from 'async-cuda';
import { enqueue } from 'async-cuda/ops';

/** How long one turn may be worked. */
const TURN_MS = 1;

/** What the host makes of values that the device has given: from time to time it awaits `rest`, so that others have their turn. */
export function inTurns<T>(device: Device, work: (rest: () => Promise<void>) => Promise<T>): DeviceOp<T> {
  return enqueue(device, ({ stream }) => stream.call(async () => {
    let begun = performance.now();
    return work(async () => {
      if (performance.now() - begun < TURN_MS) return;
      await setImmediate();
      begun = performance.now();
    });
  }));
}

/** Nothing: what comes behind it is queued in another turn than what is before it. */
export function anotherTurn(device: Device): DeviceOp<void> {
  return inTurns(device, () => setImmediate());
}
