/**
 * The policy that a device has by itself, a round robin, with streams that are closed in the end: while several streams
 * are in use every launch of level 3 records an event, which would be counted against rows that are measured later.
 */
import { type Device, type SchedulingPolicy, type Stream, ops } from '../library.js';

export interface OpenedPolicy extends SchedulingPolicy {
  readonly streams: readonly Stream[];
  close(): void;
}

/** Sets it for operations of the device that are given none. */
export function openPolicy(device: Device, count = 4): OpenedPolicy {
  const policy = new ops.RoundRobin(device, count);
  const streams = Array.from({ length: count }, () => policy.nextStream());
  ops.setPolicy(device, policy);
  return {
    streams,
    nextStream: () => policy.nextStream(),
    close() {
      ops.setPolicy(device, undefined);
      for (const stream of streams) stream.close();
    },
  };
}
