/**
 * Allocates handles. A handle is reused only after the decoder has executed the command that
 * released it: commands that name it may be in the ring or with a parked stream.
 */
import { CudaOutOfMemoryError } from '../ground/errors.js';
import { HANDLE, MAX_HANDLES } from './layout.js';
import type { SharedState } from './layout.js';

export class HandleAllocator {
  private readonly status: Int32Array;
  private readonly failure: Int32Array;
  private readonly values: Float64Array;
  private next = 1;
  private readonly returned: number[] = [];
  private returnedNext = 0;
  private live = 0;

  constructor(shared: SharedState) {
    this.status = shared.status;
    this.failure = shared.failure;
    this.values = shared.values;
  }

  /** The number of handles in use, for leak checks. */
  get count(): number {
    return this.live;
  }

  take(): number {
    let handle = 0;
    if (this.returnedNext < this.returned.length) {
      const candidate = this.returned[this.returnedNext]!;
      if (Atomics.load(this.status, candidate) === HANDLE.released) {
        handle = candidate;
        this.returnedNext++;
        if (this.returnedNext === this.returned.length) {
          this.returned.length = 0;
          this.returnedNext = 0;
        } else if (this.returnedNext > 65536) {
          this.returned.splice(0, this.returnedNext);
          this.returnedNext = 0;
        }
      }
    }
    if (handle === 0) {
      if (this.next >= MAX_HANDLES) {
        throw new CudaOutOfMemoryError(
          `more than ${MAX_HANDLES} buffers, events and modules are alive on one device; ` +
            'close those that are no longer needed',
        );
      }
      handle = this.next++;
    }
    this.failure[handle] = 0;
    this.values[handle] = 0;
    Atomics.store(this.status, handle, HANDLE.pending);
    this.live++;
    return handle;
  }

  /** Takes a handle for an object that already exists in the driver. */
  adopt(value: number): number {
    const handle = this.take();
    this.values[handle] = value;
    Atomics.store(this.status, handle, HANDLE.live);
    return handle;
  }

  /** Returns a handle whose releasing command has been written. */
  give(handle: number): void {
    this.live--;
    this.returned.push(handle);
  }

  /** As {@link give}, for a handle that no command names any more. */
  drop(handle: number): void {
    this.values[handle] = 0;
    Atomics.store(this.status, handle, HANDLE.released);
    this.give(handle);
  }
}
