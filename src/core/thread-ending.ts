/** For threads that layers above start: how they are ended with the process. */
export { onExit } from '../runtime/exit.js';
export type { Ending } from '../runtime/exit.js';
export { openDiskCache } from '../runtime/disk-cache.js';
export { cacheFolder, makeFolder } from '../runtime/cache-folder.js';
