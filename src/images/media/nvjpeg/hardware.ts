/**
 * The hardware JPEG decoders that some GPUs have (A100, H100, H200): they take batches. Pictures
 * that arrive while a batch is decoded are the next batch, so that a single picture does not wait,
 * and batches grow with the load. There is one call at a time: two at once took longer than two in
 * sequence (on one H200's host 6000 photographs a second instead of 8600; on another, calls in
 * sequence reached 24,000). The next batch is sent to the thread before the end of the last one
 * arrives here: on a busy event loop that message took as long as decoding a batch.
 */
import { NvjpegError } from './failure.js';
import type { FileMemory } from './file-memory.js';
import { MOST_IN_BATCH } from './thread/messages.js';
import type { BatchAnswer, Coded, Hardware, Lane } from './thread/messages.js';

/**
 * Bytes of files that a batch has at most, unless a single file is larger: copying them blocks the
 * event loop.
 */
const MOST_BYTES = 2 ** 21;
/** Batches that are sent to the thread at most. */
const MOST_TOLD = 2;

/** A picture that a batch can have. */
export interface Batchable extends Omit<Coded, 'source' | 'length'> {
  readonly bytes: Uint8Array;
  /** nvjpegOutputFormat_t */
  readonly format: number;
}

/** Requests to nvJPEG's threads. */
export interface HardwareCalls {
  /** Decodes a batch, in the order of the requests. `lane` is the number of the hardware's lane. */
  batch(
    hardware: Hardware,
    lane: number,
    format: number,
    pictures: readonly Coded[],
  ): Promise<BatchAnswer>;
  lane(handle: number): Promise<Lane>;
  release(handle: number, lanes: readonly Lane[], parsed: number): Promise<void>;
}

interface Waiting {
  readonly picture: Batchable;
  readonly signal: AbortSignal | undefined;
  readonly resolve: (decoded: boolean) => void;
  readonly reject: (error: unknown) => void;
}

/** A lane that has batches. */
interface LaneInUse {
  /** Its number, which is unique in the process, also among released lanes. */
  readonly number: number;
  readonly lane: Promise<Lane>;
  batches: number;
}

let lanes = 0;

function newLane(lane: Promise<Lane>): LaneInUse {
  return { number: ++lanes, lane, batches: 0 };
}

export class BatchDecoder {
  private readonly calls: HardwareCalls;
  private readonly handle: number;
  private readonly parsed: number;
  /** Undefined after it was released: the next batch makes another. */
  private lane: LaneInUse | undefined;
  /** One for each batch that may be sent to the thread. */
  private readonly memories: FileMemory[];
  private readonly waiting: Waiting[] = [];
  private isTelling = false;
  private readonly underway = new Set<Promise<void>>();

  /** @param newMemory makes memory for the files of a batch */
  constructor(
    calls: HardwareCalls,
    { handle, lane, parsed }: Hardware,
    newMemory: () => FileMemory,
  ) {
    this.calls = calls;
    this.handle = handle;
    this.lane = newLane(Promise.resolve(lane));
    this.parsed = parsed;
    this.memories = Array.from({ length: MOST_TOLD }, newMemory);
  }

  /**
   * Decodes a picture. Gives false where the hardware does not take it. Rejects with a failure of
   * the decoders, or with the signal's reason.
   */
  decode(picture: Batchable, signal: AbortSignal | undefined): Promise<boolean> {
    return new Promise((resolve, reject) => {
      this.waiting.push({ picture, signal, resolve, reject });
      if (this.isTelling) return;
      this.isTelling = true;
      // Pictures of the same turn of the microtask queue are in the same batch.
      queueMicrotask(() => {
        this.isTelling = false;
        this.tell();
      });
    });
  }

  /** Releases memory on the device, where nothing is decoded. */
  async rest(): Promise<void> {
    const { lane } = this;
    if (this.waiting.length > 0 || this.underway.size > 0 || lane === undefined) return;
    this.lane = undefined;
    await this.release(lane);
  }

  /** Releases everything, after the batches in progress. */
  async close(): Promise<void> {
    await Promise.all(this.underway);
    await this.calls.release(
      this.handle,
      this.lane === undefined ? [] : [await this.lane.lane],
      this.parsed,
    );
  }

  private tell(): void {
    while (this.waiting.length > 0 && this.underway.size < MOST_TOLD) {
      const batch = this.take();
      if (batch.length === 0) continue;
      const decoded = this.decodeNow(batch);
      const ended = (): void => {
        this.underway.delete(end);
        this.tell();
      };
      // The decoders get their next batch before callers get the results of this one.
      const end = decoded.then(ended, ended);
      this.underway.add(end);
      void giveOut(batch, decoded);
    }
  }

  /** Takes the next pictures of one format, without aborted ones. */
  private take(): Waiting[] {
    const batch: Waiting[] = [];
    let bytes = 0;
    while (this.waiting.length > 0 && batch.length < MOST_IN_BATCH) {
      const next = this.waiting[0]!;
      const { picture, signal } = next;
      if (signal?.aborted === true) next.reject(signal.reason);
      else {
        bytes += picture.bytes.length;
        if (batch.length > 0 && (bytes > MOST_BYTES || picture.format !== batch[0]!.picture.format))
          break;
        batch.push(next);
      }
      this.waiting.shift();
    }
    return batch;
  }

  private async decodeNow(batch: readonly Waiting[]): Promise<BatchAnswer> {
    const { handle, parsed } = this;
    const own = (this.lane ??= newLane(this.calls.lane(handle)));
    const memory = this.memories.pop()!;
    own.batches++;
    let isFit = false;
    try {
      const lane = await own.lane;
      const sources = await memory.put(batch.map(({ picture }) => picture.bytes));
      const pictures = batch.map(
        ({ picture: { bytes, width, height, address, pitch } }, i): Coded => ({
          source: sources[i]!,
          length: bytes.length,
          width,
          height,
          address,
          pitch,
        }),
      );
      const answer = await this.calls.batch(
        { handle, lane, parsed },
        own.number,
        batch[0]!.picture.format,
        pictures,
      );
      isFit = !answer.broken;
      return answer;
    } finally {
      memory.shrink();
      this.memories.push(memory);
      own.batches--;
      if (!isFit && this.lane === own) this.lane = undefined;
      // The lane is released when the thread has no other batch for it.
      if (this.lane !== own && own.batches === 0) await this.release(own);
    }
  }

  private async release({ lane }: LaneInUse): Promise<void> {
    const made = await lane.catch(ignore);
    if (made !== undefined) await this.calls.release(0, [made], 0);
  }
}

async function giveOut(batch: readonly Waiting[], decoded: Promise<BatchAnswer>): Promise<void> {
  try {
    const { left } = await decoded;
    batch.forEach(({ resolve }, i) => {
      resolve(!left.includes(i));
    });
  } catch (error) {
    // A failure that is not the device's may not affect nvJPEG's other decoder: no memory for a
    // state, for example.
    const another = error instanceof NvjpegError && error.refusal.reason === 'status';
    for (const { resolve, reject } of batch) {
      if (another) resolve(false);
      else reject(error);
    }
  }
}

function ignore(): void {
  // The batch that needed the lane has the error.
}
