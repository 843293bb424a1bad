/**
 * The state of a capture between its begin and its end: the streams that are part of it, the memory
 * that the graph reads and writes, and the graph's other parts.
 *
 * Tracking forks here. Work of a captured stream is ordered against the other captured streams
 * only, with events of the capture's own. Conflicts with work outside become waits ahead of each
 * launch of the graph.
 */
import { ACCESS_READ, ACCESS_WRITE, OP } from '../runtime/commands.js';
import { CudaError } from '../ground/errors.js';
import type { NodeMemory } from './node-memory.js';
import type { Resource } from './resource.js';
import type { Stream } from './stream.js';
import { createEvent, waitForEvent } from './driver-events.js';

const CU_EVENT_DISABLE_TIMING = 2;

/**
 * A part that a graph holds by its number in the driver, and cannot be launched without: a module,
 * a texture, a surface.
 */
export interface GraphPart {
  readonly isClosed: boolean;
  /**
   * A launch of the graph has been queued. A part that does not wait for the memory it uses must
   * not end before that launch has.
   */
  launched?(stream: Stream, mark: number): void;
  toString(): string;
}

/** Captures so far, and bodies of conditional nodes. */
let captures = 0;

/** The state of a stream that has not joined the capture. */
export class OutsideCapture {
  readonly outside = true;
  readonly scope: CaptureScope;
  /**
   * The state before: another capture that the stream was kept out of, or the capture around the
   * body of a conditional node, of which the stream is part.
   */
  readonly before: OutsideCapture | CaptureScope | undefined;
  private readonly stream: Stream;

  constructor(
    scope: CaptureScope,
    stream: Stream,
    before: OutsideCapture | CaptureScope | undefined,
  ) {
    this.scope = scope;
    this.stream = stream;
    this.before = before;
  }

  /** The root of work that is queued on the stream: there is none. */
  get root(): never {
    throw this.refusal();
  }

  order(): never {
    throw this.refusal();
  }

  used(): never {
    throw this.refusal();
  }

  /** Whether the stream is part of the capture around a body, so that it cannot join the body's. */
  get isAround(): boolean {
    return this.before !== undefined && (this.before.outside ? this.before.isAround : true);
  }

  refusal(): CudaError {
    const {
      stream,
      scope: { origin },
    } = this;
    if (this.isAround) {
      return new CudaError(
        'ERR_CUDA_CAPTURE',
        `${stream.title} is part of the capture around this body of a conditional node, and ` +
          'would be recorded outside of it. ' +
          `Queue on the stream that the body is given, ${origin.title}, or on one that has ` +
          'not joined the capture.',
      );
    }
    return new CudaError(
      'ERR_CUDA_CAPTURE',
      `${stream.title} has not joined the capture of ${origin.title}: work queued on it ` +
        'would run at once and would not be recorded. ' +
        'Make it join with stream.wait(…) for a stream of the capture, or queue this before ' +
        "or after the capture. To let it run at once, pass { unjoined: 'run' } to capture().",
    );
  }
}

/**
 * Calls `queue`, which queues work on the stream, although a capture refuses it: the work runs at
 * once.
 */
export function queueOutsideCapture<T>(stream: Stream, queue: () => T): T {
  const { capturing } = stream;
  if (capturing?.outside !== true) return queue();
  stream.capturing = undefined;
  try {
    return queue();
  } finally {
    stream.capturing = capturing;
  }
}

