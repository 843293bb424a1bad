/** What creating and queueing an operation costs the JS thread. */
import { performance } from 'node:perf_hooks';
import { setImmediate } from 'node:timers/promises';

import type { Device, DeviceOp } from 'async-cuda';

import type { Contender } from './benchmark.js';

const QUEUED = 50;
/**
 * Bursts before the first that counts: the last functions of the path are compiled after some
 * 20 000 runs. Code that later runs between them runs between these as well: its first run discards
 * code that was compiled without it.
 */
const WARM_BURSTS = 2000;
const BURSTS_PER_CHECK = 100;

/** An operation that is made and queued many times. */
export interface Queued {
  readonly make: () => DeviceOp<unknown>;
  /** Throws where the runs did not happen. */
  readonly check: () => Promise<void>;
  readonly close: () => Promise<void>;
}

/**
 * Operations are created and queued on one stream, which is held until all are; the time of their
 * execution is not included.
 */
export async function queueing(
  device: Device,
  count: number,
  { make, check, close }: Queued,
  warmBursts = WARM_BURSTS,
): Promise<Contender> {
  const stream = device.core.createStream();
  /** Microseconds of the JS thread for each. */
  const burst = async (): Promise<number> => {
    let release = (): void => undefined;
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    void stream.call(() => held);
    await setImmediate();
    const begun = performance.now();
    let last: PromiseLike<unknown> | undefined;
    for (let n = 0; n < QUEUED; n++) last = make().runOn(stream);
    const took = ((performance.now() - begun) * 1000) / QUEUED;
    release();
    await last;
    return took;
  };
  for (let i = 0; i < warmBursts; i++) {
    await burst();
    if (i % BURSTS_PER_CHECK === 0) await check();
  }
  return {
    async round() {
      const samples: number[] = [];
      for (let i = 0; i < count; i++) samples.push(await burst());
      await check();
      return { samples };
    },
    async close() {
      await close();
      stream.close();
    },
  };
}
