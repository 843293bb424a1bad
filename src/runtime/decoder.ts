/**
 * The decoder: reads commands from the ring and makes driver calls of them. It runs on the runtime thread, or, while
 * that thread sleeps, on the JS thread itself. Both instances work on the same shared tables, so the only state kept
 * here is that of parked streams, and the JS thread takes the decoder only while there are none.
 *
 * It never waits. A stream that is held, that waits for a parked event, or that has too many unfinished launches has
 * its own commands set aside, in order, until {@link Decoder.resumeParked} finds that they may go on; other streams
 * are not affected.
 */
import type { Driver, LaunchAttributes, LaunchConfig } from '../driver/driver.js';
import { DriverError } from '../driver/error.js';
import { CUresult } from '../driver/result.js';
import {
  ACCESS_SHIFT, ACCESS_WHOLE, ACCESS_WRITE, COPY_DEVICE_TO_HOST, COPY_HOST_TO_DEVICE, COPY_PEER, FLAG_BYPASS, HANDLE_MASK,
  LAUNCH_CLUSTER, LAUNCH_COOPERATIVE, LAUNCH_EX, LAUNCH_PRIORITY, LAUNCH_PROGRAMMATIC, LINE_ACCESS_SHIFT, LINE_HANDLE_MASK,
  LINE_WORD_SHIFT, OP, OP_CALLS, RECORD_BODY, RECORD_EVENT, RECORD_ROOT, RECORD_STREAM,
} from './commands.js';
import { Announcements } from './announcements.js';
import { copy2D, copy3D, int64 } from './copy-shapes.js';
import { PoisonedError, describeFailure, isSticky } from './failure.js';
import type { Failure } from './failure.js';
import {
  FOREIGN, HANDLE, ISSUED_CAPTURING, ISSUED_LAUNCHES, ISSUED_MARKERS, ISSUED_STRIDE, RING_WORDS, SLOT_CROSSED, SLOT_FENCE, SLOT_HOLD,
  SLOT_MARKER, SLOT_REACHED, SLOT_WORDS, WORD, wakeJs,
} from './layout.js';
import type { SharedState } from './layout.js';
import { Peers } from './peers.js';
import { RecordQueue } from './record-queue.js';

/**
 * Launches between two markers, and markers that may be outstanding: a stream may have 639 unfinished launches (four
 * intervals and all but one of the next). The driver blocks at 1,021 (measured, driver 580), so there is room for
 * copies and waits.
 */
const MARKER_INTERVAL = 128;
const MARKERS_OUTSTANDING = 4;
const RING_MASK = RING_WORDS - 1;
/** Commands decoded in one go, before the thread looks at other things. */
const DRAIN_LIMIT = 512;
/** How often the end of a short piece of work is asked for before a fence is put behind it: 15 to 20 µs. */
const SETTLE_QUERIES = 100;
const TWO32 = 4294967296;

/** What the decoder asks of the thread that it runs on. */
export interface DecoderHost {
  /** A command failed; the failure has its number already. */
  failed(failure: Failure): void;
  /** The context met a fault and cannot be used again. */
  lost(failure: Failure): void;
  /** A procedure call waits in the message port. */
  call(): void;
}

/** What a stream waits for. */
interface Wait {
  readonly reason: 'hold' | 'event' | 'launches' | 'peer';
  /** slot of the hold, handle of the event, or number of the device whose event `value` is */
  readonly on: number;
  readonly value: number;
  /** Whether the command that waits is done with the waiting: a hold is, anything else is carried out afterwards. */
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
  /** Device address of slot 0. */
  private readonly slotsAddress: number;
  private readonly host: DecoderHost;
  private readonly limitLaunches: boolean;
  /** Whether this is the JS thread's decoder, which only stands in for the sleeping runtime thread. */
  private readonly visiting: boolean;
  private readonly parked = new Map<number, Parked>();
  /**
   * Events whose record is parked: the number of the last record that was set aside, and of the last that was taken up
   * again. Numbers go up by one within an entry and are never those of an earlier entry: a wait may outlive one.
   */
  private readonly parkedEvents = new Map<number, { aside: number; resumed: number }>();
  private recordsAside = 0;
  /** How many waits for each event are set aside; such an event is destroyed behind the last of them. */
  private readonly asideWaits = new Map<number, number>();
  private readonly doomedEvents = new Set<number>();
  private readonly failedRoots = new Set<number>();
  /** A fence that was asked for and not yet issued: its slot, or -1. See {@link settle}. */
  private lazySlot = -1;
  /** Keeps the look-ahead from being optimised away. */
  ahead = 0;
  private lazyStream = 0;
  private lazyValue = 0;

