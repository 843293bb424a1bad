/** Limits of a device that a program may set: CUlimit. */
import { invalid } from '../ground/arguments.js';

/** Names of CUlimit. */
const LIMITS = {
  stackSize: 0,
  printfFifoSize: 1,
  mallocHeapSize: 2,
  devRuntimeSyncDepth: 3,
  devRuntimePendingLaunchCount: 4,
  maxL2FetchGranularity: 5,
  persistingL2CacheSize: 6,
} as const;

/** Names for `CoreDevice.limit` and `CoreDevice.setLimit`: CUlimit. */
export type LimitName = keyof typeof LIMITS;

export function limitNumber(name: LimitName): number {
  const number: number | undefined =
    typeof name === 'string' && Object.hasOwn(LIMITS, name) ? LIMITS[name] : undefined;
  if (number === undefined) throw invalid('name', `one of ${Object.keys(LIMITS).join(', ')}`, name);
  return number;
}
