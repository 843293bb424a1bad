/**
 * Other devices, for a decoder: their handle tables, for operands that are theirs, and their
 * events, for waits.
 *
 * A wait for an event of another device first sets its stream aside here, until the other device
 * has announced the event. Two devices of NVIDIA's driver then use cuStreamWaitEvent. Where the
 * driver cannot wait for the other's events (a CPU device is on one side), the stream stays aside
 * until the other has reached the event.
 */
import type {
  AdoptedContext,
  CUcontext,
  CUevent,
  CUstream,
  Driver,
  SharedContext,
} from '../driver/driver.js';
import { DriverError } from '../driver/error.js';
import { CUresult } from '../ground/result.js';
import { PoisonedError, isSticky } from './failure.js';
import { CLOSED, HANDLE, MAX_HANDLES, WORD, viewTables } from './layout.js';
import type { SharedTables } from './layout.js';

const CU_EVENT_DISABLE_TIMING = 2;
/** After this long a stream that waits for a lost device counts as waiting for ever. */
const STUCK_MS = 1000;
/** Number of waits on the device that are kept before all of them are checked. */
const GUARDS = 32;

/** Another device as a decoder gets it, as plain data. */
export interface PeerStart {
  /** The number that commands use for it; it is never reused. */
  readonly index: number;
  readonly control: SharedArrayBuffer;
  /** The context of a device of the same provider, which copies can reach. */
  readonly context: SharedContext | undefined;
  /** Whether this driver can wait for the other's events. */
  readonly sharesEvents: boolean;
}

interface Peer {
  readonly tables: SharedTables;
  readonly adopted: AdoptedContext | undefined;
  readonly sharesEvents: boolean;
}

/**
 * A wait on the device: it is reached when the event `before` is, and over when the event `behind`
 * is.
 */
interface Guard {
  readonly peer: number;
  readonly before: CUevent;
  readonly behind: CUevent;
  stuckSince: number;
}

export class Peers {
  private readonly driver: Driver;
  private readonly known = new Map<number, Peer>();
  private guards: Guard[] = [];
  private readonly spare: CUevent[] = [];
  private own: CUcontext = 0;

  constructor(driver: Driver) {
    this.driver = driver;
  }

  add({ index, control, context, sharesEvents }: PeerStart): void {
    const adopted = context === undefined ? undefined : this.driver.adoptContext(context);
    this.known.set(index, { tables: viewTables(control), adopted, sharesEvents });
  }

  /** The other device was closed. Commands that still name it fail. */
  drop(index: number): void {
    const adopted = this.known.get(index)?.adopted;
    if (adopted !== undefined) this.driver.disownContext(adopted);
    this.known.delete(index);
  }

  /**
   * Whether a stream need not stay aside for an event of device `index`. It does not wait for a
   * device that has ended.
   */
  ready(index: number, event: number): boolean {
    const peer = this.alive(index);
    if (peer === undefined) return true;
    const status = Atomics.load(peer.tables.status, event);
    return (
      status >= (peer.sharesEvents ? HANDLE.announced : HANDLE.reached) ||
      couldNotBeCreated(peer, event)
    );
  }

  /** Makes the stream wait for an event that is {@link ready}. */
  wait(index: number, event: number, stream: CUstream): void {
    const peer = this.alive(index);
    if (peer === undefined) return;
    if (couldNotBeCreated(peer, event)) throw new PoisonedError(peer.tables.failure[event]!, index);
    if (!peer.sharesEvents) return;
    const { driver } = this;
    const guard: Guard = { peer: index, before: this.event(), behind: this.event(), stuckSince: 0 };
    driver.cuEventRecord(guard.before, stream);
    try {
      driver.cuStreamWaitEvent(stream, peer.tables.values[event]!, 0);
    } catch (error) {
      // The other device is being lost: the stream does not wait for it.
      if (!this.isOthersFault(stream, error)) throw error;
    }
    driver.cuEventRecord(guard.behind, stream);
    this.guards.push(guard);
    if (this.guards.length > GUARDS) this.forgetPast();
  }

