/**
 * Fences as the decoder issues them. On the runtime thread the device is asked at once to write the
 * fence. The JS thread's decoder keeps the last fence back until another command comes, because
 * asking the driver for the end of something short is sooner than a fence.
 */
import type { Driver } from '../../driver/driver.js';
import { CUresult } from '../../ground/result.js';
import { RING_WORDS, SLOT_FENCE, SLOT_WORDS, WORD, unmadeBy } from '../layout.js';
import type { SharedState } from '../layout.js';
import { peek } from '../shared-words.js';

const RING_MASK = RING_WORDS - 1;
/**
 * How long the end of a short piece of work is asked for before a fence is put behind it, and how
 * often between two looks at the clock.
 */
const SETTLE_MS = 0.025;
const SETTLE_QUERIES = 16;

export class Fences {
  /** Whether the last fence was one of many short awaits in a row. */
  hot = false;
  private readonly driver: Driver;
  private readonly shared: SharedState;
  private readonly streams: Float64Array;
  /** Device address of slot 0. */
  private readonly slotsAddress: number;
  private readonly keepsBack: boolean;
  private readonly failed: (error: unknown, stream: number) => void;
  /** A fence that was asked for and not issued yet: its slot, or -1. */
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

  /** A fence behind what the stream has been given. */
  ask(slot: number, stream: number, value: number): void {
    this.slot = slot;
    this.stream = stream;
    this.value = value;
    // On the runtime thread a driver call costs little; on the JS thread the processor's caches may
    // be cold.
    if (!this.keepsBack) this.write();
  }

  /** {@link ask} and {@link settle}, for the JS thread where nothing is queued before the fence. */
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
   * Issues the fence that was kept back, where no command has come after it. Where launches are
   * awaited one at a time (`hot`) the device is asked at once to write the slot: that is seen half
   * a microsecond sooner than cuStreamQuery tells the end. Otherwise this asks for the end of the
   * stream for a few microseconds and writes the slot itself. After a pause short work ends sooner
   * that way than a fence is issued and carried out (12 against 30 µs, H200); long work gets its
   * fence.
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

  /** Issues the fence that was kept back, if there is one. */
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
