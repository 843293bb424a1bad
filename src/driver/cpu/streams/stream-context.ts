/**
 * A context as its streams, events and graphs use it. `../context.ts` implements it.
 */
import type { DeviceMemory } from '../memory/device-memory.js';
import type { MemoryPool } from '../memory/pool.js';
import type { Capture } from './capture.js';
import type { Graph, GraphExec, GraphNode } from './graph.js';
import type { Operation } from './operation.js';
import type { Stream } from './stream.js';
import type { StreamOrder } from './stream-order.js';

export interface StreamContext {
  readonly handle: number;
  readonly device: { readonly pool: MemoryPool };
  readonly machine: StreamMachine;
  readonly memory: DeviceMemory;
  /** All streams that live or still have work. */
  readonly streams: Set<Stream>;
  readonly captures: Set<Capture>;
  readonly legacy: Stream;
  /** Checks all work, on a device that is checked. */
  readonly checker: StreamChecker | undefined;
  /** Queues an operation outside any capture and returns its number in the stream. */
  enqueue(stream: Stream, operation: Operation): number;
  /** Runs `action` when everything that is queued now in any stream of the driver has ended. */
  afterQueuedWork(action: () => void): void;
  checkFault(call: string): void;
  /** Returns the result of `attempt`; where memory is short, it waits for frees and tries again. */
  obtain<T>(attempt: () => T | undefined): T | undefined;
  outOfMemory(call: string, bytes: number): never;
}

/** The checker as streams call it. */
export interface StreamChecker {
  readonly order: StreamOrder;
  /** Ends the context for what was found since; called after every step of work. */
  stop(): boolean;
  /** The running operation has ended. */
  completes(stream: Stream): void;
}

/** The driver's state that streams and graphs use. */
export interface StreamMachine {
  readonly devices: readonly { readonly context: StreamContext | undefined }[];
  readonly scheduler: { readonly current: Stream | undefined };
  readonly graphs: Map<number, Graph>;
  readonly graphNodes: Map<number, GraphNode>;
  readonly graphExecs: Map<number, GraphExec>;
  newHandle(): number;
}
