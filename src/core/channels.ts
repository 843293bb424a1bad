/**
 * What the library tells of itself through `node:diagnostics_channel`: each channel, and the
 * objects that it publishes.
 *
 * Publishing is synchronous, at the call that queues the work. Nothing is put together while nobody
 * listens.
 */
import { channel } from 'node:diagnostics_channel';

import type { CopyDirection, OperationKind } from '../runtime/commands/trace.js';
import type { CoreDevice } from './device.js';
import type { Stream } from './stream.js';

// Each in a constant of its own: a property of a table would be one more load where launches ask.
/**
 * Every operation of a stream, those of the three channels below included:
 * {@link OperationMessage}.
 */
export const enqueued = channel('async-cuda:enqueue');
/** Launches of kernels: {@link OperationMessage}. */
export const launched = channel('async-cuda:launch');
/** Copies, one message for each command: {@link OperationMessage}. */
export const copied = channel('async-cuda:copy');
/**
 * Launches of graphs ({@link OperationMessage}), captures and instantiations ({@link
 * GraphMessage}).
 */
export const graphed = channel('async-cuda:graph');
/** Memory that was made: {@link MemoryMessage}. */
export const allocated = channel('async-cuda:alloc');
/** Memory that was given back: {@link MemoryMessage}. */
export const freed = channel('async-cuda:free');
/** Waits of JavaScript for a stream, their beginnings and ends: {@link FenceMessage}. */
export const fenced = channel('async-cuda:fence');

/** What every message says. */
export interface ChannelMessage {
  /** When, in milliseconds of `performance.now()`. */
  readonly time: number;
  /** e.g. `cuda:0` */
  readonly device: string;
}

export type { CopyDirection, OperationKind };

/** A command that was queued on a stream. */
export interface OperationMessage extends ChannelMessage {
  readonly kind: OperationKind;
  /** Number of the stream among those that are open on the device. */
  readonly stream: number;
  readonly streamLabel: string | undefined;
  /**
   * Number of the operation that the command belongs to, as in the order of the calls; 0 for what
   * belongs to none.
   */
  readonly operation: number;
  /** The kernel's name, or what errors call the operation. */
  readonly name: string;
  /** Given by {@link labelled}. */
  readonly label: string | undefined;
  /** Whether it was recorded into a graph and does not run now. */
  readonly captured: boolean;
  /**
   * Numbers of the allocations that it uses, as in {@link MemoryMessage.memory}; those that are
   * written come first in copies.
   */
  readonly memory: readonly number[];
  /** Of a launch: blocks. */
  readonly grid?: readonly [number, number, number];
  /** Of a launch: threads of a block. */
  readonly block?: readonly [number, number, number];
  /** Of a launch: dynamic shared memory, bytes. */
  readonly sharedBytes?: number;
  /** Of a copy, a fill or an allocation. */
  readonly bytes?: number;
  /** Of a copy. */
  readonly direction?: CopyDirection;
  /** Of a graph's launch: number of the graph. */
  readonly graph?: number;
}

/** Where memory lies and what it comes from: `device` from a pool, `plain` by cuMemAlloc. */
export type MemoryKind = 'device' | 'plain' | 'managed' | 'array' | 'pinned';

/** Memory that was made or given back. */
export interface MemoryMessage extends ChannelMessage {
  readonly kind: MemoryKind;
  /** Number of the allocation; given again once it is freed. */
  readonly memory: number;
  readonly bytes: number;
  readonly label: string | undefined;
  /**
   * Bytes that buffers of this device hold with, or without, this one; page-locked memory is
   * counted by itself.
   */
  readonly bytesInUse: number;
}

/** A wait for a stream. */
export interface FenceMessage extends ChannelMessage {
  readonly phase: 'wait' | 'passed' | 'failed';
  /** Number of the wait: its end has the same. */
  readonly fence: number;
  readonly stream: number;
  readonly streamLabel: string | undefined;
  /** Of an end: milliseconds since the wait began. */
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
 * Whether anybody wants to know of launches, which ask for no more than they must: each question
 * costs a nanosecond.
 */
export function launchesHeard(): boolean {
  return launched.hasSubscribers || enqueued.hasSubscribers;
}

/** Whether anybody wants to know of any operations. */
export function operationsHeard(): boolean {
  return (
    enqueued.hasSubscribers ||
    launched.hasSubscribers ||
    copied.hasSubscribers ||
    graphed.hasSubscribers
  );
}

/** What messages call a device. */
export function deviceName({ kind, ordinal }: CoreDevice): string {
  return `${kind}:${ordinal}`;
}

let fences = 0;

/**
 * Tells that JavaScript has waited for `stream` since `begun`, and when that is over: now, where
 * there is no `wait`.
 */
export function tellWait(stream: Stream, begun: number, wait: Promise<unknown> | undefined): void {
  const fence = ++fences;
  const { slot, label: streamLabel } = stream;
  const about = { device: deviceName(stream.device), fence, stream: slot.index, streamLabel };
  const tell = (message: FenceMessage): void => {
    stream.shared.recorder?.wait(message);
    fenced.publish(message);
  };
  tell({ ...about, time: begun, phase: 'wait' });
  const ended = (phase: 'passed' | 'failed'): void => {
    const time = performance.now();
    tell({ ...about, time, phase, duration: time - begun });
  };
  if (wait === undefined) ended('passed');
  else
    wait.then(
      () => ended('passed'),
      () => ended('failed'),
    );
}

/** Tells of something that was done to a graph since `begun`. */
export function tellGraph(stream: Stream, phase: GraphMessage['phase'], begun: number): void {
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
