/**
 * The decoder: reads commands from the ring and makes driver calls of them. It runs on the runtime
 * thread, or, while that thread sleeps, on the JS thread itself. Both instances work on the same
 * shared tables, so the only state kept here is that of parked streams, and the JS thread takes the
 * decoder only while there are none.
 *
 * It never waits. A stream that is held, that waits for a parked event, or that has too many
 * unfinished launches has its own commands set aside, in order, until {@link Decoder.resumeParked}
 * finds that they may go on; other streams are not affected.
 */
import type { Driver, LaunchAttributes, LaunchConfig } from '../driver/driver.js';
import { DriverError } from '../driver/error.js';
import { PlainBatch } from '../driver/launch-batch.js';
import type { LaunchBatch } from '../driver/launch-batch.js';
import { CUresult } from '../ground/result.js';
import {
  ACCESS_SHIFT,
  ACCESS_WHOLE,
  ACCESS_WRITE,
  COPY_DEVICE_TO_HOST,
  COPY_HOST_TO_DEVICE,
  COPY_PEER,
  FLAG_BYPASS,
  FLAG_HOT,
  FLAG_SHORT,
  GRID_PACKED,
  HANDLE_MASK,
  LAUNCH_CLUSTER,
  LAUNCH_COOPERATIVE,
  LAUNCH_EX,
  LAUNCH_PRIORITY,
  LAUNCH_PROGRAMMATIC,
  LINE_ACCESS_SHIFT,
  LINE_HANDLE_MASK,
  LINE_PACKED,
  LINE_WORD_SHIFT,
  OP,
  OP_CALLS,
  RECORD_BODY,
  RECORD_EVENT,
  RECORD_ROOT,
  RECORD_STREAM,
} from './commands.js';
import { Announcements } from './announcements.js';
import { Conditionals } from './conditionals.js';
import { copy2D, copy3D, int64 } from './copy-shapes.js';
import { PoisonedError, UnmadeStreamError, describeFailure, isSticky } from './failure.js';
import type { Failure } from './failure.js';
import { asOutOfMemory } from './host-allocation.js';
import type { LibraryCaller } from '../native/library-caller.js';
import {
  CONDITION,
  FOREIGN,
  HANDLE,
  ISSUED_CAPTURING,
  ISSUED_LAUNCHES,
  ISSUED_MARKERS,
  ISSUED_STRIDE,
  ISSUED_UNMADE,
  RING_WORDS,
  SLOT_CROSSED,
  SLOT_FENCE,
  SLOT_HOLD,
  SLOT_MARKER,
  SLOT_REACHED,
  SLOT_ROOM,
  SLOT_WORDS,
  WORD,
  wakeJs,
} from './layout.js';
import type { SharedState } from './layout.js';
import { LibraryCalls } from './library-calls.js';
import type { NativeOutput } from './native-output.js';
import { Peers } from './peers.js';
import { PrintedText } from './printed-text.js';
import { RecordQueue } from './record-queue.js';
import { peek, release } from './shared-words.js';

/**
 * Launches between two markers, and markers that may be outstanding: a stream may have 639
 * unfinished launches (four intervals and all but one of the next). The driver blocks at 1,021
 * (measured, driver 580), so there is room for copies and waits.
 */
const MARKER_INTERVAL = 128;
const MARKERS_OUTSTANDING = 4;
const RING_MASK = RING_WORDS - 1;
/** 32-bit words of a cache line. */
const LINE_WORDS = 16;
/** Commands, or batches of launches, decoded in one go before the thread looks at other things. */
const DRAIN_LIMIT = 64;
/** Words decoded before the JS thread is told of the room. */
const TAIL_WORDS = 256;
/**
 * How long the end of a short piece of work is asked for before a fence is put behind it, and how
 * often between two looks at the clock.
 */
const SETTLE_MS = 0.025;
const SETTLE_QUERIES = 16;
/**
 * What is tried, one after the other, for an allocation that finds too little memory. See
 * {@link DecoderHost.makeRoom}.
 */
const ROOM_STEPS: readonly RoomStep[] = ['trim', 'frees', 'trim'];
const TWO32 = 4294967296;

/** `trim`: pools give back what they keep. `frees`: frees that are queued are waited for. */
export type RoomStep = 'trim' | 'frees';

/** What the decoder asks of the thread that it runs on. */
export interface DecoderHost {
  /** A command failed; the failure has its number already. */
  failed(failure: Failure): void;
  /** The context met a fault and cannot be used again. */
  lost(failure: Failure): void;
  /** A procedure call waits in the message port. */
  call(): void;
  /**
   * Standard output as native code writes it, undefined where it cannot be had. Asked when a kernel
   * first prints.
   */
  output(): NativeOutput | undefined;
  /** The way to call functions of libraries. Asked when the first is called. */
  libraryCaller(): LibraryCaller;
  /**
   * An allocation of `bytes` on `stream` found too little memory and waits. Returns false where no
   * step can help; otherwise SLOT_ROOM of the stream grows by one when the step has been taken.
   */
  makeRoom(step: RoomStep, stream: number, bytes: number): boolean;
  /** The device has been idle for some time, and memory has been freed since the last time. */
  idle(): void;
}

/** What a stream waits for. */
interface Wait {
  readonly reason: 'hold' | 'event' | 'launches' | 'memory' | 'peer' | 'made' | 'capture';
  /**
   * slot of the hold, handle of the event, slot of the stream that memory is short for, number of
   * the device whose event `value` is, handle of what is to be made, or number of the capture
   */
  readonly on: number;
  readonly value: number;
  /**
   * Whether the command that waits is done with the waiting: a hold is, anything else is carried
   * out afterwards.
   */
  readonly consumed: boolean;
}

interface Parked {
  readonly wait: Wait;
  readonly records: RecordQueue;
}

export class Decoder {
  readonly driver: Driver;
  readonly shared: SharedState;
  /** Other devices, whose events and memory commands may name. */
  readonly peers: Peers;
  /** What other devices want to know of this one's events. */
  readonly announcements: Announcements;
  /** Functions of NVIDIA's libraries that commands may name. */
  readonly libraries: LibraryCalls;
  /** Conditional nodes of graphs that are being recorded. */
  private readonly conditionals: Conditionals;
  /** Device address of slot 0. */
  private readonly slotsAddress: number;
  private readonly host: DecoderHost;
  private readonly limitLaunches: boolean;
  /**
   * Whether this is the JS thread's decoder, which only stands in for the sleeping runtime thread.
   */
  private readonly visiting: boolean;
  private readonly parked = new Map<number, Parked>();
  /**
   * Events whose record is parked: the number of the last record that was set aside, and of the
   * last that was taken up again. Numbers go up by one within an entry and are never those of an
   * earlier entry: a wait may outlive one.
   */
  private readonly parkedEvents = new Map<number, { aside: number; resumed: number }>();
  private recordsAside = 0;
  /**
   * How many waits for each event are set aside; such an event is destroyed behind the last of
   * them.
   */
  private readonly asideWaits = new Map<number, number>();
  private readonly doomedEvents = new Set<number>();
  /** Captures, and bodies of conditional nodes, whose end is set aside. */
  private readonly endsAside = new Set<number>();
  /**
   * Operations of which a command failed, and the failure that poisons what they would have
   * written.
   */
  private readonly failedRoots = new Map<number, number>();
  /**
   * Whether the command being carried out is only recorded: what its operands hold at present does
   * not matter.
   */
  private recording = false;
  /** Streams that wait for memory: how many of {@link ROOM_STEPS} were taken. */
  private readonly shortages = new Map<number, number>();
  /** Whether memory was freed since the device was last told to be idle. */
  private freed = false;
  /** Text that kernels of a GPU print; the CPU device gives it out itself. */
  readonly text: PrintedText | undefined = undefined;
  /** A fence that was asked for and not yet issued: its slot, or -1. See {@link settle}. */
  private lazySlot = -1;
  private lazyStream = 0;
  private lazyValue = 0;