  constructor(driver: Driver, shared: SharedState, slotsAddress: number, limitLaunches: boolean, host: DecoderHost, visiting = false) {
    this.driver = driver;
    this.shared = shared;
    this.peers = new Peers(driver);
    this.announcements = new Announcements(driver, shared);
    this.slotsAddress = slotsAddress;
    this.limitLaunches = limitLaunches;
    this.host = host;
    this.visiting = visiting;
  }

  /** Whether a command waits in the ring. */
  get hasWork(): boolean {
    const { control, ring } = this.shared;
    return Atomics.load(ring, Atomics.load(control, WORD.tail) & RING_MASK) !== 0;
  }

  /**
   * Decodes what is in the ring. Returns whether there was anything. On the JS thread it stops before a command that
   * may take long or would have to be set aside; the runtime thread goes on from there.
   */
  drain(): boolean {
    const { control, ring } = this.shared;
    let tail = Atomics.load(control, WORD.tail);
    let at = tail & RING_MASK;
    let header = Atomics.load(ring, at);
    if (header === 0) return false;
    for (let count = 1; ; count++) {
      if (this.visiting && !this.mayRunHere(ring, at)) break;
      if (this.lazySlot !== -1) this.writeFence();
      // The next record's line is on its way from the other core while the driver works.
      const next = (tail + (header >>> 16)) | 0;
      this.ahead = ring[(next + 16) & RING_MASK]! ^ ring[next & RING_MASK]!;
      if ((header & 0xff) !== OP.launchLine || !this.launchLine(ring, at)) this.dispatch(ring, at, header >>> 16);
      tail = next;
      at = tail & RING_MASK;
      header = Atomics.load(ring, at);
      if (header === 0 || count === DRAIN_LIMIT) break;
      // The JS thread reads it only when it runs out of room.
      if ((count & 15) === 0) Atomics.store(control, WORD.tail, tail);
    }
    Atomics.store(control, WORD.tail, tail);
    return true;
  }

  /**
   * The last fence, where nothing has come after it: asks for the stream's end for a few microseconds and writes the
   * slot from here. What is short ends sooner that way than a fence behind it can be issued (0.7 µs for the call, and
   * the device has to fetch it); what is long gets its fence.
   */
  settle(): void {
    if (this.lazySlot === -1) return;
    const { slots, streams } = this.shared;
    const stream = streams[this.lazyStream]!;
    for (let queries = 0; queries < SETTLE_QUERIES && !this.hasWork; queries++) {
      const result = this.driver.cuStreamQuery(stream);
      if (result === CUresult.CUDA_SUCCESS) {
        Atomics.store(slots, this.lazySlot * SLOT_WORDS + SLOT_FENCE, this.lazyValue);
        this.lazySlot = -1;
        return;
      }
      if (result !== CUresult.CUDA_ERROR_NOT_READY) break;
    }
    this.writeFence();
  }

  private writeFence(): void {
    const slot = this.lazySlot;
    this.lazySlot = -1;
    if (this.isLost) return;
    try {
      this.driver.cuStreamWriteValue32(
        this.shared.streams[this.lazyStream]!, this.slotsAddress + slot * SLOT_WORDS * 4, this.lazyValue >>> 0, 0,
      );
    } catch (error) {
      this.failWithout(error, OP.fence, this.lazyStream);
    }
  }

