/**
 * The decoder: it reads commands from the ring and makes driver calls of them. It runs on the
 * runtime thread, or, while that thread sleeps, on the JavaScript thread itself (it then *visits*).
 * Both instances work on the same shared tables. The only state of an instance is that of parked
 * streams, and the JavaScript thread uses its decoder only while there are none.
 *
 * It never blocks. A stream that is held, that waits for an event whose record is set aside, or
 * that has too many unfinished launches is parked: its commands are set aside, in order, until it
 * may continue (`decoder/parking.ts`). Other streams are not affected.
 */
import type { Driver } from '../driver/driver.js';
import { Announcements } from './announcements.js';
import {
  EXECUTE,
  FLAG_BYPASS,
  FLAG_SHORT,
  OP,
  RECORD_BODY,
  RECORD_EVENT,
  RECORD_ROOT,
  RECORD_STREAM,
  TRAIT,
  TRAITS,
  commandOf,
  int64,
  operandsOf,
  writtenHandles,
} from './commands.js';
import type { Execution } from './commands/command.js';
import { Conditionals } from './conditionals.js';
import { TrailingEvent } from './decoder/trailing-event.js';
import { Failures } from './decoder/failures.js';
import { Fences } from './decoder/fences.js';
import type { DecoderHost } from './decoder/host.js';
import { LaunchLimit, MARKERS_OUTSTANDING } from './decoder/launch-limit.js';
import { Launches, isLine } from './decoder/launches.js';
import { Operands } from './decoder/operands.js';
import { TensorMaps } from './decoder/tensor-maps.js';
import { Parking } from './decoder/parking.js';
import { SetAside } from './decoder/set-aside.js';
import { Shortages } from './decoder/shortages.js';
import type { Wait } from './decoder/wait.js';
import { UnmadeStreamError } from './failure.js';
import { HANDLE, RING_WORDS, WORD, isCapturing, unmadeBy } from './layout.js';
import type { SharedState } from './layout.js';
import { LibraryCalls } from './library-calls.js';
import type { DecoderMessage } from './messages.js';
import { Peers } from './peers.js';
import { PrintedText } from './printed-text.js';
import { peek, release } from './shared-words.js';

const RING_MASK = RING_WORDS - 1;
/**
 * Commands, or batches of launches, that are decoded in one run before the thread does anything
 * else.
 */
const DRAIN_LIMIT = 64;
/** Words that are decoded before the new tail is published to the JavaScript thread. */
const TAIL_WORDS = 256;
/** Traits of commands that may have to wait, or take places in the queue of launches. */
const MAY_WAIT = TRAIT.waits | TRAIT.launch | TRAIT.launches;

export class Decoder implements Execution {
  readonly driver: Driver;
  readonly shared: SharedState;
  /** Other devices, whose events and memory commands may use. */
  readonly peers: Peers;
  /** Events of this device that other devices wait for. */
  readonly announcements: Announcements;
  /** Functions of NVIDIA's libraries that commands may call. */
  readonly libraries: LibraryCalls;
  /** Conditional nodes of graphs that are being captured. */
  readonly conditionals: Conditionals;
  /** Text that kernels of a GPU print. The CPU device writes it itself. */
  readonly text: PrintedText | undefined = undefined;
  readonly operands: Operands;
  /** Tensor maps among the parameters of launches. */
  readonly maps: TensorMaps;
  readonly limit: LaunchLimit;
  readonly fences: Fences;
  readonly failures: Failures;
  readonly aside: SetAside;
  readonly shortages: Shortages;
  readonly parking: Parking;
  readonly launches: Launches;
  private readonly trailing: TrailingEvent;
  private readonly host: DecoderHost;
  /**
   * Whether this is the JavaScript thread's decoder, which replaces the sleeping runtime thread.
   */
  private readonly visiting: boolean;
  private readonly ring: Int32Array;
  private readonly parked: ReadonlyMap<number, unknown>;
  private readonly failedRoots: ReadonlyMap<number, number>;

