/**
 * Memory of recently closed buffers, for allocations of the same size. A loop that closes its
 * results and allocates new ones each time gets them without a command to the runtime thread, and
 * their addresses at once. (On two cores, where the runtime thread had to be woken for an
 * allocation and had to wake this one at its end, this took a third to half of a millisecond
 * between two runs of a model.)
 *
 * The memory is freed when no such allocation was made for a while, when memory is short, and with
 * the device.
 */
import { clearTimeout, setTimeout } from 'node:timers';

import { HANDLE } from '../runtime/layout.js';
import { DeviceBuffer } from './buffer.js';
import type { CoreDevice } from './device.js';
import type { DType, DTypeName } from '../ground/dtype.js';
import type { Allocation } from './memory.js';
import type { Stream } from './stream.js';

/**
 * The most pieces that are kept, in use or not, and the most bytes of them: other programs may need
 * memory, too.
 */
const MOST = 64;
const MOST_BYTES = 2 ** 29;
const IDLE_MS = 1000;

interface Piece {
  readonly memory: Allocation;
  readonly giveBack: (on?: Stream) => void;
}

export class RecycledMemory {
  private readonly device: CoreDevice;
  /** The kept pieces; the one used last is at the end. */
  private readonly pieces: Piece[] = [];
  private bytes = 0;
  private timer: ReturnType<typeof setTimeout> | undefined = undefined;
  private wantedAt = 0;
  /** A stream for frees on which no allocation waits. */
  private freeStream: Stream | undefined = undefined;

  constructor(device: CoreDevice) {
    this.device = device;
  }

  /** Like {@link CoreDevice.allocScoped} on that stream, from the device's own pool. */
  alloc<D extends DTypeName>(dtype: DType<D>, length: number, stream: Stream): DeviceBuffer<D> {
    const bytes = length * dtype.bytes;
    const known = this.take(bytes);
    let buffer: DeviceBuffer<D>;
    if (known === undefined) buffer = this.device.allocScoped(dtype, length, { stream });
    else {
      const memory = this.device.allocAgain(known, stream, () => `alloc ${dtype.name}[${length}]`);
      memory.scoped = true;
      buffer = new DeviceBuffer(memory, dtype, 0, length, undefined);
    }
    if (bytes > 0 && bytes <= MOST_BYTES) this.remember(buffer.memory);
    return buffer;
  }

  /** Drops memory of failed work, which may still be marked as undefined: it is not used again. */
  drop(memory: Allocation): void {
    const at = this.pieces.findIndex((piece) => piece.memory === memory);
    if (at !== -1) this.remove(at).giveBack();
  }

  /** Frees all pieces that are not in use. */
  release(on?: Stream): void {
    while (this.pieces.length > 0) this.remove(0).giveBack(on);
    if (this.timer !== undefined) clearTimeout(this.timer);
    this.timer = undefined;
  }

  /** Like {@link release}, on a stream of its own, before any allocation that waits for memory. */
  makeRoom(): void {
    if (this.pieces.length === 0) return;
    this.freeStream ??= this.device.createStream();
    this.release(this.freeStream);
  }

  private take(bytes: number): Allocation | undefined {
    const { pieces } = this;
    for (let at = pieces.length - 1; at >= 0; at--) {
      const { memory } = pieces[at]!;
      if (memory.bytes !== bytes || !memory.isLeftToBorrower || !this.isSound(memory)) continue;
      this.remove(at);
      return memory;
    }
    return undefined;
  }

  private remove(at: number): Piece {
    const { pieces } = this;
    const piece = pieces[at]!;
    // splice would allocate an array for the removed element.
    pieces.copyWithin(at, at + 1);
    pieces.pop();
    this.bytes -= piece.memory.bytes;
    return piece;
  }

  /** Whether the memory is allocated, and no failure has left it undefined. */
  private isSound({ handle }: Allocation): boolean {
    const { status, failure } = this.device.runtime.shared;
    return Atomics.load(status, handle) === HANDLE.live && Atomics.load(failure, handle) === 0;
  }

  private remember(memory: Allocation): void {
    const { pieces } = this;
    pieces.push({ memory, giveBack: memory.borrow() });
    this.bytes += memory.bytes;
    while (pieces.length > MOST || this.bytes > MOST_BYTES) this.remove(0).giveBack();
    this.wantedAt = performance.now();
    if (this.timer === undefined) this.lookLater(IDLE_MS);
  }

  private lookLater(milliseconds: number): void {
    this.timer = setTimeout(() => {
      this.timer = undefined;
      const left = this.wantedAt + IDLE_MS - performance.now();
      if (left > 1) this.lookLater(left);
      else this.release();
    }, milliseconds);
    this.timer.unref();
  }
}
