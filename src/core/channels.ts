/**
 * The library's messages on `node:diagnostics_channel`: each channel, and the objects that are
 * published there.
 *
 * Publishing is synchronous, at the call that queues the work. No message is made while a channel
 * has no subscribers.
 */
import { channel } from 'node:diagnostics_channel';

import type { CopyDirection, OperationKind } from '../runtime/commands/trace.js';
import type { CoreDevice } from './device.js';
import type { Stream } from './stream.js';

// Each channel is a constant of its own: a property of a table would be one more load in a launch.
/**
 * Every operation of a stream, those of the next three channels included: {@link OperationMessage}.
 */
export const enqueued = channel('async-cuda:enqueue');
/** Launches of kernels: {@link OperationMessage}. */
export const launched = channel('async-cuda:launch');
/** Copies, one message for each command: {@link OperationMessage}. */
export const copied = channel('async-cuda:copy');
/**
 * Launches of graphs ({@link OperationMessage}), captures and instantiations
 * ({@link GraphMessage}).
 */
export const graphed = channel('async-cuda:graph');
/** Allocations: {@link MemoryMessage}. */
export const allocated = channel('async-cuda:alloc');
/** Frees: {@link MemoryMessage}. */
export const freed = channel('async-cuda:free');
/** Waits of JavaScript for a stream, their beginnings and ends: {@link FenceMessage}. */
export const fenced = channel('async-cuda:fence');

/** The fields of every message. */
export interface ChannelMessage {
  /** The time of the event, in milliseconds of `performance.now()`. */
  readonly time: number;
  /** e.g. `cuda:0` */
  readonly device: string;
}

export type { CopyDirection, OperationKind };

/** A command that was queued on a stream. */
export interface OperationMessage extends ChannelMessage {
  readonly kind: OperationKind;
  /** The number of the stream among those that are open on the device. */
  readonly stream: number;
  readonly streamLabel: string | undefined;
  /**
   * The number of the operation that the command belongs to, in the order of the calls; 0 for a
   * command that belongs to none.
   */
  readonly operation: number;
  /** The kernel's name, or the operation's name as in errors. */
  readonly name: string;
  /** The label given by `labelled`. */
  readonly label: string | undefined;
  /** Whether the command was recorded into a graph, and does not run now. */
  readonly captured: boolean;
  /**
   * Numbers of the allocations that the command uses, as in {@link MemoryMessage.memory}. A copy
   * lists the written ones first.
   */
  readonly memory: readonly number[];
  /** Blocks of a launch. */
  readonly grid?: readonly [number, number, number];
  /** Threads of a block of a launch. */
  readonly block?: readonly [number, number, number];
  /** Dynamic shared memory of a launch, in bytes. */
  readonly sharedBytes?: number;
  /** Bytes of a copy, a fill or an allocation. */
  readonly bytes?: number;
  /** The direction of a copy. */
  readonly direction?: CopyDirection;
  /** The number of the graph that is launched. */
  readonly graph?: number;
}

/** The kind of an allocation: `device` comes from a pool, `plain` from cuMemAlloc. */
export type MemoryKind = 'device' | 'plain' | 'managed' | 'array' | 'pinned';

/** An allocation or a free. */
export interface MemoryMessage extends ChannelMessage {
  readonly kind: MemoryKind;
  /** The number of the allocation. It is used again after the free. */
  readonly memory: number;
  readonly bytes: number;
  readonly label: string | undefined;
  /**
   * Bytes that the buffers of this device hold after the allocation or free. Page-locked memory is
   * counted apart.
   */
  readonly bytesInUse: number;
}

/** A wait for a stream. */
export interface FenceMessage extends ChannelMessage {
  readonly phase: 'wait' | 'passed' | 'failed';
  /** The number of the wait. Its end has the same number. */
  readonly fence: number;
  readonly stream: number;
  readonly streamLabel: string | undefined;
  /** Milliseconds from the beginning of the wait to its end. */
  readonly duration?: number;
}

/** A graph that was captured, or made executable. */
export interface GraphMessage extends ChannelMessage {
  readonly phase: 'capture' | 'instantiate';
  readonly stream: number;
  readonly streamLabel: string | undefined;
  /** Milliseconds; {@link time} is the beginning. */
  readonly duration: number;
}

/**
 * Whether launches have subscribers. A launch checks no more than it has to: each check costs a
 * nanosecond.
 */
export function hasLaunchSubscribers(): boolean {
  return launched.hasSubscribers || enqueued.hasSubscribers;
}

/** Whether operations of any kind have subscribers. */
export function hasOperationSubscribers(): boolean {
  return (
    enqueued.hasSubscribers ||
    launched.hasSubscribers ||
    copied.hasSubscribers ||
    graphed.hasSubscribers
  );
}

/** Publishes a queued operation to the channels of its kind. */
export function publishOperation(message: OperationMessage): void {
  enqueued.publish(message);
  if (message.kind === 'launch') launched.publish(message);
  else if (message.kind === 'copy') copied.publish(message);
  else if (message.kind === 'graph') graphed.publish(message);
}

/** The name of a device in messages. */
export function deviceName({ kind, ordinal }: CoreDevice): string {
  return `${kind}:${ordinal}`;
}

let fences = 0;

/**
 * Publishes that JavaScript has waited for `stream` since `begun`, and the end of the wait: now,
 * where there is no `wait`.
 */
export function publishWait(
  stream: Stream,
  begun: number,
  wait: Promise<unknown> | undefined,
): void {
  const fence = ++fences;
  const { slot, label: streamLabel } = stream;
  const about = { device: deviceName(stream.device), fence, stream: slot.index, streamLabel };
  const publish = (message: FenceMessage): void => {
    stream.shared.recorder?.wait(message);
    fenced.publish(message);
  };
  publish({ ...about, time: begun, phase: 'wait' });
  const ended = (phase: 'passed' | 'failed'): void => {
    const time = performance.now();
    publish({ ...about, time, phase, duration: time - begun });
  };
  if (wait === undefined) ended('passed');
  else
    wait.then(
      () => ended('passed'),
      () => ended('failed'),
    );
}

/** Publishes a step of a graph that began at `begun`. */
export function publishGraph(stream: Stream, phase: GraphMessage['phase'], begun: number): void {
  if (!graphed.hasSubscribers) return;
  const { slot, label: streamLabel, device } = stream;
  const duration = performance.now() - begun;
  const message: GraphMessage = {
    time: begun,
    device: deviceName(device),
    phase,
    stream: slot.index,
    streamLabel,
    duration,
  };
  stream.shared.recorder?.graph(message);
  graphed.publish(message);
}