  /** The usual launch, where nothing stands in its way. Returns false where {@link dispatch} has to look at it. */
  private launchLine(ring: Int32Array, at: number): boolean {
    if (this.parked.size !== 0 || this.failedRoots.size !== 0 || this.isLost) return false;
    const { issued, failure, values, streams } = this.shared;
    const stream = ring[at + RECORD_STREAM]!;
    const base = stream * ISSUED_STRIDE + ISSUED_LAUNCHES;
    const launches = issued[base]!;
    if ((launches & (MARKER_INTERVAL - 1)) === MARKER_INTERVAL - 1) return false;
    const packed = ring[at + RECORD_BODY + 4]!;
    const refs = at + RECORD_BODY + 5;
    const params = refs + (packed & 0xffff);
    for (let ref = refs; ref < params; ref++) {
      const word = ring[ref]!;
      const handle = word & LINE_HANDLE_MASK;
      if (failure[handle] !== 0) return false;
      const place = params + (word >>> LINE_WORD_SHIFT);
      const address = values[handle]! + (ring[place]! >>> 0) + ring[place + 1]! * TWO32;
      ring[place] = address | 0;
      ring[place + 1] = (address / TWO32) | 0;
    }
    try {
      this.driver.cuLaunchKernel(
        values[ring[at + RECORD_BODY]!]!, ring[at + RECORD_BODY + 1]!, 1, 1, ring[at + RECORD_BODY + 2]!, 1, 1,
        ring[at + RECORD_BODY + 3]!, streams[stream]!, ring, params, packed >>> 16,
      );
      issued[base] = launches + 1;
    } catch (error) {
      this.fail(error, OP.launchLine, ring, at, stream, ring[at + RECORD_ROOT]!);
    }
    const event = ring[at + RECORD_EVENT]!;
    if (event !== 0) this.recordEvent(event, stream, ring[at + RECORD_ROOT]!);
    return true;
  }

  /** Lets parked streams go on where they may. Returns whether one did. */
  resumeParked(): boolean {
    let progress = false;
    for (const [stream, queue] of this.parked) {
      if (!this.mayResume(queue, stream)) continue;
      progress = true;
      this.parked.delete(stream);
      const { records } = queue;
      while (records.length > 0) {
        const { memory, at } = records;
        const event = this.eventOf(memory, at);
        const waited = (memory[at]! & 0xff) === OP.wait ? memory[at + RECORD_BODY]! : 0;
        const again = this.dispatch(memory, at, memory[at]! >>> 16, true);
        // A hold is consumed when it parks the stream; any other command that parks it stays where it is.
        if (again === undefined || again.consumed) {
          records.shift();
          if (event !== 0) this.recordResumed(event);
          if (waited !== 0) this.waitResumed(waited);
        }
        if (again === undefined) continue;
        this.parked.set(stream, { wait: again, records });
        break;
      }
    }
    Atomics.store(this.shared.control, WORD.parked, this.parked.size);
    return progress;
  }

  private get isLost(): boolean {
    return Atomics.load(this.shared.control, WORD.lost) !== 0;
  }

  get parkedStreams(): number {
    return this.parked.size;
  }

  /** Whether the JS thread may run this command itself: nothing that allocates, loads, captures or parks. */
  private mayRunHere(memory: Int32Array, at: number): boolean {
    const op = memory[at]! & 0xff;
    if (op === OP.launchLine || op === OP.launch) {
      return this.markersOutstanding(memory[at + RECORD_STREAM]!) < MARKERS_OUTSTANDING;
    }
    return op === OP.fence || op === OP.copy || op === OP.memset || op === OP.record || op === OP.wait || op === OP.pad;
  }

