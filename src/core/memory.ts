/**
 * Allocations: what buffers and their views stand on. A buffer that is forgotten without being
 * closed is freed when it is collected, in stream order like any other, and a warning says once
 * that it leaked.
 */
import { HANDLE } from '../runtime/layout.js';
import type { CaptureScope } from './capture.js';
import type { MemoryKind } from './channels.js';
import type { CoreDevice } from './device.js';
import type { ForeignMemory } from './foreign-memory.js';
import type { SharedDevice } from './open-devices.js';
import { Resource } from './resource.js';
import type { Stream } from './stream.js';

/** Most memory is used by its own device only. */
const NONE: ReadonlyMap<SharedDevice, ForeignMemory> = new Map();

export class Allocation extends Resource {
  readonly device: CoreDevice;
  readonly bytes: number;
  /** The stream that the memory was allocated on, and is freed on. */
  readonly stream: Stream;
  /** What it is called in errors. */
  readonly label: string | undefined;
  /** The operation that allocated it. */
  root = 0;
  /** Its number as an operation of the stream. */
  mark = 0;
  /** Whether the run of an operation owns it, which closes it: see `ops/ownership.ts`. */
  scoped = false;
  /** Whether a step of an operation has closed it, or would have if it were not recorded. */
  endedByStep = false;
  /**
   * Views that own it together, where its owner was not given on. The last one that is closed
   * closes it.
   */
  shares = 0;
  /**
   * Number of the run that has kept it, and of a graph that has it: what closes its buffers leaves
   * it to the graph.
   */
  keptBy = 0;
  keptByGraph = false;
  /** Collected without a warning: memory of operations that run once. */
  collectable = false;
  /**
   * The last look of {@link giveOn} at a list that has it, at a value that holds it, and at an
   * owner of it.
   */
  listedAt = 0;
  heldAt = 0;
  ownedAt = 0;
  /** What commands of other devices call it by. */
  foreign: ReadonlyMap<SharedDevice, ForeignMemory> = NONE;
  private readonly describe: () => string;
  /** Those outside of the library who have its address and have not given it back. */
  private borrowers = 0;
  private ended = false;

  constructor(
    device: CoreDevice,
    stream: Stream,
    handle: number,
    bytes: number,
    label: string | undefined,
    describe: () => string,
    elsewhere = false,
  ) {
    super(handle, elsewhere);
    this.device = device;
    this.stream = stream;
    this.bytes = bytes;
    this.label = label;
    this.describe = describe;
  }

  /** What {@link MemoryMessage.kind} calls it. */
  get kind(): MemoryKind {
    return 'device';
  }

  /** Whether it comes from a pool, which the driver's stream memory operations do not take. */
  get pooled(): boolean {
    return true;
  }

  /** Whether it begins at a multiple of 256 bytes, as all that the driver allocates. */
  get aligned(): boolean {
    return true;
  }

  /** Whether it must not be written. */
  get isReadOnly(): boolean {
    return false;
  }

  /** Whether it was taken over, so that the same bytes may have another name here. */
  get isAdopted(): boolean {
    return false;
  }

  /** Whether something other than its buffers keeps it. */
  get isKept(): boolean {
    return false;
  }

  /** Whether the device has allocated it; undefined where it has not come to that. */
  get made(): boolean | undefined {
    const { runtime } = this.device;
    const { status, failure } = runtime.shared;
    const now = Atomics.load(status, this.handle);
    const poisoned = Atomics.load(failure, this.handle) !== 0;
    // Given back, the handle may be another's by now: all it says is that the allocation was
    // carried out.
    if (this.disposed)
      return now === HANDLE.pending || (now === HANDLE.failed && !poisoned)
        ? undefined
        : runtime.unclaimedFailureOf(this.root) === undefined;
    if (now === HANDLE.live) return true;
    // Before it has failed for good it is tried again. What fails with the operation around it is
    // not tried at all.
    return poisoned ? false : undefined;
  }

