/**
 * Stream capture: queued work becomes nodes of a graph. An event recorded in a capturing stream
 * carries that stream's frontier to the stream that waits for it, which thereby joins the capture;
 * before the capture ends, the stream that it began on must wait for all that joined.
 *
 * Mistakes invalidate the capture, as in the driver: nothing more can be captured, and ending it
 * fails.
 */
import { CUstreamCaptureMode } from '../../flags.js';
import { CUresult } from '../../../ground/result.js';
import { fail } from '../failure.js';
import type { CpuEvent } from './event.js';
import { ExternalWaitOperation, RecordOperation, WaitOperation } from './event.js';
import type { Operation } from './operation.js';
import type { Stream } from './stream.js';
import { Graph } from './graph.js';
import type { GraphNode } from './graph.js';
import type { StreamContext, StreamMachine } from './stream-context.js';

export class Capture {
  readonly id: number;
  readonly mode: number;
  readonly origin: Stream;
  readonly graph: Graph;
  readonly members = new Set<Stream>();
  /** Whether it fills a graph that existed before. */
  readonly fills: boolean;
  invalid = false;
  ended = false;

  constructor(
    id: number,
    mode: number,
    origin: Stream,
    into?: { graph: Graph; dependencies: readonly GraphNode[] },
  ) {
    this.id = id;
    this.mode = mode;
    this.origin = origin;
    this.graph = into?.graph ?? new Graph(origin.context);
    this.fills = into !== undefined;
    this.join(origin, into?.dependencies ?? []);
    origin.context.captures.add(this);
  }

  join(stream: Stream, frontier: readonly GraphNode[]): void {
    this.members.add(stream);
    stream.capture = this;
    stream.frontier = [...frontier];
  }

  invalidate(): void {
    this.invalid = true;
  }

  /** Ends the capture of its streams. */
  end(): void {
    this.ended = true;
    this.origin.context.captures.delete(this);
    for (const stream of this.members) {
      stream.capture = undefined;
      stream.frontier = [];
    }
    this.members.clear();
  }

  /** Returns a stream with work that the origin does not wait for. */
  unjoined(): Stream | undefined {
    const joined = new Set<GraphNode>();
    const visit = [...this.origin.frontier];
    for (let node = visit.pop(); node !== undefined; node = visit.pop()) {
      if (joined.has(node)) continue;
      joined.add(node);
      visit.push(...node.dependencies);
    }
    for (const stream of this.members)
      if (stream.frontier.some((node) => !joined.has(node))) return stream;
    return undefined;
  }
}

let captures = 0;

export function beginCapture(
  call: string,
  stream: Stream,
  mode: number,
  into?: { graph: Graph; dependencies: readonly GraphNode[] },
): void {
  if (stream === stream.context.legacy) {
    fail(
      call,
      CUresult.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
      'the legacy default stream cannot be captured',
    );
  }
  if (stream.capture !== undefined) {
    fail(
      call,
      CUresult.CUDA_ERROR_ILLEGAL_STATE,
      `stream ${stream.handle} is being captured already`,
    );
  }
  new Capture(++captures, mode, stream, into);
}

export function endCapture(call: string, stream: Stream): Graph {
  const { capture } = stream;
  if (capture === undefined)
    fail(call, CUresult.CUDA_ERROR_ILLEGAL_STATE, `stream ${stream.handle} is not being captured`);
  if (capture.origin !== stream) {
    capture.invalidate();
    fail(
      call,
      CUresult.CUDA_ERROR_STREAM_CAPTURE_UNMATCHED,
      `the capture began on stream ${capture.origin.handle}`,
    );
  }
  const unjoined = capture.invalid ? undefined : capture.unjoined();
  capture.end();
  const { graph } = capture;
  // A body has its memory from the graph around it, whose capture continues.
  if (!graph.isBody)
    for (const { allocation, freed } of graph.memory.allocations)
      if (!freed) allocation.memory.retire(allocation);
  if (capture.invalid) {
    if (!capture.fills) graph.destroy();
    fail(
      call,
      CUresult.CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
      'a call during the capture was not allowed',
    );
  }
  if (unjoined !== undefined) {
    if (!capture.fills) graph.destroy();
    fail(
      call,
      CUresult.CUDA_ERROR_STREAM_CAPTURE_UNJOINED,
      `stream ${unjoined.handle} joined the capture and stream ${stream.handle} never waited ` +
        'for its last work',
    );
  }
  graph.publish();
  return graph;
}

/**
 * Queues an operation, or makes it a node where the stream is being captured. Every call that
 * queues work ends here.
 */
export function submit(call: string, stream: Stream, operation: Operation): void {
  const { capture, context } = stream;
  if (capture === undefined) {
    if (stream === context.legacy && context.captures.size > 0) checkImplicit(call, context);
    context.enqueue(stream, operation);
    return;
  }
  checkValid(call, capture);
  stream.frontier = [capture.graph.add(operation, stream.frontier)];
}