  private mayResume({ wait }: Parked, stream: number): boolean {
    if (this.isLost) return true;
    if (wait.reason === 'hold') return this.held(wait.on, wait.value) <= 0;
    if (wait.reason === 'peer') return this.peers.ready(wait.on, wait.value);
    if (wait.reason === 'event') return this.recordIssued(wait.on, wait.value);
    return this.markersOutstanding(stream) < MARKERS_OUTSTANDING;
  }

  /** Whether record number `value` of the event, which was set aside, has been issued. */
  private recordIssued(event: number, value: number): boolean {
    const parked = this.parkedEvents.get(event);
    return parked === undefined || ((parked.resumed - value) | 0) >= 0;
  }

  private held(slot: number, value: number): number {
    return (value - Atomics.load(this.shared.slots, slot * SLOT_WORDS + SLOT_HOLD)) | 0;
  }

  private markersOutstanding(stream: number): number {
    const { issued, slots } = this.shared;
    return (issued[stream * ISSUED_STRIDE + ISSUED_MARKERS]! - Atomics.load(slots, stream * SLOT_WORDS + SLOT_MARKER)) | 0;
  }

  private eventOf(memory: Int32Array, at: number): number {
    return (memory[at]! & 0xff) === OP.record ? memory[at + RECORD_BODY]! : memory[at + RECORD_EVENT]!;
  }

  private recordAside(event: number): void {
    const parked = this.parkedEvents.get(event);
    if (parked === undefined) this.parkedEvents.set(event, { aside: (this.recordsAside + 1) | 0, resumed: this.recordsAside });
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
    this.driver.cuEventDestroy(event);
  }

  private setAside(queue: Parked, memory: Int32Array, at: number, length: number): void {
    const event = this.eventOf(memory, at);
    if (event !== 0) this.recordAside(event);
    if ((memory[at]! & 0xff) === OP.wait) {
      const waited = memory[at + RECORD_BODY]!;
      this.asideWaits.set(waited, (this.asideWaits.get(waited) ?? 0) + 1);
      memory[at + RECORD_BODY + 1] = this.parkedEvents.get(waited)?.aside ?? this.recordsAside;
    }
    queue.records.push(memory, at, length, memory[at]!);
  }

  /**
   * Carries out one command, or parks its stream. `resumed` says that the command comes from its stream's queue and is
   * kept there by the caller. Returns why the stream was parked, if it was.
   */
  private dispatch(memory: Int32Array, at: number, length: number, resumed = false): Wait | undefined {
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
    if (wait !== undefined) {
      if (resumed) return wait;
      const queue: Parked = { wait, records: new RecordQueue() };
      this.parked.set(stream, queue);
      Atomics.store(this.shared.control, WORD.parked, this.parked.size);
      if (!wait.consumed) this.setAside(queue, memory, at, length);
      return wait;
    }
    const root = memory[at + RECORD_ROOT]!;
    if (this.failedRoots.size === 0 || !this.failedRoots.has(root) || op === OP.fence || op === OP.free || op === OP.captureEnd) {
      try {
        this.execute(op, memory, at, stream);
      } catch (error) {
        this.fail(error, op, memory, at, stream, root);
        if (this.isLost) return undefined;
      }
    }
    const event = memory[at + RECORD_EVENT]!;
    if (event !== 0) this.recordEvent(event, stream, root);
    return undefined;
  }

  private recordEvent(event: number, stream: number, root: number): void {
    try {
      this.driver.cuEventRecord(this.shared.values[event]!, this.shared.streams[stream]!);
    } catch (error) {
      this.failWithout(error, OP.record, stream, root);
    }
  }

