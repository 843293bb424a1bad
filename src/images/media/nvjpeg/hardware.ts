/**
 * The GPU's own JPEG decoders, which some have (A100, H100, H200): they take batches. What comes
 * while batches are decoded is the next, so a picture that comes alone waits for nobody, and of
 * many each batch has as many as came meanwhile. One call at a time: two at once took longer than
 * one behind the other (on one H200's host 6000 photographs a second for 8600; on another one after
 * the other came to 24,000). But the thread is told of the next one before this one hears of the
 * end of the last: a busy event loop took as long for that as the decoders for a batch.
 */
import { NvjpegError } from './failure.js';
import type { FileMemory } from './file-memory.js';
import { MOST_IN_BATCH } from './thread/messages.js';
import type { BatchAnswer, Coded, Hardware, Lane } from './thread/messages.js';

/**
 * Bytes of files that a batch has, but for one that is larger itself: copying them holds up the
 * event loop.
 */
const MOST_BYTES = 2 ** 21;
/** Batches that the thread has been told of. */
const MOST_TOLD = 2;

/** What a picture's pixels are made of. */
export interface Batchable extends Omit<Coded, 'source' | 'length'> {
  readonly bytes: Uint8Array;
  /** nvjpegOutputFormat_t */
  readonly format: number;
}

/** How nvJPEG's threads are asked. */
export interface HardwareCalls {
  /** One after the other, in the order of asking. `lane`: the number of the hardware's. */
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

/** A lane, until the last batch on it has ended. */
interface LaneInUse {
  /** Tells it from others of the process, also from those that were given back. */
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
  /** Undefined where it has been given back, and the next batch makes another. */
  private lane: LaneInUse | undefined;
  /** One for each batch that the thread may be told of. */
  private readonly memories: FileMemory[];
  private readonly waiting: Waiting[] = [];
  private isTelling = false;
  private readonly underway = new Set<Promise<void>>();

  /** @param newMemory for the files of a batch */
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
   * Gives false where it is to be decoded otherwise. Rejects with why no more can be, or with the
   * signal's reason.
   */
  decode(picture: Batchable, signal: AbortSignal | undefined): Promise<boolean> {
    return new Promise((resolve, reject) => {
      this.waiting.push({ picture, signal, resolve, reject });
      if (this.isTelling) return;
      this.isTelling = true;
      // What is begun in the same turn of the queue of microtasks comes along.
      queueMicrotask(() => {
        this.isTelling = false;
        this.tell();
      });
    });
  }

  /** Gives back what lies on the device, where nothing is decoded. */
  async rest(): Promise<void> {
    const { lane } = this;
    if (this.waiting.length > 0 || this.underway.size > 0 || lane === undefined) return;
    this.lane = undefined;
    await this.release(lane);
  }

  /** Behind what is decoded. */
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
      // The decoders get their next batch before callers get what this one has given.
      const end = decoded.then(ended, ended);
      this.underway.add(end);
      void giveOut(batch, decoded);
    }
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
      // Not while the thread has another batch for it.
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
    // Not the device's, and so perhaps not the other way's: no memory for a state, say.
    const another = error instanceof NvjpegError && error.refusal.reason === 'status';
    for (const { resolve, reject } of batch) {
      if (another) resolve(false);
      else reject(error);
    }
  }
}

function ignore(): void {
  // A lane that could not be made: whoever wanted it was told.
}
