/** Collects garbage, for tests of what is left over. */
import { setTimeout } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');

/** Collects at once. Finalizers run in later turns of the event loop. */
export const gc = runInNewContext('gc') as () => void;

/** Collects `times` times, with turns of the event loop between, in which finalizers run. */
export async function collectGarbage(times = 6): Promise<void> {
  for (let i = 0; i < times; i++) {
    gc();
    await setTimeout(5);
  }
}