  /** What this command has to wait for; undefined where it may be carried out. */
  private mustWait(op: number, memory: Int32Array, at: number, stream: number, resumed: boolean): Wait | undefined {
    // Stream memory operations take their place in the stream's queue as launches do.
    if (op === OP.launchLine || op === OP.launch || op === OP.launchEx || op === OP.graphLaunch || op === OP.waitValue || op === OP.writeValue) {
      const { issued } = this.shared;
      const base = stream * ISSUED_STRIDE;
      const launches = issued[base + ISSUED_LAUNCHES]!;
      if ((launches & (MARKER_INTERVAL - 1)) !== MARKER_INTERVAL - 1) return undefined;
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
      return this.recordIssued(event, value) ? undefined : { reason: 'event', on: event, value, consumed: false };
    }
    if (op === OP.peerWait) {
      const peer = memory[at + RECORD_BODY]!;
      const event = memory[at + RECORD_BODY + 1]!;
      return this.peers.ready(peer, event) ? undefined : { reason: 'peer', on: peer, value: event, consumed: false };
    }
    if (op === OP.hold) {
      const slot = memory[at + RECORD_BODY]!;
      const value = memory[at + RECORD_BODY + 1]!;
      // Whoever holds the stream sends its commands past the hold from here on, not past what is in front of it.
      Atomics.store(this.shared.slots, slot * SLOT_WORDS + SLOT_REACHED, value);
      wakeJs(this.shared.control);
      if (this.held(slot, value) <= 0) return undefined;
      return { reason: 'hold', on: slot, value, consumed: true };
    }
    return undefined;
  }