  /** `limitLaunches`: whether the device is a GPU, whose driver blocks at too many launches. */
  constructor(
    driver: Driver,
    shared: SharedState,
    slotsAddress: number,
    limitLaunches: boolean,
    host: DecoderHost,
    visiting = false,
  ) {
    this.driver = driver;
    this.shared = shared;
    this.host = host;
    this.visiting = visiting;
    this.ring = shared.ring;
    this.peers = new Peers(driver);
    this.announcements = new Announcements(driver, shared);
    this.conditionals = new Conditionals(driver, shared);
    this.libraries = new LibraryCalls(() => host.libraryCaller());
    if (limitLaunches && !visiting)
      this.text = new PrintedText(driver, shared, () => host.output());
    this.maps = new TensorMaps(driver);
    this.operands = new Operands(shared, this.peers, this.conditionals);
    this.limit = new LaunchLimit(driver, shared, slotsAddress, limitLaunches);
    this.failures = new Failures(shared, this.peers, host);
    this.fences = new Fences(driver, shared, slotsAddress, visiting, (error, stream) =>
      this.failures.failWithout(error, OP.fence, stream),
    );
    this.aside = new SetAside(driver, shared, this.announcements);
    this.shortages = new Shortages(driver, shared, host);
    this.parking = new Parking(shared, this.aside, this.limit, this.peers, this.text);
    this.trailing = new TrailingEvent(driver, shared, this.failures);
    this.parked = this.parking.streams;
    this.failedRoots = this.failures.roots;
    this.launches = new Launches(
      driver,
      shared,
      this.limit,
      this.failures,
      this.trailing,
      this.parked,
      visiting,
    );
  }

  /** Whether a command waits in the ring. */
  get hasWork(): boolean {
    const { control, ring } = this.shared;
    return Atomics.load(ring, Atomics.load(control, WORD.tail) & RING_MASK) !== 0;
  }

  /**
   * Decodes the commands in the ring. Returns whether there were any. On the JavaScript thread it
   * stops before a command that may take long or would have to be set aside; the runtime thread
   * continues from there.
   */
  drain(): boolean {
    const { ring, fences } = this;
    const { control } = this.shared;
    let tail = peek(control, WORD.tail);
    let at = tail & RING_MASK;
    let header = peek(ring, at);
    if (header === 0) return false;
    let stored = tail;
    for (let left = DRAIN_LIMIT; ; left--) {
      if (this.visiting && !this.mayRunHere(ring, at)) break;
      fences.flush();
      const before = tail;
      if (isLine(header)) tail = this.launches.runLines(tail);
      if (tail === before) {
        this.dispatch(ring, at);
        tail = (tail + (header >>> 16)) | 0;
      }
      at = tail & RING_MASK;
      header = peek(ring, at);
      if (header === 0 || left === 0) break;
      // The JavaScript thread reads the tail only when it runs out of room.
      if (((tail - stored) | 0) > TAIL_WORDS) {
        stored = tail;
        release(control, WORD.tail, tail);
      }
    }
    release(control, WORD.tail, tail);
    return true;
  }

  /** Lets parked streams continue where they may. Returns whether one did. */
  resumeParked(): boolean {
    return this.parking.resume((memory, at) => this.dispatch(memory, at, true));
  }

  /** Whether the JavaScript thread may execute the next command itself. */
  get runsNext(): boolean {
    return this.mayRunHere(this.ring, peek(this.shared.control, WORD.tail) & RING_MASK);
  }

  /** Handles a message about other devices and libraries. */
  hear(message: DecoderMessage): void {
    if (message.kind === 'peer') this.peers.add(message.start);
    else if (message.kind === 'peer-gone') this.peers.drop(message.index);
    else if (message.kind === 'library') this.libraries.add(message.start);
    else this.libraries.drop(message.number);
  }

  call(): void {
    this.host.call();
  }

  publishParked(): void {
    this.parking.publish();
  }

  /**
   * Whether the JavaScript thread may execute this command itself: see the property `visit` of its
   * row.
   */
  private mayRunHere(memory: Int32Array, at: number): boolean {
    const header = memory[at]!;
    const traits = TRAITS[header & 0xff]!;
    if ((traits & TRAIT.visitBelowLimit) !== 0)
      return this.limit.outstanding(memory[at + RECORD_STREAM]!) < MARKERS_OUTSTANDING;
    if ((traits & TRAIT.visitShort) !== 0) return (header & (FLAG_SHORT << 8)) !== 0;
    return (traits & TRAIT.visitAlways) !== 0;
  }

  private get isLost(): boolean {
    return peek(this.shared.control, WORD.lost) !== 0;
  }

