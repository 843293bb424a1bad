/**
 * Text that kernels print on a GPU. It is in a buffer of the device, and the driver writes it to
 * standard output when a call synchronises. The runtime makes no such call otherwise, so it makes
 * one when a fence comes.
 *
 * A stream on which a kernel that prints was launched has *pending* text. Its fences are then not
 * written by the device: an event is recorded in the place of each. Once the event is reached,
 * cuEventSynchronize, which returns at once, writes the text, and then the fence is written from
 * here. So the text is out before the fence is visible.
 */
import type { CUevent, Driver } from '../driver/driver.js';
import { CUresult } from '../ground/result.js';
import { SLOT_FENCE, SLOT_WORDS } from './layout.js';
import type { SharedState } from './layout.js';
import type { NativeOutput } from './native-output.js';

const CU_EVENT_DISABLE_TIMING = 2;

interface Fence {
  readonly event: CUevent;
  readonly stream: number;
  readonly slot: number;
  readonly value: number;
}

export class PrintedText {
  private readonly driver: Driver;
  private readonly shared: SharedState;
  private readonly output: () => NativeOutput | undefined;
  /**
   * By stream: the number of fences that wait for text, and whether work that prints comes after
   * the last of them.
   */
  private readonly pending = new Map<number, { fences: number; unfenced: boolean }>();
  private readonly fences: Fence[] = [];
  private readonly spare: CUevent[] = [];

  /**
   * `output` is called when text is first due; it returns undefined where the machine does not have
   * it.
   */
  constructor(driver: Driver, shared: SharedState, output: () => NativeOutput | undefined) {
    this.driver = driver;
    this.shared = shared;
    this.output = output;
  }

  /** The number of streams with pending text. */
  get streams(): number {
    return this.pending.size;
  }

  /** Records that a kernel that prints was launched on `stream`. */
  expectText(stream: number): void {
    const text = this.pending.get(stream);
    if (text === undefined) this.pending.set(stream, { fences: 0, unfenced: true });
    else text.unfenced = true;
  }

  /** Takes over a fence of a stream with pending text. Returns false where there is none. */
  takeFence(stream: number, slot: number, value: number): boolean {
    const text = this.pending.get(stream);
    if (text === undefined) return false;
    const event = this.spare.pop() ?? this.driver.cuEventCreate(CU_EVENT_DISABLE_TIMING);
    this.driver.cuEventRecord(event, this.shared.streams[stream]!);
    this.fences.push({ event, stream, slot, value });
    text.fences++;
    text.unfenced = false;
    return true;
  }

  /**
   * Writes the text of fences that are reached, and the fences. Returns whether there was one. The
   * event of a stream that met a fault is never reached; the probe detects the fault.
   */
  settle(lost: boolean): boolean {
    const { fences, driver } = this;
    if (lost) {
      this.pending.clear();
      fences.length = 0;
      return false;
    }
    const reached: Fence[] = [];
    const unfinished = new Set<number>();
    for (let i = 0; i < fences.length;) {
      const fence = fences[i]!;
      if (
        unfinished.has(fence.stream) ||
        driver.cuEventQuery(fence.event) !== CUresult.CUDA_SUCCESS
      ) {
        unfinished.add(fence.stream);
        i++;
        continue;
      }
      fences.splice(i, 1);
      reached.push(fence);
    }
    if (reached.length === 0) return false;
    this.bring(() => {
      for (const { event } of reached) driver.cuEventSynchronize(event);
    });
    for (const { event, stream, slot, value } of reached) {
      this.spare.push(event);
      Atomics.store(this.shared.slots, slot * SLOT_WORDS + SLOT_FENCE, value);
      const text = this.pending.get(stream)!;
      text.fences--;
      if (text.fences === 0 && !text.unfenced) this.pending.delete(stream);
    }
    return true;
  }

  /** Writes, at the end of the process, the text of finished work, without waiting for the rest. */
  end(): void {
    const { driver, shared } = this;
    const finished = [...this.pending.keys()]
      .map((stream) => shared.streams[stream]!)
      .filter((stream) => stream !== 0 && driver.cuStreamQuery(stream) === CUresult.CUDA_SUCCESS);
    if (finished.length === 0) return;
    this.bring(() => {
      for (const stream of finished) driver.cuStreamSynchronize(stream);
    });
  }

  private bring(synchronise: () => void): void {
    const output = this.output();
    if (output === undefined) synchronise();
    else output.bring(synchronise);
  }
}
