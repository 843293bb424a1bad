/**
 * Separates calls that must not overlap on a GPU. cuMemFree, cuMemHostUnregister and cuArrayDestroy
 * wait for all work of the device and let no other call through meanwhile (seen on an H200, driver
 * 580). A stream that waits for a value waits for another call to write it. So a free is put off
 * while a stream waits for a value, and a wait that comes during a free is held back until the free
 * has ended.
 */
import type { CompletionSlot } from '../runtime/completion.js';
import type { Stream } from './stream.js';

export class FreeGate {
  /** Streams that wait for a value, and the number of their last operation that does. */
  private readonly waits = new Map<Stream, number>();
  private readonly underWay = new Set<Promise<void>>();
  private readonly putOff = new Set<Promise<void>>();

  /**
   * Frees, by `call`, when no stream waits for a value. Resolves when the call has ended, or at
   * once where it is put off: the code that writes the value may await this.
   */
  async free(call: () => Promise<void>): Promise<void> {
    if (this.waiting().length === 0) {
      await this.run(call);
      return;
    }
    const later = this.runLater(call);
    this.putOff.add(later);
    // The device is lost or closed, and its memory freed.
    later.catch(() => undefined).finally(() => this.putOff.delete(later));
  }

  /** Resolves when no free is put off. */
  async drained(): Promise<void> {
    await Promise.all(this.putOff);
  }

  /**
   * Called before `stream` waits for a value: holds the stream until the frees that run have ended.
   */
  hold(stream: Stream): void {
    if (this.underWay.size === 0) return;
    const { transferSlot } = stream;
    const value = stream.runtime.nextHold(transferSlot);
    stream.hold(transferSlot, value);
    this.releaseHold(stream, transferSlot, value).catch(() => undefined);
  }

  /** Operation `mark` of the stream waits for a value. */
  entered(stream: Stream, mark: number): void {
    this.waiting();
    this.waits.set(stream, mark);
  }

  private waiting(): [Stream, number][] {
    for (const [stream, mark] of this.waits) if (stream.hasPassed(mark)) this.waits.delete(stream);
    return [...this.waits];
  }

  private async run(call: () => Promise<void>): Promise<void> {
    const free = call();
    this.underWay.add(free);
    try {
      await free;
    } finally {
      this.underWay.delete(free);
    }
  }

  private async runLater(call: () => Promise<void>): Promise<void> {
    for (let waiting = this.waiting(); waiting.length > 0; waiting = this.waiting()) {
      await Promise.all(waiting.map(([stream, mark]) => stream.passedLater(mark)));
    }
    await this.run(call);
  }

  private async releaseHold(stream: Stream, slot: CompletionSlot, value: number): Promise<void> {
    const { runtime } = stream;
    const frees = [...this.underWay];
    // The holds of one slot are released in order.
    await runtime.reached(slot, value);
    await Promise.allSettled(frees);
    runtime.release(slot, value);
  }
}