  /**
   * Executes one command, or parks its stream. `resumed` means that the command comes from its
   * stream's queue, where the caller keeps it. Returns why the stream was parked, if it was.
   */
  private dispatch(memory: Int32Array, at: number, resumed = false): Wait | undefined {
    const word = memory[at]!;
    const op = word & 0xff;
    if (op === OP.pad) return undefined;
    const stream = memory[at + RECORD_STREAM]!;
    const ordered = stream >= 0 && (word & (FLAG_BYPASS << 8)) === 0;
    if (ordered && this.parked.size !== 0 && this.parking.takes(stream, memory, at))
      return undefined;
    if (this.isLost && op !== OP.call) return undefined;
    const root = memory[at + RECORD_ROOT]!;
    let wait = ordered ? this.mustWait(op, memory, at, stream, resumed) : undefined;
    if (wait === undefined) {
      const failed = this.failedRoots.size === 0 ? undefined : this.failedRoots.get(root);
      if (failed === undefined || (TRAITS[op]! & TRAIT.runsAfterFailure) !== 0) {
        const outcome = this.executeOne(op, memory, at, stream);
        if (outcome === 'lost') return undefined;
        wait = outcome;
      } else if (!isCapturing(this.shared, stream)) this.skip(op, memory, at, failed);
    }
    if (wait !== undefined) {
      if (!resumed) this.parking.park(wait, stream, memory, at);
      return wait;
    }
    const event = memory[at + RECORD_EVENT]!;
    if (event !== 0) this.trailing.record(event, stream, root);
    return undefined;
  }

  /**
   * Executes a command. Returns what an allocation waits for that has found too little memory, and
   * `lost` where the command has ended the device.
   */
  private executeOne(
    op: number,
    memory: Int32Array,
    at: number,
    stream: number,
  ): Wait | 'lost' | undefined {
    const { shared } = this;
    const body = at + RECORD_BODY;
    try {
      this.operands.recording = isCapturing(shared, stream);
      const unmade = unmadeBy(shared, stream);
      if (unmade !== 0) this.refuse(op, memory, body, stream, unmade);
      else {
        EXECUTE[op]!(this, memory, body, stream);
        if ((TRAITS[op]! & TRAIT.launch) !== 0) this.limit.count(stream);
      }
    } catch (error) {
      if (op === OP.alloc) {
        const bytes = int64(memory, body + 2);
        const wait = this.shortages.waitFor(error, memory[body]!, bytes, stream);
        if (wait !== undefined) return wait;
      }
      this.failures.fail(error, op, memory, at);
      if (this.isLost) return 'lost';
    }
    return undefined;
  }

  /**
   * Skips a command of an operation that has failed: the memory that it would have written is
   * undefined.
   */
  private skip(op: number, memory: Int32Array, at: number, failed: number): void {
    const body = at + RECORD_BODY;
    // Memory of other devices is written by kernels only, each of which is an operation of its own.
    this.failures.poison(writtenHandles(op, memory, body), failed);
    if (op === OP.alloc) this.shared.status[memory[body]!] = HANDLE.failed;
  }

  /**
   * Handles a command of a stream that could not be created: see `withoutStream` of its row.
   * @throws UnmadeStreamError where its operation fails
   */
  private refuse(
    op: number,
    memory: Int32Array,
    body: number,
    stream: number,
    unmade: number,
  ): void {
    const then = commandOf(op)?.withoutStream ?? 'fails';
    if (then === 'is skipped') return;
    if (then === 'is executed') {
      EXECUTE[op]!(this, memory, body, stream);
      return;
    }
    if (then === 'fails' || then(this, memory, body, stream)) throw new UnmadeStreamError(unmade);
  }

  /** Returns what this command has to wait for; undefined where it may be executed. */
  private mustWait(
    op: number,
    memory: Int32Array,
    at: number,
    stream: number,
    resumed: boolean,
  ): Wait | undefined {
    const body = at + RECORD_BODY;
    // The commands of a capture that has failed are skipped, and so is their wait for the nodes'
    // memory.
    if (isCapturing(this.shared, stream) && !this.failedRoots.has(memory[at + RECORD_ROOT]!)) {
      const pending = this.operands.firstPending(operandsOf(op, memory, body));
      if (pending !== 0) return { reason: 'made', on: pending, value: 0, consumed: false };
    }
    const traits = TRAITS[op]!;
    if ((traits & MAY_WAIT) === 0) return undefined;
    if ((traits & TRAIT.waits) !== 0)
      return commandOf(op)!.mustWait!(this, memory, body, stream, resumed);
    const places = (traits & TRAIT.launch) !== 0 ? 1 : this.libraries.launches(memory[body]!);
    return this.limit.isReached(stream, places)
      ? { reason: 'launches', on: 0, value: 0, consumed: false }
      : undefined;
  }
}
