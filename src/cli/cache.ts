/** The cache of compiled code, for `async-cuda cache` and `async-cuda info`. */
import { openDiskCache } from '../runtime/disk-cache.js';
import type { CacheContents, DiskCache } from '../runtime/disk-cache.js';

const OFF = 'off: ASYNC_CUDA_CACHE_DISABLE is set, or the user has no home folder';

/** The contents of the cache; undefined where there is none. */
export function cacheContents(): CacheContents | undefined {
  return openDiskCache()?.contents();
}

export function describeCache(contents: CacheContents | undefined): string {
  return contents === undefined ? OFF : `${contents.folder}: ${amount(contents)}`;
}

/** Removes all entries, and returns a text with their amount. */
export function clearCache(cache: DiskCache | undefined = openDiskCache()): string {
  if (cache === undefined) return OFF;
  const removed = cache.clear();
  const left = cache.contents();
  return (
    `${removed.folder}: ${amount(removed)} ` +
    `removed${left.entries === 0 ? '' : `, ${amount(left)} could not be`}`
  );
}

function amount({ entries, bytes }: CacheContents): string {
  return `${entries} ${entries === 1 ? 'entry' : 'entries'}, ${(bytes / 2 ** 20).toFixed(1)} MiB`;
}