function checkValid(call: string, capture: Capture): void {
  if (capture.invalid)
    fail(
      call,
      CUresult.CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
      'the capture was invalidated by an earlier call',
    );
}

/**
 * Work in the legacy stream would wait for blocking streams, which is not possible while one is
 * captured.
 */
function checkImplicit(call: string, context: StreamContext): void {
  for (const capture of context.captures) {
    for (const member of capture.members) {
      if (!member.blocking) continue;
      capture.invalidate();
      fail(
        call,
        CUresult.CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
        `the legacy default stream would wait for stream ${member.handle}, which is being ` +
          'captured; create it with CU_STREAM_NON_BLOCKING',
      );
    }
  }
}

export function recordEvent(call: string, event: CpuEvent, stream: Stream): void {
  const { capture, context } = stream;
  if (capture !== undefined) {
    checkValid(call, capture);
    event.captured = { capture, frontier: [...stream.frontier] };
    return;
  }
  if (stream === context.legacy && context.captures.size > 0) checkImplicit(call, context);
  event.captured = undefined;
  const operation = RecordOperation.take(event, stream);
  const sequence = context.enqueue(stream, operation);
  operation.sequence = sequence;
  event.stream = stream;
  event.sequence = sequence;
}

export function waitEvent(call: string, stream: Stream, event: CpuEvent, external: boolean): void {
  const { capture } = stream;
  const { captured } = event;
  if (captured !== undefined && captured.capture.ended) {
    if (capture !== undefined) capture.invalidate();
    fail(
      call,
      capture === undefined
        ? CUresult.CUDA_ERROR_CAPTURED_EVENT
        : CUresult.CUDA_ERROR_STREAM_CAPTURE_ISOLATION,
      `event ${event.handle} was recorded in a capture that has ended`,
    );
  }
  if (capture === undefined) {
    if (captured === undefined) {
      const { checker } = stream.context;
      // A wait for work that is over still orders the accesses.
      if (!event.complete || (checker !== undefined && event.stream !== undefined))
        stream.context.enqueue(stream, WaitOperation.take(event.stream!, event.sequence));
      return;
    }
    checkValid(call, captured.capture);
    if (stream === stream.context.legacy) {
      captured.capture.invalidate();
      fail(
        call,
        CUresult.CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
        'the legacy default stream cannot join a capture',
      );
    }
    captured.capture.join(stream, captured.frontier);
    return;
  }
  checkValid(call, capture);
  if (external) {
    stream.frontier = [capture.graph.add(new ExternalWaitOperation(event), stream.frontier)];
    return;
  }
  if (captured === undefined) {
    if (event.stream === undefined) return;
    capture.invalidate();
    fail(
      call,
      CUresult.CUDA_ERROR_STREAM_CAPTURE_ISOLATION,
      `event ${event.handle} was recorded outside the capture; CU_EVENT_WAIT_EXTERNAL waits ` +
        'for it from inside the graph',
    );
  }
  if (captured.capture !== capture) {
    captured.capture.invalidate();
    capture.invalidate();
    fail(call, CUresult.CUDA_ERROR_STREAM_CAPTURE_MERGE, 'the wait would merge two captures');
  }
  stream.frontier = [...new Set([...stream.frontier, ...captured.frontier])];
}

/** Refuses a call that reads the stream's progress, since a capture has none. */
export function forbidInCapture(call: string, stream: Stream): void {
  if (stream.capture !== undefined) {
    stream.capture.invalidate();
    fail(
      call,
      CUresult.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
      `stream ${stream.handle} is being captured`,
    );
  }
  if (stream === stream.context.legacy && stream.context.captures.size > 0)
    checkImplicit(call, stream.context);
}

/** Refuses a call about the whole context. */
export function forbidDuringCaptures(call: string, context: StreamContext): void {
  if (context.captures.size === 0) return;
  for (const capture of context.captures) capture.invalidate();
  fail(
    call,
    CUresult.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
    'a stream of the context is being captured',
  );
}

/**
 * Refuses a call that the driver considers potentially unsafe: it is allowed during captures in
 * relaxed mode only.
 */
export function forbidUnlessRelaxed(call: string, machine: StreamMachine): void {
  for (const { context } of machine.devices) {
    if (context === undefined || context.captures.size === 0) continue;
    for (const capture of context.captures) {
      if (capture.mode === CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED) continue;
      capture.invalidate();
      fail(
        call,
        CUresult.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
        `stream ${capture.origin.handle} is being captured; begin the capture with ` +
          'CU_STREAM_CAPTURE_MODE_RELAXED to allow this call',
      );
    }
  }
}