  /** Whether the last fence was one of many short awaits in a row. */
  hot = false;
  /** Keeps looking ahead from being optimised away. */
  ahead = 0;
  // What launches need, where it is at hand.
  private readonly ring: Int32Array;
  private readonly values: Float64Array;
  private readonly failure: Int32Array;
  private readonly issued: Int32Array;
  private readonly streams: Float64Array;
  private readonly batch: LaunchBatch;
  /** Where in the ring each launch of the batch stands. */
  private readonly batchAt: Int32Array;

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
    this.peers = new Peers(driver);
    this.announcements = new Announcements(driver, shared);
    this.conditionals = new Conditionals(driver, shared);
    this.ring = shared.ring;
    this.values = shared.values;
    this.failure = shared.failure;
    this.issued = shared.issued;
    this.streams = shared.streams;
    this.batch = driver.launchBatch?.() ?? new PlainBatch(driver);
    this.batchAt = new Int32Array(this.batch.capacity);
    this.slotsAddress = slotsAddress;
    this.limitLaunches = limitLaunches;
    this.host = host;
    this.libraries = new LibraryCalls(() => host.libraryCaller());
    this.visiting = visiting;
    if (limitLaunches && !visiting)
      this.text = new PrintedText(driver, shared, () => host.output());
  }

  /** Whether a command waits in the ring. */
  get hasWork(): boolean {
    const { control, ring } = this.shared;
    return Atomics.load(ring, Atomics.load(control, WORD.tail) & RING_MASK) !== 0;
  }

  /**
   * Decodes what is in the ring. Returns whether there was anything. On the JS thread it stops
   * before a command that may take long or would have to be set aside; the runtime thread goes on
   * from there.
   */
  drain(): boolean {
    const { control, ring } = this.shared;
    let tail = peek(control, WORD.tail);
    let at = tail & RING_MASK;
    let header = peek(ring, at);
    if (header === 0) return false;
    let stored = tail;
    for (let left = DRAIN_LIMIT; ; left--) {
      if (this.visiting && !this.mayRunHere(ring, at)) break;
      if (this.lazySlot !== -1) this.writeFence();
      const before = tail;
      if (isLine(header)) tail = this.launchLines(tail);
      if (tail === before) {
        this.dispatch(ring, at, header >>> 16);
        tail = (tail + (header >>> 16)) | 0;
      }
      at = tail & RING_MASK;
      header = peek(ring, at);
      if (header === 0 || left === 0) break;
      // The JS thread reads it only when it runs out of room.
      if (((tail - stored) | 0) > TAIL_WORDS) {
        stored = tail;
        release(control, WORD.tail, tail);
      }
    }
    release(control, WORD.tail, tail);
    return true;
  }

  /**
   * The last fence, where nothing has come after it. Where one launch is awaited after the other
   * (`hot`) the device is told to write the slot at once: that is seen half a microsecond sooner
   * than cuStreamQuery tells the end. Else this asks for the stream's end for a few microseconds
   * and writes the slot from here. After a pause what is short ends sooner that way than a fence
   * behind it is issued and carried out (measured on an H200: 12 against 30 µs); what is long gets
   * its fence.
   */
  settle(hot = false): void {
    if (this.lazySlot === -1) return;
    if (hot) {
      this.writeFence();
      return;
    }
    const stream = this.streams[this.lazyStream]!;
    const start = performance.now();
    for (let queries = 1; !this.hasWork; queries++) {
      const result = this.driver.cuStreamQuery(stream);
      if (result === CUresult.CUDA_SUCCESS) {
        Atomics.store(this.shared.slots, this.lazySlot * SLOT_WORDS + SLOT_FENCE, this.lazyValue);
        this.lazySlot = -1;
        return;
      }
      if (result !== CUresult.CUDA_ERROR_NOT_READY) break;
      if (queries % SETTLE_QUERIES === 0 && performance.now() - start > SETTLE_MS) break;
    }
    this.writeFence();
  }

  /** A fence behind all that is queued, from the JS thread. */
  fenceNow(slot: number, stream: number, value: number, hot: boolean): void {
    if (this.unmade(stream) !== 0) {
      Atomics.store(this.shared.slots, slot * SLOT_WORDS + SLOT_FENCE, value);
      return;
    }
    this.lazySlot = slot;
    this.lazyStream = stream;
    this.lazyValue = value;
    this.settle(hot);
  }

  private writeFence(): void {
    const slot = this.lazySlot;
    this.lazySlot = -1;
    if (this.isLost) return;
    try {
      this.driver.cuStreamWriteValue32(
        this.streams[this.lazyStream]!,
        this.slotsAddress + slot * SLOT_WORDS * 4,
        this.lazyValue >>> 0,
        0,
      );
    } catch (error) {
      this.failWithout(error, OP.fence, this.lazyStream);
    }
  }

  /**
   * The usual launches, one behind the other in the ring, where nothing stands in their way: all of
   * them are prepared before the first is made. Returns the position behind the last one; the same
   * position where {@link dispatch} has to look at the first.
   */
  private launchLines(first: number): number {
    const { ring, batch, batchAt, issued, parked, failedRoots } = this;
    if (this.isLost) return first;
    const { capacity } = batch;
    let position = first;
    let at = first & RING_MASK;
    let header = ring[at]!;
    let count = 0;
    /** The stream whose marker is due, or -1. */
    let marked = -1;
    do {
      const stream = ring[at + RECORD_STREAM]!;
      const base = stream * ISSUED_STRIDE + ISSUED_LAUNCHES;
      const launches = issued[base]!;
      const due = (launches & (MARKER_INTERVAL - 1)) === MARKER_INTERVAL - 1;
      if (due && !this.mayMark(stream)) break;
      if (parked.size !== 0 && parked.has(stream)) break;
      // What is recorded may have to wait for its memory.
      if (issued[stream * ISSUED_STRIDE + ISSUED_CAPTURING] === 1) break;
      if (failedRoots.size !== 0 && failedRoots.has(ring[at + RECORD_ROOT]!)) break;
      if (this.visiting && this.markersOutstanding(stream) >= MARKERS_OUTSTANDING) break;
      if (!this.prepareLine(at, header, count)) break;
      issued[base] = launches + 1;
      batchAt[count++] = at;
      position = (position + (header >>> 16)) | 0;
      at = position & RING_MASK;
      // A marker goes behind the last of a batch.
      if (due) marked = stream;
      if (due || count === capacity) break;
      header = peek(ring, at);
    } while (isLine(header));

    for (let i = 0; i < count; i++) {
      // The lines of the next records come over from the other core while the driver works.
      this.ahead ^= ring[(position + i * LINE_WORDS) & RING_MASK]!;
      try {
        batch.run(i);
      } catch (error) {
        at = batchAt[i]!;
        const stream = ring[at + RECORD_STREAM]!;
        this.fail(error, ring[at]! & 0xff, ring, at, stream, ring[at + RECORD_ROOT]!);
        if (marked !== -1) issued[marked * ISSUED_STRIDE + ISSUED_LAUNCHES]!--;
        // What follows may use what this one would have written.
        const event = ring[at + RECORD_EVENT]!;
        if (event !== 0) this.recordEvent(event, stream, ring[at + RECORD_ROOT]!);
        return (first + ((at - first) & RING_MASK) + (ring[at]! >>> 16)) | 0;
      }
      const event = ring[batchAt[i]! + RECORD_EVENT]!;
      if (event !== 0)
        this.recordEvent(
          event,
          ring[batchAt[i]! + RECORD_STREAM]!,
          ring[batchAt[i]! + RECORD_ROOT]!,
        );
    }
    if (marked !== -1) {
      try {
        this.mark(marked);
      } catch (error) {
        this.failWithout(error, OP.launch, marked);
      }
    }
    return position;
  }

  /**
   * The launch that stands at `at`, with nothing before it: an OP.launchLine, or an OP.graphLaunch
   * that takes the driver a short time. It need not have been shown; its event is left to
   * {@link recordAlone}. Returns false, and has done nothing, where it is for {@link drain} to look
   * at. It is what a launch awaited at once goes through, right behind driver calls, which leave no
   * code and no data in the processor's first cache: all that is not needed is left out (from the
   * call to the driver's 0.3 instead of 0.4 µs, H200).
   */
  launchAlone(at: number, op: number): boolean {
    const { ring, issued } = this;
    const stream = ring[at + RECORD_STREAM]!;
    const base = stream * ISSUED_STRIDE + ISSUED_LAUNCHES;
    const launches = issued[base]!;
    if (
      (launches & (MARKER_INTERVAL - 1)) === MARKER_INTERVAL - 1 ||
      this.isLost ||
      this.parked.size !== 0 ||
      this.failedRoots.size !== 0 ||
      this.markersOutstanding(stream) >= MARKERS_OUTSTANDING ||
      !(op === OP.launchLine ? this.prepareLine(at, op, 0) : this.mayLaunchGraph(at))
    )
      return false;
    issued[base] = launches + 1;
    try {
      if (op === OP.launchLine) this.batch.run(0);
      else this.driver.cuGraphLaunch(this.values[ring[at + RECORD_BODY]!]!, this.streams[stream]!);
    } catch (error) {
      this.fail(error, op, ring, at, stream, ring[at + RECORD_ROOT]!);
    }
    return true;
  }

  /**
   * Records the event of what {@link launchAlone} launched: behind its fence, where the device
   * works meanwhile.
   */
  recordAlone(at: number): void {
    const { ring } = this;
    const event = ring[at + RECORD_EVENT]!;
    if (event !== 0) this.recordEvent(event, ring[at + RECORD_STREAM]!, ring[at + RECORD_ROOT]!);
  }

  /**
   * What {@link launchAlone} does in front of the driver's call, once more and for nothing: the
   * calls behind it have left neither code nor data of it in the processor's first cache, and until
   * the launch ends there is time to fetch them.
   */
  rehearse(at: number, op: number): void {
    if (op === OP.launchLine) this.prepareLine(at, op, 0);
    else this.mayLaunchGraph(at);
  }

  /** Whether nothing that the graph at `at` uses was left undefined. */
  private mayLaunchGraph(at: number): boolean {
    const { ring, failure } = this;
    const refs = at + RECORD_BODY + 2;
    const end = refs + ring[refs - 1]!;
    for (let ref = refs; ref < end; ref++)
      if (failure[ring[ref]! & HANDLE_MASK] !== 0) return false;
    return true;
  }

  /**
   * Prepares the usual launch that stands at `at` as number `count` of the batch. False where
   * something is unusual.
   */
  private prepareLine(at: number, header: number, count: number): boolean {
    const { ring, batch, failure, values } = this;
    const { words } = batch;
    const body = at + RECORD_BODY;
    const grid = (header & 0xff) === OP.launchGrid;
    const head = body + (grid ? GRID_PACKED : LINE_PACKED);
    const packed = ring[head]!;
    const paramBytes = packed >>> 16;
    const paramWords = (paramBytes + 3) >>> 2;
    const refs = head + 1;
    const params = refs + (packed & 0xffff);
    const target = count * batch.stride;
    for (let i = 0; i < paramWords; i++) words[target + i] = ring[params + i]!;
    for (let ref = refs; ref < params; ref++) {
      const word = ring[ref]!;
      const handle = word & LINE_HANDLE_MASK;
      if (failure[handle] !== 0) return false;
      const place = target + (word >>> LINE_WORD_SHIFT);
      const address = values[handle]! + (words[place]! >>> 0) + words[place + 1]! * TWO32;
      words[place] = address | 0;
      words[place + 1] = (address / TWO32) | 0;
    }
    const func = values[ring[body]!]!;
    const shared = ring[head - 1]!;
    const hStream = this.streams[ring[at + RECORD_STREAM]!]!;
    return grid
      ? batch.prepare(
          count,
          func,
          ring[body + 1]!,
          ring[body + 2]!,
          ring[body + 3]!,
          ring[body + 4]!,
          ring[body + 5]!,
          ring[body + 6]!,
          shared,
          hStream,
          paramBytes,
        )
      : batch.prepare(
          count,
          func,
          ring[body + 1]!,
          1,
          1,
          ring[body + 2]!,
          1,
          1,
          shared,
          hStream,
          paramBytes,
        );
  }

  /** Lets parked streams go on where they may. Returns whether one did. */
  resumeParked(): boolean {
    let progress =
      this.text !== undefined && this.text.streams !== 0 && this.text.settle(this.isLost);
    for (const [stream, queue] of this.parked) {
      if (!this.mayResume(queue, stream)) continue;
      progress = true;
      this.parked.delete(stream);
      const { records } = queue;
      while (records.length > 0) {
        const { memory, at } = records;
        const event = memory[at + RECORD_EVENT]!;
        const recorded = operandOf(OP.record, memory, at);
        const waited = operandOf(OP.wait, memory, at);
        const ended = endOf(memory, at);
        const again = this.dispatch(memory, at, memory[at]! >>> 16, true);
        // A hold is consumed when it parks the stream; any other command that parks it stays where
        // it is.
        if (again === undefined || again.consumed) {
          records.shift();
          if (recorded !== 0) this.recordResumed(recorded);
          if (event !== 0) this.recordResumed(event);
          if (waited !== 0) this.waitResumed(waited);
          if (ended !== 0) this.endsAside.delete(ended);
        }
        if (again === undefined) continue;
        this.parked.set(stream, { wait: again, records });
        break;
      }
    }
    this.tellParked();
    return progress;
  }

  /**
   * While there are any the JS thread leaves the ring alone: what they wait for is known to this
   * decoder only.
   */
  private tellParked(): void {
    Atomics.store(this.shared.control, WORD.parked, this.parkedStreams);
  }

  private get isLost(): boolean {
    return peek(this.shared.control, WORD.lost) !== 0;
  }

  /** Streams that wait for something, or owe text. */
  get parkedStreams(): number {
    return this.parked.size + (this.text?.streams ?? 0);
  }

  /** Whether a stream is held: whoever releases it rings the bell. */
  isHeld(stream: number): boolean {
    return this.parked.get(stream)?.wait.reason === 'hold';
  }

  /**
   * Whether there are streams that wait here, and all of them are held or wait for what a held one
   * will record.
   */
  get onlyHeld(): boolean {
    if (this.parked.size === 0 || this.parkedStreams !== this.parked.size) return false;
    for (const { wait } of this.parked.values())
      if (wait.reason !== 'hold' && wait.reason !== 'event') return false;
    return true;
  }

  /** Whether a parked stream may go on. */
  get mayGoOn(): boolean {
    for (const [stream, queue] of this.parked) if (this.mayResume(queue, stream)) return true;
    return false;
  }

  /** Whether the JS thread may run the next command itself. */
  get runsNext(): boolean {
    return this.mayRunHere(this.ring, peek(this.shared.control, WORD.tail) & RING_MASK);
  }

  /**
   * Whether the JS thread may run this command itself: nothing that allocates, loads, captures or
   * parks.
   */
  private mayRunHere(memory: Int32Array, at: number): boolean {
    const op = memory[at]! & 0xff;
    if (op === OP.launchLine || op === OP.launchGrid || op === OP.launch) {
      return this.markersOutstanding(memory[at + RECORD_STREAM]!) < MARKERS_OUTSTANDING;
    }
    if (op === OP.graphLaunch) return (memory[at]! & (FLAG_SHORT << 8)) !== 0;
    return (
      op === OP.fence ||
      op === OP.copy ||
      op === OP.memset ||
      op === OP.record ||
      op === OP.wait ||
      op === OP.pad
    );
  }

  private mayResume({ wait }: Parked, stream: number): boolean {
    if (this.isLost) return true;
    if (wait.reason === 'hold') return this.held(wait.on, wait.value) <= 0;
    if (wait.reason === 'memory')
      return (
        ((Atomics.load(this.shared.slots, wait.on * SLOT_WORDS + SLOT_ROOM) - wait.value) | 0) >= 0
      );
    if (wait.reason === 'peer') return this.peers.ready(wait.on, wait.value);
    if (wait.reason === 'event') return this.recordIssued(wait.on, wait.value);
    if (wait.reason === 'made') return this.shared.status[wait.on] !== HANDLE.pending;
    if (wait.reason === 'capture') return !this.endsAside.has(wait.on);
    return this.markersOutstanding(stream) < MARKERS_OUTSTANDING;
  }

  /** Whether record number `value` of the event, which was set aside, has been issued. */
  private recordIssued(event: number, value: number): boolean {
    const parked = this.parkedEvents.get(event);
    return parked === undefined || ((parked.resumed - value) | 0) >= 0;
  }

  private held(slot: number, value: number): number {
    return (value - peek(this.shared.slots, slot * SLOT_WORDS + SLOT_HOLD)) | 0;
  }

  private markersOutstanding(stream: number): number {
    const { issued, slots } = this.shared;
    return (
      (issued[stream * ISSUED_STRIDE + ISSUED_MARKERS]! -
        peek(slots, stream * SLOT_WORDS + SLOT_MARKER)) |
      0
    );
  }

  private recordAside(event: number): void {
    const parked = this.parkedEvents.get(event);
    if (parked === undefined)
      this.parkedEvents.set(event, {
        aside: (this.recordsAside + 1) | 0,
        resumed: this.recordsAside,
      });
    else parked.aside = (parked.aside + 1) | 0;
    this.recordsAside = (this.recordsAside + 1) | 0;
  }

  private recordResumed(event: number): void {
    const parked = this.parkedEvents.get(event);
    if (parked === undefined) return;
    parked.resumed = (parked.resumed + 1) | 0;
    if (parked.resumed !== parked.aside) return;
    this.parkedEvents.delete(event);
    this.announcements.recorded(event);
  }

  private waitResumed(event: number): void {
    const waits = this.asideWaits.get(event)! - 1;
    if (waits > 0) {
      this.asideWaits.set(event, waits);
      return;
    }
    this.asideWaits.delete(event);
    if (this.doomedEvents.delete(event)) this.destroyEvent(event);
  }

  private destroyEvent(handle: number): void {
    const { values, failure, status } = this.shared;
    const event = values[handle]!;
    this.announcements.forget(handle);
    values[handle] = 0;
    failure[handle] = 0;
    Atomics.store(status, handle, HANDLE.released);
    if (event !== 0) this.driver.cuEventDestroy(event);
  }

  private setAside(queue: Parked, memory: Int32Array, at: number, length: number): void {
    // A record may carry an event of its stream's own behind the one that it names.
    const event = memory[at + RECORD_EVENT]!;
    const recorded = operandOf(OP.record, memory, at);
    const waited = operandOf(OP.wait, memory, at);
    const ended = endOf(memory, at);
    if (ended !== 0) this.endsAside.add(ended);
    if (recorded !== 0) this.recordAside(recorded);
    if (event !== 0) this.recordAside(event);
    if (waited !== 0) {
      this.asideWaits.set(waited, (this.asideWaits.get(waited) ?? 0) + 1);
      memory[at + RECORD_BODY + 1] = this.parkedEvents.get(waited)?.aside ?? this.recordsAside;
    }
    queue.records.push(memory, at, length, memory[at]!);
  }

  /**
   * Carries out one command, or parks its stream. `resumed` says that the command comes from its
   * stream's queue and is kept there by the caller. Returns why the stream was parked, if it was.
   */
  private dispatch(
    memory: Int32Array,
    at: number,
    length: number,
    resumed = false,
  ): Wait | undefined {
    const word = memory[at]!;
    const op = word & 0xff;
    if (op === OP.pad) return undefined;
    const stream = memory[at + RECORD_STREAM]!;
    const ordered = stream >= 0 && (word & (FLAG_BYPASS << 8)) === 0;
    if (ordered && this.parked.size !== 0) {
      const queue = this.parked.get(stream);
      if (queue !== undefined) {
        this.setAside(queue, memory, at, length);
        return undefined;
      }
    }
    if (this.isLost && op !== OP.call) return undefined;
    const wait = ordered ? this.mustWait(op, memory, at, stream, resumed) : undefined;
    if (wait !== undefined) return resumed ? wait : this.park(wait, stream, memory, at, length);
    const root = memory[at + RECORD_ROOT]!;
    const failed = this.failedRoots.size === 0 ? undefined : this.failedRoots.get(root);
    if (
      failed === undefined ||
      op === OP.fence ||
      op === OP.free ||
      op === OP.captureEnd ||
      op === OP.bodyEnd
    ) {
      try {
        this.recording = this.isCapturing(stream);
        const unmade = this.unmade(stream);
        if (unmade === 0) this.execute(op, memory, at, stream);
        else this.refuse(op, memory, at, stream, unmade);
      } catch (error) {
        const short = op === OP.alloc ? this.shortOfMemory(error, memory, at, stream) : undefined;
        if (short !== undefined)
          return resumed ? short : this.park(short, stream, memory, at, length);
        this.fail(error, op, memory, at, stream, root);
        if (this.isLost) return undefined;
      }
    } else if (!this.isCapturing(stream)) {
      // Memory of other devices is written by kernels only, each of which is an operation of its
      // own.
      this.poison(writtenHandles(op, memory, at), failed);
      if (op === OP.alloc) this.shared.status[memory[at + RECORD_BODY]!] = HANDLE.failed;
    }
    const event = memory[at + RECORD_EVENT]!;
    if (event !== 0) this.recordEvent(event, stream, root);
    return undefined;
  }

  private park(wait: Wait, stream: number, memory: Int32Array, at: number, length: number): Wait {
    const queue: Parked = { wait, records: new RecordQueue() };
    this.parked.set(stream, queue);
    this.tellParked();
    if (!wait.consumed) this.setAside(queue, memory, at, length);
    return wait;
  }

  /**
   * What an allocation that failed waits for before it is tried again; undefined where it has
   * failed for good.
   */
  private shortOfMemory(
    error: unknown,
    memory: Int32Array,
    at: number,
    stream: number,
  ): Wait | undefined {
    if (!(error instanceof DriverError) || error.result !== CUresult.CUDA_ERROR_OUT_OF_MEMORY)
      return undefined;
    const taken = this.shortages.get(stream) ?? 0;
    const step = ROOM_STEPS[taken];
    const value = (Atomics.load(this.shared.slots, stream * SLOT_WORDS + SLOT_ROOM) + 1) | 0;
    if (step !== undefined) this.settleFrees();
    if (
      step === undefined ||
      !this.host.makeRoom(step, stream, int64(memory, at + RECORD_BODY + 2))
    ) {
      this.shortages.delete(stream);
      return undefined;
    }
    this.shortages.set(stream, taken + 1);
    this.shared.status[memory[at + RECORD_BODY]!] = HANDLE.pending;
    return { reason: 'memory', on: stream, value, consumed: false };
  }

  /**
   * A pool takes a free as over when its stream was synchronised with (a query does not do, driver
   * 580). Of streams that are idle that returns at once, and here nobody gives them work meanwhile.
   * Returns whether all of them are idle.
   */
  settleFrees(): boolean {
    const { streams, issued, control } = this.shared;
    const used = Atomics.load(control, WORD.slotsUsed);
    let all = true;
    for (let slot = 0; slot < used; slot++) {
      const stream = streams[slot]!;
      if (stream === 0) continue;
      const idle =
        issued[slot * ISSUED_STRIDE + ISSUED_CAPTURING] !== 1 &&
        this.driver.cuStreamQuery(stream) === CUresult.CUDA_SUCCESS;
      if (idle) this.driver.cuStreamSynchronize(stream);
      else all = false;
    }
    return all;
  }

  /**
   * Whether pools may hold memory that nobody has used since it was freed, as far as this decoder
   * knows.
   */
  get keepsFreed(): boolean {
    return this.freed && !this.isLost;
  }

  /** Nothing has been decoded for some time: has pools trimmed where the device is idle too. */
  rest(): void {
    if (this.isLost || !this.settleFrees()) return;
    this.freed = false;
    this.host.idle();
  }

  private recordEvent(event: number, stream: number, root: number): void {
    if (this.unmade(stream) !== 0) return;
    try {
      this.driver.cuEventRecord(this.shared.values[event]!, this.shared.streams[stream]!);
    } catch (error) {
      this.failWithout(error, OP.record, stream, root);
    }
  }

  /** What this command has to wait for; undefined where it may be carried out. */
  private mustWait(
    op: number,
    memory: Int32Array,
    at: number,
    stream: number,
    resumed: boolean,
  ): Wait | undefined {
    // What a capture that has failed records is skipped, its nodes' memory too.
    if (this.isCapturing(stream) && !this.failedRoots.has(memory[at + RECORD_ROOT]!)) {
      const unmade = this.unmadeOperand(op, memory, at);
      if (unmade !== 0) return { reason: 'made', on: unmade, value: 0, consumed: false };
    }
    // Stream memory operations take their place in the stream's queue as launches do.
    if (
      op === OP.launchLine ||
      op === OP.launchGrid ||
      op === OP.launch ||
      op === OP.launchEx ||
      op === OP.graphLaunch ||
      op === OP.waitValue ||
      op === OP.writeValue
    ) {
      const { issued } = this.shared;
      const base = stream * ISSUED_STRIDE;
      const launches = issued[base + ISSUED_LAUNCHES]!;
      if ((launches & (MARKER_INTERVAL - 1)) !== MARKER_INTERVAL - 1) return undefined;
      if (!this.limitLaunches || issued[base + ISSUED_CAPTURING] === 1) return undefined;
      if (this.markersOutstanding(stream) < MARKERS_OUTSTANDING) return undefined;
      return { reason: 'launches', on: 0, value: 0, consumed: false };
    }
    if (op === OP.libraryCall) {
      const { issued } = this.shared;
      const base = stream * ISSUED_STRIDE;
      const before = issued[base + ISSUED_LAUNCHES]! & (MARKER_INTERVAL - 1);
      if (before + this.libraries.launches(memory[at + RECORD_BODY]!) < MARKER_INTERVAL)
        return undefined;
      if (!this.limitLaunches || issued[base + ISSUED_CAPTURING] === 1) return undefined;
      if (this.markersOutstanding(stream) < MARKERS_OUTSTANDING) return undefined;
      return { reason: 'launches', on: 0, value: 0, consumed: false };
    }
    if (op === OP.wait) {
      const event = memory[at + RECORD_BODY]!;
      const parked = this.parkedEvents.size === 0 ? undefined : this.parkedEvents.get(event);
      if (parked === undefined) return undefined;
      // Only the records set aside before this wait: a later one may itself depend on this stream.
      const value = resumed ? memory[at + RECORD_BODY + 1]! : parked.aside;
      return this.recordIssued(event, value)
        ? undefined
        : { reason: 'event', on: event, value, consumed: false };
    }
    if (op === OP.peerWait) {
      const peer = memory[at + RECORD_BODY]!;
      const event = memory[at + RECORD_BODY + 1]!;
      return this.peers.ready(peer, event)
        ? undefined
        : { reason: 'peer', on: peer, value: event, consumed: false };
    }
    if (op === OP.captureJoin) {
      // To the driver the stream is part of the capture until that ends, and what comes next would
      // be recorded.
      const left = memory[at + RECORD_BODY] === 0 ? memory[at + RECORD_BODY + 1]! : 0;
      return left !== 0 && this.endsAside.has(left)
        ? { reason: 'capture', on: left, value: 0, consumed: false }
        : undefined;
    }
    if (op === OP.hold) {
      const slot = memory[at + RECORD_BODY]!;
      const value = memory[at + RECORD_BODY + 1]!;
      // Whoever holds the stream sends its commands past the hold from here on, not past what is in
      // front of it.
      Atomics.store(this.shared.slots, slot * SLOT_WORDS + SLOT_REACHED, value);
      wakeJs(this.shared.control);
      if (this.held(slot, value) <= 0) return undefined;
      return { reason: 'hold', on: slot, value, consumed: true };
    }
    return undefined;
  }

  /**
   * What a command names that is not there yet, or 0. Its stream does not wait for it where it is
   * captured: then nothing waits for work outside of the capture, and a graph is made of addresses.
   */
  private unmadeOperand(op: number, memory: Int32Array, at: number): number {
    const { status } = this.shared;
    for (const word of operandsOf(op, memory, at))
      if (status[word & HANDLE_MASK] === HANDLE.pending) return word & HANDLE_MASK;
    return 0;
  }

  /** Address of an operand; throws where an earlier failure poisons it. */
  private address(word: number): number {
    const { failure, status, values } = this.shared;
    const handle = word & HANDLE_MASK;
    const poison = failure[handle]!;
    if (poison !== 0) {
      if (poison === FOREIGN) return this.peers.address(values[handle]!, this.recording);
      if (this.recording && status[handle] !== HANDLE.failed) return values[handle]!;
      if (((word >>> ACCESS_SHIFT) & ACCESS_WHOLE) === 0 || status[handle] === HANDLE.failed)
        throw new PoisonedError(poison);
      failure[handle] = 0;
    }
    return values[handle]!;
  }

  /** Context of an operand of a copy between devices. */
  private context(word: number): number {
    const { failure, values } = this.shared;
    const handle = word & HANDLE_MASK;
    return this.peers.context(failure[handle] === FOREIGN ? values[handle]! : undefined);
  }

  private countLaunch(stream: number): void {
    const { issued } = this.shared;
    const base = stream * ISSUED_STRIDE;
    const launches = (issued[base + ISSUED_LAUNCHES]! + 1) | 0;
    issued[base + ISSUED_LAUNCHES] = launches;
    if (
      (launches & (MARKER_INTERVAL - 1)) === 0 &&
      this.limitLaunches &&
      issued[base + ISSUED_CAPTURING] !== 1
    )
      this.mark(stream);
  }

  /**
   * Whether the stream's next marker may be put behind the launch at hand, which has not been
   * looked at by {@link dispatch}.
   */
  private mayMark(stream: number): boolean {
    const { issued } = this.shared;
    return (
      this.limitLaunches &&
      this.unmade(stream) === 0 &&
      issued[stream * ISSUED_STRIDE + ISSUED_CAPTURING] !== 1 &&
      this.markersOutstanding(stream) < MARKERS_OUTSTANDING
    );
  }

  /** Puts the stream's next marker behind what it has been given. */
  private mark(stream: number): void {
    const { issued, streams } = this.shared;
    const base = stream * ISSUED_STRIDE + ISSUED_MARKERS;
    const marker = (issued[base]! + 1) | 0;
    issued[base] = marker;
    this.driver.cuStreamWriteValue32(
      streams[stream]!,
      this.slotsAddress + stream * SLOT_WORDS * 4 + SLOT_MARKER * 4,
      marker >>> 0,
      0,
    );
  }

  /** As {@link resolveParams}, for references of one word each behind `packed`. */
  private resolveLine(memory: Int32Array, packed: number): number {
    const refs = packed + 1;
    const params = refs + (memory[packed]! & 0xffff);
    for (let ref = refs; ref < params; ref++) {
      const word = memory[ref]!;
      const access = (word >>> LINE_ACCESS_SHIFT) & 7;
      this.resolve(
        memory,
        params + (word >>> LINE_WORD_SHIFT),
        (word & LINE_HANDLE_MASK) | (access << ACCESS_SHIFT),
      );
    }
    return params;
  }

  /**
   * Turns the operands of a launch into addresses, in place. Returns the index of the first
   * parameter word.
   */
  private resolveParams(memory: Int32Array, refs: number, count: number): number {
    const params = refs + count * 2;
    for (let ref = refs; ref < params; ref += 2) {
      this.resolve(memory, params + memory[ref + 1]!, memory[ref]!);
    }
    return params;
  }

  /**
   * Adds an operand's address to the offset that stands in its parameter; a condition is passed as
   * it is.
   */
  private resolve(memory: Int32Array, place: number, operand: number): void {
    if (this.failure[operand & HANDLE_MASK] === CONDITION) {
      const bits = this.conditionals.bits(operand & HANDLE_MASK);
      memory[place] = Number(BigInt.asIntN(32, bits));
      memory[place + 1] = Number(BigInt.asIntN(32, bits >> 32n));
      return;
    }
    const address = this.address(operand) + (memory[place]! >>> 0) + memory[place + 1]! * TWO32;
    memory[place] = address | 0;
    memory[place + 1] = (address / TWO32) | 0;
  }

  private execute(op: number, memory: Int32Array, at: number, stream: number): void {
    const { driver } = this;
    const { values, status, streams, failure, issued } = this.shared;
    const body = at + RECORD_BODY;
    switch (op) {
      case OP.launchLine: {
        const params = this.resolveLine(memory, body + LINE_PACKED);
        driver.cuLaunchKernel(
          values[memory[body]!]!,
          memory[body + 1]!,
          1,
          1,
          memory[body + 2]!,
          1,
          1,
          memory[body + 3]!,
          streams[stream]!,
          memory,
          params,
          memory[body + LINE_PACKED]! >>> 16,
        );
        this.countLaunch(stream);
        return;
      }
      case OP.launchGrid: {
        const params = this.resolveLine(memory, body + GRID_PACKED);
        driver.cuLaunchKernel(
          values[memory[body]!]!,
          memory[body + 1]!,
          memory[body + 2]!,
          memory[body + 3]!,
          memory[body + 4]!,
          memory[body + 5]!,
          memory[body + 6]!,
          memory[body + 7]!,
          streams[stream]!,
          memory,
          params,
          memory[body + GRID_PACKED]! >>> 16,
        );
        this.countLaunch(stream);
        return;
      }
      case OP.launch: {
        const packed = memory[body + 8]!;
        const params = this.resolveParams(memory, body + 9, packed & 0xffff);
        driver.cuLaunchKernel(
          values[memory[body]!]!,
          memory[body + 1]!,
          memory[body + 2]!,
          memory[body + 3]!,
          memory[body + 4]!,
          memory[body + 5]!,
          memory[body + 6]!,
          memory[body + 7]!,
          streams[stream]!,
          memory,
          params,
          packed >>> 16,
        );
        this.countLaunch(stream);
        return;
      }
      case OP.fence:
        if (
          this.text !== undefined &&
          this.text.streams !== 0 &&
          this.text.takeFence(stream, memory[body]!, memory[body + 1]!)
        )
          return;
        this.lazySlot = memory[body]!;
        this.lazyStream = stream;
        this.lazyValue = memory[body + 1]!;
        // Here a driver call costs little, there the processor's caches may be cold.
        if (!this.visiting) this.writeFence();
        if ((memory[at]! & (FLAG_HOT << 8)) !== 0) this.hot = true;
        return;
      case OP.launchEx: {
        const ex = body + 8;
        const packed = memory[ex + LAUNCH_EX.words]!;
        const params = this.resolveParams(memory, ex + LAUNCH_EX.words + 1, packed & 0xffff);
        driver.cuLaunchKernelEx(
          this.launchConfig(memory, body, stream),
          values[memory[body]!]!,
          memory,
          params,
          packed >>> 16,
        );
        this.countLaunch(stream);
        return;
      }
      case OP.copy: {
        const bytes = int64(memory, body + 6);
        const src = this.address(memory[body + 3]!) + int64(memory, body + 4);
        const dst = this.address(memory[body]!) + int64(memory, body + 1);
        const kind = memory[body + 8]!;
        if (bytes === 0) return;
        if (kind === COPY_HOST_TO_DEVICE)
          driver.cuMemcpyHtoDAsync(dst, src, bytes, streams[stream]!);
        else if (kind === COPY_DEVICE_TO_HOST)
          driver.cuMemcpyDtoHAsync(dst, src, bytes, streams[stream]!);
        else if (kind === COPY_PEER) {
          const to = this.context(memory[body]!);
          const from = this.context(memory[body + 3]!);
          // Two threads may drive one device: then the two have one context. A capture takes no
          // copy that names contexts.
          if (to === from || this.isCapturing(stream))
            driver.cuMemcpyDtoDAsync(dst, src, bytes, streams[stream]!);
          else
            this.peers.heedOwnFaults(streams[stream]!, () =>
              driver.cuMemcpyPeerAsync(dst, to, src, from, bytes, streams[stream]!),
            );
        } else driver.cuMemcpyDtoDAsync(dst, src, bytes, streams[stream]!);
        return;
      }
      case OP.memset:
        this.memset(
          this.address(memory[body]!) + int64(memory, body + 1),
          memory,
          body,
          streams[stream]!,
        );
        return;
      case OP.alloc: {
        const handle = memory[body]!;
        const bytes = int64(memory, body + 2);
        try {
          const pool = memory[body + 1]!;
          // A zero-length buffer has no memory and is never dereferenced.
          values[handle] =
            bytes === 0
              ? 0
              : pool === 0
                ? driver.cuMemAllocAsync(bytes, streams[stream]!)
                : driver.cuMemAllocFromPoolAsync(bytes, this.address(pool), streams[stream]!);
          driver.nameAllocation?.(values[handle], memory[at + RECORD_ROOT]!, handle);
          status[handle] = HANDLE.live;
          if (this.shortages.size !== 0) this.shortages.delete(stream);
        } catch (error) {
          status[handle] = HANDLE.failed;
          throw asOutOfMemory(error, bytes);
        }
        return;
      }
      case OP.free: {
        const handle = memory[body]!;
        const address = values[handle]!;
        const live = status[handle] === HANDLE.live;
        values[handle] = 0;
        failure[handle] = 0;
        Atomics.store(status, handle, HANDLE.released);
        this.freed = true;
        if (live && address !== 0) driver.cuMemFreeAsync(address, streams[stream]!);
        return;
      }
      case OP.record:
        driver.cuEventRecord(values[memory[body]!]!, streams[stream]!);
        return;
      case OP.wait:
        driver.cuStreamWaitEvent(streams[stream]!, this.address(memory[body]!), 0);
        return;
      case OP.hold:
        return;
      case OP.graphLaunch: {
        const end = body + 2 + memory[body + 1]!;
        for (let ref = body + 2; ref < end; ref++) this.address(memory[ref]!);
        driver.cuGraphLaunch(values[memory[body]!]!, streams[stream]!);
        this.countLaunch(stream);
        return;
      }
      case OP.libraryCall: {
        const params = this.resolveParams(memory, body + 2, memory[body + 1]! & 0xffff);
        const number = memory[body]!;
        // Also where it fails: some of what it does may have been queued by then.
        for (let left = this.libraries.launches(number); left > 0; left--) this.countLaunch(stream);
        this.libraries.call(number, streams[stream]!, memory, params);
        return;
      }
      case OP.streamCreate: {
        const slot = memory[body]!;
        const base = slot * ISSUED_STRIDE;
        if (issued[base + ISSUED_UNMADE] !== 0) issued[base + ISSUED_LAUNCHES] = 0;
        issued[base + ISSUED_UNMADE] = 0;
        streams[slot] = 0;
        streams[slot] = driver.cuStreamCreateWithPriority(memory[body + 1]!, memory[body + 2]!);
        return;
      }
      case OP.streamDestroy: {
        const slot = memory[body]!;
        const destroyed = streams[slot]!;
        streams[slot] = 0;
        driver.cuStreamDestroy(destroyed);
        return;
      }
      case OP.eventCreate: {
        const handle = memory[body]!;
        status[handle] = HANDLE.failed;
        values[handle] = driver.cuEventCreate(memory[body + 1]!);
        status[handle] = HANDLE.live;
        return;
      }
      case OP.eventDestroy: {
        const handle = memory[body]!;
        if (this.asideWaits.has(handle)) this.doomedEvents.add(handle);
        else this.destroyEvent(handle);
        return;
      }
      case OP.captureBegin:
        // Also where it fails: what is queued until the end of the capture is not meant to run.
        issued[stream * ISSUED_STRIDE + ISSUED_CAPTURING] = 1;
        // Relaxed: the second worker and other streams go on making their calls meanwhile.
        driver.cuStreamBeginCapture(streams[stream]!, 2);
        return;
      case OP.captureJoin:
        issued[stream * ISSUED_STRIDE + ISSUED_CAPTURING] = memory[body]!;
        return;
      case OP.captureEnd: {
        const handle = memory[body]!;
        issued[stream * ISSUED_STRIDE + ISSUED_CAPTURING] = 0;
        try {
          const graph = driver.cuStreamEndCapture(streams[stream]!);
          if (graph === 0)
            throw new DriverError('cuStreamEndCapture', 901, {
              detail: 'the capture was invalidated',
            });
          values[handle] = graph;
          status[handle] = HANDLE.live;
        } catch (error) {
          status[handle] = HANDLE.failed;
          throw error;
        }
        return;
      }
      case OP.conditionCreate:
        this.conditionals.create(stream, memory[body]!, memory[body + 1]! >>> 0);
        return;
      case OP.conditionalNode:
        this.conditionals.add(stream, memory[body]!, memory[body + 1]!, memory[body + 2]!);
        return;
      case OP.bodyBegin:
        this.conditionals.begin(stream, memory[body]!, memory[body + 1]!);
        return;
      case OP.bodyEnd:
        this.conditionals.end(stream, memory[body]!, memory[body + 1]!);
        return;
      case OP.conditionForget:
        this.conditionals.forget(memory[body]!);
        return;
      case OP.call:
        this.host.call();
        return;
      case OP.copy2D:
        driver.cuMemcpy2DAsync(
          copy2D(memory, body, this.address(memory[body]!), this.address(memory[body + 4]!)),
          streams[stream]!,
        );
        return;
      case OP.copy3D: {
        const to = memory[body]!;
        const from = memory[body + 5]!;
        const box = copy3D(memory, body, this.address(to), this.address(from));
        const between = { ...box, dstContext: this.context(to), srcContext: this.context(from) };
        const apart = between.dstContext !== between.srcContext && memory[body + 13] === COPY_PEER;
        if (apart && !this.isCapturing(stream)) {
          this.peers.heedOwnFaults(streams[stream]!, () =>
            driver.cuMemcpy3DPeerAsync(between, streams[stream]!),
          );
        } else driver.cuMemcpy3DAsync(box, streams[stream]!);
        return;
      }
      case OP.writeValue: {
        const address = this.address(memory[body]!) + int64(memory, body + 1);
        if (memory[body + 5] === 32)
          driver.cuStreamWriteValue32(streams[stream]!, address, memory[body + 3]! >>> 0, 0);
        else driver.cuStreamWriteValue64(streams[stream]!, address, bigInt64(memory, body + 3), 0);
        this.countLaunch(stream);
        return;
      }
      case OP.waitValue: {
        const address = this.address(memory[body]!) + int64(memory, body + 1);
        const condition = memory[body + 6]!;
        if (memory[body + 5] === 32)
          driver.cuStreamWaitValue32(streams[stream]!, address, memory[body + 3]! >>> 0, condition);
        else
          driver.cuStreamWaitValue64(
            streams[stream]!,
            address,
            bigInt64(memory, body + 3),
            condition,
          );
        this.countLaunch(stream);
        return;
      }
      case OP.announce:
        this.announcements.announce(
          memory[body]!,
          memory[body + 1] === 1,
          this.parkedEvents.has(memory[body]!),
        );
        return;
      case OP.peerWait:
        try {
          this.peers.wait(memory[body]!, memory[body + 1]!, streams[stream]!);
        } finally {
          Atomics.store(this.shared.slots, stream * SLOT_WORDS + SLOT_CROSSED, memory[body + 2]!);
        }
        return;
      case OP.prefetch:
        driver.cuMemPrefetchAsync(
          this.address(memory[body]!) + int64(memory, body + 1),
          int64(memory, body + 3),
          memory[body + 5]!,
          streams[stream]!,
        );
        return;
      case OP.printed:
        this.text?.owe(stream);
        this.tellParked();
        return;
      case OP.release:
        Atomics.store(this.shared.slots, memory[body]! * SLOT_WORDS + SLOT_HOLD, memory[body + 1]!);
        return;
      case OP.poison:
        failure[memory[body]!] = memory[body + 1]!;
        return;
      default:
        throw new Error(`the ring holds a command with the unknown number ${op}`);
    }
  }

  private isCapturing(stream: number): boolean {
    return stream >= 0 && this.shared.issued[stream * ISSUED_STRIDE + ISSUED_CAPTURING] === 1;
  }

  /** The failure of the stream's making; 0 where it was made. */
  private unmade(stream: number): number {
    return stream < 0 ? 0 : this.shared.issued[stream * ISSUED_STRIDE + ISSUED_UNMADE]!;
  }

  /**
   * A command of a stream that could not be made. Nothing of it may reach the driver, for which
   * stream 0 is the default stream. Its operation fails; fences pass at once, since nothing is ever
   * in flight there.
   */
  private refuse(op: number, memory: Int32Array, at: number, stream: number, unmade: number): void {
    const { status, slots, issued } = this.shared;
    const body = at + RECORD_BODY;
    switch (op) {
      case OP.fence:
        Atomics.store(slots, memory[body]! * SLOT_WORDS + SLOT_FENCE, memory[body + 1]!);
        return;
      case OP.free:
        // Rather lost than freed in no order at all; what this stream allocated is not there
        // anyway.
        if (status[memory[body]!] === HANDLE.live) status[memory[body]!] = HANDLE.failed;
        this.execute(op, memory, at, stream);
        return;
      case OP.hold:
      case OP.poison:
      case OP.eventDestroy:
      case OP.captureJoin:
      case OP.bodyEnd:
      case OP.conditionForget:
        this.execute(op, memory, at, stream);
        return;
      case OP.streamDestroy:
      case OP.printed:
        return;
      case OP.peerWait:
        Atomics.store(slots, stream * SLOT_WORDS + SLOT_CROSSED, memory[body + 2]!);
        return;
      case OP.alloc:
        status[memory[body]!] = HANDLE.failed;
        break;
      case OP.captureBegin:
        issued[stream * ISSUED_STRIDE + ISSUED_CAPTURING] = 1;
        break;
      case OP.captureEnd:
        issued[stream * ISSUED_STRIDE + ISSUED_CAPTURING] = 0;
        status[memory[body]!] = HANDLE.failed;
        break;
      case OP.record:
      case OP.wait:
        // The library's own: whoever waits for what failed has nothing to wait for.
        if (memory[at + RECORD_ROOT] === 0) return;
        break;
      default:
    }
    throw new UnmadeStreamError(unmade);
  }

  private launchConfig(memory: Int32Array, body: number, stream: number): LaunchConfig {
    const ex = body + 8;
    const flags = memory[ex + LAUNCH_EX.flags]!;
    const attrs: LaunchAttributes = {};
    if ((flags & LAUNCH_COOPERATIVE) !== 0) attrs.cooperative = true;
    if ((flags & LAUNCH_CLUSTER) !== 0) {
      attrs.clusterDim = [
        memory[ex + LAUNCH_EX.clusterX]!,
        memory[ex + LAUNCH_EX.clusterY]!,
        memory[ex + LAUNCH_EX.clusterZ]!,
      ];
    }
    if ((flags & LAUNCH_PROGRAMMATIC) !== 0) attrs.programmaticStreamSerialization = true;
    if ((flags & LAUNCH_PRIORITY) !== 0) attrs.priority = memory[ex + LAUNCH_EX.priority]!;
    return {
      gridDimX: memory[body + 1]!,
      gridDimY: memory[body + 2]!,
      gridDimZ: memory[body + 3]!,
      blockDimX: memory[body + 4]!,
      blockDimY: memory[body + 5]!,
      blockDimZ: memory[body + 6]!,
      sharedMemBytes: memory[body + 7]!,
      hStream: this.shared.streams[stream]!,
      attrs,
    };
  }

  private memset(address: number, memory: Int32Array, body: number, stream: number): void {
    const { driver } = this;
    const bits = memory[body + 3]!;
    const value = memory[body + 4]!;
    const width = int64(memory, body + 5);
    const height = memory[body + 7]!;
    const pitch = memory[body + 8]!;
    if (width === 0) return;
    if (height === 0) {
      if (bits === 8) driver.cuMemsetD8Async(address, value & 0xff, width, stream);
      else if (bits === 16) driver.cuMemsetD16Async(address, value & 0xffff, width, stream);
      else driver.cuMemsetD32Async(address, value >>> 0, width, stream);
    } else if (bits === 8)
      driver.cuMemsetD2D8Async(address, pitch, value & 0xff, width, height, stream);
    else if (bits === 16)
      driver.cuMemsetD2D16Async(address, pitch, value & 0xffff, width, height, stream);
    else driver.cuMemsetD2D32Async(address, pitch, value >>> 0, width, height, stream);
  }

  private fail(
    error: unknown,
    op: number,
    memory: Int32Array,
    at: number,
    stream: number,
    root: number,
  ): void {
    const id = this.nextFailure();
    const failure: Failure =
      error instanceof PoisonedError || error instanceof UnmadeStreamError
        ? {
            id,
            root,
            stream,
            result: 0,
            resultName: '',
            call: OP_CALLS[op] ?? '',
            message: error.message,
            cause: error.failure,
            ...(error instanceof UnmadeStreamError
              ? { unmade: true }
              : error.peer === undefined
                ? {}
                : { causePeer: error.peer }),
          }
        : { id, root, stream, ...describeFailure(error, OP_CALLS[op] ?? '') };
    if (isSticky(failure.result)) {
      this.lose(failure);
      return;
    }
    const reason = failure.causePeer === undefined ? (failure.cause ?? id) : id;
    if (root !== 0) {
      this.failedRoots.set(root, reason);
      if (this.failedRoots.size > 4096)
        this.failedRoots.delete(this.failedRoots.keys().next().value as number);
    }
    if (op === OP.streamCreate) {
      const base = memory[at + RECORD_BODY]! * ISSUED_STRIDE;
      this.shared.issued[base + ISSUED_UNMADE] = id;
      // The launch that would be the last of its block is one that the short way leaves to
      // dispatch; so is each of these.
      this.shared.issued[base + ISSUED_LAUNCHES] = MARKER_INTERVAL - 1;
    }
    const { values } = this.shared;
    const written = this.isCapturing(stream) ? [] : writtenHandles(op, memory, at);
    const foreign = written.flatMap((handle) => {
      const elsewhere =
        this.failure[handle] === FOREIGN ? this.peers.nextFailure(values[handle]!) : undefined;
      return elsewhere === undefined ? [] : [{ handle, ...elsewhere }];
    });
    if (foreign.length > 0) failure.elsewhere = foreign.map(({ peer, id }) => ({ peer, id }));
    // Told before it shows: whoever meets the poison finds the reason.
    this.host.failed(failure);
    // What the command would have written is undefined from here on, for the first reason in the
    // chain.
    this.poison(written, reason);
    for (const { handle, id: theirs } of foreign) this.peers.poison(values[handle]!, theirs);
  }

  /** A failure of something that writes no memory. */
  private failWithout(error: unknown, op: number, stream: number, root = 0): void {
    const failure: Failure = {
      id: this.nextFailure(),
      root,
      stream,
      ...describeFailure(error, OP_CALLS[op] ?? ''),
    };
    if (isSticky(failure.result)) this.lose(failure);
    else this.host.failed(failure);
  }

  /** Marks the device lost; whatever is queued is skipped from here on. */
  lose(failure: Failure): void {
    if (Atomics.compareExchange(this.shared.control, WORD.lost, 0, failure.result) === 0)
      this.host.lost(failure);
  }

  nextFailure(): number {
    return Atomics.add(this.shared.control, WORD.failures, 1) + 1;
  }

  /** Marks memory of this device undefined. */
  private poison(written: readonly number[], id: number): void {
    const { failure } = this;
    for (const handle of written) if (failure[handle] !== FOREIGN) failure[handle] = id;
  }
}

