/**
 * The device's clock and its relation to JavaScript's. Events have no absolute time, only
 * distances. All distances are measured from one event, which is compared with `performance.now()`
 * before and after it.
 */
import type { CoreDevice } from './device.js';
import { Stream } from './stream.js';
import { createEvent, destroyEvent, recordEvent } from './driver-events.js';

/** A moment on both clocks, milliseconds. */
interface Sample {
  readonly device: number;
  readonly js: number;
  /** JavaScript's time may be wrong by half of this. */
  readonly slack: number;
}

/** Measurements of one comparison. The most exact one counts. */
const MEASUREMENTS = 5;
/**
 * Two comparisons this far apart, each this exact, give the ratio of the clocks' rates. Otherwise
 * the rates count as equal.
 */
const RATE_AFTER_MS = 1000;
const RATE_SLACK_MS = 0.5;
/**
 * cuEventElapsedTime gives 24 bits. Up to this many milliseconds a distance is exact to half a
 * microsecond.
 */
const BASE_REACH_MS = 5000;

export class DeviceClock {
  private readonly device: CoreDevice;
  /**
   * A stream of the clock's own, so that no other work precedes what is recorded here. It is not
   * counted as one of the device's streams.
   */
  private readonly stream: Stream;
  /**
   * The events to measure from, of which the last one is used, and the last one's distance from the
   * first.
   */
  private readonly bases: number[];
  private baseTime = 0;
  private readonly samples: Sample[] = [];

  constructor(device: CoreDevice) {
    this.device = device;
    this.stream = new Stream(device, { label: 'clock' });
    const first = createEvent(device.runtime, 0);
    recordEvent(this.stream, first);
    this.bases = [first];
  }

  /**
   * Milliseconds from the clock's beginning to each of these events, which have passed. NaN for an
   * event that was not recorded.
   */
  async times(handles: readonly number[]): Promise<Float64Array> {
    const { bases, baseTime } = this;
    const times = await this.distances(bases[bases.length - 1]!, handles);
    return times.map((time) => baseTime + time);
  }

  /** Compares the clocks. */
  async compare(): Promise<void> {
    const { runtime } = this.device;
    let best: Sample | undefined;
    const event = createEvent(runtime, 0);
    for (let i = 0; i < MEASUREMENTS; i++) {
      const before = performance.now();
      recordEvent(this.stream, event);
      await this.passed();
      const after = performance.now();
      const [device] = await this.times([event]);
      const slack = after - before;
      if (
        device !== undefined &&
        !Number.isNaN(device) &&
        (best === undefined || slack < best.slack)
      )
        best = { device, js: (before + after) / 2, slack };
    }
    if (best !== undefined) this.samples.push(best);
    const [now] = await this.times([event]);
    if (now !== undefined && now - this.baseTime > BASE_REACH_MS) {
      // The base before is kept: a measurement from it may be under way.
      this.bases.push(event);
      this.baseTime = now;
    } else destroyEvent(runtime, event);
  }

  /**
   * The function from the device's time to JavaScript's, and its exactness in milliseconds. `calls`
   * are moments of the device with an earlier moment of JavaScript each: the beginning of an
   * operation, and the call that queued it.
   */
  alignment(calls: readonly { device: number; js: number }[]): {
    toJs: (device: number) => number;
    slack: number;
  } {
    const sorted = [...this.samples].sort((a, b) => a.slack - b.slack);
    const [best = { device: 0, js: 0, slack: Infinity }] = sorted;
    const first = this.samples[0] ?? best;
    const last = this.samples[this.samples.length - 1] ?? best;
    const far =
      last.device - first.device > RATE_AFTER_MS &&
      Math.max(first.slack, last.slack) < RATE_SLACK_MS;
    const rate = far ? (last.js - first.js) / (last.device - first.device) : 1;
    const from = far ? first : best;
    const toJs = (device: number): number => from.js + (device - from.device) * rate;
    // An operation cannot begin before the call that queues it.
    const early = calls.reduce((most, { device, js }) => Math.max(most, js - toJs(device)), 0);
    return { toJs: (device) => toJs(device) + early, slack: best.slack };
  }

  close(): void {
    if (this.device.runtime.lost !== undefined) return;
    for (const base of this.bases) destroyEvent(this.device.runtime, base);
    this.stream.close();
  }

  private passed(): Promise<void> {
    const { slot, runtime } = this.stream;
    return runtime.wait(slot, runtime.fence(slot, slot.index, 0, true), slot.index);
  }

  private async distances(from: number, handles: readonly number[]): Promise<Float64Array> {
    const { runtime } = this.device;
    const { values } = runtime.shared;
    if (this.samples.length === 0) await this.passed();
    return runtime.call(
      'elapsedEach',
      values[from]!,
      Float64Array.from(handles, (handle) => values[handle]!),
    );
  }
}
