/** How threads that other layers start are ended with the process. */
export { onExit } from '../runtime/exit.js';
export type { Ending } from '../runtime/exit.js';
export { DiskCache, openDiskCache, planEntry } from '../runtime/disk-cache.js';
export { cacheFolder } from '../runtime/cache-folder.js';
