/**
 * Streams that wait. The decoder never blocks: the commands of such a stream are set aside, in
 * order, until its wait is over; other streams continue.
 */
import { OP, RECORD_BODY, RECORD_EVENT } from '../commands.js';
import { endedCapture } from '../commands/captures.js';
import { HANDLE, SLOT_ROOM, SLOT_WORDS, WORD } from '../layout.js';
import type { SharedState } from '../layout.js';
import type { Peers } from '../peers.js';
import type { PrintedText } from '../printed-text.js';
import { RecordQueue } from '../record-queue.js';
import { peek } from '../shared-words.js';
import { MARKERS_OUTSTANDING } from './launch-limit.js';
import type { LaunchLimit } from './launch-limit.js';
import type { SetAside } from './set-aside.js';
import type { Wait } from './wait.js';

interface Parked {
  readonly wait: Wait;
  readonly records: RecordQueue;
}

export class Parking {
  /** The parked streams by slot. */
  readonly streams = new Map<number, Parked>();
  private readonly shared: SharedState;
  private readonly aside: SetAside;
  private readonly limit: LaunchLimit;
  private readonly peers: Peers;
  private readonly text: PrintedText | undefined;

  constructor(
    shared: SharedState,
    aside: SetAside,
    limit: LaunchLimit,
    peers: Peers,
    text: PrintedText | undefined,
  ) {
    this.shared = shared;
    this.aside = aside;
    this.limit = limit;
    this.peers = peers;
    this.text = text;
  }

  /** The number of streams that wait, or have unprinted text. */
  get count(): number {
    return this.streams.size + (this.text?.streams ?? 0);
  }

  /**
   * Publishes that number. While it is not 0 the JavaScript thread leaves the ring alone: only this
   * decoder has the state of the waits.
   */
  publish(): void {
    Atomics.store(this.shared.control, WORD.parked, this.count);
  }

  /** Sets a command aside where its stream is parked. Returns whether it is. */
  takes(stream: number, memory: Int32Array, at: number): boolean {
    const parked = this.streams.get(stream);
    if (parked === undefined) return false;
    this.setAside(parked, memory, at);
    return true;
  }

  /** Parks a stream at the command that has to wait. */
  park(wait: Wait, stream: number, memory: Int32Array, at: number): void {
    const parked: Parked = { wait, records: new RecordQueue() };
    this.streams.set(stream, parked);
    this.publish();
    if (!wait.consumed) this.setAside(parked, memory, at);
  }

  /**
   * Lets streams continue where they may. `dispatch` executes one command and returns what its
   * stream has to wait for, if anything. Returns whether a stream continued.
   */
  resume(dispatch: (memory: Int32Array, at: number) => Wait | undefined): boolean {
    const { text } = this;
    let progress = text !== undefined && text.streams !== 0 && text.settle(this.isLost);
    for (const [stream, parked] of this.streams) {
      if (!this.mayContinue(parked, stream)) continue;
      progress = true;
      this.streams.delete(stream);
      this.resumeStream(stream, parked.records, dispatch);
    }
    this.publish();
    return progress;
  }

  private resumeStream(
    stream: number,
    records: RecordQueue,
    dispatch: (memory: Int32Array, at: number) => Wait | undefined,
  ): void {
    const { aside } = this;
    while (records.length > 0) {
      const { memory, at } = records;
      const event = memory[at + RECORD_EVENT]!;
      const recorded = eventOf(OP.record, memory, at);
      const waited = eventOf(OP.wait, memory, at);
      const ended = endedCapture(memory[at]! & 0xff, memory, at + RECORD_BODY);
      const again = dispatch(memory, at);
      // A hold is consumed when it parks the stream; any other command that parks it stays in its
      // place.
      if (again === undefined || again.consumed) {
        records.shift();
        if (recorded !== 0) aside.recordResumed(recorded);
        if (event !== 0) aside.recordResumed(event);
        if (waited !== 0) aside.waitResumed(waited);
        if (ended !== 0) aside.endResumed(ended);
      }
      if (again === undefined) continue;
      this.streams.set(stream, { wait: again, records });
      return;
    }
  }

  /** Whether a stream is held. The release of a hold rings the doorbell. */
  isHeld(stream: number): boolean {
    return this.streams.get(stream)?.wait.reason === 'hold';
  }

  /**
   * Whether there are streams that wait, and each of them is held or waits for a record of a held
   * one.
   */
  get onlyHeld(): boolean {
    if (this.streams.size === 0 || this.count !== this.streams.size) return false;
    for (const { wait } of this.streams.values())
      if (wait.reason !== 'hold' && wait.reason !== 'event') return false;
    return true;
  }

  /** Whether a parked stream may continue. */
  get mayAnyContinue(): boolean {
    for (const [stream, parked] of this.streams) if (this.mayContinue(parked, stream)) return true;
    return false;
  }

  private mayContinue({ wait }: Parked, stream: number): boolean {
    if (this.isLost) return true;
    const { on, value } = wait;
    switch (wait.reason) {
      case 'hold':
        return !this.aside.isHeld(on, value);
      case 'memory':
        return ((Atomics.load(this.shared.slots, on * SLOT_WORDS + SLOT_ROOM) - value) | 0) >= 0;
      case 'peer':
        return this.peers.ready(on, value);
      case 'event':
        return this.aside.isRecordIssued(on, value);
      case 'made':
        return this.shared.status[on] !== HANDLE.pending;
      case 'capture':
        return !this.aside.isEndAside(on);
      case 'launches':
        return this.limit.outstanding(stream) < MARKERS_OUTSTANDING;
    }
  }

  private get isLost(): boolean {
    return peek(this.shared.control, WORD.lost) !== 0;
  }

  private setAside({ records }: Parked, memory: Int32Array, at: number): void {
    const { aside } = this;
    // A record may have an event of its own stream after the one that it names.
    const event = memory[at + RECORD_EVENT]!;
    const recorded = eventOf(OP.record, memory, at);
    const waited = eventOf(OP.wait, memory, at);
    const ended = endedCapture(memory[at]! & 0xff, memory, at + RECORD_BODY);
    if (ended !== 0) aside.endAside(ended);
    if (recorded !== 0) aside.recordAside(recorded);
    if (event !== 0) aside.recordAside(event);
    if (waited !== 0) memory[at + RECORD_BODY + 1] = aside.waitAside(waited);
    records.push(memory, at, memory[at]! >>> 16, memory[at]!);
  }
}

/** The event that a command of this kind names; 0 for any other command. */
function eventOf(op: number, memory: Int32Array, at: number): number {
  return (memory[at]! & 0xff) === op ? memory[at + RECORD_BODY]! : 0;
}
