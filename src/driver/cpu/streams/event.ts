/**
 * An event: a point in a stream's order, and the time at which the device passed it. Recording
 * again moves the event to a new point; earlier waits keep their point, since they store it
 * themselves.
 */
import { CUgraphNodeType } from '../../flags.js';
import type { Capture } from './capture.js';
import type { GraphNode } from './graph.js';
import { Operation, STEP } from './operation.js';
import type { Slice } from './operation.js';
import type { Stream } from './stream.js';
import type { StreamContext } from './stream-context.js';

export class CpuEvent {
  readonly handle: number;
  readonly context: StreamContext;
  readonly flags: number;
  /** The stream of its last record; undefined before the first. */
  stream: Stream | undefined = undefined;
  sequence = 0;
  /** Milliseconds on the device's clock; defined once it is complete. */
  time = 0;
  /** Set while its last record was made in a capturing stream. */
  captured: { capture: Capture; frontier: readonly GraphNode[] } | undefined = undefined;

  constructor(handle: number, context: StreamContext, flags: number) {
    this.handle = handle;
    this.context = context;
    this.flags = flags;
  }

  get complete(): boolean {
    return this.stream === undefined || this.stream.completed >= this.sequence;
  }
}

/** Records the time when the stream reaches it. */
export class RecordOperation extends Operation {
  readonly nodeType = CUgraphNodeType.CU_GRAPH_NODE_TYPE_EMPTY;
  private event: CpuEvent | undefined = undefined;
  private stream: Stream | undefined = undefined;
  /** Its own number, which the queue assigns. */
  sequence = 0;

  private static readonly spare: RecordOperation[] = [];

  static take(event: CpuEvent, stream: Stream): RecordOperation {
    const operation = RecordOperation.spare.pop() ?? new RecordOperation();
    operation.event = event;
    operation.stream = stream;
    return operation;
  }

  step(slice: Slice): number {
    const event = this.event!;
    if (event.stream === this.stream && event.sequence === this.sequence) event.time = slice.now();
    return STEP.done;
  }

  copy(): Operation {
    throw new Error('a record outside a capture is not part of a graph');
  }

  describe(): string {
    return `record event ${this.event!.handle}`;
  }

  override release(): void {
    this.event = this.stream = undefined;
    RecordOperation.spare.push(this);
  }
}

/** Waits until another stream has completed a given operation. */
export class WaitOperation extends Operation {
  readonly nodeType = CUgraphNodeType.CU_GRAPH_NODE_TYPE_WAIT_EVENT;
  private stream: Stream | undefined = undefined;
  private sequence = 0;

  private static readonly spare: WaitOperation[] = [];

  static take(stream: Stream, sequence: number): WaitOperation {
    const operation = WaitOperation.spare.pop() ?? new WaitOperation();
    operation.stream = stream;
    operation.sequence = sequence;
    return operation;
  }

  step(): number {
    const stream = this.stream!;
    if (stream.completed < this.sequence) return STEP.blocked;
    const { checker, machine } = stream.context;
    checker?.order.waited(machine.scheduler.current!, stream, this.sequence);
    return STEP.done;
  }

  copy(): Operation {
    return WaitOperation.take(this.stream!, this.sequence);
  }

  describe(): string {
    return `wait for stream ${this.stream!.handle}`;
  }

  override release(): void {
    this.stream = undefined;
    WaitOperation.spare.push(this);
  }
}

/**
 * A wait with CU_EVENT_WAIT_EXTERNAL in a graph, for the event's last record when the graph reaches
 * the node.
 */
export class ExternalWaitOperation extends Operation {
  readonly nodeType = CUgraphNodeType.CU_GRAPH_NODE_TYPE_WAIT_EVENT;
  private readonly event: CpuEvent;

  constructor(event: CpuEvent) {
    super();
    this.event = event;
  }

  step(): number {
    return this.event.complete ? STEP.done : STEP.blocked;
  }

  copy(): Operation {
    return new ExternalWaitOperation(this.event);
  }

  describe(): string {
    return `wait for event ${this.event.handle}`;
  }
}