/** Whether it is a launch that {@link Decoder.launchLines} can make. */
function isLine(header: number): boolean {
  const word = header & 0xffff;
  return word === OP.launchLine || word === OP.launchGrid;
}

/** The event that a command of this kind names; 0 for any other command. */
function operandOf(op: number, memory: Int32Array, at: number): number {
  return (memory[at]! & 0xff) === op ? memory[at + RECORD_BODY]! : 0;
}

/**
 * The number of the capture, or of the body of a conditional node, that a command ends; 0 for any
 * other command.
 */
function endOf(memory: Int32Array, at: number): number {
  const op = memory[at]! & 0xff;
  return op === OP.captureEnd
    ? memory[at + RECORD_BODY + 1]!
    : op === OP.bodyEnd
      ? memory[at + RECORD_BODY + 2]!
      : 0;
}

/** The memory that a command uses: handle | access << ACCESS_SHIFT of each. */
function operandsOf(op: number, memory: Int32Array, at: number): number[] {
  const body = at + RECORD_BODY;
  /** `count` words from `first` on, `stride` apart. */
  const words = (first: number, count: number, stride: number): number[] =>
    Array.from({ length: count }, (_, i) => memory[first + i * stride]!);
  switch (op) {
    case OP.launchLine:
    case OP.launchGrid: {
      const packed = body + (op === OP.launchLine ? LINE_PACKED : GRID_PACKED);
      return words(packed + 1, memory[packed]! & 0xffff, 1).map(
        (word) => (word & LINE_HANDLE_MASK) | (((word >>> LINE_ACCESS_SHIFT) & 7) << ACCESS_SHIFT),
      );
    }
    case OP.launch:
    case OP.launchEx: {
      const head = op === OP.launch ? body + 8 : body + 8 + LAUNCH_EX.words;
      return words(head + 1, memory[head]! & 0xffff, 2);
    }
    case OP.libraryCall:
      return words(body + 2, memory[body + 1]! & 0xffff, 2);
    case OP.graphLaunch:
      return words(body + 2, memory[body + 1]!, 1);
    case OP.copy:
      return [memory[body]!, memory[body + 3]!];
    case OP.copy2D:
      return [memory[body]!, memory[body + 4]!];
    case OP.copy3D:
      return [memory[body]!, memory[body + 5]!];
    case OP.memset:
    case OP.writeValue:
    case OP.waitValue:
    case OP.prefetch:
      return [memory[body]!];
    default:
      return [];
  }
}

/**
 * The handles of what a command writes. A copy into staging has no access of its own: staging
 * belongs to all transfers, and only the operation fails.
 */
function writtenHandles(op: number, memory: Int32Array, at: number): number[] {
  if (op === OP.alloc || op === OP.eventCreate || op === OP.captureEnd)
    return [memory[at + RECORD_BODY]! & HANDLE_MASK];
  return operandsOf(op, memory, at)
    .filter((word) => ((word >>> ACCESS_SHIFT) & ACCESS_WRITE) !== 0)
    .map((word) => word & HANDLE_MASK);
}

/** A 64-bit value of a command, low half first. */
function bigInt64(memory: Int32Array, at: number): bigint {
  return BigInt(memory[at]! >>> 0) | (BigInt(memory[at + 1]! >>> 0) << 32n);
}
