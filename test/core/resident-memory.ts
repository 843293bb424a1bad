/** What a process holds in memory once its garbage is gone. */
import { collectGarbage } from './garbage.js';

/** Bytes. */
export async function residentMemory(): Promise<number> {
  await collectGarbage();
  return process.memoryUsage.rss();
}
