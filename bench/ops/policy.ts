/**
 * Policies whose streams are closed at the end: while several streams are in use every launch of
 * level 3 records an event, which would slow later rows.
 */
import { type CoreDevice, type SchedulingPolicy, type Stream, ops } from '../library.js';

export interface OpenedPolicy extends SchedulingPolicy {
  readonly streams: readonly Stream[];
  close(): void;
}

/** The default policy, with streams of its own. */
export function openDefault(device: CoreDevice): { close(): void } {
  const policy = new ops.NextIdle(device);
  ops.setPolicy(device, policy);
  return {
    close() {
      ops.setPolicy(device, undefined);
      policy.close();
    },
  };
}

/** A round robin, for operations of the device without a policy. */
export function openPolicy(device: CoreDevice, count = 4): OpenedPolicy {
  const policy = new ops.RoundRobin(device, count);
  const streams = Array.from({ length: count }, () => policy.nextStream());
  ops.setPolicy(device, policy);
  return {
    streams,
    nextStream: () => policy.nextStream(),
    close() {
      ops.setPolicy(device, undefined);
      policy.close();
    },
  };
}
