/**
 * The GPU's own JPEG decoders, which some have (A100, H100, H200): they take batches. What comes while one batch is decoded is the next, so
 * a picture that comes alone waits for nobody, and of many each batch has as many as came meanwhile. One call at a time: two at once
 * took longer than one behind the other (on one H200's host 6000 photographs a second for 8600; on another one after the other came to 24,000).
 */
import { NvjpegError } from './failure.js';
import type { FileMemory } from './file-memory.js';
import { MOST_IN_BATCH } from './thread/messages.js';
import type { BatchAnswer, Coded, Hardware, Lane } from './thread/messages.js';

/** Bytes of files that a batch has, but for one that is larger itself: copying them holds up the event loop. */
const MOST_BYTES = 2 ** 21;

/** What a picture's pixels are made of. */
export interface Batchable extends Omit<Coded, 'source' | 'length'> {
  readonly bytes: Uint8Array;
  /** nvjpegOutputFormat_t */
  readonly format: number;
}

/** How nvJPEG's threads are asked. */
export interface HardwareCalls {
  batch(hardware: Hardware, format: number, pictures: readonly Coded[]): Promise<BatchAnswer>;
  lane(handle: number): Promise<Lane>;
  release(handle: number, lanes: readonly Lane[], parsed: number): Promise<void>;
}

interface Waiting {
  readonly picture: Batchable;
  readonly signal: AbortSignal | undefined;
  readonly resolve: (decoded: boolean) => void;
  readonly reject: (error: unknown) => void;
}

export class BatchDecoder {
  private readonly calls: HardwareCalls;
  private readonly handle: number;
  private readonly parsed: number;
  /** Undefined where it has been given back, and the next batch makes another. */
  private lane: Lane | undefined;
  private readonly memory: FileMemory;
  private readonly waiting: Waiting[] = [];
  private running: Promise<void> | undefined = undefined;

  constructor(calls: HardwareCalls, { handle, lane, parsed }: Hardware, memory: FileMemory) {
    this.calls = calls;
    this.handle = handle;
    this.lane = lane;
    this.parsed = parsed;
    this.memory = memory;
  }

  /** Gives false where it is to be decoded otherwise. Rejects with why no more can be, or with the signal's reason. */
  decode(picture: Batchable, signal: AbortSignal | undefined): Promise<boolean> {
    return new Promise((resolve, reject) => {
      this.waiting.push({ picture, signal, resolve, reject });
      this.running ??= this.run();
    });
  }

  /** Gives back what lies on the device, where nothing is decoded. */
  async rest(): Promise<void> {
    const { lane } = this;
    if (this.running !== undefined || lane === undefined) return;
    this.lane = undefined;
    await this.calls.release(0, [lane], 0);
  }

  /** Behind what is decoded. */
  async close(): Promise<void> {
    await this.running;
    await this.calls.release(this.handle, this.lane === undefined ? [] : [this.lane], this.parsed);
  }

  private async run(): Promise<void> {
    // What is begun in the same turn of the queue of microtasks comes along.
    await Promise.resolve();
    while (this.waiting.length > 0) {
      const batch = this.take();
      if (batch.length === 0) continue;
      try {
        const { left, broken } = await this.decodeNow(batch);
        if (broken) await this.renewLane();
        batch.forEach(({ resolve }, i) => { resolve(!left.includes(i)); });
      } catch (error) {
        // Not the device's, and so perhaps not the other way's: no memory for a state, say.
        const another = error instanceof NvjpegError && error.refusal.reason === 'status';
        for (const { resolve, reject } of batch) {
          if (another) resolve(false);
          else reject(error);
        }
      }
    }
    this.running = undefined;
  }

  /** The next ones of one format, without those that were given up. */
  private take(): Waiting[] {
    const batch: Waiting[] = [];
    let bytes = 0;
    while (this.waiting.length > 0 && batch.length < MOST_IN_BATCH) {
      const next = this.waiting[0]!;
      const { picture, signal } = next;
      if (signal?.aborted === true) next.reject(signal.reason);
      else {
        bytes += picture.bytes.length;
        if (batch.length > 0 && (bytes > MOST_BYTES || picture.format !== batch[0]!.picture.format)) break;
        batch.push(next);
      }
      this.waiting.shift();
    }
    return batch;
  }

  private async decodeNow(batch: readonly Waiting[]): Promise<BatchAnswer> {
    const { handle, parsed } = this;
    const lane = (this.lane ??= await this.calls.lane(handle));
    const sources = await this.memory.put(batch.map(({ picture }) => picture.bytes));
    const pictures = batch.map(({ picture: { bytes, width, height, address, pitch } }, i): Coded => ({ source: sources[i]!, length: bytes.length, width, height, address, pitch }));
    try {
      return await this.calls.batch({ handle, lane, parsed }, batch[0]!.picture.format, pictures);
    } finally {
      this.memory.shrink();
    }
  }

  private async renewLane(): Promise<void> {
    const { lane } = this;
    this.lane = undefined;
    if (lane !== undefined) await this.calls.release(0, [lane], 0);
  }
}