  /**
   * Returns the address of an operand of another device. `value` is its entry in the table; the
   * contents of the memory do not matter where the command is only `recorded`.
   */
  address(value: number, recorded = false): number {
    const { index, handle } = split(value);
    const peer = this.alive(index);
    if (peer?.adopted === undefined) throw new PoisonedError(0, index);
    const poison = peer.tables.failure[handle]!;
    if (poison !== 0 && (!recorded || peer.tables.status[handle] === HANDLE.failed))
      throw new PoisonedError(poison, index);
    return peer.tables.values[handle]! + peer.adopted.addressOffset;
  }

  /** Returns the context of an operand: of this device where `value` is undefined. */
  context(value: number | undefined): CUcontext {
    if (value === undefined) return (this.own ||= this.driver.cuCtxGetCurrent());
    const { index } = split(value);
    const adopted = this.known.get(index)?.adopted;
    if (adopted === undefined) throw new PoisonedError(0, index);
    return adopted.context;
  }

  /**
   * Returns the number of a failure that makes memory of another device undefined, among that
   * device's failures.
   */
  nextFailure(value: number): { peer: number; id: number } | undefined {
    const { index } = split(value);
    const peer = this.known.get(index);
    if (peer === undefined) return undefined;
    return { peer: index, id: Atomics.add(peer.tables.control, WORD.failures, 1) + 1 };
  }

  poison(value: number, id: number): void {
    const { index, handle } = split(value);
    const peer = this.known.get(index);
    if (peer !== undefined) peer.tables.failure[handle] = id;
  }

  /**
   * Makes a call that involves another device's context. That device's fault, which the call may
   * return, is not this device's.
   */
  callWithPeer(stream: CUstream, call: () => void): void {
    try {
      call();
    } catch (error) {
      if (!this.isOthersFault(stream, error)) throw error;
      throw new DriverError(error.call, CUresult.CUDA_ERROR_INVALID_CONTEXT, {
        detail: `the other device met a fault: ${error.message}`,
      });
    }
  }

  /** Whether a stream waits on the device for a device that was lost, and so for ever. */
  stuck(now: number): boolean {
    const { driver } = this;
    for (const guard of this.guards) {
      const peer = this.known.get(guard.peer);
      if (peer === undefined) continue;
      const lost = Atomics.load(peer.tables.control, WORD.lost);
      if (lost === 0 || lost >= CLOSED) continue;
      const waits =
        driver.cuEventQuery(guard.before) === CUresult.CUDA_SUCCESS &&
        driver.cuEventQuery(guard.behind) === CUresult.CUDA_ERROR_NOT_READY;
      if (!waits) guard.stuckSince = 0;
      else if (guard.stuckSince === 0) guard.stuckSince = now;
      else if (now - guard.stuckSince > STUCK_MS) return true;
    }
    return false;
  }

  /**
   * Whether a call that involves another device returned a fault that this stream's own context
   * does not have.
   */
  private isOthersFault(stream: CUstream, error: unknown): error is DriverError {
    if (!(error instanceof DriverError) || !isSticky(error.result)) return false;
    const own = this.driver.cuStreamQuery(stream);
    return own === CUresult.CUDA_SUCCESS || own === CUresult.CUDA_ERROR_NOT_READY;
  }

  private alive(index: number): Peer | undefined {
    const peer = this.known.get(index);
    return peer === undefined || Atomics.load(peer.tables.control, WORD.lost) !== 0
      ? undefined
      : peer;
  }

  private event(): CUevent {
    return this.spare.pop() ?? this.driver.cuEventCreate(CU_EVENT_DISABLE_TIMING);
  }

  private forgetPast(): void {
    const past = this.guards.filter(
      (guard) => this.driver.cuEventQuery(guard.behind) === CUresult.CUDA_SUCCESS,
    );
    if (past.length === 0) return;
    this.guards = this.guards.filter((guard) => !past.includes(guard));
    for (const { before, behind } of past) this.spare.push(before, behind);
  }
}

/**
 * Whether the event could not be created. While it is being created an event has the status
 * `failed` for a moment, without a failure.
 */
function couldNotBeCreated({ tables }: Peer, event: number): boolean {
  return Atomics.load(tables.status, event) === HANDLE.failed && tables.failure[event] !== 0;
}

function split(value: number): { index: number; handle: number } {
  const handle = value % MAX_HANDLES;
  return { index: (value - handle) / MAX_HANDLES, handle };
}