  /** Frees the memory behind everything that uses it. */
  dispose(): void {
    if (this.disposed) return;
    this.disposed = true;
    this.device.freed(this);
    this.forgetForeign();
    if (
      this.foreign === NONE &&
      this.scope === undefined &&
      scopeOf(this.stream) === undefined &&
      scopeOf(this.device.stream) === undefined
    ) {
      this.finish();
      return;
    }
    // Within a capture the free would be recorded, or refused.
    const captured = [this, ...this.foreign.values()].map(({ scope }) => scope);
    const scope =
      captured.find((each) => each?.ended === false) ??
      scopeOf(this.stream) ??
      scopeOf(this.device.stream);
    const scopes = scope === undefined ? captured : [scope, ...captured];
    if (!scopes.some((each) => each?.defer(() => this.finish()) === true)) this.finish();
  }

  /**
   * Keeps the memory until the function that is returned is called, disposed of or not: somebody
   * else has its address. The function does something once; where that is to free the memory, it is
   * freed on the stream that it is given, if any.
   */
  borrow(): (on?: Stream) => void {
    this.borrowers++;
    let given = false;
    return (on) => {
      if (given) return;
      given = true;
      this.borrowers--;
      if (this.borrowers === 0 && this.ended && !this.device.isClosed) this.end(on);
    };
  }

  /**
   * Whether its buffers are closed, and only one borrower has it: no graph, no other device, nobody
   * outside of the library.
   */
  get isLeftToBorrower(): boolean {
    return (
      this.ended &&
      this.borrowers === 1 &&
      this.foreign === NONE &&
      this.scope === undefined &&
      !this.isUsedByGraphs
    );
  }

  /**
   * The same memory for somebody new, in the order of that stream. The borrower, who has it to
   * himself, forgets this one.
   */
  again(stream: Stream, describe: () => string): Allocation {
    const memory = new Allocation(
      this.device,
      stream,
      this.handle,
      this.bytes,
      undefined,
      describe,
    );
    memory.takeUses(this);
    memory.root = this.root;
    return memory;
  }

  /** One of the views that own it together was closed; returns whether it was the last. */
  closeShare(): boolean {
    this.shares--;
    return this.shares <= 0;
  }

  private finish(): void {
    this.ended = true;
    if (this.borrowers === 0) this.end();
  }

  /**
   * The handles that it has on other devices are theirs again once nothing there names them any
   * more.
   */
  private forgetForeign(): void {
    if (this.foreign.size === 0) return;
    for (const foreign of this.foreign.values()) foreign.disposed = true;
    this.settled().then(
      () => {
        for (const [{ runtime }, { handle }] of this.foreign) {
          if (runtime.lost !== undefined) continue;
          runtime.shared.failure[handle] = 0;
          runtime.handles.drop(handle);
        }
      },
      () => undefined,
    );
  }

  /** Queues the freeing, on that stream or on its own. */
  protected end(on = this.stream): void {
    const { device } = this;
    if (device.runtime.lost !== undefined) return;
    const stream = on.isClosed || on.capturing !== undefined ? device.stream : on;
    // As a writer: behind the last writer and every reader.
    this.orderEnd(stream);
    if (stream !== this.stream) stream.waitFor(this.stream, this.mark);
    stream.free(this.handle);
  }

  override toString(): string {
    return this.describe();
  }
}

/** The capture that a stream is part of, or kept out of. */
function scopeOf({ capturing }: Stream): CaptureScope | undefined {
  return capturing?.outside === true ? capturing.scope : capturing;
}

/**
 * Bytes from where `a` begins to where `b` does, of one memory or of one that has two names here;
 * undefined where they have no bytes in common.
 */
export function bytesBetween(a: Allocation, b: Allocation): number | undefined {
  if (a === b) return 0;
  if (!(a.isAdopted || b.isAdopted) || a.device.runtime !== b.device.runtime) return undefined;
  const { values } = a.device.runtime.shared;
  const [from, to] = [values[a.handle]!, values[b.handle]!];
  // Of what is not there yet nobody has the address.
  if (from === 0 || to === 0) return undefined;
  return from < to + b.bytes && to < from + a.bytes ? to - from : undefined;
}

/** Frees what was forgotten. The allocation must not refer to the object that is watched. */
export const leaks = new FinalizationRegistry<Allocation>(forgotten);

function forgotten(allocation: Allocation): void {
  if (allocation.disposed || allocation.isKept || allocation.device.isClosed) return;
  if (
    allocation.leftToGraphs(() => {
      forgotten(allocation);
    })
  )
    return;
  if (!allocation.collectable) allocation.device.leaked(allocation.toString());
  allocation.dispose();
}
