/**
 * Other devices as a decoder sees them: their handle tables, for operands that are theirs, and
 * their events, for waits.
 *
 * A wait for an event of another device first makes its stream wait here, set aside, until the
 * other has announced the event. Two devices of NVIDIA's driver go on from there by
 * cuStreamWaitEvent. Where the driver cannot wait for the other's events (a CPU device is on one
 * side), the stream stays aside until the other has reached the event.
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
/** After this long a stream that waits for a lost device is taken to wait for ever. */
const STUCK_MS = 1000;
/** Waits on the device that are kept in mind before all of them are looked through. */
const GUARDS = 32;

/** What a decoder is told of another device, as plain data. */
export interface PeerStart {
  /** The number that commands call it by; never given out again. */
  readonly index: number;
  readonly control: SharedArrayBuffer;
  /** Of a device of the same provider: copies reach it. */
  readonly context: SharedContext | undefined;
  /** Whether this driver can wait for the other's events. */
  readonly sharesEvents: boolean;
}

interface Peer {
  readonly tables: SharedTables;
  readonly adopted: AdoptedContext | undefined;
  readonly sharesEvents: boolean;
}

/** A wait on the device: reached when `before` is, over when `behind` is. */
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

  /** The other device was closed. What still names it finds it gone. */
  drop(index: number): void {
    const adopted = this.known.get(index)?.adopted;
    if (adopted !== undefined) this.driver.disownContext(adopted);
    this.known.delete(index);
  }

  /**
   * Whether a stream need not stay aside for an event of device `index`: nothing of a device that
   * ended is waited for.
   */
  ready(index: number, event: number): boolean {
    const peer = this.alive(index);
    if (peer === undefined) return true;
    const status = Atomics.load(peer.tables.status, event);
    return (
      status >= (peer.sharesEvents ? HANDLE.announced : HANDLE.reached) ||
      couldNotBeMade(peer, event)
    );
  }

  /** Makes the stream wait for an event that is {@link ready}. */
  wait(index: number, event: number, stream: CUstream): void {
    const peer = this.alive(index);
    if (peer === undefined) return;
    if (couldNotBeMade(peer, event)) throw new PoisonedError(peer.tables.failure[event]!, index);
    if (!peer.sharesEvents) return;
    const { driver } = this;
    const guard: Guard = { peer: index, before: this.event(), behind: this.event(), stuckSince: 0 };
    driver.cuEventRecord(guard.before, stream);
    try {
      driver.cuStreamWaitEvent(stream, peer.tables.values[event]!, 0);
    } catch (error) {
      // The other device is being lost: nothing of it is waited for.
      if (!this.isOthersFault(stream, error)) throw error;
    }
    driver.cuEventRecord(guard.behind, stream);
    this.guards.push(guard);
    if (this.guards.length > GUARDS) this.forgetPast();
  }

  /**
   * Address of an operand of another device. `value` is what stands in the table for it; what the
   * memory holds does not matter where the command is only `recorded`.
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

  /** Context of an operand: of this device where `value` is undefined. */
  context(value: number | undefined): CUcontext {
    if (value === undefined) return (this.own ||= this.driver.cuCtxGetCurrent());
    const { index } = split(value);
    const adopted = this.known.get(index)?.adopted;
    if (adopted === undefined) throw new PoisonedError(0, index);
    return adopted.context;
  }

  /**
   * A number for a failure that leaves memory of another device undefined, among that device's
   * failures.
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
   * Makes a call about another device's context. That one's fault, which the call may return, is
   * not this device's.
   */
  heedOwnFaults(stream: CUstream, call: () => void): void {
    try {
      call();
    } catch (error) {
      if (!this.isOthersFault(stream, error)) throw error;
      throw new DriverError(error.call, CUresult.CUDA_ERROR_INVALID_CONTEXT, {
        detail: `the other device met a fault: ${error.message}`,
      });
    }
  }

  /** Whether a stream waits on the device for one that was lost, and so for ever. */
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
   * Whether a call about another device returned a fault that this stream's own context does not
   * have.
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

/** For a moment each event stands as failed, without a failure: while it is made. */
function couldNotBeMade({ tables }: Peer, event: number): boolean {
  return Atomics.load(tables.status, event) === HANDLE.failed && tables.failure[event] !== 0;
}

function split(value: number): { index: number; handle: number } {
  const handle = value % MAX_HANDLES;
  return { index: (value - handle) / MAX_HANDLES, handle };
}
