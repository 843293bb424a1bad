/**
 * How the decoder issues fences. On the runtime thread the device's write of the fence is queued at
 * once. The JavaScript thread's decoder defers the last fence until another command comes, because
 * querying the driver for the end of short work is faster than a fence.
 */
import type { Driver } from '../../driver/driver.js';
import { CUresult } from '../../ground/result.js';
import { RING_WORDS, SLOT_FENCE, SLOT_WORDS, WORD, unmadeBy } from '../layout.js';
import type { SharedState } from '../layout.js';
import { peek } from '../shared-words.js';

const RING_MASK = RING_WORDS - 1;
/**
 * How long the end of short work is queried before a fence is queued after it, and the number of
 * queries between two readings of the clock.
 */
const SETTLE_MS = 0.025;
const SETTLE_QUERIES = 16;

export class Fences {
  /** Whether the last fence was one of many short awaits in a row. */
  hot = false;
  private readonly driver: Driver;
  private readonly shared: SharedState;
  private readonly streams: Float64Array;
  /** The device address of slot 0. */
  private readonly slotsAddress: number;
  private readonly keepsBack: boolean;
  private readonly failed: (error: unknown, stream: number) => void;
  /** A fence that was requested and not issued yet: its slot, or -1. */
  private slot = -1;
  private stream = 0;
  private value = 0;

  /**
   * `keepsBack`: whether a fence waits for {@link settle}. `failed` is called where the driver
   * refuses a fence.
   */
  constructor(
    driver: Driver,
    shared: SharedState,
    slotsAddress: number,
    keepsBack: boolean,
    failed: (error: unknown, stream: number) => void,
  ) {
    this.driver = driver;
    this.shared = shared;
    this.streams = shared.streams;
    this.slotsAddress = slotsAddress;
    this.keepsBack = keepsBack;
    this.failed = failed;
  }

  /** Requests a fence after the stream's queued work. */
  ask(slot: number, stream: number, value: number): void {
    this.slot = slot;
    this.stream = stream;
    this.value = value;
    // On the runtime thread a driver call costs little; on the JavaScript thread the processor's
    // caches may be cold.
    if (!this.keepsBack) this.write();
  }

  /**
   * {@link ask} and {@link settle} in one, for the JavaScript thread where no command is queued
   * before the fence.
   */
  now(slot: number, stream: number, value: number, hot: boolean): void {
    if (unmadeBy(this.shared, stream) !== 0) {
      Atomics.store(this.shared.slots, slot * SLOT_WORDS + SLOT_FENCE, value);
      return;
    }
    this.slot = slot;
    this.stream = stream;
    this.value = value;
    this.settle(hot);
  }

  /**
   * Issues the deferred fence, if no command has come after it. Where launches are awaited one at a
   * time (`hot`) the device's write of the slot is queued at once: it is visible half a microsecond
   * before cuStreamQuery returns the end. Otherwise this queries the end of the stream for a few
   * microseconds and writes the slot itself. After a pause, short work ends sooner that way than a
   * fence is issued and executed (12 against 30 µs, H200); long work gets its fence.
   */
  settle(hot = false): void {
    if (this.slot === -1) return;
    if (hot) {
      this.write();
      return;
    }
    const { control, ring, slots } = this.shared;
    const stream = this.streams[this.stream]!;
    const start = performance.now();
    for (
      let queries = 1;
      Atomics.load(ring, Atomics.load(control, WORD.tail) & RING_MASK) === 0;
      queries++
    ) {
      const result = this.driver.cuStreamQuery(stream);
      if (result === CUresult.CUDA_SUCCESS) {
        Atomics.store(slots, this.slot * SLOT_WORDS + SLOT_FENCE, this.value);
        this.slot = -1;
        return;
      }
      if (result !== CUresult.CUDA_ERROR_NOT_READY) break;
      if (queries % SETTLE_QUERIES === 0 && performance.now() - start > SETTLE_MS) break;
    }
    this.write();
  }

  /** Issues the deferred fence, if there is one. */
  flush(): void {
    if (this.slot !== -1) this.write();
  }

  private write(): void {
    const { slot } = this;
    this.slot = -1;
    if (peek(this.shared.control, WORD.lost) !== 0) return;
    try {
      this.driver.cuStreamWriteValue32(
        this.streams[this.stream]!,
        this.slotsAddress + slot * SLOT_WORDS * 4,
        this.value >>> 0,
        0,
      );
    } catch (error) {
      this.failed(error, this.stream);
    }
  }
}
