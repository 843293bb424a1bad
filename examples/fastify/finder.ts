/**
 * Photographs in files to what is on them: decoded to the device, put together into batches, run
 * through the models.
 */
import { type Device } from 'async-cuda';
import { CudaQueueFullError } from 'async-cuda/core';
import { RoundRobin } from 'async-cuda/ops';
import { Batcher, type BatcherOptions, type BatcherStatistics } from 'async-cuda/inference';

import {
  type DevicePhotograph,
  type Finding,
  type Point,
  sizeOf,
} from '../../demo/inference/photograph.js';
import { type Counted, Counts } from './counts.js';
import { decodePhotograph, pixelsOf } from './decoding.js';

/**
 * Photographs that may be on their way to the device at once; further ones wait for one another.
 */
const ARRIVALS = 16;
/**
 * Pixels of photographs under way, at most: each has 3 bytes on the device, and for a while as many
 * on the host.
 */
const MOST_PIXELS_UNDER_WAY = { cpu: 150_000_000, cuda: 1_000_000_000 } as const;
/** When to send a photograph again for which there was no memory: milliseconds. */
const RETRY_PIXELS_MS = 1000;

/** The calls of a server, whichever thread the device belongs to. */
export interface Finder {
  /** Counts of the calling thread. */
  readonly counts: Counts;

  /**
   * What is on the photograph in `file`: the answer to its request, in JSON. Until it resolves the
   * file stays as it is; where it rejects something may still read it.
   *
   * Rejects with the signal's reason where it aborts; where the photograph, or there being too many
   * of them, is the reason, the error has a `statusCode`, and may have `retryAfter`, milliseconds
   */
  find(file: Uint8Array<SharedArrayBuffer>, signal: AbortSignal): Promise<string>;
  statistics(): Promise<Statistics>;
}

export interface Statistics {
  /** The counts of each thread. */
  readonly counted: readonly Counted[];
  readonly batcher: BatcherStatistics;
}

/** As many photographs wait as may. */
export class BusyError extends Error {
  override name = 'BusyError';
  readonly statusCode = 503;
  /** When to try again: milliseconds. */
  readonly retryAfter: number;

  constructor(retryAfter: number, cause?: unknown) {
    super('too many photographs wait', { cause });
    this.retryAfter = retryAfter;
  }
}

export interface PhotographFinderOptions {
  /** Where photographs are decoded to. */
  readonly device: Device;
  /** What is found: the name of the list in an answer. */
  readonly task: string;
  /** Runs one batch: what is on each photograph. */
  readonly find: (photographs: readonly DevicePhotograph[]) => PromiseLike<readonly Finding[][]>;
  /** How requests are put together. */
  readonly batching: BatcherOptions;
  /**
   * Pixels of photographs under way, at most; a photograph that would exceed it is refused.
   * Default: 150 million on a CPU device, 1000 million on a GPU.
   */
  readonly mostPixelsUnderWay?: number;
}

/** The finder of the thread that the device belongs to. */
export class PhotographFinder implements Finder {
  readonly counts = new Counts();
  private readonly options: PhotographFinderOptions;
  /** Streams of their own, so that no photograph waits for a batch. */
  private readonly arrivals: RoundRobin;
  private readonly batcher: Batcher<DevicePhotograph, Finding[]>;
  /** A client may disconnect while its photograph is in a batch: it is closed after the batch. */
  private readonly running = new Set<DevicePhotograph>();
  /** Those on the device, and their pixels. */
  private readonly decoded = new Map<DevicePhotograph, number>();
  /** Pixels of photographs that are being decoded or are on the device. */
  private pixelsUnderWay = 0;

  constructor(options: PhotographFinderOptions) {
    this.options = options;
    this.arrivals = new RoundRobin(options.device, ARRIVALS);
    this.batcher = new Batcher((photographs) => this.runBatch(photographs), options.batching);
  }

  async find(file: Uint8Array, signal: AbortSignal): Promise<string> {
    const { device, task } = this.options;
    const pixels = this.admit(await pixelsOf(file, signal));
    let photograph: DevicePhotograph;
    try {
      // Without the signal: libvips ends what it has begun, and until then its memory counts.
      photograph = await decodePhotograph(device, file, this.arrivals);
    } catch (error) {
      this.pixelsUnderWay -= pixels;
      throw error;
    }
    this.decoded.set(photograph, pixels);
    try {
      const findings = await this.batcher.run(photograph, { signal });
      return JSON.stringify({ ...sizeOf(photograph), [task]: findings.map(rounded) });
    } catch (error) {
      throw error instanceof CudaQueueFullError ? new BusyError(error.retryAfter, error) : error;
    } finally {
      if (!this.running.has(photograph)) this.drop(photograph);
    }
  }

  statistics(): Promise<Statistics> {
    return Promise.resolve({ counted: [this.counts.take()], batcher: this.batcher.statistics });
  }

  /** Finishes the pending requests. */
  async close(): Promise<void> {
    this.counts.close();
    await this.batcher.close();
    this.arrivals.close();
  }

  private async runBatch(photographs: readonly DevicePhotograph[]): Promise<readonly Finding[][]> {
    for (const each of photographs) this.running.add(each);
    try {
      return await this.options.find(photographs);
    } finally {
      for (const each of photographs) {
        this.running.delete(each);
        this.drop(each);
      }
    }
  }

  /**
   * Counts a photograph that is about to be decoded. One alone has room in any case. @throws
   * BusyError
   */
  private admit(pixels: number): number {
    const { mostPixelsUnderWay = MOST_PIXELS_UNDER_WAY[this.options.device.kind] } = this.options;
    if (this.pixelsUnderWay > 0 && this.pixelsUnderWay + pixels > mostPixelsUnderWay)
      throw new BusyError(RETRY_PIXELS_MS);
    this.pixelsUnderWay += pixels;
    return pixels;
  }

  /** Closes a photograph, once. */
  private drop(photograph: DevicePhotograph): void {
    this.pixelsUnderWay -= this.decoded.get(photograph) ?? 0;
    if (this.decoded.delete(photograph)) photograph.close();
  }
}

/**
 * To a thousandth, and to a tenth of a pixel: all digits that a number has take three times as long
 * to write, and to send.
 */
function rounded({ label, score, corners }: Finding): Finding {
  return { label, score: Math.round(1000 * score) / 1000, corners: corners.map(roundedPoint) };
}

function roundedPoint({ x, y }: Point): Point {
  return { x: Math.round(10 * x) / 10, y: Math.round(10 * y) / 10 };
}