export class CaptureScope {
  readonly outside = false;
  /** The number of the capture in the runtime thread, which notifies its end by it. */
  readonly number: number;
  readonly origin: Stream;
  /** The operation of every captured command: the capture fails as a whole. */
  readonly root: number;
  /**
   * All memory that the graph uses, with the access. ACCESS_WHOLE where the graph begins by writing
   * all of it.
   */
  readonly uses = new Map<Resource, number>();
  /** The modules, textures and surfaces of its kernels. */
  readonly parts = new Set<GraphPart>();
  /** Events made for the capture; destroyed with the graph. */
  readonly events: number[];
  /**
   * Handles of the conditions of conditional nodes, which are released when the graph is recorded.
   */
  readonly conditions: number[];
  /** Memory that nodes of the graph allocate and do not free. */
  readonly nodeMemory = new Set<NodeMemory>();
  /** Whether allocations on its streams become nodes. */
  readonly allocates: boolean;
  ended = false;
  /** Whether a kernel that prints was captured. */
  prints = false;
  /**
   * Frees of memory that was closed during the capture. They are made once the graph is made, or
   * has failed.
   */
  private deferred: (() => void)[] | undefined = [];
  private readonly streams = new Set<Stream>();
  /** The launch counts of the streams before they joined: recorded launches do not count. */
  private readonly launched = new Map<Stream, { launches: number; graphLaunches: number }>();
  /** The capture around this one, where that one keeps streams out. */
  private readonly before: CaptureScope | undefined;
  private readonly last = new Map<Resource, { writer: Stream | undefined; readers: Set<Stream> }>();

  /** The capture with the conditional node whose body this one records. */
  private readonly around: CaptureScope | undefined;

  /** With `keepOut`, work on streams that have not joined is refused. */
  constructor(
    origin: Stream,
    root: number,
    keepOut: boolean,
    allocates: boolean,
    around?: CaptureScope,
  ) {
    // 0 means no capture, and is left out.
    this.number = captures = (captures % 0x7fffffff) + 1;
    this.allocates = allocates;
    this.origin = origin;
    this.root = root;
    this.around = around;
    this.events = around?.events ?? [];
    this.conditions = around?.conditions ?? [];
    this.before = origin.shared.capture;
    if (around !== undefined) {
      for (const stream of around.streams)
        if (stream !== origin) stream.capturing = new OutsideCapture(this, stream, around);
    }
    if (keepOut) {
      for (const stream of origin.shared.streams()) this.keepOut(stream);
      origin.shared.capture = this;
    }
    if (around === undefined) this.join(origin);
    else {
      this.streams.add(origin);
      origin.capturing = this;
      this.watchModules();
    }
  }

  /** Whether the graph writes it, or part of it. */
  writes(resource: Resource): boolean {
    return ((this.uses.get(resource) ?? 0) & ACCESS_WRITE) !== 0;
  }

  /**
   * The capture of a body of a conditional node on `stream`, which is part of this capture. It ends
   * with {@link end} and {@link release}.
   */
  within(stream: Stream): CaptureScope {
    return new CaptureScope(
      stream,
      this.root,
      this.origin.shared.capture !== undefined,
      false,
      this,
    );
  }

  /** Whether this is the capture `scope`, or that of a body in it. */
  isWithin(scope: CaptureScope): boolean {
    return this === scope || this.around?.isWithin(scope) === true;
  }

  /** Whether this records the body of a conditional node. */
  get isBody(): boolean {
    return this.around !== undefined;
  }

  /**
   * Makes `stream` wait for all that is recorded: the memory that a body uses is not known before
   * the body is recorded.
   */
  gather(stream: Stream): void {
    for (const other of this.streams) if (other !== stream) this.depend(stream, other);
  }

  /**
   * Refuses work that is queued on `stream` from here on, unless the stream is part of a capture.
   */
  keepOut(stream: Stream): void {
    const { capturing } = stream;
    if (capturing === undefined || (capturing.outside && capturing.scope !== this))
      stream.capturing = new OutsideCapture(this, stream, capturing);
  }

  /** Makes `stream` part of the capture. The stream waits for one of the capture's events next. */
  join(stream: Stream): void {
    if (this.ended) {
      throw new CudaError(
        'ERR_CUDA_CAPTURE',
        'the event was recorded inside a capture that has ended: it is part of the graph; ' +
          'record another',
      );
    }
    const { capturing } = stream;
    if (capturing?.outside === true && capturing.isAround) throw capturing.refusal();
    if (capturing !== undefined && !capturing.outside && capturing !== this) {
      throw new CudaError(
        'ERR_CUDA_CAPTURE',
        'a stream cannot be part of two captures: end one before the other begins',
      );
    }
    this.watchModules();
    if (!this.streams.has(stream))
      this.launched.set(stream, { launches: stream.launches, graphLaunches: stream.graphLaunches });
    this.streams.add(stream);
    stream.capturing = this;
    if (stream !== this.origin) this.putJoin(stream, 1);
  }

