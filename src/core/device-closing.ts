/** The end of a device: everything that was made from it is freed, in order. */
import { clearTimeout, setTimeout } from 'node:timers';

import type { CoreDevice } from './device.js';

/**
 * Frees everything that was made from the device, and waits for it. Returns whether all of it ended
 * in time.
 */
export async function freeEverything(device: CoreDevice, timeout: number): Promise<boolean> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const expired = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), timeout);
  });
  const done = async (): Promise<boolean> => {
    const { objects, runtime, shared } = device;
    const { owned, allocations, streams } = objects;
    // Graphs end before modules: they were made later.
    await Promise.all([...owned].reverse().map((object) => object.close()));
    device.recycledMemory?.release();
    for (const allocation of [...allocations]) allocation.dispose();
    const open = [...streams];
    const passed = open.map((stream) => stream.passed(stream.mark));
    for (const stream of open) stream.close();
    await Promise.all([...objects.frees, ...passed]);
    // The host may see the end of work before the device has written it.
    await runtime.completion.until(() =>
      open.every(({ slot }) => runtime.completion.isWritten(slot)),
    );
    // The next Device that is opened may get the same staging memory.
    await device.reads.over();
    await Promise.all([...objects.createdPools].map((pool) => pool.close()));
    // Streams of other devices may wait for events of this device.
    if (shared.last) {
      await shared.freeGate.drained();
      await runtime.completion.until(() => shared.loans.settled());
    }
    await runtime.completion.until(() => runtime.ring.flush() && runtime.ring.drained);
    return true;
  };
  try {
    return await Promise.race([done().catch(() => false), expired]);
  } finally {
    clearTimeout(timer);
  }
}
