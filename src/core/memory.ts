/**
 * Allocations: the memory of buffers and their views. A buffer that is collected without being
 * closed is freed in stream order, and a process warning reports the first such leak.
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
  /** The label that errors show. */
  readonly label: string | undefined;
  /** The number of the operation that allocated it. */
  root = 0;
  /** Its number as an operation of the stream. */
  mark = 0;
  /** Whether the run of an operation owns the memory and closes it: see `ops/ownership.ts`. */
  scoped = false;
  /**
   * Whether a step of an operation has closed the memory, or would have if it were not recorded.
   */
  endedByStep = false;
  /**
   * The number of views that own the memory together, where the result held no owner. Closing the
   * last one closes the memory.
   */
  shares = 0;
  /**
   * The number of the run that has kept the memory, and whether a graph owns it: closing its
   * buffers leaves it to the graph.
   */
  keptBy = 0;
  keptByGraph = false;
  /**
   * Whether it is freed without a warning when it is collected: memory of operations that run once.
   */
  collectable = false;
  /**
   * The numbers of the last passes of {@link giveOn} that met the memory in a list, in a value that
   * holds it, and in an owner of it.
   */
  listedAt = 0;
  heldAt = 0;
  ownedAt = 0;
  /** Its handles in commands of other devices. */
  foreign: ReadonlyMap<SharedDevice, ForeignMemory> = NONE;
  private readonly describe: () => string;
  /**
   * The number of borrowers outside of the library that have its address and have not returned it.
   */
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

  /** The {@link MemoryMessage.kind} of the memory. */
  get kind(): MemoryKind {
    return 'device';
  }

  /** Whether it comes from a pool. The driver's stream memory operations refuse such memory. */
  get pooled(): boolean {
    return true;
  }

  /** Whether it begins at a multiple of 256 bytes, as all memory that the driver allocates. */
  get aligned(): boolean {
    return true;
  }

  /** Whether it must not be written. */
  get isReadOnly(): boolean {
    return false;
  }

  /** Whether it was adopted, so that the same bytes may have another allocation here. */
  get isAdopted(): boolean {
    return false;
  }

  /** Whether an object other than its buffers keeps it. */
  get isKept(): boolean {
    return false;
  }

  /**
   * Whether the device has allocated it; undefined where the device has not reached the allocation.
   */
  get made(): boolean | undefined {
    const { runtime } = this.device;
    const { status, failure } = runtime.shared;
    const now = Atomics.load(status, this.handle);
    const poisoned = Atomics.load(failure, this.handle) !== 0;
    // After the free the handle may belong to another allocation: its state only shows that the
    // allocation was carried out.
    if (this.disposed)
      return now === HANDLE.pending || (now === HANDLE.failed && !poisoned)
        ? undefined
        : runtime.unclaimedFailureOf(this.root) === undefined;
    if (now === HANDLE.live) return true;
    // An allocation that finds too little memory is tried again before it fails. One that fails
    // with the operation around it is not tried at all.
    return poisoned ? false : undefined;
  }

  /** Frees the memory after all work that uses it. */
  dispose(): void {
    if (this.disposed) return;
    this.disposed = true;
    this.device.objects.freed(this);
    this.releaseForeign();
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
   * Keeps the memory until the returned function is called, closed or not: code outside of the
   * library has its address. The function acts once. Where it frees the memory, the free is queued
   * on the stream that it is passed, if any.
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
   * Whether its buffers are closed and one borrower alone has it: no graph, no other device, and no
   * other borrower.
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
   * A new allocation of the same memory, in the order of that stream. The caller is the only
   * borrower, and drops this allocation.
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

  /**
   * Records that one of the views that own the memory together was closed; returns whether it was
   * the last.
   */
  closeShare(): boolean {
    this.shares--;
    return this.shares <= 0;
  }

  private finish(): void {
    this.ended = true;
    if (this.borrowers === 0) this.end();
  }

  /** Releases its handles on other devices once no work there names them. */
  private releaseForeign(): void {
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

  /** Queues the free, on that stream or on its own. */
  protected end(on = this.stream): void {
    const { device } = this;
    if (device.runtime.lost !== undefined) return;
    const stream = on.isClosed || on.capturing !== undefined ? device.stream : on;
    // The free is ordered as a write: after the last writer and every reader.
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
 * Bytes from the beginning of `a` to the beginning of `b`, which are one memory, or have two
 * allocations here for the same bytes; undefined where they have no bytes in common.
 */
export function bytesBetween(a: Allocation, b: Allocation): number | undefined {
  if (a === b) return 0;
  if (!(a.isAdopted || b.isAdopted) || a.device.runtime !== b.device.runtime) return undefined;
  const { values } = a.device.runtime.shared;
  const [from, to] = [values[a.handle]!, values[b.handle]!];
  // Memory that is not allocated yet has no address that other code could have.
  if (from === 0 || to === 0) return undefined;
  return from < to + b.bytes && to < from + a.bytes ? to - from : undefined;
}

/**
 * Frees buffers that were collected without being closed. The allocation must not refer to the
 * registered object.
 */
export const leaks = new FinalizationRegistry<Allocation>(collected);

function collected(allocation: Allocation): void {
  if (allocation.disposed || allocation.isKept || allocation.device.isClosed) return;
  if (
    allocation.freeAfterGraphs(() => {
      collected(allocation);
    })
  )
    return;
  if (!allocation.collectable) allocation.device.leaked(allocation.toString());
  allocation.dispose();
}
