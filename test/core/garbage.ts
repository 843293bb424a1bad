/** Collects garbage, for tests of what is left behind. */
import { setTimeout } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');

/** At once; what finalizers give back comes in later turns of the event loop. */
export const gc = runInNewContext('gc') as () => void;

/** Collects `times` times, and lets those who wait for it know in between. */
export async function collectGarbage(times = 6): Promise<void> {
  for (let i = 0; i < times; i++) {
    gc();
    await setTimeout(5);
  }
}