  /** Address of an operand; throws where an earlier failure poisons it. */
  private address(word: number): number {
    const { failure, status, values } = this.shared;
    const handle = word & HANDLE_MASK;
    const poison = failure[handle]!;
    if (poison !== 0) {
      if (poison === FOREIGN) return this.peers.address(values[handle]!);
      if ((word >>> ACCESS_SHIFT & ACCESS_WHOLE) === 0 || status[handle] === HANDLE.failed) throw new PoisonedError(poison);
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
    const { issued, streams } = this.shared;
    const base = stream * ISSUED_STRIDE;
    const launches = (issued[base + ISSUED_LAUNCHES]! + 1) | 0;
    issued[base + ISSUED_LAUNCHES] = launches;
    if ((launches & (MARKER_INTERVAL - 1)) !== 0 || !this.limitLaunches || issued[base + ISSUED_CAPTURING] === 1) return;
    const marker = (issued[base + ISSUED_MARKERS]! + 1) | 0;
    issued[base + ISSUED_MARKERS] = marker;
    this.driver.cuStreamWriteValue32(streams[stream]!, this.slotsAddress + stream * SLOT_WORDS * 4 + SLOT_MARKER * 4, marker >>> 0, 0);
  }

  /** Turns the operands of a launch into addresses, in place. Returns the index of the first parameter word. */
  private resolveParams(memory: Int32Array, refs: number, count: number): number {
    const params = refs + count * 2;
    for (let ref = refs; ref < params; ref += 2) {
      this.resolve(memory, params + memory[ref + 1]!, memory[ref]!);
    }
    return params;
  }

  /** Adds an operand's address to the offset that stands in its parameter. */
  private resolve(memory: Int32Array, place: number, operand: number): void {
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
        const packed = memory[body + 4]!;
        const refs = body + 5;
        const params = refs + (packed & 0xffff);
        for (let ref = refs; ref < params; ref++) {
          const word = memory[ref]!;
          const access = (word >>> LINE_ACCESS_SHIFT) & 7;
          this.resolve(memory, params + (word >>> LINE_WORD_SHIFT), (word & LINE_HANDLE_MASK) | (access << ACCESS_SHIFT));
        }
        driver.cuLaunchKernel(
          values[memory[body]!]!, memory[body + 1]!, 1, 1, memory[body + 2]!, 1, 1, memory[body + 3]!, streams[stream]!,
          memory, params, packed >>> 16,
        );
        this.countLaunch(stream);
        return;
      }
      case OP.launch: {
        const packed = memory[body + 8]!;
        const params = this.resolveParams(memory, body + 9, packed & 0xffff);
        driver.cuLaunchKernel(
          values[memory[body]!]!,
          memory[body + 1]!, memory[body + 2]!, memory[body + 3]!, memory[body + 4]!, memory[body + 5]!, memory[body + 6]!,
          memory[body + 7]!, streams[stream]!, memory, params, packed >>> 16,
        );
        this.countLaunch(stream);
        return;
      }
      case OP.fence: {
        const slot = memory[body]!;
        if (this.limitLaunches) {
          // The ring's loop sees to the fence before; a parked stream's commands come here without it.
          if (this.lazySlot !== -1) this.writeFence();
          this.lazySlot = slot;
          this.lazyStream = stream;
          this.lazyValue = memory[body + 1]!;
          return;
        }
        driver.cuStreamWriteValue32(streams[stream]!, this.slotsAddress + slot * SLOT_WORDS * 4, memory[body + 1]! >>> 0, 0);
        return;
      }
      case OP.launchEx: {
        const ex = body + 8;
        const packed = memory[ex + LAUNCH_EX.words]!;
        const params = this.resolveParams(memory, ex + LAUNCH_EX.words + 1, packed & 0xffff);
        driver.cuLaunchKernelEx(this.launchConfig(memory, body, stream), values[memory[body]!]!, memory, params, packed >>> 16);
        this.countLaunch(stream);
        return;
      }
      case OP.copy: {
        const bytes = int64(memory, body + 6);
        const src = this.address(memory[body + 3]!) + int64(memory, body + 4);
        const dst = this.address(memory[body]!) + int64(memory, body + 1);
        const kind = memory[body + 8]!;
        if (bytes === 0) return;
        if (kind === COPY_HOST_TO_DEVICE) driver.cuMemcpyHtoDAsync(dst, src, bytes, streams[stream]!);
        else if (kind === COPY_DEVICE_TO_HOST) driver.cuMemcpyDtoHAsync(dst, src, bytes, streams[stream]!);
        else if (kind === COPY_PEER) {
          const to = this.context(memory[body]!);
          const from = this.context(memory[body + 3]!);
          // Two threads may drive one device: then the two have one context.
          if (to === from) driver.cuMemcpyDtoDAsync(dst, src, bytes, streams[stream]!);
          else this.peers.heedOwnFaults(streams[stream]!, () => driver.cuMemcpyPeerAsync(dst, to, src, from, bytes, streams[stream]!));
        }
        else driver.cuMemcpyDtoDAsync(dst, src, bytes, streams[stream]!);
        return;
      }
      case OP.memset:
        this.memset(this.address(memory[body]!) + int64(memory, body + 1), memory, body, streams[stream]!);
        return;
      case OP.alloc: {
        const handle = memory[body]!;
        const bytes = int64(memory, body + 2);
        try {
          const pool = memory[body + 1]!;
          // A zero-length buffer has no memory and is never dereferenced.
          values[handle] =
            bytes === 0 ? 0
            : pool === 0 ? driver.cuMemAllocAsync(bytes, streams[stream]!)
            : driver.cuMemAllocFromPoolAsync(bytes, this.address(pool), streams[stream]!);
          status[handle] = HANDLE.live;
        } catch (error) {
          status[handle] = HANDLE.failed;
          throw error;
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
      case OP.graphLaunch:
        driver.cuGraphLaunch(this.address(memory[body]!), streams[stream]!);
        this.countLaunch(stream);
        return;
      case OP.streamCreate: {
        const slot = memory[body]!;
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
        // Relaxed: the second worker and other streams go on making their calls meanwhile.
        driver.cuStreamBeginCapture(streams[stream]!, 2);
        issued[stream * ISSUED_STRIDE + ISSUED_CAPTURING] = 1;
        return;
      case OP.captureEnd: {
        const handle = memory[body]!;
        issued[stream * ISSUED_STRIDE + ISSUED_CAPTURING] = 0;
        try {
          const graph = driver.cuStreamEndCapture(streams[stream]!);
          if (graph === 0) throw new DriverError('cuStreamEndCapture', 901, { detail: 'the capture was invalidated' });
          values[handle] = graph;
          status[handle] = HANDLE.live;
        } catch (error) {
          status[handle] = HANDLE.failed;
          throw error;
        }
        return;
      }
      case OP.call:
        this.host.call();
        return;
      case OP.copy2D:
        driver.cuMemcpy2DAsync(
          copy2D(memory, body, this.address(memory[body]!), this.address(memory[body + 4]!)), streams[stream]!,
        );
        return;
      case OP.copy3D: {
        const to = memory[body]!;
        const from = memory[body + 5]!;
        const box = copy3D(memory, body, this.address(to), this.address(from));
        const between = { ...box, dstContext: this.context(to), srcContext: this.context(from) };
        if (between.dstContext !== between.srcContext && memory[body + 13] === COPY_PEER) {
          this.peers.heedOwnFaults(streams[stream]!, () => driver.cuMemcpy3DPeerAsync(between, streams[stream]!));
        } else driver.cuMemcpy3DAsync(box, streams[stream]!);
        return;
      }
      case OP.writeValue: {
        const address = this.address(memory[body]!) + int64(memory, body + 1);
        if (memory[body + 5] === 32) driver.cuStreamWriteValue32(streams[stream]!, address, memory[body + 3]! >>> 0, 0);
        else driver.cuStreamWriteValue64(streams[stream]!, address, bigInt64(memory, body + 3), 0);
        this.countLaunch(stream);
        return;
      }
      case OP.waitValue: {
        const address = this.address(memory[body]!) + int64(memory, body + 1);
        const condition = memory[body + 6]!;
        if (memory[body + 5] === 32) driver.cuStreamWaitValue32(streams[stream]!, address, memory[body + 3]! >>> 0, condition);
        else driver.cuStreamWaitValue64(streams[stream]!, address, bigInt64(memory, body + 3), condition);
        this.countLaunch(stream);
        return;
      }
      case OP.announce:
        this.announcements.announce(memory[body]!, memory[body + 1] === 1, this.parkedEvents.has(memory[body]!));
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
          this.address(memory[body]!) + int64(memory, body + 1), int64(memory, body + 3), memory[body + 5]!, streams[stream]!,
        );
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

  private launchConfig(memory: Int32Array, body: number, stream: number): LaunchConfig {
    const ex = body + 8;
    const flags = memory[ex + LAUNCH_EX.flags]!;
    const attrs: LaunchAttributes = {};
    if ((flags & LAUNCH_COOPERATIVE) !== 0) attrs.cooperative = true;
    if ((flags & LAUNCH_CLUSTER) !== 0) {
      attrs.clusterDim = [memory[ex + LAUNCH_EX.clusterX]!, memory[ex + LAUNCH_EX.clusterY]!, memory[ex + LAUNCH_EX.clusterZ]!];
    }
    if ((flags & LAUNCH_PROGRAMMATIC) !== 0) attrs.programmaticStreamSerialization = true;
    if ((flags & LAUNCH_PRIORITY) !== 0) attrs.priority = memory[ex + LAUNCH_EX.priority]!;
    return {
      gridDimX: memory[body + 1]!, gridDimY: memory[body + 2]!, gridDimZ: memory[body + 3]!,
      blockDimX: memory[body + 4]!, blockDimY: memory[body + 5]!, blockDimZ: memory[body + 6]!,
      sharedMemBytes: memory[body + 7]!, hStream: this.shared.streams[stream]!, attrs,
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
    } else if (bits === 8) driver.cuMemsetD2D8Async(address, pitch, value & 0xff, width, height, stream);
    else if (bits === 16) driver.cuMemsetD2D16Async(address, pitch, value & 0xffff, width, height, stream);
    else driver.cuMemsetD2D32Async(address, pitch, value >>> 0, width, height, stream);
  }

  private fail(error: unknown, op: number, memory: Int32Array, at: number, stream: number, root: number): void {
    const id = this.nextFailure();
    const failure: Failure =
      error instanceof PoisonedError
        ? {
            id, root, stream, result: 0, resultName: '', call: OP_CALLS[op] ?? '', message: 'an operand is undefined', cause: error.failure,
            ...(error.peer === undefined ? {} : { causePeer: error.peer }),
          }
        : { id, root, stream, ...describeFailure(error, OP_CALLS[op] ?? '') };
    if (isSticky(failure.result)) {
      this.lose(failure);
      return;
    }
    if (root !== 0) {
      this.failedRoots.add(root);
      if (this.failedRoots.size > 4096) this.failedRoots.delete(this.failedRoots.values().next().value as number);
    }
    const { failure: poison, values } = this.shared;
    const written = writtenHandles(op, memory, at);
    const foreign = written.flatMap((handle) => {
      const elsewhere = poison[handle] === FOREIGN ? this.peers.nextFailure(values[handle]!) : undefined;
      return elsewhere === undefined ? [] : [{ handle, ...elsewhere }];
    });
    if (foreign.length > 0) failure.elsewhere = foreign.map(({ peer, id }) => ({ peer, id }));
    // Told before it shows: whoever meets the poison finds the reason.
    this.host.failed(failure);
    // What the command would have written is undefined from here on, for the first reason in the chain.
    const reason = failure.causePeer === undefined ? failure.cause ?? id : id;
    for (const handle of written) if (poison[handle] !== FOREIGN) poison[handle] = reason;
    for (const { handle, id: theirs } of foreign) this.peers.poison(values[handle]!, theirs);
  }

  /** A failure of something that writes no memory. */
  private failWithout(error: unknown, op: number, stream: number, root = 0): void {
    const failure: Failure = { id: this.nextFailure(), root, stream, ...describeFailure(error, OP_CALLS[op] ?? '') };
    if (isSticky(failure.result)) this.lose(failure);
    else this.host.failed(failure);
  }

  /** Marks the device lost; whatever is queued is skipped from here on. */
  lose(failure: Failure): void {
    if (Atomics.compareExchange(this.shared.control, WORD.lost, 0, failure.result) === 0) this.host.lost(failure);
  }

  nextFailure(): number {
    return Atomics.add(this.shared.control, WORD.failures, 1) + 1;
  }
}

/** The handles of what a command writes. */
function writtenHandles(op: number, memory: Int32Array, at: number): number[] {
  const body = at + RECORD_BODY;
  const written: number[] = [];
  const operand = (word: number): void => {
    if (((word >>> ACCESS_SHIFT) & ACCESS_WRITE) !== 0) written.push(word & HANDLE_MASK);
  };
  if (op === OP.launchLine) {
    const count = memory[body + 4]! & 0xffff;
    for (let i = 0; i < count; i++) {
      const word = memory[body + 5 + i]!;
      if (((word >>> LINE_ACCESS_SHIFT) & ACCESS_WRITE) !== 0) written.push(word & LINE_HANDLE_MASK);
    }
  } else if (op === OP.launch || op === OP.launchEx) {
    const head = op === OP.launch ? body + 8 : body + 8 + LAUNCH_EX.words;
    const count = memory[head]! & 0xffff;
    for (let i = 0; i < count; i++) operand(memory[head + 1 + i * 2]!);
    // A copy into staging has no access of its own: staging belongs to all transfers, and only the operation fails.
  } else if (op === OP.copy || op === OP.memset || op === OP.copy2D || op === OP.copy3D || op === OP.writeValue) operand(memory[body]!);
  else if (op === OP.alloc || op === OP.eventCreate || op === OP.captureEnd) written.push(memory[body]! & HANDLE_MASK);
  return written;
}

/** A 64-bit value of a command, low half first. */
function bigInt64(memory: Int32Array, at: number): bigint {
  return BigInt(memory[at]! >>> 0) | (BigInt(memory[at + 1]! >>> 0) << 32n);
}
