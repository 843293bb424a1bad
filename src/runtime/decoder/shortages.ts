/** Allocations that find too little memory: they wait while room is made, and are tried again. */
import type { Driver } from '../../driver/driver.js';
import { DriverError } from '../../driver/error.js';
import { CUresult } from '../../ground/result.js';
import { HANDLE, ISSUED_CAPTURING, ISSUED_STRIDE, SLOT_ROOM, SLOT_WORDS, WORD } from '../layout.js';
import type { SharedState } from '../layout.js';
import { peek } from '../shared-words.js';
import type { DecoderHost, RoomStep } from './host.js';
import type { Wait } from './wait.js';

/**
 * The steps that are taken, one after the other, for an allocation that finds too little memory.
 * See {@link DecoderHost.makeRoom}.
 */
const ROOM_STEPS: readonly RoomStep[] = ['trim', 'frees', 'trim'];

export class Shortages {
  /** Whether memory was freed since {@link DecoderHost.idle} was last called. */
  freed = false;
  private readonly driver: Driver;
  private readonly shared: SharedState;
  private readonly host: DecoderHost;
  /** Streams that wait for memory, with the number of {@link ROOM_STEPS} that were taken. */
  private readonly taken = new Map<number, number>();

  constructor(driver: Driver, shared: SharedState, host: DecoderHost) {
    this.driver = driver;
    this.shared = shared;
    this.host = host;
  }

  /**
   * Returns what an allocation of `bytes` that has failed with `error` waits for before it is tried
   * again; undefined where it has failed finally.
   */
  waitFor(error: unknown, handle: number, bytes: number, stream: number): Wait | undefined {
    if (!(error instanceof DriverError) || error.result !== CUresult.CUDA_ERROR_OUT_OF_MEMORY)
      return undefined;
    const taken = this.taken.get(stream) ?? 0;
    const step = ROOM_STEPS[taken];
    const value = (Atomics.load(this.shared.slots, stream * SLOT_WORDS + SLOT_ROOM) + 1) | 0;
    if (step !== undefined) this.settleFrees();
    if (step === undefined || !this.host.makeRoom(step, stream, bytes)) {
      this.taken.delete(stream);
      return undefined;
    }
    this.taken.set(stream, taken + 1);
    this.shared.status[handle] = HANDLE.pending;
    return { reason: 'memory', on: stream, value, consumed: false };
  }

  /** Is called when an allocation of the stream has found its memory. */
  over(stream: number): void {
    if (this.taken.size !== 0) this.taken.delete(stream);
  }

  /**
   * Synchronises with idle streams: a pool counts a free as complete once its stream was
   * synchronised with; a query has no such effect (driver 580). Synchronising with an idle stream
   * returns at once, and the stream gets no work meanwhile, because only this thread issues it.
   * Returns whether all streams are idle.
   */
  settleFrees(): boolean {
    const { streams, issued, control } = this.shared;
    const used = Atomics.load(control, WORD.slotsUsed);
    let all = true;
    for (let slot = 0; slot < used; slot++) {
      const stream = streams[slot]!;
      if (stream === 0) continue;
      const idle =
        issued[slot * ISSUED_STRIDE + ISSUED_CAPTURING] !== 1 &&
        this.driver.cuStreamQuery(stream) === CUresult.CUDA_SUCCESS;
      if (idle) this.driver.cuStreamSynchronize(stream);
      else all = false;
    }
    return all;
  }

  /** Whether pools may contain memory that was freed and not used again since. */
  get keepsFreed(): boolean {
    return this.freed && !this.isLost;
  }

  /**
   * Is called when nothing has been decoded for some time. If the device is idle, too, its pools
   * are trimmed.
   */
  rest(): void {
    if (this.isLost || !this.settleFrees()) return;
    this.freed = false;
    this.host.idle();
  }

  private get isLost(): boolean {
    return peek(this.shared.control, WORD.lost) !== 0;
  }
}