  /**
   * Modules look up the launching stream only where it differs from the last one. From here on they
   * look it up.
   */
  private watchModules(): void {
    for (const module of this.origin.shared.modules) module.resetLastUse();
  }

  order(stream: Stream, resource: Resource, access: number): void {
    resource.checkScope(this, access);
    const last = this.last.get(resource.identity);
    if (last === undefined) return;
    if (last.writer !== undefined && last.writer !== stream) this.depend(stream, last.writer);
    if ((access & ACCESS_WRITE) === 0) return;
    for (const reader of last.readers) if (reader !== stream) this.depend(stream, reader);
  }

  used(stream: Stream, resource: Resource, access: number): void {
    if (!resource.isMemory) return;
    const before = this.uses.get(resource);
    this.uses.set(
      resource,
      before === undefined ? access : before | (access & (ACCESS_READ | ACCESS_WRITE)),
    );
    resource.scope = this;
    let last = this.last.get(resource.identity);
    if (last === undefined) {
      last = { writer: undefined, readers: new Set() };
      this.last.set(resource.identity, last);
    }
    if ((access & ACCESS_WRITE) !== 0) {
      last.writer = stream;
      last.readers.clear();
    } else last.readers.add(stream);
  }

  /** Makes `stream` wait for what `on` has captured so far. */
  depend(stream: Stream, on: Stream): void {
    const { runtime } = stream;
    const event = createEvent(runtime, CU_EVENT_DISABLE_TIMING);
    this.events.push(event);
    const body = on.begin(OP.record, 5, this.root);
    runtime.ring.memory[body] = event;
    on.commit();
    waitForEvent(stream, event);
  }

  /** Joins every stream back into the first one, as the driver requires. */
  end(): void {
    for (const stream of this.streams) if (stream !== this.origin) this.depend(this.origin, stream);
  }

  /** Puts off a free until the capture has ended. Returns false where the graph is made already. */
  defer(free: () => void): boolean {
    if (this.around !== undefined) return this.around.defer(free);
    if (this.deferred === undefined) return false;
    this.deferred.push(free);
    return true;
  }

  /** The graph is made, or has failed. */
  settle(): void {
    const { deferred } = this;
    this.deferred = undefined;
    for (const free of deferred ?? []) free();
  }

  release(): void {
    this.ended = true;
    const { shared } = this.origin;
    if (shared.capture === this) shared.capture = this.before;
    for (const stream of this.streams) {
      if (stream === this.origin && this.around !== undefined) {
        stream.capturing = this.around;
        continue;
      }
      stream.capturing = undefined;
      const before = this.launched.get(stream)!;
      stream.others +=
        stream.launches - before.launches + stream.graphLaunches - before.graphLaunches;
      stream.graphLaunches = before.graphLaunches;
      if (stream !== this.origin) this.putJoin(stream, 0);
      this.before?.keepOut(stream);
    }
    for (const stream of shared.streams()) {
      const { capturing } = stream;
      if (capturing?.outside === true && capturing.scope === this)
        stream.capturing = capturing.before;
    }
    this.around?.absorb(this);
  }

  /**
   * A conditional node uses what its bodies use. A body may not run, so no memory counts as written
   * whole.
   */
  private absorb(body: CaptureScope): void {
    for (const [resource, access] of body.uses)
      this.used(body.origin, resource, access & (ACCESS_READ | ACCESS_WRITE));
    for (const part of body.parts) this.parts.add(part);
    this.prints ||= body.prints;
  }

  /** Recorded launches do not count as running, and leave nothing undefined when they fail. */
  private putJoin(stream: Stream, joined: number): void {
    const { ring } = stream.runtime;
    const body = ring.begin(OP.captureJoin, 0, 6, 0, stream.slot.index, 0);
    ring.memory[body] = joined;
    ring.memory[body + 1] = this.number;
    ring.commit();
  }
}
