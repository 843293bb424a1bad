/** What a process holds in memory once its garbage is gone. */
import { setTimeout } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

let collect: (() => void) | undefined;

/** Bytes. */
export async function residentMemory(): Promise<number> {
  if (collect === undefined) {
    setFlagsFromString('--expose-gc');
    collect = runInNewContext('gc') as () => void;
  }
  for (let i = 0; i < 3; i++) {
    collect();
    // What finalizers give back comes in turns of the event loop.
    await setTimeout(20);
  }
  return process.memoryUsage.rss();
}
