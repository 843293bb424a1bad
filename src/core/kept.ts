/** What other layers keep on disk, in the cache of compiled code, under the same switch. */
export { cacheFolder } from '../runtime/cache-folder.js';
export { makeOwnFolderSync } from '../runtime/own-files.js';
export { cubinEntry, kernelEntry, openDiskCache, programEntry } from '../runtime/disk-cache.js';
export type { DiskCache } from '../runtime/disk-cache.js';
