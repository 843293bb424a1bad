/**
 * A stream: a queue of operations that run one after the other. Each operation has a number in its
 * stream, and a stream has the number up to which it has completed; events and waits need only that
 * pair.
 */
import { CUstream_flags } from '../../flags.js';
import type { Capture } from './capture.js';
import type { GraphNode } from './graph.js';
import type { FreeOperation } from './free-operation.js';
import type { Operation } from './operation.js';
import type { StreamContext } from './stream-context.js';

/** Priorities run from 0 down to this, as on NVIDIA's data-centre GPUs. */
export const GREATEST_PRIORITY = -5;

export class Stream {
  readonly handle: number;
  readonly context: StreamContext;
  readonly flags: number;
  readonly priority: number;
  head: Operation | undefined = undefined;
  private tail: Operation | undefined = undefined;
  /** The number of the last operation queued. */
  submitted = 0;
  /** The number of the last operation completed. */
  completed = 0;
  destroyed = false;
  /**
   * Up to where the legacy stream waits for this one already, and this one for the legacy stream.
   */
  seenByLegacy = 0;
  legacySeen = 0;
  /**
   * Frees that are queued and not yet reached; an allocation on this stream may take their memory
   * at once.
   */
  readonly pendingFrees = new Set<FreeOperation>();
  /**
   * The capture that this stream takes part in, and the nodes that its next node will depend on.
   */
  capture: Capture | undefined = undefined;
  frontier: GraphNode[] = [];

  constructor(handle: number, context: StreamContext, flags: number, priority: number) {
    this.handle = handle;
    this.context = context;
    this.flags = flags;
    this.priority = priority;
  }

  get idle(): boolean {
    return this.head === undefined;
  }

  get blocking(): boolean {
    return (this.flags & CUstream_flags.CU_STREAM_NON_BLOCKING) === 0;
  }

  /** Queues an operation. Returns its number. */
  push(operation: Operation): number {
    if (this.head === undefined) this.head = operation;
    else this.tail!.next = operation;
    this.tail = operation;
    return ++this.submitted;
  }

  /** The first operation has ended. */
  advance(): void {
    const done = this.head!;
    this.head = done.next;
    done.next = undefined;
    if (this.head === undefined) this.tail = undefined;
    this.completed++;
    done.release();
  }

  /** Drops all queued work; a stream of another device that waits for it continues. */
  drop(): void {
    this.head = this.tail = undefined;
    this.completed = this.submitted;
    this.pendingFrees.clear();
  }
}
