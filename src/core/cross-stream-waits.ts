/**
 * The waits of one stream for the work of other streams, of its own device or of another one. All
 * of them are on the device, by events: JavaScript does not wait.
 */
import { OP } from '../runtime/commands.js';
import type { CudaError } from '../ground/errors.js';
import { SLOT_CROSSED, SLOT_WORDS } from '../runtime/layout.js';
import { captureError } from './capture-error.js';
import { waitForEvent } from './driver-events.js';
import type { Event } from './event.js';
import type { SharedDevice } from './open-devices.js';
import type { Stream } from './stream.js';

export class CrossStreamWaits {
  private readonly stream: Stream;
  /** For each other stream, the operation up to which this stream waits for its work already. */
  private readonly waited = new Map<Stream, number>();
  /** The number of the last wait for another device. */
  private crossings: number;

  constructor(stream: Stream) {
    this.stream = stream;
    // The slot has the number of the last wait of the stream that had it before.
    this.crossings = Atomics.load(
      stream.runtime.shared.slots,
      stream.slot.index * SLOT_WORDS + SLOT_CROSSED,
    );
  }

  /** {@link Stream.wait}, for a stream. */
  forStream(other: Stream): void {
    const { stream } = this;
    if (other === stream) return;
    if (other.runtime !== stream.runtime) {
      other.check();
      if (stream.captureScope !== undefined || other.captureScope !== undefined)
        throw deviceInCapture();
      stream.checkInside();
      this.waitFor(other, other.mark);
      return;
    }
    if (other.captureScope !== undefined && stream.captureScope === undefined)
      other.captureScope.join(stream);
    if (stream.captureScope !== other.captureScope)
      throw captureError(
        'waiting for a stream outside the capture',
        'wait for it before the capture or before graph.launch()',
      );
    stream.checkInside();
    this.waitFor(other, other.mark);
  }

  /** {@link Stream.wait}, for an event. */
  forEvent(event: Event): void {
    const { stream } = this;
    event.check();
    if (event.device.runtime !== stream.runtime) {
      if (stream.captureScope !== undefined || event.scope !== undefined) throw deviceInCapture();
      stream.checkInside();
      const { handle } = event;
      const { shared } = event.device;
      shared.loans.settled();
      if (!event.reached) this.waitForDevice(shared, handle, () => event.loanEnded(handle));
      return;
    }
    if (event.scope !== undefined && stream.captureScope === undefined) event.scope.join(stream);
    stream.checkInside();
    if (stream.captureScope !== undefined) {
      if (!event.isRecorded) return;
      if (event.scope !== stream.captureScope)
        throw captureError(
          'waiting for an event that was recorded outside of the capture',
          'wait for it before the capture or before graph.launch(), or record it again on a ' +
            'stream of the capture',
        );
    }
    waitForEvent(stream, event.handle);
  }

  /** {@link Stream.waitFor} */
  waitFor(other: Stream, mark: number): void {
    const { stream } = this;
    const { runtime } = stream;
    // Streams of other devices may wait for a stream that a capture of its own device refuses.
    const isExcluded = other.capturing?.outside === true && other.runtime !== runtime;
    if (stream.capturing !== undefined || (other.capturing !== undefined && !isExcluded)) {
      if (stream.captureScope !== undefined && stream.capturing === other.capturing)
        stream.captureScope.depend(stream, other);
      return;
    }
    // Operations that are known to have ended need no entry among the waits.
    if (mark <= other.done) return;
    const waited = this.waited.get(other);
    if (waited !== undefined && waited >= mark) return;
    if (other.hasPassed(mark)) return;
    // There is no wait for work of a lost device.
    if (other.runtime !== runtime) {
      if (other.runtime.lost !== undefined) return;
      other.shared.loans.settled();
    }
    const { events } = other;
    let covered = events.covered(other.isClosed ? other.mark : mark);
    // The operation was queued before several streams were in use: one event covers all such work.
    if (covered < mark) covered = events.recordAll();
    this.waited.set(other, covered);
    const event = events.covering(covered);
    if (other.runtime === runtime) waitForEvent(stream, event);
    else {
      events.lend(covered, event);
      this.waitForDevice(other.shared, event, () => events.loanEnded(covered, event));
    }
  }

  /**
   * Queues a wait for an event of another device, which announces that the event's record has been
   * issued. The event does not change until this stream has waited; then `loanEnded` is called.
   */
  private waitForDevice(from: SharedDevice, event: number, loanEnded: () => void): void {
    const { stream } = this;
    const { runtime, slot } = stream;
    const peer = stream.shared.link(from);
    const { ring } = from.runtime;
    const announced = ring.begin(OP.announce, 0, 6, 0, -1, 0);
    ring.memory[announced] = event;
    // The driver of a GPU waits for events of other GPUs itself.
    ring.memory[announced + 1] =
      stream.device.kind === 'cuda' && from.runtime.config.provider === 'libcuda' ? 0 : 1;
    ring.commit();
    this.crossings = (this.crossings + 1) | 0;
    const value = this.crossings;
    const body = stream.begin(OP.peerWait, 7, 0);
    const { memory } = runtime.ring;
    memory[body] = peer;
    memory[body + 1] = event;
    memory[body + 2] = value;
    stream.commit();
    from.loans.lend(event, { runtime, slot, value }, loanEnded);
    from.runtime.workUntilAnnounced(event, () => runtime.hasCrossed(slot, value));
  }
}

function deviceInCapture(): CudaError {
  return captureError(
    'waiting for another device',
    'wait before the capture, or on the stream before graph.launch(stream)',
  );
}
